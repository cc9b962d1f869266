"""Results as zarr groups that plain `xarray.open_zarr` opens: one main array and its coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import LocalStore

from daskspectral.data.door import open_array
from daskspectral.data.groups import MAIN
from daskspectral.data.writer import Location, chunk_shape, create_group, default_chunk_rows, fill_value

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Grid:
    """The sizes of the rows' dimensions, and how many entries of each one chunk holds.

    Chunks are ranges of rows in their order: all entries of the last dimensions, some of one, one of those before.
    """

    sizes: tuple[int, ...]
    chunk: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], rows: int, unit: int = 1) -> Grid:
        """Chunks of about `rows` rows, along the first dimension in multiples of `unit` entries."""
        chunk = list(sizes)
        for axis in range(len(chunk)):
            behind = int(np.prod(sizes[axis + 1 :], dtype=int))
            count = rows // behind
            if count or axis == len(chunk) - 1:
                multiple = unit if axis == 0 else 1
                chunk[axis] = min(sizes[axis], multiple * max(1, round(count / multiple)))
                break
            chunk[axis] = 1
        return cls(tuple(sizes), tuple(chunk))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The rows of each chunk."""
        axis = next((a for a, c in enumerate(self.chunk) if c > 1), len(self.sizes) - 1)
        behind = int(np.prod(self.sizes[axis + 1 :], dtype=int))
        step, whole = self.chunk[axis] * behind, self.sizes[axis] * behind
        before = int(np.prod(self.sizes[:axis], dtype=int))
        cuts = [i * whole + start for i in range(before) for start in range(0, whole, step)]
        return list(pairwise([*cuts, before * whole]))


@dataclass(frozen=True, eq=False)
class GridTarget:
    """The main array of a group as an array of rows (n, width) that tasks write to, each its own chunks."""

    store: Any  # a path, or a picklable zarr store
    name: str
    grid: Grid

    def __setitem__(self, rows: slice, values: Array) -> None:
        array = open_array(self.store, self.name, mode="r+")
        sizes, chunk = self.grid.sizes, self.grid.chunk
        start, stop = rows.start, rows.stop
        axis = next((a for a, c in enumerate(chunk) if c > 1), len(sizes) - 1)
        behind = int(np.prod(sizes[axis + 1 :], dtype=int))
        first = start // behind
        *place, low = np.unravel_index(first, sizes[: axis + 1]) if axis else (first,)
        count = (stop - start) // behind
        region = (*(slice(int(i), int(i) + 1) for i in place), slice(int(low), int(low) + count))
        array[region] = values.reshape(*(1 for _ in place), count, *array.shape[axis + 1 :])


@contextmanager
def create_dataset(
    path: Location,
    name: str,
    template: xr.Dataset,
    dims: Sequence[Hashable],
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    *,
    grid: Grid,
    attributes: Mapping[str, Any],
    overwrite: bool = False,
) -> Iterator[GridTarget]:
    """Create a consolidated zarr v3 group of an array `name` and the coordinates of `template`.

    It takes its place at `path` when the block ends without an error, as `create_array` does, and raises as that does.
    The array has the dimensions `dims`, of which the first are those of the `grid`; `attributes` are the array's, and
    those of the template are the group's. Every chunk is written and ends in a checksum.
    """
    kind = np.dtype(dtype)
    with create_group(path, overwrite=overwrite) as group, warnings.catch_warnings():
        # consolidated metadata and text are not in the specification of v3 yet; zarr and xarray read both silently
        warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        marked = template.assign_attrs({**dict(group.attrs), MAIN: name})  # xarray replaces the attributes of a group
        _storable(marked).to_zarr(group.store, mode="a", consolidated=False, zarr_format=3, write_empty_chunks=True)
        inner, behind = grid.chunk, tuple(max(1, size) for size in shape[len(grid.sizes) :])
        if len(inner) == 1:  # large files are shards, so that a reader of some rows needs little memory
            inner = chunk_shape(tuple(shape), kind, grid.chunk[0])[:1]
        others = sorted(str(k) for k in template.coords if k not in dims)
        group.create_array(
            name,
            shape=tuple(shape),
            dtype=kind,
            chunks=(*inner, *behind),
            shards=None if inner == grid.chunk else (*grid.chunk, *behind),
            compressors=[ZstdCodec(level=1), Crc32cCodec()],
            fill_value=fill_value(kind),
            dimension_names=[str(dim) for dim in dims],
            attributes={**attributes, **({"coordinates": " ".join(others)} if others else {})},
            config={"write_empty_chunks": True},
        )
        store = str(group.store.root) if isinstance(group.store, LocalStore) else group.store
        yield GridTarget(store, name, grid)
        zarr.consolidate_metadata(group.store)


def chunk_rows(n: int, width: int, dtype: npt.DTypeLike) -> int:
    """Rows of a chunk of results, while rows with `width` numbers are read."""
    return min(n, default_chunk_rows((n, width), dtype))


def _storable(template: xr.Dataset) -> xr.Dataset:
    """The coordinates as files hold them: an index of several levels as its levels, categories and text as text.

    Raises ValueError for a coordinate of a type that files do not hold.
    """
    for name, coordinate in template.coords.items():
        kind = coordinate.dtype
        if isinstance(kind, np.dtype):
            continue
        if not str(kind).startswith("category"):
            raise ValueError(
                f"the rows have a coordinate {name!r} of dtype {kind}, which files do not hold: leave it out by "
                f"X.drop_vars({name!r}), or give text or times without a zone in its place, by X.assign_coords"
            )
        values = np.asarray(coordinate.values, dtype=object)
        template = template.assign_coords({name: (coordinate.dims, values, coordinate.attrs)})
    levels = [name for name, index in template.indexes.items() if index.nlevels > 1]
    if levels:
        template = template.reset_index(levels)
    text = {k: c.astype(object) for k, c in template.coords.items() if c.dtype.kind in "UT"}
    plain = template.assign_coords(text).drop_encoding()
    for coordinate in plain.coords.values():
        coordinate.attrs.pop("_FillValue", None)
    return plain
