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

from daskspectral.devices import HOST, Device

UPSAMPLING = 2
UNSORTED = 2**20  # bytes of a fine grid on which rows are spread as they come, for it stays in the cache


def finufft() -> Any:
    """The package. Raises ImportError with the way to install it."""
    try:
        import finufft as package
    except ImportError as error:
        raise ImportError(
            'the nonuniform FFT needs finufft: pip install "daskspectral[lattice]", or pass method="matmul".'
        ) from error
    return package


def available() -> bool:
    """Whether finufft is installed."""
    return importlib.util.find_spec("finufft") is not None


def available_there() -> bool:
    """Whether cufinufft is installed, the same for a GPU."""
    return importlib.util.find_spec("cufinufft") is not None


def plan(orders: tuple[int, ...], eps: float, device: Device = HOST) -> Any:
    """A plan of type 1, with exp(-i j.t), for modes |j_a| <= orders[a], index j + order.

    Raises ImportError where finufft is not installed.
    """
    sizes = tuple(2 * order + 1 for order in orders)
    grid = 16 * math.prod(UPSAMPLING * size for size in sizes)
    same: dict[str, Any] = {"eps": eps, "isign": -1, "upsampfac": UPSAMPLING, "modeord": 0}
    if device.accelerated:
        return importlib.import_module("cufinufft").Plan(1, sizes, dtype="complex128", **same)
    sort = 0 if len(orders) < 3 and grid <= UNSORTED else 1
    return finufft().Plan(1, sizes, **same, nthreads=1, spread_sort=sort)
