"""A function of rows, applied to data in any container and returned in a container of the same kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray
from zarr.storage import LocalStore

from daskspectral.data.batches import first_invalid
from daskspectral.data.readers import ZarrReader, refuse_input
from daskspectral.data.source import Source, open_source
from daskspectral.data.writer import create_array, default_chunk_rows, refuse_existing
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.errors import InvalidRowError, renumbered
from daskspectral.moments import NUMBER
from daskspectral.passes.rows import RowFunction

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _MapRows:
    """A row function as a task of the engine, which has checked and prepared the rows."""

    function: RowFunction

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        with renumbered(batch[NUMBER].__getitem__):
            return self.function.of_prepared(batch["x"])


@dataclass(frozen=True, eq=False)
class _LazyRows:
    """A row function on a block of a lazy array, whose rows are not checked yet."""

    function: RowFunction

    def __call__(self, rows: Array, block_info: Any = None) -> Array:
        start = block_info[0]["array-location"][0][0] if block_info else 0
        if not self.function.nan_rows:
            columns = self.function.preparation.columns
            used = rows if columns is None else rows[:, list(columns)]
            bad = first_invalid({"x": used}, None if columns is None else {"x": columns})
            if bad is not None:
                raise InvalidRowError(
                    f"row {start + bad.row} cannot be used: {bad.reason}. With on_invalid='skip' such rows become NaN",
                    start + bad.row,
                )
        with renumbered(lambda k: start + k):
            return self.function(rows)


def apply_rows(
    function: RowFunction,
    x: Any,
    *,
    n_features: int,
    coordinates: Mapping[str, Array],
    out: str | os.PathLike[str] | None,
    overwrite: bool,
    progress: bool | None,
    allow_missing: bool = False,
) -> Any:
    """The values (n, columns) of a function at every row of x (n, n_features).

    numpy gives numpy, a dask array a dask array, an xarray object the same (lazy where x is), with `coordinates`
    (columns,) along its dimension "component"; a zarr array or the path of one gives a lazy dask array. With `out`,
    values are written to a new zarr array at that path or URL, and None is returned.

    Raises ValueError for another number of columns, InvalidRowError for an invalid row unless the function makes
    it NaN, OSError for a missing chunk of a zarr array unless `allow_missing`, and FileExistsError for an `out`
    that exists unless `overwrite`. Lazy results raise when they are computed.
    """
    if out is not None:
        refuse_existing(out, overwrite)
    source = open_source(x).allowing_missing(allow_missing)
    if source.n_features_in != n_features:
        raise ValueError(f"X has {source.n_features_in} columns, and the model was fitted on {n_features}")
    source = replace(source, preparation=function.preparation)
    if out is not None:
        reader = source.readers["x"]
        refuse_input(out, reader.name if isinstance(reader, ZarrReader) else None)
        return _write(function, source, os.fspath(out), overwrite, progress)
    if isinstance(x, xr.DataArray):
        return _xarray(function, x, source, coordinates)
    if isinstance(x, da.Array):
        return _lazy(function, source.dask_fields["x"])
    if isinstance(x, (str, os.PathLike, zarr.Array)):
        reader = source.readers["x"]
        edges = reader.edges
        rows = tuple(np.diff(edges).tolist())
        array = da.from_array(_Slices(reader), chunks=(rows, n_features), asarray=False, meta=np.empty((0, 0)))
        return _lazy(function, array)
    run = Run(source, _plan(source, function), None, "keep" if function.nan_rows else "raise", progress, "transform")
    return run.map(_MapRows(function))


@dataclass(frozen=True, eq=False)
class _Slices:
    """A reader as something that dask can slice."""

    reader: Any
    ndim: int = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.reader.shape)

    @property
    def dtype(self) -> Any:
        return self.reader.dtype

    def __getitem__(self, key: tuple[slice, slice]) -> Array:
        rows, columns = key
        start, stop, _ = rows.indices(self.shape[0])
        block: Array = self.reader.read(start, stop)
        return block[:, columns]


def _lazy(function: RowFunction, x: da.Array) -> da.Array:
    chunks = (x.chunks[0], (function.columns,))
    meta = np.empty((0, 0), function.dtype)
    result: da.Array = da.map_blocks(_LazyRows(function), x, dtype=function.dtype, chunks=chunks, meta=meta)
    return result


def _xarray(function: RowFunction, x: xr.DataArray, source: Source, coordinates: Mapping[str, Array]) -> xr.DataArray:
    rows = x.dims[0]
    if rows == "component":
        raise ValueError("X has rows along a dimension 'component', which the result's columns have: rename it")
    lazy = source.dask_fields.get("x")
    data = _LazyRows(function)(np.asarray(x.data)) if lazy is None else _lazy(function, lazy)
    kept = {name: c for name, c in x.coords.items() if set(c.dims) <= {rows}}
    extra = {name: ("component", values) for name, values in coordinates.items()}
    coords: dict[Any, Any] = {**extra, **kept, "component": np.arange(function.columns)}
    return xr.DataArray(data, dims=(rows, "component"), coords=coords, name="eigenfunction")


def _plan(source: Source, function: RowFunction) -> Any:
    return plan_rows(source, 2000.0 * function.columns, row_bytes=8 * max(source.n_features_in, function.columns))


def _write(function: RowFunction, source: Source, out: str, overwrite: bool, progress: bool | None) -> None:
    """Write to a zarr array with one chunk a task, so that no two tasks write to the same chunk."""
    shape = (source.n, function.columns)
    rows = min(source.n, default_chunk_rows((source.n, max(function.columns, source.n_features_in)), function.dtype))
    if source.dask_fields:
        blocks = open_source(source.dask_fields["x"].rechunk({0: rows}))
        source = replace(blocks, preparation=function.preparation)
    elif len(source.edges) > 2:  # whole chunks of the input, so that each is read once
        chunk = int(source.edges[1])
        rows = chunk * max(1, round(rows / chunk))
    cuts = [*range(0, source.n, rows), source.n]
    plan = Plan(tuple(pairwise(cuts)))
    with create_array(out, shape, function.dtype, chunk_rows=rows, overwrite=overwrite) as array:
        target = str(array.store.root) if isinstance(array.store, LocalStore) else array.store
        run = Run(source, plan, None, "keep" if function.nan_rows else "raise", progress, "transform")
        run.map(_MapRows(function), out=target)


def shaped(result: Any, name: str, shape: tuple[int, ...], dims: tuple[str, ...], coords: Mapping[Any, Any]) -> Any:
    """Rows (n, width) as (n, *shape) in the same container; `name`, `dims` and `coords` are for an xarray object."""
    if not isinstance(result, xr.DataArray):
        return result.reshape(len(result), *shape)
    kept = {key: c for key, c in result.coords.items() if "component" not in (key, *c.dims)}
    data = result.data.reshape(len(result), *shape)
    return xr.DataArray(data, dims=(result.dims[0], *dims[: len(shape)]), coords={**kept, **coords}, name=name)
