"""Zarr stores, opened in one way: only regular files are read, and no codec that could execute what a file says.

Each metadata document is looked at before zarr sees it, wherever it lies in the store, and codecs give back no more
than a chunk can hold: a few bytes in a file may stand for gigabytes.
"""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import lzma
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Self

import numcodecs  # type: ignore[import-untyped]
import numpy as np
import zarr
from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy  # type: ignore[import-untyped]
from zarr.abc.codec import BytesBytesCodec
from zarr.abc.store import ByteRequest, RangeByteRequest, Store
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.sync import sync
from zarr.registry import get_codec_class, register_codec
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from daskspectral.data.folders import refuse_absent
from daskspectral.data.remote import Location, connect, kind_at, local_path, opening, options_in_force, reaching
from daskspectral.errors import redacted

UNUSABLE = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, AssertionError, RuntimeError),
    struct.error,
)
"""What zarr and xarray raise for metadata that are not as they expect."""
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


@contextmanager
def metadata_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever zarr or xarray raises inside for metadata that it cannot use becomes an OSError that names the path."""
    try:
        yield
    except OSError:  # of files that are not there, among others
        raise
    except UNUSABLE as error:
        reason = str(error)[:200]
        raise OSError(
            f"{os.fspath(path)} is damaged, and no zarr metadata can be read from it ({type(error).__name__}: "
            f"{reason!a}): it was cut short or overwritten. Restore it, or write the store again"
        ) from error


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
        found["codecs"] = _bounded(metadata.get("codecs"))
    elif "compressor" in metadata and "chunks" in metadata:
        most = _most(metadata["chunks"], _itemsize(metadata.get("dtype")))
        found |= {key: _bounded(metadata.get(key), most) for key in ("compressor", "filters")}
    return found


def _bounded(codec: Any, most: int | None = None) -> Any:
    """A codec, or each of a list of them, within a bounded one; `most` bytes are for codecs of format 2."""
    if isinstance(codec, list):
        return [_bounded(each, most) for each in codec]
    if not isinstance(codec, Mapping):
        return codec
    if most is not None:
        return {"id": NAME, "codec": codec, "most": most} if codec.get("id") in COMPRESSORS else codec
    if str(codec.get("name")).removeprefix("numcodecs.") in COMPRESSORS:
        return {"name": NAME, "configuration": {"codec": codec}}
    inside = codec.get("configuration")
    if isinstance(inside, Mapping) and "codecs" in inside:
        return {**codec, "configuration": {**inside, "codecs": _bounded(inside["codecs"])}}
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

    Raises ValueError where it stands for more, or is cut short.
    """
    name, data = config["id"], memoryview(ensure_contiguous_ndarray(stored)).cast("B")
    if name in STREAMS or name == "zlib":
        return _streams(config, bytes(data), most)
    if name == "blosc" and len(data) < max(16, stored_bytes := int.from_bytes(data[12:16], "little")):
        raise ValueError(  # blosc would decode memory beyond its end
            f"it has {len(data)} bytes, and its Blosc header promises {stored_bytes}: the file was cut short"
        )
    if (_of_zstd(data, most) if name == "zstd" else int.from_bytes(data[PROMISES[name]], "little")) > most:
        raise _too_large(most)
    return None


def _too_large(most: int) -> ValueError:
    return ValueError(f"its compressed bytes stand for more than {most}, which are more than the chunk can hold")


def _streams(config: Mapping[str, Any], data: bytes, most: int) -> bytes:
    """What compressed streams behind one another stand for, of a codec that promises no size."""
    if config["id"] in STREAMS:
        options = {key: config[key] for key in ("format", "filters") if config.get(key) is not None}
        with STREAMS[config["id"]](io.BytesIO(data), **options) as file:
            try:
                found = bytes(file.read(most + 1))
            except EOFError:
                raise ValueError(CUT_SHORT) from None
    else:
        stream = zlib.decompressobj()
        found = stream.decompress(data, most + 1)
        if not stream.eof and len(found) <= most:
            raise ValueError(CUT_SHORT)
    if len(found) > most:
        raise _too_large(most)
    return found


CUT_SHORT = "it is cut short: its compressed stream has no end"
STREAMS: dict[str, Callable[..., Any]] = {"bz2": bz2.open, "gzip": gzip.open, "lzma": lzma.open}
"""Codecs that promise no size, and files of the standard library that read them up to a size."""
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

