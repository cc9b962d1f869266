"""Every format converts to the same rows, checked on the way in and on the way out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.data import convert as convert_module
from daskspectral.data.convert import Report, convert
from daskspectral.errors import InvalidRowError

VALUES = np.random.default_rng(0).standard_normal((23, 3))
NAMES = ["a", "b", "c"]


def read(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_array(path, mode="r")[:])


def run(source: Path, **options: Any) -> np.ndarray:
    target = source.parent / "x.zarr"
    report = convert(source, target, **({"chunk_rows": 5, "progress": False, "overwrite": True} | options))
    result = read(target)
    assert (report.rows, report.columns) == result.shape
    return result


def write_npy(path: Path, values: np.ndarray) -> Path:
    np.save(path / "x.npy", values)
    return path / "x.npy"


def write_fortran_npy(path: Path, values: np.ndarray) -> Path:
    np.save(path / "x.npy", np.asfortranarray(values))
    return path / "x.npy"


def write_npz(path: Path, values: np.ndarray) -> Path:
    np.savez(path / "x.npz", x=values)
    return path / "x.npz"


def write_packed_npz(path: Path, values: np.ndarray) -> Path:
    np.savez_compressed(path / "x.npz", x=values)
    return path / "x.npz"


def write_hdf5(path: Path, values: np.ndarray) -> Path:
    with h5py.File(path / "x.h5", "w") as file:
        file.create_dataset("group/x", data=values, chunks=True)
    return path / "x.h5"


def write_netcdf(path: Path, values: np.ndarray) -> Path:
    xr.Dataset({"x": (("row", "column"), values)}).to_netcdf(path / "x.nc")
    return path / "x.nc"


def table(values: np.ndarray) -> pa.Table:
    return pa.table({name: values[:, j] for j, name in enumerate(NAMES)})


def write_parquet(path: Path, values: np.ndarray) -> Path:
    pq.write_table(table(values), path / "x.parquet", row_group_size=7)
    return path / "x.parquet"


def write_parquet_directory(path: Path, values: np.ndarray) -> Path:
    directory = path / "parts"
    (directory / "later").mkdir(parents=True)
    pq.write_table(table(values[:9]), directory / "0.parquet")
    pq.write_table(table(values[9:]), directory / "later" / "1.parquet")
    (directory / "_metadata.parquet").write_text("")
    return directory


def write_csv(path: Path, values: np.ndarray) -> Path:
    np.savetxt(path / "x.csv", values, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    return path / "x.csv"


def write_tsv_without_header(path: Path, values: np.ndarray) -> Path:
    np.savetxt(path / "x.tsv", values, delimiter="\t", fmt="%.17g")
    return path / "x.tsv"


ARRAYS = [write_npy, write_fortran_npy, write_npz, write_packed_npz, write_hdf5, write_netcdf]
TABLES = [write_parquet, write_parquet_directory, write_csv]
Write = Callable[[Path, np.ndarray], Path]


@pytest.mark.parametrize("chunk_rows", [1, 5, 23, None])
@pytest.mark.parametrize("write", [*ARRAYS, *TABLES, write_tsv_without_header])
def test_rows_are_those_of_the_source(tmp_path: Path, write: Write, chunk_rows: int | None) -> None:
    if write is write_fortran_npy:
        assert np.load(write(tmp_path, VALUES)).flags.f_contiguous
    source = write(tmp_path, VALUES)
    report = convert(source, tmp_path / "x.zarr", chunk_rows=chunk_rows, progress=False)
    assert report == Report(23, 3, 0, os.fspath(tmp_path / "x.zarr"))
    np.testing.assert_array_equal(read(tmp_path / "x.zarr"), VALUES)
    assert zarr.open_array(tmp_path / "x.zarr", mode="r").chunks == (chunk_rows or 23, 3)
    assert sorted(os.listdir(tmp_path)) == sorted([source.name, "x.zarr"])


@pytest.mark.parametrize("write", [*ARRAYS, *TABLES])
def test_columns_are_chosen_in_the_order_asked(tmp_path: Path, write: Write) -> None:
    columns: list[str | int] = [2, "0"] if write in ARRAYS else ["c", "a"]
    source, dataset = write(tmp_path, VALUES), "x" if write is write_netcdf else None
    np.testing.assert_array_equal(run(source, columns=columns, dataset=dataset), VALUES[:, [2, 0]])
    for wrong in ([7], [*columns, columns[0]], []):
        with pytest.raises(ValueError, match="not distinct columns of"):
            run(source, columns=wrong, dataset=dataset)


@pytest.mark.parametrize("write", [*ARRAYS, *TABLES, write_tsv_without_header])
def test_invalid_rows_raise_are_skipped_or_kept(tmp_path: Path, write: Write) -> None:
    values = VALUES.copy()
    values[17, 0], values[8, 1], values[22, 2] = np.nan, np.inf, -np.inf
    source = write(tmp_path, values)
    with pytest.raises(InvalidRowError, match=r"Row 8 .*column (1|'b').*'skip'") as caught:
        run(source)
    assert caught.value.row == 8
    assert sorted(os.listdir(tmp_path)) == [source.name]
    report = convert(source, tmp_path / "x.zarr", on_invalid="skip", chunk_rows=4, progress=False)
    assert (report.rows, report.skipped) == (20, 3)
    np.testing.assert_array_equal(read(tmp_path / "x.zarr"), np.delete(VALUES, [8, 17, 22], axis=0))
    np.testing.assert_array_equal(run(source, on_invalid="keep"), values)


@settings(max_examples=30, deadline=None)
@given(bad=st.sets(st.integers(0, 22), max_size=22), chunk_rows=st.integers(1, 30))
def test_any_rows_can_be_skipped(tmp_path_factory: pytest.TempPathFactory, bad: set[int], chunk_rows: int) -> None:
    values = VALUES.copy()
    values[sorted(bad), 1] = np.nan
    source = write_npy(tmp_path_factory.mktemp("convert"), values)
    result = run(source, on_invalid="skip", chunk_rows=chunk_rows)
    np.testing.assert_array_equal(result, np.delete(VALUES, sorted(bad), axis=0))


def test_all_rows_invalid(tmp_path: Path) -> None:
    source = write_npy(tmp_path, np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match=r"no rows to convert.*4 invalid"):
        run(source, on_invalid="skip")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float32", "float32"),
        ("float16", "float32"),
        ("int64", "float64"),
        ("bool", "float64"),
        (">f8", "float64"),
    ],
)
def test_dtypes(tmp_path: Path, given: str, expected: str) -> None:
    values = (np.arange(12).reshape(6, 2) % 5).astype(given)
    result = run(write_npy(tmp_path, values))
    assert result.dtype == expected
    np.testing.assert_array_equal(result, values)
    assert run(tmp_path / "x.npy", dtype="float32").dtype == np.float32


def test_overflow_of_a_narrower_type_is_an_invalid_row(tmp_path: Path) -> None:
    source = write_npy(tmp_path, np.array([[1.0], [1e300]]))
    with pytest.raises(InvalidRowError, match=r"Row 1 .*as float32"):
        run(source, dtype="float32")


@pytest.mark.parametrize("write", [write_npy, write_npz, write_hdf5])
def test_one_dimension_is_one_column(tmp_path: Path, write: Write) -> None:
    np.testing.assert_array_equal(run(write(tmp_path, VALUES[:, 0])), VALUES[:, :1])


@pytest.mark.parametrize("write", [write_npy, write_npz, write_hdf5])
def test_more_dimensions_are_flattened_on_demand(tmp_path: Path, write: Write) -> None:
    values = VALUES[:20].reshape(5, 4, 3)
    source = write(tmp_path, values)
    with pytest.raises(ValueError, match=r"shape \(5, 4, 3\).*flatten=True.*d = 12"):
        run(source)
    np.testing.assert_array_equal(run(source, flatten=True, chunk_rows=2), values.reshape(5, 12))


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (np.ones((3, 2), complex), "real and imaginary"),
        (np.array([["a"]]), "real numbers"),
        (np.array([[None]]), "real numbers"),
        (np.zeros((2, 1), "datetime64[s]"), "real numbers"),
    ],
)
def test_other_types_are_refused(tmp_path: Path, values: np.ndarray, remedy: str) -> None:
    with pytest.raises(TypeError, match=remedy):
        run(write_npy(tmp_path, values))
    with pytest.raises(TypeError, match="dtype must be a floating type"):
        run(write_npy(tmp_path, VALUES), dtype="int32")


def test_target_is_checked_before_the_source_is_read(tmp_path: Path) -> None:
    write_npy(tmp_path, VALUES)
    convert(tmp_path / "x.npy", tmp_path / "x.zarr", progress=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        convert(tmp_path / "none.npy", tmp_path / "x.zarr", progress=False)
    for options, message in (
        ({"on_invalid": "drop"}, "on_invalid must be"),
        ({"chunk_rows": 0}, "chunk_rows"),
    ):
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "x.npy", **options)


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_array_that_reads_back_differently_never_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    read_back = convert_module._read_back

    def after_damage(array: Any, checksum: int, path: Path) -> None:
        (chunk,) = tmp_path.glob(".x.zarr.*.partial/new/c/1/0")
        if damage == "missing":
            chunk.unlink()
        else:
            array[7, 1] = 0.0
        read_back(array, checksum, path)

    monkeypatch.setattr(convert_module, "_read_back", after_damage)
    source = write_npy(tmp_path, VALUES)
    with pytest.raises(OSError, match="reads back differently"):
        run(source)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_attributes_name_the_source_and_its_columns(tmp_path: Path) -> None:
    run(write_parquet(tmp_path, VALUES), columns=["b", "a"])
    attributes = zarr.open_array(tmp_path / "x.zarr", mode="r").attrs.asdict()
    assert attributes == {"source": "x.parquet", "columns": ["b", "a"]}


def test_memory_is_a_few_blocks(tmp_path: Path) -> None:
    import tracemalloc

    n = 200_000
    np.save(tmp_path / "x.npy", np.ones((n, 4)))
    convert(tmp_path / "x.npy", tmp_path / "warm.zarr", chunk_rows=n // 100, progress=False)
    tracemalloc.start()
    convert(tmp_path / "x.npy", tmp_path / "x.zarr", chunk_rows=n // 100, progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * 4 * 8 / 4
