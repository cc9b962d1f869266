"""Trajectories: the pairs of rows a lag apart, x and future, of one array or of several, read where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr

from daskspectral.data.containers import DaskReader, as_reader, points_reader
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.source import Array, Lagged, Preparation, Source, aligned, check_columns, check_rows, label_of


@dataclass(frozen=True, eq=False)
class JoinedReader(Reader):
    """Rows `spans[i]` = (start, stop) of reader i, one after the other; nothing is copied.

    `first` is the global number of the first row.
    """

    readers: tuple[Reader, ...]
    spans: tuple[tuple[int, int], ...]
    first: int = 0

    @cached_property
    def borders(self) -> Array:
        """Global number of the first row of each reader, and of the row after the last."""
        return self.first + np.cumsum([0, *(stop - start for start, stop in self.spans)])

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), *self.readers[0].shape[1:])

    @cached_property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.result_type(*(reader.dtype for reader in self.readers))

    @cached_property
    def edges(self) -> Array:
        inner = [self.borders[:-1]]
        for reader, (start, stop), border in zip(self.readers, self.spans, self.borders.tolist(), strict=False):
            edges = reader.edges
            inner.append(edges[(edges > start) & (edges < stop)] - start + border)
        return np.unique(np.append(np.concatenate(inner), self.borders[-1]))

    @property
    def parts(self) -> tuple[Reader, ...]:
        return self.readers

    @property
    def identity(self) -> dict[str, Any]:
        return {"spans": [list(span) for span in self.spans]}

    def read(self, start: int, stop: int) -> Array:
        pieces = [reader.read(a, b) for reader, a, b in self.within(start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def localise(self, start: int, stop: int) -> Reader:
        held = list(self.within(start, stop))
        readers = tuple(reader.localise(a, b) for reader, a, b in held)
        return JoinedReader(readers, tuple((a, b) for _, a, b in held), start)

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        i = int(np.searchsorted(self.borders, start, "right")) - 1
        while start < stop:
            end = min(stop, int(self.borders[i + 1]))
            offset = self.spans[i][0] - int(self.borders[i])
            if end > start:
                yield self.readers[i], start + offset, end + offset
            start, i = end, i + 1


def open_trajectories(
    x: Any, lag: int, *, columns: Sequence[int] | None = None, fields: Mapping[str, Any] | None = None
) -> Source:
    """A Source of the pairs (x, future) `lag` rows apart within each trajectory, in order.

    x is one trajectory (n, d), an array of any kind, or a list of several; further fields come in the same way, a row
    for each row of x, and a pair has them from the row of its x. No pair has its rows in two trajectories.

    Raises ValueError, TypeError or FileNotFoundError as `open_source` does, and ValueError for a trajectory of no more
    than `lag` rows.
    """
    several = is_several(x)
    given = {name: value for name, value in {"x": x, **(fields or {})}.items() if value is not None}
    count = len(x) if several else 1
    trajectories: list[dict[str, Reader]] = [{} for _ in range(count)]
    for name, value in given.items():
        if several and (not isinstance(value, (list, tuple)) or len(value) != count):
            has = f"{len(value)} of them" if isinstance(value, (list, tuple)) else f"one {type(value).__name__}"
            raise ValueError(f"{label_of(name)} is a list of {count} arrays, one for each trajectory; got {has}")
        for i, part in enumerate(value if several else [value]):
            label = f"{label_of(name)}[{i}]" if several else label_of(name)
            trajectories[i][name] = (points_reader if name == "x" else as_reader)(part, label)
    for i, readers in enumerate(trajectories):
        _check_trajectory(i if several else None, readers, trajectories[0], lag)
    lengths = [readers["x"].shape[0] for readers in trajectories]
    ends, starts = [(0, n - lag) for n in lengths], [(lag, n) for n in lengths]
    lazy = any(isinstance(reader, DaskReader) for readers in trajectories for reader in readers.values())
    joined = {name: _join(name, [readers[name] for readers in trajectories], ends, lazy) for name in given}
    future = _join("x", [readers["x"] for readers in trajectories], starts, lazy)
    borders = np.cumsum([0, *(n - lag for n in lengths)])
    prepared = Preparation(check_columns(columns, trajectories[0]["x"].shape[1]))
    readers = aligned({"x": joined.pop("x"), "future": future, **joined})
    return Source(readers, prepared, ("future",), lagged=Lagged(lag, tuple(borders.tolist())))


def is_several(x: Any) -> bool:
    """Whether this is a list of arrays or paths, rather than one array written as a list of rows."""
    if not isinstance(x, (list, tuple)) or not x:
        return False
    arrays = (np.ndarray, da.Array, zarr.Array, xr.DataArray, Reader, str, os.PathLike)
    return any(isinstance(part, arrays) for part in x) or np.ndim(x[0]) > 1


def _check_trajectory(i: int | None, readers: Mapping[str, Reader], first: Mapping[str, Reader], lag: int) -> None:
    """Raise ValueError where the fields of a trajectory do not go together, or it is too short for a pair."""
    of = "" if i is None else f"[{i}]"
    check_rows(readers, of)
    n, d = readers["x"].shape
    if lag >= n:
        which = "the trajectory X" if i is None else f"trajectory {i}"
        remedy = "take a smaller lag" if i is None else "take a smaller lag, or leave this trajectory out"
        raise ValueError(f"the lag is {lag} rows and {which} has {n}: no two of its rows are so far apart; {remedy}")
    for name, reader in readers.items():
        if reader.shape[1:] != first[name].shape[1:]:
            what = f"{d} columns" if name == "x" else f"rows of shape {reader.shape[1:]}"
            other = f"{first[name].shape[1]}" if name == "x" else f"{first[name].shape[1:]}"
            raise ValueError(
                f"{label_of(name)}{of} has {what} and {label_of(name)}[0] has {other}: all trajectories are of "
                "the same variables; give the ones that they share, in one order"
            )


def _join(name: str, readers: Sequence[Reader], spans: Sequence[tuple[int, int]], lazy: bool) -> Reader:
    """Rows `spans` of several readers as one reader; where there are dask arrays (`lazy`), joined by dask."""
    if not lazy:
        return JoinedReader(tuple(readers), tuple(spans))
    arrays = []
    for i, (reader, (start, stop)) in enumerate(zip(readers, spans, strict=True)):
        if not isinstance(reader, (DaskReader, ArrayReader)):
            raise TypeError(
                f"{label_of(name)}{f'[{i}]' if len(readers) > 1 else ''} is a zarr array and another one a dask array: "
                "give it as dask.array.from_zarr(...)"
            )
        arrays.append(da.asarray(reader.array)[start:stop])
    files = tuple(file for reader in readers if isinstance(reader, DaskReader) for file in reader.files)
    return DaskReader(da.concatenate(arrays), files)
