"""Modes by matrix products of real rows: exact to rounding."""

from __future__ import annotations

from functools import cache

import numpy as np

from daskspectral.basis.evaluation import Arena
from daskspectral.devices import ACCELERATOR_ROWS
from daskspectral.modes.base import ModeSum
from daskspectral.modes.tensor import FORMING, Array, ComplexArray, Factors, Split, cheapest, factor_bytes


class MatmulSum(ModeSum):
    """Sums over blocks of rows of the products of a left factor, times each weight, and a right factor.

    They are made on the device of the arena, in which sums of one thread share the room for the factors.
    """

    def __init__(self, orders: tuple[int, ...], arena: Arena | None = None):
        super().__init__(orders)
        self._arena = arena or Arena()
        self._device = self._arena.device

    def _allocate(self, weights: int) -> None:
        self._split = split_for(self.orders, weights)
        left, right = self._split.shape
        device = self._device
        self._rows = ACCELERATOR_ROWS if device.accelerated else self._split.block_rows(weights)
        name = f"{self.orders} {weights}"
        self._factors: Factors = self._arena.made(
            f"factors {name}", lambda: Factors(self._split, self._rows, weights, device)
        )
        self._product = self._arena.made(f"product {name}", lambda: device.empty((weights * left, right)))
        self._sums = device.zeros((weights * left, right))

    def _add(self, angles: Array, weights: Array | None) -> None:
        angles, weights = self._device.put(angles), None if weights is None else self._device.put(weights)
        for start in range(0, len(angles), self._rows):
            block = slice(start, start + self._rows)
            left, right = self._factors.of(angles[block], None if weights is None else weights[:, block])
            np.matmul(left, right.T, out=self._product)
            self._sums += self._product

    def _result(self) -> ComplexArray:
        return self._split.modes(self._device.get(self._sums).reshape(-1, *self._split.shape))


def bytes_there(orders: tuple[int, ...], weights: int, sums: int) -> int:
    """What so many `sums` of modes, of as many weights each, that share their room take on an accelerator."""
    split = split_for(orders, weights)
    left, right = split.shape
    rows = 8 * ACCELERATOR_ROWS * (len(orders) + weights)
    return factor_bytes(split, ACCELERATOR_ROWS, weights) + 8 * weights * left * right * (1 + sums) + 2 * rows


@cache
def split_for(orders: tuple[int, ...], weights: int) -> Split:
    """The split whose factors are quickest to form and to multiply, where the left one is there for each weight."""
    return cheapest(orders, lambda left, right: weights * left * right + FORMING * (weights * left + right))
