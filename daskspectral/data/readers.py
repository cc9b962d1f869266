"""Readers: picklable handles on the rows of one array, whatever holds them."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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
        shards = getattr(array, "shards", None) or array.chunks
        return cls(store, array.path, name, metadata_digest(array), array.shape, array.dtype, int(shards[0]))

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
        try:
            return np.asarray(self.array[start:stop])
        except (FileNotFoundError, PermissionError, MemoryError):
            raise
        except (ValueError, RuntimeError, OSError) as error:
            raise OSError(
                f"{self.name} cannot be decoded in rows {start} to {stop}, chunks {start // self.chunk} to "
                f"{(stop - 1) // self.chunk}: {error}. The store is damaged there; write it again or restore it"
            ) from error

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "metadata": self.digest}


def metadata_digest(array: zarr.Array[Any]) -> str:
    """A digest of an array's metadata, attributes left out."""
    plain = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def open_zarr(location: str | os.PathLike[str]) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL for reading.

    Raises FileNotFoundError where there is none, and ValueError for a group (naming its arrays).
    """
    text = os.fspath(location)
    path = local_path(text)
    target = text if path is None else str(path)
    if path is not None:
        if path.is_file() or path.suffix in {".npy", ".npz", ".parquet", ".h5", ".hdf5", ".nc", ".csv"}:
            if path.exists():
                raise ValueError(
                    f"{text} is a file, and a zarr array is wanted: convert it by `daskspectral convert {text} "
                    f"{path.stem}.zarr`"
                )
        if not path.exists():
            raise FileNotFoundError(f"there is no zarr array at {text}: the path does not exist")
    try:
        node = zarr.open(target, mode="r")
    except (FileNotFoundError, KeyError):
        raise FileNotFoundError(f"there is no zarr array at {text}") from None
    check_complete(dict(node.attrs), text)
    if isinstance(node, zarr.Group):
        names = [f"{text.rstrip('/')}/{name}" for name, _ in node.arrays()]
        listing = ", ".join(names) if names else "it holds no arrays"
        raise ValueError(f"{text} is a zarr group, and an array is wanted; name one of its arrays: {listing}")
    return node


def zarr_reader(array: zarr.Array[Any], name: str | None = None) -> Reader:
    """A reader of a zarr array; one in a MemoryStore counts as in memory."""
    check_complete(dict(array.attrs), name or array.name)
    if isinstance(array.store, MemoryStore):
        return ArrayReader(np.asarray(array[...]))
    if name is None:
        store = array.store
        root = str(store.root) if isinstance(store, LocalStore) else getattr(store, "path", type(store).__name__)
        if isinstance(store, FsspecStore):
            root = str(store.fs.unstrip_protocol(store.path))
        name = f"{root}/{array.path}".rstrip("/")
    return ZarrReader.of(array, name)
