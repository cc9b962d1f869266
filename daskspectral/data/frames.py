"""Tables of named columns: data frames in memory, Parquet and CSV files.

Frames are of pandas, polars, Arrow and others, by narwhals. Files are read lazily, a row group or a CSV file at a time.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_into_series, is_pandas_like_dataframe
from numpy.typing import NDArray

from daskspectral.data.columns import ColumnNames, ColumnSelection
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.remote import connect, is_url, reaching
from daskspectral.data.times import RowTimes
from daskspectral.validation import loaded

Array = NDArray[Any]
REMEDY = (
    "drop the column, or convert it to numbers: dates to durations, categories to columns of 0 and 1 "
    "(sklearn.preprocessing.OneHotEncoder)"
)
NUMBERED = "__null_dask_index__"  # index that dask writes, which restarts in each partition


def is_frame(value: Any) -> bool:
    """Return whether this is a data frame in memory."""
    return is_into_dataframe(value) or isinstance(value, loaded("pyarrow.RecordBatch"))


def columns_of(frame: Any) -> tuple[list[Any], list[nw.Series[Any]]]:
    """Return the labels and the columns of a frame, without an index stored by Arrow."""
    if is_pandas_like_dataframe(frame):  # labels may be of any type, and repeated
        columns = [nw.from_native(frame.iloc[:, i], series_only=True) for i in range(frame.shape[1])]
        return [*frame.columns], columns
    frame = _whole(frame)
    index = index_columns(frame.schema) if isinstance(frame, loaded("pyarrow.Table")) else []
    kept = [column for column in nw.from_native(frame, eager_only=True).iter_columns() if column.name not in index]
    return [column.name for column in kept], kept


def _whole(frame: Any) -> Any:
    batch = isinstance(frame, loaded("pyarrow.RecordBatch"))
    return importlib.import_module("pyarrow").Table.from_batches([frame]) if batch else frame


def index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow table that are the index of the original pandas frame."""
    try:
        known = schema.pandas_metadata["index_columns"]
    except (TypeError, KeyError, ValueError):  # no index, or no metadata of pandas
        known = []
    known = known if isinstance(known, list) else []
    named = [name for name in known if isinstance(name, str) and name in schema.names]
    return named or [name for name in schema.names if name.startswith("__index_level_")]


def matrix(frame: Any, what: str) -> Array:
    """Return the real numbers (n, d) of a data frame; raise as `frame_reader`."""
    labels, columns = columns_of(frame)
    return _matrix(labels, columns, range(len(labels)), what, ColumnSelection())


def _matrix(
    labels: Sequence[Any],
    columns: Sequence[nw.Series[Any]],
    places: Sequence[int | None],
    what: str,
    wanted: ColumnSelection,
) -> Array:
    """Return the columns at these positions as real numbers (n, d), missing entries as NaN.

    They are float32 if all columns are, else float64; 0 for None and for unused columns that are not numeric.
    """
    found: dict[int, Array] = {}
    refused: dict[Any, Exception] = {}
    for number, place in enumerate(places):
        if place is None:
            continue
        try:
            found[number] = _numbers(columns[place], f"column {labels[place]!r} of {what}")
        except (TypeError, ValueError) as error:
            if wanted.uses(number, len(places)):
                refused[labels[place]] = error
    refuse_columns(refused)
    single = found and all(v.dtype.kind == "f" and v.dtype.itemsize <= 4 for v in found.values())
    out = np.zeros((len(columns[0]) if columns else 0, len(places)), np.float32 if single else np.float64)
    for number, values in found.items():
        out[:, number] = values
    return out


def refuse_columns(refused: Mapping[Any, Exception]) -> None:
    """Raise the error of the first unusable column, with the names of the others."""
    if len(refused) == 1:
        raise next(iter(refused.values()))
    if refused:
        (_, first), *others = refused.items()
        names = ", ".join(repr(name) for name, _ in others)
        raise type(first)(f"{first}. Other unusable columns: {names}; select columns by Rows(X, columns=[...])")


