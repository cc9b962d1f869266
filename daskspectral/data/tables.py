"""Data frames and series in memory, of pandas, polars or Arrow, as arrays of real numbers."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FRAMES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "pyarrow": ("Table", "RecordBatch")}
COLUMNS = {"pandas": ("Series", "Index"), "polars": ("Series",), "pyarrow": ("ChunkedArray", "Array")}
TIMES = ("date", "time", "duration", "period")
REMEDY = (
    "drop the column, or make numbers of it: dates as their distance from a first one, categories as columns of 0 and "
    "1 (sklearn.preprocessing.OneHotEncoder)"
)


def is_frame(value: Any) -> bool:
    """Whether this is a data frame in memory."""
    return _of(value, FRAMES)


def with_names(frame: Any) -> Any:
    """A frame of pandas with the names of the columns, which every scikit-learn finds there; without its rows.

    Raises ValueError for a name that several columns have.
    """
    names = [name for name, _ in _columns(frame)]
    several = [name for name, count in Counter(names).items() if count > 1]
    if several:
        raise ValueError(
            f"several columns of X are named {several[0]!r}, and names tell columns apart: give each its own, or give "
            "the numbers without names, such as X.to_numpy()"
        )
    if _library(frame) == "pandas":
        return frame
    return importlib.import_module("pandas").DataFrame(columns=names)


def is_column(value: Any) -> bool:
    """Whether this is one column of a data frame, in memory."""
    return _of(value, COLUMNS)


def refuse_unfit(value: Any, what: str) -> None:
    """Raise TypeError for a query of polars, whose rows are not there yet, and for sparse arrays."""
    library, kind = type(value).__module__.partition(".")[0], type(value).__name__
    if library == "polars" and kind == "LazyFrame":
        raise TypeError(f"{what} is a polars LazyFrame, whose rows are not in memory; give {what}.collect()")
    if hasattr(value, "tocsr") and hasattr(value, "toarray"):
        raise TypeError(f"{what} is a sparse {kind}, and rows of numbers are wanted; give {what}.toarray()")


def matrix(frame: Any, what: str) -> Array:
    """The real numbers (n, d) of a data frame, missing entries as NaN: float32 where all columns are, else float64.

    Columns of one numpy type stay as they are. Raises TypeError or ValueError, with the name of the column, for text,
    dates, categories, and complex numbers.
    """
    names, columns = zip(*_columns(frame), strict=True) if frame.shape[1] else ((), ())
    if _library(frame) == "pandas":
        own = {dtype for dtype in frame.dtypes if isinstance(dtype, np.dtype)}
        if len(own) == 1 and all(dtype in own for dtype in frame.dtypes) and next(iter(own)).kind in "fiub":
            return np.ascontiguousarray(frame.to_numpy())  # as an array of these rows is, to the same bits
    found = [_numbers(column, f"column {name!r} of {what}") for name, column in zip(names, columns, strict=True)]
    single = all(values.dtype.kind == "f" and values.dtype.itemsize <= 4 for values in found)
    out = np.empty(frame.shape, dtype=np.float32 if single and found else np.float64)
    for number, values in enumerate(found):
        out[:, number] = values
    return out


def vector(column: Any) -> Array:
    """The values (n,) of a column: numbers with NaN for missing ones, anything else as objects with None for these."""
    library = _library(column)
    if library == "pyarrow":
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        values = column.to_numpy(zero_copy_only=False)
    elif library == "polars":
        values = column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.to_list(), dtype=object)
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
        values = column.to_numpy()
    elif column.dtype.kind in "fiub":
        values = column.to_numpy() if not column.hasnans else column.to_numpy(dtype=float, na_value=np.nan)
    else:
        values = column.to_numpy(dtype=object, na_value=None)
    values = np.asarray(values)
    return _plain(values) if values.dtype.kind == "O" and library != "pandas" else values


def real(values: Array, what: str) -> Array:
    """The numbers among objects, as float64; None is NaN. Raises TypeError for anything else among them."""
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
        raise TypeError(
            f"{what} has dtype {dtype}, and real numbers are wanted; convert it, for instance by .astype('float64')"
        )


def _complex(what: str, has: str) -> str:
    return f"Complex data not supported: {what} has {has}; split real and imaginary parts into columns"


def _numbers(column: Any, what: str) -> Array:
    """The real numbers (n,) of a column."""
    kind = str(column.type if _library(column) == "pyarrow" else column.dtype)
    if kind == "category" or kind.startswith(("dictionary", "Categorical", "Enum")):
        raise TypeError(f"{what} holds categories, and real numbers are wanted; {REMEDY}")
    values = vector(column)
    if values.dtype.kind in "mMO" and any(word in kind.lower() for word in TIMES):
        raise TypeError(f"{what} holds dates or times ({kind}), and real numbers are wanted; {REMEDY}")
    refuse_kind(values.dtype, what)
    return real(values, what)


def _plain(values: Array) -> Array:
    """Objects that are all truth values as such, and all numbers and None as float64."""
    kinds = set(map(type, values))
    if kinds == {bool}:
        return values.astype(bool)
    if kinds <= {bool, int, float, type(None)} and kinds & {bool, int, float}:
        return values.astype(np.float64)
    return values


def _columns(frame: Any) -> Iterator[tuple[Any, Any]]:
    """The names of the columns and the columns."""
    if _library(frame) == "pandas":
        return ((name, frame.iloc[:, number]) for number, name in enumerate(frame.columns))
    if _library(frame) == "polars":
        return zip(frame.columns, frame.get_columns(), strict=True)
    return zip(frame.column_names, frame.columns, strict=True)


def _of(value: Any, kinds: dict[str, tuple[str, ...]]) -> bool:
    """Whether the class of the value, or one it inherits from, has one of these names in its library."""
    return any(cls.__name__ in kinds.get(cls.__module__.partition(".")[0], ()) for cls in type(value).__mro__)


def _library(value: Any) -> str:
    """The library of the value: the first of these that one of its classes comes from."""
    homes = [cls.__module__.partition(".")[0] for cls in type(value).__mro__]
    return next((home for home in homes if home in FRAMES), "")
