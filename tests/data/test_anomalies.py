"""Anomalies of fields in time, against xarray's groups, numpy's polynomials and least squares by numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.data.anomalies import GROUPS
from tests.common import unreliable

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")


def field(n: int = 300, freq: str = "MS", seed: int = 0) -> xr.DataArray:
    """Noise about a yearly cycle and a trend at 280, in two dimensions."""
    times = pd.date_range("2001-03-01", periods=n, freq=freq)
    rng = np.random.default_rng(seed)
    phase, years = 2 * np.pi * times.day_of_year.to_numpy() / 365, np.arange(n) / n
    parts = (np.cos(phase), 3 * years, np.ones(n))
    values = 280 + sum(np.multiply.outer(part, rng.standard_normal((2, 3))) for part in parts)
    values += rng.standard_normal(values.shape)
    coords = {"time": times, "lat": [-30.0, 50.0], "lon": [0.0, 90.0, 180.0]}
    return xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst")


def fitted(data: Any, **options: Any) -> dsp.SpectralDecomposition:
    rows = dsp.Rows(data, **{"sample_dims": "time", **options})
    return dsp.EOF(3).fit(rows)


def variances(anomalies: Any) -> Any:
    z = np.asarray(anomalies).reshape(len(anomalies), -1)
    return np.linalg.eigvalsh(np.cov(z.T, ddof=0))[:2:-1]


def days(data: xr.DataArray) -> Any:
    return (data.time.values - np.datetime64("2001-03-01")) / np.timedelta64(10_000, "D")


@unreliable
@pytest.mark.parametrize("degree", [1, 3, 8])
def test_trends_are_those_of_polyfit(degree: int) -> None:
    data = field()
    t, z = days(data) - days(data).mean(), data.values.reshape(300, -1)
    trend = np.polynomial.polynomial.polyfit(t, z, degree)
    wanted = z - np.polynomial.polynomial.polyval(t, trend).T
    np.testing.assert_allclose(fitted(data, detrend=degree).eigenvalues_, variances(wanted), rtol=1e-9)


@unreliable
def test_means_and_trend_are_fitted_together() -> None:
    data = field().where(lambda x: x.time.dt.year < 2020, drop=True)
    t, z = days(data), data.values.reshape(len(data), -1)
    design = np.column_stack([*(data.time.dt.month.values == m for m in range(1, 13)), t, t**2])
    wanted = z - design @ np.linalg.lstsq(design, z)[0]
    model = fitted(data, anomaly="month", detrend=2)
    np.testing.assert_allclose(model.eigenvalues_, variances(wanted), rtol=1e-10)
    dataset = model.to_xarray(details=True)
    scaled = (data.time.values - np.datetime64(0, "D")) / np.timedelta64(1, "D") - dataset.sst_trend.center
    scaled = scaled / dataset.sst_trend.half
    assert (scaled.min(), scaled.max()) == (-1, 1)
    powers = xr.DataArray([scaled, scaled**2], dims=("degree", "time"))
    month = dataset.sst_climatology.sel(month=data.time.dt.month)
    baseline = month + (dataset.sst_trend * powers).sum("degree")
    np.testing.assert_allclose(data - baseline.transpose("time", ...), wanted.reshape(data.shape), atol=1e-9)


@pytest.mark.one_in(3)
@unreliable
@pytest.mark.parametrize("start", ["0850-01-01", "3000-01-01"])
@pytest.mark.parametrize("unit", ["s", "us"])
def test_times_outside_the_range_of_nanoseconds(start: str, unit: str) -> None:
    data = field(1200)
    far = data.assign_coords(time=np.datetime64(start, unit) + (data.time.values - data.time.values[0]).astype("m8[s]"))
    for asked in ({"detrend": 1}, {"detrend": 3}):
        np.testing.assert_allclose(fitted(far, **asked).eigenvalues_, fitted(data, **asked).eigenvalues_, rtol=1e-8)
    groups = far.groupby("time.month")
    wanted = variances((groups - groups.mean()).transpose("time", ...))
    np.testing.assert_allclose(fitted(far, anomaly="month").eigenvalues_, wanted, rtol=1e-11)


@pytest.mark.one_in(5)
@unreliable
@pytest.mark.parametrize("calendar", [None, "noleap", "360_day", "julian", "standard"])
@pytest.mark.parametrize("anomaly", GROUPS)
def test_anomalies_and_trends_are_those_of_xarray(calendar: str | None, anomaly: str) -> None:
    """Of times of numpy, and of cftime."""
    step = "31h" if anomaly in ("dayofyear", "hour") else "MS"
    data = field(1200, step)
    if calendar is not None:
        times = xr.date_range("0850-01-01", periods=1200, freq=step, calendar=calendar, use_cftime=True)
        data = data.assign_coords(time=times)
    groups, model = data.groupby(f"time.{anomaly}"), fitted(data, anomaly=anomaly)
    wanted = (groups - groups.mean()).transpose("time", ...)
    np.testing.assert_allclose(model.eigenvalues_, variances(wanted), rtol=1e-11)
    xr.testing.assert_allclose(model.to_xarray(details=True).sst_climatology.drop_attrs(), groups.mean().drop_attrs())
    trend = data - xr.polyval(data.time, data.polyfit("time", 1).polyfit_coefficients)
    model = fitted(data, detrend=1)
    np.testing.assert_allclose(model.eigenvalues_, variances(trend), rtol=1e-8)
    if calendar not in (None, "standard"):  # whose dates are those of datetime64
        with pytest.raises(ValueError, match=f"calendar '{calendar}'"):
            model.transform(field())


@unreliable
def test_a_leap_day_that_the_fit_had_not_has_the_mean_of_the_day_before() -> None:
    times = pd.date_range("2001-01-01", "2004-12-31", freq="D")
    data = field(len(times), "D").assign_coords(time=times)
    rows = dsp.Rows(data.sel(time=slice("2003")), anomaly="dayofyear")
    model = dsp.EOF(6).fit(rows)
    last = data.sel(time=["2004-12-31"])
    as_before = last - model.to_xarray(details=True).sst_climatology.sel(dayofyear=365, drop=True)
    found = model.inverse_transform(model.transform(last))
    np.testing.assert_allclose(found, as_before, atol=1e-8)
    later = fitted(data.sel(time=slice("2003")), anomaly="dayofyear").update(data)
    assert later.moments_.count == len(times)
    winter = fitted(data[data.time.dt.month < 3], anomaly="dayofyear")
    with pytest.raises(ValueError, match="times of the dayofyear 61"):
        winter.transform(data[:90])


@unreliable
@pytest.mark.parametrize("samples", [("member", "time"), ("time", "member")])
def test_members_share_the_baseline_of_their_times(samples: tuple[str, ...]) -> None:
    data = xr.concat([field(seed=k) for k in range(3)], "member")
    model = fitted(data.chunk(time=50), sample_dims=samples, anomaly="month", detrend=1)
    z, t = data.values.reshape(900, -1), np.tile(days(data), 3)
    design = np.column_stack([*(np.tile(data.time.dt.month.values, 3) == m for m in range(1, 13)), t])
    np.testing.assert_allclose(model.eigenvalues_, variances(z - design @ np.linalg.lstsq(design, z)[0]), rtol=1e-9)
    assert model.transform(data.isel(member=1)).dims == ("time", "mode")


@unreliable
def test_a_loaded_model_has_the_baseline_of_the_fit_and_an_update_keeps_it(tmp_path: Path) -> None:
    data = field()
    model = fitted(data[:240], anomaly="month", detrend=1, latitude="lat")
    model.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    found = again.transform(data)
    np.testing.assert_allclose(found[100:103], model.transform(data[100:103]), atol=1e-12)
    np.testing.assert_array_equal(again.to_xarray(data).scores, found.T)
    np.testing.assert_array_equal(model.transform(dsp.Rows(data, anomaly="month", detrend=1)), found)
    baseline = model.to_xarray(details=True).sst_climatology
    assert again.update(data).moments_.count == 300
    np.testing.assert_array_equal(again.to_xarray(details=True).sst_climatology, baseline)


@unreliable
def test_rows_to_which_the_baseline_does_not_apply_are_refused() -> None:
    data = field()
    winter = data.where(data.time.dt.season == "DJF", drop=True)
    model = fitted(winter, anomaly="month")
    season, trend = dsp.Rows(winter, anomaly="season"), dsp.Rows(data, detrend=1)
    for other, call in ((model, data), (model, winter.values.reshape(-1, 6)), (model, season), (fitted(data), trend)):
        with pytest.raises(ValueError, match=r"month|labels|anomaly|detrend"):
            other.score(call)
    with pytest.raises(ValueError, match="month 3"):
        dsp.EOF().fit(dsp.Rows(data, anomaly="month"), sample_weight=(data.time.dt.month != 3).astype(float))
