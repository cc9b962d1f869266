"""Frequencies of a multivariate Fourier series, one of each pair ±k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
MOST_WAVES = 100_000


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies 2π k / period for integer k, |k_a| <= orders[a], of a real Fourier basis.

    The p functions are the constant, then √2 cos and √2 sin of one k of each pair ±k, with sum |k_a| <= `degree` if
    given. `period` is (d,).

    Examples
    --------
    >>> frequencies = Frequencies((1, 1), np.array([2.0, 4.0]))
    >>> frequencies.size, frequencies.half.tolist()
    (9, [[0, 1], [1, -1], [1, 0], [1, 1]])
    """

    orders: tuple[int, ...]
    period: Array
    degree: float = math.inf

    @property
    def size(self) -> int:
        return 1 + 2 * len(self.half)

    @cached_property
    def half(self) -> NDArray[np.int64]:
        """One k of each pair ±k, (h, d), in lexicographic order: its first nonzero entry is positive.

        If there are more than MOST_WAVES, the last entries of k are omitted, because not all fit into memory.
        """
        k = np.zeros((1, 0), dtype=np.int64)
        for order in self.orders:
            steps = np.arange(-order, order + 1)  # in lexicographic order, so that 0 is in the middle
            k = np.column_stack([np.repeat(k, len(steps), axis=0), np.tile(steps, len(k))])
            k = k[np.abs(k).sum(axis=1) <= self.degree]
            if len(k) > MOST_WAVES:
                break
        return k[len(k) // 2 + 1 :]

    @cached_property
    def waves(self) -> Array:
        """2π k / period for each k of `half`, (h, d)."""
        return np.asarray(self.half * (2 * np.pi / self.period))

    @property
    def vectors(self) -> Array:
        """2π k / period for each function, (p, d): 0, cosines, sines."""
        return np.concatenate([0 * self.waves[:1], self.waves, self.waves])

    @property
    def squares(self) -> Array:
        """Squared norm of each function's `vectors`, (p,)."""
        return np.asarray(np.sum(self.vectors**2, axis=1))

    def places(self, lower: Frequencies) -> NDArray[np.int64]:
        """Return the positions (p',) of the functions of `lower` among these."""
        within = (np.abs(self.half) <= np.array(lower.orders)).all(axis=1)
        places, h = 1 + np.flatnonzero(within), len(self.half)
        return np.concatenate([[0], places, places + h])
