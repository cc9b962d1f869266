"""Atomic output of files, arrays, groups and datasets."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from daskspectral.data.folders import LOCK, Folder, folder_at, locked, room_at
from daskspectral.data.remote import Location, attributes_in_force, connect, local_path, reaching
from daskspectral.errors import printable
from daskspectral.validation import check_integer

if TYPE_CHECKING:
    import xarray as xr
    import zarr

_CHUNK_BYTES = 32_000_000
_INNER_BYTES = 1 << 20

Lengths = tuple[int, ...]
Node = TypeVar("Node")


@contextmanager
def create_array(
    path: Location,
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    *,
    chunk_rows: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Iterator[zarr.Array[Any]]:
    """Yield a new zarr v3 array, which appears at `path` when the block ends without an error.

    The array that is yielded is at a hidden staging path: open `path` again to read it. A file contains `chunk_rows`
    rows (default: 16 to 32 MB) and all columns, in inner chunks of up to 1 MB, with zstd and a crc32c checksum; chunks
    that equal the fill value (NaN) are written too. After an error an existing target is unchanged. At a URL chunks are
    written in place, and the metadata last; a store that is replaced there is deleted when writing starts. The next run
    replaces remains of a killed run.

    Raises FileExistsError if `path` exists, unless it is a zarr store and `overwrite`, FileNotFoundError or
    PermissionError for a directory or bucket that is missing or not writable, ValueError for chunk_rows < 1, and
    OSError, which names `path`, if the disk is full or another run is writing to it.
    """
    kind, lengths = np.dtype(dtype), tuple(int(length) for length in shape)
    rows = default_chunk_rows(lengths, kind) if chunk_rows is None else check_integer("chunk_rows", chunk_rows)
    rows = max(1, min(rows, lengths[0]))
    inner = _inner_rows(lengths, kind, rows)
    marked = {**(attributes or {}), **attributes_in_force()}
    build = partial(_new_array, shape=lengths, dtype=kind, inner=(inner,), outer=(rows,), attributes=marked)
    with _staged(path, overwrite, build) as array:
        yield array


def _new_array(
    store: Any, shape: Lengths, dtype: np.dtype[Any], inner: Lengths, outer: Lengths, **options: Any
) -> zarr.Array[Any]:
    """Create an array of chunks of `inner` entries along its first dimensions, in files of `outer` entries."""
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    fill = complex(math.nan, math.nan) if dtype.kind == "c" else math.nan if dtype.kind == "f" else 0
    behind = tuple(max(1, length) for length in shape[len(inner) :])
    return zarr.create_array(
        store,
        shape=shape,
        dtype=dtype,
        chunks=(*inner, *behind),
        shards=None if inner == outer else (*outer, *behind),
        compressors=[ZstdCodec(level=1), Crc32cCodec()],
        fill_value=dtype.type(fill),
        config={"write_empty_chunks": True},
        **options,
    )


@contextmanager
def create_group(path: Location, *, overwrite: bool = False) -> Iterator[zarr.Group]:
    """Yield a new zarr v3 group, which appears at `path` when the block ends without an error.

    Its metadata are consolidated. Raises as `create_array`.
    """
    import zarr

    build = partial(zarr.create_group, attributes=attributes_in_force())
    with _staged(path, overwrite, build) as group, warnings.catch_warnings():
        # consolidated metadata and text are not yet in the specification of v3; zarr and xarray read both
        warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        yield group
        zarr.consolidate_metadata(group.store)


def write_file(path: Location, data: bytes) -> None:
    """Write a file at a path or URL atomically; raise OSError if the disk is full."""
    target = local_path(path)
    if target is None:
        files, root = connect(path)
        with reaching(path):
            files.pipe_file(root, data)
        return
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    with room_at(path):
        try:
            staging.write_bytes(data)
            if target.exists():
                shutil.copymode(target, staging)
            staging.replace(target)
        finally:
            staging.unlink(missing_ok=True)


def refuse_existing(path: Location, overwrite: bool) -> None:
    """Raise an error for an output path that cannot be written, before its result is computed.

    FileExistsError if it exists (with `overwrite`: if it is not a zarr store), OSError if it cannot be written.
    """
    folder = folder_at(path)
    if folder.path is not None:
        Folder(folder.path.parent).refuse_unwritable(folder.path.name)
    if folder.exists:
        if folder.is_store:
            if not overwrite:
                raise FileExistsError(
                    f"{os.fspath(path)} exists: choose another path, or replace the zarr store by "
                    "overwrite=True (--overwrite in the shell)."
                )
        elif folder.path is not None or not folder.holds(LOCK):
            raise FileExistsError(f"{os.fspath(path)} exists and is not a zarr store: choose another path.")
    if folder.path is None:
        folder.refuse_unwritable(LOCK)


def default_chunk_rows(shape: Sequence[int], dtype: npt.DTypeLike, most: int = _CHUNK_BYTES) -> int:
    """Return the number of rows, a power of two, of 16 to 32 MB, or `most` bytes (at least 1 row)."""
    row_bytes = max(1, math.prod(shape[1:]) * np.dtype(dtype).itemsize)
    return 1 << max(0, (most // row_bytes).bit_length() - 1)


def _inner_rows(shape: Sequence[int], dtype: np.dtype[Any], rows: int) -> int:
    """Return the rows of a chunk in files of `rows` rows: all, or a divisor of about 1 MB."""
    pieces = math.ceil(rows / default_chunk_rows(shape, dtype, _INNER_BYTES))
    return next((rows // k for k in range(pieces, 4 * pieces) if rows % k == 0), rows) if pieces > 2 else rows


def progress_bar(
    rows: int | None,
    description: str,
    progress: bool | None,
    *,
    unit: str = "rows",
    leave: bool = True,
    initial: int = 0,
) -> Any:
    """Return a tqdm bar over rows or other units on stderr, shown after 1.5 s.

    It begins at `initial` rows, which are not part of its rate. None: only on a terminal.
    """
    return tqdm(
        total=rows,
        initial=initial,
        desc=printable(description),
        unit=f" {unit}",
        unit_scale=True,
        delay=1.5,
        file=sys.stderr,
        leave=leave,
        disable=None if progress is None else not progress,
    )


@contextmanager
def _staged(path: Location, overwrite: bool, build: Callable[[Any], Node]) -> Iterator[Node]:
    """Yield the result of `build` in a store, which appears at `path` when the block ends without an error.

    On a disk it is written next to its target, and renamed; at a URL in place, the root metadata last.
    """
    refuse_existing(path, overwrite)
    target = local_path(path)
    if target is None:
        with _in_place(path, build) as node:
            yield node
        return
    staging, aside = (target.with_name(f".{target.name}.{what}") for what in ("partial", "replaced"))
    with room_at(path), locked(Folder(target.parent), f"the output {target.name} in", f".{target.name}{LOCK}"):
        shutil.rmtree(staging, ignore_errors=True)
        try:
            yield build(staging)
            refuse_existing(path, overwrite)  # another process may have written there in the meantime
            if target.exists():
                shutil.copymode(target, staging)
                shutil.rmtree(aside, ignore_errors=True)
                target.rename(aside)
            try:
                staging.rename(target)
            except BaseException:
                if aside.exists():
                    aside.rename(target)
                raise
            shutil.rmtree(aside, ignore_errors=True)
        except BaseException:
            _discard(lambda: shutil.rmtree(staging, ignore_errors=True), staging.exists)
            raise


@contextmanager
def _in_place(path: Location, build: Callable[[Any], Node]) -> Iterator[Node]:
    from daskspectral.data.stores import HeldBackStore

    folder = Folder(path)
    with locked(folder, "the output") as is_held:
        try:
            folder.clear()
            store = HeldBackStore.at(path)
            yield build(store)
            if not is_held():
                raise OSError(f"the output {folder} was taken over by another run, {folder.read(LOCK)}")
            store.publish()
        except BaseException:
            if is_held():
                _discard(folder.clear, lambda: folder.names() != [LOCK])
            raise


def _discard(delete: Callable[[], None], is_left: Callable[[], bool]) -> None:
    """Delete the output; a write in progress during an interrupt may create files again."""
    for _ in range(20):
        with suppress(OSError):
            delete()
            time.sleep(0.1)
            if not is_left():
                return


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Grid:
    """Sizes of the dimensions of the rows, and chunks of them that are ranges of rows in order.

    Chunks contain `step` entries of the dimension `axis`, one entry of those before, and all of those after it.
    """

    sizes: tuple[int, ...]
    axis: int
    step: int

    @classmethod
    def of(cls, sizes: Sequence[int], rows: int, unit: int = 1) -> Grid:
        """Return chunks of about `rows` rows, along the first dimension in multiples of `unit` entries."""
        last = len(sizes) - 1
        axis = next((a for a in range(last) if rows >= math.prod(sizes[a + 1 :])), last)
        multiple = unit if axis == 0 else 1
        count = rows // math.prod(sizes[axis + 1 :])
        return cls(tuple(sizes), axis, min(sizes[axis], multiple * max(1, round(count / multiple))))

    @property
    def chunk(self) -> tuple[int, ...]:
        return (*(1 for _ in range(self.axis)), self.step, *self.sizes[self.axis + 1 :])

    @property
    def behind(self) -> int:
        """Number of rows of one entry of the dimension that is split."""
        return math.prod(self.sizes[self.axis + 1 :])

    @property
    def ranges(self) -> list[tuple[int, int]]:
        whole, n = self.sizes[self.axis] * self.behind, math.prod(self.sizes)
        cuts = [first + start for first in range(0, n, whole) for start in range(0, whole, self.step * self.behind)]
        return list(pairwise([*cuts, n]))


@dataclass(frozen=True, eq=False)
class GridTarget:
    """Main array of a group as an array of rows (n, width), of which each task writes separate chunks."""

    store: Any  # a path, or a picklable zarr store
    name: str
    grid: Grid

    def __setitem__(self, rows: slice, values: Array) -> None:
        from daskspectral.data.stores import open_array

        array = open_array(self.store, self.name, mode="r+")
        axis, behind = self.grid.axis, self.grid.behind
        first, count = rows.start // behind, (rows.stop - rows.start) // behind
        *place, low = (int(i) for i in np.unravel_index(first, self.grid.sizes[: axis + 1]))
        region = (*(slice(i, i + 1) for i in place), slice(low, low + count))
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
    """Yield a new zarr v3 group of an array `name` and the coordinates of `template`.

    It appears at `path` when the block ends without an error, and raises, as `create_array`. The first `dims` are those
    of the `grid`; `attributes` are those of the array, those of the template are the group's.
    """
    from zarr.storage import LocalStore

    from daskspectral.data.stores import MAIN

    kind = np.dtype(dtype)
    with create_group(path, overwrite=overwrite) as group:
        marked = template.assign_attrs({**dict(group.attrs), MAIN: name})  # xarray replaces the attributes of a group
        _storable(marked).to_zarr(group.store, mode="a", consolidated=False, zarr_format=3, write_empty_chunks=True)
        inner = grid.chunk
        if len(inner) == 1:  # large files are shards, so that a reader of some rows needs little memory
            inner = (_inner_rows(shape, kind, grid.chunk[0]),)
        others = sorted(str(k) for k in template.coords if k not in dims)
        named = {**attributes, **({"coordinates": " ".join(others)} if others else {})}
        options = {"name": name, "dimension_names": [str(dim) for dim in dims], "attributes": named}
        _new_array(group.store, tuple(shape), kind, inner, grid.chunk, **options)
        store = str(group.store.root) if isinstance(group.store, LocalStore) else group.store
        yield GridTarget(store, name, grid)


def _storable(template: xr.Dataset) -> xr.Dataset:
    """Return coordinates in stored form, levels separately, categories as text; ValueError for other types."""
    for name, coordinate in template.coords.items():
        kind = coordinate.dtype
        if isinstance(kind, np.dtype):
            continue
        if not str(kind).startswith("category"):
            raise ValueError(f"the coordinate {name!r} of dtype {kind} cannot be stored. Pass X.drop_vars({name!r})")
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


def refuse_input(out: Location, *inputs: Location | None) -> None:
    """Raise ValueError if writing `out` would overwrite an input: it is one, or contains one."""

    def place(location: Location) -> str:
        path = local_path(location)
        return os.fspath(location).rstrip("/") if path is None else str(path)

    for location in inputs:
        if location is not None and f"{place(location)}/".startswith(f"{place(out)}/"):
            raise ValueError(
                f"the output {os.fspath(out)} would overwrite the input {os.fspath(location)}: choose another path"
            )
