"""Fitted functions measured on new rows: the score of a decomposition, from one pass."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from daskspectral.data.integrity import Snapshot
from daskspectral.data.rows import Rows
from daskspectral.data.source import check_widths, open_data
from daskspectral.engine.accelerators import chosen_device
from daskspectral.moments import Moments
from daskspectral.moments.lattice import DENSE, dense, lattice_of, of_functions, on_lattice
from daskspectral.moments.score import SpanScore, check_rows, score_span
from daskspectral.passes.parameters import check_whole
from daskspectral.passes.sums import Discretisation, measure, plan_sums
from daskspectral.solve import Solver


class Decomposed(Protocol):
    """The parts of a fitted `SpectralDecomposition` that a score needs, besides the functions that its solver gives."""

    moments_: Moments
    n_components: int
    device: str

    @property
    def solver_(self) -> Solver: ...


def measure_score(
    model: Decomposed, rows: Rows, *, sample_weight: Any = None, progress: bool | None = None
) -> SpanScore:
    """How a fitted model's functions do on rows like those of its fit, in one pass.

    Raises ValueError for data that do not fit the model and for no more rows than functions, InvalidRowError for the
    lowest invalid row (on_invalid="raise"), and OSError where the data changed meanwhile.
    """
    fitted = model.moments_
    check_whole("n_components", model.n_components)
    functions = {side: getattr(model, name) for name, side in model.solver_.functions.items()}
    operator = fitted.operator.scoring
    source = open_data(operator, rows, weight=sample_weight, progress=progress)
    check_widths(fitted, source)
    least = min(model.n_components, *(c.shape[1] for c in functions.values()))
    check_rows(source.n, least, f"X has {source.rows}")
    laid, device = Discretisation.of(fitted), chosen_device(model.device)
    moments = measure(
        source,
        laid,
        operator,
        plan_sums(source, operator, laid.sizes, fitted.dtype, device=device, lattice=laid.lattice),
        dtype=fitted.dtype,
        device=device,
        snapshot=Snapshot(source),
        description="score",
    )
    if on_lattice(moments) and lattice_of(moments).size > DENSE:
        span = of_functions(moments, lattice_of(moments), functions["right"])
        return score_span(fitted.operator, span, {"right": np.eye(least)}, model.n_components)
    return score_span(fitted.operator, dense(moments), functions, model.n_components)
