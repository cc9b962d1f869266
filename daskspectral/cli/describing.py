"""What a saved model or saved moments hold, as a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.summary import chosen, columns, facts
from daskspectral.estimators.tables import aligned, no_errors, rounded, values_columns
from daskspectral.moments.score import SpanScore


def describe(what: Any, *, details: bool = False) -> str:
    """A fitted model or moments as a table in plain text. Raises TypeError for anything else.

    With `details`, a spectral decomposition shows its ranks, residuals and effective points too, and the candidates of
    its automatic choice.
    """
    lines, table = _lines(facts(what, details=details)), columns(what, details=details)
    if table:
        lines += ["", *aligned(table)]
    if isinstance(what, SpectralDecomposition):
        why, taken, choice = no_errors(what), chosen(what), getattr(what, "choice_", None)
        lines += [why] if why else []
        lines += ["", f"chosen: {taken}"] if taken else []
        lines += ["", str(choice)] if details and choice is not None else []
    return "\n".join(lines)


def describe_score(model: SpectralDecomposition, found: SpanScore) -> str:
    """The score of a model on new rows, and the values of its functions there beside those of the fit."""
    name = model.solver_.values
    fitted = getattr(model, name)[: len(found.values)]
    columns = values_columns(name.removesuffix("s_").replace("_", " "), fitted)
    columns.append([f"{found.kind} here", *(f"{rounded(value, found.values):.6g}" for value in found.values)])
    return "\n".join([*_lines({"score": f"{found.score:.6g}", "rows": found.rows}), "", *aligned(columns)])


def _lines(named: Mapping[str, Any]) -> list[str]:
    return [f"{name:11s} {value}" for name, value in named.items()]
