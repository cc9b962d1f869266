"""What each format has of its own: datasets, types, missing values, headers."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr

from daskspectral.data.convert import convert

VALUES = np.random.default_rng(0).standard_normal((23, 3))


def run(source: Path, **options: Any) -> np.ndarray:
    target = source.parent / "x.zarr"
    convert(source, target, **({"chunk_rows": 5, "progress": False, "overwrite": True} | options))
    return np.asarray(zarr.open_array(target, mode="r")[:])


def write_parts(path: Path) -> Path:
    (path / "parts").mkdir()
    for i, rows in enumerate((VALUES[:9], VALUES[9:])):
        pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2]}), path / f"parts/{i}.parquet")
    return path / "parts"


def test_datasets_are_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", first=VALUES, second=VALUES[:5])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["first"], file["in/second"], file["text"] = VALUES, VALUES[:5], "hello"
    xr.Dataset({"first": (("n", "d"), VALUES), "second": (("m", "d"), VALUES[:5])}).to_netcdf(tmp_path / "x.nc")
    for ending, second in (("npz", "second"), ("h5", "in/second"), ("nc", "second")):
        source = tmp_path / f"x.{ending}"
        for dataset in (None, "third"):
            with pytest.raises(ValueError, match=rf"dataset= \(--dataset\) among first, {second}\."):
                run(source, dataset=dataset)
        np.testing.assert_array_equal(run(source, dataset=second), VALUES[:5])
    with pytest.raises(TypeError, match="text in"):
        run(tmp_path / "x.h5", dataset="text")
    with pytest.raises(ValueError, match="leave dataset='a' out"):
        run(write_parts(tmp_path), dataset="a")


def test_npz_stored_by_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.asfortranarray(VALUES))
    with pytest.raises(ValueError, match="stored by columns"):
        run(tmp_path / "x.npz")


def test_netcdf_variables_of_one_dimension_are_columns(tmp_path: Path) -> None:
    time = ("time", np.arange(23), {"units": "hours since 2000-01-01"})
    scaled = {"wind": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    data = xr.Dataset({"wind": ("time", np.arange(23.0)), "map": (("time", "x"), VALUES)}, coords={"time": time})
    data.to_netcdf(tmp_path / "x.nc", encoding=scaled)
    result = run(tmp_path / "x.nc", columns=["wind", "time"])
    np.testing.assert_array_equal(result, np.column_stack([np.arange(23), np.arange(23)]))
    with pytest.raises(ValueError, match="one and the same dimension"):
        run(tmp_path / "x.nc", columns=["wind", "map"])
    np.testing.assert_array_equal(run(tmp_path / "x.nc", dataset="map", columns=[1]), VALUES[:, 1:2])


def test_parquet_types_and_missing_values(tmp_path: Path) -> None:
    columns = {
        "whole": pa.array([1, None, 3]),
        "flag": pa.array([True, False, None]),
        "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "name": pa.array(["x", "y", "z"]),
        "__index_level_0__": pa.array([7, 8, 9]),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(TypeError, match=r"Column 'name'.*holds string.*columns="):
        run(tmp_path / "x.parquet")
    result = run(tmp_path / "x.parquet", columns=["whole", "flag", "single"], on_invalid="keep")
    np.testing.assert_array_equal(result, [[1, 1, 0.5], [np.nan, 0, 1.5], [3, np.nan, 2.5]])
    assert run(tmp_path / "x.parquet", columns=["single"]).dtype == np.float32


def test_parquet_files_that_differ_are_named(tmp_path: Path) -> None:
    directory = write_parts(tmp_path)
    pq.write_table(pa.table({"a": [1.0]}), directory / "z.parquet")
    with pytest.raises(ValueError, match=r"a, b, c are not distinct columns of .*z\.parquet: a\."):
        run(directory)


def test_csv_details(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('\ufeff"x, y",name,z\n1,one,2\n\n3,two,\n4,"th,ree",1e3\n', encoding="utf-8")
    with pytest.raises(ValueError, match="choose columns="):
        run(path)
    result = run(path, columns=["x, y", "z"], on_invalid="keep")
    np.testing.assert_array_equal(result, [[1, 2], [3, np.nan], [4, 1000]])
    path.write_text("1,2\n3,4")
    np.testing.assert_array_equal(run(path), [[1, 2], [3, 4]])
    path.write_text("")
    with pytest.raises(ValueError, match="is empty"):
        run(path)
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows to convert"):
        run(path)


def test_csv_of_more_rows_than_one_block(tmp_path: Path) -> None:
    values = np.arange(3000.0)[:, None] * [1, -1]
    np.savetxt(tmp_path / "x.csv", values, delimiter=",", fmt="%d")
    np.testing.assert_array_equal(run(tmp_path / "x.csv", chunk_rows=7), values)


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"none of the endings.*\.npy, .*\.parquet"):
        run(tmp_path / "x.xlsx")
    with pytest.raises(FileNotFoundError, match=r"none\.npy does not exist"):
        run(tmp_path / "none.npy")
    np.save(tmp_path / "rows.npy", VALUES[:0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no \.parquet file"):
        run(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"shape \(0, 3\): there are no rows"):
        run(tmp_path / "rows.npy")


def write(path: Path) -> Path:
    """A table in the format that the path's ending says."""
    if path.suffix == ".npy":
        np.save(path, VALUES)
    elif path.suffix == ".npz":
        np.savez_compressed(path, x=VALUES)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=VALUES, compression="gzip")
    elif path.suffix == ".nc":
        xr.Dataset({"x": (("n", "d"), VALUES)}).to_netcdf(path)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"a": VALUES[:, 0]}), path)
    else:
        path.write_text("a,b\n1,2\n")
    return path


