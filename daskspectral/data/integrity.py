"""Is the store whole, and is it the same before and after a run? One listing of its keys answers both.

zarr returns the fill value for a chunk that is missing, without a word; here it is an error.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import zarr
from zarr.storage import FsspecStore

from daskspectral.data.readers import Reader, ZarrReader


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
        """Raise OSError where a later listing differs, naming a file."""
        if self.files == later.files:
            return
        changed = sorted(k for k in self.files.keys() | later.files.keys() if self.files.get(k) != later.files.get(k))
        raise OSError(
            f"{self.name} changed during the run: {len(changed)} of its files are new, gone or rewritten, {changed[0]} "
            "among them; the sums hold a mixture, and were not kept. Run again on data that stay as they are"
        )


def list_chunks(reader: Reader) -> Listing | None:
    """The files of a zarr array in a file system or object store; None for data of another kind."""
    if not isinstance(reader, ZarrReader):
        return None
    if isinstance(reader.store, str):
        root = os.path.join(reader.store, reader.path) if reader.path else reader.store
        return Listing(reader.name, dict(_local_files(root, "")))
    if isinstance(reader.store, FsspecStore):
        return Listing(reader.name, dict(_remote_files(reader.array)))
    return None


def check_chunks(reader: Reader, listing: Listing | None) -> None:
    """Raise OSError naming the first chunk that is missing or empty.

    Nothing is read: the keys that the array must have are compared with the listing.
    """
    if listing is None or not isinstance(reader, ZarrReader):
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
                rows = f"rows {index[0] * unit[0]} to {min((index[0] + 1) * unit[0], array.shape[0])}"
                first = f"chunk {key} ({rows}) {what}"
    if missing:
        raise OSError(
            f"{reader.name} is not whole: {first}, and {missing} of {math.prod(grid)} chunks in all; zarr would read "
            f"them as the fill value {array.fill_value}. Restore them, or if fill values are meant, pass "
            "allow_missing=True (--allow-missing in the shell)"
        )


def _local_files(root: str, prefix: str) -> Iterator[tuple[str, tuple[int, str]]]:
    with os.scandir(os.path.join(root, prefix) if prefix else root) as entries:
        for entry in entries:
            name = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir():
                yield from _local_files(root, name)
            else:
                status = entry.stat()
                yield name, (status.st_size, str(status.st_mtime_ns))


def _remote_files(array: zarr.Array[Any]) -> Iterator[tuple[str, tuple[int, str]]]:
    store = array.store
    assert isinstance(store, FsspecStore)
    root = f"{store.path}/{array.path}".rstrip("/")
    files = store.fs
    if getattr(files, "async_impl", False) and getattr(files, "asynchronous", False):
        import fsspec

        files = fsspec.filesystem(files.protocol if isinstance(files.protocol, str) else files.protocol[0])
    files.invalidate_cache()
    for path, entry in files.find(root, detail=True).items():
        key = path.removeprefix(root).lstrip("/")
        stamp = next((str(entry[k]) for k in ("ETag", "etag", "LastModified", "mtime", "created") if k in entry), "")
        yield key, (int(entry.get("size") or 0), stamp)
