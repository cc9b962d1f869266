"""Eigenspaces of flat tori: waves, on which isometries permute frequencies and shift phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from daskspectral.manifolds.eigenspace import Array, Eigenspace
from daskspectral.manifolds.isometry import Isometry
from daskspectral.manifolds.killing import KillingField

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
    """√2 cos(k.t), then √2 sin(k.t), over one frequency of each pair k, -k; the function 1 for k = 0.

    With t -> A t + b, exp(i k.t) becomes exp(i k.b) exp(i (Aᵀ k).t): D(g) is sparse, and invariant functions are
    read off the orbits of frequencies. Along t' = w, exp(i k.t) is multiplied by i k.w.
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

    def derived_action(self, field: KillingField) -> csr_array:
        if self.constant:
            return csr_array((1, 1))
        h, speed = len(self.frequencies), self._speed(field)
        rows = np.arange(h)
        where = np.concatenate([rows, rows + h]), np.concatenate([rows + h, rows])
        return csr_array((np.concatenate([-speed, speed]), where), shape=(2 * h, 2 * h))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> csr_array:
        """One function, or two conjugate ones, for each orbit of frequencies whose phases close up; sparse.

        c_(Aᵀ k) = c_k exp(i k.b) is carried along the orbit; where two ways disagree, the orbit has no function, nor
        where k.w is not 0 for a flow.
        """
        if self.constant:
            return csr_array(np.ones((1, 1)))
        h = len(self.frequencies)
        moves = [self._moved(g) for g in isometries]
        orbit, phase = propagate(2 * h, moves)
        closed = np.ones(orbit.max() + 1, dtype=bool)
        for target, shift in moves:
            closed[orbit[np.abs(np.exp(1j * (phase + shift - phase[target])) - 1) > _TRIVIAL]] = False
        for field in algebra:
            closed[orbit[np.tile(self._speed(field) != 0, 2)]] = False
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

    def _speed(self, field: KillingField) -> Array:
        """k.w of each frequency (r,), whole numbers, as a flow closes at 2 pi."""
        time = 1 / (1 + float(np.abs(field.matrix).sum(axis=1).max()))  # no angle turns by pi
        return np.asarray(np.rint(self.frequencies @ self.chart.affine(field.flow(time))[1] / time))

    def _moved(self, g: Isometry) -> tuple[Integers, Array]:
        """Where each of the frequencies (k, then -k) goes, A^T k, and its phase k.b."""
        matrix, shift = self.chart.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        images = signed @ matrix
        here, there = np.lexsort(signed.T), np.lexsort(images.T)
        target = np.empty(len(signed), dtype=np.int64)
        target[there] = here
        return target, signed @ shift


def propagate(count: int, moves: Sequence[tuple[Integers, Array]]) -> tuple[Integers, Array]:
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