@pytest.mark.parametrize("damage", ["cut short", "of noise"])
@pytest.mark.parametrize("ending", ["npy", "npz", "h5", "nc", "parquet", "csv"])
def test_a_file_that_its_library_cannot_read_is_an_error_that_names_it(
    tmp_path: Path, ending: str, damage: str
) -> None:
    if (ending, damage) == ("csv", "cut short"):
        pytest.skip("any beginning of a table of text is one")
    source = write(tmp_path / f"x.{ending}")
    whole = source.read_bytes()
    noise = np.random.default_rng(0).bytes(len(whole))
    source.write_bytes(whole[: len(whole) * 3 // 4] if damage == "cut short" else noise)
    with pytest.raises(OSError, match=rf"x\.{ending} (cannot be read: it is damaged|is cut short)") as caught:
        run(source)
    assert type(caught.value) is OSError


@pytest.mark.parametrize("ending", ["npz", "h5", "parquet"])
def test_damage_that_is_found_while_rows_are_read_names_the_file(tmp_path: Path, ending: str) -> None:
    source = write(tmp_path / f"x.{ending}")
    data = bytearray(source.read_bytes())
    start = {"npz": 200, "h5": len(data) - 200, "parquet": 20}[ending]
    data[start : start + 20] = bytes(20)
    source.write_bytes(data)
    with pytest.raises(OSError, match=rf"x\.{ending} cannot be read: it is damaged") as caught:
        run(source)
    assert type(caught.value) is OSError


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("(10**12, 3)", "cannot be read: it is damaged"),
        ("(1000000000000, 3)", "is cut short"),
        ("(10000000000000000000000, 3)", "is cut short"),
        ("(-3, 3)", r"has shape \(-3, 3\): there are no rows"),
        ("(3, 3", "cannot be read: it is damaged"),
    ],
)
def test_a_header_that_promises_what_is_not_there(tmp_path: Path, ending: str, shape: str, message: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(72)
    source = tmp_path / f"x.{ending}"
    if ending == "npy":
        source.write_bytes(data)
    else:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("x.npy", data)
    with pytest.raises((ValueError, OSError), match=rf"x\.{ending} {message}") as caught:
        run(source)
    assert type(caught.value) in (ValueError, OSError)


def test_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.h5").write_text("")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"needs h5py: pip install daskspectral\[convert\]"):
        run(tmp_path / "x.h5")
