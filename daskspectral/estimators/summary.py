"""One value that says what a fitted model or moments are: as a line, as text, as JSON, and as HTML."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, singledispatch
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Basis, EquivariantBasis, InvariantBasis
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.diffusion import DiffusionMap
from daskspectral.estimators.doubts import WARNINGS
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.invariant import InvariantRegressor
from daskspectral.estimators.kernelised import KernelEmbedding
from daskspectral.estimators.sdp import SDPEmbedding
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.moments.intervals import beyond_constants, trusted_words
from daskspectral.moments.modes import outside_rows
from daskspectral.passes.selection import shortened
from daskspectral.solve.invariant import InvariantSolver
from daskspectral.solvers import Ascent

MEANINGS = {
    "TrustWarning": "the answer may be less than it seems",
    "RankWarning": "there are fewer independent directions than asked for",
    "DensityWarning": "thin places decide",
    "ManifoldWarning": "rows lie off the manifold",
    "FitWarning": "little is explained",
    "WeightWarning": "weights count rows otherwise than meant",
}
DEALT = {
    "tasks": "whole tasks dealt in turn",
    "hash": "rows dealt by a hash, copies of a row together",
    "blocks": "contiguous blocks",
    "labels": "rows by their labels",
}
SPECTRUM = (
    *("standard_errors_", "held_out_", "groups_", "function_errors_", "approximation_", "trusted_", "constants_"),
    *("rank_", "residuals_", "status_", "kernel_"),
)
PUBLIC = ("classes_", "coef_", "certificate_")
"""Attributes that are not saved, but follow from what is."""
LONGEST = 1000  # entries of an array, or characters of a text, in JSON
LOPSIDED = 0.2  # (up - down) / (up + down) of an interval, from which both ends are shown
NAMED = 8  # runs of doubted values that a verdict names
_UNTOLD = re.compile(r"\b\w+=None, |(?:, )?\b\w+=None")  # parameters that say nothing


@dataclass(frozen=True)
class Summary:
    """What was fitted, how far it holds, what the fit warned of, and the numbers, each under its name.

    `verdict` is a sentence or two, `doubts` are pairs of what a warning means and its text, `told` says whether they
    are known (a model of an earlier version does not say), `columns` are those of the table of values, each with its
    title first. `details`, `detailed` columns and the table of the `choice` are for those who ask for more.
    `attributes` are those of the model, which `json` makes plain.
    """

    title: str
    verdict: str
    doubts: Sequence[tuple[str, str]]
    told: bool
    figures: Mapping[str, str]
    facts: Mapping[str, str]
    details: Mapping[str, str]
    columns: Sequence[Sequence[str]]
    detailed: Sequence[Sequence[str]]
    choice: str
    numbers: Mapping[str, Any] = field(repr=False)

    @property
    def line(self) -> str:
        """The model and the verdict in one line."""
        return f"{self.title}: {self.verdict}"

    def table(self, *, details: bool = False) -> list[list[str]]:
        """The rows of the table, titles first; none for a model without values."""
        columns = [*self.columns, *(self.detailed if details else ())]
        return [list(row) for row in zip(*columns, strict=True)]

    def text(self, *, details: bool = False) -> str:
        """The summary for a terminal; with `details` ranks, residuals, effective points and the candidates too."""
        named = {**self.facts, **self.details} if details else self.facts
        lines = [self.title, self.verdict, *(f"- {text}." for _, text in self.doubts), "", *named_lines(named)]
        if self.columns:
            lines += ["", *aligned(self.table(details=details))]
        return "\n".join(lines + (["", self.choice] if details and self.choice else []))

    def json(self) -> dict[str, Any]:
        """The summary as numbers, texts, lists and mappings: the verdict, the doubts, and the model's attributes."""
        return {"verdict": self.verdict, "doubts": [text for _, text in self.doubts], **self.numbers}

    def html(self) -> str:
        """The summary as HTML that stands alone in a notebook's cell; a report begins with the same."""
        found: str = environment().get_template("notebook.html").render(head=self)
        return found


