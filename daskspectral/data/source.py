"""A Source: row-aligned named fields, read together, from numpy, dask, zarr, xarray, a path or a URL."""

from __future__ import annotations

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
from numpy.typing import NDArray

from daskspectral.data.readers import ArrayReader, Reader, array_name, open_zarr, refuse_group, zarr_reader

Array = NDArray[Any]
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
class Preparation:
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

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        columns = None if self.columns is None else list(self.columns)
        return {"columns": columns, "mean": self.mean, "scale": self.scale}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Preparation:
        """The inverse of `state`."""
        columns = state["columns"]
        return cls(None if columns is None else tuple(columns), state["mean"], state["scale"])


@dataclass(frozen=True, eq=False)
class Source:
    """n rows of named fields; `x` (n, d) first, others aligned with it."""

    readers: Mapping[str, Reader]
    preparation: Preparation = field(default_factory=Preparation)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.readers["x"].shape[0]

    @property
    def edges(self) -> Array:
        """Chunk borders of x along the rows."""
        return self.readers["x"].edges

    @property
    def n_features_in(self) -> int:
        """Columns of the raw x."""
        return self.readers["x"].shape[1]

    @property
    def dimension(self) -> int:
        """Columns after selection."""
        columns = self.preparation.columns
        return self.n_features_in if columns is None else len(columns)

    @property
    def dask_fields(self) -> dict[str, da.Array]:
        """The fields that are dask arrays."""
        return {k: r.array for k, r in self.readers.items() if isinstance(r, DaskReader)}

    def allowing_missing(self) -> Source:
        """The same rows, where fill values in place of missing chunks are meant."""
        return replace(self, readers={name: reader.allowing_missing() for name, reader in self.readers.items()})

    def head(self, rows: int) -> str:
        """What tells this array from another by its first rows, whatever holds them: a digest of 1000 at most."""
        rows = min(1000, rows)
        first = np.ascontiguousarray(self.readers["x"].read(0, rows), dtype=float)
        return f"{rows}:{hashlib.sha256(first.tobytes()).hexdigest()[:32]}"

    def with_preparation(self, **changes: Any) -> Source:
        """The same rows with other columns, mean or scale."""
        return replace(self, preparation=replace(self.preparation, **changes))


def open_source(x: Any, *, columns: Sequence[int] | None = None, **fields: Any) -> Source:
    """A Source of x (n, d) and further fields of n rows each (None ones are left out).

    Raises ValueError or TypeError where shapes, types or chunks cannot be used, FileNotFoundError for a missing
    path; nothing is read but metadata.
    """
    reader = as_reader(x, "X")
    if len(reader.shape) == 1:
        raise ValueError(
            f"X must have 2 dimensions, rows and columns; it has shape {reader.shape}. A single column is "
            "X.reshape(-1, 1), a single row X.reshape(1, -1)"
        )
    if len(reader.shape) != 2:
        raise ValueError(f"X must have 2 dimensions, rows and columns; it has shape {reader.shape}")
    if 0 in reader.shape:
        raise ValueError(f"X is empty: its shape is {reader.shape}")
    readers = {"x": reader}
    for name, value in fields.items():
        if value is None:
            continue
        label = "sample_weight" if name == "weight" else name
        other = as_reader(value, label)
        if not other.shape or other.shape[0] != reader.shape[0]:
            has = f"{other.shape[0]} rows" if other.shape else "no rows, being one number,"
            raise ValueError(f"{label} has {has} and X has {reader.shape[0]}; they go together row by row")
        if name == "weight" and len(other.shape) != 1:
            raise ValueError(f"{label} must have one dimension, the rows; it has shape {other.shape}")
        readers[name] = other
    return Source(_aligned(readers), Preparation(_check_columns(columns, reader.shape[1])))


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


def _numpy(value: Any, what: str) -> Array:
    try:
        array: Array = np.asanyarray(value)
    except ValueError as error:
        raise ValueError(f"{what} cannot be made an array: {error}") from None
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise ValueError(
                f"{what} is a masked array with {np.ma.count_masked(array)} masked entries; drop their rows, or make "
                "them NaN by .astype('float64').filled(numpy.nan) and pass on_invalid='skip'"
            )
        array = np.asarray(array.data)
    return array


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
    if array.ndim > 1 and any(len(axis) > 1 for axis in array.chunks[1:]):
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    return array


def _aligned(readers: dict[str, Reader]) -> dict[str, Reader]:
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


def _check_columns(columns: Sequence[int] | None, d: int) -> tuple[int, ...] | None:
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
