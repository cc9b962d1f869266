"""The least and the largest value of each column, in one pass with a sample for quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.engine import Run, plan_rows
from daskspectral.moments.measure import NUMBER

Array = NDArray[np.floating[Any]]
SAMPLE = 50_000
TAIL = 1e-3
FAR = 3.0  # full width over the width between quantiles, beyond which it is cut
BEYOND = 0.25  # of the width between quantiles, by which a range that is cut goes beyond them on each side


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
        reach = BEYOND * (high - low)
        return max(lower, low - reach), min(upper, high + reach)


@dataclass(frozen=True, eq=False)
class _ExtentTask:
    """The extent of the rows of one range; of the rows with the sorted `numbers`, the points too."""

    numbers: NDArray[np.int64]

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        total: Extent | None = None
        for batch in batches:
            x, rows = batch["x"], batch[NUMBER]
            if "weight" in batch:  # rows of weight 0 count as absent
                counted = np.flatnonzero(batch["weight"])
                x, rows = x[counted], rows[counted]
                if not len(rows):
                    continue
            wanted = self.numbers[slice(*np.searchsorted(self.numbers, [rows[0], rows[-1] + 1]))]
            if len(rows) == rows[-1] - rows[0] + 1:
                chosen = wanted - rows[0]
            else:
                places = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
                chosen = places[rows[places] == wanted]
            columns = np.ascontiguousarray(x.T)  # extremes of contiguous columns are ten times quicker
            part = Extent(columns.min(axis=1).astype(float), columns.max(axis=1).astype(float), x[chosen].astype(float))
            total = part if total is None else total + part
        return {} if total is None else {"extent": total}


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
    found: Extent | None = run.reduce(_ExtentTask(np.unique(numbers))).sums.get("extent")
    return found
