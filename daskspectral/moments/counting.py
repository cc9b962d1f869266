"""How many rows the data count as: by their weights, and by how alike neighbouring rows are.

A weight of 2 is the row twice, so data of total weight W count as W rows, by which the penalty shrinks. Weights whose
sum is below Kish's effective number of rows, n_e = (sum w)² / sum w², cannot be frequencies: probabilities sum to 1.
Such data count as n_e rows, whatever the unit of the weights. Penalties that are compared are those of n_e rows in any
unit: what rows held out say of a candidate does not depend on it either.

Rows in random order are exchangeable, and folds of any kind then give right error bars. Rows of a trajectory, or sorted
by something, are not: sums over runs of rows give the variance ratios that tell.
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

FEW = 0.5  # total weight over effective rows, below which weights are no frequencies
UNEVEN = 4.0  # total weight over effective rows, above which weights of mean 1 say more than they know
ROUNDING = 1e-6
ORDER = "order"
"""The name by which tasks send these sums."""

UNLIKE = 100.0  # the ratio of two columns' standard deviations
SHORTEST, LONGEST = 16, 1024
SPREAD = 2048  # rows of a batch, or two runs of them, tell whether order matters


def counted_rows(rows: Moments | NDArray[Any]) -> float:
    """The total weight of moments, or of weights (n,), or the effective number of rows where it is larger.

    For whole weights, the frequencies of rows, this is the total weight, also where some are 0.
    """
    return max(_counts(rows))


def effective_count(rows: Moments | NDArray[Any]) -> float:
    """Return the effective number of rows, (sum w)² / sum w², which no unit of the weights changes."""
    return _counts(rows)[1]


def repeats(rows: Moments | NDArray[Any]) -> float:
    """How often each row counts: the rows that data count as over their effective number, 1 or more."""
    total, effective = _counts(rows)
    ratio = total / effective if effective else 1.0
    return ratio if ratio > 1 + ROUNDING else 1.0


def advise_weights(moments: Moments) -> None:
    """Warn of weights that count rows otherwise than they seem to have been meant.

    Weights of a total far below the effective number of rows are no frequencies; weights that were brought to mean 1,
    and are very uneven, count as more rows than they are worth.
    """
    (total, effective), count = _counts(moments), moments.count
    if not total > 0 or not effective > 0:
        return
    if total < FEW * effective:
        what = (
            f"sample weights are frequencies, of which 2 is the row twice, and these sum to {total:.4g} over {count} "
            f"rows. They are taken as relative: the data count as {effective:.4g} rows"
        )
    elif total > UNEVEN * effective and abs(total - count) <= ROUNDING * count:
        what = (
            f"the sample weights have mean 1, and the data count as {count} rows, but only as much is known as from "
            f"{effective:.4g} rows of equal weight"
        )
    else:
        return
    warn_user(f"{what}. Multiply weights that are no frequencies by {effective / total:.4g}", WeightWarning)


def _counts(rows: Moments | NDArray[Any]) -> tuple[float, float]:
    """The total weight, and the effective number of rows; twice the first for moments put together without that."""
    if isinstance(rows, Moments):
        total, squares = rows.weight, rows.arrays.get("weight_squares")
    else:
        total, squares = float(rows.sum()), banded_squares(rows.ravel())
    return total, total if squares is None else effective_rows(total, squares)


Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Runs:
    """How a task sums runs: of `length` rows, of the distances of some `columns` of x from a `centre` (m,)."""

    length: int
    columns: NDArray[np.int64]
    centre: Array

    @classmethod
    def of(cls, basis: Basis, rows: int) -> Runs:
        """Runs for tasks of so many rows: about as many runs as there are rows in one."""
        d = basis.dimension
        columns = columns_of_order(d)
        found = [b.landmarks for b in basis.landmark_parts]
        centre = np.zeros(d) if basis.domain is None else basis.domain.center
        centre = found[0].mean(axis=0) if found else centre  # what adds has the same basis, so the same centre
        return cls(int(np.clip(math.isqrt(rows), SHORTEST, LONGEST)), columns, centre[columns])


class RunSums:
    """The sums over the runs of one task.

    `result` (5, 2m), for the columns z of x and of their squares: the number of rows, of runs; the sum of z; over the
    runs of n rows, the sum of n mean(z)² and of the squared deviations from mean(z).
    """

    def __init__(self, runs: Runs):
        self._runs = runs
        self._waiting = np.empty((0, len(runs.columns)))
        self._sums = np.zeros((5, 2 * len(runs.columns)))

    def add(self, x: Array, *, spread: bool = False) -> None:
        """The next rows (c, d) of the task; of many that are `spread`, a few runs at even distances."""
        length = self._runs.length
        count = max(2, SPREAD // length)
        if spread and len(x) > count * length:
            self._close()
            starts = np.linspace(0, len(x) - length, count).astype(np.intp)
            chosen = x[starts[:, None] + np.arange(length)]
            self._add(chosen[..., self._runs.columns] - self._runs.centre)
            return
        z = x[:, self._runs.columns] - self._runs.centre
        if len(self._waiting):
            z = np.concatenate([self._waiting, z])
        full = len(z) - len(z) % length
        self._add(z[:full].reshape(-1, length, z.shape[1]))
        self._waiting = z[full:].copy()

    def result(self) -> Array:
        """The sums, with the rows left at the end as a shorter run."""
        self._close()
        return self._sums

    def _close(self) -> None:
        """What waits is a shorter run: the rows that come are not its neighbours."""
        if len(self._waiting):
            self._add(self._waiting[None])
            self._waiting = self._waiting[:0]

    def _add(self, z: Array) -> None:
        """Runs of rows, (runs, rows, m)."""
        count, rows = z.shape[:2]
        if not count:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is told when it is solved
            both = np.concatenate([z, z**2], axis=2)
            means = both.mean(axis=1)
            self._sums[0] += count * rows
            self._sums[1] += count
            self._sums[2] += rows * means.sum(axis=0)
            self._sums[3] += rows * (means**2).sum(axis=0)
            self._sums[4] += ((both - means[:, None]) ** 2).sum(axis=(0, 1))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def order_of(moments: Moments) -> float:
    """Variance between runs of rows over the variance within, about 1 where the order of the rows means nothing.

    Of runs of b neighbouring rows F = b (variance of the runs' means) / (variance within the runs), the mean over the
    columns of x and their squares. For correlated rows it estimates the integrated autocorrelation time, in rows, as
    long as that is well below b. NaN where there are too few rows, and for moments without these sums.
    """
    if moments.order is None:
        return math.nan
    rows, runs, total, of_runs, inside = moments.order
    varies = inside > ROUNDING**2 * (inside + of_runs)  # within runs, by more than the rounding of a constant
    ratios = (of_runs - total**2 / rows) / (runs - 1) / (inside / (rows - runs))
    known = varies & (runs > 1) & (rows > runs) & np.isfinite(ratios)
    return float(ratios[known].mean()) if known.any() else math.nan


@np.errstate(over="ignore", invalid="ignore")
def spreads_of(moments: Moments) -> dict[int, float]:
    """The standard deviations of the columns of the prepared data that vary, by number; of many, of 16 of them.

    Moments without the sums over runs have none.
    """
    if moments.order is None:
        return {}
    rows, _, total, of_runs, inside = moments.order
    squares, columns = inside + of_runs, columns_of_order(moments.basis.dimension)
    spread = np.sqrt(np.maximum(squares - total**2 / rows, 0) / rows)
    usable = np.isfinite(spread) & (spread > ROUNDING * np.sqrt(squares / rows))
    m = len(columns)
    return {int(c): float(s) for c, s, use in zip(columns, spread[:m], usable[:m], strict=True) if use}


UNITS = "Rows(X, standardize=True) brings them to one"
"""A remedy for columns of unlike units."""


def unlike_columns(spreads: Mapping[int, float], name: Callable[[int], str], *, remedy: str = UNITS) -> str:
    """Return that columns are of unlike units, in words; "" if their spreads are within a hundredfold.

    `spreads` are standard deviations by the number of the prepared column, whose `name` is for the message.
    """
    if not spreads or max(spreads.values()) <= UNLIKE * min(spreads.values()):
        return ""
    both = min(spreads, key=lambda c: spreads[c]), max(spreads, key=lambda c: spreads[c])
    least, most = (f"{spreads[c]:.3g} in {name(c)}" for c in both)
    return f"the standard deviations of the columns go from {least} to {most}, for functions of one scale: {remedy}"


def correlation_time(moments: Moments) -> float:
    """How many rows of trajectories count as one, by their integrated autocorrelation time; 1 for other data."""
    if not of_trajectories(moments.operator):
        return 1.0
    within = order_of(moments)
    return max(1.0, within) if math.isfinite(within) else 1.0
