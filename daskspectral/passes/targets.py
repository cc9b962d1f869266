"""Where the targets of a regression lie and how large they are, so that sums of squares keep their spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.batches import LARGEST
from daskspectral.data.source import Source
from daskspectral.operators.regression import Regression

Array = NDArray[np.floating[Any]]
FIRST = 1000  # rows
FAR = 10.0  # standard deviations of a mean from 0
GRID = 8.0  # standard deviations between origins, so that parts of the same data have the same
LARGE = 1e60  # whose squares are far from overflow, and those of 1 over it from underflow


def levelled(operator: Regression, source: Source, *, shifted: bool) -> Regression:
    """The operator with the origin and the unit that the first 1000 targets ask for; nearly always 0 and 1.

    Only functions that hold the constant can be `shifted`. Raises ValueError for targets whose squares overflow.
    """
    name = "y" if operator.values else "gradients"
    reader = source.readers[name]
    first = np.asarray(reader.read(0, min(FIRST, source.n)), dtype=float).reshape(min(FIRST, source.n), -1)
    first = first[np.isfinite(first).all(axis=1)]
    largest = float(np.abs(first).max()) if first.size else 0.0
    if not largest:
        return operator
    if largest > LARGEST:
        raise ValueError(
            f"{name} reaches {largest:.3g}, and mean squared errors of such targets overflow: give them in another "
            f"unit, below {LARGEST:g}"
        )
    unit = 1.0 if 1 / LARGE < largest < LARGE else float(2.0 ** np.round(np.log2(largest)))
    origin: tuple[float, ...] = ()
    if shifted and operator.values:
        found = [_origin(column / unit) * unit for column in first.T]
        origin = tuple(found) if any(found) else ()
    spread = float(np.abs(first - np.asarray(origin or 0.0)).max())
    if origin and spread and not 1 / LARGE < spread < LARGE:
        unit = float(2.0 ** np.round(np.log2(spread)))
    return replace(operator, origin=origin, unit=unit)


def _origin(values: Array) -> float:
    mean, spread = float(values.mean()), float(values.std())
    if abs(mean) <= FAR * spread:
        return 0.0
    if spread <= 1e-15 * abs(mean):  # constant but for rounding
        return mean
    grid = 2.0 ** np.ceil(np.log2(GRID * spread))
    return float(np.round(mean / grid) * grid)
