"""Metadata of files with odd values: one error that names the file, never another one, a crash or other values."""

import json
import os
import resource
import signal
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

import daskspectral as dsp
from daskspectral.data.labeled import stack_rows
from daskspectral.data.readers import Reader
from daskspectral.data.source import open_source
from daskspectral.data.writing import create_array, write_file
from daskspectral.errors import column_name
from tests.common import places

X = np.random.default_rng(0).standard_normal((40, 2))
ODD: list[Any] = [None, True, -1, 0, 2.5, 2**62, 10**30, float("nan"), 1e300, "", "text", "\x1b[2J\n"]
ODD += [[], [None], ["a"], [0, 0], [-1, 2], [2**62, 2], {}, {"a": 1}]
TWELVE = ("zarr.json", ".zarray", ".zattrs")


def reader(path: Path) -> Reader:
    found = stack_rows(path)
    return open_source(path).readers["x"] if found is None else found.reader


def plain(path: Path, **layout: Any) -> None:
    zarr.create_array(path, data=X, **({"chunks": (20, 2)} | layout))


def group(path: Path, zarr_format: Any) -> None:
    attributes = {"scale_factor": 1.0, "add_offset": 0.0, "missing_value": 99.0, "units": "K"}
    days = ("t", np.arange(40), {"units": "days since 2000-01-01"})
    data = xr.Dataset({"x": (("t", "c"), X, attributes)}, {"t": days})
    data.attrs.update({"main_array": "x", "coordinates": "t"})
    data.to_zarr(path, zarr_format=zarr_format, consolidated=False)


STORES: dict[str, Callable[[Path], Any]] = {
    "format 3": plain,
    "shards": lambda path: plain(path, chunks=(10, 2), shards=(20, 2)),
    "format 2": lambda path: plain(path, zarr_format=2),
    "group of format 3": lambda path: group(path, 3),
    "group of format 2": lambda path: group(path, 2),
}
LEGAL = ("scale_factor", "add_offset", "missing_value", "_FillValue", "fill_value", "shape")
"""Keys of which other values are other data, or data of another size."""


def check(read: Callable[[], Any], name: str, legal: bool) -> None:
    """Call a reader of a changed file: the values are the right ones, or an error names the file in plain text."""
    error, found = None, None
    try:
        found = read()
    except (OSError, ValueError, MemoryError, TypeError) as raised:
        error = raised
    if error is None:
        assert legal or np.array_equal(found, X)
    elif not legal:
        assert name in str(error) or isinstance(error, TypeError), f"{type(error).__name__}: {error}"
        assert str(error).isprintable()


@pytest.mark.one_in(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("store", STORES)
def test_odd_metadata_of_zarr(store: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.zarr"
    STORES[store](path)
    for file in sorted(file for file in path.rglob("*") if file.name in TWELVE):
        text = file.read_text()
        document = json.loads(text)
        for number, (within, place) in enumerate([*places(document)]):
            whole = within[place[-1]]
            for value in ODD[number % 6 :: 6] if store.startswith("group") else ODD[number % 2 :: 2]:
                within[place[-1]] = value
                file.write_text(json.dumps(document))
                legal = {*LEGAL, "compressor", "filters"} & {*place} or "chunk" in str(place) or "_ARRAY" in str(place)
                check(lambda: reader(path).read(0, 40), "odd.zarr", bool(legal))
            within[place[-1]] = whole
        file.write_text(text)
    np.testing.assert_array_equal(reader(path).read(0, 40), X)


NAMED: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "a chunk of no rows": ("format 3", lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[0, 2])),
    "a chunk of no rows in a shard": ("shards", lambda d: d["codecs"][0]["configuration"].update(chunk_shape=[0, 2])),
    "a chunk of no rows of format 2": ("format 2", lambda d: d.update(chunks=[0, 2])),
    "a long array": ("format 3", lambda d: d.update(shape=[2**62, 2])),
    "a wide array": ("format 3", lambda d: d.update(shape=[40, 2**62])),
    "a long array of format 2": ("format 2", lambda d: d.update(shape=[2**62, 2])),
    "a long chunk": ("format 3", lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[2**62, 2])),
    "a mapping as the main array": ("group of format 3", lambda d: d["attributes"].update(main_array={"a": 1})),
    "a path as the main array": ("group of format 3", lambda d: d["attributes"].update(main_array="../other")),
}


