"""What a fitted model or moments hold, in names and words for people: for the shell, notebooks and reports."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.diffusion import DiffusionMap
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.invariant import InvariantRegressor
from daskspectral.estimators.kernelised import KernelEmbedding
from daskspectral.estimators.sdp import SDPEmbedding
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.estimators.tables import spectrum_columns, values_columns
from daskspectral.moments import Moments
from daskspectral.moments.modes import outside_rows
from daskspectral.passes.selection import shortened
from daskspectral.solve.invariant import InvariantSolver

DEALT = {
    "tasks": "whole tasks dealt in turn",
    "hash": "rows dealt by a hash, copies of a row together",
    "blocks": "contiguous blocks",
    "labels": "rows by their labels",
}


Columns = list[list[str]]


def facts(what: Any, *, details: bool = False) -> dict[str, Any]:
    """What a fitted model or moments are, by name. Raises TypeError for anything else.

    With `details`, a spectral decomposition has its folds, rank, status and effective points too.
    """
    found = _facts(what)
    if isinstance(what, SpectralDecomposition):
        return {**found, **_detailed(what)} if details else {k: shortened(str(v)) for k, v in found.items()}
    return found


def columns(what: Any, *, details: bool = False) -> Columns:
    """The columns of the table of a model's values, each with its title first; none where it has none."""
    if isinstance(what, SpectralDecomposition):
        return spectrum_columns(what, residuals=details)
    if isinstance(what, (SDPEmbedding, DiffusionMap, KernelEmbedding)):
        return values_columns("eigenvalue", what.spectrum_)
    return _levels(what) if isinstance(what, InvariantRegressor) else []


@singledispatch
def _facts(what: Any) -> dict[str, Any]:
    raise TypeError(f"a fitted model or moments are wanted, not {type(what).__name__}")


@_facts.register
def _(what: Estimator) -> dict[str, Any]:
    """For an estimator without facts of its own: its parameters and its saved attributes."""
    lines: dict[str, Any] = {"model": what}
    for name in what.fitted_attributes:
        value = getattr(what, name, None)
        lines[name] = f"array {value.shape}" if isinstance(value, np.ndarray) else value
    return lines


@_facts.register
def _(what: Moments) -> dict[str, Any]:
    return {**_measured(what), "moments": ", ".join(what.arrays)}


@_facts.register
def _(what: SpectralDecomposition) -> dict[str, Any]:
    return _measured(what.moments_)


def _detailed(what: SpectralDecomposition) -> dict[str, Any]:
    moments: Moments = what.moments_
    rank = " and ".join(map(str, what.rank_)) if isinstance(what.rank_, tuple) else what.rank_
    lines: dict[str, Any] = {}
    if moments.folds is not None:
        lines["folds"] = f"{moments.folds.number}, {DEALT[moments.folds.rule]}"
    lines |= {"rank": rank, "status": what.status_}
    for name in ("support_", "right_support_"):
        support = getattr(what, name, None)
        if support is not None:
            least, middle = np.min(support), np.median(support)
            title = name.removesuffix("_").replace("_", " ")
            lines[title] = f"{least:.4g} effective points under a function at least, {middle:.4g} in the median"
    return lines


def chosen(what: SpectralDecomposition) -> str:
    """What the automatic choice took, in one line; empty where there was none."""
    choice = getattr(what, "choice_", None)
    if choice is None or choice.chosen is None:
        return ""
    best = choice.chosen
    parts = [shortened(best.kernel)]
    if best.penalty is not None:
        parts.append(f"penalty {best.penalty:g}")
    return f"{', '.join(parts)}; best of {len(choice)} candidates on {choice.rows} rows"


@_facts.register
def _(what: HermiteRegressor) -> dict[str, Any]:
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
    return {**_measured(moments), **lines}


@_facts.register
def _(what: InvariantRegressor) -> dict[str, Any]:
    basis: InvariantBasis | EquivariantBasis = what.basis_
    kind = "equivariant" if isinstance(basis, EquivariantBasis) else "invariant"
    harmonics, kept = what.n_eigenfunctions_, int(what.invariant_dimensions_.sum())
    lines: dict[str, Any] = {
        "model": "InvariantRegressor",
        "manifold": what.manifold_,
        "group": "none" if what.group is None else what.group,
        "smoothness": f"{what.smoothness_:g}",
        "solver": InvariantSolver.named(what.solver).name.replace("_", " "),
        **_rows(what.moments_),
        "functions": f"{kept} {kind} ones of {harmonics}",
    }
    if isinstance(basis, EquivariantBasis):
        lines |= {"output": f"{basis.representation!r}, {basis.components} components"}
    if what.alpha_ is not None:
        lines |= {"penalty": f"{what.alpha_:g}", "score": f"{what.gcv_:g}"}
    if what.cv_score_ is not None:
        share = "of values and gradients explained" if "dirichlet" in what.moments_.arrays else "R^2"
        lines["held out"] = f"{what.cv_score_:.4g} +- {what.cv_score_error_:.1g} {share}, squared error {what.cv_:.4g}"
    found = what.uniformity_
    if found is not None and not found.uniform:
        lines["sampling"] = f"not uniform: means of functions {found.deviation:.2g}, by chance {found.chance:.2g}"
    return lines


