"""Data frames of pandas, polars and Arrow as matrices of numbers; and batches that a thread reads ahead."""

import datetime
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.data.batches import read_ahead
from daskspectral.data.containers import as_reader, in_memory, is_frame, matrix

KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, nullable": lambda frame: frame.convert_dtypes(),
    "pandas, Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "Arrow": pa.Table.from_pandas,
}

entries = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-1000, 1000), st.booleans())
tables = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=6)
)


@given(tables, st.sampled_from(sorted(KINDS)))
def test_entries_are_the_numbers_of_the_frame(rows: list[list[Any]], kind: str) -> None:
    wanted = np.array([[np.nan if v is None else float(v) for v in row] for row in rows])
    columns = {f"c{j}": pd.Series([row[j] for row in rows], dtype="Float64") for j in range(len(rows[0]))}
    found = matrix(KINDS[kind](pd.DataFrame(columns)), "X")
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


def test_single_precision_stays() -> None:
    assert matrix(pl.DataFrame({"a": [1.5, 2.0]}, schema={"a": pl.Float32}), "X").dtype == np.float32


REFUSED = {
    "text": (["a", "b"], "holds text, such as 'a', and real numbers are wanted"),
    "dates": ([datetime.datetime(2020, 1, 1)] * 2, "holds dates or times"),
    "mappings": ([{"a": 1}, {"a": 2}], "holds objects that are no real numbers"),
}


@pytest.mark.parametrize("values", REFUSED)
def test_columns_that_are_no_numbers_are_named(values: str) -> None:
    column, message = REFUSED[values]
    for kind in ("pandas", "polars", "Arrow"):
        with pytest.raises(TypeError, match=f"column 'other' of X {message}"):
            matrix(KINDS[kind](pd.DataFrame({"number": [1.0, 2.0], "other": column})), "X")


COLUMNS = {
    "nullable": (pd.Series([1, None], dtype="Int64"), [1, np.nan], "f"),
    "categories": (pd.Series(["a", "b"], dtype="category"), ["a", "b"], "O"),
    "polars": (pl.Series([1, None]), [1, np.nan], "f"),
    "Arrow": (pa.chunked_array([[1, 2], [3]]), [1, 2, 3], "i"),
}


@pytest.mark.parametrize(("column", "wanted", "kind"), COLUMNS.values(), ids=COLUMNS.keys())
def test_columns_are_vectors(column: Any, wanted: list[Any], kind: str) -> None:
    assert not is_frame(column)
    found = in_memory(column, "y")
    assert found.dtype.kind == kind
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_said_of_columns_has_their_names(kind: str) -> None:
    x = np.random.default_rng(0).standard_normal((200, 2)) * [1.0, 1000.0]
    x[7, 1] = np.nan
    model = dsp.SpectralDecomposition(n_components=4, random_state=0)
    with pytest.raises(dsp.InvalidRowError, match=r"NaN in column 1\. .* Column 1 is 'ash'"):
        model.fit(KINDS[kind](pd.DataFrame(x, columns=["malt", "ash"])))
    x[7, 1] = 0.0
    for names, told in (
        (["malt", "ash"], r"in column 0 \(malt\) to .* in column 1 \(ash\), and"),
        ([0, 1], "column 1, and"),
    ):
        if kind.startswith("pandas") or names[0]:
            with pytest.warns(dsp.TrustWarning, match=told):
                model.fit(KINDS[kind](pd.DataFrame(x, columns=names)))


def test_what_is_no_table_of_numbers() -> None:
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame, whose rows are not in memory; give X.collect\(\)"):
        as_reader(pl.LazyFrame({"a": [1.0]}), "X")
    with pytest.raises(
        TypeError, match=r"points is a sparse csr_array, and rows of numbers are wanted; give .*toarray"
    ):
        in_memory(scipy.sparse.csr_array(np.eye(3)), "points")


PATIENCE = 30.0  # seconds after which another thread is taken to hang


class Reading:
    """Numbers that tell when they are read."""

    def __init__(self, count: int, bad: int | None = None):
        self.started = [threading.Event() for _ in range(count)]
        self.threads: set[str] = set()
        self.bad = bad

    def __iter__(self) -> Iterator[int]:
        for number, started in enumerate(self.started):
            self.threads.add(threading.current_thread().name)
            started.set()
            if number == self.bad:
                raise OSError(f"chunk {number} is damaged")
            yield number


def readers() -> list[str]:
    """The threads that read, of all that live."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("daskspectral-reader")]


def test_the_next_is_read_meanwhile_and_no_more() -> None:
    reading = Reading(4)
    with read_ahead(reading) as batches:
        for number in batches:
            if number < 3:
                assert reading.started[number + 1].wait(PATIENCE), "the next batch is not read meanwhile"
            for later in reading.started[number + 2 :]:
                assert not later.is_set(), "more than one batch waits"
    assert threading.current_thread().name not in reading.threads
    assert not readers()


def work(reading: Reading, seen: list[int], last: int, error: type[BaseException]) -> None:
    """Work on numbers, of which the `last` is too much."""
    with read_ahead(reading) as batches:
        for number in batches:
            seen.append(number)
            if number == last:
                raise error("enough")


@pytest.mark.parametrize(("bad", "error"), [(2, OSError), (None, KeyboardInterrupt)])
def test_an_error_comes_where_its_batch_would_and_nothing_is_left_running(bad: Any, error: Any) -> None:
    """Of the reading, and of the work."""
    reading, seen = Reading(100, bad), list[int]()
    with pytest.raises(error, match=r"damaged|enough"):
        work(reading, seen, 3, KeyboardInterrupt)
    assert seen == ([0, 1] if bad else [0, 1, 2, 3])
    assert not readers()
    assert not reading.started[5].is_set()
