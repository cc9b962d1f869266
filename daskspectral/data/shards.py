"""Presence of the chunks in sharded zarr arrays, from the index of each shard.

If its writer was stopped, a shard is a whole file whose index marks chunks as absent, and zarr returns fill values
for them. Only the indices are read, by byte ranges.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

Index = tuple[int, ...]
SHARDING = "sharding_indexed"
ABSENT = (1 << 64) - 1  # offset and length of a chunk that is not in the shard
AT_ONCE = 16  # indices that are fetched concurrently
ROWS_AT_ONCE = 256  # files along the rows whose indices are in memory together


def smallest_chunk(array: zarr.Array[Any], where: str) -> Index:
    """Return the shape of the chunks that are files or listed in the index of a shard."""
    metadata: Any = array.metadata.to_dict()
    if any(codec["name"] == SHARDING for codec in metadata.get("codecs") or ()):
        _index_size(array, where)
    return array.chunks


def described(
    array: zarr.Array[Any], file: Index, index: Index | None = None, unit: Index | None = None, *, of: str = ""
) -> str:
    """Return the name and rows of a chunk for messages: a file, or chunk `index` of the size `unit` in one."""
    key = array.metadata.encode_chunk_key(file)
    what, place, rows = f"chunk {key}", file[0], (array.shards or array.chunks)[0]
    if index is not None and unit is not None:
        what, place, rows = f"chunk {index} in shard {key}", index[0], unit[0]
    span = f" (rows {place * rows} to {min((place + 1) * rows, array.shape[0])})" if array.ndim < 3 else ""
    return f"{what}{of}{span}"


def first_missing(array: zarr.Array[Any], where: str, size_of: Callable[[str], int]) -> tuple[str, int, int] | None:
    """Return the first chunk that is missing in shards, and the numbers of missing and of all; None if none is."""
    unit, whole = smallest_chunk(array, where), array.shards
    if whole is None:
        return None
    grid = tuple(math.ceil(n / c) for n, c in zip(array.shape, unit, strict=True))
    files, per = math.ceil(array.shape[0] / whole[0]), whole[0] // unit[0]
    first, missing = "", 0
    for low in range(0, files, ROWS_AT_ONCE):
        found = stored_chunks(array, where, low, min(low + ROWS_AT_ONCE, files), size_of)
        absent = ~found[(slice(grid[0] - low * per), *map(slice, grid[1:]))]
        if not first and absent.any():
            index = tuple(int(i) for i in np.argwhere(absent)[0] + [low * per, *(0 for _ in grid[1:])])
            first = described(array, tuple(i * u // w for i, u, w in zip(index, unit, whole, strict=True)), index, unit)
        missing += int(np.count_nonzero(absent))
    return (first, missing, math.prod(grid)) if missing else None


def first_absent(array: zarr.Array[Any], where: str, indices: Iterable[Index]) -> str | None:
    """Return the name and rows of the first of these chunks that is missing; None if all exist."""
    unit, whole, size_of = array.chunks, array.shards or array.chunks, partial(_size_of, array)
    held: dict[int, NDArray[np.bool_]] = {}
    for index in indices:
        file = tuple(i * u // w for i, u, w in zip(index, unit, whole, strict=True))
        if not size_of(array.metadata.encode_chunk_key(file)):
            return described(array, file, of=f" of {where}")
        if whole == unit:
            continue
        if file[0] not in held:
            held[file[0]] = stored_chunks(array, where, file[0], file[0] + 1, size_of)
        if not held[file[0]][(index[0] - file[0] * (whole[0] // unit[0]), *index[1:])]:
            return described(array, file, index, unit, of=f" of {where}")
    return None


def _size_of(array: zarr.Array[Any], key: str) -> int:
    store, place = array.store, f"{array.path}/{key}".lstrip("/")
    if isinstance(store, LocalStore):
        path = os.path.join(store.root, place)
        return os.path.getsize(path) if os.path.isfile(path) else 0
    if isinstance(store, FsspecStore):
        store.fs.invalidate_cache()  # it may have cached a listing
    try:
        return int(sync(store.getsize(place)))
    except FileNotFoundError:
        return 0


def stored_chunks(
    array: zarr.Array[Any], where: str, first: int, last: int, size_of: Callable[[str], int]
) -> NDArray[np.bool_]:
    """Return which chunks are in the shards `first` to `last` along the rows.

    Raises OSError for an index that is truncated or lists chunks beyond the end of the shard.
    """
    whole = array.shards
    assert whole is not None
    per = tuple(w // c for w, c in zip(whole, array.chunks, strict=True))
    size, at_end = _index_size(array, where)
    request: ByteRequest = SuffixByteRequest(size) if at_end else RangeByteRequest(0, size)
    grid = (last - first, *(math.ceil(n / w) for n, w in zip(array.shape[1:], whole[1:], strict=True)))
    found = np.zeros([n * k for n, k in zip(grid, per, strict=True)], dtype=bool)
    limit = asyncio.Semaphore(AT_ONCE)

    keys = {place: array.metadata.encode_chunk_key((place[0] + first, *place[1:])) for place in np.ndindex(grid)}
    sizes = {place: bytes_there for place, key in keys.items() if (bytes_there := size_of(key))}

    async def look(place: Index) -> None:
        key = f"{array.path}/{keys[place]}".lstrip("/")
        async with limit:
            index = await array.store.get(key, default_buffer_prototype(), request)
        data = b"" if index is None else index.to_bytes()[: 16 * math.prod(per)]
        start, length = np.frombuffer(data.ljust(16 * math.prod(per), b"\0"), "<u8").reshape(*per, 2).T
        there = (start != ABSENT) & (length > 0)
        if len(data) < 16 * math.prod(per) or (start + length > sizes[place])[there].any():
            raise OSError(f"{where} has a damaged index in shard {keys[place]}. Restore the file")
        found[tuple(slice(i * k, (i + 1) * k) for i, k in zip(place, per, strict=True))] = there.T

    async def look_at_all() -> None:
        await asyncio.gather(*map(look, sizes))

    sync(look_at_all())
    return found


def _index_size(array: zarr.Array[Any], where: str) -> tuple[int, bool]:
    """Return the size in bytes of a shard's index, and whether it is at the end; OSError for unusual codecs."""
    metadata: Any = array.metadata.to_dict()
    config = metadata["codecs"][0].get("configuration", {})
    index, inside = ([codec["name"] for codec in config.get(key, ())] for key in ("index_codecs", "codecs"))
    little = all(codec.get("configuration", {}).get("endian") != "big" for codec in config.get("index_codecs", ()))
    if len(metadata["codecs"]) > 1 or SHARDING in inside or index not in (["bytes"], ["bytes", "crc32c"]) or not little:
        raise OSError(
            f"{where} must have {SHARDING} as the only codec of its shards. Write it again without other codecs"
        )
    chunks = math.prod(w // c for w, c in zip(array.shards or array.chunks, array.chunks, strict=True))
    return 16 * chunks + 4 * (len(index) - 1), config.get("index_location", "end") == "end"
