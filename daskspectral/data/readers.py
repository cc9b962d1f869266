"""Readers: picklable handles on the rows of one array, whatever holds them."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from daskspectral.data.writer import check_complete, local_path

Array = NDArray[Any]


class Reader(ABC):
    """The rows of one array: shape (n, ...), dtype, the edges of its chunks along the rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

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
    def identity(self) -> dict[str, Any]:
        """What tells this array from another: plain data."""
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


@dataclass(frozen=True, eq=False)
class ZarrReader(Reader):
    """A zarr array in a file system or an object store, opened anew where it is read.

    The worker's copy of the metadata must equal the driver's: a worker that does not see the store, or sees
    another one, raises instead of reading fill values.
    """

    store: Any  # an absolute path, or a picklable zarr store
    path: str
    name: str
    digest: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int

    @classmethod
    def of(cls, array: zarr.Array[Any], name: str) -> ZarrReader:
        """A reader of an open array."""
        store: Any = array.store
        if isinstance(store, LocalStore):
            store = str(Path(store.root).resolve())
        return cls(store, array.path, name, metadata_digest(array), array.shape, array.dtype, int(array.chunks[0]))

    @property
    def edges(self) -> Array:
        return np.append(np.arange(0, self.shape[0], self.chunk), self.shape[0])

    @cached_property
    def array(self) -> zarr.Array[Any]:
        """The array, opened in this process and compared with the driver's metadata."""
        where = f"this process (pid {os.getpid()} on {os.uname().nodename})"
        try:
            array = zarr.open_array(self.store, path=self.path, mode="r")
        except (FileNotFoundError, KeyError) as error:
            raise FileNotFoundError(
                f"{self.name} is not visible to {where}: workers must share the file system or object store that "
                "holds the data"
            ) from error
        if metadata_digest(array) != self.digest:
            raise OSError(
                f"{self.name} as seen by {where} is not the array that the run was planned for (its metadata "
                "differ): the workers see another file system, or the array was replaced during the run"
            )
        return array

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "array"}

    def read(self, start: int, stop: int) -> Array:
        array = self.array
        try:
            return np.asarray(array[start:stop])
        except (FileNotFoundError, PermissionError):
            raise
        except (ValueError, RuntimeError, OSError) as error:
            first, last = start // self.chunk, (stop - 1) // self.chunk
            if first == last:
                raise OSError(
                    f"{self.name} cannot be decoded in chunk {first} along the rows (rows {first * self.chunk} to "
                    f"{min((first + 1) * self.chunk, self.shape[0])}): {error}. The store is damaged there; write it "
                    "again or restore it"
                ) from error
        for chunk in range(first, last + 1):  # which one it is
            self.read(max(start, chunk * self.chunk), min(stop, (chunk + 1) * self.chunk))
        return np.asarray(array[start:stop])

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "metadata": self.digest}


def metadata_digest(array: zarr.Array[Any]) -> str:
    """A digest of an array's metadata, attributes left out."""
    plain = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def open_zarr(location: str | os.PathLike[str]) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL for reading.

    Raises FileNotFoundError where there is none, and ValueError for a group (naming its arrays) or another file.
    """
    text = os.fspath(location)
    path = local_path(text)
    target = text if path is None else str(path)
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
        node = zarr.open(target, mode="r")
    except (FileNotFoundError, KeyError):
        raise FileNotFoundError(f"there is no zarr array at {text}") from None
    check_complete(dict(node.attrs), text)
    if isinstance(node, zarr.Group):
        refuse_group(node, text)
    return node


def refuse_group(group: zarr.Group, name: str) -> NoReturn:
    """Raise the ValueError for a group where an array is wanted; it names the arrays as group.zarr/name."""
    names = [f"{name.rstrip('/')}/{k}" for k, v in group.members(max_depth=None) if isinstance(v, zarr.Array)]
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
    if isinstance(store, LocalStore):
        root = str(store.root)
    elif isinstance(store, FsspecStore):
        root = str(store.fs.unstrip_protocol(store.path))
    else:
        return node.path
    return f"{root}/{node.path}".rstrip("/")


def zarr_reader(array: zarr.Array[Any], name: str | None = None) -> Reader:
    """A reader of a zarr array; one in a MemoryStore counts as in memory."""
    name = name or array_name(array) or "the zarr array"
    check_complete(dict(array.attrs), name)
    if not array.shape or isinstance(array.store, MemoryStore):
        return ArrayReader(np.asarray(array[...]))
    return ZarrReader.of(array, name)
