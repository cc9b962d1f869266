"""One value that says what a fitted model or moments are: as a line, as text, as JSON, and as HTML."""

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
    "ReliabilityWarning": "the answer may be less than it seems",
    "RankWarning": "there are fewer independent directions than asked for",
    "DensityWarning": "thin places decide",
    "ManifoldWarning": "rows lie off the manifold",
    "FitWarning": "little is explained",
    "WeightWarning": "weights count rows otherwise than meant",
}
PUBLIC = ("classes_", "coef_", "certificate_")
"""Attributes that are not saved, but follow from what is."""
DETAILED = ("residual",)
LONGEST = 1000  # entries of an array, or characters of a text, in JSON
_UNTOLD = re.compile(r"\b\w+=None, |(?:, )?\b\w+=None")  # parameters that say nothing


@dataclass(frozen=True)
class Summary:
    """What was fitted, how far it holds, what the fit warned of, and the numbers, each under its name.

    `verdict` is a sentence or two, `doubts` are pairs of what a warning means and its text, None where they are not
    known (a model of an earlier version does not say), `columns` are those of the table of values, each with its title
    first. `details`, `DETAILED` columns and the table of the `choice` are for those who ask for more.
    `attributes` are those of the model, which `json` makes plain.
    """

    title: str
    verdict: str
    doubts: Sequence[tuple[str, str]] | None
    figures: Mapping[str, str]
    facts: Mapping[str, str]
    details: Mapping[str, str]
    columns: Sequence[Sequence[str]]
    choice: str
    numbers: Mapping[str, Any] = field(repr=False)

    @property
    def line(self) -> str:
        """The model and the verdict in one line."""
        return f"{self.title}: {self.verdict}"

    def table(self, *, details: bool = False) -> list[list[str]]:
        """The rows of the table, titles first; none for a model without values."""
        columns = [column for column in self.columns if details or column[0] not in DETAILED]
        return [list(row) for row in zip(*columns, strict=True)]

    def text(self, *, details: bool = False) -> str:
        """The summary for a terminal; with `details` ranks, residuals, effective points and the candidates too."""
        named = {**self.facts, **self.details} if details else self.facts
        lines = [self.title, self.verdict, *(f"- {text}." for _, text in self.doubts or ()), "", *named_lines(named)]
        if self.columns:
            lines += ["", *aligned(self.table(details=details))]
        return "\n".join(lines + (["", self.choice] if details and self.choice else []))

    def json(self) -> dict[str, Any]:
        """The summary as numbers, texts, lists and mappings: the verdict, the doubts, and the model's attributes."""
        return {"verdict": self.verdict, "doubts": [text for _, text in self.doubts or ()], **self.numbers}

    def html(self) -> str:
        """The summary as HTML that stands alone in a notebook's cell; a report begins with the same."""
        found: str = environment().get_template("notebook.html").render(head=self)
        return found


def summary_of(what: Any) -> Summary:
    """The summary of a fitted estimator, or of moments.

    Raises TypeError for anything else, and sklearn's NotFittedError before `fit`.
    """
    if isinstance(what, Moments):
        verdict = "sums that any solver can take; no model has been made of them here"
        own: dict[str, Any] = {"verdict": verdict, "facts": {**measured_facts(what), "moments": ", ".join(what.arrays)}}
        own["of"] = operator_words(what)
    elif isinstance(what, Registered) and hasattr(what, "_summary_parts"):
        if isinstance(what, BaseEstimator):
            check_is_fitted(what)
        own = what._summary_parts()
    else:
        raise TypeError(f"a fitted model or moments are wanted, not {type(what).__name__}")
    own = {"details": {}, "columns": [], "of": "", "figures": {}} | own
    moments, kind, verdict = moments_of(what), type(what).__name__, own.pop("verdict")
    told = [str(text).partition(": ") for text in getattr(what, WARNINGS, ())]
    doubts = [(MEANINGS.get(category, "something is amiss"), text[:1].upper() + text[1:]) for category, _, text in told]
    if doubts:
        verdict += f". The fit warns that {', and that '.join(dict(doubts))}"
    choice = getattr(what, "search_results_", None)
    known = {name.removesuffix("_"): plain(value) for name, value in _attributes(what, moments).items()}
    numbers = {name: value for name, value in known.items() if value is not None}
    shown = ("columns", "rank") if moments is None else ("rows", "columns", "functions", "rank")
    figures = {name: " and ".join(map(grouped, np.atleast_1d(numbers[name]))) for name in shown if name in numbers}
    return Summary(
        title=kind + own.pop("of"),
        verdict=f"{verdict[:1].upper()}{verdict[1:]}.",
        doubts=doubts if hasattr(what, WARNINGS) else None,
        figures=figures | own.pop("figures"),
        facts={name: str(value) for name, value in own.pop("facts").items()},
        choice="" if choice is None else choice.text(),
        numbers={"kind": kind, **numbers},
        **own,
    )


def moments_of(what: Any) -> Moments | None:
    """The moments of a fitted model, or themselves; None for a model that is not solved from moments."""
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
    """Such as " of Laplacian()", without parameters that are None."""
    return f" of {_UNTOLD.sub('', str(moments.operator))}"


def chosen_facts(what: Any) -> dict[str, str]:
    """What an automatic choice took; nothing where there was none."""
    choice = getattr(what, "search_results_", None)
    if choice is None or choice.chosen is None:
        return {}
    best = choice.chosen
    taken = shortened(best.kernel) + (f", penalty {best.penalty:g}" if best.penalty is not None else "")
    return {"chosen": f"{taken}; best of {len(choice)} candidates on {choice.rows} rows"}


def explained(score: float | None, error: float | None = None) -> str:
    """How much of the spread a regression explains, as a verdict."""
    if score is None:
        return "fitted without folds: nothing tells how well it predicts"
    spread = "" if error is None else f" ± {error:.1g}"
    return f"it explains {score:.4g}{spread} of the spread of rows that were left out (R²; 1 is all)"


def measured_facts(moments: Moments) -> dict[str, Any]:
    """What was measured: the operator, the bases, the rows."""
    facts: dict[str, Any] = {"operator": shortened(str(moments.operator))}
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            facts[name] = f"{shortened(basis.description)}: {basis.size} functions of {basis.dimension} variables"
    density = estimate_of(moments.operator.density)
    if density is not None:
        centres = f"{len(density.centres)} centres, bandwidth {density.bandwidth:.3g}"
        facts["density"] = f"{centres}; clipped below for {100 * density.clipped:.2g} % of the rows"
    return facts | row_facts(moments)


def row_facts(moments: Moments) -> dict[str, Any]:
    """How many rows were measured, their weight, and the precision."""
    skipped = f", {moments.skipped} invalid ones left out" if moments.skipped else ""
    outside = f", {beyond} outside the box left out" if (beyond := moments.outside) else ""
    short = f", {few} trajectories shorter than the lag skipped" if (few := moments.short_trajectories) else ""
    return {
        "rows": f"{moments.count}{skipped}{outside}{short}",
        "weight": f"{moments.weight:g}",
        "arithmetic": moments.dtype,
    }


# -- tables and numbers ------------------------------------------------------------------------------------------------


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
    """The templates of pages, a jinja2 Environment; every text that goes into one is escaped."""
    import jinja2  # only where a page is made

    loader = jinja2.PackageLoader("daskspectral", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    return jinja2.Environment(loader=loader, autoescape=True, **options)
