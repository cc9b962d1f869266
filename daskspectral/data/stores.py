"""Safe access to zarr stores: only regular files, and no codec that could execute code from a file.

Each metadata document in the store is checked before zarr reads it.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NoReturn, Self, cast

import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from daskspectral.data.folders import SAVED, Folder, refuse_unfinished
from daskspectral.data.remote import Location, connect, local_path, options_in_force, reaching
from daskspectral.errors import redacted
from daskspectral.validation import is_sequence

UNUSABLE = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, AssertionError, RuntimeError),
    struct.error,
)
"""Errors of zarr and xarray for invalid metadata."""
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


@contextmanager
def metadata_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors of zarr or xarray inside, for invalid metadata, to an OSError that names the path."""
    try:
        yield
    except OSError:  # for missing files, among others
        raise
    except UNUSABLE as error:
        raise OSError(
            f"{os.fspath(path)} has damaged metadata ({type(error).__name__}: {str(error)[:200]!a}). Restore it"
        ) from error


MOST_ENTRIES = 1 << 60
"""Largest number of entries of an array: more overflow."""
OBJECTS = frozenset({"vlen-utf8", "vlen-bytes", "vlen-array"})
"""Codecs of text and other objects that create only such objects."""
CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "bz2", "gzip", "lzma", "zlib"})
"""Codecs that store a checksum of what they encode."""
CODECS = (
    OBJECTS
    | CHECKSUMS
    | {
        "blosc",
        "lz4",
        "pcodec",
        "zfpy",
        "zstd",
        "astype",
        "base64",
        "bitround",
        "categorize",
        "delta",
        "fixedscaleoffset",
        "packbits",
        "quantize",
        "shuffle",
        "bytes",
        "endian",
        "sharding_indexed",
        "transpose",
    }
)
"""Codecs of zarr and numcodecs that do not execute code from a file."""


class CheckedFolder(LocalStore):
    """Zarr store in a local folder, of which only regular files are read."""

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return the contents of a file; raise OSError as `refuse_irregular` and `refuse_codecs`."""
        path = os.path.join(self.root, key)
        try:
            refuse_irregular(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _checked(await super().get(key, prototype, byte_range), path)


class CheckedObjects(FsspecStore):
    """Zarr store at a URL."""

    @classmethod
    def at(cls, url: Location, *, read_only: bool = False) -> Self:
        """Return the store at a URL, with the options in force; raise as `connect`."""
        connect(url)
        options = options_in_force()
        return cast(Self, cls.from_url(os.fspath(url), storage_options=options, read_only=read_only))

    @property
    def url(self) -> str:
        return redacted(str(self.fs.unstrip_protocol(self.path)))

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the contents of an object; raise OSError as `refuse_codecs`."""
        with reaching(self.url):
            found = await super().get(key, prototype, byte_range)
        return _checked(found, f"{self.url}/{key}")

    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        with reaching(self.url):
            await super().set(key, value, byte_range)


ROOT = "zarr.json"


class HeldBackStore(CheckedObjects):
    """Zarr store whose root metadata are kept in memory until `publish`, so that it cannot be loaded before."""

    root: bytes | None = None

    def publish(self) -> None:
        """Write the root metadata, which make the store and its contents visible."""
        assert self.root is not None
        sync(super().set(ROOT, default_buffer_prototype().buffer.from_bytes(self.root)))

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        if key == ROOT:
            return None if self.root is None else prototype.buffer.from_bytes(self.root)
        return await super().get(key, prototype, byte_range)

    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        if key == ROOT:
            self.root = value.to_bytes()
        else:
            await super().set(key, value, byte_range)


def store_at(location: Location, *, read_only: bool = False) -> CheckedFolder | CheckedObjects:
    """Return the zarr store at a path or URL; raise as `connect`, and errors of the object store."""
    local = local_path(location)
    if local is not None:
        return CheckedFolder(local, read_only=read_only)
    if read_only:  # zarr sends several requests at once, and leaves some pending if one fails
        Folder(location).holds(ROOT)
    return CheckedObjects.at(location, read_only=read_only)


def open_node(location: Location, *, zarr_format: Literal[3] | None = None) -> zarr.Array[Any] | zarr.Group:
    """Return the zarr array or group at a path or URL; raise OSError, which names the file, if damaged."""
    store = store_at(location, read_only=True)
    with metadata_of(local_path(location) or location):
        return zarr.open(store, mode="r", zarr_format=zarr_format)


