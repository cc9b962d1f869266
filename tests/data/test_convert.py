"""Every format converts to the same rows, checked on the way in and on the way out."""

import os
import sys
import zipfile
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

from daskspectral.data import convert as convert_module
from daskspectral.data.convert import Converted, convert
from daskspectral.errors import InvalidRowError

VALUES = np.random.default_rng(0).standard_normal((23, 3))
Write = Callable[[Path, np.ndarray], Any]


def run(source: Path, **options: Any) -> np.ndarray:
    target = source.parent / "x.zarr"
    report = convert(source, target, **({"chunk_rows": 5, "progress": False, "overwrite": True} | options))
    result = np.asarray(zarr.open_array(target, mode="r")[:])
    assert (report.rows, report.columns) == result.shape
    return result


def write_hdf5(path: Path, values: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=values, chunks=True, compression="gzip")


def write_netcdf(path: Path, values: np.ndarray) -> None:
    xr.Dataset({"x": (("row", "column"), values)}).to_netcdf(path)


def write_parquet(path: Path, values: np.ndarray) -> None:
    pq.write_table(pa.table(dict(zip("abc", values.T, strict=False))), path, row_group_size=7)


def write_parts(path: Path, values: np.ndarray) -> None:
    (path / "later").mkdir(parents=True)
    write_parquet(path / "0.parquet", values[:9])
    write_parquet(path / "later" / "1.parquet", values[9:])
    (path / "_metadata.parquet").write_text("")


def write_csv(path: Path, values: np.ndarray) -> None:
    np.savetxt(path, values, delimiter=",", header="a,b,c", comments="", fmt="%.17g")


WRITES: dict[str, Write] = {
    "x.npy": np.save,
    "fortran.npy": lambda path, values: np.save(path, np.asfortranarray(values)),
    "packed.npz": lambda path, values: np.savez_compressed(path, x=values),
    "x.h5": write_hdf5,
    "x.nc": write_netcdf,
    "x.parquet": write_parquet,
    "parts": write_parts,
    "x.csv": write_csv,
    "x.tsv": lambda path, values: np.savetxt(path, values, delimiter="\t", fmt="%.17g"),
}


def written(path: Path, name: str, values: np.ndarray = VALUES) -> Path:
    WRITES[name](path / name, values)
    return path / name


@pytest.mark.parametrize("name", WRITES)
def test_rows_are_those_of_the_source(tmp_path: Path, name: str) -> None:
    """All, in the columns that are asked for, and with invalid ones that raise, are skipped or kept."""
    source = written(tmp_path, name)
    report = convert(source, tmp_path / "x.zarr", chunk_rows=5, progress=False)
    assert report == Converted(23, 3, 0, os.fspath(tmp_path / "x.zarr"))
    array = zarr.open_array(tmp_path / "x.zarr", mode="r")
    np.testing.assert_array_equal(array[:], VALUES)
    assert array.chunks == (5, 3)
    assert sorted(os.listdir(tmp_path)) == sorted([source.name, "x.zarr"])
    if name != "x.tsv":
        columns: list[Any] = ["c", "a"] if name in ("x.parquet", "parts", "x.csv") else [2, "0"]
        dataset = "x" if name == "x.nc" else None
        np.testing.assert_array_equal(run(source, columns=columns, dataset=dataset), VALUES[:, [2, 0]])
        with pytest.raises(ValueError, match="not distinct columns of"):
            run(source, columns=[*columns, columns[0]], dataset=dataset)


@pytest.mark.parametrize("name", ["fortran.npy", "x.nc", "parts", "x.tsv"])
def test_invalid_rows_raise_are_skipped_or_kept(tmp_path: Path, name: str) -> None:
    values = VALUES.copy()
    values[17, 0], values[8, 1], values[22, 2] = np.nan, np.inf, -np.inf
    source = written(tmp_path, name, values)
    with pytest.raises(InvalidRowError, match=r"Row 8 .*column (1|'b').*'skip'") as caught:
        run(source)
    assert caught.value.row == 8
    assert os.listdir(tmp_path) == [source.name]
    report = convert(source, tmp_path / "x.zarr", on_invalid="skip", chunk_rows=4, progress=False)
    assert (report.rows, report.skipped) == (20, 3)
    np.testing.assert_array_equal(run(source, on_invalid="skip"), np.delete(VALUES, [8, 17, 22], axis=0))
    np.testing.assert_array_equal(run(source, on_invalid="keep"), values)


