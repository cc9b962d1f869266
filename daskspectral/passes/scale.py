"""Column statistics from a first pass: mean and standard deviation, range and quantiles, climatologies and trends.

The origin and the unit of targets are those of the first rows.
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
from daskspectral.data.labeled import StackedRows
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
ROUNDED = 4 * float(np.finfo(float).eps)  # relative deviations below this are rounding
SAMPLE = 50_000
TAIL = 1e-3
FAR = 3.0  # ratio of the range to the width between quantiles above which the range is trimmed
BEYOND = 0.25  # margin of a trimmed range on each side, relative to the width between quantiles


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, mean (m,) and norms (m,) of columns about the mean, and sums of squared residuals.

    The weight is (m,) with missing entries, otherwise (1,). A norm is the root of a sum of squares, which could
    overflow; 0 for a constant column. Addition is by Chan, Golub and LeVeque (1983), accurate for large means.
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
        """Return the spread of rows x (c, m) about their mean, and about a prediction if given.

        With `gaps`, missing entries are NaN and ignored.
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
        return self.norms**2

    @property
    def explained(self) -> float:
        """R² = 1 - residuals / squares, averaged over columns; of a constant column 1 if exact, otherwise 0."""
        constant = self.norms == 0
        ratio = self.residuals / np.where(constant, 1.0, self.squares)
        return float(np.mean(np.where(constant, np.where(self.residuals == 0, 1.0, 0.0), 1 - ratio)))


def _norms(deviations: Array, weights: Array) -> Array:
    """Return the roots of weighted sums of squares of columns (c, m), without overflow or underflow."""
    largest = np.abs(deviations).max(axis=0, where=weights > 0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(unit * np.sqrt((weights * (deviations / unit) ** 2).sum(axis=0)))


def added(
    each: Callable[[Mapping[str, Array]], Mapping[str, Any]], batches: Iterable[Mapping[str, Array]], state: Any = None
) -> dict[str, Any]:
    """Return the sums by name of the results of `each` for batches of rows.

    A task if `each` is bound.
    """
    total: dict[str, Any] = {}
    for batch in batches:
        for name, part in each(batch).items():
            total[name] = total[name] + part if name in total else part
    return total


def _spreads(views: tuple[str, ...], gaps: bool, batch: Mapping[str, Array]) -> dict[str, Spread]:
    weights = batch.get("weight")
    return {view: Spread.of(np.asarray(batch[view], dtype=float), weights, gaps=gaps) for view in views}


def standardized(source: Source) -> Source:
    """Return the source with standardized columns (ddof 0), by one pass, if requested.

    Statistics are weighted. Columns that are constant up to rounding keep their scale; views in the space of x are
    scaled as x, those in another space separately. Raises InvalidRowError (on_invalid="raise"), and ValueError if all
    weights are zero.
    """
    if not source.standardize:
        return source
    views = ("x", *source.apart)
    for view in views:
        source = source.with_preparation(view, scale=None)  # of weights, which follow by the factors
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="standardize")
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
        if view in source.factors:  # applied before the pass, and again after scaling
            factors = source.factors[view]
            scale = np.divide(scale, factors, out=scale, where=~constant & (factors > 0))
        source = source.with_preparation(view, mean=spread.mean, scale=scale)
    return source


PLACES, RUN = 3, 16  # number of runs of rows for the center, and rows per run
AWAY = 4.0  # least distance of the origin, relative to the farthest of these rows


def centered(source: Source, views: Iterable[str]) -> tuple[Source, dict[str, Array]]:
    """Return the source with centered points of views, and largest distances (d,) from centers.

    Points are centered if the origin is far away, so that sums are accurate for large means. The center is the median
    of a few rows, one of their values in each column, so that a shift of the data shifts it exactly.
    """
    units: dict[str, Array] = {}
    for view in views:
        if source.preparations[view].mean is not None:
            continue
        starts = np.unique(np.linspace(0, max(0, source.n - RUN), PLACES).astype(np.int64))
        numbers = np.unique(starts[:, None] + np.arange(min(RUN, source.n)))
        scale, plain = source.preparations[view].scale, source.with_preparation(view, scale=None)
        _, points = take_rows(replace(plain, on_invalid="keep", progress=False), numbers, view=view)
        center = _centers(points)
        distances = np.abs(np.where(np.isfinite(points), points - center, 0.0))
        units[view] = distances.max(axis=0, initial=0.0) / (1.0 if scale is None else scale)
        if center.any():
            source = source.with_preparation(view, mean=center)
    return source, units