def open_array(store: str | Store, path: str = "", *, mode: Literal["r", "r+"] = "r") -> zarr.Array[Any]:
    """Return the zarr array at a path in a local folder or in a store; raise as zarr and `refuse_codecs`.

    An array opened for writing also writes chunks of fill values, because readers treat absent chunks as missing.
    """
    place = store_at(store, read_only=mode == "r") if isinstance(store, str) else store
    found = zarr.open_array(place, path=path, mode=mode)
    if mode == "r":
        return found
    metadata: Any = found.metadata
    return zarr.Array(zarr.AsyncArray(metadata, found.store_path, {"write_empty_chunks": True}))


def refuse_codecs(metadata: Mapping[str, Any], where: str) -> None:
    """Raise OSError for codecs in metadata, consolidated or not, that might execute code from a file."""
    names = {str(codec.get(key)) for codec in codecs_of(metadata) for key in ("id", "name") if key in codec}
    unknown = sorted(name for name in names if name.removeprefix("numcodecs.") not in CODECS)
    if unknown:
        raise OSError(
            f"{where} has the codec {unknown[0][:80]!a}, which might execute code from the file. Available: "
            f"{', '.join(sorted(CODECS))}."
        )
    if "|O" in json.dumps(metadata.get("dtype")) and not names & OBJECTS:
        raise OSError(f"{where} has objects (dtype |O) without a text codec. Write it again as numbers or text")
    for name, member in _members(metadata):
        if isinstance(member, Mapping):
            refuse_codecs(member, f"{where}: {name}")


def _refuse_lengths(document: Any, where: str) -> None:
    """Raise OSError if arrays, chunks or shards in metadata have more entries than any array."""
    for key, value in document.items() if isinstance(document, Mapping) else enumerate(document):
        if key in ("shape", "chunks", "chunk_shape") and isinstance(value, list):
            lengths = [n for n in value if isinstance(n, int)]
            if math.prod(lengths) > MOST_ENTRIES or min(lengths, default=1) < (key == "chunk_shape"):
                raise OSError(f"{where} has the invalid {key} {str(value)[:80]}. Restore it")
        elif key != "attributes" and isinstance(value, (Mapping, list)):
            _refuse_lengths(value, where)


def _members(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the documents in consolidated metadata of either format, with their names."""
    for inside in (metadata, metadata.get("consolidated_metadata")):
        members = inside.get("metadata") if isinstance(inside, Mapping) else None
        yield from members.items() if isinstance(members, Mapping) else ()


def codecs_of(metadata: Mapping[str, Any], index: bool = True) -> Iterator[Mapping[str, Any]]:
    """Yield the codecs in the metadata of an array and of its shards, and of their index if `index`."""
    for key in ("compressor", "filters", "codecs", "index_codecs") if index else ("compressor", "filters", "codecs"):
        found = metadata.get(key)
        for codec in found if is_sequence(found) else [found]:
            if isinstance(codec, Mapping):
                yield codec
                inside = codec.get("configuration")
                yield from codecs_of(inside, index) if isinstance(inside, Mapping) else ()
            elif codec is not None:
                yield {"name": codec}


def has_checksums(metadata: Mapping[str, Any]) -> bool:
    """Return whether the values of an array have checksums, which are verified when decoded."""
    for codec in codecs_of(metadata, index=False):
        inside = codec.get("configuration") or codec
        name = str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")
        if name in CHECKSUMS or inside.get("checksum") is True:
            return True
    return False


def refuse_irregular(path: str) -> os.stat_result:
    """Return the status of a file or folder, links followed; raise OSError if it is neither."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{path} must be a regular file, got a pipe, a device or a socket. Replace or remove it")
    return status


def _checked(found: Buffer | None, path: str) -> Buffer | None:
    if found is not None and path.rpartition("/")[2] in METADATA:
        with metadata_of(path):
            metadata = json.loads(found.to_bytes())
            for part in (metadata, metadata.get("attributes", {}) if isinstance(metadata, Mapping) else {}):
                if not isinstance(part, Mapping):
                    raise TypeError(f"metadata and attributes must be mappings, got {type(part).__name__}")
            refuse_codecs(metadata, path)
            _refuse_lengths(metadata, path)
    return found


