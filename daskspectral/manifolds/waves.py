"""Eigenspaces of flat tori: waves, on which isometries permute frequencies and shift phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np
from scipy.sparse import csr_array

from daskspectral.manifolds.eigenspace import Array, Eigenspace
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.manifolds.orbits import Move, orbits, places
from daskspectral.manifolds.spectrum import Integers


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
        return np.asarray(np.rint(self.frequencies @ self.chart.affine(field.flow(time))[1] / time))

    def _moved(self, g: Isometry) -> Move:
        """Where each of the frequencies (k, then -k) goes, A^T k, and its phase k.b."""
        matrix, shift = self.chart.affine(g)
        signed = np.concatenate([self.frequencies, -self.frequencies])
        return places(signed @ matrix, signed), signed @ shift
