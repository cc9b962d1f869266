"""A model as a Dataset, and fields from values of its functions, in the dimensions and units of the data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.operators import Cross
from tests.common import assert_close, reloaded, unreliable

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")]


def field(missing: bool = True) -> xr.DataArray:
    """Three standing waves on a grid with a mean of 15 degrees and a corner of land."""
    rng = np.random.default_rng(0)
    waves = rng.standard_normal((150, 3)) * [3, 2, 1] @ rng.standard_normal((3, 56))
    values = 15 + waves.reshape(150, 7, 8)
    if missing:
        values[:, 0, :3] = np.nan
    time = np.datetime64("2000-01-01", "ns") + np.arange(150) * np.timedelta64(30, "D")
    coords = {"time": time, "lat": np.linspace(-60, 60, 7), "lon": np.arange(0.0, 360, 45)}
    return xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst", attrs={"units": "degC"})


def fitted(data: Any) -> dsp.SpectralDecomposition:
    rows = dsp.Rows(data, sample_dims=("time",), latitude="lat", on_invalid="skip")
    return dsp.EOF(3).fit(rows)


def test_regression_maps_are_those_of_least_squares() -> None:
    data = field()
    model = fitted(data)
    found, scores = model.to_xarray(data), model.transform(data)
    wanted = xr.cov(scores, data, dim="time", ddof=0) / scores.var("time")
    np.testing.assert_allclose(found.components, wanted.transpose("mode", "lat", "lon"), atol=1e-10)
    more = model.to_xarray(data, details=True)
    xr.testing.assert_allclose(more.sst_mean.drop_attrs(), data.mean("time").drop_attrs())
    assert found.components.attrs["units"] == "degC"
    assert np.isnan(found.components[:, 0, :3]).all()
    weights = np.cos(np.radians(data.lat))
    ratio = (weights * wanted**2).sum(("lat", "lon")) / (weights * data.var("time")).sum()
    assert_close(found.explained_variance_ratio.values, ratio.values, 1e-9)
    for values, wanted in ((found.scores.T, scores), (more.reliable, model.reliable_)):
        np.testing.assert_array_equal(values, wanted)


def test_netcdf_has_the_names_of_xeofs_and_units(tmp_path: Path) -> None:
    """What a script for xeofs reads, attributes of all variables, and a trend per decade."""
    data = field()
    decades = (data.time - data.time[0]) / np.timedelta64(1, "D") / 3652.425
    rows = dsp.Rows(data + 2 * decades, sample_dims="time", latitude="lat", detrend=1, on_invalid="skip")
    rows = replace(rows, data=rows.data.assign_attrs(data.attrs))
    model = dsp.EOF(3).fit(rows)
    model.to_xarray(rows).to_netcdf(tmp_path / "eof.nc")
    with xr.open_dataset(tmp_path / "eof.nc") as found:
        ends = [f"explained_variance{kind}{end}" for kind in ("", "_ratio") for end in ("", "_lower", "_upper")]
        assert sorted(found.data_vars) == sorted([*ends, "components", "components_error", "scores", "trend"])
        assert all("long_name" in found[name].attrs for name in found.data_vars)
        assert all("units" in found[name].attrs for name in found.data_vars)
        assert found.trend.attrs["units"] == "degC per decade"
        years = (data.time - data.time[0]) / np.timedelta64(1, "D") / 3652.425
        slope = (data + 2 * decades).assign_coords(time=years.values).polyfit("time", 1).polyfit_coefficients[0]
        np.testing.assert_allclose(found.trend, slope, rtol=1e-6)
        assert found.scores.dims == ("mode", "time")
        assert found.mode.values.tolist() == [1, 2, 3]
        first, share = found.components.sel(mode=1), found.explained_variance_ratio.sel(mode=1)
        assert found.attrs["verdict"].rstrip(".") in repr(model)
        weights = np.cos(np.radians(found.lat))
        total = float((weights * first**2).sum() / found.explained_variance.sel(mode=1))
        assert total == pytest.approx(1, rel=1e-9)
        assert found.explained_variance_ratio_lower[0] < share < found.explained_variance_ratio_upper[0]


def test_rows_of_a_pair_are_those_of_the_fit() -> None:
    """The functions are those at the first view, prepared as in the fit."""
    data = field(missing=False)
    pair = dsp.Rows((data, data[..., ::-1] ** 2), sample_dims=("time",), standardize=True)
    model = dsp.SpectralDecomposition(Cross(center=True), Landmarks("linear"), n_components=2).fit(pair)
    wanted = model.transform(dsp.Rows(data, sample_dims=("time",)))
    for rows in (pair, pair.data):
        np.testing.assert_array_equal(model.to_xarray(rows).eigenfunction, wanted)


def test_fields_come_back_lazily_and_from_files(tmp_path: Any) -> None:
    """In all components: the field itself; land stays empty."""
    data = field()
    model = fitted(data)
    lazy = model.inverse_transform(model.transform(data.chunk({"time": 40})))
    assert lazy.chunks[0] == (150,)  # small chunks are taken together
    model.transform(data.chunk({"time": 40}), out=tmp_path / "f.zarr")
    written = model.inverse_transform(xr.open_zarr(tmp_path / "f.zarr").scores)
    for found in (lazy, model.inverse_transform(model.transform(data)), written):
        assert (found.dims, found.name, found.attrs) == (data.dims, "sst", data.attrs)
        xr.testing.assert_allclose(found.compute(), data, atol=1e-9)
    with pytest.raises(ValueError, match="shape"):
        model.inverse_transform(tmp_path / "f.zarr")


X = np.random.default_rng(0).standard_normal((400, 3)) * [1, 2, 0.5] + [5, 0, -3]
BASIS = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 25)
MODEL = dsp.SpectralDecomposition(basis=BASIS, n_components=6, random_state=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constant", [True, False])
def test_it_is_least_squares(constant: bool, weighted: bool) -> None:
    """About the means, whether or not the basis holds the constant; landmarks' own rows are counted."""
    w = np.random.default_rng(1).uniform(0.5, 2, 400) if weighted else np.ones(400)
    model, kept = clone(MODEL).set_params(basis__constant=constant), [0, 2] if constant else [0, 1, 2]
    rows = dsp.Rows(X, standardize=True, columns=kept) if constant else X
    model.fit(rows, sample_weight=w if weighted else None)
    f = model.transform(X)
    design = np.column_stack([np.ones(400), f[:, 1:] if constant else f])
    wanted = design @ np.linalg.lstsq(design * np.sqrt(w)[:, None], X * np.sqrt(w)[:, None], rcond=1e-8)[0]
    found = model.inverse_transform(f)
    assert_close(found[:, kept], wanted[:, kept], 1e-9)
    assert np.isnan(found).all(axis=0).tolist() == [k not in kept for k in range(3)]


def test_single_missing_values_in_a_field(tmp_path: Path) -> None:
    data = field()
    rng = np.random.default_rng(1)
    gappy = data.where(rng.uniform(size=data.shape) > 0.1)
    rows = dsp.Rows(gappy, sample_dims="time", latitude="lat", on_invalid="pairwise")
    model = dsp.EOF(3).fit(rows)
    assert model.layout_.width == 53  # land is left out
    whole = fitted(data)
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=0.1)
    found, wanted = model.transform(rows), whole.transform(data)
    assert np.all(np.abs(np.diag(np.corrcoef(found.T, wanted.T)[:3, 3:])) > 0.98)
    dataset = model.to_xarray(rows)
    assert model.to_xarray(rows, details=True).clipped_share.item() == model.moments_.clipped > 0
    assert dataset.components.shape == (3, 7, 8)
    gappy.to_netcdf(tmp_path / "sst.nc")
    lazy = dsp.Rows(tmp_path / "sst.nc", sample_dims="time", latitude="lat", on_invalid="pairwise")
    xr.testing.assert_allclose(reloaded(model).transform(lazy), found)
