"""Anything array-like becomes the same rows; what cannot is refused by its metadata alone."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import MemoryStore

from daskspectral.data.batches import Batches, Rows, first_invalid, valid_rows
from daskspectral.data.containers import DaskReader, as_reader
from daskspectral.data.readers import ArrayReader, Reader, ZarrReader, open_zarr, refuse_input, zarr_reader
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.moments import NUMBER
from daskspectral.moments.coincidence import Coincidence

N, D = 1000, 3
X = np.random.default_rng(0).standard_normal((N, D))


class Frame:
    """Like a data frame: a table that numpy can read, and nothing more."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(X, dtype=dtype)


def memmap(path: Path) -> np.ndarray:
    np.save(path / "x.npy", X)
    return np.load(path / "x.npy", mmap_mode="r")


def write(path: Path | str, values: np.ndarray = X, **options: Any) -> zarr.Array[Any]:
    return zarr.create_array(path, data=values, **({"chunks": (300, *values.shape[1:])} | options))


def local(path: Path) -> zarr.Array[Any]:
    return write(path / "x.zarr")


def located(path: Path, prefix: str = "") -> str:
    write(path / "x.zarr")
    return f"{prefix}{path}/x.zarr"


def in_group(path: Path) -> str:
    zarr.open_group(path / "g.zarr", mode="w").create_group("deep").create_array("x", data=X, chunks=(300, D))
    return f"{path}/g.zarr/deep/x"


def remote(path: Path) -> str:
    url = f"memory://{path.name}/x.zarr"
    write(url)
    return url


def netcdf(path: Path, **options: Any) -> xr.DataArray:
    xr.Dataset({"x": (("row", "column"), X)}).to_netcdf(path / "x.nc")
    return xr.open_dataset(path / "x.nc", **options).x


KINDS: dict[str, Callable[[Path], Any]] = {
    "numpy": lambda path: X,
    "fortran order": lambda path: np.asfortranarray(X),
    "strided": lambda path: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda path: X.astype(">f8"),
    "long double": lambda path: X.astype(np.longdouble),
    "memory-mapped": memmap,
    "list": lambda path: X.tolist(),
    "tuple": lambda path: tuple(map(tuple, X)),
    "frame": lambda path: Frame(),
    "masked, nothing hidden": lambda path: np.ma.masked_array(X),
    "dask": lambda path: da.from_array(X, chunks=(170, D)),
    "dask, one block": lambda path: da.from_array(X, chunks=-1),
    "dask, columns cut": lambda path: da.from_array(X, chunks=(300, 1)),
    "dask, uneven": lambda path: da.from_array(X, chunks=((1, 900, 99), (2, 1))),
    "dask, empty blocks": lambda path: da.concatenate([X[:0], da.from_array(X, chunks=400), da.from_array(X[:0])]),
    "dask of zarr": lambda path: da.from_zarr(located(path)),
    "zarr": local,
    "zarr in memory": lambda path: zarr.array(X, store=MemoryStore()),
    "zarr, sharded": lambda path: write(path / "x.zarr", chunks=(50, 1), shards=(200, D)),
    "zarr, columns cut": lambda path: write(path / "x.zarr", chunks=(300, 2)),
    "zarr 2": lambda path: write(path / "x.zarr", zarr_format=2),
    "str": located,
    "Path": lambda path: Path(located(path)),
    "file URL": lambda path: located(path, "file://"),
    "memory URL": remote,
    "in a group": in_group,
    "xarray": lambda path: xr.DataArray(X, dims=("row", "column")),
    "xarray, transposed": lambda path: xr.DataArray(X.T.copy(), dims=("column", "row")).T,
    "xarray of dask": lambda path: xr.DataArray(da.from_array(X, chunks=(300, 2)), dims=("row", "column")),
    "netcdf, not chunked": netcdf,
    "netcdf, chunked": lambda path: netcdf(path, chunks={}),
}


def rows_of(reader: Reader) -> np.ndarray:
    cuts = [0, 5, 299, 300, 777, N]
    if isinstance(reader, DaskReader):
        cuts = np.unique(reader.edges).tolist()
    return np.concatenate([reader.read(a, b) for a, b in pairwise(cuts)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path))
    reader = source.readers["x"]
    assert (source.n, source.n_features_in, source.dimension) == (N, D, D)
    assert (source.edges[0], source.edges[-1], reader.shape) == (0, N, (N, D))
    assert (np.diff(source.edges) >= 0).all()
    assert isinstance(reader.identity, dict)
    np.testing.assert_array_equal(rows_of(reader).astype(float), X)


