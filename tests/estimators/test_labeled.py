"""Estimators of labeled data: the same as of the rows and columns stacked by hand, with labels given back."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Matern
from daskspectral.operators import Transfer
from tests.common import unreliable
from tests.estimators.common import hermite, make, model

TIMES, LAT, LON = 120, np.array([-60.0, 0.0, 40.0]), np.array([0.0, 90.0])
rng = np.random.default_rng(0)
VALUES = (rng.standard_normal((TIMES, 2)) @ rng.standard_normal((2, 6))).reshape(TIMES, 3, 2)
VALUES += 0.3 * rng.standard_normal(VALUES.shape)
FLAT = VALUES.reshape(TIMES, -1)
ROOTS = np.repeat(np.sqrt(np.cos(np.deg2rad(LAT))), 2)
LABELS = xr.DataArray(np.arange(TIMES) // 30, {"time": pd.date_range("2001-01-01", periods=TIMES)}, ("time",))

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")]


def field(values: np.ndarray = VALUES) -> xr.DataArray:
    coords = {"time": LABELS.time.values, "lat": ("lat", LAT, {"units": "degrees_north"}), "lon": LON}
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords=coords, name="t2m", attrs={"units": "K"})


ESTIMATORS: dict[str, Any] = {
    "spectral": model(),
    "sdp": dsp.SDPEmbedding(4.0, random_state=0, solver=dsp.solvers.BurerMonteiro(max_passes=500)),
    "learned": dsp.KernelEmbedding(Matern(1.5, 3.0), regularization=1e-2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_are_those_stacked_and_weighted_by_hand(name: str) -> None:
    wanted = clone(ESTIMATORS[name]).fit(FLAT * ROOTS).transform(FLAT * ROOTS)
    est = clone(ESTIMATORS[name]).fit(Rows(field(), sample_dims="time", latitude="lat"))
    for x in (field().transpose("lon", "time", "lat"), field().to_dataset().chunk({"time": 50})):
        found = est.transform(x)
        assert found.dims == ("time", "component")
        assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
        pd.testing.assert_index_equal(found.indexes["time"], field().indexes["time"])
    for bare in (FLAT, pd.DataFrame(FLAT)):  # which nobody can tell from columns that are weighted already
        with pytest.raises(ValueError, match="lat, lon"):
            est.transform(bare)


def target() -> xr.DataArray:
    return field().sum(("lat", "lon")).rename("flux").assign_attrs(units="W m-2")


def test_a_regression_keeps_the_labels_of_its_target() -> None:
    by_hand = hermite().fit(FLAT * ROOTS, target().values)
    est = hermite().fit(Rows(field(), latitude="lat"), target())
    found = est.predict(field().chunk({"time": 50}))
    assert_allclose(found, by_hand.predict(FLAT * ROOTS), rtol=1e-9)
    assert (found.name, found.attrs["units"], found.dims) == ("flux", "W m-2", ("time",))
    slopes = est.predict_gradient(field())
    assert slopes.dims == ("time", "lat", "lon")
    wanted = by_hand.predict_gradient(FLAT * ROOTS) * ROOTS  # the chain rule
    assert_allclose(slopes.values.reshape(TIMES, -1), wanted, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match=r"y .*'time'"):
        est.fit(field(), target().assign_coords(time=np.arange(TIMES)))


def test_gradients_have_the_dimensions_of_the_field() -> None:
    slopes, y = field(np.cos(VALUES)), field(np.sin(VALUES)).sum(("lat", "lon"))
    by_hand = hermite().fit(FLAT * ROOTS, y.values, slopes.values.reshape(TIMES, -1) / ROOTS)
    rows = Rows(field(), sample_dims="time", latitude="lat")
    assert_allclose(hermite().fit(rows, y, slopes).coef_, by_hand.coef_, rtol=1e-7)
    both = xr.concat([slopes, -slopes], "station").transpose("lat", "time", ..., "station").chunk({"time": 50})
    found = hermite().fit(rows, xr.concat([y, -y], "station").transpose("time", "station"), both)
    assert_allclose(found.coef_, np.column_stack([by_hand.coef_, -by_hand.coef_]), rtol=1e-6)


def test_results_are_groups_that_xarray_opens(tmp_path: Path) -> None:
    """Rows of all dimensions have the cosine of their latitudes as a weight."""
    samples = ("lon", "time", "lat")
    plain = make(basis=Landmarks(Gaussian(2.0), 5), n_components=2)
    est = clone(plain).fit(Rows(field(), sample_dims=samples, latitude="lat"))
    cosines = np.cos(np.deg2rad(field().lat))
    rows, weights = (a.transpose(*samples).values.reshape(-1, 1) for a in xr.broadcast(field(), cosines))
    assert_allclose(est.eigenvalues_, plain.fit(rows, sample_weight=weights[:, 0]).eigenvalues_, rtol=1e-7, atol=1e-9)
    est.transform(field().chunk({"time": 50, "lat": 2}), out=tmp_path / "z.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = xr.open_zarr(tmp_path / "z.zarr")
    assert list(data.data_vars) == ["eigenfunction"]
    xr.testing.assert_allclose(data["eigenfunction"].compute(), est.transform(field()), rtol=1e-9)
    assert data.lat.attrs == {"units": "degrees_north"}
    assert_array_equal(data.eigenvalue_lower, est.eigenvalue_errors_[:, 0])
    assert {"estimator", "parameters", "data_fingerprint", "daskspectral_version"} <= set(data.attrs)


def test_dimensions_of_rows_are_heard_by_every_method() -> None:
    x = rng.standard_normal((60, 3))
    data = xr.DataArray(x.T, dims=("column", "time"))
    rows = Rows(data, sample_dims="time")
    fitted = model().fit(x)
    assert len(rows) == 60
    assert rows[:7].data.sizes == {"column": 3, "time": 7}
    assert fitted.score(rows) == fitted.score(x)
    assert_array_equal(fitted.transform(rows), fitted.transform(x))
    labeled = model().fit(rows)
    for wrong in ("sample_dims", "latitude"):
        for method in (labeled.score, labeled.transform):
            with pytest.raises(ValueError, match=wrong):
                method(Rows(data, **{wrong: "column"}))
    with pytest.raises(ValueError, match="latitude"):
        fitted.transform(Rows(x, latitude="lat"))


def test_labels_of_folds_lie_on_the_rows() -> None:
    halves = [field()[:70], field()[70:]]
    with pytest.raises(ValueError, match=r"folds\[1\]"):
        model(Transfer(2), folds=[LABELS[:70], LABELS[70:][::-1]]).fit(halves)
    wanted = model(folds=LABELS.values).fit(field())
    assert_array_equal(model(folds=LABELS).fit(field()).coefficients_, wanted.coefficients_)
    for estimator, values in ((model(), ()), (hermite(), (target(),))):
        with pytest.raises(ValueError, match=r"folds .*'time'"):
            estimator.set_params(folds=LABELS[::-1]).fit(field(), *values)