def test_types_and_dimensions(tmp_path: Path) -> None:
    for given, expected in (("float16", "float32"), ("int64", "float64"), (">f8", "float64")):
        values = (np.arange(12).reshape(6, 2) % 5).astype(given)
        result = run(written(tmp_path, "x.npy", values))
        assert result.dtype == expected
        np.testing.assert_array_equal(result, values)
    np.testing.assert_array_equal(run(written(tmp_path, "packed.npz", VALUES[:, 0])), VALUES[:, :1])
    source = written(tmp_path, "x.h5", VALUES[:20].reshape(5, 4, 3))
    with pytest.raises(ValueError, match=r"shape \(5, 4, 3\).*flatten=True.*d = 12"):
        run(source)
    np.testing.assert_array_equal(run(source, flatten=True, chunk_rows=2), VALUES[:20].reshape(5, 12))


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (np.ones((3, 2), complex), {}, "real and imaginary"),
    (VALUES, {"dtype": "int32"}, "dtype must be a floating type"),
    (np.array([[1.0], [1e300]]), {"dtype": "float32"}, "Row 1 .*as float32"),
    (np.full((4, 2), np.nan), {"on_invalid": "skip"}, "no rows to convert.*4 invalid"),
]


@pytest.mark.parametrize(("values", "options", "message"), REFUSED)
def test_refused(tmp_path: Path, values: Any, options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run(written(tmp_path, "x.npy", values), **options)


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
    with pytest.raises(OSError, match="reads back differently"):
        run(written(tmp_path, "x.npy"))
    assert os.listdir(tmp_path) == ["x.npy"]


# what each format has of its own


def test_datasets_are_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", first=VALUES, second=VALUES[:5])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["first"], file["in/second"], file["text"] = VALUES, VALUES[:5], "hello"
    for ending, second in (("npz", "second"), ("h5", "in/second")):
        source = tmp_path / f"x.{ending}"
        for dataset in (None, "third"):
            with pytest.raises(ValueError, match=rf"dataset= \(--dataset\) among first, {second}\."):
                run(source, dataset=dataset)
        np.testing.assert_array_equal(run(source, dataset=second), VALUES[:5])


def test_netcdf_variables_of_one_dimension_are_columns(tmp_path: Path) -> None:
    scaled = {"wind": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    data = xr.Dataset({"wind": ("time", np.arange(23.0)), "map": (("time", "x"), VALUES)}, {"time": np.arange(23)})
    data.to_netcdf(tmp_path / "x.nc", encoding=scaled)
    result = run(tmp_path / "x.nc", columns=["wind", "time"])
    np.testing.assert_array_equal(result, np.column_stack([np.arange(23), np.arange(23)]))
    with pytest.raises(ValueError, match="one and the same dimension"):
        run(tmp_path / "x.nc", columns=["wind", "map"])


def test_parquet_types_and_missing_values(tmp_path: Path) -> None:
    columns = {"whole": pa.array([1, None, 3]), "flag": pa.array([True, False, None]), "name": pa.array([*"xyz"])}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(TypeError, match=r"Column 'name'.*holds string.*columns="):
        run(tmp_path / "x.parquet")
    result = run(tmp_path / "x.parquet", columns=["whole", "flag"], on_invalid="keep")
    np.testing.assert_array_equal(result, [[1, 1], [np.nan, 0], [3, np.nan]])


def test_csv_details(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('\ufeff"x, y",name,z\n1,one,2\n\n3,two,\n4,"th,ree",1e3\n', encoding="utf-8")
    result = run(path, columns=["x, y", "z"], on_invalid="keep")
    np.testing.assert_array_equal(result, [[1, 2], [3, np.nan], [4, 1000]])
    for text, message in (("", "is empty"), ("a,b\n", "no rows to convert"), ("a,b\n1,x\n", "choose columns=")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            run(path)


def test_sources_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "x.xlsx").write_text("")
    (tmp_path / "x.h5").write_text("")
    for name, error, message in (
        ("x.xlsx", ValueError, r"none of the endings.*\.npy, .*\.parquet"),
        ("none.npy", FileNotFoundError, r"none\.npy does not exist"),
        ("x.h5", ImportError, r"needs h5py: pip install daskspectral\[convert\]"),
    ):
        with pytest.raises(error, match=message):
            run(tmp_path / name)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda whole: whole[: len(whole) * 3 // 4],
    "noise": lambda whole: np.random.default_rng(0).bytes(len(whole)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["x.npy", "packed.npz", "x.h5", "x.nc", "x.parquet"])
def test_a_file_that_its_library_cannot_read_is_an_error_that_names_it(tmp_path: Path, name: str, damage: str) -> None:
    source = written(tmp_path, name)
    source.write_bytes(DAMAGES[damage](source.read_bytes()))
    with pytest.raises(OSError, match=rf"{name} (cannot be read: it is damaged|is cut short)"):
        run(source)


def test_a_header_that_promises_what_is_not_there(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000000000, 3), }\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(72)
    (tmp_path / "x.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", data)
    for name in ("x.npy", "x.npz"):
        with pytest.raises((ValueError, OSError), match=f"{name} is cut short"):
            run(tmp_path / name)
