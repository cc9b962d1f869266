"""The pass that fits what anomalies are deviations from: climatologies and trends of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from daskspectral.data.anomalies import Baseline
from daskspectral.data.labelled import StackedRows
from daskspectral.data.layout import Layout
from daskspectral.data.rows import Rows
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.moments import NUMBER
from daskspectral.passes.scale import Added

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Each:
    """The sums of a baseline over a batch."""

    baseline: Baseline
    design: Array
    gaps: bool

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        return self.baseline.sums(batch["x"], self.design[batch[NUMBER]], self.gaps)


def with_baseline(stacked: StackedRows, rows: Rows, what: str, *, read: bool) -> Layout:
    """The layout with the baseline of the anomalies that the rows ask for; not `read`, their times alone are checked.

    Raises ValueError where times are missing or few, and InvalidRowError for an invalid row (on_invalid="raise").
    """
    if rows.anomaly is None and rows.detrend is None:
        return stacked.layout
    baseline = Baseline.of(stacked.rows, what, rows.anomaly, rows.detrend or 0)
    if not read:
        return stacked.layout
    own: dict[str, Any] = {"fields": None, "sample_dims": None, "latitude": None}
    source = open_source(replace(rows, data=stacked.reader, **own), gaps=True)
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="anomalies")
    each = _Each(baseline, baseline.design(stacked.rows, what), source.on_invalid == "pairwise")
    sums: Mapping[str, Any] = run.reduce(Added(each)).sums
    baseline = baseline.fitted(sums, source.preparation.columns, source.n_features_in)
    return replace(stacked.layout, baseline=baseline)