@pytest.mark.parametrize("kind", ["zarr", "memory URL", "zarr, sharded", "memory-mapped"])
def test_readers_are_picklable(tmp_path: Path, kind: str) -> None:
    reader = open_source(KINDS[kind](tmp_path)).readers["x"]
    reader.read(0, 1)
    again = pickle.loads(pickle.dumps(reader.localise(300, 700)))
    np.testing.assert_array_equal(again.read(310, 700), X[310:700])


def test_files_stay_on_disk(tmp_path: Path) -> None:
    assert isinstance(as_reader(netcdf(tmp_path), "X"), DaskReader)
    assert isinstance(as_reader(xr.DataArray(X), "X"), ArrayReader)
    reader = as_reader(memmap(tmp_path), "X")
    assert isinstance(reader, ArrayReader)
    assert isinstance(reader.array, np.memmap)


def test_chunk_borders(tmp_path: Path) -> None:
    def edges(value: Any) -> list[int]:
        return open_source(value).edges.tolist()

    assert edges(X) == [0, N]
    assert edges(local(tmp_path)) == [0, 300, 600, 900, N]
    assert edges(write(tmp_path / "s.zarr", chunks=(250, 1), shards=(500, D))) == [0, 250, 500, 750, N]
    assert edges(da.from_array(X, chunks=((400, 600), D))) == [0, 400, N]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", ">i4", "int64", "float16"])
def test_other_numbers_become_float64(dtype: str) -> None:
    values = (3 * X).astype(dtype)
    prepared = Preparation()(values)
    assert prepared.dtype == np.float64
    np.testing.assert_array_equal(prepared, values.astype(float))


def test_float32_stays() -> None:
    assert Preparation()(X.astype("float32")).dtype == np.float32


