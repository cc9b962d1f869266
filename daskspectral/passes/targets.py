"""The origin and the unit of targets, by which their sums keep digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.batches import LARGEST
from daskspectral.data.source import Source
from daskspectral.operators.regression import Regression

Array = NDArray[np.float64]
FIRST, PLACES = 1000, 8  # targets, which tell where all lie, and where such are sought that have weight
OFFSET = 10.0  # standard deviations of their mean from 0
GRID = 8.0  # standard deviations between origins, so that parts of the same data have the same
LARGE = 1e60  # whose squares are far from overflow, and those of 1 over it from underflow


def levelled(operator: Regression, source: Source, *, shifted: bool) -> Regression:
    """Return the operator with the origin and the unit that the first 1000 targets ask for; nearly always 0 and 1.

    Only functions that hold the constant can be `shifted`. Raises ValueError for targets whose squares overflow.
    """
    name = "y" if operator.values else "gradients"
    first = _first(source, name)
    largest = float(np.abs(first).max()) if first.size else 0.0
    if not largest:
        return operator
    if largest > LARGEST:
        raise ValueError(
            f"{name} reaches {largest:.3g}, and its squares overflow: give it in another unit, below {LARGEST:g}"
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


def _first(source: Source, name: str) -> Array:
    """The first finite targets (k, m) of positive weight, from one of a few places in the data."""
    reader, weight = source.readers[name], source.readers.get("weight")
    for start in np.linspace(0, max(0, source.n - FIRST), PLACES).astype(int).tolist():
        stop = min(source.n, start + FIRST)
        found = np.asarray(reader.read(start, stop), dtype=float).reshape(stop - start, -1)
        usable = np.isfinite(found).all(axis=1)
        if weight is not None:
            usable &= np.asarray(weight.read(start, stop)) > 0
        if usable.any():
            break
    return np.asarray(found[usable])


def _origin(values: Array) -> float:
    mean, spread = float(values.mean()), float(values.std())
    if abs(mean) <= OFFSET * spread:
        return 0.0
    if spread <= 1e-15 * abs(mean):  # constant but for rounding
        return mean
    grid = 2.0 ** np.ceil(np.log2(GRID * spread))
    return float(np.round(mean / grid) * grid)
