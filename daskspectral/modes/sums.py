"""Sums of modes over rows, by one of two methods that a fixed table chooses between."""

from __future__ import annotations

import math

from daskspectral.modes.base import ModeSum
from daskspectral.modes.matmul import MatmulSum
from daskspectral.modes.nufft import DIMENSIONS, NufftSum

__all__ = ["ModeSum", "best_method", "mode_sum", "rows_at_once"]


def mode_sum(orders: tuple[int, ...], method: str, eps: float = 1e-9) -> ModeSum:
    """An empty sum of the modes |j_a| <= orders[a]: twice the orders of the functions.

    "matmul" is exact to rounding; "nufft" has a relative precision of eps, for one to three axes.

    Raises ValueError for other methods and for four axes by "nufft"; ImportError where finufft is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> sums = mode_sum((1,), "matmul")
    >>> sums.add(np.array([[0.0], [np.pi / 2]]))
    >>> [f"{mode:.1f}" for mode in sums.result()[0]]
    ['1.0+1.0j', '2.0+0.0j', '1.0-1.0j']
    """
    if method == "matmul":
        return MatmulSum(orders)
    if method == "nufft":
        return NufftSum(orders, eps)
    raise ValueError(f"method must be 'matmul' or 'nufft'; it is {method!r}")
