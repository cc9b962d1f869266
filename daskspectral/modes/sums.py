"""Sums of modes over rows, by matrix products or the nonuniform FFT, chosen by a fixed table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from daskspectral.devices import ACCELERATOR_ROWS
from daskspectral.modes import nufft, tensor
from daskspectral.modes.tensor import FORMING, Array, ComplexArray, Factors, Split
from daskspectral.workspace import Workspace

# Largest number of modes with matrix products as fast as the nonuniform FFT at eps = 1e-9, for 1, 2, 3 or more weights
MATMUL_MODES = {1: (0, 0, 21), 2: (25, 25, 169), 3: (2197, 729, 2197)}
LEAST_ROWS, MOST_ROWS = 2**15, 2**18  # in a call
FLOPS = 2e4  # equivalent of a row: a million rows are a task

FAR = 20  # powers of two from 1, beyond which a weight is rescaled
MOST = 1000  # largest power of two of such a scale


class MatmulSum:
    """Sums over blocks of rows of products of a weighted left and a right factor."""

    def __init__(self, orders: tuple[int, ...], weights: int, workspace: Workspace):
        self.orders, self._device, self._split = orders, workspace.device, split_for(orders, weights)
        left, right = self._split.shape
        device = self._device
        self._rows = ACCELERATOR_ROWS if device.accelerated else self._split.block_rows(weights)
        name = f"{orders} {weights}"
        self._factors: Factors = workspace.cached(
            f"factors {name}", lambda: Factors(self._split, self._rows, weights, device)
        )
        self._product = workspace.cached(f"product {name}", lambda: device.empty((weights * left, right)))
        self._sums = device.zeros((weights * left, right))

    def add(self, angles: Array, weights: Array | None = None) -> None:
        """Add rows with angles t (c, d) and real weights (w, c) or None."""
        angles = self._device.put(tensor.checked_angles(angles, len(self.orders)))
        weights = None if weights is None else self._device.put(weights)
        for start in range(0, len(angles), self._rows):
            block = slice(start, start + self._rows)
            left, right = self._factors.of(angles[block], None if weights is None else weights[:, block])
            np.matmul(left, right.T, out=self._product)
            self._sums += self._product

    def result(self) -> ComplexArray:
        """Return the sums, (w, 2 M_1 + 1, ...), index j + M."""
        return self._split.modes(self._device.get(self._sums).reshape(-1, *self._split.shape))


class NufftSum:
    """Sums by type 1: two real weights, scaled to similar size, in each complex transform."""

    def __init__(self, orders: tuple[int, ...], weights: int, eps: float, workspace: Workspace):
        self.orders, self._device = orders, workspace.device
        self._plan = workspace.cached(f"plan {orders} {eps}", lambda: nufft.plan(orders, eps, workspace.device))
        shape = tuple(2 * order + 1 for order in orders)
        self._sums = self._device.zeros(((weights + 1) // 2, *shape), complex)
        self._count, self._steps, self._seen = weights, np.zeros(weights), np.zeros(weights, dtype=bool)
        self._strengths = self._device.empty(0, complex)

    def add(self, angles: Array, weights: Array | None = None) -> None:
        angles, device = tensor.checked_angles(angles, len(self.orders)), self._device
        if not len(angles):
            return
        self._plan.setpts(*device.put(np.ascontiguousarray(angles.T, dtype=float)))
        weights = None if weights is None else device.put(weights)
        if len(self._strengths) != len(angles):
            self._strengths = device.empty(len(angles), complex)
        strengths = self._strengths
        if weights is not None:
            self._set_scales(np.array([float(np.abs(w).max()) if len(w) else 0.0 for w in weights]))
            if self._steps.any():
                weights = weights * np.asarray(np.exp2(-self._steps)[:, None], like=weights)
        for k, sums in enumerate(self._sums):
            strengths.real[...] = 1.0 if weights is None else weights[2 * k]
            strengths.imag[...] = weights[2 * k + 1] if weights is not None and 2 * k + 1 < len(weights) else 0.0
            sums += self._plan.execute(strengths)

    def _set_scales(self, largest: Array) -> None:
        """Set the scales of weights far from 1 by the first or by much larger rows."""
        steps = np.rint(np.log2(np.where(largest > 0, largest, 1.0))).clip(-MOST, MOST)
        changed = (largest > 0) & ((steps - self._steps > FAR) | (~self._seen & (steps < -FAR)))
        if changed.any():
            sums = self.result()
            self._steps[changed] = steps[changed]
            sums = sums * np.exp2(-self._steps).reshape(-1, *[1] * len(self.orders))
            packed = sums[::2].copy()
            packed[: len(sums) // 2] += 1j * sums[1::2]
            self._sums = self._device.put(packed)
        self._seen |= largest > 0

    def result(self) -> ComplexArray:
        sums = self._device.get(self._sums)
        mirrored = np.flip(sums, axis=tuple(range(1, sums.ndim)))
        out = np.empty((2 * len(sums), *sums.shape[1:]), dtype=complex)
        first, second = out[::2], out[1::2]
        # (C(j) + conj C(-j)) / 2 and (C(j) - conj C(-j)) / 2i, by parts: the symmetry is exact
        first.real, first.imag = sums.real + mirrored.real, sums.imag - mirrored.imag
        second.real, second.imag = sums.imag + mirrored.imag, mirrored.real - sums.real
        out *= 0.5
        found = out[: self._count]
        if not self._steps.any():
            return found
        units = np.where(self._seen, np.exp2(self._steps), 0.0)  # the sum of zero weights is only rounding
        return found * units.reshape(-1, *[1] * len(self.orders))


def mode_sum(
    orders: tuple[int, ...], method: str, eps: float = 1e-9, workspace: Workspace | None = None, *, weights: int = 1
) -> MatmulSum | NufftSum:
    """Return an empty sum C_w(j) = sum_i w_i exp(-i j.t_i), |j_a| <= orders[a], of w weights.

    The same calls of `add` yield the same bits on any thread; a sum must not be used by two threads at a time. C(-j)
    is exactly the conjugate of C(j). "matmul" is exact up to rounding; "nufft" has a relative precision of eps. Sums
    with the same `workspace` share plan and buffers. Raises ImportError if finufft is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> sums = mode_sum((1,), "matmul")
    >>> sums.add(np.array([[0.0], [np.pi / 2]]))
    >>> [f"{mode:.1f}" for mode in sums.result()[0]]
    ['1.0+1.0j', '2.0+0.0j', '1.0-1.0j']
    """
    workspace = workspace or Workspace()
    if method == "matmul" or (workspace.device.accelerated and not nufft.available_there()):
        return MatmulSum(orders, weights, workspace)
    return NufftSum(orders, weights, eps, workspace)


def best_method(orders: tuple[int, ...], weights: int, nufft_available: bool) -> str:
    """Return the faster method for functions of orders m, of modes to 2 m, by a measured table.

    Examples
    --------
    >>> best_method((15, 15), 1, True), best_method((3, 3, 3), 1, True), best_method((15, 15), 1, False)
    ('nufft', 'matmul', 'matmul')
    """
    most = MATMUL_MODES[len(orders)][min(max(weights, 1), 3) - 1] if nufft_available else math.inf
    return "matmul" if math.prod(4 * m + 1 for m in orders) <= most else "nufft"


def rows_at_once(method: str, orders: tuple[int, ...]) -> int:
    """Return the rows of a call to `add` beyond which sums are hardly faster.

    Examples
    --------
    >>> rows_at_once("matmul", (15, 15)), rows_at_once("nufft", (15, 15)), rows_at_once("nufft", (5, 5, 5))
    (32768, 65536, 262144)
    """
    if method == "matmul":
        return LEAST_ROWS
    grid = math.prod(nufft.UPSAMPLING * (4 * m + 1) for m in orders)
    return min(max(LEAST_ROWS, 1 << (4 * grid - 1).bit_length()), MOST_ROWS)


@dataclass(frozen=True)
class SumCost:
    """Cost of sums over rows, in bytes except for the `flops` of a row.

    A thread requires a `block` of rows, on an accelerator `there`, plus `there_of_group` for each group of rows;
    `sums` are those of one group, `solver` is for its matrices.
    """

    flops: float
    block: int
    sums: int
    solver: int
    there: int = 0
    there_of_group: int = 0


def mode_cost(orders: tuple[int, ...], method: str, weights: int, device: str) -> SumCost:
    """Return the cost of the sums for functions of orders m with this number of weights."""
    d, p, orders = len(orders), math.prod(2 * order + 1 for order in orders), tuple(2 * order for order in orders)
    modes = 16 * math.prod(2 * order + 1 for order in orders)
    grid, sums, rows = 2 ** (d + 1) * modes, (weights + 2) * modes, rows_at_once(method, orders)
    there = of_group = 0
    if device != "cpu":
        rows = max(rows, ACCELERATOR_ROWS)
        there, of_group = 8 * rows * (2 * weights + 8) + grid, sums
        if method == "matmul" or not nufft.available_there():
            split = split_for(orders, weights)
            of_group = 8 * weights * math.prod(split.shape)
            there = tensor.factor_bytes(split, ACCELERATOR_ROWS, weights) + of_group
            there += 16 * ACCELERATOR_ROWS * (d + weights)
    block = 8 * rows * (3 * d + 2 * weights + 7) + grid + 2 * sums
    return SumCost(FLOPS, block, sums, 64 * p * p + 12 * sums, there, of_group)


@cache
def split_for(orders: tuple[int, ...], weights: int) -> Split:
    """Return the split of least cost, with the left factor once for each weight."""
    return tensor.cheapest(orders, lambda left, right: weights * left * right + FORMING * (weights * left + right))
