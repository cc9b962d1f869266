"""A Source: row-aligned named fields, read together, from numpy, dask, zarr, xarray, a path or a URL."""

from __future__ import annotations

import bisect
import hashlib
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from dask.base import is_dask_collection
from numpy.typing import NDArray

from daskspectral.data.blocks import checked_blocks
from daskspectral.data.readers import ArrayReader, Reader, array_name, open_zarr, refuse_group, zarr_reader
from daskspectral.registry import Registered

Array = NDArray[Any]
DASK_TABLES = ("DataFrame", "Series", "Index")
FILES = ("h5py", "netCDF4", "tables")  # libraries whose arrays are read from a file when they are sliced
_XARRAY_BLOCK = 1 << 24  # bytes of a block of an xarray object that is not chunked


@dataclass(frozen=True, eq=False)
class DaskReader(Reader):
    """A dask array of the user: its blocks are nodes of the run's graph and reach the task as numpy."""

    array: da.Array

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(int(n) for n in self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def edges(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.array.chunks[0])])

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self.array[start:stop].compute())

    @property
    def identity(self) -> dict[str, Any]:
        blocks = self.array.chunks[0]
        digest = hashlib.sha256(repr(blocks).encode()).hexdigest()[:8]
        chunks = f"{len(blocks)} of {max(blocks)} rows at most, {digest}"
        return {**super().identity, "chunks": chunks, "name in dask": self.array.name}


