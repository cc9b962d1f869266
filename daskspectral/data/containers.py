"""Readers of rows or labels in arrays, data frames, xarray objects, paths and URLs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import is_dask_collection
from numpy.typing import NDArray

from daskspectral.data.columns import ColumnSelection
from daskspectral.data.frames import frame_reader, is_column, is_frame, matrix, real, refuse_kind, vector
from daskspectral.data.readers import ArrayReader, DaskReader, Reader, zarr_reader
from daskspectral.validation import is_dask_array, is_data_array, is_path, is_sequence, loaded

if TYPE_CHECKING:
    import dask.array as da
    import xarray as xr

Array = NDArray[Any]


def _dask_reader(array: da.Array, what: str) -> DaskReader:
    """Return a reader of a dask array in blocks of whole rows, with checked shapes and dtypes.

    Masked entries become NaN, masked integers float64. Raises ValueError for blocks of unknown size; a block raises
    ValueError for another shape, and TypeError for another dtype than the declared one.
    """
    import dask.array as da

    if any(np.isnan(c) for axis in array.chunks for c in axis):
        raise ValueError(f"{what} must have blocks of known size. Call {what}.compute_chunk_sizes()")
    dtype = np.dtype(array.dtype)
    if isinstance(array._meta, np.ma.MaskedArray) and dtype.kind in "iub":
        dtype = np.dtype(float)
    meta = np.empty((0,) * array.ndim, dtype)
    checked = da.map_blocks(_checked, array, what=what, promised=dtype, token="checked", dtype=dtype, meta=meta)
    cut = [axis for axis in range(1, array.ndim) if len(array.chunks[axis]) > 1]
    return DaskReader(checked.rechunk(dict.fromkeys(cut, -1)), tiles=checked if cut == [1] else None)


def _checked(block: Any, what: str, promised: np.dtype[Any], block_info: Any = None) -> Array:
    """Return a block as numpy, checked; `block_info` is its position from dask."""
    values, dtype, place = np.asanyarray(block), promised, block_info[0]
    spans, index = place["array-location"], tuple(map(int, place["chunk-location"]))
    shape = tuple(int(stop - start) for start, stop in spans)
    rows = f" (rows {spans[0][0]} to {spans[0][1]})" if spans else ""
    place = f"block {index} of the dask array {what}{rows}"
    if values.shape != shape:
        raise ValueError(f"{place} must have shape {shape}, got {values.shape}. Pass chunks= to map_blocks")
    if dtype.kind not in "fiub":  # labels, of any length
        return np.asarray(values)
    if values.dtype.kind not in "fiub" or not np.can_cast(values.dtype, dtype, "same_kind"):
        raise TypeError(f"{place} must have dtype {dtype}, got {values.dtype}. Pass dtype= to map_blocks")
    if not np.ma.is_masked(values):
        return np.asarray(values, dtype=dtype)
    if dtype.kind != "f":
        raise TypeError(f"{place} has masked integers, which cannot be NaN. Convert them by .astype('float64')")
    return np.asarray(values.astype(dtype).filled(np.nan))


def is_sparse(value: Any) -> bool:
    """Return whether this is a sparse matrix or array, such as those of scipy."""
    return hasattr(value, "tocsr") and hasattr(value, "toarray")


ROUNDING = 1e-8  # relative asymmetry of a symmetric matrix
FILES = ("h5py", "netCDF4", "tables")  # libraries whose arrays read a file when they are sliced
_XARRAY_BLOCK = 1 << 24  # bytes of a block of an xarray object without chunks


def points_reader(value: Any, what: str) -> Reader:
    """Return a reader of points (n, d); raise ValueError for other shapes and lists of arrays."""
    if is_sequence(value) and any(map(_is_table, value)):
        raise ValueError(f"{what} must be one array of rows, got {len(value)}. Join them by numpy.concatenate")
    reader = as_reader(value, what)
    if len(reader.shape) != 2:
        raise ValueError(
            f"{what} must have 2 dimensions, got the shape {reader.shape}. Reshape your data: {what}.reshape(-1, 1), "
            f"or {what}.reshape(1, -1)"
        )
    if 0 in reader.shape:
        none = "sample(s)" if not reader.shape[0] else "feature(s)"
        raise ValueError(f"{what} is empty: 0 {none} (shape={reader.shape}) while a minimum of 1 is required.")
    return reader


def named_reader(value: Any, what: str, wanted: ColumnSelection) -> Any:
    """Return a reader of the requested columns of named data, else the value."""
    if is_frame(value):
        return frame_reader(value, what, wanted)
    if not isinstance(value, (Reader, str, os.PathLike, loaded("zarr.Array", "zarr.Group"))):
        if wanted.asked:
            wanted.places(None, points_reader(value, what).shape[1], what)
        return value
    reader = as_reader(value, what)
    if reader.ndim != 2:
        return reader
    return reader.columns_at(wanted.places(reader.column_names, reader.shape[1], what))


def is_symmetric(value: Any) -> bool:
    """Return whether rows in memory, dense or sparse, are a symmetric matrix (n, n), n > 2."""
    values = value.array if isinstance(value, ArrayReader) else value
    values = values.tocsr() if is_sparse(values) else values
    if not (is_sparse(values) or isinstance(values, np.ndarray)) or values.dtype.kind not in "fiub":
        return False
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.shape[0] < 3:
        return False
    for part in (slice(1), slice(None)):  # one row rejects most matrices
        rows, columns = values[part].astype(float), values[:, part].T.astype(float)
        if not abs(rows - columns).max() <= ROUNDING * abs(rows).max():
            return False
    return True


def is_lazy(value: Any) -> bool:
    """Return whether rows are read when they are used: dask, zarr, a path, a chunked xarray object."""
    return is_dask_collection(value) or isinstance(value, (loaded("zarr.Array", "zarr.Group"), str, os.PathLike))


def _is_table(part: Any) -> bool:
    """Return whether this is an array of rows or the path of one, rather than a single row."""
    if isinstance(part, (np.ndarray, Reader, loaded("zarr.Array", "dask.array.Array", "xarray.DataArray"))):
        return bool(part.ndim > 1)
    return is_frame(part) or is_sparse(part) or is_path(part)


def as_reader(value: Any, what: str) -> Reader:
    """Return a reader of array-like real numbers; `what` names them in errors."""
    reader = reader_of(value, what)
    refuse_kind(reader.dtype, what, objects=isinstance(reader, ArrayReader))
    return ArrayReader(real(reader.array, what)) if reader.dtype.kind == "O" else reader  # type: ignore[attr-defined]


def reader_of(value: Any, what: str) -> Reader:
    """Return a reader of array-like data of any dtype; `what` names them in errors."""
    if isinstance(value, Reader):
        return value
    if is_path(value):
        from daskspectral.data.stores import open_zarr, refuse_irregular

        if os.fspath(value).endswith(".npy") and os.path.exists(value):
            refuse_irregular(os.fspath(value))
            try:
                return ArrayReader(np.load(value, mmap_mode="r", allow_pickle=False))
            except ValueError as error:
                raise ValueError(
                    f"{os.fspath(value)} contains no array of numbers, or is truncated: {error}"
                ) from error
        array = open_zarr(value)
        return zarr_reader(array, f"{os.fspath(value).rstrip('/')}/{array.path}".rstrip("/"))
    if isinstance(value, loaded("zarr.Group")):
        from daskspectral.data.stores import array_name, main_array, refuse_group

        value = main_array(value) or refuse_group(value, array_name(value) or what)
    if isinstance(value, loaded("zarr.Array")):
        return zarr_reader(value)
    if isinstance(value, loaded("xarray.Dataset")):
        raise ValueError(
            f"{what} must be one variable, got an xarray.Dataset. Pass one of {sorted(map(str, value.data_vars))}"
        )
    if is_data_array(value):
        value = chunked(value).data
    if is_dask_array(value):
        return _dask_reader(value, what)
    if is_frame(value):
        return frame_reader(value, what, ColumnSelection())
    if is_sparse(value) and value.ndim == 2:
        refuse_kind(value.dtype, what, objects=False)
        matrix = value.tocsr()
        matrix.sum_duplicates()
        return ArrayReader(matrix)
    found = in_memory(value, what)
    if not is_sequence(found) and not hasattr(found, "__array__"):
        raise TypeError(f"{what} must be an array, a data frame or the path of one, got {type(value).__name__}")
    try:
        return ArrayReader(np.asanyarray(found))
    except ValueError as error:
        raise ValueError(f"{what} cannot be converted to an array: {error}") from None


def _refuse_fetching(value: Any, what: str) -> None:
    """Raise TypeError for data outside memory that numpy would load entirely, and for sparse arrays."""
    for part in value if is_sequence(value) else [value]:
        kind, library = type(part).__name__, type(part).__module__.partition(".")[0]
        if is_dask_collection(part):
            give = f"{what}.to_dask_array(lengths=True)"
        elif isinstance(part, loaded("polars.LazyFrame")):
            give = f"{what}.collect()"
        elif is_sparse(part):
            give = f"{what}.toarray()"
        elif library in FILES:
            give = f"dask.array.from_array({what})"
        else:
            continue
        raise TypeError(f"{what} must be in memory, got a {kind} of {library}. Pass {give}")


def in_memory(value: Any, what: str) -> Any:
    """Return values, those of dask arrays computed; raise ValueError for masked entries, TypeError for lazy data."""
    if is_dask_array(value):
        value = value.compute()
    elif is_frame(value):
        return matrix(value, what)
    elif is_column(value):  # of a data frame
        return vector(value)
    _refuse_fetching(value, what)

    parts = value if is_sequence(value) else [value]
    masked = sum(np.ma.count_masked(part) for part in parts if isinstance(part, np.ma.MaskedArray))
    if masked:
        raise ValueError(
            f"{what} has {masked} masked entries. Convert them to NaN by .astype('float64').filled(numpy.nan)"
        )
    return value.data if isinstance(value, np.ma.MaskedArray) else value


def chunked(value: xr.DataArray) -> xr.DataArray:
    """Return an xarray object with chunks, so that files opened without chunks are read lazily."""
    if value.chunks is not None or not value.ndim or value.variable._in_memory:
        return value
    row_bytes = max(1, value.dtype.itemsize * int(np.prod(value.shape[1:])))
    return value.chunk({value.dims[0]: max(1, _XARRAY_BLOCK // row_bytes)})