MAIN = "main_array"
"""Attribute of a group: the name of its main array, which is used if one array is expected."""


def data_arrays(group: zarr.Group) -> dict[str, zarr.Array[Any]]:
    """Return the data arrays of a group by name, without coordinates and bounds.

    A coordinate has the name of its dimension, or is listed in an attribute `coordinates` (CF conventions). Empty for a
    saved object, and without named dimensions. Raises OSError as `refuse_codecs`.
    """
    members: dict[str, zarr.Array[Any]] = {k: v for k, v in group.members() if isinstance(v, zarr.Array)}
    dims = {name: dimensions(array) for name, array in members.items()}
    for array in members.values():
        refuse_codecs(array.metadata.to_dict(), f"{group.store}/{array.path}")
    if not members or SAVED in group.attrs or any(names is None for names in dims.values()):
        return {}
    aside = set(str(group.attrs.get("coordinates", "")).split())
    for array in members.values():
        for key in ("coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables"):
            aside |= set(str(array.attrs.get(key, "")).split())
    return {k: v for k, v in members.items() if k not in aside and dims[k] != (k,) and v.shape}


def all_arrays(group: zarr.Group) -> dict[str, zarr.Array[Any]]:
    """Return the arrays of a group and its subgroups by their paths."""
    return {name: member for name, member in group.members(max_depth=None) if isinstance(member, zarr.Array)}


def dimensions(array: zarr.Array[Any]) -> tuple[str, ...] | None:
    """Return the names of an array's dimensions, or None if it has no names."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if names is None:
        return () if not array.shape else None
    named: list[Any] = list(names)  # type: ignore[arg-type]
    return None if any(name is None for name in named) else tuple(map(str, named))


def main_name(group: zarr.Group) -> str | None:
    """Return the name of the main array of a group, or None; raise OSError if it is not a member."""
    name = group.attrs.get(MAIN)
    if name is None or (isinstance(name, str) and "/" not in name):
        return name
    where = array_name(group) or "the zarr group"
    raise OSError(f"{MAIN} of {where} must be the name of one of its arrays, got {str(name)[:80]!a}. Correct it")


def main_array(group: zarr.Group) -> zarr.Array[Any] | None:
    """Return the main array of a group, or its only data array; None for other groups."""
    name = main_name(group)
    if name is not None and isinstance(group.get(name), zarr.Array):
        return group[name]  # type: ignore[return-value]
    found = data_arrays(group)
    return next(iter(found.values())) if len(found) == 1 else None


def open_existing(location: Location, what: str, zarr_format: Literal[3] | None = None) -> zarr.Array[Any] | zarr.Group:
    """Return the zarr array or group at a path or URL; `what` names it in errors."""
    text, path = os.fspath(location), local_path(location)
    if path is not None and path.is_file():
        raise ValueError(f"{text} must be a {what}, got a file. Load it as an array, or convert it to zarr")
    try:
        return open_node(text, zarr_format=zarr_format)
    except (FileNotFoundError, KeyError):
        if path is None:
            refuse_unfinished(text)
        raise FileNotFoundError(f"there is no {what} at {text}") from None


def open_zarr(location: Location) -> zarr.Array[Any]:
    """Return the zarr array at a path or URL, or the main array of the group there, for reading.

    Raises FileNotFoundError if it does not exist, ValueError for a group without a main array (naming its arrays) or
    another file, and OSError for damaged metadata.
    """
    node = open_existing(location, "zarr array")
    if isinstance(node, zarr.Group):
        with metadata_of(location):
            main = main_array(node)
        node = main or refuse_group(node, os.fspath(location))
    return node


def refuse_group(group: zarr.Group, name: str) -> NoReturn:
    """Raise ValueError, which names its arrays, for a group in place of an array."""
    with metadata_of(name):
        names = sorted(f"{name.rstrip('/')}/{key}" for key in all_arrays(group))
    raise ValueError(f"{name} must be the path of an array, got a zarr group. Available: {names[:20]}")


def array_name(node: zarr.Array[Any] | zarr.Group) -> str:
    """Return the path or URL of an open array or group; empty if it has none."""
    store = node.store
    if isinstance(store, LocalStore):
        root = str(store.root)
    elif isinstance(store, FsspecStore):
        root = redacted(str(store.fs.unstrip_protocol(store.path)))
    else:
        return node.path
    return f"{root}/{node.path}".rstrip("/")
