"""Modes by the nonuniform FFT of `finufft`, or of `cufinufft` on a GPU, to a relative precision eps.

Plans have one thread and an upsampling factor of 2, so that their bits are reproducible; on a GPU the last bits differ
between passes. Single precision would have errors up to 1e-5 of the weight for normal rows, 1e-3 for equal ones.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

from daskspectral.devices import HOST, Device

UPSAMPLING = 2
UNSORTED = 2**20  # bytes of a fine grid for unsorted rows: it fits the cache


def finufft() -> Any:
    """Return the package; raise ImportError with the command to install it."""
    try:
        import finufft as package
    except ImportError as error:
        raise ImportError(
            'the nonuniform FFT requires finufft: pip install finufft, or pass method="matmul".'
        ) from error
    return package


def available() -> bool:
    """Return whether finufft is installed."""
    return importlib.util.find_spec("finufft") is not None


def available_there() -> bool:
    """Return whether cufinufft, its version for GPUs, is installed."""
    return importlib.util.find_spec("cufinufft") is not None


def plan(orders: tuple[int, ...], eps: float, device: Device = HOST) -> Any:
    """Return a plan of type 1, with exp(-i j.t), for modes |j_a| <= orders[a], index j + order."""
    sizes = tuple(2 * order + 1 for order in orders)
    grid = 16 * math.prod(UPSAMPLING * size for size in sizes)
    same: dict[str, Any] = {"eps": eps, "isign": -1, "upsampfac": UPSAMPLING, "modeord": 0}
    if device.accelerated:
        return importlib.import_module("cufinufft").Plan(1, sizes, dtype="complex128", **same)
    sort = 0 if len(orders) < 3 and grid <= UNSORTED else 1
    return finufft().Plan(1, sizes, **same, nthreads=1, spread_sort=sort)
