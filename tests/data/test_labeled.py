"""Labeled data as rows and columns: stacked in order, lazily, masked, weighted, and labeled again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.data.labeled import StackedRows, stack_field, stack_rows
from daskspectral.data.layout import Layout
from daskspectral.data.readers import DaskReader
from daskspectral.data.times import are_times
from daskspectral.registry import decode, encode
from tests.common import unreliable

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


def rows(stacked: StackedRows | None) -> np.ndarray:
    assert stacked is not None
    n = stacked.reader.shape[0]
    if isinstance(stacked.reader, DaskReader):
        return np.asarray(stacked.reader.array.compute())
    return stacked.reader.read(0, n)


def laid_out(x: Any, **options: Any) -> StackedRows:
    stacked = stack_rows(x, **options)
    assert stacked is not None
    return stacked


@unreliable
def test_rows_that_have_times_are_held_out_in_blocks() -> None:
    x, times = np.random.default_rng(0).standard_normal((480, 6)), pd.date_range("2000", periods=480, freq="MS")
    field = xr.DataArray(x.reshape(480, 2, 3), {"time": times}, ("time", "lat", "lon"))
    model = dsp.EOF(2, random_state=0)

    def rule(data: Any, folds: Any = 10) -> str:
        return str(model.set_params(folds=folds).fit(data).moments_.folds.rule)

    anomalies = dsp.Rows(field.chunk(time=100), anomaly="month")
    several = [dsp.Rows(field, sample_dims=dims) for dims in (("time", "lat"), ("lat", "time"))]
    for data in (field, anomalies, *several, pd.DataFrame(x, index=times)):
        assert rule(data) == "blocks"
    for data in (x, field.drop_vars("time"), pd.DataFrame(x)):
        assert rule(data) == "hash"
    assert rule(field, "random") == "random"
    assert are_times(np.array([SimpleNamespace(calendar="noleap")]))  # of cftime
    assert not are_times(np.array(["2000-01"], dtype=object))


@pytest.mark.parametrize("samples", [("time",), ("lon",), ("time", "lat"), ("lat", "time"), ("lon", "time", "lat")])
def test_dimensions_are_stacked_in_order(samples: tuple[str, ...]) -> None:
    x = field() if "time" in samples else field().drop_vars(["time", "month"])
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


def test_variables_are_columns_behind_one_another() -> None:
    data = xr.Dataset({"t2m": field(), "index": ("time", np.arange(7.0)), "crs": ((), 1)})
    data["t2m"].attrs["grid_mapping"] = "crs"
    stacked = laid_out(data)
    np.testing.assert_array_equal(rows(stacked), np.column_stack([VALUES.reshape(TIMES, -1), np.arange(7.0)]))
    spread = stacked.layout.spread(rows(stacked), ("time",))
    np.testing.assert_array_equal(spread["t2m"], VALUES)
    np.testing.assert_array_equal(spread["index"], np.arange(7.0))
    other = xr.Dataset({"index": data["index"], "more": data["index"], "t2m": field().transpose("lon", "time", "lat")})
    np.testing.assert_array_equal(rows(laid_out(other, layout=stacked.layout)), rows(stacked))
    with pytest.raises(ValueError, match="index"):
        stack_rows(data[["t2m"]], layout=stacked.layout)


def test_groups_and_files(tmp_path: Path) -> None:
    x, wanted = field(), VALUES.reshape(TIMES, -1)
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        x.to_dataset().to_zarr(path, zarr_format=version, consolidated=version == 2)
        for source in (str(path), zarr.open_group(path, mode="r")):
            stacked = laid_out(source)
            np.testing.assert_array_equal(rows(stacked), wanted)
            assert set(stacked.rows.coords) == {"time", "month"}
    for name, part in (("a", x[:3]), ("b", x[3:]), ("c", x[3:, :2])):
        part.to_netcdf(tmp_path / f"{name}.nc")
    np.testing.assert_array_equal(rows(laid_out(tmp_path / "[ab].nc")), wanted)
    with pytest.raises(OSError, match=r"c\.nc"):
        stack_rows([tmp_path / "a.nc", tmp_path / "c.nc"])
    (tmp_path / "b.nc").write_bytes((tmp_path / "b.nc").read_bytes()[:900])
    with pytest.raises(OSError, match=r"b\.nc"):
        stack_rows(tmp_path / "[ab].nc")


def test_parquet_is_read_by_row_groups(tmp_path: Path) -> None:
    table = np.random.default_rng(1).standard_normal((30, 2))
    for i, part in enumerate((table[:17], table[17:])):
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"{i}.parquet", row_group_size=5)
    for source in (tmp_path, sorted(tmp_path.iterdir()), tmp_path / "*.parquet"):
        stacked = laid_out(source)
        assert stacked.layout.names == ["a", "b"]
        assert stacked.reader.edges.tolist() == [0, 5, 10, 15, 17, 22, 27, 30]
        for start, stop in ((0, 30), (3, 4), (4, 18), (29, 30)):
            np.testing.assert_array_equal(stacked.reader.read(start, stop), table[start:stop])


def test_fields_of_the_rows_are_aligned_by_coordinates() -> None:
    stacked, y = laid_out(field(), sample_dims=("time", "lat", "lon")), field() * 2
    found = stack_field(y.transpose("lon", "lat", "time"), stacked.rows, "y")[0]
    np.testing.assert_array_equal(found, y.values.ravel())
    x = field().stack(z=("time", "lon")).transpose("z", "lat").reset_index("z")
    weight = xr.DataArray(np.arange(28.0), dims="z", coords={"time": x.time, "lon": x.lon})
    others = laid_out(x, sample_dims="z")
    np.testing.assert_array_equal(stack_field(weight, others.rows, "weight")[0], np.arange(28.0))
    for wrong, layout in ((y[:, 0], stacked), (y.assign_coords(lat=LAT + 1), stacked), (weight[::-1], others)):
        with pytest.raises(ValueError, match=r"^y "):
            stack_field(wrong, layout.rows, "y")


@given(st.data())
def test_a_layout_is_saved_and_spreads_what_it_stacked(data: st.DataObject) -> None:
    dims = data.draw(st.lists(st.sampled_from("abcd"), min_size=2, max_size=4, unique=True))
    sizes = [data.draw(st.integers(1, 3)) for _ in dims]
    values = np.arange(float(np.prod(sizes))).reshape(sizes)
    hour = np.timedelta64(1, "h")
    kinds = [lambda n: np.linspace(-1, 1, n), lambda n: [f"s{i}" for i in range(n)], lambda n: np.arange(n) * hour]
    coords = {d: data.draw(st.sampled_from(kinds))(n) for d, n in zip(dims, sizes, strict=True)}
    x = xr.DataArray(values, dims=dims, coords=coords, name="v", attrs={"units": "m"})
    count = data.draw(st.integers(1, len(dims)))
    stacked = laid_out(x, sample_dims=dims[:count])
    layout = decode(encode(stacked.layout), Layout)
    spread = layout.spread(rows(stacked).reshape(*sizes[:count], -1), tuple(dims[:count]))["v"]
    np.testing.assert_array_equal(spread, values)
    assert spread.attrs == {"units": "m"}
    for dim in dims[count:]:
        np.testing.assert_array_equal(spread[dim].values.astype(str), x[dim].values.astype(str))
    assert len(set(layout.names)) == layout.size


# columns and rows without an index, with their places in coordinates


def test_columns_are_those_of_the_fit_to_rounding_and_their_gaps() -> None:
    places = np.append(np.linspace(-60.1, 60.7, 11), np.nan)
    x = field().stack(z=("lat", "lon")).reset_index("z").assign_coords(lat=("z", places))
    stacked = laid_out(x)
    rounded = x.assign_coords(lat=("z", places.astype(np.float32)))
    np.testing.assert_array_equal(rows(laid_out(rounded, layout=stacked.layout)), rows(stacked))
    turned = x.isel(z=[0, 4, 2, 3, 1, *range(5, 12)])
    np.testing.assert_array_equal(rows(laid_out(turned, layout=stacked.layout)), rows(stacked))
    with pytest.raises(ValueError, match="'lat'"):
        stack_rows(x.assign_coords(lat=("z", np.append(places[:-1], 0))), layout=stacked.layout)
