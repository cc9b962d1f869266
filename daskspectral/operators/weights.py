"""Sums of squared sample weights of any scale, and the effective number of rows (Kish)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BORDERS = (2.0**-300, 2.0**300)
SHIFTS = np.array([600, 0, -600])
LEAST_TOTAL = 1e-305


def banded_squares(weights: Array | int) -> Array:
    """Return the sum of squared weights (c,) in three bands (3,), additive over rows.

    Weights below 2^-300 or above 2^300 are multiplied by 2^600 or 2^-600. An integer c means c weights of 1.
    """
    if isinstance(weights, int):
        return np.array([0.0, weights, 0.0])
    w = np.asarray(weights, dtype=float)
    band = np.searchsorted(BORDERS, w)
    return np.bincount(band, np.ldexp(w, SHIFTS[band]) ** 2, minlength=len(SHIFTS))


def check_total(weight: float) -> None:
    """Raise ValueError if the sum of weights is not positive, not finite or too small for products."""
    if not weight > 0:
        raise ValueError(f"the sum of sample weights must be positive, got {weight or 'zero'}")
    if not math.isfinite(weight):
        raise ValueError("the sum of the sample weights overflows: scale them down")
    if weight < LEAST_TOTAL:
        raise ValueError(f"the sum of the sample weights, {weight:g}, is too small for accurate sums: scale them up")


def row_weights(fields: Mapping[str, Array]) -> Array:
    """Return the sample weights (c,) of a batch, by default 1."""
    return np.asarray(fields["weight"], dtype=float) if "weight" in fields else np.ones(len(fields["x"]))


def effective_rows(total: float, squares: Array) -> float:
    """Return Kish's effective number of rows, sum(w)² / sum(w²), from `banded_squares`."""
    mantissa, exponent = math.frexp(total)
    scaled = sum(math.ldexp(s, -2 * (int(k) + exponent)) for s, k in zip(squares.tolist(), SHIFTS, strict=True))
    return mantissa**2 / scaled if scaled else 0.0
