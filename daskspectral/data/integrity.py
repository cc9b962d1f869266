"""Is the store whole, and is it the same before and after a run? One listing of its keys answers both.

zarr returns the fill value for a chunk that is missing, without a word; here it is an error.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.folders import NAME
from daskspectral.data.loaded import loaded
from daskspectral.data.readers import Reader, ZarrReader
from daskspectral.data.remote import connect, is_url, reaching, synchronous
from daskspectral.data.source import Source, label_of

if TYPE_CHECKING:
    import zarr


@dataclass(frozen=True, eq=False)
class Listing:
    """The files of one array: name (of chunks relative to the array) to size and a stamp (mtime, ctime; or an etag)."""

    name: str
    files: Mapping[str, tuple[int, str]]

    @property
    def digest(self) -> str:
        """Equal for equal names, sizes and stamps."""
        digest = hashlib.sha256()
        for key in sorted(self.files):
            digest.update(repr((key, self.files[key])).encode())
        return digest.hexdigest()

    def check_unchanged(self, later: Listing) -> None:
        """Raise OSError, which names a file, where a later listing differs."""
        if self.files == later.files:
            return
        changed = sorted(k for k in self.files.keys() | later.files.keys() if self.files.get(k) != later.files.get(k))
        raise OSError(
            f"{self.name} changed during the run: {len(changed)} of its files are new, gone or rewritten, {changed[0]} "
            "among them; what was made of them is a mixture, and was not kept. Run again on data that stay as they are"
        )


class Snapshot:
    """A record of the zarr stores behind a source, made before a run to be compared after it.

    Making it raises OSError where a chunk is missing and not meant to be.
    """

    def __init__(self, source: Source):
        self._fields = dict(source.readers)
        self._readers = {id(part): part for reader in self._fields.values() for part in reader.stored}
        self._before = {key: list_chunks(reader) for key, reader in self._readers.items()}
        for key, reader in self._readers.items():
            check_chunks(reader, self._before[key])

    def check_unchanged(self) -> None:
        """Raise OSError where a file was added, removed or rewritten since the record was made."""
        for key, before in self._before.items():
            if before is not None:
                after = list_chunks(self._readers[key])
                assert after is not None
                before.check_unchanged(after)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these data from others: metadata, and a digest of the listing or, in memory, of the contents."""

        def told(part: Reader) -> dict[str, Any]:
            listing = self._before[id(part)]
            plain = {k: v for k, v in part.identity.items() if k != "name"}
            return {**plain, "files": None if listing is None else listing.digest}

        result: dict[str, Any] = {}
        for name, reader in self._fields.items():
            parts = [told(part) for part in reader.stored]
            alone = reader.stored == (reader,)
            result[label_of(name)] = parts[0] if alone else {**reader.identity, "parts": parts}
        return result

    def files_behind(self, ranges: Sequence[tuple[int, int]]) -> dict[str, NDArray[np.uint64]]:
        """By field a digest (T,) of the files behind each range of rows; 0 where they cannot be told from later ones.

        Equal for equal names, sizes and stamps.
        """
        arrays = {
            key: (reader.array, listing)
            for key, reader in self._readers.items()
            if (listing := self._before[key]) is not None and isinstance(reader, ZarrReader)
        }
        files = {key: ((array.shards or array.chunks)[0], _by_rows(array, of)) for key, (array, of) in arrays.items()}

        def behind(reader: Reader, start: int, stop: int) -> int:
            digest = hashlib.blake2b(digest_size=8)
            for part, first, last in reader.within(start, stop):
                if id(part) not in files:
                    return 0
                rows, held = files[id(part)]
                for file in chain.from_iterable(held[k] for k in range(first // rows, -(-last // rows)) if k in held):
                    if not file[-1]:
                        return 0
                    digest.update(repr(file).encode())
            return int.from_bytes(digest.digest(), "little")

        fields = self._fields.items()
        return {name: np.array([behind(reader, *rows) for rows in ranges], np.uint64) for name, reader in fields}


def list_chunks(reader: Reader) -> Listing | None:
    """The files of a zarr array in a file system or object store, or other files; None where none are known."""
    if reader.paths:
        return Listing(", ".join(reader.paths[:3]), dict(map(_file, reader.paths)))
    if not isinstance(reader, ZarrReader):
        return None
    if isinstance(reader.store, str):
        root = os.path.join(reader.store, reader.path) if reader.path else reader.store
        return Listing(reader.name, dict(_local_files(root, len(reader.shape))))
    if isinstance(reader.store, loaded("zarr.storage.FsspecStore")):
        return Listing(reader.name, dict(_remote_files(reader.array, reader.name)))
    return None


def check_chunks(reader: Reader, listing: Listing | None) -> None:
    """Raise OSError naming the first chunk that is missing or empty.

    No chunk is read: the keys that the array must have are compared with the listing, and of shards the index is read.
    """
    if listing is None or not isinstance(reader, ZarrReader) or reader.allow_missing:
        return
    from daskspectral.data.shards import described, first_missing

    array = reader.array
    unit = array.shards or array.chunks
    grid = [-(-n // c) for n, c in zip(array.shape, unit, strict=True)]
    whole = {index for index, key in _chunk_keys(array, listing).items() if listing.files[key][0]}
    missing, total = math.prod(grid) - len(whole), math.prod(grid)
    if missing:
        index = next(index for index in map(partial(_place, grid), count()) if index not in whole)
        key = array.metadata.encode_chunk_key(index)
        name, lacks = described(array, index), "is empty" if key in listing.files else "is missing"
    else:
        with reaching(reader.name, files=getattr(array.store, "fs", None)):
            found = first_missing(array, reader.name, lambda key: listing.files[key][0])
        if found is None:
            return
        (name, missing, total), lacks = found, "is missing"
    raise OSError(
        f"{reader.name} is not whole: {name} {lacks}, and {missing} of {total} chunks in all; zarr would read them as "
        f"the fill value {array.fill_value}. Restore them, or if fill values are meant, pass Rows(X, "
        "allow_missing=True) (--allow-missing in the shell)"
    )


def _chunk_keys(array: zarr.Array[Any], listing: Listing) -> dict[tuple[int, ...], str]:
    """The files of a listing that are chunks of the array, or shards, by their places in the grid, in order."""
    from daskspectral.data.stores import chunk_index

    found = {index: key for key in listing.files if (index := chunk_index(array, key)) is not None}
    return dict(sorted(found.items()))


def _by_rows(array: zarr.Array[Any], listing: Listing) -> dict[int, list[tuple[str, int, str]]]:
    """The names, sizes and stamps of the chunk files of an array, by their places along the rows."""
    found: dict[int, list[tuple[str, int, str]]] = {}
    for index, key in _chunk_keys(array, listing).items():
        found.setdefault(index[0], []).append((key, *listing.files[key]))
    return found


def _place(grid: Sequence[int], number: int) -> tuple[int, ...]:
    """The place of the chunk of a number in a grid, of whatever size."""
    place = []
    for size in reversed(grid):
        number, along = divmod(number, size)
        place.append(along)
    return tuple(reversed(place))


def check_whole_source(source: Source) -> None:
    """Raise OSError naming the first chunk that is missing behind rows that dask reads from zarr arrays."""
    for reader in source.readers.values():
        for part in reader.stored if reader.stored != reader.parts else ():
            check_chunks(part, list_chunks(part))


def _local_files(root: str, depth: int, prefix: str = "") -> Iterator[tuple[str, tuple[int, str]]]:
    """The files of a folder, and of those in it as deep as chunks lie: a link could lead round and round."""
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


def _remote_files(array: zarr.Array[Any], name: str) -> Iterator[tuple[str, tuple[int, str]]]:
    store: Any = array.store
    root = f"{store.path}/{array.path}".rstrip("/")
    files = synchronous(store.fs)
    files.invalidate_cache()
    with reaching(name, files=files):
        found = files.find(root, detail=True)
    for path, entry in found.items():
        key = path.removeprefix(root).lstrip("/")
        if key == NAME:  # of the run that wrote the array, and is about to go
            continue
        yield key, _stamp(entry)


def _file(path: str) -> tuple[str, tuple[int, str]]:
    """A file at a path or URL, with its size and stamp."""
    if not is_url(path):
        status = os.stat(path)
        return path, (status.st_size, _stamp_of(status))
    files, root = connect(path)
    with reaching(path, files=files):
        return path, _stamp(files.info(root))


def _stamp_of(status: os.stat_result) -> str:
    """Return when the contents, and when anything of a file was last changed: programs can set the first time only."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns}"


def _stamp(entry: Mapping[str, Any]) -> tuple[int, str]:
    stamp = next((str(entry[k]) for k in ("ETag", "etag", "LastModified", "mtime", "created") if k in entry), "")
    return int(entry.get("size") or 0), stamp
