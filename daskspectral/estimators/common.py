"""What estimators share on the way from data to moments: scaling columns, choosing landmarks, one pass of sums."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.data.source import Source, label_of
from daskspectral.engine import Run, plan_run
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import RankWarning
from daskspectral.estimators.parameters import given_landmarks
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
MEDIAN_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, mean (d,) and sum of squared deviations (d,) of some rows; two add by Chan's formula."""

    weight: float
    mean: Array
    squares: Array

    def __add__(self, other: Spread) -> Spread:
        weight = self.weight + other.weight
        if weight == 0:
            return self
        shift = other.mean - self.mean
        share = other.weight / weight
        return Spread(weight, self.mean + share * shift, self.squares + other.squares + self.weight * share * shift**2)


@dataclass(frozen=True)
class _SpreadTask:
    """The spreads of the columns of some views over one range."""

    views: tuple[str, ...]

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        total: dict[str, Spread] = {}
        for batch in batches:
            for view in self.views:
                x = np.asarray(batch[view], dtype=float)
                w = np.asarray(batch["weight"], dtype=float) if "weight" in batch else np.ones(len(x))
                weight = float(w.sum())
                mean = w @ x / weight if weight else np.zeros(x.shape[1])
                part = Spread(weight, mean, w @ (x - mean) ** 2)
                total[view] = total[view] + part if view in total else part
        return total


def standardized(source: Source, *, on_invalid: str, progress: bool | None) -> Source:
    """The source with columns brought to mean 0 and standard deviation 1 (ddof 0), in one streamed pass.

    A column that is constant keeps its scale. Views of the space of x follow x; points of a space of their own are
    brought there for themselves.
    """
    row_bytes, whole = source.row_bytes, bool(source.dask_fields)
    plan = plan_run(source.edges, flops_per_row=50.0 * row_bytes, row_bytes=row_bytes, splittable=not whole)
    run = Run(source, plan, on_invalid=on_invalid, progress=progress, description="standardize")
    views = ("x", *source.apart)
    spreads: Mapping[str, Any] = run.reduce(_SpreadTask(views)).sums
    for view in views:
        spread = spreads[view]
        if spread.weight <= 0:
            raise ValueError(f"the total sample weight is {spread.weight:g}; some row needs a positive weight")
        deviation = np.sqrt(spread.squares / spread.weight)
        if not np.isfinite(deviation).all():
            raise ValueError(f"the squares of the columns overflow; divide {label_of(view)} by a constant first")
        constant = deviation <= 1e-12 * np.abs(spread.mean)
        if constant.any():
            logger.info("%d of %d columns are constant; their scale stays 1", constant.sum(), len(constant))
        source = source.with_preparation(view, mean=spread.mean, scale=np.where(constant, 1.0, deviation))
    return source


def choose_landmarks(
    source: Source,
    kernel: Kernel,
    landmarks: str | Any,
    p: int,
    random_state: Any,
    *,
    view: str = "x",
    sample_size: int | None,
    on_invalid: str,
    progress: bool | None,
) -> tuple[Kernel, Array, NDArray[np.int64] | None]:
    """The kernel with its scale resolved, the landmarks (p, d), and their row numbers (p,) where they are rows.

    Both are found among the points of a view. One cheap pass at most: one draw of global row numbers serves the
    landmarks and the median distance.
    """
    given = not isinstance(landmarks, str)
    sample_size = 0 if given else p if landmarks == "uniform" else sample_size or default_sample(p)
    wanted = max(sample_size, MEDIAN_SAMPLE if kernel.needs_median else 0)
    rng = np.random.default_rng(random_state)
    rows, points = np.empty(0, dtype=np.int64), np.empty((0, source.dimension_at(view)))
    if wanted:
        rows, points = draw_rows(source, wanted, rng, view=view, on_invalid=on_invalid, progress=progress)
        if not len(points):
            raise ValueError("no rows are left: every row is invalid; mend the data")
    if kernel.needs_median:
        distance = choosing.median_distance(points, rng, size=MEDIAN_SAMPLE)
        logger.info("median distance %.6g taken as the kernel's scale", distance)
        kernel = kernel.resolve(distance)
    if given:
        prepared = source.preparations[view](given_landmarks(landmarks, source.width(view), label_of(view)))
        return kernel, np.asarray(prepared, dtype=float), None
    subset = np.sort(rng.choice(len(rows), min(sample_size, len(rows)), replace=False))
    rows, points = rows[subset], points[subset]
    chosen = choosing.choose(
        landmarks, points, min(p, len(points)), rng, gram=lambda a, b: kernel.values(b, a), diagonal=kernel.diagonal
    )
    if len(chosen) < p:
        warnings.warn(
            f"only {len(chosen)} of {p} landmarks could be chosen by {landmarks!r}: the sample of {len(points)} rows "
            "holds no more that are distinct to the kernel",
            RankWarning,
            stacklevel=4,
        )
    return kernel, points[chosen], rows[chosen]


def default_sample(p: int) -> int:
    """How many rows the landmark methods other than uniform look at, unless the user says."""
    return max(10 * p, 10_000)


def check_head(before: Moments, source: Source) -> None:
    """Raise ValueError where these are not the data that the moments were measured on, with rows appended."""
    if not before.head:
        raise ValueError(
            "these moments were added up from several arrays, and cannot be updated from one: measure the new rows by "
            "themselves, with these landmarks, and add the moments"
        )
    if source.head(int(before.head.split(":")[0])) != before.head:
        raise ValueError(
            "X is not the array that was measured, with rows appended: its first rows differ. To add other data, fit "
            "them with the same landmarks and add the moments"
        )
