"""Scores of fitted functions on new rows, in one pass: of a decomposition, and R² of a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.integrity import Manifest
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, check_widths, open_data, open_regression
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import chosen_device
from daskspectral.errors import renumbered
from daskspectral.moments import NUMBER, Moments
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.solution import SpanScore, check_rows, score_span
from daskspectral.operators.paired import scoring_operator
from daskspectral.operators.weights import check_total
from daskspectral.passes.apply import RowFunction
from daskspectral.passes.parameters import check_components, is_share
from daskspectral.passes.scale import Spread, added, with_target_scale
from daskspectral.passes.sums import Discretization, measure, plan_sums

Array = NDArray[np.floating[Any]]


def measure_score(model: Any, rows: Rows, *, sample_weight: Any = None, progress: bool | None = None) -> SpanScore:
    """Return the score of the functions of a fitted model on rows of its kind, in one pass.

    Raises ValueError for other columns than those of the fit or too few rows, InvalidRowError, and OSError if the data
    change during the pass.
    """
    fitted: Moments = model.moments_
    functions = {side: getattr(model, name) for name, side in Attributes(model.solver_).functions.items()}
    operator = scoring_operator(fitted.operator)
    check_components(model._components, fitted.operator)
    found = min(c.shape[1] for c in functions.values())
    wanted = found if is_share(model._components) else int(model._components)
    source = open_data(operator, rows, weight=sample_weight, progress=progress)
    check_widths(fitted, source)
    least = min(wanted, found)
    check_rows(source.n, least, f"X has {source.rows}")
    discretization = Discretization.of(fitted)
    moments = measure(
        source,
        discretization,
        operator,
        plan_sums(source, operator, discretization.outline, fitted.dtype, device=chosen_device(model.device)),
        snapshot=Manifest(source),
        description="score",
    )
    return score_span(fitted.operator, moments.expanded(), functions, wanted)


def _compared(function: RowFunction, field: str, unit: float, batch: Mapping[str, Array]) -> dict[str, Spread]:
    """Return the spread of a field about the values of a function, in a unit without overflow."""
    y = np.asarray(batch[field], dtype=float).reshape(len(batch[field]), -1)[:, : function.columns]
    with renumbered(batch[NUMBER].__getitem__):
        return {"spread": Spread.of(y / unit, batch.get("weight"), function.of_prepared(batch["x"])[0] / unit)}


def determination(
    function: RowFunction, targets: int | None, rows: Rows, y: Any, sample_weight: Any, progress: bool | None
) -> float:
    """Return R² of the values (n, m) of a function for y, (n,) or (n, m), averaged over the targets.

    Raises ValueError for another number of targets, a single row, or weights of sum 0, InvalidRowError, unless
    on_invalid="skip", and OSError if the data change during the pass.
    """
    source, operator = open_regression(rows, y, weight=sample_weight, progress=progress)
    if (operator.targets or 1) != (targets or 1):
        raise ValueError(f"y must have {targets or 1} columns, as in the fit, got {operator.targets or 1}")
    if source.n < 2:
        raise ValueError("R² requires at least 2 rows, got 1")
    return explained(function, source, unit=with_target_scale(operator, source, shifted=False).unit)


def explained(function: RowFunction, source: Source, field: str = "y", unit: float = 1.0) -> float:
    """Return R² of the values (n, m) of a function for a field of a source, (n,) or (n, m)."""
    scale = function.preparation
    source = source.with_preparation(mean=scale.mean, scale=scale.scale)
    snapshot = Manifest(source)
    plan = plan_rows(source, 2000.0 * function.columns, device=function.device)
    run = Run(source, plan, None, "score", function.device)
    total = run.reduce(partial(added, partial(_compared, function, field, unit)))
    snapshot.check_unchanged()
    if total.count < 2:
        raise ValueError(f"R² requires at least 2 valid rows, got {total.count} of {source.rows}")
    check_total(total.weight)
    found: Spread = total.sums["spread"]
    return found.explained
