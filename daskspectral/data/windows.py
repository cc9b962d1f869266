"""Windows of consecutive rows as rows (delay embedding), read without a copy of the array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.layout import RowLabels
from daskspectral.data.readers import ArrayReader, DaskReader, Reader, SelectedReader
from daskspectral.data.times import RowTimes

Array = NDArray[Any]
COPY_BYTES = 1 << 22  # windows of rows in memory are copied in blocks of this size
DELAY = "delay"
"""Dimension of the rows of a window in labeled results: the number of rows before the last one."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of `delays` consecutive rows, `stride` apart, each identified by its last row.

    The last rows form runs of neighboring rows, whose first rows are `starts` (R,); `borders` (R + 1,) are the numbers
    of the first window of each run, and of the window after the last.
    """

    delays: int
    stride: int
    starts: Array
    borders: Array

    @property
    def count(self) -> int:
        return int(self.borders[-1])

    @cached_property
    def last(self) -> Array:
        windows = np.arange(self.count)
        run = np.searchsorted(self.borders, windows, "right") - 1
        return np.asarray(self.starts[run] + windows - self.borders[run])

    def row(self, window: int, delay: int) -> int:
        """Return the number of the row that is `delay` times before the last row of a window."""
        run = int(np.searchsorted(self.borders, window, "right")) - 1
        return int(self.starts[run] + window - self.borders[run]) - delay * self.stride

    def steps(self, times: RowTimes) -> Array:
        """Return the positions of the last rows among the times, which are common to all members of an ensemble."""
        of_one = self.last[: self.count // times.before]
        return np.asarray(of_one[:: times.behind] // times.behind)

    def times(self, times: RowTimes | None) -> RowTimes | None:
        if times is None or times.values is None or times.ticks is None:
            return times
        places = self.steps(times)
        return replace(times, values=times.values[places], ticks=times.ticks[places])

    def labels(self, rows: RowLabels, times: RowTimes | None) -> RowLabels:
        if len(rows.dims) == 1 or times is None or times.values is None:
            return rows.select(rows.dims[0], self.last)
        sizes, count = rows.sizes, len(times.values)
        axis = next(i for i in range(len(sizes)) if sizes[i] == count and np.prod(sizes[:i], dtype=int) == times.before)
        return rows.select(rows.dims[axis], self.steps(times))

    def of(self, reader: Reader) -> Reader:
        """Return a reader of the windows of points (n, d): rows (count, delays d), the last row first."""
        found: Reader
        if reader.lazy:
            assert isinstance(reader, DaskReader)
            tiles = None if reader.tiles is None else self._concatenated(reader.tiles)
            found = replace(reader, array=self._concatenated(reader.array).rechunk({1: -1}), tiles=tiles)
        else:
            found = WindowReader(reader, self.starts, self.borders, self.delays, self.stride)
        object.__setattr__(found, "windows", self)
        return found.set_times(self.times(reader.times))

    def ends(self, reader: Reader) -> Reader:
        """Return a reader of the last rows of the windows, for a field with as many rows as the points."""
        if not reader.lazy:
            return SelectedReader(reader, self.starts, self.borders)
        assert isinstance(reader, DaskReader)
        return replace(reader, array=self._selected(reader.array, 0), tiles=None)

    def _concatenated(self, array: Any) -> Any:
        import dask.array as da

        parts = [self._selected(array, delay) for delay in range(self.delays)]
        return da.concatenate([part.rechunk({0: parts[0].chunks[0]}) for part in parts], axis=1)

    def _selected(self, array: Any, delay: int) -> Any:
        """Return the rows that are `delay` times before the last rows of all windows."""
        if len(self.starts) != 1:
            return array[self.last - delay * self.stride]
        start = int(self.starts[0]) - delay * self.stride
        return array[start : start + self.count]


@dataclass(frozen=True, eq=False)
class WindowReader(SelectedReader):
    """Windows of the rows of a reader, concatenated; a range is read with the rows before it."""

    delays: int
    stride: int

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), self.delays * self.reader.shape[1])

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self.reader.in_memory

    @property
    def before(self) -> int:
        return (self.delays - 1) * self.stride

    @property
    def edges(self) -> Array:
        count = int(self.borders[-1])
        if not count:
            return np.array([0, 0])
        if not self.in_memory:
            return super().edges
        rows = max(1, COPY_BYTES // (self.dtype.itemsize * self.shape[1]))  # each read is a copy
        return np.append(np.arange(0, count, rows), count)

    def read(self, start: int, stop: int) -> Array:
        d = self.reader.shape[1]
        found, done = np.empty((stop - start, self.delays * d), self.dtype), 0
        for a, b, last in self._pieces(start, stop):
            rows, into = self.reader.read(a - self.before, b), found[done : done + len(last)]
            whole, done = len(last) == b - a, done + len(last)
            for delay in range(self.delays):
                at = self.before - delay * self.stride
                some: Any = slice(at, at + len(last)) if whole else last - a + at
                into[:, delay * d : (delay + 1) * d] = rows[some]
        return found

    def transposed(self) -> Reader | None:
        columns = self.reader.transposed()
        return None if columns is None else _WindowColumns(columns, self)

    @property
    def identity(self) -> dict[str, Any]:
        return {**super().identity, "delays": self.delays, "stride": self.stride}


@dataclass(frozen=True, eq=False)
class _WindowColumns(Reader):
    """Columns (delays d, count) of windows, from the columns (d, n) of rows."""

    reader: Reader
    rows: WindowReader

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.rows.shape[::-1]

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.reader.dtype

    @property
    def chunk(self) -> int:  # type: ignore[override]
        return self.reader.chunk

    @property
    def parts(self) -> tuple[Reader, ...]:
        return self.reader.parts

    @property
    def edges(self) -> Array:
        edges, d = self.reader.edges, self.reader.shape[0]
        return np.unique([edge + delay * d for delay in range(self.rows.delays) for edge in edges])

    def read(self, start: int, stop: int) -> Array:
        d, stride, last = self.reader.shape[0], self.rows.stride, self.rows.rows(0, self.rows.shape[0])
        pieces = []
        for delay in range(start // d, -(-stop // d)):
            columns = self.reader.read(max(start - delay * d, 0), min(stop - delay * d, d))
            pieces.append(columns[:, last - delay * stride])
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def in_windows(readers: dict[str, Reader], points: Sequence[str], windows: Windows) -> dict[str, Reader]:
    """Return readers of the windows of points, and of the last rows of other fields."""
    return {name: windows.of(r) if name in points else windows.ends(r) for name, r in readers.items()}


def on_dask(readers: dict[str, Reader]) -> dict[str, Reader]:
    """Return fields in memory as dask arrays, with the row chunks of the fields that are dask arrays."""
    import dask.array as da

    rows = next((r.array.chunks[0] for r in readers.values() if isinstance(r, DaskReader)), -1)
    arrays = {k: r.array for k, r in readers.items() if isinstance(r, ArrayReader) and not r.is_sparse}
    found = {k: da.from_array(a, chunks=(rows, *((-1,) * (a.ndim - 1)))) for k, a in arrays.items()}
    return readers | {k: DaskReader(array).set_times(readers[k].times) for k, array in found.items()}