def _centers(points: Array) -> Array:
    """Return the lower median of the finite values of each column (m, d), or 0 if 0 is not far from them."""
    values = np.sort(np.where(np.isfinite(points), points, np.inf), axis=0)  # infinite ones last
    count = np.count_nonzero(np.isfinite(points), axis=0)
    places = np.stack([(count - 1) // 2, count - 1, np.zeros_like(count)]).clip(0)
    median, most, least = np.where(count, np.take_along_axis(values, places, axis=0), 0.0)
    return np.where(np.abs(median) > AWAY * np.maximum(most - median, median - least), median, 0.0)


@dataclass(frozen=True, eq=False)
class Extent:
    """Least and largest value of each column, and sampled rows (s, d)."""

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
        low, high = np.quantile(self.sample[:, axis], [TAIL, 1 - TAIL])
        return float(low), float(high)

    def trimmed(self, axis: int) -> tuple[float, float] | None:
        """Return the range of a column without far outliers; None if nearly all rows are equal."""
        lower, upper = float(self.lower[axis]), float(self.upper[axis])
        low, high = self.quantiles(axis)
        if not high > low:
            return None
        if upper - lower <= FAR * (high - low):
            return lower, upper
        margin = BEYOND * (high - low)
        return max(lower, low - margin), min(upper, high + margin)


def _extents(numbers: NDArray[np.int64], batch: Mapping[str, Array]) -> dict[str, Extent]:
    """Return the extent of rows, with the points of sorted `numbers`.

    Empty for rows without weight.
    """
    x, rows = batch["x"], batch[NUMBER]
    if "weight" in batch:  # rows of weight 0 are ignored
        counted = np.flatnonzero(batch["weight"])
        x, rows = x[counted], rows[counted]
        if not len(rows):
            return {}
    wanted = numbers[slice(*np.searchsorted(numbers, [rows[0], rows[-1] + 1]))]
    places = np.searchsorted(rows, wanted)
    chosen = places[rows[places] == wanted]
    columns = np.ascontiguousarray(x.T)  # extremes of contiguous columns are ten times faster
    lower, upper = columns.min(axis=1).astype(float), columns.max(axis=1).astype(float)
    return {"extent": Extent(lower, upper, x[chosen].astype(float))}


def extent_of(source: Source, rng: np.random.Generator) -> Extent:
    """Return the extent of the rows of positive weight, with a sample; ValueError without any."""
    found = extent_from(0, source, rng)
    if found is None:
        raise ValueError("the sum of sample weights must be positive, got zero")
    return found


def extent_from(start: int, source: Source, rng: np.random.Generator) -> Extent | None:
    """Return the extent of the rows of positive weight from `start` on, with a sample; None without any."""
    size = min(SAMPLE, source.n)
    numbers = np.sort(rng.integers(0, source.n, size)) if size < source.n else np.arange(size)
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes, start=start), description="ranges")
    found: Extent | None = run.reduce(partial(added, partial(_extents, np.unique(numbers)))).sums.get("extent")
    return found


# -- origin and unit of targets, for accurate sums ---------------------------------------------------------------------


FIRST, SOUGHT = 1000, 8  # number of first targets, and of positions at which rows of positive weight are searched
OFFSET = 10.0  # least distance of the mean from 0, in standard deviations
GRID = 8.0  # standard deviations between origins, so that parts of the same data have equal origins
LARGE = 1e60  # squares of it, and of its inverse, are far from overflow and underflow


def with_target_scale(operator: Regression, source: Source, *, shifted: bool) -> Regression:
    """Return the operator with origin and unit of targets from the first 1000, nearly always 0 and 1.

    `shifted` allows an origin, for functions that include the constant. Raises ValueError if squares of targets
    overflow.
    """
    name = "y" if operator.values else "gradients"
    first = _first(source, name)
    largest = float(np.abs(first).max()) if first.size else 0.0
    if not largest:
        return operator
    if largest > LARGEST:
        raise ValueError(
            f"{name} must be below {LARGEST:g}, got {largest:.3g}, whose square overflows. Use another unit"
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
    """Return the first finite targets (k, m) of positive weight, from one of a few positions in the data."""
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
    if spread <= 1e-15 * abs(mean):  # constant up to rounding
        return mean
    grid = 2.0 ** np.ceil(np.log2(GRID * spread))
    return float(np.round(mean / grid) * grid)


# -- baseline of anomalies: climatologies and trends of the columns ----------------------------------------------------


def _baseline_sums(baseline: Baseline, design: Array, gaps: bool, batch: Mapping[str, Array]) -> dict[str, Array]:
    return baseline.sums(batch["x"], design[batch[NUMBER]], gaps, batch.get("weight"))


def with_baseline(stacked: StackedRows, rows: Rows, what: str, weight: Any, *, read: bool) -> Layout:
    """Return the layout with the baseline of requested anomalies.

    Means and trends are weighted by `weight` (n,), if given. Unless `read`, only the times are checked. Raises
    ValueError if times are missing or too few, or a group of them has no weight, and InvalidRowError.
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
            f"the rows of the {rows.anomaly or 'data'} {baseline.labels[int(absent.argmax())]} must have positive "
            f"weights in {what}, got 0. Exclude them, or change the weights"
        )
    climatology, trend = (source.preparation.inverse(table, source.n_features_in) for table in tables)
    return replace(stacked.layout, baseline=replace(baseline, climatology=climatology, trend=trend))