def test_preparation_selects_then_scales() -> None:
    preparation = Preparation((2, 0), np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    np.testing.assert_allclose(preparation(X), (X[:, [2, 0]] - [1, 2]) / [2, 4])
    again = Preparation.from_state(preparation.state())
    np.testing.assert_array_equal(again(X), preparation(X))
    assert Preparation.from_state(Preparation().state())(X) is X


GROUP = "is a zarr group, and an array is wanted; name one of its arrays: "


def bad_group(path: Path) -> str:
    in_group(path)
    zarr.open_group(path / "g.zarr").create_array("top", data=X)
    return f"{path}/g.zarr"


def model_file(path: Path) -> str:
    np.save(path / "x.npy", X)
    return f"{path}/x.npy"


def empty_group(path: Path) -> str:
    zarr.open_group(path / "e.zarr", mode="w")
    return f"{path}/e.zarr"


def unknown_blocks(path: Path) -> da.Array:
    x = da.from_array(X, chunks=100)
    return x[x[:, 0] > 0]


BAD: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "no dimension": (lambda path: np.array(1.0), ValueError, r"2 dimensions, rows and columns; it has shape \(\)"),
    "no dimension, zarr": (lambda path: zarr.array(1.0), ValueError, r"2 dimensions.* shape \(\)"),
    "no dimension, xarray": (lambda path: xr.DataArray(1.0), ValueError, r"2 dimensions.* shape \(\)"),
    "one dimension": (lambda path: X[:, 0], ValueError, r"shape \(1000,\)\. Reshape your data: a single column is X\."),
    "three dimensions": (
        lambda path: X[None],
        ValueError,
        r"2 dimensions, rows and columns; it has shape \(1, 1000, 3\)",
    ),
    "three, dask": (lambda path: da.zeros((4, 5, 6), chunks=2), ValueError, r"2 dimensions.* \(4, 5, 6\)"),
    "no rows": (lambda path: X[:0], ValueError, r"X is empty: 0 sample\(s\) \(shape=\(0, 3\)\)"),
    "no columns": (lambda path: X[:, :0], ValueError, r"X is empty: 0 feature\(s\) \(shape=\(1000, 0\)\)"),
    "no rows, zarr": (lambda path: zarr.create_array(path / "e.zarr", shape=(0, 3), dtype=float), ValueError, "empty"),
    "complex": (lambda path: X + 0j, ValueError, r"X has dtype complex128; split real and imaginary parts"),
    "object": (lambda path: X.astype(str).astype(object), TypeError, "X holds text, such as .*, and real numbers are"),
    "object, dask": (
        lambda path: da.from_array(X.astype(object), chunks=(100, 3)),
        TypeError,
        "dtype object, and real numbers are wanted",
    ),
    "text": (lambda path: X.astype(str), TypeError, r"dtype <U32, and real numbers are wanted"),
    "dates": (lambda path: X.astype("M8[s]"), TypeError, r"dtype datetime64\[s\], and real numbers"),
    "complex, dask": (lambda path: da.zeros((4, 2), dtype=complex), ValueError, "dtype complex128"),
    "complex, zarr": (lambda path: write(path / "c.zarr", X + 0j), ValueError, "dtype complex128"),
    "ragged": (lambda path: [[1, 2], [3]], ValueError, "X cannot be made an array: .*inhomogeneous"),
    "list of arrays": (lambda path: [X, X[:9]], ValueError, "X is a list of 2 arrays, .*call this for each of them"),
    "list of one": (lambda path: [X], ValueError, "X is a list of 1 arrays, such as trajectories"),
    "list of dask": (lambda path: [da.zeros((4, 2))] * 3, ValueError, "X is a list of 3 arrays, such as trajectories"),
    "tuple of paths": (lambda path: ("a.zarr", "b.zarr"), ValueError, "X is a tuple of 2 arrays, such as trajectories"),
    "masked": (lambda path: np.ma.masked_greater(X, 3), ValueError, r"masked array with \d+ masked entries"),
    "number": (lambda path: 1.0, TypeError, "X is a float; give a numpy, dask, zarr or xarray array, a data frame"),
    "nothing": (lambda path: None, TypeError, "X is a NoneType"),
    "dictionary": (lambda path: {"x": X}, TypeError, "X is a dict"),
    "unknown blocks": (unknown_blocks, ValueError, r"blocks of unknown size; call X\.compute_chunk_sizes\(\) first"),
    "missing": (
        lambda path: path / "no.zarr",
        FileNotFoundError,
        "no zarr array at .*no.zarr: the path does not exist",
    ),
    "missing URL": (lambda path: "memory://nowhere/no.zarr", FileNotFoundError, "no zarr array at memory://nowhere"),
    "missing in a group": (lambda path: f"{bad_group(path)}/no", FileNotFoundError, "no zarr array at .*g.zarr/no"),
    "other directory": (lambda path: path, FileNotFoundError, "no zarr array at"),
    "no path": (lambda path: "", ValueError, "the path of a zarr array is wanted; it is empty"),
    "file": (model_file, ValueError, r"x.npy is a file, .*`daskspectral convert \S*x.npy --out x.zarr`"),
    "group": (bad_group, ValueError, rf"g.zarr {GROUP}\S*/g.zarr/deep/x, \S*/g.zarr/top$"),
    "open group": (lambda path: zarr.open_group(bad_group(path)), ValueError, rf"g.zarr {GROUP}\S*/g.zarr/deep/x"),
    "group without arrays": (
        empty_group,
        ValueError,
        "e.zarr is a zarr group, and an array is wanted; it holds no arrays",
    ),
    "dataset": (
        lambda path: netcdf(path).to_dataset(),
        ValueError,
        r"xarray.Dataset; give one of its variables, \['x'\]",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_rows_is_refused(tmp_path: Path, kind: str) -> None:
    make, error, message = BAD[kind]
    value = make(tmp_path)
    with pytest.raises(error, match=message):
        open_source(value)


WEIGHTS: dict[str, tuple[Any, type[Exception], str]] = {
    "other length": (np.ones(9), ValueError, "sample_weight has 9 rows and X has 1000"),
    "one number": (np.array(1.0), ValueError, "sample_weight has no rows, being one number, and X has 1000"),
    "a table": (X, ValueError, r"sample_weight must have one dimension, the rows; it has shape \(1000, 3\)"),
    "complex": (np.ones(N, complex), ValueError, "sample_weight has dtype complex128"),
    "a float": (2.0, TypeError, "sample_weight is a float"),
    "missing": ("no.zarr", FileNotFoundError, "no zarr array at no.zarr"),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_go_with_the_rows(kind: str) -> None:
    weights, error, message = WEIGHTS[kind]
    with pytest.raises(error, match=message):
        open_source(X, weight=weights)


def test_fields_share_the_blocks_of_dask_ones(tmp_path: Path) -> None:
    weight = np.arange(N, dtype=float)
    for x in (X, da.from_array(X, chunks=(140, 2)), write(tmp_path / "x.zarr")):
        source = open_source(x, weight=weight)
        np.testing.assert_array_equal(source.readers["weight"].read(0, N), weight)
        assert set(open_source(x, weight=None).readers) == {"x"}
    both = open_source(da.from_array(X, chunks=(140, 2)), weight=da.from_array(weight, chunks=77))
    assert both.dask_fields["x"].chunks[0] == both.dask_fields["weight"].chunks[0]
    cut = open_source(X, weight=da.from_array(weight, chunks=77))
    assert cut.dask_fields["x"].chunks[0] == cut.dask_fields["weight"].chunks[0]
    with pytest.raises(TypeError, match=r"give X as dask.array.from_zarr"):
        open_source(f"{tmp_path}/x.zarr", weight=da.from_array(weight, chunks=77))


COLUMNS = [[], [0, 0], [0, -3], [3], [-4], [0.5], [True, False, True], ["a"], 1, slice(2), [None]]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_bad_columns(columns: Any) -> None:
    with pytest.raises(
        ValueError, match="columns must be a list of distinct numbers of the 3 columns of X, from 0 to 2"
    ):
        open_source(X, columns=columns)


@pytest.mark.parametrize("columns", [[2, 0], (2, -3), np.array([2, 0]), range(2, -1, -2)], ids=str)
def test_good_columns(columns: Any) -> None:
    source = open_source(X, columns=columns)
    assert (source.preparation.columns, source.dimension, source.n_features_in) == ((2, 0), 2, 3)


def test_relative_path_is_kept_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    by_path, by_array = open_source("x.zarr").readers["x"], as_reader(zarr.open_array("x.zarr", mode="r"), "X")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for reader in (by_path, by_array):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(reader)).read(0, N), X)


def reader_elsewhere(path: Path) -> ZarrReader:
    """A reader as it arrives in another process: nothing has been opened yet."""
    reader = zarr_reader(open_zarr(path), "x.zarr")
    assert isinstance(reader, ZarrReader)
    return pickle.loads(pickle.dumps(reader))


def test_store_that_a_worker_does_not_see(tmp_path: Path) -> None:
    reader = reader_elsewhere(Path(located(tmp_path)))
    shutil.rmtree(tmp_path / "x.zarr")
    with pytest.raises(FileNotFoundError, match=rf"x.zarr is not visible to this process \(pid {os.getpid()}"):
        reader.read(0, 10)


@pytest.mark.parametrize("other", [{"chunks": (299, 3)}, {"fill_value": 7.0}, {"zarr_format": 2}], ids=str)
def test_store_that_was_replaced(tmp_path: Path, other: dict[str, Any]) -> None:
    reader = reader_elsewhere(Path(located(tmp_path)))
    write(tmp_path / "x.zarr", overwrite=True, **other)
    with pytest.raises(OSError, match=r"x.zarr as seen by .* is not the array that the run was planned for") as caught:
        reader.read(0, 10)
    assert "damaged" not in str(caught.value)


def test_attributes_may_change(tmp_path: Path) -> None:
    reader = reader_elsewhere(Path(located(tmp_path)))
    zarr.open_array(tmp_path / "x.zarr", mode="r+").attrs["note"] = "new"
    np.testing.assert_array_equal(reader.read(0, N), X)


@pytest.mark.parametrize("shards", [None, (600, 3)])
def test_damaged_chunk_is_named(tmp_path: Path, shards: Any) -> None:
    write(tmp_path / "x.zarr", shards=shards, compressors=[zarr.codecs.Crc32cCodec()])
    file = tmp_path / "x.zarr" / "c" / ("1" if shards else "2") / "0"
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(content)
    reader = reader_elsewhere(tmp_path / "x.zarr")
    np.testing.assert_array_equal(reader.read(0, 600), X[:600])
    where = r"chunk 2 along the rows \(rows 600 to 900\)"
    with pytest.raises(OSError, match=rf"x.zarr cannot be decoded in {where}: .*The store is damaged there"):
        reader.read(0, N)


def test_outputs_do_not_replace_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("g.zarr/x")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "g.zarr")
    refuse_input("other.zarr", "g.zarr/x", None)
    refuse_input("g.zarr/xy", "g.zarr/x")
    refuse_input("memory://b/xy", "memory://b/x")
    for out, given in [("g.zarr/x", f"file://{tmp_path}/g.zarr/x"), ("g.zarr", "g.zarr/x"), ("link.zarr", "g.zarr/x")]:
        with pytest.raises(ValueError, match=f"the output {out} would replace the input .*g.zarr/x"):
            refuse_input(out, given)
    with pytest.raises(ValueError, match="would replace"):
        refuse_input("memory://b/x/", "memory://b/x")