def summary_of(what: Any) -> Summary:
    """The summary of a fitted estimator, or of moments.

    Raises TypeError for anything else, and sklearn's NotFittedError before `fit`.
    """
    if not isinstance(what, (Estimator, Moments)):
        raise TypeError(f"a fitted model or moments are wanted, not {type(what).__name__}")
    if isinstance(what, Estimator):
        check_is_fitted(what)
    moments = moments_of(what)
    own: dict[str, Any] = {"details": {}, "columns": [], "detailed": []} | _own(what)
    kind, verdict = type(what).__name__, own.pop("verdict")
    told = [str(text).partition(": ") for text in getattr(what, WARNINGS, ())]
    doubts = [(MEANINGS.get(category, "something is amiss"), text[:1].upper() + text[1:]) for category, _, text in told]
    if doubts:
        verdict += f". The fit warns that {', and that '.join(dict(doubts))}"
    choice = getattr(what, "choice_", None)
    known = {name.removesuffix("_"): plain(value) for name, value in _attributes(what, moments).items()}
    numbers = {name: value for name, value in known.items() if value is not None}
    shown = ("columns", "rank") if moments is None else ("rows", "columns", "functions", "rank")
    figures = {name: " and ".join(map(grouped, np.atleast_1d(numbers[name]))) for name in shown if name in numbers}
    if isinstance(what, SpectralDecomposition):
        figures["trusted"] = "{} of {}".format(*beyond_constants(what.trusted_, what.constants_))
    title = kind
    if moments is not None and isinstance(what, (SpectralDecomposition, Moments)):
        title += f" of {_UNTOLD.sub('', str(moments.operator))}"
    return Summary(
        title=title,
        verdict=f"{verdict[:1].upper()}{verdict[1:]}.",
        doubts=doubts,
        told=hasattr(what, WARNINGS),
        figures=figures,
        facts={name: str(value) for name, value in own.pop("facts").items()},
        choice="" if choice is None else str(choice),
        numbers={"kind": kind, **numbers},
        **own,
    )


def moments_of(what: Any) -> Moments | None:
    """The moments of a fitted model, or themselves; None for a model that is not solved from moments."""
    found = what if isinstance(what, Moments) else getattr(what, "moments_", None)
    return found if isinstance(found, Moments) else None


def intervals_of(model: SpectralDecomposition) -> Any:
    """The 95 % intervals (k, 2) of the values; None without error bars."""
    found = getattr(model, model.solver_.errors, None)
    return None if found is None or np.isnan(found).all() else found


def _attributes(what: Any, moments: Moments | None) -> dict[str, Any]:
    found: dict[str, Any] = {"columns": getattr(what, "n_features_in_", None)}
    if moments is not None:
        numbers = {"rows": moments.count, "skipped": moments.skipped, "weight": float(moments.weight)}
        found = {"operator": repr(moments.operator), **numbers, "dtype": moments.dtype, "functions": moments.basis.size}
        found |= {"columns": moments.basis.dimension, "fingerprint": moments.fingerprint}
    if isinstance(what, Moments):
        return found | {"moments": sorted(what.arrays)}
    names = (*(name for name in what.fitted_attributes if not name.startswith("_")), *PUBLIC)
    if isinstance(what, SpectralDecomposition):
        names = (what.solver_.values, what.solver_.errors, *SPECTRUM)
    found |= {name: getattr(what, name, None) for name in names}
    choice = getattr(what, "choice_", None)
    return found if choice is None else found | {"chosen": choice.chosen}


# -- what each kind of model says of itself ----------------------------------------------------------------------------


@singledispatch
def _own(what: Any) -> dict[str, Any]:
    """The verdict, facts and columns of a model; by default its saved attributes."""
    found = {name: getattr(what, name, None) for name in what.fitted_attributes}
    shown = {name: f"array {v.shape}" if isinstance(v, np.ndarray) else v for name, v in found.items()}
    return {"verdict": "fitted", "facts": {"model": BaseEstimator.__repr__(what), **shown}}


@_own.register
def _(what: Moments) -> dict[str, Any]:
    verdict = "sums that any solver can take; no model has been made of them here"
    return {"verdict": verdict, "facts": {**_measured(what), "moments": ", ".join(what.arrays)}}


