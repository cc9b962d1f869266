"""Trajectories that are stopped where they enter a set: for each row, where it is a lag later or when it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import JoinedReader, Reader, ZarrReader
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, open_trajectories

Array = NDArray[Any]
Membership = Callable[[Array], Any] | Any
"""A function of rows (c, d) that gives booleans (c,); or booleans (n,), a list of these for several trajectories."""


@dataclass(frozen=True, eq=False)
class _Tested(Reader):
    """What a function `of` rows says of the rows of `points`."""

    points: Reader
    of: Callable[[Array], Any]
    name: str
    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.points.shape[:1]

    @property
    def edges(self) -> Array:
        return self.points.edges

    def read(self, start: int, stop: int) -> Array:
        found = np.asarray(self.of(self.points.read(start, stop)))
        if found.shape != (stop - start,) or found.dtype != bool:
            raise ValueError(
                f"{self.name} is a function that takes rows (c, d) and gives c booleans; of {stop - start} rows it "
                f"gave {found.dtype} of shape {found.shape}"
            )
        return found

    def localise(self, start: int, stop: int) -> Reader:
        return replace(self, points=self.points.localise(start, stop))


@dataclass(frozen=True, eq=False)
class _Outcomes(Reader):
    """What comes of each row of a trajectory that has `lag` rows behind it: the columns of `Stopped`."""

    points: Reader
    a: Reader
    b: Reader
    lag: int
    dtype = np.dtype(float)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.points.shape[0] - self.lag, 6)

    @property
    def edges(self) -> Array:
        return self.points.edges

    def read(self, start: int, stop: int) -> Array:
        a, b = (reader.read(start, stop + self.lag) for reader in (self.a, self.b))
        count, rows, outside = stop - start, np.arange(len(a)), ~(a | b)
        entry = np.minimum.accumulate(np.where(outside, len(a), rows)[::-1])[::-1]
        elapsed = np.minimum(entry[:count] - rows[:count], self.lag)
        last, began = rows[:count] + elapsed, outside[:count]
        found = [began, began & outside[last], began & b[last], elapsed, a[:count], b[:count]]
        return np.column_stack(found).astype(float)

    def localise(self, start: int, stop: int) -> Reader:
        parts = {name: getattr(self, name).localise(start, stop + self.lag) for name in ("points", "a", "b")}
        return replace(self, **parts)


class _Ends(_Outcomes):
    """The row in which each row of a trajectory stops, or that which follows it by `lag` rows."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (super().shape[0], self.points.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.points.dtype

    def read(self, start: int, stop: int) -> Array:
        elapsed: Array = super().read(start, stop)[:, 3].astype(int)
        return self.points.read(start, stop + self.lag)[np.arange(stop - start) + elapsed]


def open_stopped(
    rows: Rows, lag: int, sets: Sequence[Membership], *, weight: Any = None, progress: bool | None = False
) -> Source:
    """A Source of the rows of trajectories that are followed by `lag` others, for the operator `Stopped`.

    The fields are `stopped`, the row that follows by the lag, or the first one in a or b where that comes before, the
    `outcome`, and the `weight` where it is given. A set None has no rows. Raises as `open_trajectories`, and TypeError
    for labels that are not booleans and for dask arrays.
    """
    tests = [_nowhere if value is None else value for value in sets]
    given = {name: value for name, value in zip("ab", tests, strict=True) if not callable(value)}
    source = open_trajectories(rows, lag, fields={"weight": weight, **given}, progress=progress)
    x = source.readers["x"]
    if not isinstance(x, JoinedReader):
        raise TypeError(
            "rows that follow one another are read together, and dask cuts them into chunks: give trajectories as "
            "numpy arrays, or as zarr arrays (dask's to_zarr)"
        )
    tested: list[list[Reader]] = []
    for name, value in zip("ab", tests, strict=True):
        if callable(value):
            tested.append([_Tested(points, value, name) for points in x.readers])
            continue
        labels: Any = source.readers[name]
        if labels.dtype != bool or labels.ndim != 1:
            raise TypeError(
                f"{name} says of each row whether it is in the set: give booleans (n,), such as x[:, 0] < -1, or a "
                f"function of rows that gives them; it is {labels.dtype} of shape {labels.shape}"
            )
        # zarr leaves out chunks of the fill value, and most chunks of a set are False
        tested.append([replace(r, allow_missing=True) if isinstance(r, ZarrReader) else r for r in labels.readers])
    parts = [(points, a, b, lag) for points, a, b in zip(x.readers, *tested, strict=True)]
    kinds = {"stopped": _Ends, "outcome": _Outcomes}
    joined = {name: JoinedReader(tuple(kind(*part) for part in parts), x.spans) for name, kind in kinds.items()}
    readers: dict[str, Reader] = {"x": x, **joined}
    if weight is not None:
        readers["weight"] = source.readers["weight"]
    return replace(source, readers=readers, views=("stopped",))


def _nowhere(rows: Array) -> Array:
    return np.zeros(len(rows), bool)
