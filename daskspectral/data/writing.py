"""Files, arrays, groups and datasets of our own that appear whole or not at all."""

from __future__ import annotations

import ctypes
import glob
import math
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from daskspectral.data.folders import (
    NAME,
    RENEWAL,
    Directory,
    Lease,
    Prefix,
    folder_at,
    is_dead,
    is_store,
    refuse_live,
    room_at,
)
from daskspectral.data.remote import Location, connect, local_path, reaching
from daskspectral.errors import printable
from daskspectral.validation import check_integer

if TYPE_CHECKING:
    import xarray as xr
    import zarr

NEW, OLD = "new", "old"
SETTLING = 0.1  # seconds after an interrupt until the writes that were under way have ended
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE, AT_FDCWD
_STAGING = r"\.({})\.[0-9a-f]{{8}}\.partial"


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path for a file or folder, which takes the place of `target` when the block ends without an error.

    The path lies in a hidden folder beside the target, with a lease of this run, which goes at the end; where the run
    is killed, the next one deletes it. At any moment what was at the target is there, or what is new; on systems that
    cannot exchange two folders in one step, neither is for an instant, and what a run that was killed then moved aside
    is put back by `recover`.
    """
    recover(target.parent, target.name)
    folder = _staging(target)
    lease, pause = Lease.take(Directory(folder), RENEWAL, "the output"), SETTLING
    try:
        yield folder / NEW
        lease.renew()
        _put_in_place(folder / NEW, target, folder / OLD)
        pause = 0.0
    finally:
        for part in (folder / NEW, folder / OLD):
            _discard(part, pause)
        lease.release()
        if folder.exists():
            warnings.warn(f"What was written or replaced could not be deleted: it is left at {folder}", stacklevel=3)


def recover(parent: Path, name: str | None = None) -> None:
    """Put back what killed runs moved aside in a folder, and delete what they left; of one name, or of all.

    What live runs write stays, and what this run may not change.
    """
    staging = re.compile(_STAGING.format(".+" if name is None else re.escape(name)))
    with suppress(OSError):
        for found in filter(None, map(staging.fullmatch, os.listdir(parent))):
            folder, target = parent / found[0], parent / found[1]
            with suppress(OSError):
                if is_dead(Directory(folder)):
                    mine = _staging(target)
                    folder.rename(mine)  # one run alone can do it
                    if (mine / OLD).exists() and (mine / NEW).exists() and not target.exists():
                        (mine / OLD).rename(target)  # killed between the two steps of `_put_in_place`
                    for part in (mine / NEW, mine):  # in this order: without what is new, nothing is put back
                        shutil.rmtree(part, ignore_errors=True)


def moved_aside(target: Path) -> bool:
    """Whether a run is about to replace a target, in two steps, and has moved what was there aside."""
    return any(target.parent.glob(f".{glob.escape(target.name)}.*.partial/{OLD}"))


def _staging(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    if target.exists():
        shutil.copymode(target, new)
    if new.is_file() or not target.exists():
        new.replace(target)
    elif not _exchanged(new, target):
        try:
            target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:  # not on Linux, or a C library from before 2018
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _discard(path: Path, pause: float) -> None:
    for _ in range(20):  # a write that was under way during an interrupt can make a directory again
        if path.is_file():
            path.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(pause)
        if not path.exists():
            return


_CHUNK_BYTES = 32_000_000
_INNER_BYTES = 1 << 20

Node = TypeVar("Node")
_marks: ContextVar[dict[str, Any] | None] = ContextVar("marks", default=None)


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
    """Create a zarr v3 array that takes its place at `path` when the block ends without an error.

    The array that is yielded lies at a hidden staging path beside `path` and is of no use after the block:
    open `path` again to read it. One file holds `chunk_rows` rows (default: 16 to 32 MB) and all columns; large
    files are shards of inner chunks of up to 1 MB, so that a reader of some rows needs little memory. Chunks are
    compressed by zstd and end in a crc32c checksum; floating and complex arrays have the fill value NaN, and
    chunks that equal it are written too. After an error nothing is left and an existing target is untouched.
    At a URL such as s3://bucket/x.zarr, chunks are written in place, and last the metadata without which nothing loads;
    a store that is replaced there goes when the writing begins. What a killed run left is replaced by the next.

    Raises FileExistsError for a path that exists, unless `overwrite` and it is a zarr store, FileNotFoundError or
    PermissionError for a directory or bucket that is missing or cannot be written, ValueError for chunk_rows < 1, and
    OSError that names `path` where the disk is full, or where another run is writing to it.
    """
    kind = np.dtype(dtype)
    lengths = tuple(int(length) for length in shape)
    if not lengths:
        raise ValueError("shape must have at least one axis, the rows: (n,) or (n, d), not ().")
    if chunk_rows is not None:
        chunk_rows = check_integer("chunk_rows", chunk_rows)
    inner, rows = _chunk_shape(lengths, kind, chunk_rows)
    marked = {**(attributes or {}), **(_marks.get() or {})}
    with _staged(path, overwrite, lambda store: _new_array(store, lengths, kind, (inner,), (rows,), marked)) as array:
        yield array


def _new_array(
    store: Any,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    inner: tuple[int, ...],
    outer: tuple[int, ...],
    attributes: Mapping[str, Any],
    **options: Any,
) -> zarr.Array[Any]:
    """An array whose chunks hold `inner` entries of its first dimensions and all others, in files of `outer` entries.

    Chunks are compressed by zstd and end in a checksum; all of them are written.
    """
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
        attributes=dict(attributes),
        config={"write_empty_chunks": True},
        **options,
    )


@contextmanager
def create_group(path: Location, *, overwrite: bool = False) -> Iterator[zarr.Group]:
    """Create a zarr v3 group that takes its place at `path`, with its contents, when the block ends without an error.

    Raises OSError where `path` cannot be written, as `create_array` does.
    """
    import zarr

    with _staged(path, overwrite, lambda store: zarr.create_group(store, attributes=_marks.get())) as group:
        yield group


@contextmanager
def marking(attributes: Mapping[str, Any]) -> Iterator[None]:
    """Every array and group that is created inside has these attributes too, from its first moment on."""
    before = _marks.set(dict(attributes))
    try:
        yield
    finally:
        _marks.reset(before)


def write_file(path: Location, data: bytes) -> None:
    """Write a file at a path or URL; it appears whole or not at all. Raises OSError where the disk is full."""
    target = local_path(path)
    if target is None:
        files, root = connect(path)
        with reaching(path, writing=True, files=files):
            files.pipe_file(root, data)
        return
    with room_at(path), replacing(target) as staging:
        staging.write_bytes(data)


def refuse_existing(path: Location, overwrite: bool) -> None:
    """Raise an error for an output path that cannot be written, before the work is done whose result goes there.

    Raises FileExistsError if something is there (with `overwrite`: if it is not a zarr store), and FileNotFoundError,
    NotADirectoryError or PermissionError for a local directory that is missing or takes no files. At a URL an object
    is written and deleted; raises OSError where that fails, saying what is missing, and where another run is writing.
    """
    folder = folder_at(path)
    if isinstance(folder, Directory):
        target = folder.path
        refuse_unwritable(target.parent, target.name)
        if not target.exists():
            recover(target.parent, target.name)
        what = "a directory" if target.is_dir() else "a file"
    else:
        what = "other objects"
    exists, whole = folder.exists, is_store(folder)
    if exists and not whole and isinstance(folder, Prefix) and folder.holds(NAME):
        refuse_live(folder, "the output")  # it was left by a run that was killed, or is being written
        exists = False
    if exists and not whole:
        raise FileExistsError(
            f"{os.fspath(path)} exists and is {what}, not a zarr store, so it is never replaced: "
            "choose another path, or remove it yourself."
        )
    if exists and not overwrite:
        raise FileExistsError(
            f"{os.fspath(path)} exists (a zarr store): choose another path, or replace it with "
            "overwrite=True (--overwrite in the shell)."
        )
    if isinstance(folder, Prefix):
        folder.refuse_unwritable()


def refuse_unwritable(directory: Path, name: str) -> None:
    """Raise an error for a local directory in which `name` cannot be created.

    Raises FileNotFoundError where it is missing, NotADirectoryError where it is a file, and PermissionError where it
    takes no files: by its permissions, on a read-only disk, or in a virtual file system.
    """
    if not directory.is_dir():
        in_the_way = next((p for p in (directory, *directory.parents) if p.exists()), directory)
        if in_the_way.is_file():
            raise NotADirectoryError(f"{in_the_way}, the directory for {name}, is a file: choose another path.")
        raise FileNotFoundError(f"{directory}, the directory for {name}, is missing.")
    reason = None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"
    if reason is None:
        try:
            tempfile.TemporaryFile(dir=directory).close()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    if reason is not None:
        raise PermissionError(
            f"{directory}, the directory for {name}, cannot be written ({reason}): choose another path, or have its "
            "rights changed."
        )


def default_chunk_rows(shape: Sequence[int], dtype: npt.DTypeLike, most: int = _CHUNK_BYTES) -> int:
    """Return the number of rows, a power of two, that fill 16 to 32 MB, or `most` bytes (1 where a row is longer)."""
    row_bytes = max(1, math.prod(shape[1:]) * np.dtype(dtype).itemsize)
    return 1 << max(0, (most // row_bytes).bit_length() - 1)


def _chunk_shape(shape: tuple[int, ...], dtype: np.dtype[Any], chunk_rows: int | None) -> tuple[int, int]:
    """Rows of an inner chunk, and of a file."""
    small = default_chunk_rows(shape, dtype, _INNER_BYTES)
    rows = max(1, min(chunk_rows or default_chunk_rows(shape, dtype), shape[0]))
    if rows <= 2 * small:
        return rows, rows
    if chunk_rows is None:
        return small, small * math.ceil(rows / small)
    pieces = math.ceil(rows / small)
    divisor = next((k for k in range(pieces, 4 * pieces) if chunk_rows % k == 0), 1)
    return (rows, rows) if divisor == 1 else (chunk_rows // divisor, chunk_rows)


def progress_bar(
    rows: int | None, description: str, progress: bool | None, *, unit: str = "rows", leave: bool = True
) -> Any:
    """A tqdm bar over rows, or other units, on stderr, shown after 1.5 s; `progress` None: only on a terminal."""
    return tqdm(
        total=rows,
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
    """What `build` makes in a store, which takes its place at a path or URL when the block ends without an error."""
    refuse_existing(path, overwrite)
    target = local_path(path)
    if target is not None:
        with room_at(path), replacing(target) as staging:
            yield build(staging)
            refuse_existing(path, overwrite)  # somebody else may have put something there meanwhile
        return
    from daskspectral.data.stores import HeldBackStore, store_at

    with reaching(path, writing=True):  # in place; the root metadata, without which nothing loads, last
        folder = Prefix(os.fspath(path))
        lease = Lease.take(folder, RENEWAL, "the output")
        try:
            folder.clear(kept=NAME)
            store = HeldBackStore(store_at(path))
            yield build(store)
            lease.renew()
            store.publish()
        except BaseException:
            if lease.is_held:
                _discard_objects(folder)
            raise
        finally:
            lease.release()


def _discard_objects(folder: Prefix) -> None:
    for _ in range(20):  # as above: a task on another machine may still be at its last chunk
        with suppress(OSError):
            folder.clear(kept=NAME)
            if folder.names() == [NAME]:
                return
        time.sleep(0.05)


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Grid:
    """The sizes of the rows' dimensions, and chunks of them that are ranges of rows in their order.

    Chunks hold `step` entries of the dimension `axis`, one of those before, and all entries of those behind.
    """

    sizes: tuple[int, ...]
    axis: int
    step: int

    @classmethod
    def of(cls, sizes: Sequence[int], rows: int, unit: int = 1) -> Grid:
        """Chunks of about `rows` rows, along the first dimension in multiples of `unit` entries."""
        last = len(sizes) - 1
        axis = next((a for a in range(last) if rows >= math.prod(sizes[a + 1 :])), last)
        multiple = unit if axis == 0 else 1
        count = rows // math.prod(sizes[axis + 1 :])
        return cls(tuple(sizes), axis, min(sizes[axis], multiple * max(1, round(count / multiple))))

    @property
    def chunk(self) -> tuple[int, ...]:
        """The entries of each dimension that a chunk holds."""
        return (*(1 for _ in range(self.axis)), self.step, *self.sizes[self.axis + 1 :])

    @property
    def behind(self) -> int:
        """The rows of one entry of the dimension of which chunks hold some."""
        return math.prod(self.sizes[self.axis + 1 :])

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The rows of each chunk."""
        whole, n = self.sizes[self.axis] * self.behind, math.prod(self.sizes)
        cuts = [first + start for first in range(0, n, whole) for start in range(0, whole, self.step * self.behind)]
        return list(pairwise([*cuts, n]))