# -- the batches of a range ------------------------------------------------------------------------------------


def batches(source: Source, start: int = 0, stop: int = N, **rules: Any) -> Batches:
    return Batches(source.readers, Rows(source.preparations, **rules), start, stop, source.edges)


def joined(taken: Batches) -> np.ndarray:
    return np.concatenate([batch["x"] for batch in taken])


@pytest.mark.parametrize(("size", "lengths"), [(1, [200, 300, 300, 50]), (600 * 8 * 4, [500, 350]), (1 << 20, [850])])
def test_batches_follow_the_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, lengths: list[int]
) -> None:
    monkeypatch.setattr("daskspectral.data.batches.READ_BYTES", size)
    taken = batches(open_source(write(tmp_path / "x.zarr"), weight=np.full(N, 0.5)), 100, 950)
    parts = list(taken)
    assert [len(b["x"]) for b in parts] == lengths
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in parts]), X[100:950])
    assert (taken.count, taken.weight, taken.skipped, taken.bad) == (850, 425.0, 0, None)


def test_large_chunks_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskspectral.data.batches.BATCH_ROWS", 300)
    assert [len(b["x"]) for b in batches(open_source(X))] == [300, 300, 300, 100]


def test_dropped_and_selected_rows(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "x.zarr"))
    some = np.array([0, 299, 300, 555, 999])
    dropped = batches(source, dropped=Coincidence(X[some]))
    np.testing.assert_array_equal(joined(dropped), np.delete(X, some, axis=0))
    assert (dropped.count, dropped.skipped) == (N - 5, 0)
    chosen = list(batches(source, selected=some))
    np.testing.assert_array_equal(np.concatenate([b[NUMBER] for b in chosen]), some)
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in chosen]), X[some])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_invalid_rows(value: float) -> None:
    broken = X.copy()
    broken[[400, 401, 700], [1, 0, 2]] = value
    source = open_source(broken)
    stopped = batches(source)
    assert list(stopped) == []
    assert stopped.bad is not None
    assert (stopped.bad.row, stopped.bad.reason) == (400, f"X holds {'NaN' if np.isnan(value) else value} in column 1")
    skipped = batches(source, on_invalid="skip", dropped=Coincidence(X[[3, 400]]))
    np.testing.assert_array_equal(joined(skipped), np.delete(X, [3, 400, 401, 700], axis=0))
    assert (skipped.count, skipped.skipped) == (N - 4, 3)
    assert len(joined(batches(source, on_invalid="keep"))) == N
    late = batches(source, selected=np.array([399, 700, 701]))
    assert list(late) == []
    assert late.bad is not None
    assert late.bad.row == 700


