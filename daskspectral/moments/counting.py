"""Number of rows that the data count as, by their weights and by the correlation of neighboring rows.

A row of weight 2 counts twice, so data of total weight W count as W rows, and the penalty decreases with W. Weights
whose sum is below Kish's effective number of rows, n_e = (sum w)² / sum w², cannot be frequencies (probabilities sum to
1, for example). Such data count as n_e rows. Candidates are compared with penalties for n_e rows, so that their
comparison does not depend on the unit of the weights.

Rows in random order are exchangeable, and error bars are valid for any kind of folds. Rows of a trajectory, or sorted
rows, are not exchangeable, which shows in the ratio of variances between and within runs of consecutive rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.errors import WeightWarning, warn_user
from daskspectral.moments.moments import Moments
from daskspectral.moments.shifting import columns_of_order
from daskspectral.operators.paired import of_trajectories
from daskspectral.operators.weights import banded_squares, effective_rows

FEW = 0.5  # total weight over effective rows, below which weights are not frequencies
UNEVEN = 4.0  # total weight over effective rows, above which weights of mean 1 overstate the rows
ROUNDING = 1e-6
ORDER = "order"
"""Name of these sums in the results of tasks."""

UNEQUAL = 100.0  # ratio of the standard deviations of two columns
SHORTEST, LONGEST = 16, 1024
SPREAD = 2048  # rows of a batch, or two runs, from which correlation is estimated


def counted_rows(rows: Moments | NDArray[Any]) -> float:
    """Return the total weight of moments or weights (n,), or the effective number of rows if it is larger.

    For integer weights, the frequencies of rows, this is the total weight, even if some are 0.
    """
    return max(_counts(rows))


def effective_count(rows: Moments | NDArray[Any]) -> float:
    """Return the effective number of rows, (sum w)² / sum w²."""
    return _counts(rows)[1]


def repeats(rows: Moments | NDArray[Any]) -> float:
    """Return the number of rows that data count as over their effective number, at least 1."""
    total, effective = _counts(rows)
    ratio = total / effective if effective else 1.0
    return ratio if ratio > 1 + ROUNDING else 1.0


def advise_weights(moments: Moments) -> None:
    """Warn if sample weights are probably not the frequencies of rows.

    Their total is far below the effective number of rows, or they have mean 1 and are very uneven.
    """
    (total, effective), count = _counts(moments), moments.count
    if not total > 0 or not effective > 0:
        return
    if total < FEW * effective:
        what = (
            f"expected sample weights that are frequencies of rows, got a sum of {total:.4g} over {count} rows: the "
            f"data count as {effective:.4g} rows"
        )
    elif total > UNEVEN * effective and abs(total - count) <= ROUNDING * count:
        what = (
            f"the sample weights have mean 1, and the data count as {count} rows, but are as informative as "
            f"{effective:.4g} rows of equal weight"
        )
    else:
        return
    warn_user(f"{what}. Multiply weights that are not frequencies by {effective / total:.4g}", WeightWarning)


def _counts(rows: Moments | NDArray[Any]) -> tuple[float, float]:
    """Return the total weight and the effective number of rows, or the former twice."""
    if isinstance(rows, Moments):
        total, squares = rows.weight, rows.arrays.get("weight_squares")
    else:
        total, squares = float(rows.sum()), banded_squares(rows.ravel())
    return total, total if squares is None else effective_rows(total, squares)


Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class RowRuns:
    """Runs of consecutive rows: `length`, summed `columns` of x, and their `center` (m,)."""

    length: int
    columns: NDArray[np.int64]
    center: Array

    @classmethod
    def of(cls, basis: Basis, rows: int) -> RowRuns:
        """Return runs for tasks of `rows` rows: about as many runs as rows per run."""
        d = basis.dimension
        columns = columns_of_order(d)
        found = [b.landmarks for b in basis.landmark_parts]
        center = np.zeros(d) if basis.domain is None else basis.domain.center
        center = found[0].mean(axis=0) if found else center  # equal for all sums that can be added
        return cls(int(np.clip(math.isqrt(rows), SHORTEST, LONGEST)), columns, center[columns])


class RunSums:
    """Sums over the runs of one task.

    `result` (5, 2m) contains, for the columns z of x and of their squares: the number of rows and of runs, the sum of
    z, and over all runs of n rows the sum of n mean(z)² and of squared deviations from mean(z).
    """

    def __init__(self, runs: RowRuns):
        self._runs = runs
        self._waiting = np.empty((0, len(runs.columns)))
        self._sums = np.zeros((5, 2 * len(runs.columns)))

    def add(self, x: Array, *, spread: bool = False) -> None:
        """Add the next rows (c, d) of the task; only a few evenly spaced runs of them if `spread`."""
        length = self._runs.length
        count = max(2, SPREAD // length)
        if spread and len(x) > count * length:
            self._close()
            starts = np.linspace(0, len(x) - length, count).astype(np.intp)
            chosen = x[starts[:, None] + np.arange(length)]
            self._add(chosen[..., self._runs.columns] - self._runs.center)
            return
        z = x[:, self._runs.columns] - self._runs.center
        if len(self._waiting):
            z = np.concatenate([self._waiting, z])
        full = len(z) - len(z) % length
        self._add(z[:full].reshape(-1, length, z.shape[1]))
        self._waiting = z[full:].copy()

    def result(self) -> Array:
        self._close()
        return self._sums

    def _close(self) -> None:
        """Add waiting rows as a shorter run, because the next rows are not their neighbors."""
        if len(self._waiting):
            self._add(self._waiting[None])
            self._waiting = self._waiting[:0]

    def _add(self, z: Array) -> None:
        count, rows = z.shape[:2]
        if not count:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported when the moments are solved
            both = np.concatenate([z, z**2], axis=2)
            means = both.mean(axis=1)
            self._sums[0] += count * rows
            self._sums[1] += count
            self._sums[2] += rows * means.sum(axis=0)
            self._sums[3] += rows * (means**2).sum(axis=0)
            self._sums[4] += ((both - means[:, None]) ** 2).sum(axis=(0, 1))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def order_of(moments: Moments) -> float:
    """Return the ratio of variances between and within runs of rows, about 1 for exchangeable rows.

    For runs of b rows, F = b (variance of the means of runs) / (variance within runs), averaged over the columns of x
    and their squares: the integrated autocorrelation time, in rows, if this is well below b. NaN for too few rows, or
    without these sums.
    """
    if moments.order is None:
        return math.nan
    rows, runs, total, of_runs, inside = moments.order
    varies = inside > ROUNDING**2 * (inside + of_runs)  # by more than the rounding of a constant
    ratios = (of_runs - total**2 / rows) / (runs - 1) / (inside / (rows - runs))
    known = varies & (runs > 1) & (rows > runs) & np.isfinite(ratios)
    return float(ratios[known].mean()) if known.any() else math.nan


@np.errstate(over="ignore", invalid="ignore")
def spreads_of(moments: Moments) -> dict[int, float]:
    """Return the standard deviations of at most 16 nonconstant prepared columns, by number."""
    if moments.order is None:
        return {}
    rows, _, total, of_runs, inside = moments.order
    squares, columns = inside + of_runs, columns_of_order(moments.basis.dimension)
    spread = np.sqrt(np.maximum(squares - total**2 / rows, 0) / rows)
    usable = np.isfinite(spread) & (spread > ROUNDING * np.sqrt(squares / rows))
    m = len(columns)
    return {int(c): float(s) for c, s, use in zip(columns, spread[:m], usable[:m], strict=True) if use}


UNITS = "use Rows(X, standardize=True)"
"""Remedy for columns of unequal units."""


def unequal_units(spreads: Mapping[int, float], name: Callable[[int], str], *, remedy: str = UNITS) -> str:
    """Return a warning if standard deviations of columns differ more than a hundredfold, otherwise ""."""
    if not spreads or max(spreads.values()) <= UNEQUAL * min(spreads.values()):
        return ""
    both = min(spreads, key=lambda c: spreads[c]), max(spreads, key=lambda c: spreads[c])
    least, most = (f"{spreads[c]:.3g} in {name(c)}" for c in both)
    return f"the standard deviations of columns range from {least} to {most}, but functions have one scale: {remedy}"


def correlation_time(moments: Moments) -> float:
    """Return the integrated autocorrelation time of trajectories, in rows; 1 for other data."""
    if not of_trajectories(moments.operator):
        return 1.0
    within = order_of(moments)
    return max(1.0, within) if math.isfinite(within) else 1.0
