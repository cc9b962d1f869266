"""Periodic columns of X: the argument `periods` of an estimator, and the kernels that are made periodic by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskspectral.data.source import Source, label_of
from daskspectral.kernels import Kernel, Periodic
from daskspectral.kernels.base import LEAST_SCALE, is_number

Periods = tuple[float | None, ...]


def check_periods(periods: Any) -> None:
    """Raise ValueError or TypeError unless the argument is None or maps numbers of columns to positive lengths."""
    if periods is None:
        return
    if not isinstance(periods, Mapping):
        raise TypeError(
            "periods maps the numbers of columns of X to their periods, such as {0: 2 * numpy.pi}; got "
            f"{type(periods).__name__}"
        )
    if not periods:
        raise ValueError("periods names no column; leave it out, or give {column: period}")
    for column, period in periods.items():
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)):
            raise ValueError(
                f"periods maps the numbers of columns of X to lengths; {column!r} is no number of a column"
            )
        if not is_number(period) or not LEAST_SCALE < period < 1 / LEAST_SCALE:
            raise ValueError(
                f"a period is a positive number in the units of its column; of column {column} it is {period!r}"
            )


def periods_of(periods: Mapping[Any, Any], source: Source, view: str = "x") -> Periods:
    """The period of each prepared column, None for a column without. Raises ValueError for columns that do not exist.

    The numbers in `periods` count the columns of X as given, before `columns` selects; negative ones from the end.
    """
    width, chosen = source.width(view), source.preparations[view].columns
    columns = range(width) if chosen is None else chosen
    found: dict[int, float] = {}
    for column, period in periods.items():
        if not -width <= column < width:
            raise ValueError(
                f"periods names the column {column}, and {label_of(view)} has {width} columns, 0 to {width - 1}"
            )
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
