"""Summaries of embeddings."""

from __future__ import annotations

from typing import Any

from daskspectral.estimators.summary import values_columns


def kernel_matrix(what: Any, points: int) -> dict[str, str]:
    """Return the method and the bandwidth of a model with the kernel of this number of points."""
    named = f", {what.bandwidth}" if isinstance(what.bandwidth, str) else ""
    method = f"exact, all {points} points" if what.method_ == "exact" else f"lowrank, {points} landmarks"
    return {"method": method, "bandwidth": f"{what.bandwidth_:g}{named}"}


def optimal(what: Any) -> str:
    """Return whether the certificate proves an embedding optimal."""
    return "proved optimal" if what.certificate_.optimal else "not proved optimal"


def proved(what: Any, accuracy: str) -> dict[str, Any]:
    """Return the rank, objective and duality gap of an embedding, up to the requested `accuracy`."""
    gap = f"{what.certificate_.gap / abs(what.objective_):.1e} of the objective, {optimal(what)}{accuracy}"
    return {"rank": what.rank_, "objective": f"{what.objective_:.10g}", "gap": gap}


def embedding(what: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a `Summary` of a semidefinite embedding, with its facts."""
    verdict = f"an embedding of rank {what.rank_}, {optimal(what)}"
    return {"verdict": verdict, "facts": facts, "columns": values_columns("eigenvalue", what.spectrum_)}
