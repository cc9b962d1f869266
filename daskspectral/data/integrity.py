"""Is the store whole, and is it the same before and after a run? One listing of its keys answers both.

zarr returns the fill value for a chunk that is missing, without a word; here it is an error.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import zarr
from zarr.storage import FsspecStore

from daskspectral.data.lease import NAME
from daskspectral.data.readers import Reader, ZarrReader
from daskspectral.data.remote import reaching, synchronous
from daskspectral.data.source import Source, label_of

MOST_HEADERS = 100_000  # files whose headers are read before a run: a second of a local disk


@dataclass(frozen=True, eq=False)
class Listing:
    """The chunk files of one array: name (relative to the array) to size and a stamp (mtime, or an etag)."""

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
            "among them; the sums hold a mixture, and were not kept. Run again on data that stay as they are"
        )


class Snapshot:
    """A record of the zarr stores behind a source, made before a run to be compared after it.

    Making it raises OSError where a chunk is missing, unless `allow_missing`, or where a file was cut short.
    """

    def __init__(self, source: Source, *, allow_missing: bool):
        self._fields = dict(source.readers)
        self._readers = {id(part): part for reader in self._fields.values() for part in reader.stored}
        self._before = {key: list_chunks(reader) for key, reader in self._readers.items()}
        for key, reader in self._readers.items():
            if not allow_missing:
                check_chunks(reader, self._before[key])
            check_headers(reader, self._before[key])

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
        result: dict[str, Any] = {}
        for name, reader in self._fields.items():
            parts = [self._of_part(part) for part in reader.stored]
            if reader.stored == (reader,):
                result[label_of(name)] = parts[0]
            else:
                result[label_of(name)] = {**reader.identity, "parts": parts}
        return result

    def _of_part(self, reader: Reader) -> dict[str, Any]:
        listing = self._before[id(reader)]
        plain = {k: v for k, v in reader.identity.items() if k != "name"}
        return {**plain, "files": None if listing is None else listing.digest}


def list_chunks(reader: Reader) -> Listing | None:
    """The files of a zarr array in a file system or object store; None for data of another kind."""
    if not isinstance(reader, ZarrReader):
        return None
    if isinstance(reader.store, str):
        root = os.path.join(reader.store, reader.path) if reader.path else reader.store
        return Listing(reader.name, dict(_local_files(root, "")))
    if isinstance(reader.store, FsspecStore):
        return Listing(reader.name, dict(_remote_files(reader.array, reader.name)))
    return None


def check_chunks(reader: Reader, listing: Listing | None) -> None:
    """Raise OSError naming the first chunk that is missing or empty.

    Nothing is read: the keys that the array must have are compared with the listing.
    """
    if listing is None or not isinstance(reader, ZarrReader) or reader.allow_missing:
        return
    array = reader.array
    unit = getattr(array, "shards", None) or array.chunks
    grid = [math.ceil(n / c) for n, c in zip(array.shape, unit, strict=True)]
    missing, first = 0, ""
    for index in product(*(range(g) for g in grid)):
        key = array.metadata.encode_chunk_key(index)
        if listing.files.get(key, (0, ""))[0] == 0:
            missing += 1
            if not first:
                what = "is empty" if key in listing.files else "is missing"
                rows = f" (rows {index[0] * unit[0]} to {min((index[0] + 1) * unit[0], array.shape[0])})"
                first = f"chunk {key}{rows if array.ndim < 3 else ''} {what}"
    if missing:
        raise OSError(
            f"{reader.name} is not whole: {first}, and {missing} of {math.prod(grid)} chunks in all; zarr would read "
            f"them as the fill value {array.fill_value}. Restore them, or if fill values are meant, pass "
            "allow_missing=True (--allow-missing in the shell)"
        )


def check_whole_source(source: Source) -> None:
    """Raise OSError naming the first chunk that is missing behind rows that dask reads from zarr arrays."""
    for reader in source.readers.values():
        for part in reader.stored if reader.stored != reader.parts else ():
            check_chunks(part, list_chunks(part))


def check_headers(reader: Reader, listing: Listing | None) -> None:
    """Raise OSError for a Blosc file shorter than its header says: Blosc would decode memory beyond its end."""
    if listing is None or not isinstance(reader, ZarrReader) or not isinstance(reader.store, str):
        return
    array, root = reader.array, os.path.join(reader.store, reader.path)
    grid = [range(math.ceil(n / c)) for n, c in zip(array.shape, array.chunks, strict=True)]
    if not _ends_in_blosc(array) or math.prod(map(len, grid)) > MOST_HEADERS:
        return
    keys = [key for key in map(array.metadata.encode_chunk_key, product(*grid)) if key in listing.files]

    def promised(key: str) -> int:
        with open(os.path.join(root, key), "rb", buffering=0) as file:
            return int.from_bytes(file.read(16)[12:], "little")

    with ThreadPoolExecutor(16) as pool:
        for key, size in zip(keys, pool.map(promised, keys), strict=True):
            if 0 < listing.files[key][0] < max(16, size):
                raise OSError(
                    f"{reader.name} is damaged: chunk {key} has {listing.files[key][0]} bytes, and its Blosc header "
                    f"promises {size}: the file was cut short. Restore it or write it again"
                )


def _ends_in_blosc(array: zarr.Array[Any]) -> bool:
    if array.metadata.zarr_format == 2:
        return getattr(array.metadata.compressor, "codec_id", "") == "blosc"
    codecs: Any = array.metadata.to_dict()["codecs"]
    return str(codecs[-1]["name"]) in ("blosc", "numcodecs.blosc")


def _local_files(root: str, prefix: str) -> Iterator[tuple[str, tuple[int, str]]]:
    with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
        for entry in entries:
            name = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir():
                yield from _local_files(root, name)
            else:
                status = entry.stat()
                yield name, (status.st_size, str(status.st_mtime_ns))


def _remote_files(array: zarr.Array[Any], name: str) -> Iterator[tuple[str, tuple[int, str]]]:
    store = array.store
    assert isinstance(store, FsspecStore)
    root = f"{store.path}/{array.path}".rstrip("/")
    files = synchronous(store.fs)
    files.invalidate_cache()
    with reaching(name, files=files):
        found = files.find(root, detail=True)
    for path, entry in found.items():
        key = path.removeprefix(root).lstrip("/")
        if key == NAME:  # of the run that wrote the array, and is about to go
            continue
        stamp = next((str(entry[k]) for k in ("ETag", "etag", "LastModified", "mtime", "created") if k in entry), "")
        yield key, (int(entry.get("size") or 0), stamp)
