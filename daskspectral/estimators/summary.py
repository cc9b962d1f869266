"""Summary of a fitted model or of moments: as a line, text, JSON and HTML."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Basis
from daskspectral.estimators.records import WARNINGS
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.operators.density import estimate_of
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.selection import shortened
from daskspectral.registry import Registered
from daskspectral.validation import is_sequence

MEANINGS = {
    "ReliabilityWarning": "results may be unreliable",
    "RankWarning": "there are fewer independent directions than requested",
    "DensityWarning": "regions of low density dominate",
    "ManifoldWarning": "rows lie off the manifold",
    "FitWarning": "the fit explains little",
    "WeightWarning": "weights may not count rows as intended",
}
PUBLIC = ("classes_", "coef_", "certificate_")
"""Attributes that follow from the saved ones."""
DETAILED = ("residual",)
LONGEST = 1000  # most entries of an array, or characters of a text, in JSON
_UNSET = re.compile(r"\b\w+=None, |(?:, )?\b\w+=None")  # parameters that are None


@dataclass(frozen=True)
class Summary:
    """Summary of a fit: result, reliability, warnings, and numbers by name.

    `verdict` is one or two sentences. `warnings` are pairs of a meaning and a text, None if unknown (a model of an
    earlier version). `columns` are those of the table of values, each with its title first. `details`, the `DETAILED`
    columns and the table of the `choice` are shown on request. `numbers` are attributes of the model, for `json`.
    """

    title: str
    verdict: str
    warnings: Sequence[tuple[str, str]] | None
    figures: Mapping[str, str]
    facts: Mapping[str, str]
    details: Mapping[str, str]
    columns: Sequence[Sequence[str]]
    choice: str
    numbers: Mapping[str, Any] = field(repr=False)

    @property
    def line(self) -> str:
        return f"{self.title}: {self.verdict}"

    def table(self, *, details: bool = False) -> list[list[str]]:
        """Return the rows of the table, titles first; no rows for a model without values."""
        columns = [column for column in self.columns if details or column[0] not in DETAILED]
        return [list(row) for row in zip(*columns, strict=True)]

    def text(self, *, details: bool = False) -> str:
        """Return the summary for a terminal; `details` adds ranks, residuals and candidates."""
        named = {**self.facts, **self.details} if details else self.facts
        lines = [self.title, self.verdict, *(f"- {text}." for _, text in self.warnings or ()), "", *named_lines(named)]
        if self.columns:
            lines += ["", *aligned(self.table(details=details))]
        return "\n".join(lines + (["", self.choice] if details and self.choice else []))

    def json(self) -> dict[str, Any]:
        """Return the verdict, the warnings and the model's attributes for JSON."""
        return {"verdict": self.verdict, "warnings": [text for _, text in self.warnings or ()], **self.numbers}

    def html(self) -> str:
        found: str = environment().get_template("notebook.html").render(head=self)
        return found


def summary_of(what: Any) -> Summary:
    """Return the summary of a fitted estimator or of moments.

    Raises TypeError for other objects, and sklearn's NotFittedError before `fit`.
    """
    if isinstance(what, Moments):
        verdict = "sums for any solver, without a fitted model"
        parts: dict[str, Any] = {
            "verdict": verdict,
            "facts": {**measured_facts(what), "moments": ", ".join(what.arrays)},
        }
        parts["of"] = operator_words(what)
    elif isinstance(what, Registered) and hasattr(what, "_summary_parts"):
        if isinstance(what, BaseEstimator):
            check_is_fitted(what)
        parts = what._summary_parts()
    else:
        raise TypeError(f"a fitted model or moments expected, got {type(what).__name__}.")
    parts = {"details": {}, "columns": [], "of": "", "figures": {}} | parts
    moments, kind, verdict = moments_of(what), type(what).__name__, parts.pop("verdict")
    texts = [str(text).partition(": ") for text in getattr(what, WARNINGS, ())]
    meanings = [
        (MEANINGS.get(category, "a problem was found"), text[:1].upper() + text[1:]) for category, _, text in texts
    ]
    if meanings:
        verdict += f". The fit warns that {', and that '.join(dict(meanings))}"
    choice = getattr(what, "search_results_", None)
    known = {name.removesuffix("_"): plain(value) for name, value in _attributes(what, moments).items()}
    numbers = {name: value for name, value in known.items() if value is not None}
    shown = ("columns", "rank") if moments is None else ("rows", "columns", "functions", "rank")
    figures = {name: " and ".join(map(grouped, np.atleast_1d(numbers[name]))) for name in shown if name in numbers}
    return Summary(
        title=kind + parts.pop("of"),
        verdict=f"{verdict[:1].upper()}{verdict[1:]}.",
        warnings=meanings if hasattr(what, WARNINGS) else None,
        figures=figures | parts.pop("figures"),
        facts={name: str(value) for name, value in parts.pop("facts").items()},
        choice="" if choice is None else choice.text(),
        numbers={"kind": kind, **numbers},
        **parts,
    )


