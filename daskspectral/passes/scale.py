"""Weighted mean and standard deviation of the columns, in one streamed pass."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source, label_of
from daskspectral.engine import Run
from daskspectral.engine.plan import plan_rows

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")


@dataclass(frozen=True, eq=False)
class Spread:
    """Weight, mean (d,) and weighted sum of squared deviations (d,) of some rows; spreads add by Chan's formula."""

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


def standardized(source: Source) -> Source:
    """The source with columns brought to mean 0 and standard deviation 1 (ddof 0), in one pass, where it is asked for.

    Rows count by their sample weights. A constant column keeps its scale. Views in the space of x are scaled as x is;
    points in a space of their own have their own mean and scale. Raises InvalidRowError (on_invalid="raise"), and
    ValueError where the weights are all zero or squares of the columns overflow.
    """
    if not source.standardize:
        return source
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="standardize")
    views = ("x", *source.apart)
    spreads: Mapping[str, Any] = run.reduce(_SpreadTask(views)).sums
    for view in views:
        spread = spreads[view]
        if spread.weight <= 0:
            raise ValueError(f"the total sample weight is {spread.weight:g}; some row needs a weight above zero")
        deviation = np.sqrt(spread.squares / spread.weight)
        if not np.isfinite(deviation).all():
            raise ValueError(f"the squares of the columns overflow; divide {label_of(view)} by a constant first")
        constant = deviation <= 1e-12 * np.abs(spread.mean)
        if constant.any():
            logger.info("%d of %d columns are constant; their scale stays 1", constant.sum(), len(constant))
        source = source.with_preparation(view, mean=spread.mean, scale=np.where(constant, 1.0, deviation))
    return source
