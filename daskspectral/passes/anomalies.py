"""The pass that fits what anomalies are deviations from: climatologies and trends of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
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


def _sums(baseline: Baseline, design: Array, gaps: bool, batch: Mapping[str, Array]) -> dict[str, Array]:
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
    source = open_source(replace(rows, data=stacked.reader, fields=None), gaps=True, weight=weight)
    run = Run(source, plan_rows(source, 50.0 * source.row_bytes), description="anomalies")
    each = partial(_sums, baseline, baseline.design(stacked.rows, what), source.on_invalid == "pairwise")
    tables = baseline.solved(run.reduce(Added(each)).sums)
    absent = np.isnan(tables[0]).all(axis=1)
    if absent.any() and source.on_invalid == "raise":
        raise ValueError(
            f"all rows of the {rows.anomaly or 'data'} {baseline.labels[int(absent.argmax())]} have the weight 0 in "
            f"{what}: leave them out, or give some of them a weight"
        )
    climatology, trend = (source.preparation.inverse(table, source.n_features_in) for table in tables)
    return replace(stacked.layout, baseline=replace(baseline, climatology=climatology, trend=trend))