@pytest.mark.parametrize("name", NAMED)
def test_metadata_that_no_array_has_are_refused_by_the_name_of_the_store(name: str, tmp_path: Path) -> None:
    store, change = NAMED[name]
    STORES[store](tmp_path / "odd.zarr")
    file = next(f for f in (tmp_path / "odd.zarr" / n for n in TWELVE) if f.exists())
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(OSError, match=r"odd\.zarr"):
        reader(tmp_path / "odd.zarr")


@pytest.mark.parametrize(("attribute", "value"), [*((name, "two") for name in LEGAL[:4]), ("scale_factor", 0.0)])
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_values_are_decoded_by_numbers_alone(attribute: str, value: Any, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"odd{ending}"
    if ending == ".nc":
        xr.Dataset({"x": (("t", "c"), X)}, {"t": np.arange(40)}).to_netcdf(path, engine="h5netcdf")
        with h5py.File(path, "a") as file:
            file["x"].attrs[attribute] = value
    else:
        group(path, 3)
        zarr.open_array(path / "x", mode="r+").attrs[attribute] = value
    with pytest.raises(OSError, match=rf"odd\{ending}"):
        stack_rows(path)


NETCDF = ["scale_factor", "add_offset", "missing_value", "units", "calendar", "coordinates", "bounds", "grid_mapping"]
NETCDF += ["_Unsigned", "dtype", "DIMENSION_LIST", "CLASS", "NAME", "_Netcdf4Dimid"]
VALUES: list[Any] = [-1, 2**62, "text", "\x1b[2J", b"x", [1.0, 2.0], np.zeros((2, 2)), ""]


@pytest.mark.one_in(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribute", NETCDF)
def test_odd_attributes_of_netcdf(attribute: str, tmp_path: Path) -> None:
    changes = [(variable, value) for variable in "xt" for value in VALUES][len(attribute) % 2 :: 2]
    for number, (variable, value) in enumerate(changes):
        path = tmp_path / f"odd{number}.nc"
        xr.Dataset({"x": (("t", "c"), X)}, {"t": np.arange(40)}).to_netcdf(path, engine="h5netcdf")
        with h5py.File(path, "a") as file:
            file[variable].attrs[attribute] = value
        legal = attribute in (*LEGAL, "DIMENSION_LIST") or isinstance(value, bytes)
        check(lambda path=path: reader(path).read(0, 40), "odd", legal)  # type: ignore[misc]


@pytest.mark.parametrize("metadata", ODD)
def test_odd_metadata_of_pandas_in_parquet(metadata: Any, tmp_path: Path) -> None:
    path, table = tmp_path / "odd.parquet", pa.table({"a": X[:, 0], "b": X[:, 1]})
    for text in (json.dumps(metadata), json.dumps({"index_columns": metadata}), "{"):
        pq.write_table(table.replace_schema_metadata({"pandas": text}), path)
        check(lambda: reader(path).read(0, 40), "odd.parquet", metadata == ["a"])


def test_no_control_character_of_a_name_is_in_a_message(tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    arrays = [pa.array(X[:, 0]), pa.array(["text"] * 40)]
    pq.write_table(pa.Table.from_arrays(arrays, names=["a", "\x1b[2J\nb"]), path)
    with pytest.raises(TypeError, match=r"odd\.parquet") as caught:
        reader(path)
    assert str(caught.value).isprintable()
    assert column_name(1, ["a", "\x1b[2J\nb"]) == r"column 1 (\x1b[2J\nb)"


def write_array(path: Path) -> None:
    with create_array(path, X.shape, "f8") as array:
        array[...] = X


WRITES: dict[str, Callable[[Path], Any]] = {
    "a basis": lambda path: dsp.save(dsp.basis.LandmarkBasis(dsp.kernels.Gaussian(1.0), X), path),
    "an array": write_array,
    "a file": lambda path: write_file(path, bytes(5000)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [0, 10, 500])
@pytest.mark.parametrize("name", WRITES)
def test_a_failed_save_leaves_no_file(name: str, most: int, tmp_path: Path) -> None:
    """Whichever file is the first that cannot be written to its end."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        with pytest.raises(OSError, match=r"."):
            WRITES[name](tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert not os.listdir(tmp_path)
