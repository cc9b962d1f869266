"""Presence of the chunks in sharded zarr arrays, from the index of each shard.

A shard whose writer was stopped is a whole file whose index marks chunks as absent, and zarr returns fill values for
them. Only the indices are read, by byte ranges.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from daskspectral.data.readers import DAMAGE
from daskspectral.data.stores import metadata_of, open_array

Index = tuple[int, ...]
SHARDING = "sharding_indexed"
ABSENT = (1 << 64) - 1  # offset and length of a chunk that a shard does not hold
AT_ONCE = 16  # indices that are fetched at the same time
ENTRIES = 1 << 18  # of indices that are held at the same time


@dataclass(frozen=True)
class Shard:
    """A range of bytes of a file that ends or begins with an index."""

    key: str
    begin: int
    size: int


@dataclass(frozen=True)
class Layer:
    """The shape of the chunks in shards of the shape `unit`, and the codecs and the place of the index."""

    unit: Index
    chunk: Index
    codecs: tuple[Any, ...]
    at_end: bool

    @property
    def per(self) -> Index:
        """The number of chunks in a shard along each dimension."""
        return tuple(n // c for n, c in zip(self.unit, self.chunk, strict=True))

    @property
    def index_size(self) -> int:
        """The size of the index in bytes."""
        return 16 * math.prod(self.per) + 4 * [codec["name"] for codec in self.codecs].count("crc32c")

    def inside(self, shard: Index) -> tuple[slice, ...]:
        """Return the places of the chunks of a shard among all chunks."""
        return tuple(slice(i * k, (i + 1) * k) for i, k in zip(shard, self.per, strict=True))


def smallest_chunk(array: zarr.Array[Any], where: str) -> Index:
    """Return the shape of the smallest chunks of an array that are files or are listed in the index of a shard.

    Raises OSError if shards are encoded by further codecs, so that their index cannot be read alone.
    """
    layers = _layers(array, where)
    return layers[-1].chunk if layers else array.chunks


def described(
    array: zarr.Array[Any], file: Index, index: Index | None = None, unit: Index | None = None, *, of: str = ""
) -> str:
    """Return the name and the rows of a chunk, for messages: a file, or the chunk `index` of the size `unit` in one."""
    key = array.metadata.encode_chunk_key(file)
    what, place, rows = f"chunk {key}", file[0], (array.shards or array.chunks)[0]
    if index is not None and unit is not None:
        what, place, rows = f"chunk {index} in shard {key}", index[0], unit[0]
    span = f" (rows {place * rows} to {min((place + 1) * rows, array.shape[0])})" if array.ndim < 3 else ""
    return f"{what}{of}{span}"


def first_missing(array: zarr.Array[Any], where: str, size_of: Callable[[str], int]) -> tuple[str, int, int] | None:
    """Return the first chunk that shards lack, the number of such chunks and of all; None if there is none.

    Raises OSError as `stored_chunks` does.
    """
    unit, whole = smallest_chunk(array, where), array.shards or array.chunks
    if unit == whole:
        return None
    grid = tuple(math.ceil(n / c) for n, c in zip(array.shape, unit, strict=True))
    per = whole[0] // unit[0]
    step = max(1, ENTRIES // (per * math.prod(grid[1:])))
    first, missing = "", 0
    for low in range(0, math.ceil(grid[0] / per), step):
        high = min(low + step, math.ceil(grid[0] / per))
        found = stored_chunks(array, where, low, high, size_of)
        absent = ~found[(slice(grid[0] - low * per), *map(slice, grid[1:]))]
        if not first and absent.any():
            index = tuple(int(i) for i in np.argwhere(absent)[0] + [low * per, *(0 for _ in grid[1:])])
            first = described(array, tuple(i * u // w for i, u, w in zip(index, unit, whole, strict=True)), index, unit)
        missing += int(np.count_nonzero(absent))
    return (first, missing, math.prod(grid)) if missing else None


def stored_chunks(
    array: zarr.Array[Any], where: str, first: int, last: int, size_of: Callable[[str], int]
) -> NDArray[np.bool_]:
    """Return which of the smallest chunks are in the files `first` to `last` along the rows.

    `size_of` returns the size of a file by its key, 0 if there is none. Raises OSError that names the shard if its
    index is damaged, or lists chunks beyond the end of the shard.
    """
    unit = array.shards or array.chunks
    grid = (last - first, *(math.ceil(n / c) for n, c in zip(array.shape[1:], unit[1:], strict=True)))
    keys = {file: array.metadata.encode_chunk_key((file[0] + first, *file[1:])) for file in np.ndindex(grid)}
    shards = {file: Shard(key, 0, size) for file, key in keys.items() if (size := size_of(key))}
    found = np.zeros(grid, dtype=bool)
    for file in shards:
        found[file] = True
    layers = _layers(array, where)
    for layer in layers:
        entries = _entries(array, where, shards, grid, layer)
        found, grid = (entries[..., 0] != ABSENT) & (entries[..., 1] > 0), entries.shape[:-1]
        inner: dict[Index, Shard] = {}
        for place, shard in shards.items():
            for chunk in np.argwhere(found[layer.inside(place)]) if layer is not layers[-1] else ():
                index = tuple(int(i * k + c) for i, k, c in zip(place, layer.per, chunk, strict=True))
                inner[index] = Shard(shard.key, shard.begin + int(entries[index][0]), int(entries[index][1]))
        shards = inner
    return found


def _layers(array: zarr.Array[Any], where: str) -> list[Layer]:
    """Return the layers of an array in shards, and in shards within them; none without shards."""
    metadata: Any = array.metadata.to_dict()
    if metadata["zarr_format"] != 3:
        return []
    found: list[Layer] = []
    unit, codecs = metadata["chunk_grid"]["configuration"]["chunk_shape"], metadata["codecs"]
    while any(codec["name"] == SHARDING for codec in codecs):
        if len(codecs) > 1:
            raise OSError(
                f"{where} encodes whole shards by {', '.join(codec['name'] for codec in codecs)}, so that chunks that "
                f"are missing in them cannot be detected. Write it again with {SHARDING} as the only codec"
            )
        config = codecs[0]["configuration"]
        at_end = config["index_location"] == "end"
        found.append(Layer(tuple(unit), tuple(config["chunk_shape"]), tuple(config["index_codecs"]), at_end))
        unit, codecs = config["chunk_shape"], config["codecs"]
    return found


def _entries(
    array: zarr.Array[Any], where: str, shards: Mapping[Index, Shard], grid: Index, layer: Layer
) -> NDArray[np.uint64]:
    """Return offset and length (..., 2) of each chunk of the shards in a grid.

    zarr decodes the indices, checksums included, as the chunks of an array in memory.
    """
    prototype, size, limit = default_buffer_prototype(), layer.index_size, asyncio.Semaphore(AT_ONCE)

    async def fetched(place: Index, shard: Shard) -> tuple[str, Buffer]:
        begin = shard.begin + (max(0, shard.size - size) if layer.at_end else 0)
        name = f"{array.path}/{shard.key}".lstrip("/")
        async with limit:
            found = await array.store.get(name, prototype, RangeByteRequest(begin, begin + min(size, shard.size)))
        return "/".join(("c", *map(str, place), "0")), found or prototype.buffer.from_bytes(b"")

    async def all_fetched() -> dict[str, Buffer]:
        return dict(await asyncio.gather(*(fetched(place, shard) for place, shard in shards.items())))

    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [*(n * k for n, k in zip(grid, layer.per, strict=True)), 2],
        "data_type": "uint64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*layer.per, 2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": ABSENT,
        "codecs": layer.codecs,
        "attributes": {},
    }
    held = {"zarr.json": prototype.buffer.from_bytes(json.dumps(document).encode()), **sync(all_fetched())}
    with metadata_of(where):
        indices = open_array(MemoryStore(held))

    def decoded(shard: Shard, place: tuple[slice, ...]) -> NDArray[np.uint64]:
        try:
            return np.asarray(indices[place])
        except DAMAGE as error:
            raise OSError(
                f"{where} is damaged: the index of shard {shard.key} cannot be decoded ({error}). Restore the file, or "
                "write the array again"
            ) from error

    try:
        entries = np.asarray(indices[...])
    except DAMAGE:
        for place, shard in shards.items():
            decoded(shard, layer.inside(place))
        raise
    for place, shard in shards.items():
        own = entries[layer.inside(place)]
        start, length = own[..., 0], own[..., 1]
        here = start != ABSENT
        if (start[here] > shard.size).any() or (length[here] > shard.size - start[here]).any():
            raise OSError(
                f"{where} is damaged: the index of shard {shard.key} lists chunks beyond the {shard.size} bytes of the "
                "shard. Restore the file, or write the array again"
            )
    return entries
