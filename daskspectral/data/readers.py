"""Readers: picklable handles of the rows of one array in any container."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.columns import ColumnNames, select_columns
from daskspectral.data.remote import fill_is_meant
from daskspectral.data.times import RowTimes
from daskspectral.validation import is_dask_array

if TYPE_CHECKING:
    import dask.array as da
    import zarr

    from daskspectral.data.windows import Windows

Array = NDArray[Any]
DAMAGE = (ValueError, RuntimeError, ArithmeticError, LookupError, OSError, EOFError, zlib.error, lzma.LZMAError)
AWAY = (FileNotFoundError, PermissionError, ConnectionError)  # errors of a store, not of damaged data
DENSE_BYTES = 1 << 22  # of rows of a sparse matrix that are converted to dense together
MOST_CHUNKS = 10_000_000  # along the rows: their borders are 80 MB
COLUMNS = "columns"  # attribute of a zarr array with the names of its columns
FILL_MEANT = "pass Rows(X, allow_missing=True) (--allow-missing in the shell) if fill values are intended"


class Reader(ABC):
    """Rows of one array: shape (n, ...), dtype, borders of its chunks along the rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    paths: tuple[str, ...] = ()
    """Files, by path or URL, of rows that are not in a zarr store."""
    times: RowTimes | None = None
    """Times of the rows, or numbers of their index; None if they have no times."""
    column_names: ColumnNames | None = None
    """Names of the columns; None if they have no names."""
    in_memory: bool = False
    """Whether all rows are in the memory of this process."""
    lazy: ClassVar[bool] = False
    """Whether it is a dask array passed by the user."""
    files: tuple[Reader, ...] = ()
    """Zarr arrays from which a dask array is read, if they are known."""
    chunk: int = 0
    """Number of rows of the chunks of a zarr array."""
    windows: Windows | None = None
    """Windows of rows of another array that are the rows."""

    @property
    @abstractmethod
    def edges(self) -> Array:
        """Borders of chunks along the rows: 0, ..., n."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Return rows start to stop as numpy."""

    def set_times(self, times: RowTimes | None) -> Self:
        """Set the times of this reader's rows, which are not pickled, and return the reader."""
        object.__setattr__(self, "times", times)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("times", "windows")}

    def set_names(self, names: ColumnNames | None) -> Self:
        object.__setattr__(self, "column_names", names)
        return self

    def columns_at(self, places: Sequence[int | None]) -> Reader:
        """Return a reader of the columns at these positions, 0 for None, selected when rows are read."""
        names = self.column_names
        if isinstance(places, range) or [*places] == [*range(self.shape[1])]:
            return self
        found = self._columns_at(tuple(places))
        object.__setattr__(found, "times", self.times)
        return (
            found
            if names is None or None in places
            else found.set_names(names.select(p for p in places if p is not None))
        )

    def _columns_at(self, places: tuple[int | None, ...]) -> Reader:
        return ColumnsReader(self, places)

    def transposed(self) -> Reader | None:
        """Return a reader of the columns (d, n); None if reading some is as slow as reading all."""
        return None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, key: tuple[slice, ...]) -> Array:
        """Return rows and columns by slices, for dask."""
        start, stop, _ = key[0].indices(self.shape[0])
        return self.read(start, stop)[(slice(None), *key[1:])]

    def localize(self, start: int, stop: int) -> Reader:
        """Return a reader for these rows in another process, with the global row numbers."""
        return self

    def lenient(self) -> Reader:
        """Return a reader that reads missing chunks of a zarr array as fill values."""
        return self

    @property
    def parts(self) -> tuple[Reader, ...]:
        """Readers of single arrays that this reader joins, or itself."""
        return (self,)

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        """Yield the parts that contain the rows start to stop, each with its range of rows."""
        yield self, start, stop

    @property
    def identity(self) -> dict[str, Any]:
        """Plain data that distinguish this array from others."""
        return {"shape": list(self.shape), "dtype": self.dtype.str}


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """Array in memory or memory-mapped, or a sparse one (CSR) whose rows are dense when read."""

    array: Any
    first: int = 0
    in_memory = True

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.first + self.array.shape[0], *self.array.shape[1:]) if self.array.ndim else ()

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.array, np.ndarray)

    @property
    def edges(self) -> Array:
        n = self.shape[0]
        rows = max(1, DENSE_BYTES // max(1, self.dtype.itemsize * self.shape[1])) if self.is_sparse else max(1, n)
        return np.append(np.arange(0, n, rows), n) if n else np.array([0, 0])

    def read(self, start: int, stop: int) -> Array:
        rows = self.array[start - self.first : stop - self.first]
        return np.asarray(rows.toarray() if self.is_sparse else rows)

    def localize(self, start: int, stop: int) -> Reader:
        rows = self.array[start - self.first : stop - self.first]
        return ArrayReader(rows if self.is_sparse else np.ascontiguousarray(rows), start)

    def _columns_at(self, places: tuple[int | None, ...]) -> Reader:
        if self.is_sparse or isinstance(self.array, np.memmap):
            return ColumnsReader(self, places)
        return ArrayReader(select_columns(self.array, places), self.first)

    def transposed(self) -> Reader | None:
        return None if self.is_sparse or self.first else ArrayReader(np.asarray(self.array).T)

    @property
    def identity(self) -> dict[str, Any]:
        """Identity with a digest of the contents, which requires one pass over them."""
        digest = hashlib.sha256()
        parts = (
            [getattr(self.array, name) for name in ("indptr", "indices", "data")] if self.is_sparse else [self.array]
        )
        for part in parts:
            rows = max(1, (1 << 24) // max(1, part[:1].nbytes))
            for start in range(0, len(part), rows):
                digest.update(np.ascontiguousarray(part[start : start + rows]).data.cast("B"))
        return {**super().identity, "contents": digest.hexdigest()}


@dataclass(frozen=True, eq=False)
class ZarrReader(Reader):
    """Zarr array in a file system or an object store, opened again in each process.

    A worker that does not see the store, or sees another one, raises an error instead of reading fill values: metadata
    must equal those of the driver, and chunks that read as fill values must exist.
    """

    store: Any  # an absolute path, or a picklable zarr store
    path: str
    name: str
    digest: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int
    allow_missing: bool = False

    def lenient(self) -> Reader:
        return replace(self, allow_missing=True)

    @classmethod
    def of(cls, array: zarr.Array[Any], name: str) -> ZarrReader:
        """Return a reader of an open array with checked codecs; raise OSError for no chunks, or too many."""
        if 0 not in array.shape and (0 in array.chunks or array.shape[0] > MOST_CHUNKS * array.chunks[0]):
            raise OSError(
                f"{name} must have 1 to {MOST_CHUNKS} chunks along its rows, got the shape {array.shape} in chunks "
                f"{array.chunks}. Write it in larger chunks"
            )
        from zarr.storage import LocalStore

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
        from daskspectral.data.stores import open_array

        where = f"this process (pid {os.getpid()} on {os.uname().nodename})"
        try:
            array = open_array(self.store, self.path)
        except (FileNotFoundError, KeyError) as error:
            raise FileNotFoundError(
                f"{self.name} is not visible to {where}. Move it to storage that all workers can read"
            ) from error
        if metadata_digest(array) != self.digest:
            raise OSError(
                f"{self.name} has changed or differs in {where}. Run again on data that do not change "
                "and that all workers can read"
            )
        return array

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "array"}

    def read(self, start: int, stop: int) -> Array:
        return self.read_block(slice(start, stop))

    def transposed(self) -> Reader | None:
        columns = self.array.chunks[1]
        return _ZarrColumns(self, columns) if columns < self.shape[1] else None

    def read_block(self, *where: slice) -> Array:
        array, (start, stop) = self.array, (where[0].start, where[0].stop)
        try:
            rows = np.asarray(array[where])
        except DAMAGE as error:
            if isinstance(error, AWAY):
                raise
            raise OSError(f"{self.name} cannot be decoded in rows {start} to {stop}: {error}. Restore it") from error
        if not self.allow_missing:
            self._check_present(rows, where)
        return rows

    def _check_present(self, rows: Array, where: tuple[slice, ...]) -> None:
        """Raise OSError if a chunk reads as its fill value because this process does not find it."""
        from daskspectral.data.shards import first_absent, smallest_chunk

        array, suspects = self.array, []
        unit, fill = smallest_chunk(array, self.name), array.dtype.type(array.fill_value or 0)
        for index, place in self._parts(where, unit):
            part = rows[place]
            if part.size and _is(part.flat[0], fill) and _is(part, fill).all():
                suspects.append(index)
        if (absent := first_absent(array, self.name, suspects)) is not None:
            here = f"this process (pid {os.getpid()} on {os.uname().nodename})"
            raise OSError(f"{absent} is missing for {here}. Restore it, or {FILL_MEANT}")

    def _parts(
        self, where: tuple[slice, ...], unit: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield the positions of the chunks or shards of a block, and their slices of it."""
        whole = [slice(0, size) for size in self.shape[len(where) :]]
        sides = [(side.start, side.stop, size) for side, size in zip((*where, *whole), unit, strict=True)]
        for index in product(*(range(start // size, -(-stop // size)) for start, stop, size in sides)):
            yield (
                index,
                tuple(
                    slice(max(i * size, start) - start, min((i + 1) * size, stop) - start)
                    for i, (start, stop, size) in zip(index, sides, strict=True)
                ),
            )

    @property
    def identity(self) -> dict[str, Any]:
        return {"name": self.name, "metadata": self.digest}


def _is(values: Any, fill: Any) -> Any:
    return np.isnan(values) if fill != fill else values == fill


def metadata_digest(array: zarr.Array[Any]) -> str:
    """Return a digest of an array's metadata without attributes."""
    plain = {k: v for k, v in array.metadata.to_dict().items() if k != "attributes"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def zarr_reader(array: zarr.Array[Any], name: str | None = None) -> Reader:
    """Return a reader of a zarr array; one in a MemoryStore is in memory; OSError as `refuse_codecs`."""
    from zarr.storage import MemoryStore

    from daskspectral.data.stores import array_name, refuse_codecs

    name = name or array_name(array) or "the zarr array"
    refuse_codecs(array.metadata.to_dict(), name)
    if not array.shape:
        return ArrayReader(np.asarray(array[...]))
    reader: Reader = ZarrReader.of(array, name)
    if isinstance(array.store, MemoryStore):
        reader = ArrayReader(reader.read(0, array.shape[0]))
    names: Any = array.attrs.get(COLUMNS)
    if isinstance(names, list) and [array.ndim, array.shape[-1]] == [2, len(names)] and {*map(type, names)} <= {str}:
        reader.set_names(ColumnNames(tuple(names)))
    return reader


@dataclass(frozen=True, eq=False)
class _DerivedReader(Reader):
    """Base of readers of a part of another `reader`."""

    reader: Reader

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.reader.dtype

    @property
    def parts(self) -> tuple[Reader, ...]:
        return self.reader.parts

    def lenient(self) -> Reader:
        return replace(self, reader=self.reader.lenient())


@dataclass(frozen=True, eq=False)
class _ZarrColumns(_DerivedReader):
    """Columns (d, n) of a zarr array in chunks of some columns."""

    reader: ZarrReader
    chunk: int

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.reader.shape[::-1]

    @property
    def edges(self) -> Array:
        return np.append(np.arange(0, self.shape[0], self.chunk), self.shape[0])

    def read(self, start: int, stop: int) -> Array:
        return self.reader.read_block(slice(0, self.shape[1]), slice(start, stop)).T


@dataclass(frozen=True, eq=False)
class ColumnsReader(_DerivedReader):
    """Columns of a reader at some `places`, 0 for None, selected when rows are read."""

    places: tuple[int | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.reader.shape[0], len(self.places))

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self.reader.in_memory

    @property
    def edges(self) -> Array:
        return self.reader.edges

    def read(self, start: int, stop: int) -> Array:
        return select_columns(self.reader.read(start, stop), self.places)

    def localize(self, start: int, stop: int) -> Reader:
        return replace(self, reader=self.reader.localize(start, stop))

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        return self.reader.within(start, stop)

    @property
    def identity(self) -> dict[str, Any]:
        return {**self.reader.identity, "columns": [*self.places]}


@dataclass(frozen=True, eq=False)
class DaskReader(Reader):
    """Dask array of the user, whose blocks are nodes of the graph of the run.

    `files` are the zarr arrays from which it is read, if they are known, and `paths` other files. `tiles` is the same
    array in blocks of some columns, None if there is no such array.
    """

    lazy = True

    array: da.Array
    files: tuple[Reader, ...] = ()
    paths: tuple[str, ...] = ()
    tiles: da.Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(int(n) for n in self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype

    @property
    def edges(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.array.chunks[0])])

    def read(self, start: int, stop: int) -> Array:
        whole = self.array if self.tiles is None else self.tiles  # a few rows would require the whole block
        return np.asarray(whole[start:stop].compute())

    def _columns_at(self, places: tuple[int | None, ...]) -> Reader:
        return replace(
            self, array=by_block(partial(select_columns, places=places), self.array, token="taken"), tiles=None
        )

    def transposed(self) -> Reader | None:
        return None if self.tiles is None else DaskReader(self.tiles.T.rechunk({1: -1}))

    @property
    def identity(self) -> dict[str, Any]:
        blocks = self.array.chunks[0]
        digest = hashlib.sha256(repr(blocks).encode()).hexdigest()[:8]
        chunks = f"{len(blocks)} of {max(blocks)} rows at most, {digest}"
        return {**super().identity, "chunks": chunks, "name in dask": self.array.name}


def lazy_rows(reader: Reader) -> da.Array:
    """Return the rows of a reader as a dask array with the same chunks."""
    if reader.lazy:
        return cast(DaskReader, reader).array
    import dask.array as da

    chunks = (tuple(np.diff(reader.edges).tolist()), *reader.shape[1:])
    meta = np.empty((0,) * len(reader.shape), reader.dtype)
    array: da.Array = da.from_array(reader, chunks=chunks, asarray=False, meta=meta)
    return array


def by_block(function: Callable[..., Array], values: Any, *aligned: Array, token: str) -> Any:
    """Return a function of blocks of rows (c, d), and of aligned arrays, as an array (n, k).

    It is a dask array unless the values are in memory.
    """
    import dask.array as da

    values = lazy_rows(values) if isinstance(values, Reader) else values
    if not is_dask_array(values):
        return function(np.asarray(values), *aligned)
    meta = function(np.empty((0, values.shape[1]), values.dtype), *(part[:0] for part in aligned))
    chunks = values.chunks[0], meta.shape[1:]
    others = [da.from_array(part, chunks=(chunks[0], -1)) for part in aligned]
    return da.map_blocks(function, values, *others, token=token, chunks=chunks, meta=meta)


@dataclass(frozen=True, eq=False)
class JoinedReader(Reader):
    """Rows `spans[i]` = (start, stop) of reader i, concatenated without copies."""

    readers: tuple[Reader, ...]
    spans: tuple[tuple[int, int], ...]
    first: int = 0

    @cached_property
    def borders(self) -> Array:
        return self.first + np.cumsum([0, *(stop - start for start, stop in self.spans)])

    @cached_property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), *self.readers[0].shape[1:])

    @cached_property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.result_type(*(reader.dtype for reader in self.readers))

    @cached_property
    def edges(self) -> Array:
        inner = [self.borders[:-1]]
        for reader, (start, stop), border in zip(self.readers, self.spans, self.borders.tolist(), strict=False):
            edges = reader.edges
            inner.append(edges[(edges > start) & (edges < stop)] - start + border)
        return np.unique(np.append(np.concatenate(inner), self.borders[-1]))

    @property
    def parts(self) -> tuple[Reader, ...]:
        return tuple(part for reader in self.readers for part in reader.parts)

    @property
    def identity(self) -> dict[str, Any]:
        taken = [reader.identity for reader in self.readers if isinstance(reader, SelectedReader)]
        return {"spans": [list(span) for span in self.spans], **({"taken": taken} if taken else {})}

    def read(self, start: int, stop: int) -> Array:
        pieces = [reader.read(a, b) for reader, a, b in self._held(start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def localize(self, start: int, stop: int) -> Reader:
        held = list(self._held(start, stop))
        readers = tuple(reader.localize(a, b) for reader, a, b in held)
        return JoinedReader(readers, tuple((a, b) for _, a, b in held), start)

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        for reader, a, b in self._held(start, stop):
            yield from reader.within(a, b)

    def _held(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        i = int(np.searchsorted(self.borders, start, "right")) - 1
        while start < stop:
            end = min(stop, int(self.borders[i + 1]))
            offset = self.spans[i][0] - int(self.borders[i])
            if end > start:
                yield self.readers[i], start + offset, end + offset
            start, i = end, i + 1


@dataclass(frozen=True, eq=False)
class SelectedReader(_DerivedReader):
    """Some rows of a reader, in order: runs of neighboring rows, whose first rows are `starts` (R,).

    `borders` (R + 1,) are the numbers of the first row of each run among the selected rows, and of the row after the
    last. Rows between the first and the last are read, except long gaps.
    """

    starts: Array
    borders: Array

    @property
    def before(self) -> int:
        """Number of rows that are read before each row."""
        return 0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), *self.reader.shape[1:])

    @property
    def edges(self) -> Array:
        edges = self.reader.edges
        run = np.maximum(np.searchsorted(self.starts, edges, "right") - 1, 0)
        inside = np.clip(edges - self.starts[run], 0, np.diff(self.borders)[run])
        return np.unique([self.borders[0], *(self.borders[run] + inside).tolist(), self.borders[-1]])

    @property
    def identity(self) -> dict[str, Any]:
        runs = np.concatenate([self.starts, self.borders]).astype(np.int64)
        return {**super().identity, "runs": hashlib.sha256(runs.tobytes()).hexdigest()}

    def read(self, start: int, stop: int) -> Array:
        pieces = [self.reader.read(a, b)[rows - a] for a, b, rows in self._pieces(start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def localize(self, start: int, stop: int) -> Reader:
        first, last = (int(row) for row in self.rows(start, stop)[[0, -1]])
        i, j = np.searchsorted(self.borders, [start, stop - 1], "right") - 1
        cut = np.maximum(self.borders[i : j + 1], start)
        starts = self.starts[i : j + 1] + cut - self.borders[i : j + 1]
        reader = self.reader.localize(first - self.before, last + 1)
        return replace(self, reader=reader, starts=starts, borders=np.append(cut, stop))

    def within(self, start: int, stop: int) -> Iterator[tuple[Reader, int, int]]:
        for a, b, _ in self._pieces(start, stop):
            yield from self.reader.within(a - self.before, b)

    def rows(self, start: int, stop: int) -> Array:
        """Return the numbers in the reader of the selected rows start to stop."""
        taken = np.arange(start, stop)
        run = np.searchsorted(self.borders, taken, "right") - 1
        return np.asarray(self.starts[run] + taken - self.borders[run])

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Array]]:
        """Yield ranges of rows read together, without gaps longer than the range, and the selected rows."""
        rows = self.rows(start, stop)
        for piece in np.split(rows, np.flatnonzero(np.diff(rows) > stop - start) + 1) if len(rows) else ():
            yield int(piece[0]), int(piece[-1]) + 1, piece
