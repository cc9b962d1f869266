"""Anomalies of fields in time, against xarray's groups, numpy's polynomials and least squares by numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.data.anomalies import GROUPS
from daskspectral.operators import Covariance, Cross
from tests.common import doubtful

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")
SPAN = 1e4  # days


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
    return dsp.SpectralDecomposition(Covariance(), n_components=3).fit(rows)


def variances(anomalies: Any) -> Any:
    z = np.asarray(anomalies).reshape(len(anomalies), -1)
    return np.linalg.eigvalsh(np.cov(z.T, ddof=0))[:2:-1]


def days(data: xr.DataArray) -> Any:
    return (data.time.values - np.datetime64("2001-03-01")) / np.timedelta64(1, "D") / SPAN


@doubtful
@pytest.mark.parametrize("group", GROUPS)
def test_anomalies_are_those_of_xarray(group: str) -> None:
    data = field(1200, "31h") if group in ("dayofyear", "hour") else field()
    model = fitted(data, anomaly=group)
    groups = data.groupby(f"time.{group}")
    wanted = groups - groups.mean()
    np.testing.assert_allclose(model.eigenvalues_, variances(wanted.transpose("time", ...)), rtol=1e-11)
    xr.testing.assert_allclose(model.to_xarray().sst_climatology.drop_attrs(), groups.mean().drop_attrs())


@doubtful
@pytest.mark.parametrize("degree", [1, 3, 8])
def test_trends_are_those_of_polyfit(degree: int) -> None:
    data = field()
    t, z = days(data) - days(data).mean(), data.values.reshape(300, -1)
    trend = np.polynomial.polynomial.polyfit(t, z, degree)
    wanted = z - np.polynomial.polynomial.polyval(t, trend).T
    np.testing.assert_allclose(fitted(data, detrend=degree).eigenvalues_, variances(wanted), rtol=1e-9)


@doubtful
def test_means_and_trend_are_fitted_together() -> None:
    data = field().where(lambda x: x.time.dt.year < 2020, drop=True)
    t, z = days(data), data.values.reshape(len(data), -1)
    design = np.column_stack([*(data.time.dt.month.values == m for m in range(1, 13)), t, t**2])
    wanted = z - design @ np.linalg.lstsq(design, z)[0]
    model = fitted(data, anomaly="month", detrend=2)
    np.testing.assert_allclose(model.eigenvalues_, variances(wanted), rtol=1e-10)
    dataset = model.to_xarray()
    scaled = (data.time.values - np.datetime64(0, "D")) / np.timedelta64(1, "D") - dataset.sst_trend.centre
    scaled = scaled / dataset.sst_trend.half
    assert (scaled.min(), scaled.max()) == (-1, 1)
    powers = xr.DataArray([scaled, scaled**2], dims=("degree", "time"))
    month = dataset.sst_climatology.sel(month=data.time.dt.month)
    baseline = month + (dataset.sst_trend * powers).sum("degree")
    np.testing.assert_allclose(data - baseline.transpose("time", ...), wanted.reshape(data.shape), atol=1e-9)


@doubtful
def test_each_column_has_the_means_of_what_is_present() -> None:
    data = field()
    gappy = data.where(np.random.default_rng(1).uniform(size=data.shape) > 0.2)
    model = fitted(gappy, anomaly="month", detrend=1, on_invalid="pairwise")
    for i, column in enumerate(gappy.values.reshape(300, -1).T):
        here, month, t = np.isfinite(column), data.time.dt.month.values, days(data)
        design = np.column_stack([*(month == m for m in range(1, 13)), t])
        rest = column[here] - design[here] @ np.linalg.lstsq(design[here], column[here])[0]
        variance = model.moments_.mean("gram")[i + 1, i + 1] - model.moments_.mean("first")[i + 1] ** 2
        assert variance == pytest.approx(np.var(rest), rel=1e-9)
    whole = fitted(data.where(data.time.dt.year != 2010), anomaly="month", on_invalid="skip")
    groups = data.where(data.time.dt.year != 2010, drop=True).groupby("time.month")
    np.testing.assert_allclose(whole.eigenvalues_, variances((groups - groups.mean()).values), rtol=1e-11)


@doubtful
def test_new_times_have_the_baseline_of_the_fit(tmp_path: Path) -> None:
    data, asked = field(), {"anomaly": "month", "detrend": 1, "latitude": "lat"}
    model = fitted(data[:240], **asked)
    model.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    shown = again.to_xarray(data)
    found = again.transform(data)
    z = model.inverse_transform(model.transform(data[100:103]))
    np.testing.assert_allclose(found[100:103], model.transform(data)[100:103], atol=1e-12)
    np.testing.assert_array_equal(shown.eigenfunction, found)
    later = fitted(data[:240], **asked).update(data)
    assert later.moments_.count == 300
    np.testing.assert_array_equal(later.to_xarray().sst_climatology, model.to_xarray().sst_climatology)
    assert abs(z.mean()) < 2  # anomalies, not degrees
    assert "less the mean of each month and a trend of degree 1" in model._summary().text(details=True)
    same = model.transform(dsp.Rows(data, **{"anomaly": "month", "detrend": 1}))
    np.testing.assert_array_equal(same, found)


@doubtful
@pytest.mark.parametrize("kind", ["chunks", "zarr", "netcdf"])
def test_containers_do_not_matter(kind: str, tmp_path: Path) -> None:
    data, asked = field(), {"anomaly": "season", "detrend": 1, "latitude": "lat"}
    whole = fitted(data, **asked)
    other: Any = data.chunk({"time": 37, "lon": 2})
    if kind == "zarr":
        other.to_dataset().to_zarr(tmp_path / "x.zarr", consolidated=False)
        other = tmp_path / "x.zarr"
    if kind == "netcdf":
        data.to_netcdf(tmp_path / "x.nc")
        other = tmp_path / "x.nc"
    model = fitted(other, **asked)
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.transform(other).values, whole.transform(data).values, atol=1e-9)


@doubtful
def test_views_have_baselines_of_their_own() -> None:
    x, y = field(seed=0), field(seed=1) + 40
    linear = dsp.basis.Landmarks(dsp.kernels.Linear())
    options: dict[str, Any] = {"basis": linear, "n_components": 2, "solver": dsp.solvers.Cut()}
    rows = dsp.Rows((x, y), sample_dims="time", anomaly="month")
    model = dsp.SpectralDecomposition(Cross(center=True), **options).fit(rows)
    parts = [view.groupby("time.month") - view.groupby("time.month").mean() for view in (x, y)]
    before = tuple(part.transpose("time", ...).values.reshape(300, -1) for part in parts)
    wanted = dsp.SpectralDecomposition(Cross(center=True), **options).fit(before)
    np.testing.assert_allclose(model.singular_values_, wanted.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(model.transform_right(y).values, wanted.transform_right(before[1]), atol=1e-9)


def test_times_that_do_not_tell_are_refused_before_anything_is_read() -> None:
    data = field()

    def unread(x: Any) -> Any:
        raise AssertionError("read")

    lazy = xr.apply_ufunc(unread, data.chunk(), dask="parallelized", output_dtypes=[float])
    with pytest.raises(ValueError, match=r"with times \(datetime64\) as its coordinate"):
        fitted(lazy.assign_coords(time=np.arange(300)), anomaly="month")
    with pytest.raises(ValueError, match="along one dimension of rows"):
        fitted(lazy, anomaly="month", sample_dims=("time", "lat"))
    with pytest.raises(ValueError, match="300 times, and the means of 1 groups"):
        fitted(lazy.assign_coords(time=[data.time.values[0]] * 300), detrend=1)
    with pytest.raises(ValueError, match="12 times, and the means of 12 groups"):
        fitted(lazy[:12], anomaly="month")
    with pytest.raises(ValueError, match="without labels"):
        fitted(data.values.reshape(300, -1), anomaly="month", sample_dims=None)
    with pytest.raises(ValueError, match="anomaly must be None or 'month'"):
        dsp.Rows(data, anomaly="moon")
    for degree in (0, 11, True, 1.5):
        with pytest.raises(ValueError, match="detrend"):
            dsp.Rows(data, detrend=degree)
    several = dsp.Rows([data, data], sample_dims="time", anomaly="month")
    with pytest.raises(ValueError, match="of one series of times"):
        dsp.SpectralDecomposition(dsp.operators.Transfer()).fit(several)


@doubtful
def test_rows_to_which_the_baseline_does_not_apply_are_refused() -> None:
    data = field()
    winter = data.where(data.time.dt.season == "DJF", drop=True)
    model = fitted(winter, anomaly="month")
    with pytest.raises(ValueError, match=r"times of the month 3, and the fit had none.*it had 1, 2, 12"):
        model.transform(data)
    with pytest.raises(ValueError, match="rows without labels have no times"):
        model.transform(winter.values.reshape(len(winter), -1))
    with pytest.raises(ValueError, match="anomaly='season' is not that of the fit, month"):
        model.transform(dsp.Rows(winter, anomaly="season"))
    with pytest.raises(ValueError, match="is not that of the fit, None"):
        fitted(data).score(dsp.Rows(data, detrend=1))


def test_plan_reads_nothing() -> None:
    data = field()
    rows = dsp.Rows(data.chunk({"time": 50}), sample_dims="time", anomaly="month")
    assert dsp.SpectralDecomposition(Covariance(), n_components=2).plan(rows).ranges.ranges[-1][1] == 300
