"""A chunk that is not there is an error where it is read, whoever reads it: never fill values in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.cli.verifying import verify
from daskspectral.data.labeled import stack_rows
from daskspectral.data.readers import zarr_reader
from daskspectral.data.stores import open_array, open_zarr
from daskspectral.data.writing import Grid, create_array, create_dataset
from daskspectral.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4))
LAYOUTS: dict[str, dict[str, Any]] = {
    "v2": {"zarr_format": 2},
    "sharded": {"shards": (200, 4)},
    "NaN": {"fill_value": np.nan},
}


def written(path: Path, **layout: Any) -> zarr.Array[Any]:
    return zarr.create_array(path, data=X, **({"chunks": (100, 4), "fill_value": 0} | layout))


TEN = Landmarks(Gaussian(2.0), points=X[:10])


def fitted(x: Any, basis: Landmarks = TEN) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(basis=basis, n_components=3, folds=None, random_state=0).fit(x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_chunk_that_vanishes_is_missed_when_it_is_read(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "x.zarr"
    reader = zarr_reader(written(path, **LAYOUTS[layout]))
    model = fitted(str(path))
    max(p for p in path.rglob("[0-9]*") if p.is_file()).unlink()  # the last chunk
    np.testing.assert_array_equal(reader.read(10, 190), X[10:190])
    missing = r"chunk .* \(rows \d00 to 400\)"
    for read in (lambda: reader.read(190, 390), lambda: model.transform(str(path)).compute(scheduler="synchronous")):
        with pytest.raises(OSError, match=missing):
            read()
    with pytest.raises(OSError, match=r"x\.zarr"):
        model.transform(str(path), out=tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()
    if layout != "NaN":
        assert fitted(dsp.Rows(str(path), allow_missing=True)).moments_.count == len(X)
        assert np.isfinite(model.transform(dsp.Rows(str(path), allow_missing=True)).compute()).all()


# whoever reads: for landmarks, bandwidths, pilots, first looks, folds and in the passes

ROWS, Y = RNG.uniform(-1, 1, (90, 2)), RNG.uniform(-1, 1, 90)
FILLED = np.where(np.arange(90)[:, None] < 30, 0.25, ROWS)
HERMITE = dsp.HermiteRegressor(Landmarks(Gaussian(1.0), points=ROWS[40:48]), random_state=0)
EIGHT = Landmarks(Gaussian(2.0), points=ROWS[:8])
CALLS: dict[str, Callable[..., Any]] = {
    "all chosen": lambda x, **o: dsp.HermiteRegressor(random_state=0).fit(dsp.Rows(x, **o), Y).coef_,
    "gradients": lambda x, **o: clone(HERMITE).fit(dsp.Rows(ROWS, **o), Y, x).coef_,
    "score": lambda x, **o: fitted(X[:, :2], EIGHT).score(dsp.Rows(x, **o)),
    "update": lambda x, **o: fitted(FILLED[:40], EIGHT).update(dsp.Rows(x, **o)).eigenvalues_,
    "an embedding": lambda x, **o: dsp.KernelEmbedding(random_state=0).fit(dsp.Rows(x, **o)).spectrum_,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_missing_chunks_that_are_meant_read_as_fill_values(tmp_path: Path, call: str) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=ROWS, chunks=(30, 2), fill_value=0.25)
    (path / "c" / "0" / "0").unlink()
    with pytest.raises(OSError, match="is missing"):
        CALLS[call](str(path))
    found = CALLS[call](str(path), allow_missing=True)
    np.testing.assert_allclose(found, CALLS[call](FILLED), rtol=1e-6, atol=1e-9)


# labeled groups

UNIFORM = Landmarks(Gaussian(2.0), 10, method="uniform")


def group(path: Path, values: Any) -> Path:
    coords = {"time": np.arange(80) * 0.5, "lat": [-30.0, 0.0, 45.0], "lon": [0.0, 90.0]}
    x = xr.DataArray(values, coords, ("time", "lat", "lon"), name="counts")
    x.to_dataset().chunk({"time": 20, "lat": 1}).to_zarr(path, zarr_format=2)
    return path


@pytest.mark.filterwarnings("ignore::daskspectral.errors.ExtrapolationWarning")  # few landmarks
def test_chunks_of_land_are_not_missed(tmp_path: Path) -> None:
    """xarray writes no chunk that holds nothing but NaN."""
    values = RNG.uniform(1, 50, (80, 3, 2))
    values[:, 0] = np.nan
    path = group(tmp_path / "x.zarr", values)
    assert not (path / "counts" / "0.0.0").exists()
    model = fitted(dsp.Rows(path, on_invalid="skip"), UNIFORM)
    assert model.n_features_in_ == 4
    assert np.isfinite(model.transform(path)).all()


# inner chunks of shards, by the index of each shard

ONES = np.full((400, 4), 3.3)


def sharded(path: Path | str, codecs: list[Any]) -> zarr.Array[Any]:
    return zarr.create(store=path, shape=(400, 4), chunks=(100, 4), dtype="f8", zarr_format=3, codecs=codecs)


def half_written(path: Any, **layout: Any) -> Any:
    """Shards of which half of the inner chunks were written: each file is there, and its index is whole."""
    array = sharded(path, [zarr.codecs.ShardingCodec(**({"chunk_shape": (25, 2)} | layout))])
    for start in range(0, 400, 100):
        array[start : start + 50] = ONES[:50]
    return path


SHARDS: dict[str, dict[str, Any]] = {
    "index at the end": {},
    "index at the start": {"index_location": "start"},
    "index without checksum": {"index_codecs": [zarr.codecs.BytesCodec()]},
}
LOOKS: dict[str, Callable[[Any], Any]] = {
    "fit": fitted,
    "plan": lambda path: dsp.SpectralDecomposition(basis=TEN, folds=None).plan(path),
    "verify": lambda path: raised(verify(str(path))["arrays"][0]["damage"]),
    "read": lambda path: zarr_reader(open_zarr(path)).read(60, 70),
}


def raised(damage: list[str]) -> None:
    if damage:
        raise OSError(damage[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("layout", [*SHARDS, "in an object store"])
def test_an_inner_chunk_that_was_not_written_is_missed(tmp_path: Path, layout: str, look: str) -> None:
    path = half_written(tmp_path / "x.zarr" if layout in SHARDS else f"memory:/{tmp_path}", **SHARDS.get(layout, {}))
    with pytest.raises(OSError, match=r"chunk \(2, 0\) in shard c/0/0.* \(rows 50 to 75\)"):
        LOOKS[look](path)
    assert zarr_reader(open_zarr(path)).read(100, 150).min() == 3.3
    array = zarr.open_array(path, mode="r+")
    for start in range(0, 400, 100):
        array[start : start + 100] = np.random.default_rng(start).random((100, 4))
    LOOKS[look](path)


DAMAGES: dict[str, tuple[dict[str, Any], Callable[[bytes], bytes]]] = {
    "cut short behind an index": ({"index_location": "start"}, lambda data: data[:-800]),
    "cut short before an index": ({}, lambda data: data[:-1]),
    "of few bytes": ({}, lambda data: data[:3]),
    "an altered index": ({}, lambda data: data[:-50] + b"x" + data[-49:]),
}


@pytest.mark.parametrize("look", ["fit", "verify", "read"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str, look: str) -> None:
    layout, change = DAMAGES[damage]
    path = half_written(tmp_path / "x.zarr", **layout)
    zarr.open_array(path, mode="r+")[...] = ONES
    shard = path / "c" / "0" / "0"
    shard.write_bytes(change(shard.read_bytes()))
    with pytest.raises(OSError, match=r"x\.zarr"):
        LOOKS[look](path)


INNER = zarr.codecs.ShardingCodec(chunk_shape=(25, 2))
ENCODED: dict[str, list[Any]] = {
    "shards": [INNER, zarr.codecs.ZstdCodec()],
    "shards in shards": [zarr.codecs.ShardingCodec(chunk_shape=(50, 4), codecs=[INNER])],
    "a big-endian index": [replace(INNER, index_codecs=(zarr.codecs.BytesCodec(endian="big"),))],
}


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed`")
@pytest.mark.parametrize("name", ENCODED)
def test_shards_whose_index_cannot_be_read_alone_are_refused(name: str, tmp_path: Path) -> None:
    sharded(tmp_path / "x.zarr", ENCODED[name])[...] = ONES
    with pytest.raises(OSError, match=r"x\.zarr .*sharding_indexed"):
        fitted(tmp_path / "x.zarr")


@pytest.mark.parametrize("sizes", [(400,), (200, 2)])
def test_written_chunks_that_equal_the_fill_value_are_complete(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    grid, dims = Grid(sizes, 0, sizes[0] // 4), [*"abc"[: len(sizes)], "k"]
    with create_dataset(
        tmp_path / "g.zarr", "v", xr.Dataset(), dims, (*sizes, 2), "f8", grid=grid, attributes={}
    ) as target:
        for start in range(0, 400, 100):
            target[start : start + 100] = np.full((100, 2), np.nan)
    with create_array(tmp_path / "a.zarr", (400, 2), "f8", chunk_rows=100) as array:
        out = open_array(str(array.store.root), mode="r+")
        for start in range(0, 400, 100):
            out[start : start + 100] = np.full((100, 2), np.nan)
    for name in ("g.zarr", "a.zarr"):
        assert verify(str(tmp_path / name))["whole"]


# numbers that equal the fill value

COUNTS = np.random.default_rng(0).integers(0, 2, (40, 3))
MASKS: dict[str, tuple[str, Any, dict[str, Any], Any]] = {
    **{f"zeros of {dtype}": (dtype, 0, {}, None) for dtype in ("i2", "f4", "bool")},
    "another fill value": ("i2", 1, {}, 1),
    "attribute": ("i2", 0, {"_FillValue": 0}, 0),
    "packed": ("i2", 0, {"scale_factor": 1.0}, 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_marks_of_missing_values_are_nan_and_other_numbers_are_numbers(tmp_path: Path, name: str) -> None:
    dtype, fill, attributes, missing = MASKS[name]
    array = zarr.create_group(tmp_path / "x.zarr", zarr_format=2).create_array(
        "x", shape=(40, 3), chunks=(10, 3), dtype=dtype, fill_value=fill, config={"write_empty_chunks": True}
    )
    array.attrs.update({"_ARRAY_DIMENSIONS": ["t", "c"], **attributes})
    array[...] = COUNTS
    stacked = stack_rows(tmp_path / "x.zarr")
    assert stacked is not None
    np.testing.assert_array_equal(stacked.reader.read(0, 40), np.where(missing == COUNTS, np.nan, COUNTS))
    if missing is None:
        (tmp_path / "x.zarr" / "x" / "2.0").unlink()
        with pytest.raises(OSError, match=r"x\.zarr/x"):
            fitted(tmp_path / "x.zarr", UNIFORM)
