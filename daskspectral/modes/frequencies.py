"""Frequencies of a multivariate Fourier series, one of each pair +-k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies 2 pi k / period for integer k, |k_a| <= orders[a], of functions in the order 1, cosines, sines.

    There are p = prod (2 orders[a] + 1) functions: the constant, then sqrt2 cos and sqrt2 sin of one k of each pair
    +-k. `period` is (d,).

    Examples
    --------
    >>> frequencies = Frequencies((1, 1), np.array([2.0, 4.0]))
    >>> frequencies.size, frequencies.half.tolist()
    (9, [[0, 1], [1, -1], [1, 0], [1, 1]])
    """

    orders: tuple[int, ...]
    period: Array

    @property
    def size(self) -> int:
        """The number of functions p."""
        return math.prod(2 * order + 1 for order in self.orders)

    @property
    def dimension(self) -> int:
        """The number of variables d."""
        return len(self.orders)

    @cached_property
    def half(self) -> NDArray[np.int64]:
        """One k of each pair +-k, (h, d), in lexicographic order: its first nonzero entry is positive."""
        grids = np.meshgrid(*(np.arange(-o, o + 1) for o in self.orders), indexing="ij")
        every = np.stack([grid.ravel() for grid in grids], axis=1)
        return every[len(every) // 2 + 1 :]

    @cached_property
    def vectors(self) -> Array:
        """2 pi k / period of each function, (p, d): 0, then of the cosines, then of the sines."""
        w = self.half * (2 * np.pi / self.period)
        return np.concatenate([np.zeros((1, self.dimension)), w, w])

    @property
    def squares(self) -> Array:
        """The squared norm of each of the `vectors`, (p,)."""
        return np.asarray(np.sum(self.vectors**2, axis=1))

    def places(self, lower: Frequencies) -> NDArray[np.int64]:
        """Return the positions of the functions of `lower` frequencies among these, (p',)."""
        within = (np.abs(self.half) <= np.array(lower.orders)).all(axis=1)
        places, h = 1 + np.flatnonzero(within), len(self.half)
        return np.concatenate([[0], places, places + h])