def moments_of(what: Any) -> Moments | None:
    """Return the moments of a fitted model, or moments themselves; otherwise None."""
    found = getattr(what, "moments_", what)
    return found if isinstance(found, Moments) else None


def _attributes(what: Any, moments: Moments | None) -> dict[str, Any]:
    found: dict[str, Any] = {"columns": getattr(what, "n_features_in_", None)}
    if moments is not None:
        numbers = {"rows": moments.count, "skipped": moments.skipped, "weight": float(moments.weight)}
        found = {"operator": repr(moments.operator), **numbers, "dtype": moments.dtype, "functions": moments.basis.size}
        found |= {"columns": moments.basis.dimension, "fingerprint": moments.fingerprint}
        found |= {"short_trajectories": moments.short_trajectories} if of_trajectories(moments.operator) else {}
    if isinstance(what, Moments):
        return found | {"moments": sorted(what.arrays)}
    found |= {name: getattr(what, name, None) for name in what._summary_attributes}
    choice = getattr(what, "search_results_", None)
    return found if choice is None else found | {"chosen": choice.chosen}


# -- facts of several kinds of models ----------------------------------------------------------------------------------


def operator_words(moments: Moments) -> str:
    """Return text such as " of Laplacian()", with the parameters that are set."""
    return f" of {_UNSET.sub('', str(moments.operator))}"


def chosen_facts(what: Any) -> dict[str, str]:
    """Return the result of an automatic choice, if there was one."""
    choice = getattr(what, "search_results_", None)
    if choice is None or choice.chosen is None:
        return {}
    best = choice.chosen
    chosen = shortened(best.kernel) + (f", penalty {best.penalty:g}" if best.penalty is not None else "")
    return {"chosen": f"{chosen}; best of {len(choice)} candidates on {choice.rows} rows"}


def explained(score: float | None, error: float | None = None) -> str:
    """Return the verdict on the share of variance that a regression explains."""
    if score is None:
        return "fitted without folds: the prediction error is unknown"
    spread = "" if error is None else f" ± {error:.1g}"
    return f"R² = {score:.4g}{spread} on held-out rows (1 is exact)"


def measured_facts(moments: Moments) -> dict[str, Any]:
    """Return what was measured: operator, bases and rows."""
    facts: dict[str, Any] = {"operator": shortened(str(moments.operator))}
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            facts[name] = f"{shortened(basis.description)}: {basis.size} functions of {basis.dimension} variables"
    density = estimate_of(moments.operator.density)
    if density is not None:
        centers = f"{len(density.centers)} centers, bandwidth {density.bandwidth:.3g}"
        facts["density"] = f"{centers}; clipped below for {100 * density.clipped:.2g} % of the rows"
    return facts | row_facts(moments)


def row_facts(moments: Moments) -> dict[str, Any]:
    """Return the number of measured rows, their weight, and the precision."""
    skipped = f", {moments.skipped} invalid ones excluded" if moments.skipped else ""
    outside = f", {beyond} outside the box excluded" if (beyond := moments.outside) else ""
    short = f", {few} trajectories shorter than the lag skipped" if (few := moments.short_trajectories) else ""
    return {
        "rows": f"{moments.count}{skipped}{outside}{short}",
        "weight": f"{moments.weight:g}",
        "arithmetic": moments.dtype,
    }


# -- tables and numbers ------------------------------------------------------------------------------------------------


def values_columns(name: str, values: Any) -> list[list[str]]:
    """Return the columns of indices and of values, 0 below rounding error."""
    return [["i", *map(str, range(len(values)))], [name, *(f"{rounded(v, values):.6g}" for v in values)]]


def rounded(value: Any, values: Any) -> Any:
    """Return the value, or 0 if it is below rounding error of the largest of the values."""
    return 0.0 if abs(value) < 1e-12 * np.nanmax(np.abs(values)) else value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of right-aligned cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def named_lines(named: Mapping[str, Any]) -> list[str]:
    """Return a line for each name and value."""
    return [f"{name:11s} {value}" for name, value in named.items()]


def grouped(number: Any) -> str:
    """Return an integer with digits in groups of three."""
    return f"{int(number):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plain(value: Any) -> Any:
    """Return a value for JSON, or None if there is no such form.

    NaN and infinity become null, a complex number a pair, dataclasses mappings.
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
    if is_sequence(value):
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
    """Return the jinja2 Environment of page templates, in which all text is escaped."""
    import jinja2  # needed for pages only

    loader = jinja2.PackageLoader("daskspectral", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    return jinja2.Environment(loader=loader, autoescape=True, **options)
