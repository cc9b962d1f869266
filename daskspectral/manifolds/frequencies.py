"""Frequencies of flat tori: the dual lattice, shell by shell, from the shortest vectors on."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = tuple[tuple[float, ...], ...]

TOGETHER = 1e-9
"""Squared lengths that agree to this relative difference are one shell."""

_LARGEST = 10**7  # frequencies that are enumerated
_HALF = 0.5 + 1e-9  # a coefficient of 1/2 stays, however it is rounded


@lru_cache(maxsize=64)
def sums_of_squares(m: int, limit: int) -> tuple[tuple[int, int], ...]:
    """Return (n, r_m(n)) for the n <= limit with r_m(n) > 0: coefficients of (sum_k z^(k^2))^m, exact."""
    counts = np.zeros(limit + 1, dtype=object)
    counts[0] = 1
    for _ in range(m):
        total = counts.copy()
        for k in range(1, isqrt(limit) + 1):
            total[k * k :] += 2 * counts[: limit + 1 - k * k]
        counts = total
    return tuple((n, int(r)) for n, r in enumerate(counts) if r)


def shell(m: int, n: int) -> Integers:
    """The k in Z^m with |k|^2 = n, one of each pair k, -k: (r, m), in lexicographic order."""
    vectors, rest = np.zeros((1, 0), dtype=np.int64), np.full(1, n)
    for _ in range(m - 1):
        parts = []
        for k in range(-isqrt(n), isqrt(n) + 1):
            rows = np.flatnonzero(rest >= k * k)
            parts.append((np.column_stack([vectors[rows], np.full(len(rows), k)]), rest[rows] - k * k))
        vectors, rest = np.concatenate([v for v, _ in parts]), np.concatenate([r for _, r in parts])
    last = np.rint(np.sqrt(rest)).astype(np.int64)
    square = last * last == rest
    vectors, last = vectors[square], last[square]
    signed = last != 0
    vectors = np.concatenate([np.column_stack([vectors, last]), np.column_stack([vectors, -last])[signed]])
    leading: Any = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
    vectors = vectors[leading >= 0]
    return np.asarray(vectors[np.lexsort(vectors.T[::-1])])


class Shells:
    """The vectors k B of a lattice with the rows of B (m, m), gathered into shells of one squared length.

    Enumerated up to a radius that grows with what is asked for; complete for any independent rows, fast for reduced
    ones (`reduced`). `shells` makes and keeps them.
    """

    def __init__(self, basis: Floats):
        self.basis = basis
        self._square = 4 * float((basis**2).sum(axis=1).min())
        self._found: tuple[Integers, Integers, Floats] | None = None

    def shell(self, number: int, of: object) -> tuple[Integers, float]:
        """The k of a shell, (r, m), one of each pair k, -k, in lexicographic order, and the mean of |k B|².

        Raises ValueError, naming what they are the frequencies `of`, where more than 10^7 would be enumerated.
        """
        found, square = self._found, self._square
        while found is None or len(found[2]) <= number:
            ball = _within(self.basis, square)
            if ball is None:
                raise ValueError(f"level {number} of {of!r} lies beyond {_LARGEST} frequencies; ask for a lower one")
            found, square = _gathered(ball, self.basis), 2 * square
            self._found, self._square = found, square
        vectors, starts, values = found
        return vectors[starts[number] : starts[number + 1]], float(values[number])


@lru_cache(maxsize=8)
def shells(basis: Rows) -> Shells:
    """The shells of the lattice with these rows, kept from call to call."""
    return Shells(np.array(basis))


def _within(basis: Floats, square: float) -> Integers | None:
    """All k with |k B|^2 <= square, (r, m), or None where they are too many.

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
        counts = np.maximum(last - first + 1, 0)
        if counts.sum() > _LARGEST:
            return None
        counts = counts.astype(np.int64)
        rows = np.repeat(np.arange(len(known)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        k = first[rows].astype(np.int64) + np.arange(len(rows)) - before
        known = np.column_stack([k, known[rows]])
        rest = np.maximum(rest[rows] - (factor[i, i] * (k - centre[rows])) ** 2, 0.0)
    return known


def _triangle(basis: Floats) -> Floats:
    """R (m, m), upper, with B^T = Q R."""
    factor: Any = np.linalg.qr(basis.T, mode="r")
    return np.asarray(factor)


def _gathered(vectors: Integers, basis: Floats) -> tuple[Integers, Integers, Floats]:
    """One of each pair k, -k, shell by shell; where each shell starts, and its value.

    The last shell, of which vectors beyond the radius may be missing, only tells where the one before ends.
    """
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
    vectors = vectors[leading >= 0]
    squares = ((vectors @ basis) ** 2).sum(axis=1)
    order = np.argsort(squares, kind="stable")
    vectors, squares = vectors[order], squares[order]
    fresh = np.diff(squares, prepend=-1.0) > TOGETHER * squares
    starts, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    values = np.add.reduceat(squares, starts) / np.bincount(group)
    return vectors[np.lexsort((*vectors.T[::-1], group))], starts, values[:-1]


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
