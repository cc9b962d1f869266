"""Labelled data as rows and columns: stacked in order, lazily, masked, weighted, and labelled again."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.data.containers import DaskReader
from daskspectral.data.dataset import Grid, create_dataset
from daskspectral.data.labelled import Laid, lay_out, lay_out_field
from daskspectral.data.layout import Layout
from daskspectral.data.readers import ZarrReader, open_zarr
from daskspectral.data.source import Source
from daskspectral.registry import decode, encode

TIMES, LAT, LON = 7, np.array([-60.0, 0.0, 30.0]), np.array([0.0, 90.0, 180.0, 270.0])
VALUES = np.random.default_rng(0).standard_normal((TIMES, 3, 4))


def field(values: np.ndarray = VALUES) -> xr.DataArray:
    coords = {
        "time": pd.date_range("2001-01-01", periods=TIMES, name="time"),
        "lat": ("lat", LAT, {"units": "degrees_north"}),
        "lon": LON,
        "month": ("time", np.arange(TIMES) % 12),
    }
    attrs = {"units": "K", "history": "made"}
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords=coords, name="t2m", attrs=attrs)


def rows(laid: Laid | None) -> np.ndarray:
    assert laid is not None
    n = laid.reader.shape[0]
    if isinstance(laid.reader, DaskReader):
        return np.asarray(laid.reader.array.compute())
    return laid.reader.read(0, n)


def laid_out(x: Any, **options: Any) -> Laid:
    laid = lay_out(x, **options)
    assert laid is not None
    return laid


ORDERS = [(dims, count) for count in (1, 2, 3) for dims in itertools.permutations(("time", "lat", "lon"), count)]


@pytest.mark.parametrize(("samples", "count"), ORDERS)
def test_dimensions_are_stacked_in_order(samples: tuple[str, ...], count: int) -> None:
    x = field()
    if "time" not in samples:
        x = x.drop_vars(["time", "month"])
    others = [dim for dim in x.dims if dim not in samples]
    sizes, found = dict(x.sizes), rows(laid_out(x, sample_dims=samples))
    for place in np.ndindex(*x.shape):  # entry by entry
        at = dict(zip(x.dims, place, strict=True))
        row = np.ravel_multi_index([at[d] for d in samples], [sizes[d] for d in samples])
        column = np.ravel_multi_index([at[d] for d in others], [sizes[d] for d in others]) if others else 0
        assert found[row, column] == VALUES[place]
    lazy = laid_out(x.chunk({"time": 3, "lat": 2}), sample_dims=samples)
    assert isinstance(lazy.reader, DaskReader)
    np.testing.assert_array_equal(rows(lazy), found)


def test_columns_of_latitudes_are_weighted_by_the_root_of_their_cosine() -> None:
    laid = laid_out(field(), sample_dims="time", latitude="lat")
    wanted = field() * np.sqrt(np.cos(np.deg2rad(field().lat)))
    np.testing.assert_allclose(rows(laid), wanted.values.reshape(TIMES, -1), rtol=1e-14)
    assert laid.weights is None
    np.testing.assert_allclose(laid.layout.spread(rows(laid), ("time",), unweighted=True)["t2m"], VALUES, rtol=1e-14)
    slopes = laid_out(field(), layout=laid.layout, unweighted=True)
    np.testing.assert_allclose(rows(slopes), VALUES.reshape(TIMES, -1) / laid.layout.weights, rtol=1e-14)


@pytest.mark.parametrize("chunks", [None, {"time": 2, "lon": 2}])
def test_rows_of_latitudes_have_their_cosine_as_a_weight(chunks: Any) -> None:
    x = field() if chunks is None else field().chunk(chunks)
    laid = laid_out(x, sample_dims=("time", "lat", "lon"), latitude="lat", weigh=True)
    wanted = np.broadcast_to(np.cos(np.deg2rad(LAT))[None, :, None], x.shape).ravel()
    np.testing.assert_allclose(np.asarray(laid.weights), wanted, rtol=1e-14)
    np.testing.assert_array_equal(rows(laid)[:, 0], VALUES.ravel())


def test_a_pole_has_no_weight_and_no_value_when_it_is_divided_out() -> None:
    x = xr.DataArray(np.ones((2, 3)), dims=("time", "lat"), coords={"lat": [-90.0, 0.0, 90.0]})
    laid = laid_out(x, latitude="lat")
    np.testing.assert_allclose(rows(laid)[0], [0, 1, 0], atol=1e-7)


@pytest.mark.parametrize("chunks", [None, {"time": 2}])
def test_columns_without_numbers_are_left_out_and_restored(chunks: Any) -> None:
    values = VALUES.copy()
    values[:, 0, :2] = np.nan  # land
    values[:3, 2, 1] = np.nan  # sea that is ice for three rows
    x = field(values) if chunks is None else field(values).chunk(chunks)
    laid = laid_out(x, drop_empty=True)
    wanted = np.delete(values.reshape(TIMES, -1), [0, 1], axis=1)
    np.testing.assert_array_equal(rows(laid), wanted)
    again = laid.layout.spread(rows(laid), ("time",))["t2m"]
    np.testing.assert_array_equal(again, values)
    assert (again.dims, again.attrs["units"], again.lat.attrs["units"]) == (x.dims, "K", "degrees_north")
    assert len(laid.layout.names) == laid.layout.width == 10
    assert laid.layout.names[0] == "t2m[lat=-60, lon=180]"
    assert laid_out(field(), drop_empty=True).layout.kept is None


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no column of X has a number in any row: all 12 are NaN"):
        lay_out(field(np.full_like(VALUES, np.nan)).chunk({"time": 2}), drop_empty=True)


def test_variables_are_columns_behind_one_another() -> None:
    data = xr.Dataset({"t2m": field(), "index": ("time", np.arange(7.0)), "crs": ((), 1)})
    data["t2m"].attrs["grid_mapping"] = "crs"
    laid = laid_out(data)
    np.testing.assert_array_equal(rows(laid), np.column_stack([VALUES.reshape(TIMES, -1), np.arange(7.0)]))
    assert laid.layout.names[-1] == "index"
    spread = laid.layout.spread(rows(laid), ("time",))
    np.testing.assert_array_equal(spread["t2m"], VALUES)
    np.testing.assert_array_equal(spread["index"], np.arange(7.0))
    other = xr.Dataset({"index": data["index"], "more": data["index"], "t2m": field().transpose("lon", "time", "lat")})
    np.testing.assert_array_equal(rows(laid_out(other, layout=laid.layout)), rows(laid))
    with pytest.raises(ValueError, match=r"the model was fitted on \['index'\] too"):
        lay_out(data[["t2m"]], layout=laid.layout)


def test_nothing_is_computed_until_rows_are_read() -> None:
    seen: list[tuple[Any, ...]] = []

    def read(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        seen.append(block_info[0]["chunk-location"])
        return block

    lazy = da.from_array(np.zeros((40, 3, 4)), chunks=(4, 3, 2)).map_blocks(read, meta=np.empty((0, 0, 0)))
    x = xr.DataArray(lazy, dims=("time", "lat", "lon"), coords={"lat": LAT})
    for options in ({"sample_dims": "time", "latitude": "lat"}, {"sample_dims": ("time", "lat"), "latitude": "lat"}):
        laid = laid_out(x, **options, weigh=True)
        assert seen == []
        assert isinstance(laid.reader, DaskReader)
        with dask.config.set(scheduler="synchronous"):
            laid.reader.array[:1].compute()
        assert {place[0] for place in seen} == {0}  # of ten blocks along time, one
        seen.clear()


def test_wide_chunks_are_cut_to_blocks_that_fit() -> None:
    lazy = da.zeros((2000, 100, 200), chunks=(1000, 10, 10))
    laid = laid_out(xr.DataArray(lazy, dims=("time", "lat", "lon")))
    assert isinstance(laid.reader, DaskReader)
    assert max(laid.reader.array.chunks[0]) * 100 * 200 * 8 <= 1 << 26


def test_groups_and_files(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    x, wanted = field(), VALUES.reshape(TIMES, -1)
    for version in (2, 3):
        for consolidated in (True, False):
            path = tmp_path / f"{version}{consolidated}.zarr"
            x.to_dataset().to_zarr(path, zarr_format=version, consolidated=False)
            if consolidated:
                zarr.consolidate_metadata(path)
            recwarn.clear()
            for source in (path, str(path), zarr.open_group(path, mode="r")):
                laid = laid_out(source)
                np.testing.assert_array_equal(rows(laid), wanted)
                assert set(laid.rows.coords) == {"time", "month"}
            assert not recwarn
    x[:3].to_netcdf(tmp_path / "a.nc")
    x[3:].to_netcdf(tmp_path / "b.nc")
    for files in (tmp_path / "*.nc", [tmp_path / "a.nc", tmp_path / "b.nc"]):
        laid = laid_out(files)
        assert isinstance(laid.reader, DaskReader)
        np.testing.assert_array_equal(rows(laid), wanted)
    x[3:, :2].to_netcdf(tmp_path / "c.nc")
    with pytest.raises(ValueError, match=r"X is 2 NetCDF files that do not go together .*open_mfdataset"):
        lay_out([tmp_path / "a.nc", tmp_path / "c.nc"])
    with pytest.raises(FileNotFoundError, match="matches no file"):
        lay_out(tmp_path / "z*.nc")


def test_files_without_coordinates_follow_in_their_order(tmp_path: Path) -> None:
    for i, part in enumerate(np.split(VALUES.reshape(TIMES, -1), [3])):
        xr.Dataset({"x": (("row", "column"), part)}).to_netcdf(tmp_path / f"{i}.nc")
    np.testing.assert_array_equal(rows(laid_out(tmp_path / "?.nc")), VALUES.reshape(TIMES, -1))


def test_packed_values_are_decoded_and_plain_matrices_are_read_as_they_lie(tmp_path: Path) -> None:
    matrix = xr.DataArray(np.arange(12.0).reshape(6, 2), dims=("time", "x"), name="m")
    matrix.to_dataset().to_zarr(tmp_path / "plain.zarr", zarr_format=3, consolidated=False)
    packed = {"m": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    matrix.to_dataset().to_zarr(tmp_path / "packed.zarr", encoding=packed, zarr_format=3, consolidated=False)
    assert isinstance(laid_out(tmp_path / "plain.zarr").reader, ZarrReader)
    for name in ("plain", "packed"):
        np.testing.assert_array_equal(rows(laid_out(tmp_path / f"{name}.zarr")), matrix)


def test_parquet_is_read_by_row_groups(tmp_path: Path) -> None:
    table = np.random.default_rng(1).standard_normal((30, 2))
    (tmp_path / "parts").mkdir()
    for i, part in enumerate((table[:17], table[17:])):
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"parts/{i}.parquet", row_group_size=5)
    for source in (tmp_path / "parts", sorted((tmp_path / "parts").iterdir()), tmp_path / "parts" / "*.parquet"):
        laid = laid_out(source)
        assert laid.layout.names == ["a", "b"]
        assert laid.reader.edges.tolist() == [0, 5, 10, 15, 17, 22, 27, 30]
        for start, stop in ((0, 30), (3, 4), (4, 18), (29, 30)):
            np.testing.assert_array_equal(laid.reader.read(start, stop), table[start:stop])
    assert Source({"x": laid.reader}).n == 30
    stamps = pa.table({"t": pd.date_range("2001", periods=3), "a": [1.0, 2.0, 3.0]})
    pq.write_table(stamps, tmp_path / "t.parquet")
    with pytest.raises(TypeError, match=r"Column 't' .* holds timestamp"):
        lay_out(tmp_path / "t.parquet")


def test_fields_of_the_rows() -> None:
    laid = laid_out(field(), sample_dims=("time", "lat", "lon"))
    y = field() * 2
    values, labels = lay_out_field(y.transpose("lon", "lat", "time"), laid.rows, "y")
    np.testing.assert_array_equal(values, 2 * VALUES.ravel())
    assert labels is not None
    with pytest.raises(ValueError, match=r"y has the dimensions \('time', 'lon'\).*broadcast_like"):
        lay_out_field(y[:, 0], laid.rows, "y")
    with pytest.raises(ValueError, match=r"y and X do not align along 'lat': .*xarray.align"):
        lay_out_field(y.assign_coords(lat=LAT + 1), laid.rows, "y")
    with pytest.raises(ValueError, match=r"y has 6 entries along 'time' and X has 7"):
        lay_out_field(y[1:], laid.rows, "y")


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no such dimension": (field(), {"sample_dims": "step"}, ValueError, r"names 'step', and X has the dimensions"),
    "a dimension twice": (field(), {"sample_dims": ("lat", "lat")}, ValueError, r"each once, such as \('time',\)"),
    "variables that do not align": (
        xr.Dataset({"t2m": field(), "height": (("lat", "lon"), VALUES[0])}),
        {"sample_dims": "time"},
        ValueError,
        r"variables of X do not align: 'height' has .*X.drop_vars\('height'\)",
    ),
    "time stamps as columns": (
        field().transpose("lat", "lon", "time"),
        {},
        ValueError,
        r"'t2m' of X has time stamps as columns: .*Give sample_dims=\('time',\)",
    ),
    "a variable of time stamps": (
        xr.Dataset({"valid": ("time", pd.date_range("2001", periods=3))}),
        {},
        TypeError,
        r"'valid' of X holds time stamps of dtype datetime64.*drop_vars\('valid'\), or give numbers of a unit",
    ),
    "text": (xr.Dataset({"name": ("time", ["a", "b"])}), {}, TypeError, "columns are real numbers: leave it out"),
    "an unknown latitude": (field(), {"latitude": "y"}, ValueError, r"latitude='y' is no coordinate of X, which has"),
    "a latitude in other units": (
        field().assign_coords(lat=LAT * 100),
        {"latitude": "lat"},
        ValueError,
        "must be degrees from -90 to 90; it is of dtype float64, from -6000.0 to 3000.0",
    ),
    "a latitude of rows and columns": (
        field().assign_coords(tilt=(("time", "lat"), np.zeros((7, 3)))),
        {"latitude": "tilt"},
        ValueError,
        "must belong to the rows alone, or to the columns alone",
    ),
    "no variables": (xr.Dataset(coords={"time": np.arange(3)}), {}, ValueError, "a Dataset without variables"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    x, options, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        lay_out(x, **options)


def test_columns_of_a_model_are_found_again_or_missed() -> None:
    layout = laid_out(field()).layout
    np.testing.assert_array_equal(
        rows(laid_out(field().transpose("lon", "lat", "time"), layout=layout)), VALUES.reshape(TIMES, -1)
    )
    with pytest.raises(ValueError, match=r"X has other columns than the fit: along 'lat' they are .*X.reindex or"):
        lay_out(field().assign_coords(lat=LAT + 1), layout=layout)
    with pytest.raises(ValueError, match=r"X has \{'lat': 2, 'lon': 4\} columns, and the model was fitted on"):
        lay_out(field()[:, :2], layout=layout)
    with pytest.raises(ValueError, match=r"but those of the columns: a single row is X.expand_dims\('time'\)"):
        lay_out(field()[0], layout=layout)
    pixels = laid_out(field(), sample_dims=("time", "lat", "lon")).layout
    series = xr.DataArray([1.0, 2.0], dims="station")  # a model of pixels, at other places
    np.testing.assert_array_equal(rows(laid_out(series, layout=pixels)), [[1.0], [2.0]])


names = st.sampled_from(["a", "b", "c", "d"])


@given(st.data())
def test_a_layout_is_saved_and_spreads_what_it_stacked(data: st.DataObject) -> None:
    dims = data.draw(st.lists(names, min_size=2, max_size=4, unique=True))
    sizes = [data.draw(st.integers(1, 3)) for _ in dims]
    values = np.arange(float(np.prod(sizes))).reshape(sizes)
    kinds = {
        "number": lambda n: np.linspace(-1, 1, n),
        "text": lambda n: [f"s{i}" for i in range(n)],
        "lag": lambda n: np.arange(n).astype("m8[h]"),
    }
    coords = {d: kinds[data.draw(st.sampled_from(list(kinds)))](n) for d, n in zip(dims, sizes, strict=True)}
    x = xr.DataArray(values, dims=dims, coords=coords, name="v", attrs={"units": "m"})
    count = data.draw(st.integers(1, len(dims)))
    laid = laid_out(x, sample_dims=dims[:count])
    layout = decode(encode(laid.layout), Layout)
    spread = layout.spread(rows(laid).reshape(*sizes[:count], -1), tuple(dims[:count]))["v"]
    np.testing.assert_array_equal(spread, values)
    assert spread.attrs == {"units": "m"}
    for dim in dims[count:]:
        np.testing.assert_array_equal(spread[dim].values.astype(str), x[dim].values.astype(str))
    assert len(set(layout.names)) == layout.size


def test_lazy_rows_have_the_same_identity_each_time(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[:, 0, 0] = np.nan
    field(values).to_dataset().to_zarr(tmp_path / "x.zarr", zarr_format=3, consolidated=False)
    options = {"sample_dims": "time", "latitude": "lat", "drop_empty": True}
    first, second = (laid_out(tmp_path / "x.zarr", **options).reader.identity for _ in range(2))
    assert first == second
    assert laid_out(tmp_path / "x.zarr", sample_dims="time").reader.identity != first


def test_a_group_at_a_url_does_not_load_until_its_last_byte() -> None:
    template = xr.Dataset(coords={"time": np.arange(6), "name": ("time", list("abcdef"))}, attrs={"title": "a result"})
    url = "memory://labelled/result.zarr"
    with create_dataset(
        url, "f", template, ("time", "c"), (6, 2), float, grid=Grid.of((6,), 4), attributes={"units": "1"}
    ) as rows:
        rows[0:4] = np.zeros((4, 2))
        with pytest.raises(FileNotFoundError):
            xr.open_zarr(url)
        with pytest.raises((FileNotFoundError, ValueError), match=r"unfinished|result.zarr"):
            open_zarr(url)
        rows[4:6] = np.ones((2, 2))
    written = xr.open_zarr(url)
    np.testing.assert_array_equal(written["f"], np.repeat([0, 0, 0, 0, 1, 1], 2).reshape(6, 2))
    assert written.name.values.tolist() == list("abcdef")
    assert (written.attrs["title"], written["f"].attrs) == ("a result", {"units": "1"})


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 200), st.integers(1, 3))
def test_chunks_are_ranges_of_rows_in_their_order(sizes: list[int], count: int, unit: int) -> None:
    grid = Grid.of(sizes, count, unit)
    numbers = np.arange(np.prod(sizes)).reshape(sizes)
    found = []
    for place in np.ndindex(*(-(-n // c) for n, c in zip(sizes, grid.chunk, strict=True))):
        part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, grid.chunk, strict=True))
        found.append((numbers[part].min(), numbers[part].max() + 1, numbers[part].size))
    assert [(a, b) for a, b, _ in found] == grid.ranges
    assert all(b - a == size for a, b, size in found)


@pytest.mark.parametrize("content", ["text", "half", "nothing"])
def test_a_damaged_file_is_named(content: str, tmp_path: Path) -> None:
    for i in range(2):
        x = xr.DataArray(np.zeros((4, 2)), {"time": np.arange(4) + 4 * i}, ("time", "x"), name="x")
        x.to_netcdf(tmp_path / f"{i}.nc", engine="h5netcdf")
    whole = (tmp_path / "1.nc").read_bytes()
    (tmp_path / "1.nc").write_bytes({"text": b"hello", "half": whole[: len(whole) // 2], "nothing": b""}[content])
    for value in (str(tmp_path / "*.nc"), tmp_path / "1.nc"):
        with pytest.raises(OSError, match=r"1\.nc cannot be read as NetCDF: the file is damaged or cut short"):
            lay_out(value)


def test_latitudes_in_radians_are_refused() -> None:
    x = xr.DataArray(np.ones((4, 2)), {"lat": ("x", [0.1, 1.2], {"units": "radian"})}, ("time", "x"))
    with pytest.raises(ValueError, match=r"latitude='lat' has the units 'radian', and degrees are wanted: give"):
        lay_out(x, latitude="lat")
    assert lay_out(x.assign_coords(lat=x.lat.assign_attrs(units="degrees_north")), latitude="lat") is not None


def test_dimensions_that_are_no_text_are_refused() -> None:
    with pytest.raises(TypeError, match="X has dimensions that are not named by text, such as 0: rename them"):
        lay_out(xr.DataArray(np.ones((4, 2)), dims=("time", 0)))
