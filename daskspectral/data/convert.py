"""Files of other formats to zarr arrays, in row blocks, checked on the way in and on the way out."""

from __future__ import annotations

import csv
import itertools
import math
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskspectral.data.files import DEFLATED, need_netcdf, refuse_external
from daskspectral.data.folders import Directory, is_store, refuse_absent, room_at
from daskspectral.data.readers import library, numbers, open_parquet
from daskspectral.data.remote import Location, connect, local_path, reaching, stored
from daskspectral.data.stores import refuse_inflated, refuse_irregular
from daskspectral.data.writing import create_array, default_chunk_rows, progress_bar, refuse_existing
from daskspectral.errors import InvalidRowError
from daskspectral.kernels.base import whole


@contextmanager
def local_copy(location: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file or folder; what is at a URL is copied to a temporary folder, which goes at the end.

    Raises FileNotFoundError where there is nothing at a URL, and OSError, which names the folder, where it is full.
    """
    if local_path(location) is not None:
        yield Path(os.fspath(location).removeprefix("file://"))
        return
    files, root = connect(location)
    with tempfile.TemporaryDirectory(prefix="daskspectral-") as folder:
        copy = Path(folder) / PurePosixPath(root).name
        with reaching(location, files=files), room_at(folder):
            if not files.exists(root):
                refuse_absent(os.fspath(location))
                raise FileNotFoundError(f"there is no file at {os.fspath(location)}")
            if files.isdir(root):
                files.get(f"{root}/", f"{copy}/", recursive=True)
            else:
                files.get_file(root, str(copy))
        yield copy


Block = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """What of a file is converted: of several arrays the `dataset`, its `columns`, more dimensions than two `flatten`.

    `columns` are given by name or, in arrays, by number.
    """

    dataset: str | None = None
    columns: Sequence[str | int] | None = None
    flatten: bool = False


@dataclass(frozen=True)
class Table:
    """An open source: `blocks(rows)` gives its rows in order, (c, columns) with c at most `rows`.

    `rows` is None where the format does not tell; `names` are the names of the columns where they have names.
    """

    columns: int
    rows: int | None
    dtype: np.dtype[Any]
    names: list[str] | None
    blocks: Callable[[int], Iterable[Block]]


@contextmanager
def open_table(source: Path, part: Part) -> Iterator[Table]:
    """Open a file, or a directory of Parquet files, by its ending."""
    with ExitStack() as stack:
        with _naming(source):
            table = stack.enter_context(_opened(source, part))

        def blocks(rows: int) -> Iterator[Block]:
            with _naming(source):
                yield from table.blocks(rows)

        yield replace(table, blocks=blocks)


@contextmanager
def _naming(source: Path) -> Iterator[None]:
    """What a library raises for a file that it cannot read becomes an OSError with the path, where it has none."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # of any kind: each library has its own
        if type(error).__module__ == "builtins" and str(source) in str(error):
            raise
        reason = str(error)[:300] or type(error).__name__
        raise OSError(f"{source} cannot be read: it is damaged, or not what its ending says ({reason})") from error


def _opened(source: Path, part: Part) -> AbstractContextManager[Table]:
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist.")
    refuse_irregular(str(source))
    suffix = ".parquet" if source.is_dir() else source.suffix.lower()
    if suffix not in _OPENERS:
        raise ValueError(f"{source} has none of the endings that can be converted: {', '.join(_OPENERS)}.")
    if part.dataset is not None and suffix in _SINGLE:
        raise ValueError(f"{source} is one {_SINGLE[suffix]}: leave dataset={part.dataset!r} out.")
    return _OPENERS[suffix](source, part)


@contextmanager
def _npy(source: Path, part: Part) -> Iterator[Table]:
    with source.open("rb") as file:
        shape, _, dtype = _npy_header(file, source, source.stat().st_size)
    _check_array(str(source), shape, dtype, part)
    data = np.load(source, mmap_mode="r")
    yield _array_table(str(source), shape, dtype, lambda start, stop: data[start:stop], part)


@contextmanager
def _npz(source: Path, part: Part) -> Iterator[Table]:
    with zipfile.ZipFile(source) as archive:
        members = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        member = _one(members, part, source)
        with archive.open(f"{member}.npy") as file:
            what, packed = f"{member} in {source}", archive.getinfo(f"{member}.npy")
            refuse_inflated(
                what, packed.file_size, packed.compress_size, DEFLATED, "Save it again by np.savez_compressed"
            )
            shape, fortran, dtype = _npy_header(file, source, packed.file_size)
            if fortran and len(shape) > 1:
                raise ValueError(f"{what} is stored by columns: save it as a .npy file of its own instead.")

            def read(start: int, stop: int) -> Block:  # the rows come in order: a compressed file has no other
                count = stop - start
                data = file.read(count * math.prod(shape[1:]) * dtype.itemsize)
                return np.frombuffer(data, dtype).reshape(count, -1)

            yield _array_table(what, shape, dtype, read, part)


@contextmanager
def _hdf5(source: Path, part: Part) -> Iterator[Table]:
    h5py = library("h5py")
    refuse_external(source, str(source))
    with h5py.File(source, "r") as file:
        found: list[str] = []

        def visit(name: str, node: Any) -> None:
            if isinstance(node, h5py.Dataset) and node.shape and node.dtype.kind in "fiub":
                found.append(name)

        file.visititems(visit)
        if part.dataset is not None and isinstance(file.get(part.dataset), h5py.Dataset):
            found = [part.dataset]  # of another type than numbers, too, which is told of it
        name = _one(found, part, source)
        data = file[name]
        shape, what = data.shape or (), f"{name} in {source}"
        yield _array_table(what, shape, data.dtype, lambda start, stop: data[start:stop], part)


@contextmanager
def _netcdf(source: Path, part: Part) -> Iterator[Table]:
    need_netcdf(str(source))
    refuse_external(source, str(source))
    with xr.open_mfdataset([source], decode_times=False, chunks={}, cache=False) as file:
        names = [str(name) for name in file.data_vars]
        if part.dataset is not None or part.columns is None:
            name = _one(names, part, source)
            data, what = file[name], f"{name} in {source}"
            yield _array_table(what, data.shape, data.dtype, lambda start, stop: data[start:stop].values, part)
            return
        chosen = _chosen([str(name) for name in file.variables], part, str(source))
        for name in chosen:
            _check_array(f"{name} in {source}", file[name].shape, file[name].dtype, Part())
        if len({file[name].dims for name in chosen}) > 1 or file[chosen[0]].ndim > 1:
            shapes = ", ".join(f"{name} {file[name].sizes}" for name in chosen)
            raise ValueError(f"columns of {source} must be of one and the same dimension; these have {shapes}.")
        shape, dtype = (len(file[chosen[0]]), len(chosen)), np.result_type(*(file[name].dtype for name in chosen))

        def read(start: int, stop: int) -> Block:
            return np.column_stack([file[name][start:stop].values for name in chosen])

        yield replace(_array_table(str(source), shape, dtype, read, Part()), names=chosen)


@contextmanager
def _parquet(source: Path, part: Part) -> Iterator[Table]:
    if is_store(Directory(source)):
        raise ValueError(f"{source} is a zarr store already: use it as it is.")
    if source.is_dir() and not any(source.rglob("*.parquet")):
        raise ValueError(f"{source} holds no .parquet file.")
    reader = open_parquet([str(source)], None if part.columns is None else [*map(str, part.columns)])
    names = [*map(str, reader.names)]

    def blocks(size: int) -> Iterator[Block]:
        for group in reader.groups:
            for batch in group.to_batches(columns=names, batch_size=size):
                yield numbers(batch, names)

    yield Table(len(reader.names), reader.shape[0], reader.dtype, names, blocks)


@contextmanager
def _csv(source: Path, part: Part) -> Iterator[Table]:
    """Commas (.tsv: tabs); the first line is the header unless it is all numbers; an empty field is NaN."""
    arrow, reader = library("pyarrow"), library("pyarrow.csv")
    delimiter = "\t" if source.suffix.lower() == ".tsv" else ","
    with source.open(newline="", encoding="utf-8-sig") as file:
        header = next((line for line in csv.reader(file, delimiter=delimiter) if line), [])
    if not header:
        raise ValueError(f"{source} is empty.")
    if headless := all(_is_number(field) for field in header):
        header = [str(j) for j in range(len(header))]
    chosen = _chosen(header, part, str(source))
    real = dict.fromkeys(chosen, arrow.float64())

    def blocks(size: int) -> Iterator[Block]:
        try:
            with reader.open_csv(
                source,
                read_options=reader.ReadOptions(column_names=header if headless else None, block_size=2**24),
                parse_options=reader.ParseOptions(delimiter=delimiter),
                convert_options=reader.ConvertOptions(column_types=real, include_columns=chosen),
            ) as batches:
                for batch in batches:
                    yield numbers(batch, chosen)
        except arrow.ArrowInvalid as error:
            raise ValueError(f"{source}: {error}. Only numbers can be converted: choose columns=.") from error

    yield Table(len(chosen), None, np.dtype("float64"), None if headless else chosen, blocks)


def _array_table(
    what: str, shape: tuple[int, ...], dtype: np.dtype[Any], read: Callable[[int, int], Any], part: Part
) -> Table:
    """The table of an array of which read(start, stop) gives rows."""
    width = _check_array(what, shape, dtype, part)
    names = None if part.columns is None else _chosen([str(j) for j in range(width)], part, what)
    picked = slice(None) if names is None else [int(name) for name in names]

    def blocks(rows: int) -> Iterator[Block]:
        for start in range(0, shape[0], rows):
            stop = min(start + rows, shape[0])
            yield np.asarray(read(start, stop)).reshape(stop - start, width)[:, picked]

    return Table(width if names is None else len(names), shape[0], dtype, names, blocks)


def _check_array(what: str, shape: tuple[int, ...], dtype: np.dtype[Any], part: Part) -> int:
    """Return the number of columns."""
    if dtype.kind == "c":
        raise TypeError(f"{what} holds {dtype}: store real and imaginary parts as columns of their own.")
    if dtype.kind not in "fiub":
        raise TypeError(
            f"{what} holds {dtype}, but only real numbers can be converted: choose other columns "
            "(columns=) or another array (dataset=), or encode it as numbers first."
        )
    if not shape or min(shape) < 1:
        raise ValueError(f"{what} has shape {shape}: there are no rows to convert.")
    if len(shape) > 2 and not part.flatten:
        raise ValueError(
            f"{what} has shape {shape}; expected (n,) or (n, d). flatten=True (--flatten) keeps the first "
            f"axis as rows and makes one row of the rest, d = {math.prod(shape[1:])}."
        )
    return math.prod(shape[1:])


def _chosen(names: list[str], part: Part, what: str) -> list[str]:
    chosen = names if part.columns is None else [str(column) for column in part.columns]
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(names):
        raise ValueError(f"{_listed(chosen)} are not distinct columns of {what}: {_listed(names)}.")
    return chosen


def _one(names: list[str], part: Part, source: Path) -> str:
    """Return the one array that is meant."""
    dataset = part.dataset
    if dataset is None and len(names) == 1:
        return names[0]
    if dataset is None or dataset not in names:
        problem = f"has no array {dataset!r}" if dataset else "does not hold exactly one array of numbers"
        raise ValueError(f"{source} {problem}: choose dataset= (--dataset) among {_listed(names)}.")
    return dataset


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"


def _npy_header(file: Any, source: Path, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is stored by columns, and the dtype. Raises OSError for more numbers than `size` bytes."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"{source} has .npy format {version}; expected 1.0 or 2.0: save it again with np.save.")
    shape, fortran, dtype = readers[version](file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > size:
        raise OSError(f"{source} is cut short: its array has shape {shape} of {dtype}, and {size} bytes are there.")
    return tuple(map(int, shape)), fortran, dtype


def _is_number(text: str) -> bool:
    try:
        return isinstance(float(text or "nan"), float)
    except ValueError:
        return False


_OPENERS: dict[str, Callable[[Path, Part], AbstractContextManager[Table]]] = {
    **{".npy": _npy, ".npz": _npz, ".h5": _hdf5, ".hdf5": _hdf5, ".nc": _netcdf},
    **{".parquet": _parquet, ".pq": _parquet, ".csv": _csv, ".tsv": _csv},
}
_SINGLE = {".npy": "array", **dict.fromkeys((".parquet", ".pq", ".csv", ".tsv"), "table")}
"""Files that hold no datasets by name."""


@dataclass(frozen=True)
class Converted:
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
    dtype: npt.DTypeLike | None = None,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    on_invalid: Literal["raise", "skip", "keep"] = "raise",
    progress: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **part: Any,
) -> Converted:
    """Write a .npy, .npz, .parquet, .h5, .nc, .csv or .tsv file, or a directory of .parquet, as zarr (n, d).

    Only a few row blocks are in memory at a time. Of the file a `Part` is taken: `dataset` names the array in a file of
    several; `columns` the columns, by name or, in arrays, by number (in NetCDF also several variables of one
    dimension). A 1-d array is one column; more than 2 dimensions need `flatten`, which keeps the first as rows. float32
    and float16 become float32, other real numbers float64, unless `dtype` says otherwise. Missing values are NaN. Rows
    with NaN or infinity raise, are left out ("skip"), or stay ("keep"). Before the result appears at `path`, it is read
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
    if chunk_rows is not None:
        chunk_rows = whole("chunk_rows", chunk_rows)
    refuse_existing(path, overwrite)
    with (
        local_copy(source) as file,
        open_table(file, Part(**part)) as table,
        progress_bar(table.rows, f"{file.name} to {os.fspath(path)}", progress) as bar,
    ):
        if kind is None:
            kind = np.dtype("float32" if table.dtype in ("float32", "float16") else "float64")
        size = chunk_rows or default_chunk_rows((1, table.columns), kind)
        rows = _CheckedRows(table, kind, min(size, table.rows or size), on_invalid, bar)
        chunks = iter(rows)
        first = next(chunks, None)
        if first is None:
            raise ValueError(f"{file} has no rows to convert ({rows.skipped} invalid ones were left out).")
        shape = (table.rows or len(first), table.columns)
        attributes = {"source": file.name} | ({"columns": table.names} if table.names else {})
        with create_array(
            path, shape, kind, chunk_rows=len(first), attributes=attributes, overwrite=overwrite
        ) as array:
            n = checksum = 0
            for chunk in itertools.chain([first], chunks):
                if n + len(chunk) > array.shape[0]:  # zarr would cut the rest off in silence
                    array.resize((2 * array.shape[0] + len(chunk), table.columns))
                array[n : n + len(chunk)] = chunk
                checksum = zlib.crc32(chunk.data, checksum)
                n += len(chunk)
            array.resize((n, table.columns))
            _read_back(array, checksum, path)
    return Converted(n, table.columns, rows.skipped, os.fspath(path))


class _CheckedRows:
    """The rows of a table that pass the check, in chunks of `size` (one buffer)."""

    def __init__(self, table: Table, dtype: np.dtype[Any], size: int, on_invalid: str, bar: Any):
        self.table, self.dtype, self.size, self.on_invalid, self.bar = table, dtype, size, on_invalid, bar
        self.skipped = 0

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
                    yield buffer
                    filled = 0
        if filled:
            yield buffer[:filled]
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


def _read_back(array: Any, checksum: int, path: Location) -> None:
    found, rows = 0, array.chunks[0]
    for start in range(0, array.shape[0], rows):
        found = zlib.crc32(np.ascontiguousarray(array[start : start + rows]).data, found)
    if found != checksum:
        raise OSError(f"{os.fspath(path)} reads back differently from what was written: check disk and memory.")
