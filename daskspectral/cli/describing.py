"""What a saved model or saved moments hold, as a few lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from daskspectral.basis import InvariantBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators import (
    DiffusionMap,
    GraphLaplacian,
    HermiteRegressor,
    InvariantRegressor,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)
from daskspectral.estimators.base import Estimator
from daskspectral.moments import Moments
from daskspectral.moments.score import HeldOut
from daskspectral.solve.invariant import InvariantSolver


@singledispatch
def describe(what: Any) -> str:
    """A fitted model or moments as a table in plain text. Raises TypeError for anything else."""
    raise TypeError(f"a fitted model or moments are wanted, not {type(what).__name__}")


@describe.register
def _(what: Estimator) -> str:
    """For an estimator without a table of its own: its parameters and its saved attributes."""
    lines: dict[str, Any] = {"model": what}
    for name in what.fitted_attributes:
        value = getattr(what, name, None)
        lines[name] = f"array {value.shape}" if isinstance(value, np.ndarray) else value
    return "\n".join(_lines(lines))


@describe.register
def _(what: Moments) -> str:
    return "\n".join([*_measured(what), f"moments     {', '.join(what.arrays)}"])


@describe.register
def _(what: SpectralDecomposition) -> str:
    moments: Moments = what.moments_
    values = what.solver_.values
    rank = " and ".join(map(str, what.rank_)) if isinstance(what.rank_, tuple) else what.rank_
    density = moments.operator.estimate
    estimate = {}
    if density is not None:
        centres = f"{len(density.centres)} centres, bandwidth {density.bandwidth:.3g}"
        estimate["density"] = f"{centres}; clipped below for {100 * density.clipped:.2g} % of the rows"
    lines = _lines({**estimate, "rank": rank, "status": what.status_})
    name = values.removesuffix("s_").replace("_", " ")
    return "\n".join([*_measured(moments), *lines, "", *_values(name, getattr(what, values), what.residuals_)])


@describe.register
def _(what: GraphLaplacian) -> str:
    lines = {
        "model": "GraphLaplacian",
        "weights": f"{what.weights_}, {'normalized' if what.normalized else 'not normalized'}",
        "neighbours": "all pairs" if what.n_neighbors is None else what.n_neighbors,
        "basis": f"{what.basis_.description}: {what.basis_.size} functions of {what.n_features_in_} variables",
        "rank": what.rank_,
        "rescaled by": f"{what.factor_:g}",
    }
    return "\n".join([*_lines(lines), "", *_values("eigenvalue", what.eigenvalues_, what.residuals_)])


@describe.register
def _(what: HermiteRegressor) -> str:
    moments: Moments = what.moments_
    gradients = "dirichlet" in moments.arrays
    lines = {
        "gradients": f"weight {what.gradient_weight:g}" if gradients else "none",
        "rank": what.rank_,
        "freedom": f"{what.degrees_of_freedom_:.4g} of {moments.basis.size}",
        "penalty": f"{what.alpha_:g}",
    }
    choice = getattr(what, "choice_", None)
    if choice is not None and choice.chosen is not None:
        lines["chosen"] = f"{choice.chosen.kernel}, best of {len(choice)} on {choice.rows} rows"
    if what.cv_ is not None and what.cv_score_ is not None:
        kind = "of values and gradients explained" if gradients and what.gradient_weight else "R^2"
        folds = moments.folds.number if moments.folds is not None else 0
        lines["held out"] = f"{what.cv_score_:.4g} {kind}, squared error {what.cv_:.4g}, {folds} folds"
    else:
        lines["score"] = f"{what.gcv_:g}, generalised cross-validation"
    return "\n".join([*_measured(moments), *_lines(lines)])


@describe.register
def _(what: InvariantRegressor) -> str:
    basis: InvariantBasis = what.basis_
    harmonics, kept = what.n_eigenfunctions_, int(what.invariant_dimensions_.sum())
    lines: dict[str, Any] = {
        "model": "InvariantRegressor",
        "manifold": what.manifold,
        "group": "none" if what.group is None else what.group,
        "smoothness": f"{what.smoothness:g}",
        "solver": InvariantSolver.named(what.solver).name.replace("_", " "),
        **_rows(what.moments_),
        "functions": f"{kept} invariant ones of {harmonics}",
    }
    if what.alpha_ is not None:
        lines |= {"penalty": f"{what.alpha_:g}", "score": f"{what.gcv_:g}"}
    table = ["level  eigenvalue  functions  invariant      norm"]
    for level, (space, coefficients) in enumerate(zip(basis.harmonic.levels, what.coef_, strict=False)):
        size = f"{space.size:9d}  {what.invariant_dimensions_[level]:9d}"
        table.append(f"{level:5d}  {space.eigenvalue:10.6g}  {size}  {np.linalg.norm(coefficients):8.3g}")
    return "\n".join([*_lines(lines), "", *table])


@describe.register
def _(what: SDPEmbedding) -> str:
    extension, certificate = what.extension_, what.certificate_
    proof = "proved optimal" if certificate.optimal else "not proved optimal"
    proving = f", and {certificate.products} for the certificate" if certificate.products else ""
    lines: dict[str, Any] = {
        "model": "SDPEmbedding",
        "method": _method(what.method_, len(extension.points)),
        "bandwidth": f"{what.bandwidth:g}",
        **_columns(extension.preparation, what.n_features_in_),
    }
    if what.method_ == "lowrank":
        lines["coverage"] = f"{what.coverage_:.6g}, least of a point; 1 where the landmarks span its kernel function"
    lines |= {
        "rank": what.rank_,
        "objective": f"{what.objective_:.10g}",
        "gap": f"{certificate.gap / abs(what.objective_):.1e} of the objective, {proof} to {what.tolerance:g}",
        "passes": f"{what.n_passes_} products with the kernel{proving}",
    }
    return "\n".join([*_lines(lines), "", *_values("eigenvalue", what.spectrum_)])


@describe.register
def _(what: DiffusionMap) -> str:
    lines = {
        "model": "DiffusionMap",
        "method": _method(what.method_, len(what.functions_.points)),
        "bandwidth": f"{what.bandwidth:g}",
        "variables": what.n_features_in_,
        "time": f"{what.time:g}",
        "alpha": f"{what.alpha:g}",
        "functions": "of the symmetric matrix" if what.symmetric else "of the Markov matrix",
        "rank": len(what.spectrum_),
    }
    return "\n".join([*_lines(lines), "", *_values("eigenvalue", what.spectrum_)])


@describe.register
def _(what: KernelEmbedding) -> str:
    certificate = what.certificate_
    proof = "optimal" if certificate.optimal else "not proved optimal"
    lines = {
        "model": "KernelEmbedding",
        "kernel": what.kernel_,
        "points": f"{len(what.embedding_)} of {what.n_features_in_} variables",
        "penalty": f"{what.regularization:g}",
        "range": f"{what.range_} directions",
        "rank": what.rank_,
        "objective": f"{what.objective_:.10g}",
        "gap": f"{certificate.gap / abs(what.objective_):.1e} of the objective, {proof}",
        "diagonal": f"within {certificate.error:.1e}",
        "steps": what.n_passes_,
    }
    return "\n".join([*_lines(lines), "", *_values("eigenvalue", what.spectrum_)])


def describe_score(model: SpectralDecomposition, found: HeldOut) -> str:
    """The score of a model on new rows, and the values of its functions there beside those of the fit."""
    name = model.solver_.values
    fitted = getattr(model, name)[: len(found.values)]
    table = _values(name.removesuffix("s_").replace("_", " "), fitted)
    title, width = f"{found.kind} here", max(12, len(found.kind) + 5)
    new = [f"{title:>{width}}", *(f"{_rounded(value, found.values):{width}.6g}" for value in found.values)]
    pairs = [f"{left}  {right}" for left, right in zip(table, new, strict=True)]
    return "\n".join([*_lines({"score": f"{found.score:.6g}", "rows": found.rows}), "", *pairs])


def _measured(moments: Moments) -> list[str]:
    """What was measured: the operator, the bases, the rows."""
    lines: dict[str, Any] = {"operator": moments.operator}
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            lines[name] = f"{basis.description}: {basis.size} functions of {basis.dimension} variables"
    return _lines(lines | _rows(moments))


def _rows(moments: Moments) -> dict[str, Any]:
    skipped = f", {moments.skipped} invalid ones left out" if moments.skipped else ""
    return {"rows": f"{moments.count}{skipped}", "weight": f"{moments.weight:g}", "arithmetic": moments.dtype}


def _columns(preparation: Preparation, n_features: int) -> dict[str, Any]:
    chosen = preparation.columns
    variables = f"{n_features}" if chosen is None else f"columns {', '.join(map(str, chosen))} of {n_features}"
    return {"variables": variables + (", standardized" if preparation.scale is not None else "")}


def _method(method: str, points: int) -> str:
    return f"exact, all {points} points" if method == "exact" else f"lowrank, {points} landmarks"


def _lines(named: Mapping[str, Any]) -> list[str]:
    return [f"{name:11s} {value}" for name, value in named.items()]


def _values(name: str, values: Any, residuals: Iterable[float] | None = None) -> list[str]:
    """A table of eigenvalues or singular values; values that are rounding are shown as 0."""
    width = max(12, len(name))
    lines = [f"   i  {name:>{width}}" + ("" if residuals is None else "   residual")]
    tails = [""] * len(values) if residuals is None else [f"  {residual:9.1e}" for residual in residuals]
    for i, (value, tail) in enumerate(zip(values, tails, strict=True)):
        lines.append(f"{i:4d}  {_rounded(value, values):{width}.6g}{tail}")
    return lines


def _rounded(value: Any, values: Any) -> Any:
    return 0.0 if abs(value) < 1e-12 * np.nanmax(np.abs(values)) else value
