"""Checks that a store is complete, and unchanged during a run, by listings of its keys.

zarr silently returns the fill value for a missing chunk; here it is an error.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daskspectral.data.folders import LOCK
from daskspectral.data.readers import FILL_MEANT, Reader, ZarrReader
from daskspectral.data.remote import connect, is_url, reaching, synchronous
from daskspectral.data.source import Source, label_of
from daskspectral.validation import loaded

if TYPE_CHECKING:
    import zarr


Files = Mapping[str, tuple[int, str]]
"""Files of one array: name (of chunks relative to the array) to size and stamp (mtime, ctime; or an etag)."""


def _digest(files: Iterable[tuple[str, tuple[int, str]]]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(repr(file).encode())
    return digest.hexdigest()


class Manifest:
    """Record of the zarr stores of a source before a run, for comparison after it.

    Its creation raises OSError for missing chunks unless fill values are accepted.
    """

    def __init__(self, source: Source):
        self._fields = dict(source.readers)
        self._readers = {id(part): part for reader in self._fields.values() for part in _stored(reader)}
        self._before = {key: list_chunks(reader) for key, reader in self._readers.items()}
        for key, reader in self._readers.items():
            check_chunks(reader, self._before[key])

    def check_unchanged(self) -> None:
        """Raise OSError if a file was added, removed or rewritten since the record was made."""
        for key, reader in self._readers.items():
            before, after = self._before[key] or {}, list_chunks(reader) or {}
            if changed := sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k)):
                name = reader.name if isinstance(reader, ZarrReader) else ", ".join(reader.paths[:3])
                raise OSError(
                    f"{name} changed during the run: {len(changed)} of its files, such as {changed[0]}. "
                    "Run again on data that do not change"
                )

    @property
    def identity(self) -> dict[str, Any]:
        """Identity of the data: metadata, and a digest of the listing or, in memory, of the contents."""

        def description(part: Reader) -> dict[str, Any]:
            files = self._before[id(part)]
            plain = {k: v for k, v in part.identity.items() if k != "name"}
            return {**plain, "files": None if files is None else _digest(sorted(files.items()))}

        result: dict[str, Any] = {}
        for name, reader in self._fields.items():
            stored = _stored(reader)
            parts = [description(part) for part in stored]
            result[label_of(name)] = parts[0] if stored == (reader,) else {**reader.identity, "parts": parts}
        return result

    def seen(self, rows: int) -> dict[str, list[Any]]:
        """Return digests of values and of files (names, sizes, stamps) of the first rows of each field."""
        return {
            name: [_first_rows(reader, rows), self.files_behind(reader, rows)] for name, reader in self._fields.items()
        }

    def files_behind(self, reader: Reader, rows: int) -> str | None:
        """Return a digest of the files of the first rows of a field; None if they are not in a zarr store."""
        behind: dict[ZarrReader, set[int]] = {}  # for each array, positions of files along its rows
        for part, first, last in reader.within(0, rows):
            if not isinstance(part, ZarrReader) or self._before.get(id(part)) is None:
                return None
            unit = (part.array.shards or part.array.chunks)[0]
            behind.setdefault(part, set()).update(range(first // unit, -(-last // unit)))
        found = []
        for part, places in behind.items():
            files = self._before[id(part)] or {}
            keys = [key for index, key in _chunk_keys(part.array, files).items() if index[0] in places]
            if not all(files[key][1] for key in keys):
                return None
            found += [(key, files[key]) for key in keys]
        return _digest(found)


def _stored(reader: Reader) -> tuple[Reader, ...]:
    """Return the readers of single arrays whose files contain the rows."""
    return tuple(file for part in reader.parts for file in part.files or (part,))


FIRST_ROWS, FIRST_BYTES = 100, 1 << 20


def _first_rows(reader: Reader, rows: int) -> str:
    row_bytes = max(1, 8 * math.prod(reader.shape[1:]))
    count = min(rows, FIRST_ROWS, max(1, FIRST_BYTES // row_bytes))
    return hashlib.sha256(np.ascontiguousarray(reader.read(0, count), "<f8").tobytes()).hexdigest()


def list_chunks(reader: Reader) -> Files | None:
    """Return the files of a zarr array or other files, local or remote; None if they are unknown."""
    if reader.paths:
        return dict(map(_file, reader.paths))
    if not isinstance(reader, ZarrReader):
        return None
    if isinstance(reader.store, str):
        root = os.path.join(reader.store, reader.path) if reader.path else reader.store
        return dict(_local_files(root, len(reader.shape)))
    return dict(_remote_files(reader)) if isinstance(reader.store, loaded("zarr.storage.FsspecStore")) else None


def check_chunks(reader: Reader, files: Files | None) -> None:
    """Raise OSError, which names the first chunk that is missing or empty, by listing, without reading."""
    if files is None or not isinstance(reader, ZarrReader) or reader.allow_missing:
        return
    from daskspectral.data.shards import described, first_missing

    array = reader.array
    grid = [-(-n // c) for n, c in zip(array.shape, array.shards or array.chunks, strict=True)]
    whole = {index for index, key in _chunk_keys(array, files).items() if files[key][0]}
    total = math.prod(grid)
    if missing := total - len(whole):
        index = next(index for index in np.ndindex(*grid) if index not in whole)
        name = described(array, index)
    elif found := first_missing(array, reader.name, lambda key: files[key][0]):
        name, missing, total = found
    else:
        return
    raise OSError(
        f"{reader.name} is incomplete: {name} is missing or empty, {missing} of {total} chunks in total. "
        f"Restore them, or {FILL_MEANT}"
    )


def _chunk_keys(array: zarr.Array[Any], files: Files) -> dict[tuple[int, ...], str]:
    """Return the keys of the chunks or shards of the array, by their positions in the grid."""
    found = {}
    for key in files:
        index = tuple(map(int, re.findall(r"\d+", key)))
        limits = zip(index, array.shards or array.chunks, array.shape, strict=False)
        inside = len(index) == array.ndim and all(i * c < n for i, c, n in limits)
        if inside and array.metadata.encode_chunk_key(index) == key:
            found[index] = key
    return dict(sorted(found.items()))


def check_whole_source(source: Source) -> None:
    """Raise OSError, which names the first missing chunk, for dask arrays read from zarr arrays."""
    for reader in source.readers.values():
        for part in _stored(reader) if _stored(reader) != reader.parts else ():
            check_chunks(part, list_chunks(part))


def _local_files(root: str, depth: int, prefix: str = "") -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the files of a folder to the depth of chunks: links may be cyclic."""
    from daskspectral.data.stores import refuse_irregular

    with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
        for entry in entries:
            name = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir():
                if depth:
                    yield from _local_files(root, depth - 1, name)
            else:
                status = refuse_irregular(entry.path)
                yield name, (status.st_size, _stamp_of(status))


def _remote_files(reader: ZarrReader) -> Iterator[tuple[str, tuple[int, str]]]:
    store: Any = reader.array.store
    root = f"{store.path}/{reader.path}".rstrip("/")
    files = synchronous(store.fs)
    files.invalidate_cache()
    with reaching(reader.name):
        found = files.find(root, detail=True)
    for path, entry in found.items():
        key = path.removeprefix(root).lstrip("/")
        if key != LOCK:  # lock of the run that wrote the array, soon deleted
            yield key, _stamp(entry)


def _file(path: str) -> tuple[str, tuple[int, str]]:
    if not is_url(path):
        status = os.stat(path)
        return path, (status.st_size, _stamp_of(status))
    files, root = connect(path)
    with reaching(path):
        return path, _stamp(files.info(root))


def _stamp_of(status: os.stat_result) -> str:
    """Return the times of the last change of contents and of metadata: programs can only set the first."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns}"


def _stamp(entry: Mapping[str, Any]) -> tuple[int, str]:
    stamp = next((str(entry[k]) for k in ("ETag", "etag", "LastModified", "mtime", "created") if k in entry), "")
    return int(entry.get("size") or 0), stamp
