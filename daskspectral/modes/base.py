"""Sums of modes over rows, however they are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from daskspectral.modes.tensor import Array, ComplexArray


class ModeSum(ABC):
    """C_w(j) = sum_i w_i exp(-i j.t_i) for |j_a| <= orders[a], of one weight or several, over any number of calls.

    The same calls give the same bits, on any thread; a sum belongs to one thread at a time.
    """

    def __init__(self, orders: tuple[int, ...]):
        self.orders = orders
        self._weights: int | None = None

    def add(self, angles: Array, weights: Array | None = None) -> None:
        """Add rows: their angles t (c, d), finite, and real weights (w, c), as many in every call; None is one of 1.

        Raises ValueError for arrays of other shapes and for angles that are not finite.
        """
        d, angles = len(self.orders), np.asarray(angles, dtype=float)
        if angles.ndim != 2 or angles.shape[1] != d:
            raise ValueError(f"angles have shape (rows, {d}); these have {angles.shape}")
        if weights is not None and (weights.ndim != 2 or weights.shape[1] != len(angles)):
            raise ValueError(f"weights have shape (number of weights, {len(angles)}); these have {weights.shape}")
        count = 1 if weights is None else len(weights)
        if self._weights is None:
            self._weights = count
            self._allocate(count)
        if count != self._weights:
            raise ValueError(f"the sums have {self._weights} weights, in every call; this one has {count}")
        if not np.isfinite(angles).all():
            raise ValueError("angles must be finite; leave out rows that have none")
        if len(angles) and count:
            self._add(angles, weights)

    def result(self) -> ComplexArray:
        """The sums so far, (w, 2 M_1 + 1, ..., 2 M_d + 1), index j + M; C(-j) is the conjugate of C(j) exactly.

        Zeros of one weight before the first call.
        """
        if self._weights is None:
            return np.zeros((1, *(2 * order + 1 for order in self.orders)), dtype=complex)
        return self._result()

    @abstractmethod
    def _allocate(self, weights: int) -> None:
        """Room for the sums of so many weights."""

    @abstractmethod
    def _add(self, angles: Array, weights: Array | None) -> None: ...

    @abstractmethod
    def _result(self) -> ComplexArray: ...