@dataclass(frozen=True, eq=False)
class Preparation(Registered):
    """What is done to the columns of x before anything else: selection, then (x - mean) / scale."""

    columns: tuple[int, ...] | None = None
    mean: Array | None = None
    scale: Array | None = None

    def __call__(self, x: Array) -> Array:
        """Prepared points (c, d) of raw rows (c, n_features_in)."""
        if self.columns is not None:
            x = x[:, list(self.columns)]
        if self.mean is not None:
            x = (x - self.mean) / self.scale
        elif x.dtype.kind != "f" or x.dtype.itemsize < 4:
            x = x.astype(float)
        return x

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
    of their own, with their preparations.
    """

    readers: Mapping[str, Reader]
    preparation: Preparation = field(default_factory=Preparation)
    views: tuple[str, ...] = ()
    apart: Mapping[str, Preparation] = field(default_factory=dict)
    lagged: Lagged | None = None

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

    def allowing_missing(self, allowed: bool) -> Source:
        """The same rows; where `allowed`, fill values in place of missing chunks are meant."""
        if not allowed:
            return self
        return replace(self, readers={name: reader.allowing_missing() for name, reader in self.readers.items()})

    def width(self, view: str) -> int:
        """Columns of the raw points of a view."""
        return self.readers[view].shape[1]

    def dimension_at(self, view: str) -> int:
        """Columns of a view after selection."""
        columns = self.preparations[view].columns
        return self.width(view) if columns is None else len(columns)

    def head(self, rows: int) -> str:
        """A digest of the points in the first `rows` rows, 1000 at most, the same in whatever container they are."""
        rows, digest = min(1000, rows), hashlib.sha256()
        for view in self.preparations:
            digest.update(np.ascontiguousarray(self.readers[view].read(0, rows), dtype=float).tobytes())
        return f"{rows}:{digest.hexdigest()[:32]}"

    def with_preparation(self, view: str = "x", **changes: Any) -> Source:
        """The same rows with other columns, mean or scale: of x and the views of its space, or of a view apart."""
        if view in self.apart:
            return replace(self, apart={**self.apart, view: replace(self.apart[view], **changes)})
        return replace(self, preparation=replace(self.preparation, **changes))


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


def points_reader(value: Any, what: str) -> Reader:
    """A Reader of points (n, d). Raises ValueError for another shape, for no points, and for a list of arrays."""
    if isinstance(value, (list, tuple)) and any(map(_is_table, value)):
        raise ValueError(
            f"{what} is a {type(value).__name__} of {len(value)} arrays, such as trajectories or views, and one array "
            "of rows is wanted here: call this for each of them, or join their rows by numpy.concatenate"
        )
    reader = as_reader(value, what)
    if len(reader.shape) == 1:
        raise ValueError(
            f"{what} must have 2 dimensions, rows and columns; it has shape {reader.shape}. A single column is "
            f"{what}.reshape(-1, 1), a single row {what}.reshape(1, -1)"
        )
    if len(reader.shape) != 2:
        raise ValueError(f"{what} must have 2 dimensions, rows and columns; it has shape {reader.shape}")
    if 0 in reader.shape:
        raise ValueError(f"{what} is empty: its shape is {reader.shape}")
    return reader


def _is_table(part: Any) -> bool:
    """Whether this is an array of rows or the path of one, rather than one row."""
    if isinstance(part, (np.ndarray, da.Array, zarr.Array, xr.DataArray)):
        return part.ndim > 1
    return isinstance(part, (str, os.PathLike))


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


def as_reader(value: Any, what: str) -> Reader:
    """A Reader of anything array-like; `what` names it in errors."""
    if isinstance(value, (str, os.PathLike)):
        reader = zarr_reader(open_zarr(value), os.fspath(value))
    elif isinstance(value, zarr.Array):
        reader = zarr_reader(value)
    elif isinstance(value, zarr.Group):
        refuse_group(value, array_name(value) or what)
    elif isinstance(value, xr.DataArray):
        reader = _xarray_reader(value, what)
    elif isinstance(value, xr.Dataset):
        raise ValueError(f"{what} is an xarray.Dataset; give one of its variables, {sorted(map(str, value.data_vars))}")
    elif isinstance(value, da.Array):
        reader = DaskReader(_checked_blocks(value, what))
    else:
        _refuse_fetching(value, what)
        if (
            not isinstance(value, np.ndarray)
            and not hasattr(value, "__array__")
            and not isinstance(value, (list, tuple))
        ):
            raise TypeError(
                f"{what} is a {type(value).__name__}; give a numpy, dask, zarr or xarray array, or the path of a zarr "
                "array"
            )
        reader = ArrayReader(_numpy(value, what))
    if reader.dtype.kind not in "fiub":
        raise TypeError(
            f"{what} has dtype {reader.dtype}, and real numbers are wanted; convert it, for instance by "
            ".astype('float64')"
            + (" (or split real and imaginary parts into columns)" if reader.dtype.kind == "c" else "")
        )
    return reader


def _refuse_fetching(value: Any, what: str) -> None:
    """Raise TypeError for data outside memory that numpy would fetch whole."""
    parts = {type(part): part for part in value}.values() if isinstance(value, (list, tuple)) else [value]
    for part in parts:
        kind = type(part).__name__
        library = type(part).__module__.partition(".")[0]
        if is_dask_collection(part):
            library = "dask"
            give = f"{what}.to_dask_array(lengths=True)" if kind in DASK_TABLES else "a dask array"
        elif library in FILES:
            give = f"dask.array.from_array({what}), or convert the file by `daskspectral convert`"
        else:
            continue
        of = "" if part is value else f"{type(value).__name__} of "
        raise TypeError(f"{what} is a {of}{library} {kind}, whose rows would all be fetched into memory; give {give}")


def in_memory(value: Any, what: str) -> Any:
    """What is wanted in memory, rows or an array among the parameters: a dask array's values, else as it is.

    Raises TypeError for rows that are not in memory, and ValueError for masked entries.
    """
    if isinstance(value, da.Array):
        value = value.compute()
    else:
        _refuse_fetching(value, what)
    return _unmasked(value, what)


def _numpy(value: Any, what: str) -> Array:
    try:
        array: Array = np.asanyarray(_unmasked(value, what))
    except ValueError as error:
        raise ValueError(f"{what} cannot be made an array: {error}") from None
    return array


def _unmasked(value: Any, what: str) -> Any:
    """The value without the masks of arrays that mask nothing. Raises ValueError for masked entries."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    masked = sum(np.ma.count_masked(part) for part in parts if isinstance(part, np.ma.MaskedArray))
    if masked:
        raise ValueError(
            f"{what} is a masked array with {masked} masked entries; drop their rows, or make them NaN by "
            ".astype('float64').filled(numpy.nan) and pass on_invalid='skip'"
        )
    return value.data if isinstance(value, np.ma.MaskedArray) else value


def chunked(value: xr.DataArray) -> xr.DataArray:
    """An xarray object whose rows are read when they are used: a file opened without chunks stays on disk."""
    if value.chunks is not None or not value.ndim or value.variable._in_memory:
        return value
    row_bytes = max(1, value.dtype.itemsize * int(np.prod(value.shape[1:])))
    return value.chunk({value.dims[0]: max(1, _XARRAY_BLOCK // row_bytes)})


def _xarray_reader(value: xr.DataArray, what: str) -> Reader:
    data = chunked(value).data
    return DaskReader(_checked_blocks(data, what)) if isinstance(data, da.Array) else ArrayReader(np.asarray(data))


def _checked_blocks(array: da.Array, what: str) -> da.Array:
    if any(np.isnan(c) for axis in array.chunks for c in axis):
        raise ValueError(
            f"{what} is a dask array with blocks of unknown size; call {what}.compute_chunk_sizes() first "
            "(it runs the graph once), or write it with to_zarr"
        )
    array = checked_blocks(array, what)
    if array.ndim > 1 and any(len(axis) > 1 for axis in array.chunks[1:]):
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    return array


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
            readers[name] = DaskReader(reader.array.rechunk({0: rows}))
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
