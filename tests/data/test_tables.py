"""Data frames and files as rows of numbers; and batches that a thread reads ahead."""

import datetime
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.data.batches import read_ahead
from daskspectral.data.containers import as_reader
from daskspectral.data.frames import matrix, open_table
from daskspectral.data.labeled import stack_rows
from daskspectral.data.readers import ArrayReader

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


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow"])
@pytest.mark.parametrize("column", [["a", "b"], [datetime.datetime(2020, 1, 1)] * 2, [{"a": 1}, {"a": 2}]], ids=str)
def test_columns_that_are_no_numbers_are_named(column: Any, kind: str) -> None:
    with pytest.raises(TypeError, match="'other'"):
        matrix(KINDS[kind](pd.DataFrame({"number": [1.0, 2.0], "other": column})), "X")


X = np.random.default_rng(0).standard_normal((23, 3))


def test_a_csv_file_is_read_by_the_names_of_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('\ufeff"x, y",name,z\n1,one,2\n\n3,two,\n4,"th,ree",1.5\n', encoding="utf-8")
    table = open_table([str(path)])
    assert table.names == ("x, y", "name", "z")
    reader = table.reader([0, 2])
    np.testing.assert_array_equal(reader.read(0, 3), [[1, 2], [3, np.nan], [4, 1.5]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reader)).read(1, 2), [[3, np.nan]])
    for text in ("", "a,b\n", "1.5,2\n3,4\n", "a,b\n1,x,3\n"):
        path.write_text(text)
        with pytest.raises((ValueError, OSError), match=r"x\.csv"):
            open_table([str(path)])


def test_files_of_numpy_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    reader = as_reader(tmp_path / "x.npy", "X")
    assert isinstance(reader, ArrayReader)
    assert isinstance(reader.array, np.memmap)
    np.testing.assert_array_equal(reader.read(3, 9), X[3:9])
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x\.npy"):
        as_reader(tmp_path / "x.npy", "X")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"x\.npy"):
        as_reader(tmp_path / "x.npy", "X")


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_the_recipes_of_the_guide_return_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X), np.savez("x.npz", x=X), np.savetxt("n.csv", X, delimiter=",", fmt="%.17g")
    xr.Dataset({"x": (("row", "column"), X)}).to_netcdf("x.nc", engine="h5netcdf")
    pd.DataFrame(X, columns=[*"abc"]).to_csv("x.csv", index=False)
    with h5py.File("x.h5", "w") as file:
        file["x"] = X
    guide = (Path(__file__).parents[2] / "examples/pages/guide/fitting.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", guide, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"np": np, "pd": pd, "xr": xr, "da": da, "h5py": h5py, "ds": pyarrow.dataset}
    for line in code[1].splitlines():
        exec(line, names)
        if line.startswith("x = "):
            np.testing.assert_allclose(as_reader(names["x"], "X").read(0, 23), X, rtol=1e-15)
    for written in ("n.zarr", "h.zarr", "c.zarr", "x.parquet"):
        stacked = stack_rows(written)
        reader = as_reader(written, "X") if stacked is None else stacked.reader
        np.testing.assert_allclose(reader.read(0, 23), X, rtol=1e-15)


@pytest.mark.parametrize(("bad", "error"), [(2, OSError), (None, KeyboardInterrupt)])
def test_an_error_is_raised_at_its_batch_and_no_thread_is_left(bad: Any, error: Any) -> None:
    """Of the reading, and of the work."""
    started, seen = list[int](), list[int]()

    def reading() -> Iterator[int]:
        for number in range(100):
            started.append(number)
            if number == bad:
                raise OSError("chunk 2 is damaged")
            yield number

    def work() -> None:
        with read_ahead(reading()) as batches:
            for number in batches:
                seen.append(number)
                if number == 3:
                    raise KeyboardInterrupt("enough")

    with pytest.raises(error, match=r"damaged|enough"):
        work()
    assert seen == ([0, 1] if bad else [0, 1, 2, 3])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("daskspectral-reader")]
    assert 5 not in started
