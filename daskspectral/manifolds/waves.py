"""Eigenspaces of flat tori: waves, on which isometries permute frequencies and shift phases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isqrt, sqrt
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.eigenspace import Array, Eigenspace
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.manifolds.orbits import Move, orbits, places
from daskspectral.manifolds.spectrum import TOGETHER, Floats, Integers, Spectrum, branches

_COUNTED = 3  # dimensions from which the frequencies of a cube are counted, not enumerated


class Torus(Manifold):
    """A manifold of points with m angles t of period 2π, in which the metric is constant.

    -Laplace-Beltrami has the eigenvalues |Σ_i k_i r_i|² over k in Z^m, r_i the gradients of the angles, with
    eigenfunctions exp(i k.t).
    """

    @property
    @abstractmethod
    def rates(self) -> Floats:
        """The gradients of the angles (m, m), in orthonormal directions; fast where they are short."""

    @abstractmethod
    def angles(self, x: Array) -> Array:
        """t (c, m) of points (c, d)."""

    @abstractmethod
    def push(self, x: Array, direction: Array) -> Array:
        """The derivative of the angles along directions (c, d), (c, m)."""

    @abstractmethod
    def affine(self, g: Isometry) -> tuple[Integers, Array]:
        """A (m, m), integers, and b (m,) of the isometry in angles, t -> A t + b."""

    @final
    def _level(self, level: int) -> tuple[float, int]:
        unit, cube, spectrum = _spectrum(self)
        if cube:
            square, count = _sum_of_squares(self.dimension, level)
            return unit * square, count
        vectors, value = spectrum.level(level)
        return unit * value, 2 * len(vectors) if value else 1

    @final
    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> WaveSpace:
        unit, cube, spectrum = _spectrum(self)
        vectors, value = spectrum.level(level, _sum_of_squares(self.dimension, level)[0] if cube else None)
        return WaveSpace(self, vectors, unit * value)


@final
@dataclass(frozen=True, eq=False)
class WaveSpace(Eigenspace):
    """√2 cos(k.t), then √2 sin(k.t), over one frequency of each pair k, -k; the function 1 for k = 0.

    With t -> A t + b, exp(i k.t) becomes exp(i k.b) exp(i (Aᵀ k).t): D(g) is sparse, and invariant functions are
    read off the orbits of frequencies. Along t' = w, exp(i k.t) is multiplied by i k.w.
    """

    torus: Torus
    frequencies: Integers
    eigenvalue: float

    @property
    def ambient(self) -> int:
        return self.torus.ambient

    @property
    def size(self) -> int:
        return 1 if self.constant else 2 * len(self.frequencies)

    @property
    def constant(self) -> bool:
        """Whether its frequency is 0."""
        return not self.frequencies.any()

    def raw(self, x: Array) -> Array:
        if self.constant:
            return np.ones((1, len(x)))
        phase = self.frequencies @ self.torus.angles(x).T
        waves = np.concatenate([np.cos(phase), np.sin(phase)])
        waves *= sqrt(2)
        return waves

    def raw_along(self, x: Array, direction: Array) -> Array:
        if self.constant:
            return np.zeros((1, len(x)))
        phase = self.frequencies @ self.torus.angles(x).T
        speed = sqrt(2) * (self.frequencies @ self.torus.push(x, direction).T)
        return np.concatenate([-speed * np.sin(phase), speed * np.cos(phase)])

    def action(self, g: Isometry) -> csr_array:
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        target, phase = self._moved(g)
        k, sign = target[:h] % h, np.where(target[:h] < h, 1.0, -1.0)
        cosine, sine = np.cos(phase[:h]), np.sin(phase[:h])
        rows = np.arange(h)
        entries = np.concatenate([cosine, -sign * sine, sine, sign * cosine])
        where = np.concatenate([rows, rows, rows + h, rows + h]), np.concatenate([k, k + h, k, k + h])
        return csr_array((entries, where), shape=(2 * h, 2 * h))

    def derived_action(self, field: KillingField) -> csr_array:
        if self.constant:
            return csr_array((1, 1))
        h, speed = len(self.frequencies), self._speed(field)
        rows = np.arange(h)
        where = np.concatenate([rows, rows + h]), np.concatenate([rows + h, rows])
        return csr_array((np.concatenate([-speed, speed]), where), shape=(2 * h, 2 * h))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> csr_array:
        """One function for each orbit of frequencies whose phases close up, and whose k.w are 0 for a flow; sparse.

        c_(Aᵀ k) = c_k exp(i k.b) is carried along the orbit. Turned so that c_(-k) is the conjugate of c_k, the sum of
        the c_k e_k is real where the orbit holds -k with k; of two orbits k and -k one has the real part, the other the
        imaginary part.
        """
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        orbit, phase, closed = orbits(2 * h, [self._moved(g) for g in isometries])
        for field in algebra:
            closed[orbit[np.tile(self._speed(field) != 0, 2)]] = False
        own = np.empty_like(closed, dtype=np.int64)
        own[orbit] = np.roll(orbit, h)  # the orbit of -k
        own -= np.arange(len(own))
        turn = np.empty(len(closed))  # one for each orbit, as phases are so modulo 2 pi
        turn[orbit] = -(phase + np.roll(phase, h)) / 2
        turn[own < 0] += np.pi / 2
        angle = phase + turn[orbit]
        scale = 1 / np.sqrt(np.bincount(orbit) * np.where(own, 1, 2))[orbit]
        index, sign = np.tile(np.arange(h), 2), np.repeat([1.0, -1.0], h)
        rows, columns = np.concatenate([index, index + h]), np.tile((np.cumsum(closed) - 1)[orbit], 2)
        entries = np.concatenate([scale * np.cos(angle), -sign * scale * np.sin(angle)])
        kept = np.tile(closed[orbit], 2)  # entries of k and -k in one orbit are added
        return csr_array((entries[kept], (rows[kept], columns[kept])), shape=(2 * h, int(closed.sum())))

    def _speed(self, field: KillingField) -> Array:
        """k.w of each frequency (r,), whole numbers, as a flow closes at 2 pi."""
        time = 1 / (1 + float(np.abs(field.matrix).sum(axis=1).max()))  # no angle turns by pi
        return np.asarray(np.rint(self.frequencies @ self.torus.affine(field.flow(time))[1] / time))

    def _moved(self, g: Isometry) -> Move:
        """Where each of the frequencies (k, then -k) goes, A^T k, and its phase k.b."""
        matrix, shift = self.torus.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        return places(signed @ matrix, signed), signed @ shift


@lru_cache(maxsize=32)
def _spectrum(torus: Torus) -> tuple[float, bool, Spectrum]:
    """The square of the shortest rate, whether all are alike and orthogonal, and the levels in this unit.

    The frequencies of a cube of `_COUNTED` dimensions or more can be counted without being enumerated.
    """
    shortest = float(np.linalg.norm(torus.rates, axis=1).min())
    basis = torus.rates / shortest
    cube = len(basis) >= _COUNTED and np.allclose(basis, np.eye(len(basis)), rtol=0, atol=1e-12)
    return shortest**2, cube, Spectrum(torus, partial(_within, basis), 4.0)


def _sum_of_squares(m: int, level: int) -> tuple[int, int]:
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


def _within(basis: Floats, square: float) -> tuple[Integers, Floats] | None:
    """The k with |k B|² ≤ square, one of each pair k, -k, (r, m), and these values; None where they are too many.

    Coordinate by coordinate, from the last on, within the bounds that a triangular factor of B gives (Fincke and Pohst
    1985): none is missed, whatever the angles between the rows of B.
    """
    m = len(basis)
    factor = triangle(basis)
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


def triangle(basis: Floats) -> Floats:
    """R (m, m), upper, with B^T = Q R."""
    factor: Any = np.linalg.qr(basis.T, mode="r")
    return np.asarray(factor)
