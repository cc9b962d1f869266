"""Frequencies of flat tori: the dual lattice, level by level, from the shortest vectors on."""

from __future__ import annotations

from functools import lru_cache, partial
from math import isqrt
from typing import Any

import numpy as np

from daskspectral.manifolds.spectrum import TOGETHER, Floats, Integers, Spectrum, beyond, branches

Rows = tuple[tuple[float, ...], ...]

_COUNTED = 3  # dimensions from which the frequencies of a cube are counted, not enumerated
_HALF = 0.5 + 1e-9  # a coefficient of 1/2 stays, however it is rounded


def frequencies(basis: Rows, level: int, of: object) -> tuple[Integers, float]:
    """The k (r, m) of a level of |k B|² over k in Z^m, one of each pair k, -k, in lexicographic order; and its value.

    `basis` are the rows of B (m, m). Raises ValueError, naming what they are the frequencies `of`, where more than 10^7
    would be enumerated.
    """
    if not _counted(basis):
        return _spectrum(basis).level(level, of)
    square = float(_square(len(basis), level)[0])
    found = _within(np.array(basis), square)
    if found is None:
        raise beyond(level, of)
    vectors = found[0][np.rint(found[1]) == square]
    return vectors[np.lexsort(vectors.T[::-1])], square


def multiplicity(basis: Rows, level: int, of: object) -> tuple[float, int]:
    """The value of a level of |k B|², and how many k it has, exactly; raises ValueError as `frequencies`."""
    if _counted(basis):
        return _square(len(basis), level)
    vectors, square = frequencies(basis, level, of)
    return square, 2 * len(vectors) if square else 1


def _counted(basis: Rows) -> bool:
    return len(basis) >= _COUNTED and bool((np.array(basis) == np.eye(len(basis))).all())


def _square(m: int, level: int) -> tuple[int, int]:
    """The number n that is the sum of m squares, from 0 on, and in how many ways."""
    limit = 16
    while len(found := _sums_of_squares(m, limit)) <= level:
        limit *= 2
    return found[level]


@lru_cache(maxsize=64)
def _sums_of_squares(m: int, limit: int) -> tuple[tuple[int, int], ...]:
    """(n, r_m(n)) for the n <= limit with r_m(n) > 0: coefficients of (sum_k z^(k^2))^m, exact."""
    counts = np.zeros(limit + 1, dtype=object)
    counts[0] = 1
    for _ in range(m):
        total = counts.copy()
        for k in range(1, isqrt(limit) + 1):
            total[k * k :] += 2 * counts[: limit + 1 - k * k]
        counts = total
    return tuple((n, int(r)) for n, r in enumerate(counts) if r)


@lru_cache(maxsize=8)
def _spectrum(basis: Rows) -> Spectrum:
    """The levels of |k B|², kept from call to call; fast for reduced rows (`reduced`)."""
    b = np.array(basis)
    return Spectrum(partial(_within, b), 4 * float((b**2).sum(axis=1).min()))


def _within(basis: Floats, square: float) -> tuple[Integers, Floats] | None:
    """The k with |k B|² ≤ square, one of each pair k, -k, (r, m), and these values; None where they are too many.

    Coordinate by coordinate, from the last on, within the bounds that a triangular factor of B gives (Fincke and Pohst
    1985): none is missed, whatever the angles between the rows of B.
    """
    m = len(basis)
    factor = _triangle(basis)
    known, rest = np.zeros((1, 0), dtype=np.int64), np.full(1, square * (1 + TOGETHER))
    for i in reversed(range(m)):
        centre = -(known @ factor[i, i + 1 :]) / factor[i, i]
        reach = np.sqrt(rest) / abs(factor[i, i])
        first, last = np.ceil(centre - reach), np.floor(centre + reach)
        found = branches(np.maximum(last - first + 1, 0))
        if found is None:
            return None
        rows, number = found
        k = first[rows].astype(np.int64) + number
        known = np.column_stack([k, known[rows]])
        rest = np.maximum(rest[rows] - (factor[i, i] * (k - centre[rows])) ** 2, 0.0)
    leading = known[np.arange(len(known)), (known != 0).argmax(axis=1)]
    known = known[leading >= 0]
    return known, ((known @ basis) ** 2).sum(axis=1)


def _triangle(basis: Floats) -> Floats:
    """R (m, m), upper, with B^T = Q R."""
    factor: Any = np.linalg.qr(basis.T, mode="r")
    return np.asarray(factor)


def reduced(vectors: Floats) -> Floats:
    """Shorter, less oblique vectors (m, m) of the lattice that independent rows (m, m) span.

    Lenstra, Lenstra and Lovasz 1982, with the factor 0.99. Vectors that are reduced to rounding stay as they are, so
    that the result does not depend on how ties are rounded.
    """
    b = vectors.copy()
    k = 1
    while k < len(b):
        lower = _triangle(b).T  # row i: b_i in the orthogonal frame of the rows
        for j in reversed(range(k)):
            times = lower[k, j] / lower[j, j]
            if abs(times) > _HALF:
                b[k] -= np.rint(times) * b[j]
                lower[k] -= np.rint(times) * lower[j]
        if lower[k, k] ** 2 < 0.99 * lower[k - 1, k - 1] ** 2 - lower[k, k - 1] ** 2:
            b[[k - 1, k]] = b[[k, k - 1]]
            k = max(k - 1, 1)
        else:
            k += 1
    return b
