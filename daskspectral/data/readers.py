"""Readers: picklable handles on the rows of one array, whatever holds them."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore, WrapperStore

from daskspectral.data.door import open_array, open_node, refuse_codecs
from daskspectral.data.groups import all_arrays, main_array
from daskspectral.data.remote import fill_is_meant, reaching
from daskspectral.data.storage import metadata_of
from daskspectral.data.unfinished import refuse_absent
from daskspectral.data.writer import local_path
from daskspectral.errors import redacted

Array = NDArray[Any]
DAMAGE = (ValueError, RuntimeError, OSError, EOFError, zlib.error, lzma.LZMAError)  # what codecs raise
MOST_CHUNKS = 10_000_000  # along the rows: their borders take 80 MB
FILL_MEANT = (
    "where fill values are meant, write them, give the array as dask.array.from_zarr(...), or fit with "
    "allow_missing=True (--allow-missing in the shell)"
)


class Reader(ABC):
    """The rows of one array: shape (n, ...), dtype, the edges of its chunks along the rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    paths: tuple[str, ...] = ()
    """The files, by path or URL, that rows are read from where these are in no zarr store."""

    @property
    @abstractmethod
    def edges(self) -> Array:
        """Chunk borders along the rows: 0, ..., n."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Rows start to stop, as numpy."""

    def localise(self, start: int, stop: int) -> Reader:
        """A reader that another process can use for these rows; it keeps the global row numbers."""
        return self

    @property
    def parts(self) -> tuple[Reader, ...]:
        """The readers, each of one array, that this reader joins; itself where it joins none."""
        return (self,)

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        """The parts that hold the rows start to stop, each with its own range of rows."""
        yield self, start, stop

    @property
    def stored(self) -> tuple[Reader, ...]:
        """The readers of one array each that know the files behind the rows."""
        return self.parts

    @property
    def identity(self) -> dict[str, Any]:
        """Plain data that distinguish this array from others."""
        return {"shape": list(self.shape), "dtype": self.dtype.str}


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """An array in memory, or memory-mapped; `first` is the global number of its first row."""

    array: Array
    first: int = 0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        if not self.array.ndim:
            return ()
        return (self.first + self.array.shape[0], *self.array.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.array.dtype

    @property
    def edges(self) -> Array:
        return np.array([0, self.shape[0]])

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self.array[start - self.first : stop - self.first])

    def localise(self, start: int, stop: int) -> Reader:
        return ArrayReader(np.ascontiguousarray(self.read(start, stop)), start)

    @property
    def identity(self) -> dict[str, Any]:
        """With a digest of the contents: one pass over them."""
        digest = hashlib.sha256()
        rows = max(1, (1 << 24) // max(1, self.array[:1].nbytes))
        for start in range(0, len(self.array), rows):
            digest.update(np.ascontiguousarray(self.array[start : start + rows]).data.cast("B"))
        return {**super().identity, "contents": digest.hexdigest()}


@dataclass(frozen=True, eq=False)
class ZarrReader(Reader):
    """A zarr array in a file system or an object store, opened anew where it is read.

    The metadata as a worker sees them must equal the driver's, and a chunk that reads as nothing but the fill value
    must exist: a worker that does not see the store, or sees another one, raises instead of reading fill values.
    """

    store: Any  # an absolute path, or a picklable zarr store
    path: str
    name: str
    digest: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int
    allow_missing: bool = False

    @classmethod
    def of(cls, array: zarr.Array[Any], name: str) -> ZarrReader:
        """A reader of an open array; whether chunks may be missing is as it is said where this is called.

        Raises OSError as `refuse_codecs`, and for chunks of no rows or too many.
        """
        refuse_codecs(array.metadata.to_dict(), name)
        if 0 not in array.shape and (0 in array.chunks or array.shape[0] > MOST_CHUNKS * array.chunks[0]):
            raise OSError(
                f"{name} has the shape {array.shape} in chunks {array.chunks}, and 1 to {MOST_CHUNKS} chunks along its "
                "rows are read: restore its metadata, or write it in larger chunks"
            )
        store: Any = array.store
        if isinstance(store, LocalStore):
            store = str(Path(store.root).resolve())
        what = metadata_digest(array), array.shape, array.dtype, int(array.chunks[0])
        return cls(store, array.path, name, *what, allow_missing=fill_is_meant())

    @property
    def edges(self) -> Array:
        return np.append(np.arange(0, self.shape[0], self.chunk), self.shape[0])

    @cached_property
    def array(self) -> zarr.Array[Any]:
        """The array, opened in this process and compared with the driver's metadata."""
        where = f"this process (pid {os.getpid()} on {os.uname().nodename})"
        try:
            with self._reaching():
                array = open_array(self.store, self.path)
        except (FileNotFoundError, KeyError) as error:
            raise FileNotFoundError(
                f"{self.name} is not visible to {where}: workers must share the file system or object store that "
                "holds the data"
            ) from error
        except ValueError as error:  # a group, or metadata that cannot be read
            raise OSError(f"{self.name} as seen by {where} is not a zarr array any more: {error}") from error
        if metadata_digest(array) != self.digest:
            raise OSError(
                f"{self.name} as seen by {where} is not the array that the run was planned for (its metadata "
                "differ): the workers see another file system, or the array was replaced during the run"
            )
        return array

    def _reaching(self) -> AbstractContextManager[None]:
        """Errors of an object store, as this process sees it, say what is missing."""
        return reaching(self.name, files=getattr(self.store, "fs", None))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "array"}

    def read(self, start: int, stop: int) -> Array:
        with self._reaching():
            rows = self._decoded(start, stop)
            if not self.allow_missing:
                self._check_present(rows, start)
        return rows

    def _check_present(self, rows: Array, start: int) -> None:
        """Raise OSError where a chunk reads as its fill value because this process does not find it."""
        array = self.array
        unit = array.shards or array.chunks
        fill = array.dtype.type(array.fill_value or 0)
        spans = [range(start // unit[0], -(-(start + len(rows)) // unit[0]))]
        spans += [range(-(-n // c)) for n, c in zip(array.shape[1:], unit[1:], strict=True)]
        for index in product(*spans):
            low = [i * c for i, c in zip(index, unit, strict=True)]
            low[0], high = low[0] - start, [a + c for a, c in zip(low, unit, strict=True)]
            high[0] -= start
            part = rows[tuple(slice(max(a, 0), b) for a, b in zip(low, high, strict=True))]
            if not part.size or not _is(part.flat[0], fill) or not _is(part, fill).all():
                continue
            key = array.metadata.encode_chunk_key(index)
            if not self._holds(key):
                first = index[0] * unit[0]
                raise OSError(
                    f"chunk {key} of {self.name} (rows {first} to {min(first + unit[0], self.shape[0])}) is missing "
                    f"for this process (pid {os.getpid()} on {os.uname().nodename}), and zarr reads it as the fill "
                    f"value {array.fill_value}: the store went away, is incomplete, or is another one here. Restore "
                    f"it; {FILL_MEANT}"
                )

    def _holds(self, key: str) -> bool:
        if isinstance(self.store, str):
            return os.path.isfile(os.path.join(self.store, self.path, key))
        place = f"{self.path}/{key}" if self.path else key
        if isinstance(self.array.store, FsspecStore):
            self.array.store.fs.invalidate_cache()  # it may remember a listing
        return bool(sync(self.array.store.exists(place)))

    def _decoded(self, start: int, stop: int) -> Array:
        array = self.array
        try:
            return np.asarray(array[start:stop])
        except (FileNotFoundError, PermissionError, ConnectionError):
            raise
        except DAMAGE as error:
            first, last = start // self.chunk, (stop - 1) // self.chunk
            if first == last:
                raise OSError(
                    f"{self.name} cannot be decoded in chunk {first} along the rows (rows {first * self.chunk} to "
                    f"{min((first + 1) * self.chunk, self.shape[0])}): {error}. The store is damaged there, in "
                    f"{self._damaged(start, stop)}; write it again or restore it"
                ) from error
        for chunk in range(first, last + 1):  # the chunk that is damaged raises
            self._decoded(max(start, chunk * self.chunk), min(stop, (chunk + 1) * self.chunk))
        return np.asarray(array[start:stop])

    def _damaged(self, start: int, stop: int) -> str:
        """The name of the chunk, or shard, of these rows that cannot be decoded."""
        array = self.array
        unit, what = array.shards or array.chunks, "shard" if array.shards else "chunk"
        for index in product(*(range(-(-n // c)) for n, c in zip(array.shape[1:], unit[1:], strict=True))):
            part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, unit[1:], strict=True))
            try:
                array[(slice(start, stop), *part)]
            except DAMAGE:
                return f"{what} {array.metadata.encode_chunk_key((start // unit[0], *index))}"
        return f"a {what} that can be read now"

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "metadata": self.digest}


def _is(values: Any, fill: Any) -> Any:
    return np.isnan(values) if fill != fill else values == fill


def metadata_digest(array: zarr.Array[Any]) -> str:
    """A digest of an array's metadata, attributes left out."""
    plain = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def open_zarr(location: str | os.PathLike[str]) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL for reading, or the main array of the group there.

    Raises FileNotFoundError where there is none, ValueError for a group without a main array (naming its arrays) or
    another file, and OSError for damaged metadata.
    """
    text = os.fspath(location)
    path = local_path(text)
    if not text:
        raise ValueError("the path of a zarr array is wanted; it is empty")
    if path is not None:
        if path.is_file():
            raise ValueError(
                f"{text} is a file, and a zarr array is wanted: convert it by `daskspectral convert {text} "
                f"--out {path.stem}.zarr`"
            )
        if not path.exists():
            raise FileNotFoundError(f"there is no zarr array at {text}: the path does not exist")
    try:
        node = open_node(text)
    except (FileNotFoundError, KeyError):
        if path is None:
            refuse_absent(text)
        raise FileNotFoundError(f"there is no zarr array at {text}") from None
    if isinstance(node, zarr.Group):
        with metadata_of(text), reaching(text):
            main = main_array(node)
        node = main or refuse_group(node, text)
    if path is None:
        _refuse_unreadable(node, text)
    return node


def _refuse_unreadable(array: zarr.Array[Any], text: str) -> None:
    """Raise PermissionError for an array in an object store whose metadata may be read, and its chunks may not."""
    if array.size and isinstance(array.store, FsspecStore):
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


def refuse_input(out: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Raise ValueError where writing `out` would destroy one of the inputs: it is one of them, or holds one."""
    target = _place(out)
    for location in inputs:
        if location is not None and f"{_place(location)}/".startswith(f"{target}/"):
            raise ValueError(
                f"the output {os.fspath(out)} would replace the input {os.fspath(location)}; choose another path"
            )


def _place(location: str | os.PathLike[str]) -> str:
    path = local_path(location)
    return os.fspath(location).rstrip("/") if path is None else str(path)


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


def zarr_reader(array: zarr.Array[Any], name: str | None = None) -> Reader:
    """A reader of a zarr array; one in a MemoryStore counts as in memory. Raises OSError as `refuse_codecs`."""
    name = name or array_name(array) or "the zarr array"
    refuse_codecs(array.metadata.to_dict(), name)
    if not array.shape:
        return ArrayReader(np.asarray(array[...]))
    if isinstance(array.store, MemoryStore):
        return ArrayReader(ZarrReader.of(array, name).read(0, array.shape[0]))
    return ZarrReader.of(array, name)
