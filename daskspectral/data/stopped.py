"""Trajectories stopped when they enter a set: for each row, its state after the lag or when it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import JoinedReader, Reader
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, open_trajectories

Array = NDArray[Any]
Membership = Callable[[Array], Any] | Any
"""Function of rows (c, d) that returns booleans (c,); or booleans (n,), a list of these for several trajectories."""


@dataclass(frozen=True, eq=False)
class _Outcomes(Reader):
    """Outcomes of the rows of a trajectory that are followed by `lag` rows, as in `operators.stopped.Stopped`.

    If `ends`, it is the row in which each stops, or the one after `lag` rows. `sets` are a and b, readers of booleans
    or functions of rows.
    """

    points: Reader
    sets: tuple[Membership, ...]
    lag: int
    ends: bool = False

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.points.shape[0] - self.lag, self.points.shape[1] if self.ends else 6)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.points.dtype if self.ends else np.dtype(float)

    @property
    def edges(self) -> Array:
        return self.points.edges

    def read(self, start: int, stop: int) -> Array:
        x: Any = None
        if self.ends or any(callable(one) for one in self.sets):
            x = self.points.read(start, stop + self.lag)
        a, b = (
            _tested(one, x, name) if callable(one) else one.read(start, stop + self.lag)
            for name, one in zip("ab", self.sets, strict=True)
        )
        count, rows, outside = stop - start, np.arange(len(a)), ~(a | b)
        entry = np.minimum.accumulate(np.where(outside, len(a), rows)[::-1])[::-1]
        elapsed = np.minimum(entry[:count] - rows[:count], self.lag)
        last, began = rows[:count] + elapsed, outside[:count]
        if self.ends:
            return np.asarray(x[last])
        found = [began, began & outside[last], began & b[last], elapsed, a[:count], b[:count]]
        return np.column_stack(found).astype(float)

    def localize(self, start: int, stop: int) -> Reader:
        ends = start, stop + self.lag
        sets = tuple(one if callable(one) else one.localize(*ends) for one in self.sets)
        return replace(self, points=self.points.localize(*ends), sets=sets)


def _tested(function: Callable[[Array], Any], x: Any, name: str) -> Array:
    """Return the booleans of a function of rows; raise ValueError for other values."""
    found = np.asarray(function(x))
    if found.shape != x.shape[:1] or found.dtype != bool:
        raise ValueError(f"{name} must return {len(x)} booleans, got {found.dtype} of shape {found.shape}")
    return found


def open_stopped(
    rows: Rows, lag: int, sets: Sequence[Membership], *, weight: Any = None, progress: bool | None = False
) -> Source:
    """Return a source of the rows of trajectories followed by `lag` rows, for the operator `Stopped`.

    The fields are `stopped`, the row after the lag or the first one in a or b before that, the `outcome`, and the
    `weight` if given; there are no gaps of times. Raises as `open_trajectories`, and TypeError for labels that are not
    booleans and for dask arrays.
    """
    tests = [_nowhere if value is None else value for value in sets]
    given = {name: value for name, value in zip("ab", tests, strict=True) if not callable(value)}
    source = open_trajectories(rows, lag, fields={"weight": weight, **given}, whole=True, progress=progress)
    x = source.readers["x"]
    if not isinstance(x, JoinedReader):
        raise TypeError("trajectories must be numpy or zarr arrays, got dask arrays. Write them by dask.array.to_zarr")
    if any(reader.times is not None and reader.times.behind > 1 for reader in x.readers):
        raise ValueError("time must be the last of sample_dims")
    pairs: list[tuple[Membership, ...]] = [() for _ in x.readers]
    for name, value in zip("ab", tests, strict=True):
        parts_of_set: Sequence[Membership] = [value] * len(pairs)
        if not callable(value):
            labels: Any = source.readers[name]
            if labels.dtype != bool or labels.ndim != 1:
                raise TypeError(
                    f"{name} must be booleans (n,) or a function of rows, got {labels.dtype} of shape {labels.shape}"
                )
            # zarr does not write chunks of the fill value, and most chunks of a set are False
            parts_of_set = [reader.lenient() for reader in labels.readers]
        pairs = [(*pair, one) for pair, one in zip(pairs, parts_of_set, strict=True)]
    parts = [(points, pair, lag) for points, pair in zip(x.readers, pairs, strict=True)]
    readers: dict[str, Reader] = {"x": x}
    for name, ends in {"stopped": True, "outcome": False}.items():
        readers[name] = JoinedReader(tuple(_Outcomes(*part, ends) for part in parts), x.spans)
    if weight is not None:
        readers["weight"] = source.readers["weight"]
    return replace(source, readers=readers, views=("stopped",))


def _nowhere(rows: Array) -> Array:
    return np.zeros(len(rows), bool)
