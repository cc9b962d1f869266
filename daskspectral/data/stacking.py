"""Labelled arrays of any dimensions stacked to rows and columns (n, d), lazily, and the weights of latitudes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskspectral.data.containers import chunked
from daskspectral.data.layout import Layout
from daskspectral.data.readers import Reader

Array = NDArray[Any]
BLOCK_BYTES = 1 << 26  # of the rows that are read together, where a field's chunks are larger


def _cosine(angles: xr.DataArray) -> xr.DataArray:
    return xr.DataArray(np.clip(np.cos(np.deg2rad(np.asarray(angles.values, float))), 0, None), dims=angles.dims)


def column_weights(arrays: list[xr.DataArray], samples: tuple[Hashable, ...], angles: xr.DataArray) -> Array:
    """sqrt(cos latitude) for each column; 1 for variables without a latitude."""
    found = []
    for array in arrays:
        sizes = {dim: size for dim, size in array.sizes.items() if dim not in samples}
        root = _cosine(angles) ** 0.5
        if not set(angles.dims) <= set(sizes):
            found.append(np.ones(int(np.prod(list(sizes.values()), dtype=int))))
            continue
        full = root.expand_dims({d: n for d, n in sizes.items() if d not in root.dims}).transpose(*sizes)
        found.append(np.asarray(full.values).ravel())
    return np.concatenate(found)


def row_weights(angles: xr.DataArray, samples: tuple[Hashable, ...], sizes: tuple[int, ...], values: Any) -> Any:
    """cos latitude for each row, lazily where the rows are lazy."""
    cosine = _cosine(angles).transpose(*(dim for dim in samples if dim in angles.dims))
    shape = [size if dim in angles.dims else 1 for dim, size in zip(samples, sizes, strict=True)]
    small = np.asarray(cosine.values).reshape(shape)
    if not isinstance(values, da.Array):
        return np.broadcast_to(small, sizes).ravel()
    behind = int(np.prod(sizes[1:], dtype=int))
    first = tuple(rows // behind for rows in values.chunks[0])
    return da.broadcast_to(da.from_array(small, chunks=-1), sizes, chunks=(first, *sizes[1:])).reshape(-1)


def stacked(arrays: list[xr.DataArray], rows: int, *, flat: bool = True) -> Any:
    """The arrays, their first `rows` dimensions stacked and all others, as one array (n, d), dask where one is lazy.

    Unless `flat`, arrays without other dimensions give (n,).
    """
    blocks = [chunked(array) for array in arrays]
    lazy = any(isinstance(block.data, da.Array) for block in blocks)
    n = int(np.prod(arrays[0].shape[:rows], dtype=int))
    shapes = [(n, int(np.prod(b.shape[rows:], dtype=int))) if flat else (n,) for b in blocks]
    if not lazy:
        parts = [np.asanyarray(b.data).reshape(shape) for b, shape in zip(blocks, shapes, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    row_bytes = sum(b.dtype.itemsize * int(np.prod(b.shape[1:], dtype=int)) for b in blocks)
    own = max(max(b.chunks[0]) for b in blocks if b.chunks is not None)
    if own * row_bytes <= BLOCK_BYTES:
        first: Any = next(b.chunks[0] for b in blocks if b.chunks is not None)
    else:
        first = max(1, BLOCK_BYTES // max(1, row_bytes))
    lazies = []
    for block, shape in zip(blocks, shapes, strict=True):
        data = da.asarray(block.data)
        data = data.rechunk({0: first, **dict.fromkeys(range(1, data.ndim), -1)})
        lazies.append(data.reshape(shape))
    return lazies[0] if len(lazies) == 1 else da.concatenate(lazies, axis=1).rechunk({1: -1})


def columns_with_numbers(values: Any, what: str) -> Array | None:
    """Which columns have a number in some row; None where all have. Raises ValueError where none has."""
    lazy = values
    if isinstance(values, Reader):
        first = values.read(0, int(values.edges[1]))
        lazy = lazy_rows(values)
    else:
        first = values.blocks[0].compute() if isinstance(values, da.Array) else values
    found: Array = np.asarray(np.isfinite(first).any(axis=0))
    if not found.all() and isinstance(lazy, da.Array) and lazy.numblocks[0] > 1:
        found |= np.asarray(da.isfinite(lazy.blocks[1:]).any(axis=0).compute())
    if not found.any():
        raise ValueError(
            f"no column of {what} has a number in any row: all {len(found)} are NaN throughout, and nothing is left to "
            "fit. Check the mask that was laid on the data, and their fill values"
        )
    return None if found.all() else found


def lazy_rows(reader: Reader) -> da.Array:
    """The rows of a reader as a dask array, chunk by chunk."""
    chunks = (tuple(np.diff(reader.edges).tolist()), *reader.shape[1:])
    meta = np.empty((0,) * len(reader.shape), reader.dtype)
    array: da.Array = da.from_array(_Slices(reader), chunks=chunks, asarray=False, meta=meta)
    return array


@dataclass(frozen=True, eq=False)
class _Slices:
    """A reader as something that dask can slice."""

    reader: Reader

    @property
    def ndim(self) -> int:
        return len(self.reader.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.reader.shape)

    @property
    def dtype(self) -> Any:
        return self.reader.dtype

    def __getitem__(self, key: Any) -> Array:
        rows, *others = key if isinstance(key, tuple) else (key,)
        start, stop, _ = rows.indices(self.shape[0])
        block: Array = self.reader.read(start, stop)
        return block[(slice(None), *others)]


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of a block that are used, times their factors."""

    kept: Array | None
    factors: Array | None

    def __call__(self, block: Array) -> Array:
        if self.kept is not None:
            block = block[:, self.kept]
        if self.factors is None:
            return block
        dtype = block.dtype if block.dtype.kind == "f" and block.dtype.itemsize >= 4 else float
        return np.asarray(block * self.factors, dtype=dtype)


def chosen_columns(values: Any, layout: Layout, unweighted: bool) -> Any:
    """The columns of a layout, weighted."""
    if layout.kept is None and layout.weights is None:
        return values
    if isinstance(values, Reader):
        values = lazy_rows(values)
    factors = layout.weights
    if factors is not None and unweighted:
        factors = np.where(factors > 0, 1 / np.where(factors > 0, factors, 1), 0)
    columns = _Columns(layout.kept, factors)
    if not isinstance(values, da.Array):
        return columns(np.asarray(values))
    sample = columns(np.empty((0, values.shape[1]), values.dtype))
    chunks = (values.chunks[0], (layout.width,))
    return da.map_blocks(columns, values, token="columns", chunks=chunks, dtype=sample.dtype, meta=sample)
