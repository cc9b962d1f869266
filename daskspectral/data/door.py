"""The one door to zarr stores: only regular files are read, and no codec is used that could execute what a file says.

Each metadata document is looked at before zarr sees it, wherever it lies in the store.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from daskspectral.data.bounded import PLAIN_BYTES, bounded
from daskspectral.data.remote import connect, holds, is_url, opening, options_in_force, reaching, refuse_secrets
from daskspectral.data.storage import METADATA, metadata_of

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
DENSEST = {
    **{"astype": 16, "fixedscaleoffset": 16, "packbits": 8},
    **{"blosc": 1 << 15, "bz2": 1 << 18, "gzip": 1032, "lz4": 255, "lzma": 1 << 13, "zlib": 1032, "zstd": 1 << 15},
    **{"pcodec": 1 << 18, "zfpy": 1 << 14},
}
"""Bytes that a stored byte can hold at most, by codec, of zeros; other codecs leave the bytes as many as they are."""

Location: TypeAlias = str | os.PathLike[str]


class CheckedFolder(LocalStore):
    """A zarr store in a local folder."""

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """What a file holds, metadata with bounded codecs. Raises OSError as `refuse_irregular` and `refuse_codecs`."""
        path = os.path.join(self.root, key)
        try:
            refuse_irregular(path, os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _checked(await super().get(key, prototype, byte_range), path)


class CheckedObjects(FsspecStore):
    """A zarr store at a URL."""

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """What an object holds, metadata with bounded codecs. Raises OSError as `refuse_codecs`."""
        found = await super().get(key, prototype, byte_range)
        return _checked(found, f"{self.fs.unstrip_protocol(self.path)}/{key}")


def store_at(location: Location, *, read_only: bool = False) -> CheckedFolder | CheckedObjects:
    """The zarr store at a path or URL; at a URL with the options in force, and it has answered a first question.

    Raises as `connect` and `reaching` do.
    """
    text = os.fspath(location)
    if not is_url(text):
        return CheckedFolder(os.path.realpath(text.removeprefix("file://")), read_only=read_only)
    if read_only:  # zarr asks several questions at once, and leaves some pending where one fails
        files, root = connect(text)
        with reaching(text, files=files):
            holds(files, f"{root}/zarr.json")
    refuse_secrets(text)
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
    place = text if is_url(text) else os.path.realpath(text.removeprefix("file://"))
    with metadata_of(place), reaching(text):
        return zarr.open(store_at(text, read_only=True), mode="r", zarr_format=zarr_format)


def open_array(store: str | Store, path: str = "", *, mode: Literal["r", "r+"] = "r") -> zarr.Array[Any]:
    """The zarr array at a path in a local folder or in a store. Raises as zarr and as `refuse_codecs` do."""
    place = store_at(store, read_only=mode == "r") if isinstance(store, str) else store
    return zarr.open_array(place, path=path, mode=mode)


def refuse_codecs(metadata: Any, where: str) -> None:
    """Raise OSError for a codec in a metadata document, consolidated or not, that might execute what a file says.

    Objects are read as texts, bytes or arrays only.
    """
    if not isinstance(metadata, Mapping):
        return
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
        refuse_codecs(member, f"{where}: {name}")


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


def refuse_irregular(path: str, status: os.stat_result) -> None:
    """Raise OSError for what is neither a regular file nor a folder, links followed, and for endless metadata."""
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


def refuse_oversized(array: zarr.Array[Any], where: str) -> None:
    """Raise OSError for an array, to be read whole, that is larger than the chunks that are stored of it can hold."""
    if array.nbytes <= PLAIN_BYTES:
        return
    names = [str(codec.get("id", codec.get("name"))) for codec in codecs_of(array.metadata.to_dict(), index=False)]
    densest = math.prod(DENSEST.get(name.removeprefix("numcodecs."), 1) for name in names)
    stored = sync(_stored_bytes(array))
    if array.nbytes > densest * stored:
        raise OSError(
            f"{where} declares {array.nbytes} bytes, more than the {stored} bytes that are stored of it can hold: it "
            "was altered or is incomplete"
        )


async def _stored_bytes(array: zarr.Array[Any]) -> int:
    """The sizes of the chunk files of an array, or of its shards, together."""
    unit, prefix, total = array.shards or array.chunks, f"{array.path}/".lstrip("/"), 0
    async for key in array.store.list_prefix(prefix):
        name = key.removeprefix(prefix)
        index = tuple(map(int, re.findall(r"\d+", name)))
        inside = len(index) == array.ndim and all(i * c < n for i, c, n in zip(index, unit, array.shape, strict=True))
        if inside and array.metadata.encode_chunk_key(index) == name:
            total += await array.store.getsize(key)
    return total


def _checked(found: Buffer | None, path: str) -> Buffer | None:
    if found is not None and path.rpartition("/")[2] in METADATA:
        metadata = json.loads(found.to_bytes())
        refuse_codecs(metadata, path)
        if (within := bounded(metadata)) != metadata:
            return type(found).from_bytes(json.dumps(within).encode())
    return found