def test_columns_that_are_not_used_may_be_invalid() -> None:
    broken = X.copy()
    broken[5, 1] = np.nan
    taken = batches(open_source(broken, columns=[2, 0]))
    np.testing.assert_array_equal(joined(taken), X[:, [2, 0]])
    broken[7, 0] = np.inf
    taken = batches(open_source(broken, columns=[2, 0]))
    assert list(taken) == []
    assert taken.bad is not None
    assert (taken.bad.row, taken.bad.reason) == (7, "X holds inf in column 0")


@pytest.mark.parametrize(
    ("weight", "reason"), [(-1.0, r"the sample weight is negative (-1.0)"), (np.nan, "the sample weight is NaN")]
)
def test_invalid_weights(weight: float, reason: str) -> None:
    weights = np.ones(N)
    weights[12] = weight
    taken = batches(open_source(X, weight=weights))
    assert list(taken) == []
    assert taken.bad is not None
    assert (taken.bad.row, taken.bad.reason) == (12, reason)


def test_valid_rows() -> None:
    assert valid_rows({"x": X, "n": np.arange(N)}) is None
    assert first_invalid({"x": X}) is None
    valid = valid_rows({"x": np.array([[1.0, np.nan], [1, 1]]), "weight": np.array([1.0, -1.0])})
    assert valid is not None
    np.testing.assert_array_equal(valid, [False, False])


def test_a_stopped_run_ends_its_batches() -> None:
    source = open_source(X)
    taken = Batches(source.readers, Rows(source.preparations), 0, N, source.edges, cancelled=lambda: True)
    with pytest.raises(InterruptedError, match="the run was stopped"):
        list(taken)
