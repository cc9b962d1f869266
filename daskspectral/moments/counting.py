"""How many rows weighted data count as: frequencies by their sum, weights of another unit by their effective number.

A weight of 2 is the row twice, so data of total weight W count as W rows, by which the penalty shrinks. Weights whose
sum is below Kish's effective number of rows, n_e = (sum w)² / sum w², cannot be frequencies: probabilities sum to 1.
Such data count as n_e rows, whatever the unit of the weights. Penalties that are compared are those of n_e rows in any
unit: what rows held out say of a candidate does not depend on it either.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from daskspectral.errors import WeightWarning, warn_user
from daskspectral.moments.moments import Moments
from daskspectral.operators.weights import banded_squares, effective_rows

FEW = 0.5  # total weight over effective rows, below which weights are no frequencies
UNEVEN = 4.0  # total weight over effective rows, above which weights of mean 1 say more than they know
ROUNDING = 1e-6


def counted_rows(moments: Moments) -> float:
    """The total weight, or the effective number of rows where it is larger.

    For whole weights, the frequencies of rows, this is the total weight, also where some are 0.
    """
    effective = _effective(moments)
    return moments.weight if effective is None else max(moments.weight, effective)


def counted_weight(weight: NDArray[Any]) -> float:
    """The same of weights (n,) themselves; 0 for none that is positive."""
    total = float(weight.sum())
    return max(total, effective_rows(total, banded_squares(weight.ravel()))) if total > 0 else 0.0


def repeats(moments: Moments) -> float:
    """How often each row counts: the rows that data count as over their effective number, 1 or more."""
    return _ratio(moments.weight, _effective(moments))


def repeats_of(weight: NDArray[Any]) -> float:
    """The same of weights (n,) themselves, of which some are positive."""
    total = float(weight.sum())
    return _ratio(total, effective_rows(total, banded_squares(weight)))


def _ratio(total: float, effective: float | None) -> float:
    ratio = total / effective if effective else 1.0
    return ratio if ratio > 1 + ROUNDING else 1.0


def advise_weights(moments: Moments) -> None:
    """Warn of weights that count rows otherwise than they seem to have been meant.

    Weights of a total far below the effective number of rows are no frequencies; weights that were brought to mean 1,
    and are very uneven, count as more rows than they are worth.
    """
    effective = _effective(moments)
    if effective is None or not moments.weight > 0 or not effective > 0:
        return
    total, count = moments.weight, moments.count
    factor = effective / total
    meant = f"by {factor:.4g} to say that this is meant, or " if math.isfinite(factor) else ""
    if total < FEW * effective:
        warn_user(
            f"sample weights are frequencies, of which 2 is the row twice, and these sum to {total:.4g} over {count} "
            f"rows. They are taken as relative: the data count as {effective:.4g} rows, (sum w)^2 / sum w^2. Multiply "
            f"the weights {meant}by what makes them frequencies",
            WeightWarning,
        )
    elif total > UNEVEN * effective and abs(total - count) <= ROUNDING * count:
        warn_user(
            f"the sample weights have mean 1, and the data count as {count} rows, but as much is known as from "
            f"{effective:.4g} rows of equal weight, (sum w)^2 / sum w^2. For importance weights multiply them by "
            f"{factor:.4g}, and the penalty is that of so many rows; frequencies of rows may stay as they are",
            WeightWarning,
        )


def _effective(moments: Moments) -> float | None:
    """The effective number of rows; None for moments that were put together without it."""
    squares = moments.arrays.get("weight_squares")
    return None if squares is None else effective_rows(moments.weight, squares)
