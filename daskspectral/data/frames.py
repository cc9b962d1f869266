"""Data frames in memory, of pandas, polars, Arrow and others, by narwhals: names, numbers, times of rows."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_into_series, is_pandas_like_dataframe
from numpy.typing import NDArray

from daskspectral.data.columns import ColumnNames, Wanted
from daskspectral.data.loaded import loaded
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.times import RowTimes

Array = NDArray[Any]
REMEDY = (
    "drop the column, or make numbers of it: dates as their distance from a first one, categories as columns of 0 and "
    "1 (sklearn.preprocessing.OneHotEncoder)"
)
NUMBERED = "__null_dask_index__"  # the index that dask writes, which starts anew with each partition


def is_frame(value: Any) -> bool:
    """Return whether this is a data frame in memory."""
    return is_into_dataframe(value) or isinstance(value, loaded("pyarrow.RecordBatch"))


def columns_of(frame: Any) -> tuple[list[Any], list[nw.Series[Any]]]:
    """Return the labels of the columns and the columns, without those of an index that Arrow keeps."""
    if is_pandas_like_dataframe(frame):  # whose labels may be of any kind, also several the same
        columns = [nw.from_native(frame.iloc[:, i], series_only=True) for i in range(frame.shape[1])]
        return [*frame.columns], columns
    frame = _whole(frame)
    index = index_columns(frame.schema) if isinstance(frame, loaded("pyarrow.Table")) else []
    kept = [column for column in nw.from_native(frame, eager_only=True).iter_columns() if column.name not in index]
    return [column.name for column in kept], kept


def _whole(frame: Any) -> Any:
    """Return a record batch of Arrow as a table, and other frames as they are."""
    batch = isinstance(frame, loaded("pyarrow.RecordBatch"))
    return importlib.import_module("pyarrow").Table.from_batches([frame]) if batch else frame


def index_columns(schema: Any) -> list[str]:
    """Return the columns of an Arrow table that hold the index of the pandas frame that it was made of."""
    try:
        known = schema.pandas_metadata["index_columns"]
    except (TypeError, KeyError, ValueError):  # none, or no metadata of pandas
        known = []
    known = known if isinstance(known, list) else []
    named = [name for name in known if isinstance(name, str) and name in schema.names]
    return named or [name for name in schema.names if name.startswith("__index_level_")]


def matrix(frame: Any, what: str) -> Array:
    """Return the real numbers (n, d) of a data frame. Raises as `frame_reader`."""
    labels, columns = columns_of(frame)
    return _matrix(labels, columns, range(len(labels)), what, Wanted())


def _matrix(
    labels: Sequence[Any], columns: Sequence[nw.Series[Any]], places: Sequence[int | None], what: str, wanted: Wanted
) -> Array:
    """Return the real numbers (n, d) of the columns at these places, missing entries as NaN.

    They are float32 if all columns are, else float64; 0 stands for None, and for an unused column without numbers.
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
    """Raise the error of the first column that cannot be used, if there is one, with the names of all others."""
    if len(refused) == 1:
        raise next(iter(refused.values()))
    if refused:
        (_, first), *others = refused.items()
        names = ", ".join(repr(name) for name, _ in others)
        raise type(first)(f"{first}. Other columns that cannot be used: {names}; choose by Rows(X, columns=[...])")


def frame_reader(frame: Any, what: str, wanted: Wanted) -> Reader:
    """Return a Reader of the columns of a data frame that are wanted.

    Raises as `Wanted.places`; TypeError or ValueError, which names them all, for used columns of text, dates,
    categories, or complex numbers.
    """
    frame = _whole(frame)
    labels, columns = columns_of(frame)
    levels = frame.columns.names if labels and isinstance(labels[0], tuple) else None
    own, width = ColumnNames.of(labels, levels), len(labels)
    if own is not None:
        own.check_distinct(what)
    elif wanted.names is not None and {*wanted.names.labels} == {*range(width)}:
        own = ColumnNames.numbers(width)
    places = wanted.places(own, width, what)
    reader = ArrayReader(_matrix(labels, columns, places, what, wanted))
    if own is not None and None not in places:
        reader.named(own.taken(place for place in places if place is not None))
    if isinstance(frame, loaded("pyarrow.Table")):
        return reader.timed(arrow_times(frame, [label for i, label in enumerate(labels) if i not in places]))
    others = [column for i, column in enumerate(columns) if i not in places]
    return reader.timed(frame_times(getattr(frame, "index", None), others))