def frame_reader(frame: Any, what: str, wanted: ColumnSelection) -> Reader:
    """Return a reader of the requested columns of a data frame; raise TypeError or ValueError naming others."""
    frame = _whole(frame)
    labels, columns = columns_of(frame)
    levels = frame.columns.names if labels and isinstance(labels[0], tuple) else None
    names, width = ColumnNames.of(labels, levels), len(labels)
    if names is not None:
        names.check_distinct(what)
    elif wanted.names is not None and {*wanted.names.labels} == {*range(width)}:
        names = ColumnNames.numbers(width)
    places = wanted.places(names, width, what)
    reader = ArrayReader(_matrix(labels, columns, places, what, wanted))
    if names is not None and None not in places:
        reader.set_names(names.select(place for place in places if place is not None))
    if isinstance(frame, loaded("pyarrow.Table")):
        return reader.set_times(arrow_times(frame, [label for i, label in enumerate(labels) if i not in places]))
    others = [column for i, column in enumerate(columns) if i not in places]
    return reader.set_times(frame_times(getattr(frame, "index", None), others))


def vector(column: Any) -> Array:
    """Return the values (n,) of a column: numbers with NaN for missing ones, else objects with None."""
    series = nw.from_native(column, series_only=True)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _numbers(series, "the column")
    values = np.empty(len(series), dtype=object)
    values[:] = [None if missing else value for value, missing in zip(series.to_list(), series.is_null(), strict=True)]
    return values


is_column = is_into_series


def _numbers(column: nw.Series[Any], what: str) -> Array:
    kind = column.dtype
    if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object, nw.Unknown)):
        raise TypeError(f"{what} must be real numbers, got {kind}: {REMEDY}")
    values = np.asarray(column.to_numpy())
    refuse_kind(values.dtype, what)
    return real(values, what)