@_own.register
def _(what: SpectralDecomposition) -> dict[str, Any]:
    moments: Moments = what.moments_
    details: dict[str, Any] = {}
    if moments.folds is not None:
        details["folds"] = f"{moments.folds.number}, {DEALT[moments.folds.rule]}"
    details |= {"rank": " and ".join(map(str, np.atleast_1d(what.rank_))), "status": what.status_}
    for name in ("support_", "right_support_"):
        support = getattr(what, name, None)
        if support is not None:
            least, middle = np.min(support), np.median(support)
            title = name.removesuffix("_").replace("_", " ")
            details[title] = f"{least:.4g} effective points under a function at least, {middle:.4g} in the median"
    return {
        "verdict": _trust(what),
        "facts": _measured(moments) | _chosen(what),
        "details": details,
        "columns": _spectrum(what),
        "detailed": [["residual", *(f"{r:.1e}" for r in what.residuals_)]],
    }


def _trust(what: SpectralDecomposition) -> str:
    """How many values are trusted, and which are not; or why nothing is known of it."""
    trusted, constants, attribute = what.trusted_, what.constants_, what.solver_.values
    if intervals_of(what) is None:
        name = attribute.removesuffix("_").replace("_", " ")
        which = f"which of the {len(trusted)} {name} to trust" if len(trusted) > 1 else "whether to trust the value"
        return f"no error bars{what.status_.partition('no error bars')[2]}; nothing tells {which}"
    found, count = beyond_constants(trusted, constants)
    words = trusted_words(trusted, constants, attribute)
    return f"{words}; {_named(np.flatnonzero(~trusted))} not" if 0 < found < count else words