def vector(column: Any) -> Array:
    """Return the values (n,) of a column: numbers with NaN for missing ones, else objects with None for these."""
    series = nw.from_native(column, series_only=True)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _numbers(series, "the column")
    values = np.empty(len(series), dtype=object)
    values[:] = [None if missing else value for value, missing in zip(series.to_list(), series.is_null(), strict=True)]
    return values


is_column = is_into_series


def _numbers(column: nw.Series[Any], what: str) -> Array:
    """Return the real numbers (n,) of a column."""
    kind = column.dtype
    if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object, nw.Unknown)):
        raise TypeError(f"{what} holds {kind}, and real numbers are wanted; {REMEDY}")
    values = np.asarray(column.to_numpy())
    refuse_kind(values.dtype, what)
    return real(values, what)


def real(values: Array, what: str) -> Array:
    """Return the numbers among objects as float64, None as NaN. Raises TypeError for anything else among them."""
    if values.dtype.kind != "O":
        return values
    missing = np.zeros(values.shape, dtype=bool)
    for index, entry in np.ndenumerate(values):
        if isinstance(entry, (str, bytes)):
            raise TypeError(f"{what} holds text, such as {entry[:20]!r}, and real numbers are wanted; {REMEDY}")
        if isinstance(entry, (complex, np.complexfloating)):
            raise ValueError(_complex(what, "complex numbers"))
        missing[index] = type(entry).__name__ == "NAType"  # of pandas
    try:
        found = values.copy()
        found[missing] = None
        return np.asarray(found.astype(np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} holds objects that are no real numbers: {error}; {REMEDY}") from None


def refuse_kind(dtype: Any, what: str, *, objects: bool = True) -> None:
    """Raise ValueError for complex numbers, and TypeError for anything but real numbers and, if allowed, objects."""
    kind = np.dtype(dtype).kind
    if kind == "c":
        raise ValueError(_complex(what, f"dtype {dtype}"))
    if kind not in ("fiubO" if objects else "fiub"):
        raise TypeError(f"{what} must be real numbers, got dtype {dtype}. Convert it by .astype('float64')")


def _complex(what: str, has: str) -> str:
    return f"Complex data not supported: {what} has {has}; split real and imaginary parts into columns"


# -- times of rows -----------------------------------------------------------------------------------------------------


def frame_times(index: Any, others: Sequence[nw.Series[Any]]) -> RowTimes | None:
    """Return the times, or the numbers, of an index of pandas, or those of the only column of dates among `others`."""
    found = None
    if index is not None and type(index).__name__ != "RangeIndex" and index.name != NUMBERED:
        found = RowTimes.of(index, str(index.name or "index"))
    dates = [column for column in others if column.dtype in (nw.Date, nw.Datetime)]
    if (found is None or not found.of_clock) and len(dates) == 1:
        return RowTimes.of(dates[0].to_numpy(), str(dates[0].name))
    return found


def arrow_times(table: Any, others: Sequence[str]) -> RowTimes | None:
    """Return the times of an Arrow table: those of its index, or of the only column of dates among `others`."""
    index, dates = index_columns(table.schema), date_columns(table.schema, others)
    frame = table.select([*index, *dates]).to_pandas(ignore_metadata=True, date_as_object=False)
    if index:
        names = [None if name.startswith("__index_level_") else name for name in index]
        frame = frame.set_index(index).rename_axis(names)
    return frame_times(frame.index, columns_of(frame[dates])[1])


def date_columns(schema: Any, names: Sequence[str]) -> list[str]:
    """Return the columns among these that hold dates in an Arrow table."""
    return [name for name in names if str(schema.field(name).type).startswith(("date", "timestamp"))]