def _levels(what: InvariantRegressor) -> Columns:
    """The eigenspaces: their eigenvalues, how many functions they have, and how large a part of the target."""
    basis = what.basis_
    kind = "equivariant" if isinstance(basis, EquivariantBasis) else "invariant"
    norms = [float(np.linalg.norm(coefficients)) for coefficients in what.coef_]
    levels = range(len(norms))
    return [
        ["level", *map(str, levels)],
        ["eigenvalue", *(f"{basis.manifold.eigenvalue(level):.6g}" for level in levels)],
        ["functions", *(str(basis.multiplicities[level]) for level in levels)],
        [kind, *(str(what.invariant_dimensions_[level]) for level in levels)],
        ["norm".rjust(8), *(f"{norm:.3g}" for norm in norms)],
    ]


@_facts.register
def _(what: SDPEmbedding) -> dict[str, Any]:
    extension, certificate = what.extension_, what.certificate_
    proof = "proved optimal" if certificate.optimal else "not proved optimal"
    proving = f", and {certificate.products} for the certificate" if certificate.products else ""
    lines: dict[str, Any] = {
        "model": "SDPEmbedding",
        "method": _method(what.method_, len(extension.points)),
        "bandwidth": _bandwidth(what),
        **_columns(extension.preparation, what.n_features_in_),
    }
    if what.method_ == "lowrank":
        lines["coverage"] = f"{what.coverage_:.6g}, least of a point; 1 where the landmarks span its kernel function"
        lines["error"] = f"{certificate.approximation:.1e} of the Gram matrix E E^T, estimated"
    others = what.certificates_[1:]
    if others:
        proved = "all proved optimal" if all(c.optimal for c in others) else "not all proved optimal"
        lines["stages"] = f"{len(others)} more of {', '.join(map(str, what.stages_[1:]))} columns, {proved}"
    lines |= {
        "rank": what.rank_,
        "objective": f"{what.objective_:.10g}",
        "gap": f"{certificate.gap / abs(what.objective_):.1e} of the objective, {proof} to {what.tolerance:g}",
        "passes": f"{what.n_passes_} products with the kernel{proving}",
    }
    return lines


def _bandwidth(what: SDPEmbedding | DiffusionMap) -> str:
    return f"{what.bandwidth_:g}" + (f", {what.bandwidth}" if isinstance(what.bandwidth, str) else "")


@_facts.register
def _(what: DiffusionMap) -> dict[str, Any]:
    lines = {
        "model": "DiffusionMap",
        "method": _method(what.method_, len(what.functions_.points)),
        "bandwidth": _bandwidth(what),
        "variables": what.n_features_in_,
        "time": f"{what.time:g}",
        "alpha": f"{what.alpha:g}",
        "functions": "of the symmetric matrix" if what.symmetric else "of the Markov matrix",
        "rank": len(what.spectrum_),
    }
    return lines


@_facts.register
def _(what: KernelEmbedding) -> dict[str, Any]:
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
    return lines


def _measured(moments: Moments) -> dict[str, Any]:
    """What was measured: the operator, the bases, the rows."""
    lines: dict[str, Any] = {"operator": moments.operator}
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            lines[name] = f"{basis.description}: {basis.size} functions of {basis.dimension} variables"
    density = moments.operator.estimate
    if density is not None:
        centres = f"{len(density.centres)} centres, bandwidth {density.bandwidth:.3g}"
        lines["density"] = f"{centres}; clipped below for {100 * density.clipped:.2g} % of the rows"
    return lines | _rows(moments)


def _rows(moments: Moments) -> dict[str, Any]:
    skipped = f", {moments.skipped} invalid ones left out" if moments.skipped else ""
    outside = f", {beyond} outside the box left out" if (beyond := outside_rows(moments)) else ""
    return {"rows": f"{moments.count}{skipped}{outside}", "weight": f"{moments.weight:g}", "arithmetic": moments.dtype}


def _columns(preparation: Preparation, n_features: int) -> dict[str, Any]:
    chosen = preparation.columns
    variables = f"{n_features}" if chosen is None else f"columns {', '.join(map(str, chosen))} of {n_features}"
    return {"variables": variables + (", standardized" if preparation.scale is not None else "")}


def _method(method: str, points: int) -> str:
    return f"exact, all {points} points" if method == "exact" else f"lowrank, {points} landmarks"
