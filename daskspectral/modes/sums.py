"""Sums of modes over rows, by one of two methods that a fixed table chooses between."""

from __future__ import annotations

import math

from daskspectral.basis.evaluation import Arena
from daskspectral.modes.base import ModeSum
from daskspectral.modes.matmul import MatmulSum
from daskspectral.modes.nufft import DIMENSIONS, UPSAMPLING, NufftSum, available_there

__all__ = ["ModeSum", "best_method", "mode_sum", "rows_at_once"]

# The most modes of which matrix products are as quick as the nonuniform FFT at eps = 1e-9, for 1, 2, 3 or more weights.
MATMUL_MODES = {1: (0, 0, 21), 2: (25, 25, 169), 3: (2197, 729, 2197)}
LEAST_ROWS, MOST_ROWS = 2**15, 2**18  # of a call


def mode_sum(orders: tuple[int, ...], method: str, eps: float = 1e-9, arena: Arena | None = None) -> ModeSum:
    """An empty sum of the modes |j_a| <= orders[a]: twice the orders of the functions.

    "matmul" is exact to rounding; "nufft" has a relative precision of eps, for one to three axes. Sums of one thread
    that are given an `arena` share one plan of the transform, and its grid, or the room for the products' factors. On
    an accelerator, the arena's device, "nufft" is by cufinufft, and where that is not installed by matrix products.

    Raises ValueError for other methods and for four axes by "nufft"; ImportError where finufft is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> sums = mode_sum((1,), "matmul")
    >>> sums.add(np.array([[0.0], [np.pi / 2]]))
    >>> [f"{mode:.1f}" for mode in sums.result()[0]]
    ['1.0+1.0j', '2.0+0.0j', '1.0-1.0j']
    """
    if method not in ("matmul", "nufft"):
        raise ValueError(f"method must be 'matmul' or 'nufft'; it is {method!r}")
    accelerated = arena is not None and arena.device.accelerated
    if method == "matmul" or (accelerated and not available_there()):
        return MatmulSum(orders, arena)
    return NufftSum(orders, eps, arena)


def best_method(orders: tuple[int, ...], weights: int, nufft_available: bool) -> str:
    """The quicker method for functions of these orders m, of modes to 2 m, by a table measured once.

    Examples
    --------
    >>> best_method((15, 15), 1, True), best_method((3, 3, 3), 1, True), best_method((15, 15), 1, False)
    ('nufft', 'matmul', 'matmul')
    """
    d = len(orders)
    if not nufft_available or d > DIMENSIONS:
        return "matmul"
    modes = math.prod(4 * m + 1 for m in orders)
    return "matmul" if modes <= MATMUL_MODES[d][min(max(weights, 1), 3) - 1] else "nufft"


def rows_at_once(method: str, orders: tuple[int, ...]) -> int:
    """The rows of a call to `ModeSum.add` that suit functions of these orders m: more are hardly quicker.

    A nonuniform FFT wants several rows for each point of its grid; matrix products go by blocks of their own.

    Examples
    --------
    >>> rows_at_once("matmul", (15, 15)), rows_at_once("nufft", (15, 15)), rows_at_once("nufft", (5, 5, 5))
    (32768, 65536, 262144)
    """
    if method == "matmul":
        return LEAST_ROWS
    grid = math.prod(UPSAMPLING * (4 * m + 1) for m in orders)
    return min(max(LEAST_ROWS, 1 << (4 * grid - 1).bit_length()), MOST_ROWS)
