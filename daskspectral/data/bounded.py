"""Codecs that give back no more than a chunk can hold: a few bytes in a file may stand for gigabytes."""

from __future__ import annotations

import asyncio
import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numcodecs  # type: ignore[import-untyped]
import numpy as np
from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy  # type: ignore[import-untyped]
from zarr.abc.codec import BytesBytesCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer
from zarr.registry import get_codec_class, register_codec

NAME = "daskspectral_bounded"
COMPRESSORS = frozenset({"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"})
PLAIN_BYTES = 1 << 26  # that are read, whatever is stored and declared
TEXT_BYTES = 512  # of a value whose dtype has no size


def bounded(metadata: Any) -> Any:
    """A metadata document of zarr, consolidated or not, in which bounded codecs stand around those that decompress.

    Arrays that zarr makes of it describe themselves by the codecs of the file again.
    """
    if not isinstance(metadata, Mapping):
        return metadata
    found = dict(metadata)
    if "consolidated_metadata" in found:
        found["consolidated_metadata"] = bounded(found["consolidated_metadata"])
    if isinstance(members := metadata.get("metadata"), Mapping):
        found["metadata"] = {name: bounded(member) for name, member in members.items()}
    if metadata.get("node_type") == "array":
        found["codecs"] = _codecs(metadata.get("codecs"))
    elif "compressor" in metadata and "chunks" in metadata:
        most = _most(metadata["chunks"], _itemsize(metadata.get("dtype")))
        found["compressor"] = _codec(metadata["compressor"], most)
        filters = metadata.get("filters")
        found["filters"] = [_codec(codec, most) for codec in filters] if isinstance(filters, list) else filters
    return found


def _codecs(codecs: Any) -> Any:
    return [_codec(codec) for codec in codecs] if isinstance(codecs, list) else codecs


def _codec(codec: Any, most: int | None = None) -> Any:
    if not isinstance(codec, Mapping):
        return codec
    if most is not None:
        return {"id": NAME, "codec": codec, "most": most} if codec.get("id") in COMPRESSORS else codec
    if str(codec.get("name")).removeprefix("numcodecs.") in COMPRESSORS:
        return {"name": NAME, "configuration": {"codec": codec}}
    inside = codec.get("configuration")
    if isinstance(inside, Mapping) and "codecs" in inside:
        return {**codec, "configuration": {**inside, "codecs": _codecs(inside["codecs"])}}
    return codec


def _itemsize(dtype: Any) -> int:
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):  # records, and what zarr refuses
        return TEXT_BYTES
    return TEXT_BYTES if found.hasobject else found.itemsize


def _most(shape: Any, itemsize: int) -> int:
    """Bytes that a chunk may have, encoded by some filters or not, before it is compressed."""
    whole = isinstance(shape, Sequence) and all(isinstance(n, int) for n in shape)
    return max(PLAIN_BYTES, 2 * itemsize * math.prod(shape)) if whole else PLAIN_BYTES


class BoundedNumcodec(numcodecs.abc.Codec):  # type: ignore[misc]  # numcodecs has no types
    """A compressor of zarr's format 2. Raises ValueError for a chunk that stands for more than `most` bytes."""

    codec_id = NAME

    def __init__(self, codec: Mapping[str, Any], most: int):
        self.inner, self.most = numcodecs.get_codec(dict(codec)), most
        self.codec_id = self.inner.codec_id

    def encode(self, buf: Any) -> Any:
        return self.inner.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        found = decompressed(self.get_config(), buf, self.most)
        return self.inner.decode(buf, out) if found is None else ndarray_copy(found, out)

    def get_config(self) -> Any:
        return self.inner.get_config()


