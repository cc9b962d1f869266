"""What a first pass tells of columns: mean and standard deviation, extremes with quantiles, climatologies and trends.

The origin and the unit of targets follow from the first of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.anomalies import Baseline
from daskspectral.data.batches import LARGEST
from daskspectral.data.labelled import StackedRows
from daskspectral.data.layout import Layout
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import take_rows
from daskspectral.moments import NUMBER
from daskspectral.operators.regression import Regression
from daskspectral.operators.weights import check_total

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
ROUNDED = 4 * float(np.finfo(float).eps)  # deviations of so many units in the last place are rounding
SAMPLE = 50_000
TAIL = 1e-3
FAR = 3.0  # full width over the width between quantiles, beyond which it is cut
BEYOND = 0.25  # of the width between quantiles, by which a range that is cut goes beyond them on each side


@dataclass(frozen=True, eq=False)
class Spread:
    """The weight of rows, the mean (m,) of their columns, the norms of these about it, and sums of squared residuals.

    The weight is (m,) where entries are missing, else (1,). A norm is the root of a sum of squares, which may leave the
    range of numbers. The norm of a constant column is 0.
    Squares about the mean add by the formula of Chan, Golub and LeVeque (1983), which loses no digits to a large mean.
    """

    weight: Any
    mean: Array
    norms: Array
    residuals: Array

    def __add__(self, other: Spread) -> Spread:
        weight = self.weight + other.weight
        apart, share = other.mean - self.mean, other.weight / np.where(weight, weight, 1.0)
        return Spread(
            weight,
            self.mean + share * apart,
            np.hypot(np.hypot(self.norms, other.norms), np.sqrt(share * self.weight) * apart),
            self.residuals + other.residuals,
        )

    @classmethod
    def of(cls, x: Array, weights: Array | None, predicted: Array | None = None, *, gaps: bool = False) -> Spread:
        """The spread of rows x (c, m) about their mean and about a prediction, if there is one, with weights (c,).

        With `gaps` it is of what is present of each column, NaN where it is missing.
        """
        w = np.ones((len(x), 1)) if weights is None else np.asarray(weights, dtype=float)[:, None]
        first = x[0]
        if gaps:
            present = ~np.isnan(x)
            first = np.take_along_axis(x, present.argmax(axis=0)[None], axis=0)[0]
            w, x, first = w * present, np.nan_to_num(x), np.nan_to_num(first)
        total = w.sum(axis=0)
        mean = first + np.einsum("cm,cm->m", np.broadcast_to(w, x.shape), x - first) / np.where(total, total, 1.0)
        residuals = np.zeros_like(mean) if predicted is None else (w * (x - predicted) ** 2).sum(axis=0)
        return cls(total, mean, _norms(x - mean, w), residuals)

    @property
    def squares(self) -> Array:
        """The sums of squares about the mean, (m,)."""
        return self.norms**2

    @property
    def explained(self) -> float:
        """R^2 = 1 - residuals / squares, averaged over the columns; of a constant one 1 where it is met, else 0."""
        constant = self.norms == 0
        ratio = self.residuals / np.where(constant, 1.0, self.squares)
        return float(np.mean(np.where(constant, np.where(self.residuals == 0, 1.0, 0.0), 1 - ratio)))


def _norms(deviations: Array, weights: Array) -> Array:
    """The roots of weighted sums of squares of columns (c, m), without an overflow or underflow of the squares."""
    largest = np.abs(deviations).max(axis=0, where=weights > 0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(unit * np.sqrt((weights * (deviations / unit) ** 2).sum(axis=0)))


def added(
    each: Callable[[Mapping[str, Array]], Mapping[str, Any]], batches: Iterable[Mapping[str, Array]], state: Any = None
) -> dict[str, Any]:
    """Return the sums by name of what `each` makes of batches of rows; a task once `each` is bound."""
    total: dict[str, Any] = {}
    for batch in batches:
        for name, part in each(batch).items():
            total[name] = total[name] + part if name in total else part
    return total


def _spreads(views: tuple[str, ...], gaps: bool, batch: Mapping[str, Array]) -> dict[str, Spread]:
    """The spreads of the columns of some views."""
    weights = batch.get("weight")
    return {view: Spread.of(np.asarray(batch[view], dtype=float), weights, gaps=gaps) for view in views}


def standardized(source: Source) -> Source:
    """The source with columns brought to mean 0 and standard deviation 1 (ddof 0), in one pass, where it is asked for.

    Rows count by their sample weights. Scaled columns are multiplied by the source's factors. A constant column, whose
    deviations are the rounding of its values, keeps its scale. Views in the space of x are scaled as x is; points in a
    space of their own have their own mean and scale.
    Raises InvalidRowError (on_invalid="raise"), and ValueError if the weights are all zero.
    """
    if not source.standardize:
        return source
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="standardize")
    views = ("x", *source.apart)
    spreads: Mapping[str, Any] = run.reduce(
        partial(added, partial(_spreads, views, source.on_invalid == "pairwise"))
    ).sums
    for view in views:
        spread = spreads[view]
        check_total(float(np.max(spread.weight)))
        deviation = spread.norms / np.sqrt(np.where(spread.weight, spread.weight, 1.0))
        constant = deviation <= ROUNDED * np.abs(spread.mean)
        if constant.any():
            logger.info("%d of %d columns are constant; their scale stays 1", constant.sum(), len(constant))
        scale = np.where(constant, 1.0, deviation)
        if view in source.factors:  # which the columns were multiplied by before, and the scaled ones are again
            factors = source.factors[view]
            scale = np.divide(scale, factors, out=scale, where=~constant & (factors > 0))
        source = source.with_preparation(view, mean=spread.mean, scale=scale)
    return source


PLACES, RUN = 3, 16  # of the rows that give a center, and rows at each
AWAY = 4.0  # times as far as the farthest of these rows from it


def centered(source: Source, views: Iterable[str]) -> tuple[Source, dict[str, Array]]:
    """The source with the points of some views about a center, if the origin is farther away than they spread.

    Sums about it lose no digits to a large mean. It is the median of a few rows, one of their values in each column, so
    that it moves with them to the last digit; any center within some deviations of the mean would do. The largest
    distances from it, (d,), come by view.
    """
    units: dict[str, Array] = {}
    for view in views:
        if source.preparations[view].mean is not None:
            continue
        starts = np.unique(np.linspace(0, max(0, source.n - RUN), PLACES).astype(np.int64))
        numbers = np.unique(starts[:, None] + np.arange(min(RUN, source.n)))
        _, points = take_rows(replace(source, on_invalid="keep", progress=False), numbers, view=view)
        center = _centers(points)
        distances = np.abs(np.where(np.isfinite(points), points - center, 0.0))
        units[view] = distances.max(axis=0, initial=0.0)
        if center.any():
            source = source.with_preparation(view, mean=center)
    return source, units


def _centers(points: Array) -> Array:
    """Return the lower median of the finite values of each column (m, d), or 0 if that is not far from them."""
    values = np.sort(np.where(np.isfinite(points), points, np.inf), axis=0)  # infinite ones last
    count = np.count_nonzero(np.isfinite(points), axis=0)
    places = np.stack([(count - 1) // 2, count - 1, np.zeros_like(count)]).clip(0)
    median, most, least = np.where(count, np.take_along_axis(values, places, axis=0), 0.0)
    return np.where(np.abs(median) > AWAY * np.maximum(most - median, median - least), median, 0.0)


@dataclass(frozen=True, eq=False)
class Extent:
    """The least and the largest value of each column over some rows, and sampled rows (s, d)."""

    lower: Array
    upper: Array
    sample: Array

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            np.minimum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
            np.concatenate([self.sample, other.sample]),
        )

    def quantiles(self, axis: int) -> tuple[float, float]:
        """Those of a column at .001 and .999."""
        low, high = np.quantile(self.sample[:, axis], [TAIL, 1 - TAIL])
        return float(low), float(high)

    def trimmed(self, axis: int) -> tuple[float, float] | None:
        """The range of one column, cut where few rows lie far out; None where nearly all rows are equal."""
        lower, upper = float(self.lower[axis]), float(self.upper[axis])
        low, high = self.quantiles(axis)
        if not high > low:
            return None
        if upper - lower <= FAR * (high - low):
            return lower, upper
        margin = BEYOND * (high - low)
        return max(lower, low - margin), min(upper, high + margin)


def _extents(numbers: NDArray[np.int64], batch: Mapping[str, Array]) -> dict[str, Extent]:
    """The extent of rows; of those with the sorted `numbers`, the points too. None of rows without weight."""
    x, rows = batch["x"], batch[NUMBER]
    if "weight" in batch:  # rows of weight 0 count as absent
        counted = np.flatnonzero(batch["weight"])
        x, rows = x[counted], rows[counted]
        if not len(rows):
            return {}
    wanted = numbers[slice(*np.searchsorted(numbers, [rows[0], rows[-1] + 1]))]
    places = np.searchsorted(rows, wanted)
    chosen = places[rows[places] == wanted]
    columns = np.ascontiguousarray(x.T)  # extremes of contiguous columns are ten times quicker
    lower, upper = columns.min(axis=1).astype(float), columns.max(axis=1).astype(float)
    return {"extent": Extent(lower, upper, x[chosen].astype(float))}


def extent_of(source: Source, rng: np.random.Generator) -> Extent:
    """The extent of the rows of positive weight, with a sample of them. Raises ValueError for none."""
    found = extent_from(0, source, rng)
    if found is None:
        raise ValueError("the total sample weight is 0; some row needs a weight above zero")
    return found


def extent_from(start: int, source: Source, rng: np.random.Generator) -> Extent | None:
    """The extent of the rows of positive weight from `start` on, with a sample of them; None without any."""
    size = min(SAMPLE, source.n)
    numbers = np.sort(rng.integers(0, source.n, size)) if size < source.n else np.arange(size)
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes, start=start), description="ranges")
    found: Extent | None = run.reduce(partial(added, partial(_extents, np.unique(numbers)))).sums.get("extent")
    return found


# -- the origin and the unit of targets, by which their sums keep digits -----------------------------------------------


FIRST, SOUGHT = 1000, 8  # targets, which tell where all lie, and where such are sought that have weight
OFFSET = 10.0  # standard deviations of their mean from 0
GRID = 8.0  # standard deviations between origins, so that parts of the same data have the same
LARGE = 1e60  # whose squares are far from overflow, and those of 1 over it from underflow


def levelled(operator: Regression, source: Source, *, shifted: bool) -> Regression:
    """Return the operator with the origin and the unit that the first 1000 targets ask for; nearly always 0 and 1.

    Only functions that hold the constant can be `shifted`. Raises ValueError for targets whose squares overflow.
    """
    name = "y" if operator.values else "gradients"
    first = _first(source, name)
    largest = float(np.abs(first).max()) if first.size else 0.0
    if not largest:
        return operator
    if largest > LARGEST:
        raise ValueError(
            f"{name} reaches {largest:.3g}, and its squares overflow: give it in another unit, below {LARGEST:g}"
        )
    unit = 1.0 if 1 / LARGE < largest < LARGE else float(2.0 ** np.round(np.log2(largest)))
    origin: tuple[float, ...] = ()
    if shifted and operator.values:
        found = [_origin(column / unit) * unit for column in first.T]
        origin = tuple(found) if any(found) else ()
    spread = float(np.abs(first - np.asarray(origin or 0.0)).max())
    if origin and spread and not 1 / LARGE < spread < LARGE:
        unit = float(2.0 ** np.round(np.log2(spread)))
    return replace(operator, origin=origin, unit=unit)


def _first(source: Source, name: str) -> Array:
    """The first finite targets (k, m) of positive weight, from one of a few places in the data."""
    reader, weight = source.readers[name], source.readers.get("weight")
    for start in np.linspace(0, max(0, source.n - FIRST), SOUGHT).astype(int).tolist():
        stop = min(source.n, start + FIRST)
        found = np.asarray(reader.read(start, stop), dtype=float).reshape(stop - start, -1)
        usable = np.isfinite(found).all(axis=1)
        if weight is not None:
            usable &= np.asarray(weight.read(start, stop)) > 0
        if usable.any():
            break
    return np.asarray(found[usable])


def _origin(values: Array) -> float:
    mean, spread = float(values.mean()), float(values.std())
    if abs(mean) <= OFFSET * spread:
        return 0.0
    if spread <= 1e-15 * abs(mean):  # constant but for rounding
        return mean
    grid = 2.0 ** np.ceil(np.log2(GRID * spread))
    return float(np.round(mean / grid) * grid)


# -- what anomalies are deviations from: climatologies and trends of the columns ---------------------------------------


def _baseline_sums(baseline: Baseline, design: Array, gaps: bool, batch: Mapping[str, Array]) -> dict[str, Array]:
    return baseline.sums(batch["x"], design[batch[NUMBER]], gaps, batch.get("weight"))


def with_baseline(stacked: StackedRows, rows: Rows, what: str, weight: Any, *, read: bool) -> Layout:
    """Return the layout with the baseline of the anomalies that the rows ask for.

    Means and trends are those of rows with these weights, (n,), None for equal ones. Unless `read`, only the times are
    checked. Raises ValueError where times are missing or few and where a group of them has no weight, and
    InvalidRowError for an invalid row (on_invalid="raise").
    """
    baseline = Baseline.of(stacked.rows, what, rows.anomaly, rows.detrend or 0)
    if not read:
        return stacked.layout
    source = open_source(replace(rows, data=stacked.reader, fields=None, delays=1), gaps=True, weight=weight)
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="anomalies")
    each = partial(_baseline_sums, baseline, baseline.design(stacked.rows, what), source.on_invalid == "pairwise")
    tables = baseline.solved(run.reduce(partial(added, each)).sums)
    absent = np.isnan(tables[0]).all(axis=1)
    if absent.any() and source.on_invalid == "raise":
        raise ValueError(
            f"all rows of the {rows.anomaly or 'data'} {baseline.labels[int(absent.argmax())]} have the weight 0 in "
            f"{what}: leave them out, or give some of them a weight"
        )
    climatology, trend = (source.preparation.inverse(table, source.n_features_in) for table in tables)
    return replace(stacked.layout, baseline=replace(baseline, climatology=climatology, trend=trend))
