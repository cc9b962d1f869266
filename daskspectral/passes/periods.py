"""Periodic columns of X: `periods` of `Landmarks`, and the kernels that are made periodic by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskspectral.data.source import Source, label_of
from daskspectral.kernels import Kernel, Periodic

Periods = tuple[float | None, ...]


def periods_of(periods: Mapping[Any, Any], source: Source, view: str = "x") -> Periods:
    """The period of each prepared column, None for a column without. Raises ValueError for columns that do not exist.

    The numbers in `periods` count the columns of X as given, before `columns` selects; negative ones from the end.
    """
    return by_column(periods, source.width(view), source.preparations[view].columns, label_of(view))


def by_column(periods: Mapping[Any, Any], width: int, chosen: tuple[int, ...] | None, what: str = "X") -> Periods:
    """The same for `what` of so many columns, of which some are chosen."""
    columns = range(width) if chosen is None else chosen
    found: dict[int, float] = {}
    for column, period in periods.items():
        if not -width <= column < width:
            raise ValueError(f"periods names the column {column}, and {what} has {width} columns, 0 to {width - 1}")
        if column % width not in columns:
            raise ValueError(f"periods names the column {column}, which columns={list(columns)} leaves out")
        if column % width in found:
            raise ValueError(f"periods names the column {column % width} twice, from both ends")
        found[column % width] = float(period)
    return tuple(found.get(column) for column in columns)


def periodic(kernel: Kernel, periods: Periods | None, whose: str) -> Kernel:
    """The kernel on columns with these periods. Raises ValueError where it has other periods of its own."""
    if periods is None:
        return kernel
    if not isinstance(kernel, Periodic):
        return Periodic(kernel, periods)
    if tuple(kernel.periods) != periods:
        raise ValueError(
            f"the kernel has the periods {tuple(kernel.periods)}, and {whose} {periods}; give the kernel alone, and it "
            "is made periodic"
        )
    return kernel