def _named(numbers: Any) -> str:
    """Such as "values 1 to 3 and 5 are"."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    parts = [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    parts = parts if len(parts) <= NAMED else [*parts[:NAMED], "others"]
    if len(numbers) == 1:
        return f"value {parts[0]} is"
    return f"values {' and '.join([', '.join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)} are"


def _chosen(what: Any) -> dict[str, str]:
    """What an automatic choice took; nothing where there was none."""
    choice = getattr(what, "choice_", None)
    if choice is None or choice.chosen is None:
        return {}
    best = choice.chosen
    taken = shortened(best.kernel) + (f", penalty {best.penalty:g}" if best.penalty is not None else "")
    return {"chosen": f"{taken}; best of {len(choice)} candidates on {choice.rows} rows"}


@_own.register
def _(what: HermiteRegressor) -> dict[str, Any]:
    moments: Moments = what.moments_
    gradients = "dirichlet" in moments.arrays
    facts = _measured(moments) | {
        "gradients": f"weight {what.gradient_weight:g}" if gradients else "none",
        "rank": what.rank_,
        "freedom": f"{what.degrees_of_freedom_:.4g} of {moments.basis.size}",
        "penalty": f"{what.alpha_:g}",
    }
    facts |= _chosen(what)
    if what.cv_ is not None and what.cv_score_ is not None:
        kind = "of values and gradients explained" if gradients and what.gradient_weight else "R^2"
        folds = moments.folds.number if moments.folds is not None else 0
        facts["held out"] = f"{what.cv_score_:.4g} {kind}, squared error {what.cv_:.4g}, {folds} folds"
    else:
        facts["score"] = f"{what.gcv_:g}, generalised cross-validation"
    return {"verdict": _explained(what.cv_score_), "facts": facts}


@_own.register
def _(what: InvariantRegressor) -> dict[str, Any]:
    basis: InvariantBasis | EquivariantBasis = what.basis_
    kind = "equivariant" if isinstance(basis, EquivariantBasis) else "invariant"
    facts: dict[str, Any] = {
        "manifold": what.manifold_,
        "group": "none" if what.group is None else what.group,
        "smoothness": f"{what.smoothness_:g}",
        "solver": InvariantSolver.named(what.solver).name.replace("_", " "),
        **_rows(what.moments_),
        "functions": f"{int(what.invariant_dimensions_.sum())} {kind} ones of {what.n_eigenfunctions_}",
    }
    if isinstance(basis, EquivariantBasis):
        facts["output"] = f"{basis.representation!r}, {basis.components} components"
    if what.alpha_ is not None:
        facts |= {"penalty": f"{what.alpha_:g}", "score": f"{what.gcv_:g}"}
    if what.cv_score_ is not None:
        share = "of values and gradients explained" if "dirichlet" in what.moments_.arrays else "R^2"
        facts["held out"] = f"{what.cv_score_:.4g} +- {what.cv_score_error_:.1g} {share}, squared error {what.cv_:.4g}"
    sampling = what.uniformity_
    if sampling is not None and not sampling.uniform:
        means = f"means of functions {sampling.deviation:.2g}, by chance {sampling.chance:.2g}"
        facts["sampling"] = f"not uniform: {means}"
    norms = [float(np.linalg.norm(coefficients)) for coefficients in what.coef_]
    levels = range(len(norms))
    columns = [
        ["level", *map(str, levels)],
        ["eigenvalue", *(f"{basis.manifold.eigenvalue(level):.6g}" for level in levels)],
        ["functions", *(str(basis.multiplicities[level]) for level in levels)],
        [kind, *(str(what.invariant_dimensions_[level]) for level in levels)],
        ["norm", *(f"{norm:.3g}" for norm in norms)],
    ]
    return {"verdict": _explained(what.cv_score_, what.cv_score_error_), "facts": facts, "columns": columns}


def _explained(score: float | None, error: float | None = None) -> str:
    if score is None:
        return "fitted without folds: nothing tells how well it predicts"
    spread = "" if error is None else f" ± {error:.1g}"
    return f"it explains {score:.4g}{spread} of the spread of rows that were left out (R²; 1 is all)"


@_own.register
def _(what: SDPEmbedding) -> dict[str, Any]:
    extension, certificate, variables = what.extension_, what.certificate_, str(what.n_features_in_)
    if extension.preparation.columns is not None:
        variables = f"columns {', '.join(map(str, extension.preparation.columns))} of {variables}"
    facts: dict[str, Any] = {
        **_kernel_matrix(what, len(extension.points)),
        "variables": f"{variables}{', standardized' if extension.preparation.scale is not None else ''}",
    }
    if what.method_ == "lowrank":
        facts["coverage"] = f"{what.coverage_:.6g}, least of a point; 1 where the landmarks span its kernel function"
        facts["error"] = f"{certificate.approximation:.1e} of the Gram matrix E E^T, estimated"
    others = what.certificates_[1:]
    if others:
        proved = "all proved optimal" if all(c.optimal for c in others) else "not all proved optimal"
        facts["stages"] = f"{len(others)} more of {', '.join(map(str, what.stages_[1:]))} columns, {proved}"
    products = f", and {certificate.products} for the certificate" if certificate.products else ""
    facts |= _proved(what, f" to {(what.solver or Ascent()).tolerance:g}")
    facts["passes"] = f"{what.n_passes_} products with the kernel{products}"
    return _embedding(what, facts)


@_own.register
def _(what: KernelEmbedding) -> dict[str, Any]:
    facts = {
        "kernel": what.kernel_,
        "points": f"{len(what.embedding_)} of {what.n_features_in_} variables",
        "penalty": f"{what.regularization:g}",
        "range": f"{what.range_} directions",
        **_proved(what, ""),
        "diagonal": f"within {what.certificate_.error:.1e}",
        "steps": what.n_passes_,
    }
    return _embedding(what, facts)


@_own.register
def _(what: DiffusionMap) -> dict[str, Any]:
    facts = {
        **_kernel_matrix(what, len(what.functions_.points)),
        "variables": what.n_features_in_,
        "time": f"{what.time:g}",
        "alpha": f"{what.alpha:g}",
        "functions": "of the symmetric matrix" if what.symmetric else "of the Markov matrix",
        "rank": len(what.spectrum_),
    }
    verdict = f"{len(what.spectrum_)} diffusion coordinates, without error bars"
    return {"verdict": verdict, "facts": facts, "columns": values_columns("eigenvalue", what.spectrum_)}


def _kernel_matrix(what: SDPEmbedding | DiffusionMap, points: int) -> dict[str, str]:
    named = f", {what.bandwidth}" if isinstance(what.bandwidth, str) else ""
    method = f"exact, all {points} points" if what.method_ == "exact" else f"lowrank, {points} landmarks"
    return {"method": method, "bandwidth": f"{what.bandwidth_:g}{named}"}


def _optimal(what: SDPEmbedding | KernelEmbedding) -> str:
    return "proved optimal" if what.certificate_.optimal else "not proved optimal"


def _proved(what: SDPEmbedding | KernelEmbedding, accuracy: str) -> dict[str, Any]:
    gap = f"{what.certificate_.gap / abs(what.objective_):.1e} of the objective, {_optimal(what)}{accuracy}"
    return {"rank": what.rank_, "objective": f"{what.objective_:.10g}", "gap": gap}


def _embedding(what: SDPEmbedding | KernelEmbedding, facts: dict[str, Any]) -> dict[str, Any]:
    verdict = f"an embedding of rank {what.rank_}, {_optimal(what)}"
    return {"verdict": verdict, "facts": facts, "columns": values_columns("eigenvalue", what.spectrum_)}


def _measured(moments: Moments) -> dict[str, Any]:
    """What was measured: the operator, the bases, the rows."""
    facts: dict[str, Any] = {"operator": shortened(str(moments.operator))}
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            facts[name] = f"{shortened(basis.description)}: {basis.size} functions of {basis.dimension} variables"
    density = moments.operator.estimate
    if density is not None:
        centres = f"{len(density.centres)} centres, bandwidth {density.bandwidth:.3g}"
        facts["density"] = f"{centres}; clipped below for {100 * density.clipped:.2g} % of the rows"
    return facts | _rows(moments)


def _rows(moments: Moments) -> dict[str, Any]:
    skipped = f", {moments.skipped} invalid ones left out" if moments.skipped else ""
    outside = f", {beyond} outside the box left out" if (beyond := outside_rows(moments)) else ""
    return {"rows": f"{moments.count}{skipped}{outside}", "weight": f"{moments.weight:g}", "arithmetic": moments.dtype}


# -- tables and numbers ------------------------------------------------------------------------------------------------


def _spectrum(model: SpectralDecomposition) -> list[list[str]]:
    """The values of a model, with half the width of their intervals, held-out values, groups and trust.

    Where the intervals are lopsided, `+-` has the distances of both ends. A group names the first and the last of
    values that the data cannot tell apart. Without error bars there are the values alone.
    """
    name = model.solver_.values
    values = getattr(model, name)
    columns = values_columns(name.removesuffix("s_").replace("_", " "), values)
    intervals = intervals_of(model)
    if intervals is None:
        return columns
    columns.append(["+-", *(_halves(v, ends, values) for v, ends in zip(values.real, intervals, strict=True))])
    if not np.isnan(model.held_out_).all():
        columns.append(["held-out", *(f"{rounded(h, values):.6g}" for h in model.held_out_)])
    if len(np.unique(model.groups_)) < len(values):
        members = [np.flatnonzero(model.groups_ == group) for group in model.groups_]
        columns.append(["group", *(f"{m[0]}-{m[-1]}" if len(m) > 1 else "" for m in members)])
    return [*columns, ["trusted", *("yes" if trusted else "" for trusted in model.trusted_)]]


def _halves(value: float, ends: Any, values: Any) -> str:
    """Half of the interval, or how far down and up it reaches from the value."""
    down, up = (rounded(distance, values) for distance in (value - ends[0], ends[1] - value))
    if np.isnan(down) or np.isnan(up):
        return "-"
    return f"{(up + down) / 2:.2g}" if abs(up - down) <= LOPSIDED * (up + down) else f"-{down:.2g} +{up:.2g}"


def values_columns(name: str, values: Any) -> list[list[str]]:
    """The columns of the indices and of the values; those that are rounding are shown as 0."""
    return [["i", *map(str, range(len(values)))], [name, *(f"{rounded(v, values):.6g}" for v in values)]]


def rounded(value: Any, values: Any) -> Any:
    """The value, or 0 where it is rounding beside the largest of the values."""
    return 0.0 if abs(value) < 1e-12 * np.nanmax(np.abs(values)) else value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells, each column to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def named_lines(named: Mapping[str, Any]) -> list[str]:
    """A line for each value, after its name."""
    return [f"{name:11s} {value}" for name, value in named.items()]


def grouped(number: Any) -> str:
    """A whole number in groups of three digits."""
    return f"{int(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinity as null, a complex number as a pair; None for what has no such form.

    What is made of named parts, such as a certificate, is a mapping of these.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value] if value.size <= LONGEST else {"shape": list(value.shape)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, Moments):
        return None
    if isinstance(value, Basis):
        return {"name": value.description, "functions": value.size, "variables": value.dimension}
    if dataclasses.is_dataclass(value) and not isinstance(value, (Kernel, type)):
        names = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in names}
    text = repr(value)
    return text if len(text) <= LONGEST else None


@cache
def environment() -> Any:
    """The templates of pages, a jinja2 Environment; every text that goes into one is escaped."""
    import jinja2  # only where a page is made

    loader = jinja2.PackageLoader("daskspectral", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    return jinja2.Environment(loader=loader, autoescape=True, **options)
