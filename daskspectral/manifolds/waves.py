"""Eigenspaces of flat tori: waves, on which isometries permute frequencies and shift phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt, sqrt
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from daskspectral.manifolds.eigenspace import Array, Eigenspace
from daskspectral.manifolds.isometry import Isometry

Integers = NDArray[np.int64]

_TRIVIAL = 1e-11  # a phase below this, gathered around a cycle of frequencies, is rounding


class Chart(ABC):
    """How points of a torus have m angles t, of period 2 pi."""

    @property
    @abstractmethod
    def ambient(self) -> int:
        """The number of coordinates d of a point."""

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
@dataclass(frozen=True, eq=False)
class WaveSpace(Eigenspace):
    """sqrt(2) cos(k.t), then sqrt(2) sin(k.t), over one frequency of each pair k, -k; the function 1 for k = 0.

    With t -> A t + b, exp(i k.t) becomes exp(i k.b) exp(i (A^T k).t): D(g) is sparse, and invariant functions are
    read off the orbits of frequencies.
    """

    chart: Chart
    frequencies: Integers
    value: float

    @property
    def ambient(self) -> int:
        return self.chart.ambient

    @property
    def eigenvalue(self) -> float:
        return self.value

    @property
    def size(self) -> int:
        return 1 if self.constant else 2 * len(self.frequencies)

    @property
    def constant(self) -> bool:
        """Whether its frequency is 0."""
        return not self.frequencies.any()

    @property
    def transform(self) -> None:
        return None

    def raw(self, x: Array) -> Array:
        if self.constant:
            return np.ones((1, len(x)))
        phase = self.frequencies @ self.chart.angles(x).T
        waves = np.concatenate([np.cos(phase), np.sin(phase)])
        waves *= sqrt(2)
        return waves

    def raw_along(self, x: Array, direction: Array) -> Array:
        if self.constant:
            return np.zeros((1, len(x)))
        phase = self.frequencies @ self.chart.angles(x).T
        speed = sqrt(2) * (self.frequencies @ self.chart.push(x, direction).T)
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

    def closed_form(self, isometries: Sequence[Isometry]) -> csr_array:
        """One function, or two conjugate ones, for each orbit of frequencies whose phases close up; sparse.

        c_(A^T k) = c_k exp(i k.b) is carried along the orbit; where two ways disagree, the orbit has no function.
        """
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        moves = [self._moved(g) for g in isometries]
        orbit, phase = _propagate(2 * h, moves)
        closed = np.ones(orbit.max() + 1, dtype=bool)
        for target, shift in moves:
            closed[orbit[np.abs(np.exp(1j * (phase + shift - phase[target])) - 1) > _TRIVIAL]] = False
        mirror = np.empty_like(closed, dtype=np.int64)  # the orbit of -k
        mirror[orbit] = np.roll(orbit, h)
        size = np.bincount(orbit)
        own, paired = closed & (mirror == np.arange(len(closed))), closed & (np.arange(len(closed)) < mirror)

        # where an orbit holds -k with k, sum c_k e_k is a multiple of its conjugate, and a phase makes it real
        turn = np.zeros(len(closed))
        turn[orbit] = -(phase + np.roll(phase, h)) / 2
        angle = phase + turn[orbit] * own[orbit]
        index, sign = np.tile(np.arange(h), 2), np.repeat([1.0, -1.0], h)
        number, second = np.cumsum(own | paired) - 1, np.cumsum(paired) - 1
        single = own[orbit] & (sign > 0)
        both = paired[orbit]
        total = int((own | paired).sum())
        one = single | both
        scale = np.where(own, sqrt(2), 1.0)[orbit] / np.sqrt(size[orbit])
        cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
        rows = [index[one], index[one] + h, index[both], index[both] + h]
        columns = [number[orbit[one]], number[orbit[one]], total + second[orbit[both]], total + second[orbit[both]]]
        entries = [cosine[one], -(sign * sine)[one], sine[both], (sign * cosine)[both]]
        where = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(entries), where), shape=(2 * h, total + int(paired.sum())))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return ()

    def _moved(self, g: Isometry) -> tuple[Integers, Array]:
        """Where each of the frequencies (k, then -k) goes, A^T k, and its phase k.b."""
        matrix, shift = self.chart.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        images = signed @ matrix
        here, there = np.lexsort(signed.T), np.lexsort(images.T)
        target = np.empty(len(signed), dtype=np.int64)
        target[there] = here
        return target, signed @ shift


def _propagate(count: int, moves: Sequence[tuple[Integers, Array]]) -> tuple[Integers, Array]:
    """The orbit of each of `count` frequencies, and its phase carried from the first of the orbit."""
    sources = np.tile(np.arange(count), len(moves))
    targets = np.concatenate([target for target, _ in moves]) if moves else sources
    graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    found = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    first = np.unique(found, return_index=True)[1]
    phase, known = np.zeros(count), np.zeros(count, dtype=bool)
    known[first] = True
    front = first
    while len(front):  # each move is a permutation: its orbit is reached forwards
        reached = []
        for target, shift in moves:
            fresh = front[~known[target[front]]]
            phase[target[fresh]] = phase[fresh] + shift[fresh]
            known[target[fresh]] = True
            reached.append(target[fresh])
        front = np.concatenate(reached) if reached else front[:0]
    return found, phase


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


@lru_cache(maxsize=8)
def lattice(weights: tuple[float, ...], radius: float, tolerance: float = 1e-9) -> tuple[Integers, Array]:
    """The k in Z^m with sum_i weights_i k_i^2 <= radius, (r, m), one of each pair k, -k, by ascending sums (r,).

    Sums that agree to a relative `tolerance` are one: the mean of their group.
    """
    vectors, sums = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    radius *= 1 + tolerance
    for weight in weights:
        reach = int(sqrt(radius / weight))
        parts = []
        for k in range(-reach, reach + 1):
            rows = np.flatnonzero(sums + weight * k * k <= radius)
            parts.append((np.column_stack([vectors[rows], np.full(len(rows), k)]), sums[rows] + weight * k * k))
        vectors, sums = np.concatenate([v for v, _ in parts]), np.concatenate([s for _, s in parts])
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)] if vectors.size else np.zeros(0)
    vectors, sums = vectors[leading >= 0], sums[leading >= 0]
    order = np.argsort(sums, kind="stable")
    vectors, sums = vectors[order], sums[order]
    fresh = np.diff(sums, prepend=-1.0) > tolerance * sums
    starts, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    mean = np.add.reduceat(sums, starts) / np.bincount(group)
    return vectors[np.lexsort((*vectors.T[::-1], group))], mean[group]


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