def real(values: Array, what: str) -> Array:
    """Return objects as float64, None as NaN; raise TypeError for objects that are not numbers."""
    if values.dtype.kind != "O":
        return values
    missing = np.zeros(values.shape, dtype=bool)
    for index, entry in np.ndenumerate(values):
        if isinstance(entry, (str, bytes)):
            raise TypeError(f"{what} must be real numbers, got text such as {entry[:20]!r}: {REMEDY}")
        if isinstance(entry, (complex, np.complexfloating)):
            raise ValueError(_complex(what, "complex numbers"))
        missing[index] = type(entry).__name__ == "NAType"  # of pandas
    try:
        found = values.copy()
        found[missing] = None
        return np.asarray(found.astype(np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be real numbers, got other objects ({error}): {REMEDY}") from None


def refuse_kind(dtype: Any, what: str, *, objects: bool = True) -> None:
    """Raise ValueError for complex numbers, TypeError for other dtypes than real numbers or `objects`."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        raise ValueError(_complex(what, f"dtype {dtype}"))
    if kind not in ("fiubO" if objects else "fiub"):
        raise TypeError(f"{what} must be real numbers, got dtype {dtype}. Convert it by .astype('float64')")


def _complex(what: str, has: str) -> str:
    remedy = "Split real and imaginary parts into columns, or call EOF.complex_modes"
    return f"Complex data not supported: {what} has {has}. {remedy}"


# -- times of rows -----------------------------------------------------------------------------------------------------


def frame_times(index: Any, others: Sequence[nw.Series[Any]]) -> RowTimes | None:
    """Return the times or numbers of a pandas index, or the only column of dates among `others`."""
    found = None
    if index is not None and type(index).__name__ != "RangeIndex" and index.name != NUMBERED:
        found = RowTimes.of(index, str(index.name or "index"))
    dates = [column for column in others if column.dtype in (nw.Date, nw.Datetime)]
    if (found is None or not found.of_clock) and len(dates) == 1:
        return RowTimes.of(dates[0].to_numpy(), str(dates[0].name))
    return found


def arrow_times(table: Any, others: Sequence[str]) -> RowTimes | None:
    """Return the times of the index of an Arrow table, or the only column of dates among `others`."""
    index, dates = index_columns(table.schema), date_columns(table.schema, others)
    frame = table.select([*index, *dates]).to_pandas(ignore_metadata=True, date_as_object=False)
    if index:
        names = [None if name.startswith("__index_level_") else name for name in index]
        frame = frame.set_index(index).rename_axis(names)
    return frame_times(frame.index, columns_of(frame[dates])[1])


def date_columns(schema: Any, names: Sequence[str]) -> list[str]:
    """Return the columns of dates of an Arrow table among `names`."""
    return [name for name in names if str(schema.field(name).type).startswith(("date", "timestamp"))]


# -- tables in files: Parquet and CSV, by one pyarrow dataset ----------------------------------------------------------


PARQUET = (".parquet", ".pq")
CSV = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, eq=False)
class TableReader(Reader):
    """Rows of concatenated tables with columns `names`, 0 for None; `borders` are those of groups of rows."""

    groups: tuple[Any, ...]  # fragments of a pyarrow dataset, one row group or CSV file each
    names: tuple[str | None, ...]
    borders: Array
    dtype: np.dtype[Any]
    paths: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), len(self.names))

    @property
    def edges(self) -> Array:
        return self.borders

    def read(self, start: int, stop: int) -> Array:
        first, last = np.searchsorted(self.borders, [start, stop - 1], "right") - 1
        result = np.zeros((stop - start, len(self.names)), self.dtype)
        names = [name for name in self.names if name is not None]
        for i in range(int(first), int(last) + 1):
            table = _table(self.groups[i], names)
            low, high = int(self.borders[i]), int(self.borders[i + 1])
            a, b = max(start, low), min(stop, high)
            for j, name in enumerate(self.names):
                if name is not None:
                    column = table.column(name).slice(a - low, b - a).cast("float64", safe=False)
                    result[a - start : b - start, j] = column.to_numpy()
        return result

    def _columns_at(self, places: tuple[int | None, ...]) -> Reader:
        return replace(self, names=tuple(None if place is None else self.names[place] for place in places))

    @property
    def identity(self) -> dict[str, Any]:
        return {**super().identity, "columns": list(self.names)}


@dataclass(frozen=True, eq=False)
class Table:
    """Concatenated files with the same columns, none of them selected yet.

    `kinds` contains the types of each column in the files, `index` the columns of a pandas index.
    """

    groups: tuple[Any, ...]
    names: tuple[str, ...]
    kinds: Mapping[str, Sequence[Any]]
    borders: Array
    paths: tuple[str, ...]
    index: tuple[str, ...] = ()

    def times(self, places: Sequence[int | None]) -> RowTimes | None:
        """Return the times of rows from their index, or the only column of dates outside of `places`."""
        others = [name for j, name in enumerate(self.names) if j not in places]
        dates = date_columns(self.groups[0].physical_schema, others)
        if not self.index and len(dates) != 1:
            return None
        tables = [_table(group, [*self.index, *dates]) for group in self.groups]
        return arrow_times(library("pyarrow").concat_tables(tables), dates)

    def reader(self, places: Sequence[int | None] | None = None, used: ColumnSelection | None = None) -> TableReader:
        """Return a reader of the columns at these positions, by default all; unused text is not read."""
        places, wanted = range(len(self.names)) if places is None else places, used or ColumnSelection()
        names = [None if place is None else self.names[place] for place in places]
        unfit = {name: kind for name, kinds in self.kinds.items() for kind in kinds if not _is_real(kind)}
        refuse_columns(
            {
                name: TypeError(f"column {name!r} of {self.paths[0]} must be real numbers, got {unfit[name]}: {REMEDY}")
                for j, name in enumerate(names)
                if name in unfit and wanted.uses(j, len(names))
            }
        )
        read = tuple(None if name in unfit else name for name in names)
        kinds = [np.dtype(kind.to_pandas_dtype()) for name in read if name is not None for kind in self.kinds[name]]
        dtype = np.result_type(*kinds) if kinds and all(kind.kind == "f" for kind in kinds) else np.dtype(float)
        found = TableReader(self.groups, read, self.borders, dtype, self.paths)
        return found.set_names(ColumnNames(tuple(names))) if None not in names else found  # type: ignore[arg-type]


def open_table(paths: Sequence[str]) -> Table:
    """Return a `Table` of Parquet or CSV files, or folders of Parquet files; its columns are read later.

    Of Parquet only metadata are read; of CSV the rows are counted. Raises ValueError for files without rows or without
    the columns of the first, OSError for damaged files, and ImportError without pyarrow.
    """
    try:
        data = _csv(paths) if is_csv(paths) else _dataset(paths, "parquet")
        fragments = [*data.get_fragments()]
        if is_csv(paths):
            counted = [(fragment, fragment.count_rows()) for fragment in fragments]
        else:
            counted = [(g, g.row_groups[0].num_rows) for fragment in fragments for g in fragment.split_by_row_group()]
    except library("pyarrow").lib.ArrowException as error:  # such as repeated names
        raise OSError(f"{', '.join(paths[:3])} cannot be read: {str(error)[:200]!a}. Restore it") from error
    index = index_columns(data.schema)
    names = [name for name in data.schema.names if name not in index]
    for fragment in fragments:
        if missing := [name for name in names if name not in fragment.physical_schema.names]:
            raise ValueError(f"{fragment.path} must have the columns {missing} of {fragments[0].path}")
    filled = [(group, count) for group, count in counted if count]
    if not names or not filled:
        raise ValueError(f"{', '.join(paths)} must have rows of numbers, got the columns {data.schema.names}")
    kinds = {name: [data.schema.field(name).type] for name in names}
    if not is_csv(paths):
        kinds = {name: [fragment.physical_schema.field(name).type for fragment in fragments] for name in names}
    borders = np.cumsum([0, *(count for _, count in filled)])
    scheme = paths[0].partition("://")[0] + "://" if is_url(paths[0]) else ""
    files = tuple(scheme + path for path in data.files)
    return Table(tuple(group for group, _ in filled), tuple(names), kinds, borders, files, tuple(index))


def library(name: str, what: str = "This format") -> Any:
    """Return a module of the library of a format; raise ImportError with the command to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{what} requires {package}: pip install {package}") from error


def is_csv(paths: Sequence[str]) -> bool:
    """Return whether these are CSV files."""
    return all(path.lower().endswith(tuple(CSV)) for path in paths)


def _csv(paths: Sequence[str]) -> Any:
    """Return the dataset of CSV files, numbers as float64; raise ValueError without a header."""
    dataset, csv, float64 = library("pyarrow.dataset"), library("pyarrow.csv"), library("pyarrow").float64()
    parsed = csv.ParseOptions(delimiter=CSV[os.path.splitext(paths[0])[1].lower()])
    schema = _dataset(paths, dataset.CsvFileFormat(parse_options=parsed)).schema
    if all(_is_number(name) for name in schema.names):
        raise ValueError(f"the first line of {paths[0]} must be column names. Read it by pandas.read_csv(header=None)")
    real = {field.name: float64 for field in schema if _is_real(field.type) or str(field.type) == "null"}
    converted = csv.ConvertOptions(column_types=real)
    return _dataset(paths, dataset.CsvFileFormat(parse_options=parsed, convert_options=converted))


def _dataset(paths: Sequence[str], kind: Any) -> Any:
    """Return the pyarrow dataset of files, or of a folder, in a file system or an object store."""
    from daskspectral.data.stores import refuse_irregular

    dataset = library("pyarrow.dataset").dataset
    if not is_url(paths[0]):
        for path in chain.from_iterable(_parts(path) for path in paths):
            refuse_irregular(path)
        return dataset(paths[0] if len(paths) == 1 else list(paths), format=kind)
    files, _ = connect(paths[0])
    roots = [str(files._strip_protocol(path)) for path in paths]
    with reaching(paths[0]):
        for root in roots:
            files.info(root)
        return dataset(roots[0] if len(roots) == 1 else roots, format=kind, filesystem=files)


def _parts(path: str) -> Iterator[str]:
    """Yield a file, or the Parquet files in a folder and its subfolders; pyarrow skips others."""
    yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names if name.endswith(PARQUET))


def _table(group: Any, names: Sequence[str]) -> Any:
    """Return columns of a group; raise OSError, which names the file, if it cannot be decoded."""
    try:
        return group.to_table(columns=[*names])
    except library("pyarrow").lib.ArrowException as error:
        raise OSError(f"{group.path} cannot be decoded: {str(error)[:200]!a}. Restore it, or write it again") from error


def _is_real(kind: Any) -> bool:
    types = library("pyarrow").types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _is_number(text: str) -> bool:
    try:
        return isinstance(float(text), float)
    except ValueError:
        return False