@dataclass(frozen=True)
class BoundedCodec(BytesBytesCodec):
    """A compressor of zarr's format 3. Raises ValueError for a chunk that stands for more than it may hold."""

    inner: BytesBytesCodec
    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        codec = data["configuration"]["codec"]
        return cls(get_codec_class(codec["name"]).from_dict(codec))  # type: ignore[arg-type]

    def to_dict(self) -> Any:
        return self.inner.to_dict()

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        return type(self)(self.inner.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return self.inner.compute_encoded_size(input_byte_length, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer:
        described: Any = self.inner.to_dict()
        config = {**described.get("configuration", {}), "id": described["name"].removeprefix("numcodecs.")}
        most = _most(chunk_spec.shape, _itemsize(chunk_spec.dtype.to_native_dtype()))
        found = await asyncio.to_thread(decompressed, config, chunk_data.as_numpy_array(), most)
        if found is None:
            return await self.inner._decode_single(chunk_data, chunk_spec)
        return chunk_spec.prototype.buffer.from_bytes(found)

    async def _encode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await self.inner._encode_single(chunk_data, chunk_spec)


def decompressed(config: Mapping[str, Any], stored: Any, most: int) -> Any:
    """What a chunk stands for; None where it promises at most `most` bytes, and its codec keeps to what is promised.

    Raises ValueError where it stands for more.
    """
    name, data = config["id"], memoryview(ensure_contiguous_ndarray(stored)).cast("B")
    if name in STREAMS:
        return _streams(name, STREAMS[name](config), bytes(data), most)
    if (_of_zstd(data, most) if name == "zstd" else int.from_bytes(data[PROMISES[name]], "little")) > most:
        raise _too_large(most)
    return None


def _too_large(most: int) -> ValueError:
    return ValueError(f"its compressed bytes stand for more than {most}, which are more than the chunk can hold")


def _streams(name: str, begun: Callable[[], Any], data: bytes, most: int) -> bytes:
    """What compressed streams behind one another stand for."""
    parts: list[bytes] = []
    while data or not parts:
        stream = begun()
        try:
            parts.append(stream.decompress(data, most + 1))
        except (OSError, lzma.LZMAError):
            if parts and name in ("bz2", "lzma"):  # what follows is no stream, and their codecs leave it out
                break
            raise
        most -= len(parts[-1])
        if most < 0:
            raise _too_large(most + sum(map(len, parts)))
        if not stream.eof:
            raise ValueError("it is cut short: its compressed stream has no end")
        data = b"" if name == "zlib" else stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


STREAMS: dict[str, Callable[[Mapping[str, Any]], Callable[[], Any]]] = {
    "bz2": lambda config: bz2.BZ2Decompressor,
    "gzip": lambda config: partial(zlib.decompressobj, 31),
    "lzma": lambda config: partial(lzma.LZMADecompressor, config.get("format", 1), None, config.get("filters")),
    "zlib": lambda config: zlib.decompressobj,
}
"""Codecs that promise no size: what makes one that stops at a size, from the codec's configuration."""
PROMISES = {"blosc": slice(4, 8), "lz4": slice(0, 4)}
"""Where the size stands that a codec gives back, and no more."""


def _of_zstd(data: memoryview, most: int) -> int:
    """The bytes that zstd frames promise; where one promises none, an eighth of what all their blocks can hold.

    Blocks hold up to 128 KiB, and may be ended early.
    """
    promised, held, known, at = 0, 0, True, 0
    while at + 8 < len(data) and held <= 8 * most:
        if bytes(data[at + 1 : at + 4]) == b"\x2a\x4d\x18":  # a frame that is skipped
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        flags = data[at + 4]
        single = flags >> 5 & 1
        size = (single, 2, 4, 8)[flags >> 6]
        at += 6 - single + (0, 1, 2, 4)[flags & 3]
        known = known and size > 0
        promised += int.from_bytes(data[at : at + size], "little") + 256 * (size == 2)
        at, last = at + size, False
        while not last and at + 3 <= len(data) and held <= 8 * most:
            block = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            held += size if kind < 2 else 1 << 17
            at += 3 + (1 if kind == 1 else size)
        at += 4 * (flags >> 2 & 1)
    return promised if known else held // 8


numcodecs.register_codec(BoundedNumcodec)
register_codec(NAME, BoundedCodec)
