"""Sample weights of any scale: sums of their squares, and the effective number of rows (Kish)."""

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
    """The sum of the squared weights (c,) in three parts (3,), which add over rows like any sum; of c weights of 1.

    Weights below 2^-300 are multiplied by 2^600 first, and weights above 2^300 by 2^-600.
    """
    if isinstance(weights, int):
        return np.array([0.0, weights, 0.0])
    w = np.asarray(weights, dtype=float)
    band = np.searchsorted(BORDERS, w)
    return np.bincount(band, np.ldexp(w, SHIFTS[band]) ** 2, minlength=len(SHIFTS))


def check_total(weight: float) -> None:
    """Raise ValueError unless the sum of weights is positive, finite and far enough from 0 for products with it."""
    if not weight > 0:
        raise ValueError(f"the total sample weight is {weight:g}; some row needs a weight above zero")
    if not math.isfinite(weight):
        raise ValueError("the sample weights sum to infinity; give them in another unit")
    if weight < LEAST_TOTAL:
        raise ValueError(f"the sample weights sum to {weight:g}, where sums lose digits; give them in another unit")


def row_weights(fields: Mapping[str, Array]) -> Array:
    """The sample weights (c,) of a batch, 1 where none were given."""
    return np.asarray(fields["weight"], dtype=float) if "weight" in fields else np.ones(len(fields["x"]))


def effective_rows(total: float, squares: Array) -> float:
    """Kish's effective number of rows, sum(w)^2 / sum(w^2), of weights of this sum and `banded_squares`."""
    mantissa, exponent = math.frexp(total)
    scaled = sum(math.ldexp(s, -2 * (int(k) + exponent)) for s, k in zip(squares.tolist(), SHIFTS, strict=True))
    return mantissa**2 / scaled if scaled else 0.0
