"""A Source: row-aligned named fields, read together, from numpy, dask, zarr, xarray, a path or a URL."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from daskspectral.data.containers import DaskReader, as_reader, points_reader
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.registry import Registered

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Preparation(Registered):
    """What is done to the columns of x before anything else: selection, then (x - mean) / scale."""

    shapes: ClassVar = {"mean": "d", "scale": "d"}

    columns: tuple[int, ...] | None = None
    mean: Array | None = None
    scale: Array | None = None

    def selected(self, x: Array) -> Array:
        """The columns (c, d) of raw rows (c, n_features_in) that are used."""
        return x if self.columns is None else x[:, list(self.columns)]

    def __call__(self, x: Array) -> Array:
        """Prepared points (c, d) of raw rows (c, n_features_in)."""
        x = self.selected(x)
        if self.mean is not None:
            x = (x - self.mean) / self.scale
        elif x.dtype.kind != "f" or x.dtype.itemsize < 4:
            x = x.astype(float)
        return x

    def inverse(self, points: Array, width: int) -> Array:
        """Raw rows (c, width) whose prepared points are these, 0 in columns that were not selected."""
        if self.mean is not None:
            points = points * self.scale + self.mean
        if self.columns is None:
            return points
        raw = np.zeros((len(points), width))
        raw[:, list(self.columns)] = points
        return raw

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Preparation:
        """The inverse of `state`, also among other entries."""
        return cls(state["columns"], state["mean"], state["scale"])


@dataclass(frozen=True)
class Lagged:
    """Where pairs (x, future) of rows `lag` apart come from: pairs borders[t] to borders[t + 1] from trajectory t."""

    lag: int
    borders: tuple[int, ...]

    def place(self, field: str, pair: int) -> tuple[int, int]:
        """The trajectory, and the row in it, from which a field of this pair is taken."""
        t = bisect.bisect_right(self.borders, pair) - 1
        return t, pair - self.borders[t] + (self.lag if field == "future" else 0)


@dataclass(frozen=True, eq=False)
class Source:
    """n rows of named fields; `x` (n, d) first, others aligned with it.

    `views` are further fields of points in the space of x, prepared as x is; `apart` are fields of points in spaces
    of their own, with their preparations. `by_tasks` tells that its rows will be dealt to folds in whole tasks.
    """

    readers: Mapping[str, Reader]
    preparation: Preparation = field(default_factory=Preparation)
    views: tuple[str, ...] = ()
    apart: Mapping[str, Preparation] = field(default_factory=dict)
    lagged: Lagged | None = None
    by_tasks: bool = False

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.readers["x"].shape[0]

    @property
    def edges(self) -> Array:
        """Chunk borders of x along the rows."""
        return self.readers["x"].edges

    @property
    def rows(self) -> str:
        """How many rows there are, for messages."""
        return f"{self.n} rows" if self.lagged is None else f"{self.n} pairs of rows {self.lagged.lag} apart"

    @property
    def n_features_in(self) -> int:
        """Columns of the raw x."""
        return self.width("x")

    @property
    def dimension(self) -> int:
        """Columns of x after selection."""
        return self.dimension_at("x")

    @property
    def preparations(self) -> dict[str, Preparation]:
        """What is done to each field of points."""
        return {**dict.fromkeys(("x", *self.views), self.preparation), **self.apart}

    @property
    def row_bytes(self) -> int:
        """Bytes of all fields of one row, as float64."""
        return 8 * sum(int(np.prod(r.shape[1:])) for r in self.readers.values())

    @property
    def dask_fields(self) -> dict[str, da.Array]:
        """The fields that are dask arrays."""
        return {k: r.array for k, r in self.readers.items() if isinstance(r, DaskReader)}

    def width(self, view: str) -> int:
        """Columns of the raw points of a view."""
        return self.readers[view].shape[1]

    def dimension_at(self, view: str) -> int:
        """Columns of a view after selection."""
        columns = self.preparations[view].columns
        return self.width(view) if columns is None else len(columns)

    def with_preparation(self, view: str = "x", **changes: Any) -> Source:
        """The same rows with other columns, mean or scale: of x and the views of its space, or of a view apart."""
        if view in self.apart:
            return replace(self, apart={**self.apart, view: replace(self.apart[view], **changes)})
        return replace(self, preparation=replace(self.preparation, **changes))

    def begun_at(self, start: int) -> Source:
        """The same rows, where those from `start` on begin at a block of each dask array."""
        readers = {name: _cut(r, start) if isinstance(r, DaskReader) else r for name, r in self.readers.items()}
        return replace(self, readers=readers)


def _cut(reader: DaskReader, start: int) -> DaskReader:
    array = reader.array
    return replace(reader, array=da.concatenate([array[:start], array[start:]]))


def open_source(
    x: Any,
    *,
    columns: Sequence[int] | None = None,
    views: Mapping[str, Any] | None = None,
    apart: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    **others: Any,
) -> Source:
    """A Source of x (n, d) and further fields of n rows each, of any shape (None ones are left out).

    Fields come in the mapping `fields` or as keywords. `views` are points (n, d) in the space of x, `apart` points
    (n, q) in spaces of their own; `columns` are the columns of x and its views to use. Raises ValueError or TypeError
    where shapes, types or chunks cannot be used, FileNotFoundError for a missing path; nothing is read but metadata.
    """
    views, apart = views or {}, apart or {}
    readers = {"x": points_reader(x, "X")}
    for name, value in {**views, **apart}.items():
        readers[name] = points_reader(value, name)
    width = readers["x"].shape[1]
    for name in views:
        if readers[name].shape[1] != width:
            raise ValueError(
                f"{name} has {readers[name].shape[1]} columns and X has {width}; they are views of the same points"
            )
    for name, value in {**(fields or {}), **others}.items():
        if value is not None:
            readers[name] = as_reader(value, label_of(name))
    check_rows(readers)
    prepared = Preparation(check_columns(columns, width))
    return Source(aligned(readers), prepared, tuple(views), {name: Preparation() for name in apart})


def label_of(name: str) -> str:
    """The name of a field in messages."""
    return {"x": "X", "weight": "sample_weight", "fold": "folds"}.get(name, name)


def check_rows(readers: Mapping[str, Reader], of: str = "") -> None:
    """Raise ValueError unless every field has as many rows as x, and weights and labels one dimension."""
    n = readers["x"].shape[0]
    for name, reader in readers.items():
        label = label_of(name)
        if not reader.shape or reader.shape[0] != n:
            has = f"{reader.shape[0]} rows" if reader.shape else "no rows, being one number,"
            raise ValueError(f"{label}{of} has {has} and X{of} has {n}; they go together row by row")
        if name in ("weight", "fold") and len(reader.shape) != 1:
            raise ValueError(f"{label}{of} must have one dimension, the rows; it has shape {reader.shape}")


def aligned(readers: dict[str, Reader]) -> dict[str, Reader]:
    """Where x or another field is a dask array, the dask fields share the row chunks of the first of them."""
    dask_names = [k for k, r in readers.items() if isinstance(r, DaskReader)]
    if not dask_names:
        return readers
    first = readers[dask_names[0]]
    assert isinstance(first, DaskReader)
    rows = first.array.chunks[0]
    for name, reader in readers.items():
        if isinstance(reader, DaskReader) and reader.array.chunks[0] != rows:
            readers[name] = replace(reader, array=reader.array.rechunk({0: rows}))
        elif name == "x" and isinstance(reader, ArrayReader):
            readers[name] = DaskReader(da.from_array(reader.array, chunks=(rows, -1)))
        elif name == "x" and not isinstance(reader, DaskReader):
            raise TypeError("X is a zarr array and another field a dask array: give X as dask.array.from_zarr(...)")
    return readers


def check_columns(columns: Sequence[int] | None, d: int) -> tuple[int, ...] | None:
    """Column numbers from 0 to d - 1, given from either end. Raises ValueError for anything else."""
    if columns is None:
        return None
    try:
        given = [*columns]
        chosen = [operator.index(c) for c in given if not isinstance(c, (bool, np.bool_))]
    except TypeError:
        given, chosen = [], []
    distinct = {c % d for c in chosen}
    if not given or len(distinct) < len(given) or any(not -d <= c < d for c in chosen):
        raise ValueError(
            f"columns must be a list of distinct numbers of the {d} columns of X, from 0 to {d - 1}; got {columns!r}"
        )
    return tuple(c % d for c in chosen)