@dataclass(frozen=True, eq=False)
class GridTarget:
    """The main array of a group as an array of rows (n, width) that tasks write to, each its own chunks."""

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
    """Create a consolidated zarr v3 group of an array `name` and the coordinates of `template`.

    It takes its place at `path` when the block ends without an error, as `create_array` does, and raises as that does.
    The array has the dimensions `dims`, of which the first are those of the `grid`; `attributes` are the array's, and
    those of the template are the group's. Every chunk is written and ends in a checksum.
    """
    import zarr
    from zarr.storage import LocalStore

    from daskspectral.data.stores import MAIN

    kind = np.dtype(dtype)
    with create_group(path, overwrite=overwrite) as group, warnings.catch_warnings():
        # consolidated metadata and text are not in the specification of v3 yet; zarr and xarray read both silently
        warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        marked = template.assign_attrs({**dict(group.attrs), MAIN: name})  # xarray replaces the attributes of a group
        _storable(marked).to_zarr(group.store, mode="a", consolidated=False, zarr_format=3, write_empty_chunks=True)
        inner = grid.chunk
        if len(inner) == 1:  # large files are shards, so that a reader of some rows needs little memory
            inner = _chunk_shape(tuple(shape), kind, grid.chunk[0])[:1]
        others = sorted(str(k) for k in template.coords if k not in dims)
        named = {**attributes, **({"coordinates": " ".join(others)} if others else {})}
        dimensions = [str(dim) for dim in dims]
        _new_array(group.store, tuple(shape), kind, inner, grid.chunk, named, name=name, dimension_names=dimensions)
        store = str(group.store.root) if isinstance(group.store, LocalStore) else group.store
        yield GridTarget(store, name, grid)
        zarr.consolidate_metadata(group.store)


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


def refuse_input(out: Location, *inputs: Location | None) -> None:
    """Raise ValueError where writing `out` would destroy one of the inputs: it is one of them, or holds one."""

    def place(location: Location) -> str:
        path = local_path(location)
        return os.fspath(location).rstrip("/") if path is None else str(path)

    for location in inputs:
        if location is not None and f"{place(location)}/".startswith(f"{place(out)}/"):
            raise ValueError(
                f"the output {os.fspath(out)} would replace the input {os.fspath(location)}; choose another path"
            )
