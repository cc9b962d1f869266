"""Files of other formats to zarr arrays, in row blocks, checked on the way in and on the way out."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskspectral.data.fetching import local_copy
from daskspectral.data.formats import Block, Columns, Table, open_table
from daskspectral.data.remote import stored
from daskspectral.data.writer import Location, create_array, default_chunk_rows, progress_bar, refuse_existing
from daskspectral.errors import InvalidRowError


@dataclass(frozen=True)
class Report:
    """What `convert` wrote: the shape of the array at `path`, and how many rows it left out."""

    rows: int
    columns: int
    skipped: int
    path: str


@stored
def convert(
    source: Location,
    path: Location,
    *,
    dataset: str | None = None,
    columns: Columns = None,
    dtype: npt.DTypeLike | None = None,
    chunk_rows: int | None = None,
    flatten: bool = False,
    overwrite: bool = False,
    on_invalid: Literal["raise", "skip", "keep"] = "raise",
    progress: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Write a .npy, .npz, .parquet, .h5, .nc, .csv or .tsv file, or a directory of .parquet, as zarr (n, d).

    Only a few row blocks are in memory at a time. `dataset` names the array in a file of several; `columns`
    the columns, by name or, in arrays, by number (in NetCDF also several variables of one dimension). A 1-d
    array is one column; more than 2 dimensions need `flatten`, which keeps the first as rows. float32 and float16
    become float32, other real numbers float64, unless `dtype` says otherwise. Missing values are NaN. Rows with
    NaN or infinity raise, are left out ("skip"), or stay ("keep"). Before the result appears at `path`, it is read
    back and its checksum compared with the checksum of the rows read from the source.

    Both may be URLs, opened with fsspec's `storage_options`; a source there is copied to a temporary folder first.

    Raises InvalidRowError (for the lowest such row), TypeError for data that are not real numbers, ValueError for
    a `dataset` or `columns` that do not exist or are ambiguous, ImportError without the format's library, and OSError
    if the result reads back differently or cannot be written (FileExistsError for a path that exists).
    """
    if on_invalid not in ("raise", "skip", "keep"):
        raise ValueError(f"on_invalid must be 'raise', 'skip' or 'keep', not {on_invalid!r}.")
    kind = None if dtype is None else np.dtype(dtype)
    if kind is not None and kind.kind != "f":
        raise TypeError(f"dtype must be a floating type such as float64 or float32, not {kind}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows must be a positive integer, not {chunk_rows}.")
    refuse_existing(path, overwrite)
    with (
        local_copy(source) as file,
        open_table(file, dataset=dataset, columns=columns, flatten=flatten) as table,
        progress_bar(table.rows, f"{file.name} to {os.fspath(path)}", progress) as bar,
    ):
        if kind is None:
            kind = np.dtype("float32" if table.dtype in ("float32", "float16") else "float64")
        size = chunk_rows or default_chunk_rows((1, table.columns), kind)
        rows = _Rows(table, kind, min(size, table.rows or size), on_invalid, bar)
        chunks = iter(rows)
        first = next(chunks, None)
        if first is None:
            raise ValueError(f"{file} has no rows to convert ({rows.skipped} invalid ones were left out).")
        shape = (table.rows or len(first), table.columns)
        attributes = {"source": file.name} | ({"columns": table.names} if table.names else {})
        with create_array(
            path, shape, kind, chunk_rows=len(first), attributes=attributes, overwrite=overwrite
        ) as array:
            n = 0
            for chunk in itertools.chain([first], chunks):
                if n + len(chunk) > array.shape[0]:  # zarr would cut the rest off in silence
                    array.resize((2 * array.shape[0] + len(chunk), table.columns))
                array[n : n + len(chunk)] = chunk
                n += len(chunk)
            array.resize((n, table.columns))
            _read_back(array, rows.checksum, path)
    return Report(n, table.columns, rows.skipped, os.fspath(path))


class _Rows:
    """The rows of a table that pass the check, in chunks of `size` (one buffer), and their checksum."""

    def __init__(self, table: Table, dtype: np.dtype[Any], size: int, on_invalid: str, bar: Any):
        self.table, self.dtype, self.size, self.on_invalid, self.bar = table, dtype, size, on_invalid, bar
        self.skipped = self.checksum = 0

    def __iter__(self) -> Iterator[Block]:
        buffer, filled, seen = np.empty((self.size, self.table.columns), self.dtype), 0, 0
        for raw in self.table.blocks(self.size):
            with np.errstate(over="ignore", invalid="ignore"):
                block = raw.astype(self.dtype, copy=False)
            block = self._valid(block, seen)
            seen += len(raw)
            self.bar.update(len(raw))
            while len(block):
                part, block = np.split(block, [self.size - filled])
                buffer[filled : filled + len(part)] = part
                filled += len(part)
                if filled == self.size:
                    yield self._sealed(buffer)
                    filled = 0
        if filled:
            yield self._sealed(buffer[:filled])
        if self.table.rows not in (None, seen):
            raise OSError(f"The source gave {seen} rows, not its {self.table.rows}: it changed or is damaged.")

    def _valid(self, block: Block, first_row: int) -> Block:
        finite = np.isfinite(block)
        good: npt.NDArray[np.bool_] = np.all(finite, axis=1)
        if self.on_invalid == "keep" or good.all():
            return block
        if self.on_invalid == "raise":
            row = int(np.argmin(good))
            column = int(np.argmin(finite[row]))
            name = self.table.names[column] if self.table.names else column
            raise InvalidRowError(
                f"Row {first_row + row} holds NaN or infinity (column {name!r}, as {self.dtype}): "
                "on_invalid='skip' leaves such rows out, 'keep' keeps them.",
                first_row + row,
            )
        self.skipped += len(good) - int(good.sum())
        return block[good]

    def _sealed(self, chunk: Block) -> Block:
        self.checksum = zlib.crc32(chunk.data, self.checksum)
        return chunk


def _read_back(array: Any, checksum: int, path: Location) -> None:
    found, rows = 0, array.chunks[0]
    for start in range(0, array.shape[0], rows):
        found = zlib.crc32(np.ascontiguousarray(array[start : start + rows]).data, found)
    if found != checksum:
        raise OSError(f"{os.fspath(path)} reads back differently from what was written: check disk and memory.")
