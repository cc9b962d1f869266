"""Zarr arrays and groups that appear whole or not at all."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import zarr
from tqdm import tqdm
from zarr.codecs import Crc32cCodec, ZstdCodec

from daskspectral.data.door import store_at
from daskspectral.data.folder import MARKERS, Prefix
from daskspectral.data.lease import NAME, RENEWAL, Lease, refuse_live
from daskspectral.data.remote import connect, is_url, reaching, refuse_secrets
from daskspectral.data.replacing import recover, replacing
from daskspectral.data.storage import room_at
from daskspectral.data.unpublished import Unpublished
from daskspectral.errors import printable

_CHUNK_BYTES = 32_000_000
_INNER_BYTES = 1 << 20

Location = str | os.PathLike[str]
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
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be a positive integer, not {chunk_rows}; None: 16 to 32 MB.")
    inner, rows = chunk_shape(lengths, kind, chunk_rows)
    columns = tuple(max(1, length) for length in lengths[1:])

    def build(store: Any) -> zarr.Array[Any]:
        return zarr.create_array(
            store,
            shape=lengths,
            dtype=kind,
            chunks=(inner, *columns),
            shards=None if inner == rows else (rows, *columns),
            compressors=[ZstdCodec(level=1), Crc32cCodec()],
            fill_value=fill_value(kind),
            attributes={**(attributes or {}), **(_marks.get() or {})},
            config={"write_empty_chunks": True},
        )

    with _staged(path, overwrite, build) as array:
        yield array


@contextmanager
def create_group(path: Location, *, overwrite: bool = False) -> Iterator[zarr.Group]:
    """Create a zarr v3 group that takes its place at `path`, with its contents, when the block ends without an error.

    Raises OSError where `path` cannot be written, as `create_array` does.
    """

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
    target = local_path(path)
    if target is None:
        folder = Prefix(os.fspath(path))
        if "/" not in folder.root:
            raise ValueError(
                f"{os.fspath(path)} is a whole bucket: give a path in it, such as {folder.place('x.zarr')}"
            )
        exists, is_store = folder.exists, folder.is_store()
        if exists and not is_store and folder.holds(NAME):  # left by a run that was killed, or being written
            refuse_live(folder, "the output")
            exists = False
        what = "other objects"
    else:
        refuse_unwritable(target.parent, target.name)
        if not target.exists():
            recover(target.parent, target.name)
        exists, is_store = target.exists(), any((target / marker).is_file() for marker in MARKERS)
        what = "a directory" if target.is_dir() else "a file"
    if exists and not is_store:
        raise FileExistsError(
            f"{os.fspath(path)} exists and is {what}, not a zarr store, so it is never replaced: "
            "choose another path, or remove it yourself."
        )
    if exists and not overwrite:
        raise FileExistsError(
            f"{os.fspath(path)} exists (a zarr store): choose another path, or replace it with "
            "overwrite=True (--overwrite in the shell)."
        )
    if target is None:
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


def local_path(path: Location) -> Path | None:
    """Return the absolute path with symbolic links followed, or None for a URL that is not file://.

    Raises ValueError for a URL with a credential in it.
    """
    text = os.fspath(path)
    refuse_secrets(text)
    if is_url(text):
        return None
    return Path(os.path.realpath(text.removeprefix("file://")))


def default_chunk_rows(shape: Sequence[int], dtype: npt.DTypeLike) -> int:
    """Return the number of rows, a power of two, that fill 16 to 32 MB (1 where a row is longer than that)."""
    row_bytes = max(1, math.prod(shape[1:]) * np.dtype(dtype).itemsize)
    return 1 << max(0, (_CHUNK_BYTES // row_bytes).bit_length() - 1)


def chunk_shape(shape: tuple[int, ...], dtype: np.dtype[Any], chunk_rows: int | None) -> tuple[int, int]:
    """Rows of an inner chunk, and of a file."""
    row_bytes = max(1, math.prod(shape[1:]) * dtype.itemsize)
    small = 1 << max(0, (_INNER_BYTES // row_bytes).bit_length() - 1)
    rows = max(1, min(chunk_rows or default_chunk_rows(shape, dtype), shape[0]))
    if rows <= 2 * small:
        return rows, rows
    if chunk_rows is None:
        return small, small * math.ceil(rows / small)
    pieces = math.ceil(rows / small)
    divisor = next((k for k in range(pieces, 4 * pieces) if chunk_rows % k == 0), 1)
    return (rows, rows) if divisor == 1 else (chunk_rows // divisor, chunk_rows)


def progress_bar(rows: int | None, description: str, progress: bool | None) -> Any:
    """Return a tqdm bar over rows on stderr that shows after 1.5 s; `progress` None: only on a terminal."""
    return tqdm(
        total=rows,
        desc=printable(description),
        unit=" rows",
        unit_scale=True,
        delay=1.5,
        file=sys.stderr,
        disable=None if progress is None else not progress,
    )


def fill_value(dtype: np.dtype[Any]) -> Any:
    """The fill value of arrays of ours, NaN where the dtype has it."""
    fill = complex(math.nan, math.nan) if dtype.kind == "c" else math.nan if dtype.kind == "f" else 0
    return dtype.type(fill)


@contextmanager
def _staged(path: Location, overwrite: bool, build: Callable[[Any], Node]) -> Iterator[Node]:
    refuse_existing(path, overwrite)
    target = local_path(path)
    if target is None:
        with reaching(path, writing=True):
            yield from _published(os.fspath(path), build)
    else:
        with room_at(path):
            yield from _placed(target, path, overwrite, build)


def _published(url: str, build: Callable[[Any], Node]) -> Iterator[Node]:
    """Write in place; the root metadata, without which nothing loads, last."""
    folder = Prefix(url)
    lease = Lease.take(folder, RENEWAL, "the output")
    try:
        folder.clear(kept=NAME)
        store = Unpublished(store_at(url))
        yield build(store)
        lease.renew()
        store.publish()
    except BaseException:
        if lease.is_held:
            _discard_objects(folder)
        raise
    finally:
        lease.release()


def _placed(target: Path, path: Location, overwrite: bool, build: Callable[[Any], Node]) -> Iterator[Node]:
    with replacing(target) as staging:
        yield build(staging)
        refuse_existing(path, overwrite)  # somebody else may have put something there meanwhile


def _discard_objects(folder: Prefix) -> None:
    for _ in range(20):  # as above: a task on another machine may still be at its last chunk
        with suppress(OSError):
            folder.clear(kept=NAME)
            if folder.names() == [NAME]:
                return
        time.sleep(0.05)
