"""Readers of whatever container rows come in: numpy, dask, zarr and xarray arrays, paths and URLs."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from dask.base import is_dask_collection
from numpy.typing import NDArray

from daskspectral.data.blocks import checked_blocks
from daskspectral.data.groups import main_array
from daskspectral.data.readers import ArrayReader, Reader, array_name, open_zarr, refuse_group, zarr_reader
from daskspectral.data.tables import is_column, is_frame, matrix, real, refuse_kind, refuse_unfit, vector

Array = NDArray[Any]
DASK_TABLES = ("DataFrame", "Series", "Index")
FILES = ("h5py", "netCDF4", "tables")  # libraries whose arrays are read from a file when they are sliced
_XARRAY_BLOCK = 1 << 24  # bytes of a block of an xarray object that is not chunked


@dataclass(frozen=True, eq=False)
class DaskReader(Reader):
    """A dask array of the user: its blocks are nodes of the run's graph and reach the task as numpy.

    `files` are the zarr arrays that it is read from, where these are known, and `paths` other files.
    """

    array: da.Array
    files: tuple[Reader, ...] = ()
    paths: tuple[str, ...] = ()

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
    def stored(self) -> tuple[Reader, ...]:
        return self.files or self.parts

    @property
    def identity(self) -> dict[str, Any]:
        blocks = self.array.chunks[0]
        digest = hashlib.sha256(repr(blocks).encode()).hexdigest()[:8]
        chunks = f"{len(blocks)} of {max(blocks)} rows at most, {digest}"
        return {**super().identity, "chunks": chunks, "name in dask": self.array.name}


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
            f"{what} must have 2 dimensions, rows and columns; it has shape {reader.shape}. Reshape your data: a "
            f"single column is {what}.reshape(-1, 1), a single row {what}.reshape(1, -1)"
        )
    if len(reader.shape) != 2:
        raise ValueError(f"{what} must have 2 dimensions, rows and columns; it has shape {reader.shape}")
    if 0 in reader.shape:
        none = "sample(s)" if not reader.shape[0] else "feature(s)"
        raise ValueError(f"{what} is empty: 0 {none} (shape={reader.shape}) while a minimum of 1 is required.")
    return reader


def array_like(value: Any) -> tuple[int, Array | None]:
    """The number of columns of points, and the points (n, d) where they are in memory, in no container with labels.

    A data frame or a list comes as an array. Raises ValueError or TypeError as `open_source`.
    """
    reader = points_reader(value, "X")
    plain = isinstance(reader, ArrayReader) and not isinstance(value, xr.DataArray)
    return reader.shape[1], reader.array if plain else None  # type: ignore[attr-defined]


def is_lazy(value: Any) -> bool:
    """Whether rows of this are read when they are used: of a dask or zarr array, a path, a chunked xarray object."""
    return is_dask_collection(value) or isinstance(value, (zarr.Array, zarr.Group, str, os.PathLike))


def _is_table(part: Any) -> bool:
    """Whether this is an array of rows or the path of one, rather than one row."""
    if isinstance(part, (np.ndarray, da.Array, zarr.Array, xr.DataArray)):
        return part.ndim > 1
    if is_frame(part):
        return True
    if isinstance(part, Reader):
        return len(part.shape) > 1
    return isinstance(part, (str, os.PathLike))


def as_reader(value: Any, what: str) -> Reader:
    """A Reader of anything array-like that holds real numbers; `what` names it in errors."""
    reader = reader_of(value, what)
    refuse_kind(reader.dtype, what, objects=isinstance(reader, ArrayReader))
    return ArrayReader(real(reader.array, what)) if reader.dtype.kind == "O" else reader  # type: ignore[attr-defined]


def reader_of(value: Any, what: str) -> Reader:
    """A Reader of anything array-like, of whatever dtype, or the Reader itself; `what` names it in errors."""
    if isinstance(value, Reader):
        reader = value
    elif isinstance(value, (str, os.PathLike)):
        array = open_zarr(value)
        reader = zarr_reader(array, f"{os.fspath(value).rstrip('/')}/{array.path}".rstrip("/"))
    elif isinstance(value, zarr.Array):
        reader = zarr_reader(value)
    elif isinstance(value, zarr.Group):
        name = array_name(value) or what
        reader = zarr_reader(main_array(value) or refuse_group(value, name))
    elif isinstance(value, xr.DataArray):
        reader = _xarray_reader(value, what)
    elif isinstance(value, xr.Dataset):
        raise ValueError(f"{what} is an xarray.Dataset; give one of its variables, {sorted(map(str, value.data_vars))}")
    elif isinstance(value, da.Array):
        reader = DaskReader(_checked_blocks(value, what))
    elif is_frame(value):
        reader = ArrayReader(matrix(value, what))
    elif is_column(value):
        reader = ArrayReader(vector(value))
    else:
        _refuse_fetching(value, what)
        refuse_unfit(value, what)
        if (
            not isinstance(value, np.ndarray)
            and not hasattr(value, "__array__")
            and not isinstance(value, (list, tuple))
        ):
            raise TypeError(
                f"{what} is a {type(value).__name__}; give a numpy, dask, zarr or xarray array, a data frame, or the "
                "path of a zarr array"
            )
        reader = ArrayReader(_numpy(value, what))
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
    elif is_frame(value):
        value = matrix(value, what)
    elif is_column(value):
        value = vector(value)
    else:
        _refuse_fetching(value, what)
        refuse_unfit(value, what)
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
