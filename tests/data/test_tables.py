"""Data frames of pandas, polars and Arrow as matrices of numbers, and what they cannot hold."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.data.containers import as_reader
from daskspectral.data.tables import is_column, is_frame, matrix, vector

KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, nullable": lambda frame: frame.convert_dtypes(),
    "pandas, Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
    "Arrow, batch": pa.RecordBatch.from_pandas,
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())

entries = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-1000, 1000), st.booleans())
tables = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=6)
)


@settings(max_examples=40, deadline=None)
@given(tables, st.sampled_from(sorted(KINDS)))
def test_entries_are_the_numbers_of_the_frame(rows: list[list[Any]], kind: str) -> None:
    wanted = np.array([[np.nan if v is None else float(v) for v in row] for row in rows])
    columns = {f"c{j}": pd.Series([row[j] for row in rows], dtype="Float64") for j in range(len(rows[0]))}
    found = matrix(KINDS[kind](pd.DataFrame(columns)), "X")
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


@kinds
def test_columns_of_different_types(kind: Callable[..., Any]) -> None:
    frame = pd.DataFrame({"i": [1, 2, 3], "f": [0.5, -1.0, 2.0], "b": [True, False, True]})
    np.testing.assert_array_equal(matrix(kind(frame), "X"), [[1, 0.5, 1], [2, -1, 0], [3, 2, 1]])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.5, 2.0]}, dtype="float32"),
        pd.DataFrame({"a": [1.5, 2.0]}, dtype="Float32"),
        pl.DataFrame({"a": [1.5, 2.0]}, schema={"a": pl.Float32}),
        pa.table({"a": pa.array([1.5, 2.0], pa.float32())}),
    ],
    ids=["pandas", "nullable", "polars", "Arrow"],
)
def test_single_precision_stays(frame: Any) -> None:
    found = matrix(frame, "X")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1.5], [2.0]])


def test_decimals_are_numbers() -> None:
    values = [Decimal("1.25"), None, Decimal("-3")]
    wanted = [[1.25], [np.nan], [-3.0]]
    for frame in (
        pd.DataFrame({"a": values}),
        pd.DataFrame({"a": pd.array(values, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))}),
        pl.DataFrame({"a": values}),
        pa.table({"a": values}),
    ):
        np.testing.assert_array_equal(matrix(frame, "X"), wanted)


DAY = datetime.datetime(2020, 1, 1)
REFUSED = {
    "text": (["a", "b"], "holds text, such as 'a', and real numbers are wanted"),
    "numbers as text": (["1.5", "2"], "holds text, such as '1.5'"),
    "dates": ([DAY, DAY + datetime.timedelta(1)], "holds dates or times"),
    "times with a zone": (pd.date_range("2020", periods=2, tz="UTC"), "holds dates or times"),
    "durations": (pd.to_timedelta([1, 2], unit="D"), "holds dates or times"),
    "categories": (pd.Categorical(["a", "b"]), "holds categories"),
    "mappings": (
        [{"a": 1}, {"a": 2}],
        "holds objects that are no real numbers: float.* argument must be a string or a real",
    ),
}


@kinds
@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_columns_that_are_no_numbers_are_named(values: Any, message: str, kind: Callable[..., Any]) -> None:
    frame = pd.DataFrame({"number": [1.0, 2.0], "other": values})
    if kind is KINDS["pandas, objects"]:
        message = "holds (text|objects that are no real numbers)"
    with pytest.raises(TypeError, match=f"column 'other' of X {message}"):
        matrix(kind(frame), "X")


def test_complex_numbers_and_periods_are_refused() -> None:
    with pytest.raises(ValueError, match="Complex data not supported: column 'z' of X has dtype complex128"):
        matrix(pd.DataFrame({"z": [1j, 2j]}), "X")
    with pytest.raises(ValueError, match="Complex data not supported: X has complex numbers"):
        as_reader(np.array([[1j, 2.0]], dtype=object), "X")
    with pytest.raises(TypeError, match=re.escape("column 'p' of X holds dates or times (period[D])")):
        matrix(pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="D")}), "X")


def test_columns_with_one_name_are_kept_apart() -> None:
    frame = pd.DataFrame([[1.0, True], [2.0, False]], columns=["a", "a"]).astype({"a": object})
    np.testing.assert_array_equal(matrix(frame, "X"), [[1, 1], [2, 0]])


COLUMNS = {
    "pandas": (pd.Series([1, 2]), [1, 2], "i"),
    "nullable": (pd.Series([1, None], dtype="Int64"), [1, np.nan], "f"),
    "nullable truth": (pd.Series([True, None], dtype="boolean"), [1, np.nan], "f"),
    "text": (pd.Series(["a", None], dtype="string"), ["a", None], "O"),
    "Arrow text": (pd.Series(["a", "b"], dtype="string[pyarrow]"), ["a", "b"], "O"),
    "categories": (pd.Series(["a", "b"], dtype="category"), ["a", "b"], "O"),
    "polars": (pl.Series([1, None]), [1, np.nan], "f"),
    "polars text": (pl.Series(["a", "b"]), ["a", "b"], "O"),
    "polars truth": (pl.Series([True, False]), [True, False], "b"),
    "Arrow": (pa.chunked_array([[1, 2], [3]]), [1, 2, 3], "i"),
    "Arrow, missing": (pa.array([1.5, None]), [1.5, np.nan], "f"),
}


@pytest.mark.parametrize(("column", "wanted", "kind"), COLUMNS.values(), ids=COLUMNS.keys())
def test_columns_are_vectors(column: Any, wanted: list[Any], kind: str) -> None:
    assert is_column(column)
    assert not is_frame(column)
    found = vector(column)
    assert found.dtype.kind == kind
    if kind == "O":
        assert found.tolist() == wanted
    else:
        np.testing.assert_array_equal(found, wanted)


def test_objects_that_are_numbers_are_read() -> None:
    reader = as_reader([[1, None], [Decimal("2.5"), np.float32(3)]], "X")
    np.testing.assert_array_equal(reader.read(0, 2), [[1, np.nan], [2.5, 3]])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pl.LazyFrame({"a": [1.0]}), r"X is a polars LazyFrame, whose rows are not in memory; give X.collect\(\)"),
        (scipy.sparse.csr_array(np.eye(3)), r"X is a sparse csr_array, and rows of numbers are wanted; give X.toarray"),
        (scipy.sparse.coo_matrix(np.eye(3)), "X is a sparse coo_matrix"),
    ],
    ids=["query", "sparse array", "sparse matrix"],
)
def test_what_is_no_table_of_numbers(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        dsp.SpectralDecomposition().fit(value)


def test_missing_entries_are_invalid_rows() -> None:
    frame = pl.DataFrame({"a": [0.0, 1.0, None, *range(3, 60)], "b": list(range(60))})
    est = dsp.DiffusionMap()
    with pytest.raises(dsp.InvalidRowError, match="row 2 is the first that cannot be used: X holds NaN in column 0"):
        est.fit(frame)
    assert np.isnan(est.fit(frame, on_invalid="skip").embedding_).any(axis=1).tolist() == [i == 2 for i in range(60)]