OBJECTS = frozenset({"vlen-utf8", "vlen-bytes", "vlen-array"})
"""Codecs of texts and other objects that make no other objects than these."""
CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "bz2", "gzip", "lzma", "zlib"})
"""Codecs that store a checksum of what they encode."""
CODECS = (
    OBJECTS
    | CHECKSUMS
    | {
        *("blosc", "lz4", "pcodec", "zfpy", "zstd"),
        *("astype", "base64", "bitround", "categorize", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle"),
        *("bytes", "endian", "sharding_indexed", "transpose"),
    }
)
"""Codecs of zarr and numcodecs that compute, and execute nothing."""
MOST_METADATA = 100_000_000  # bytes of one metadata document
MOST_ENTRIES = 1 << 60  # of an array
DENSEST = {
    **{"astype": 16, "fixedscaleoffset": 16, "packbits": 8},
    **{"blosc": 1 << 15, "bz2": 1 << 18, "gzip": 1032, "lz4": 255, "lzma": 1 << 13, "zlib": 1032, "zstd": 1 << 15},
    **{"pcodec": 1 << 18, "zfpy": 1 << 14},
}
"""Bytes that a stored byte can hold at most, by codec, of zeros; other codecs leave the bytes as many as they are."""


class CheckedFolder(LocalStore):
    """A zarr store in a local folder."""

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """What a file holds, metadata with bounded codecs. Raises OSError as `refuse_irregular` and `refuse_codecs`."""
        path = os.path.join(self.root, key)
        try:
            refuse_irregular(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _checked(await super().get(key, prototype, byte_range), path)


class CheckedObjects(FsspecStore):
    """A zarr store at a URL."""

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """What an object holds, metadata with bounded codecs. Raises OSError as `refuse_codecs`."""
        found = await super().get(key, prototype, byte_range)
        return _checked(found, f"{self.fs.unstrip_protocol(self.path)}/{key}")


ROOT = "zarr.json"


class HeldBackStore(WrapperStore[Any]):
    """A zarr store whose root metadata are kept in memory until `publish`: until then nothing loads from it.

    They travel with it to other processes.
    """

    def __init__(self, store: Store, root: bytes | None = None):
        super().__init__(store)
        self._root = root

    def publish(self) -> None:
        """Write the root metadata: the store appears with all that it holds."""
        assert self._root is not None
        buffer = default_buffer_prototype().buffer.from_bytes(self._root)
        sync(self._store.set(ROOT, buffer))

    def _with_store(self, store: Store) -> HeldBackStore:
        return HeldBackStore(store, self._root)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        if key == ROOT:
            return None if self._root is None else prototype.buffer.from_bytes(self._root)
        found: Buffer | None = await self._store.get(key, prototype, byte_range)
        return found

    async def set(self, key: str, value: Buffer) -> None:
        if key == ROOT:
            self._root = value.to_bytes()
        else:
            await self._store.set(key, value)

    async def exists(self, key: str) -> bool:
        return self._root is not None if key == ROOT else bool(await self._store.exists(key))

    async def list(self) -> AsyncIterator[str]:
        if self._root is not None:
            yield ROOT
        async for key in self._store.list():
            yield key

    _get_many = Store._get_many  # by the methods above, not by those of the store inside
    _set_many = Store._set_many
    set_if_not_exists = Store.set_if_not_exists


def store_at(location: Location, *, read_only: bool = False) -> CheckedFolder | CheckedObjects:
    """The zarr store at a path or URL; at a URL with the options in force, and it has answered a first question.

    Raises as `connect` and `reaching` do.
    """
    text, local = os.fspath(location), local_path(location)
    if local is not None:
        return CheckedFolder(local, read_only=read_only)
    if read_only:  # zarr asks several questions at once, and leaves some pending where one fails
        files, root = connect(text)
        with reaching(text, files=files):
            kind_at(files, f"{root}/zarr.json")
    with opening(text):
        found = CheckedObjects.from_url(text, storage_options=options_in_force(), read_only=read_only)
    assert isinstance(found, CheckedObjects)
    return found


def open_node(location: Location, *, zarr_format: Literal[3] | None = None) -> zarr.Array[Any] | zarr.Group:
    """The zarr array or group at a path or URL.

    Raises OSError that names the file for damaged metadata and as `refuse_codecs` and `refuse_irregular` do, what zarr
    raises where there is nothing, and as `reaching` does.
    """
    text = os.fspath(location)
    store = store_at(text, read_only=True)
    with metadata_of(local_path(text) or text), reaching(text):
        return zarr.open(store, mode="r", zarr_format=zarr_format)


def open_array(store: str | Store, path: str = "", *, mode: Literal["r", "r+"] = "r") -> zarr.Array[Any]:
    """The zarr array at a path in a local folder or in a store. Raises as zarr and as `refuse_codecs` do.

    An array that is open for writing writes chunks of fill values too: a reader takes chunks that are not there for
    missing ones.
    """
    place = store_at(store, read_only=mode == "r") if isinstance(store, str) else store
    found = zarr.open_array(place, path=path, mode=mode)
    if mode == "r":
        return found
    metadata: Any = found.metadata
    return zarr.Array(zarr.AsyncArray(metadata, found.store_path, {"write_empty_chunks": True}))


def refuse_codecs(metadata: Mapping[str, Any], where: str) -> None:
    """Raise OSError for a codec in a metadata document, consolidated or not, that might execute what a file says.

    Objects are read as texts, bytes or arrays only.
    """
    names = {str(codec.get(key)) for codec in codecs_of(metadata) for key in ("id", "name") if key in codec}
    unknown = sorted(name for name in names if name.removeprefix("numcodecs.") not in CODECS)
    if unknown:
        raise OSError(
            f"{where} names the codec {unknown[0][:80]!a}, which might execute what the file says: nothing was read. "
            f"Where you trust it, read it by zarr and write it again with a codec among {', '.join(sorted(CODECS))}"
        )
    if "|O" in json.dumps(metadata.get("dtype")) and not names & OBJECTS:
        raise OSError(
            f"{where} holds objects (dtype |O) without one of the codecs {', '.join(sorted(OBJECTS))}: nothing was "
            "read. Write it again as numbers or text"
        )
    for name, member in _members(metadata):
        if not isinstance(member, Mapping):
            raise OSError(f"{where} has no metadata of {name!a}, but {type(member).__name__}: restore it")
        refuse_codecs(member, f"{where}: {name}")


def refuse_sizes(metadata: Mapping[str, Any], where: str) -> None:
    """Raise OSError for an array, chunks or shards in a metadata document whose lengths cannot be those of an array."""
    grid, configurations = metadata.get("chunk_grid"), [codec.get("configuration") for codec in codecs_of(metadata)]
    configurations += [grid.get("configuration")] if isinstance(grid, Mapping) else []
    shapes = [inside.get("chunk_shape") for inside in configurations if isinstance(inside, Mapping)]
    for shape, least in (
        (metadata.get("shape"), 0),
        (metadata.get("chunks"), 0 if 0 in _sequence(metadata.get("shape")) else 1),
        *((shape, 1) for shape in shapes),
    ):
        lengths = _sequence(shape)
        if any(isinstance(n, int) and n < least for n in lengths):
            raise OSError(f"{where} declares {str(shape)[:80]} entries, and lengths are {least} or more: restore it")
        if all(isinstance(n, int) for n in lengths) and math.prod(lengths) > MOST_ENTRIES:
            raise OSError(
                f"{where} declares {str(shape)[:80]} entries, more than any array has ({MOST_ENTRIES}): restore it"
            )
    for name, member in _members(metadata):
        if isinstance(member, Mapping):
            refuse_sizes(member, f"{where}: {name!a}")


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _members(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The documents in consolidated metadata of either format, by their names."""
    for inside in (metadata, metadata.get("consolidated_metadata")):
        members = inside.get("metadata") if isinstance(inside, Mapping) else None
        yield from members.items() if isinstance(members, Mapping) else ()


def codecs_of(metadata: Mapping[str, Any], index: bool = True) -> Iterator[Mapping[str, Any]]:
    """The codecs in the metadata of an array, those in shards with them, and those of the shards' index if asked."""
    for key in ("compressor", "filters", "codecs", "index_codecs") if index else ("compressor", "filters", "codecs"):
        found = metadata.get(key)
        for codec in found if isinstance(found, (list, tuple)) else [found]:
            if isinstance(codec, Mapping):
                yield codec
                inside = codec.get("configuration")
                yield from codecs_of(inside, index) if isinstance(inside, Mapping) else ()
            elif codec is not None:
                yield {"name": codec}


def has_checksums(metadata: Mapping[str, Any]) -> bool:
    """Whether the values of an array are stored with checksums, which are compared when they are decoded."""
    for codec in codecs_of(metadata, index=False):
        inside = codec.get("configuration") or codec
        name = str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")
        if name in CHECKSUMS or inside.get("checksum") is True:
            return True
    return False


def refuse_irregular(path: str) -> os.stat_result:
    """The status of a file or folder, links followed.

    Raises OSError for what is neither a regular file nor a folder, and for endless metadata.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise OSError(
            f"{path} is no regular file but a pipe, a device or a socket, or a link to one, which may have no end: "
            "nothing was read. Put a file in its place, or remove it"
        )
    if os.path.basename(path) in METADATA and status.st_size > MOST_METADATA:
        raise OSError(
            f"{path} has {status.st_size} bytes, and metadata of at most {MOST_METADATA} are read: restore it, or "
            "write the store again"
        )
    return status


def refuse_inflated(where: str, declared: int, stored: int, densest: int, remedy: str) -> None:
    """Raise OSError for more bytes than PLAIN_BYTES, and than those that are stored can hold, `densest` in each."""
    if declared > max(PLAIN_BYTES, densest * stored):
        raise OSError(
            f"{where} declares {declared} bytes, more than the {stored} bytes that are stored of it can hold: it was "
            f"altered or is incomplete. {remedy}"
        )


def refuse_oversized(array: zarr.Array[Any], where: str) -> None:
    """Raise OSError for an array, to be read whole, that is larger than the chunks that are stored of it can hold."""
    if array.nbytes > PLAIN_BYTES:
        names = [str(codec.get("id", codec.get("name"))) for codec in codecs_of(array.metadata.to_dict(), index=False)]
        densest = math.prod(DENSEST.get(name.removeprefix("numcodecs."), 1) for name in names)
        refuse_inflated(where, array.nbytes, sync(_stored_bytes(array)), densest, "Restore it, or write it again")


def chunk_index(array: zarr.Array[Any], key: str) -> tuple[int, ...] | None:
    """The place in the grid of the chunk, or shard, in a file of this name below the array's; None for other files."""
    index = tuple(map(int, re.findall(r"\d+", key)))
    inside = len(index) == array.ndim and all(
        i * c < n for i, c, n in zip(index, array.shards or array.chunks, array.shape, strict=True)
    )
    return index if inside and array.metadata.encode_chunk_key(index) == key else None


async def _stored_bytes(array: zarr.Array[Any]) -> int:
    """The sizes of the chunk files of an array, or of its shards, together."""
    prefix, total = f"{array.path}/".lstrip("/"), 0
    async for key in array.store.list_prefix(prefix):
        if chunk_index(array, key.removeprefix(prefix)) is not None:
            total += await array.store.getsize(key)
    return total


def _checked(found: Buffer | None, path: str) -> Buffer | None:
    if found is not None and path.rpartition("/")[2] in METADATA:
        with metadata_of(path):
            metadata = json.loads(found.to_bytes())
            for part in (metadata, metadata.get("attributes", {}) if isinstance(metadata, Mapping) else {}):
                if not isinstance(part, Mapping):
                    raise TypeError(f"metadata and attributes are mappings, got {type(part).__name__}")
            refuse_codecs(metadata, path)
            refuse_sizes(metadata, path)
            within = bounded(metadata)
        if within != metadata:
            return type(found).from_bytes(json.dumps(within).encode())
    return found


MAIN = "main_array"
"""Attribute of a group: the name of the array that is meant where one array of the group is wanted."""

MOST_MEMBERS = 10_000  # arrays and groups that are looked for within groups


def data_arrays(group: zarr.Group) -> dict[str, zarr.Array[Any]]:
    """The arrays of a group that are data by name, coordinates and bounds left out.

    It is empty for a group whose arrays have no named dimensions. A coordinate has the name of its dimension, or is
    named by the attribute `coordinates` of the group or of another array (the CF conventions).

    Raises OSError as `refuse_codecs`, and as `refuse_oversized` for a coordinate of its dimension, which is read whole.
    """
    members: dict[str, zarr.Array[Any]] = {k: v for k, v in group.members() if isinstance(v, zarr.Array)}
    dims = {name: dimensions(array) for name, array in members.items()}
    for name, array in members.items():
        refuse_codecs(array.metadata.to_dict(), f"{group.store}/{array.path}")
        if dims[name] == (name,):
            refuse_oversized(array, f"{group.store}/{array.path}")
    if not members or any(names is None for names in dims.values()):
        return {}
    aside = set(str(group.attrs.get("coordinates", "")).split())
    for array in members.values():
        for key in ("coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables"):
            aside |= set(str(array.attrs.get(key, "")).split())
    return {k: v for k, v in members.items() if k not in aside and dims[k] != (k,) and v.shape}


def all_arrays(group: zarr.Group, name: str) -> dict[str, zarr.Array[Any]]:
    """The arrays of a group and of the groups in it by their paths in it.

    Raises OSError for more than MOST_MEMBERS, as links that lead round and round have.
    """
    found: dict[str, zarr.Array[Any]] = {}
    waiting = [group]
    for inside in waiting:  # which grows meanwhile
        for _, member in inside.members():
            if isinstance(member, zarr.Array):
                found[member.path.removeprefix(f"{group.path}/")] = member
            else:
                waiting.append(member)
        if len(found) + len(waiting) > MOST_MEMBERS:
            raise OSError(
                f"{name} has more than {MOST_MEMBERS} arrays and groups, or links that lead back into it: remove such "
                "links, or name one of its arrays"
            )
    return found


def dimensions(array: zarr.Array[Any]) -> tuple[str, ...] | None:
    """The names of an array's dimensions, None where they have none."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if names is None:
        return () if not array.shape else None
    named: list[Any] = list(names)  # type: ignore[arg-type]
    return None if any(name is None for name in named) else tuple(map(str, named))


def main_name(group: zarr.Group) -> str | None:
    """Return the name of the main array of a group, None if it names none. Raises OSError for a name that is no text.

    The name is that of a member: a path would lead elsewhere.
    """
    name = group.attrs.get(MAIN)
    if name is None or (isinstance(name, str) and "/" not in name):
        return name
    raise OSError(
        f"{array_name(group) or 'the zarr group'} names its main array by {str(name)[:80]!a}, and the name of one of "
        f"its arrays is expected: mend the attribute {MAIN}, or name an array"
    )


def main_array(group: zarr.Group) -> zarr.Array[Any] | None:
    """The array that is meant by the group: the one that it names, or its only array of data; None for others."""
    name = main_name(group)
    if name is not None and isinstance(group.get(name), zarr.Array):
        return group[name]  # type: ignore[return-value]
    found = data_arrays(group)
    return next(iter(found.values())) if len(found) == 1 else None


def open_existing(location: Location, what: str) -> zarr.Array[Any] | zarr.Group:
    """The zarr array or group at a path or URL, where something is wanted that is named by `what`.

    Raises FileNotFoundError where there is nothing, ValueError for a file, and as `open_node`.
    """
    text, path = os.fspath(location), local_path(location)
    if path is not None and path.is_file():
        raise ValueError(
            f"{text} is a file, and a {what} is expected: help(daskspectral.guides.data) shows how to make one of it"
        )
    if path is not None and not path.exists():
        raise FileNotFoundError(f"there is no {what} at {text}: the path does not exist")
    try:
        return open_node(text)
    except (FileNotFoundError, KeyError):
        if path is None:
            refuse_absent(text)
        raise FileNotFoundError(f"there is no {what} at {text}") from None


def open_zarr(location: str | os.PathLike[str]) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL for reading, or the main array of the group there.

    Raises FileNotFoundError where there is none, ValueError for a group without a main array (naming its arrays) or
    another file, and OSError for damaged metadata.
    """
    text = os.fspath(location)
    if not text:
        raise ValueError("the path of a zarr array is wanted; it is empty")
    node = open_existing(text, "zarr array")
    if isinstance(node, zarr.Group):
        with metadata_of(text), reaching(text):
            main = main_array(node)
        node = main or refuse_group(node, text)
    _refuse_unreadable(node, text)
    return node


def _refuse_unreadable(array: zarr.Array[Any], text: str) -> None:
    """Raise PermissionError for an array in an object store whose metadata may be read, and its chunks may not."""
    if isinstance(array.store, FsspecStore) and array.size:
        key = "/".join(part for part in (array.path, array.metadata.encode_chunk_key((0,) * array.ndim)) if part)
        with reaching(text, files=array.store.fs):
            sync(array.store.get(key, default_buffer_prototype(), RangeByteRequest(0, 1)))


def refuse_group(group: zarr.Group, name: str) -> NoReturn:
    """Raise ValueError for a group where an array is wanted; the message names its arrays as group.zarr/name."""
    with metadata_of(name):
        names = [f"{name.rstrip('/')}/{key}" for key in all_arrays(group, name)]
    shown = ", ".join(sorted(names)[:20]) + (", ..." if len(names) > 20 else "")
    raise ValueError(
        f"{name} is a zarr group, and an array is wanted; "
        + (f"name one of its arrays: {shown}" if names else "it holds no arrays")
    )


def array_name(node: zarr.Array[Any] | zarr.Group) -> str:
    """The path or URL of an open array or group; empty where it has none."""
    store = node.store
    if isinstance(store, WrapperStore):
        store = store._store
    if isinstance(store, LocalStore):
        root = str(store.root)
    elif isinstance(store, FsspecStore):
        root = redacted(str(store.fs.unstrip_protocol(store.path)))
    else:
        return node.path
    return f"{root}/{node.path}".rstrip("/")
