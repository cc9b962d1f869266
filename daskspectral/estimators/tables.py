"""Values and their error bars as tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from daskspectral.estimators.spectral import SpectralDecomposition

LOPSIDED = 0.2  # (up - down) / (up + down) of an interval, from which both ends are shown
LEAST_WIDTH = 12  # of a column of values
NO_ERRORS = "no error bars"  # how the reason begins in a status


def spectrum_columns(model: SpectralDecomposition, *, residuals: bool = False) -> list[list[str]]:
    """The values of a model, with half the width of their intervals, held-out values, groups and trust.

    Where the intervals are lopsided, `+-` has the distances of both ends. A group names the first and the last of
    values that the data cannot tell apart. Without error bars there are the values alone (`no_errors`).
    """
    name = model.solver_.values
    values = getattr(model, name)
    columns = values_columns(name.removesuffix("s_").replace("_", " "), values)
    intervals = getattr(model, model.solver_.errors, None)
    if intervals is not None and not np.isnan(intervals).all():
        columns.append(["+-", *(_halves(v, ends, values) for v, ends in zip(values.real, intervals, strict=True))])
        if not np.isnan(model.held_out_).all():
            columns.append(["held-out", *(f"{rounded(h, values):.6g}" for h in model.held_out_)])
        if len(np.unique(model.groups_)) < len(values):
            columns.append(["group", *_groups(model.groups_)])
        columns.append(["trusted", *("yes" if trusted else "" for trusted in model.trusted_)])
    if residuals:
        columns.append(["residual", *(f"{r:.1e}" for r in model.residuals_)])
    return columns


def no_errors(model: SpectralDecomposition) -> str:
    """Why a model has no error bars; empty where it has some, and for one that was saved without them."""
    intervals = getattr(model, model.solver_.errors, None)
    return reason_of(model.status_) if intervals is not None and np.isnan(intervals).all() else ""


def values_columns(name: str, values: Any, residuals: Iterable[float] | None = None) -> list[list[str]]:
    """The columns of the indices, of the values, and of residuals; values that are rounding are shown as 0."""
    index = [f"{i:4d}" for i in range(len(values))]
    columns = [["i", *index], [name.rjust(LEAST_WIDTH), *(f"{rounded(v, values):.6g}" for v in values)]]
    return columns if residuals is None else [*columns, ["residual", *(f"{r:.1e}" for r in residuals)]]


def aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells, each column to the right, its title first."""
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def rounded(value: Any, values: Any) -> Any:
    """The value, or 0 where it is rounding beside the largest of the values."""
    return 0.0 if abs(value) < 1e-12 * np.nanmax(np.abs(values)) else value


def reason_of(status: str) -> str:
    """Why a solution has no error bars, as its status says it."""
    _, found, reason = status.partition(NO_ERRORS)
    return found + reason


def _halves(value: float, ends: Any, values: Any) -> str:
    """Half of the interval, or how far down and up it reaches from the value."""
    down, up = (rounded(distance, values) for distance in (value - ends[0], ends[1] - value))
    if np.isnan(down) or np.isnan(up):
        return "-"
    if abs(up - down) <= LOPSIDED * (up + down):
        return f"{(up + down) / 2:.2g}"
    return f"-{down:.2g} +{up:.2g}"


def _groups(groups: Any) -> list[str]:
    found = []
    for group in groups:
        first, *_, last = [*np.flatnonzero(groups == group)] * 2
        found.append(f"{first}-{last}" if last > first else "")
    return found
