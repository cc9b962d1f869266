"""Summaries of embeddings."""

from __future__ import annotations

from typing import Any

from daskspectral.estimators.summary import values_columns


def method_facts(what: Any, points: int) -> dict[str, str]:
    """Return the method, with its number of points, and the bandwidth, as text by name."""
    named = f", {what.bandwidth}" if isinstance(what.bandwidth, str) else ""
    method = f"exact, all {points} points" if what.method_ == "exact" else f"lowrank, {points} landmarks"
    return {"method": method, "bandwidth": f"{what.bandwidth_:g}{named}"}


def optimality(what: Any) -> str:
    """Return "proved optimal" or "not proved optimal"."""
    return "proved optimal" if what.certificate_.optimal else "not proved optimal"


def certificate_facts(what: Any, accuracy: str) -> dict[str, Any]:
    """Return the rank, objective and duality gap, as text by name; `accuracy` is appended."""
    gap = f"{what.certificate_.gap / abs(what.objective_):.1e} of the objective, {optimality(what)}{accuracy}"
    return {"rank": what.rank_, "objective": f"{what.objective_:.10g}", "gap": gap}


def embedding_summary(what: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a `Summary` of a semidefinite embedding, with its facts."""
    verdict = f"an embedding of rank {what.rank_}, {optimality(what)}"
    return {"verdict": verdict, "facts": facts, "columns": values_columns("eigenvalue", what.spectrum_)}
