"""Modes by the nonuniform FFT of `finufft`, or of `cufinufft` on a GPU, to a relative precision eps.

One thread, twice upsampled: such plans give the same bits wherever they run, and sums that depend on the order and the
chunks of the rows to rounding only. Single precision would be up to 1.5 times faster at eps = 1e-6, but loses more
than that where rows crowd: up to 1e-5 of the weight for normal rows, 1e-3 for equal ones. On a GPU rows are added in
whatever order they come: the last bits differ from one pass to the next.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import numpy as np

from daskspectral.basis.evaluation import Arena
from daskspectral.devices import HOST, Device
from daskspectral.modes.base import ModeSum
from daskspectral.modes.tensor import Array, ComplexArray

DIMENSIONS = 3
UPSAMPLING = 2
UNSORTED = 2**20  # bytes of a fine grid on which rows are spread as they come, for it stays in the cache


def finufft() -> Any:
    """The package. Raises ImportError with the way to install it."""
    try:
        import finufft as package
    except ImportError as error:
        raise ImportError(
            'the nonuniform FFT needs finufft: pip install "daskspectral[lattice]"; or take method="matmul", which '
            "needs no more than numpy"
        ) from error
    return package


def available() -> bool:
    """Whether finufft can be imported."""
    try:
        finufft()
    except ImportError:
        return False
    return True


def available_there() -> bool:
    """Whether cufinufft is installed, the same for a GPU."""
    return importlib.util.find_spec("cufinufft") is not None


def plan(kind: int, orders: tuple[int, ...], eps: float, device: Device = HOST) -> Any:
    """A plan for modes |j_a| <= orders[a], index j + order: type 1 with exp(-i j.t), type 2 with exp(+i j.t).

    Raises ValueError for more than three axes, ImportError where finufft is not installed.
    """
    if len(orders) > DIMENSIONS:
        raise ValueError(
            f"the nonuniform FFT is for one to {DIMENSIONS} variables, and there are {len(orders)}: "
            'take method="matmul"'
        )
    sizes = tuple(2 * order + 1 for order in orders)
    grid = 16 * math.prod(UPSAMPLING * size for size in sizes)
    same: dict[str, Any] = {"eps": eps, "isign": -1 if kind == 1 else 1, "upsampfac": UPSAMPLING, "modeord": 0}
    if device.accelerated:
        return importlib.import_module("cufinufft").Plan(kind, sizes, dtype="complex128", **same)
    return finufft().Plan(
        kind,
        sizes,
        **same,
        nthreads=1,
        spread_sort=0 if len(orders) < 3 and grid <= UNSORTED else 1,
    )


class NufftSum(ModeSum):
    """Sums by type 1; two real weights share one complex transform."""

    def __init__(self, orders: tuple[int, ...], eps: float, arena: Arena | None = None):
        super().__init__(orders)
        arena = arena or Arena()
        self._device = arena.device
        self._plan = arena.made(f"plan {orders} {eps}", lambda: plan(1, orders, eps, arena.device))

    def _allocate(self, weights: int) -> None:
        shape = tuple(2 * order + 1 for order in self.orders)
        self._sums = self._device.zeros(((weights + 1) // 2, *shape), complex)
        self._count = weights
        self._strengths = self._device.empty(0, complex)

    def _add(self, angles: Array, weights: Array | None) -> None:
        device = self._device
        self._plan.setpts(*device.put(np.ascontiguousarray(angles.T, dtype=float)))
        weights = None if weights is None else device.put(weights)
        if len(self._strengths) != len(angles):
            self._strengths = device.empty(len(angles), complex)
        strengths = self._strengths
        for k, sums in enumerate(self._sums):
            strengths.real[...] = 1.0 if weights is None else weights[2 * k]
            strengths.imag[...] = weights[2 * k + 1] if weights is not None and 2 * k + 1 < len(weights) else 0.0
            sums += self._plan.execute(strengths)

    def _result(self) -> ComplexArray:
        sums = self._device.get(self._sums)
        mirrored = np.flip(sums, axis=tuple(range(1, sums.ndim)))
        out = np.empty((2 * len(sums), *sums.shape[1:]), dtype=complex)
        first, second = out[::2], out[1::2]
        # (C(j) + conj C(-j)) / 2 and (C(j) - conj C(-j)) / 2i, by parts: the symmetry is exact
        first.real, first.imag = sums.real + mirrored.real, sums.imag - mirrored.imag
        second.real, second.imag = sums.imag + mirrored.imag, mirrored.real - sums.real
        out *= 0.5
        return out[: self._count]
