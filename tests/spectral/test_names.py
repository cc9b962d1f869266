"""Dimensions, coordinates and variables may have any name, those of the package's results as well."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskspectral as dsp
from tests.common import reloaded, unreliable

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")]
RNG = np.random.default_rng(0)
V = RNG.standard_normal((120, 3)) @ RNG.standard_normal((3, 6)) + 0.1 * RNG.standard_normal((120, 6))
TIMES = pd.date_range("2000", periods=120, freq="MS")


@cache
def wanted() -> tuple[dsp.EOF, xr.Dataset]:
    """The model of the values alone, and its complex components."""
    model = fitted(V)
    return model, model.hilbert(V)


def fitted(data: Any, **rows: Any) -> dsp.EOF:
    return dsp.EOF(3).fit(dsp.Rows(data, **rows))


def field(row: str = "time", column: str = "place", name: str | None = "sst") -> xr.DataArray:
    return xr.DataArray(V, {row: TIMES, column: np.arange(6.0)}, (row, column), name=name)


@cache
def own_names() -> list[str]:
    """All names of the package's results, and of arguments."""
    walk = dsp.Koopman((1, 2), basis=dsp.basis.MonomialBasis(2, 1), n_components=3)
    path = np.cumsum(V[:, :2], axis=0)
    walk.fit(path)
    plain = fitted(V)
    found = [walk.to_xarray(path), plain.to_xarray(V), plain.hilbert(V), plain.rotated(2).to_xarray(V)]
    anomalies = fitted(field(), anomaly="month", detrend=1).to_xarray()
    names = {str(name) for dataset in [*found, anomalies] for name in (*dataset.dims, *dataset.variables)}
    words = ("x", "y", "time", "mode", "sample", "function", "fold", "lat", "variable", "lag", "part", "month", "x_x")
    return sorted({*names, *words, "x_mode", "components", "sst_mean", "sst"})


CHOSEN = ("x", "mode", "components")


def check(data: xr.DataArray) -> xr.Dataset:
    """The values of a model of these rows and columns, whatever they are called."""
    (plain, complex_), rows = wanted(), dsp.Rows(data)
    model = fitted(data)
    found = model.to_xarray(rows)
    np.testing.assert_allclose(found.components, plain.to_xarray().components, atol=1e-9)
    np.testing.assert_allclose(found.scores.transpose(..., "mode"), plain.transform(V), atol=1e-9)
    np.testing.assert_allclose(found.explained_variance, plain.eigenvalues_, rtol=1e-9)
    xr.testing.assert_identical(model.to_xarray(data), found)
    back = model.inverse_transform(model.transform(rows))
    np.testing.assert_allclose(back, plain.inverse_transform(plain.transform(V)), atol=1e-9)
    assert back.name == data.name
    score = model.hilbert(rows)
    np.testing.assert_allclose(score.components, complex_.components, atol=1e-9)
    np.testing.assert_allclose(score.scores, complex_.scores, atol=1e-9)
    assert model.score(rows) == pytest.approx(plain.score(V))
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CHOSEN)
def test_dimensions_and_variables_of_these_names(name: str) -> None:
    unnamed = field(column=name, name=None)
    for data in (field(row=name), field(name=name), field(column=name, name=name), unnamed, unnamed.drop_vars("time")):
        check(data)


@pytest.mark.parametrize("along", ["time", "place", None])
def test_coordinates_of_all_names(along: str | None) -> None:
    """They keep their values, those that a result has as x_... ."""
    data = field()
    names = [name for name in own_names() if name not in ("time", "place", "sst")]
    values = {None: 7.0, "time": np.arange(120.0), "place": np.arange(6.0) ** 2}[along]
    data = data.assign_coords(dict.fromkeys(names, values if along is None else (along, values)))
    found = check(data)
    for name in names if along else ():
        kept = [n for n in found.coords if str(n) == name or (str(n).endswith(name) and str(n).startswith("x_"))]
        assert any(np.array_equal(found[n], values) for n in kept)


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("lazy", [True, False])
def test_stacked_dimensions_stay_stacked(rows: bool, lazy: bool) -> None:
    coords = {"member": [0, 1], "time": TIMES[:60], "lat": [0.0, 10.0], "lon": [1.0, 2.0, 3.0]}
    data = xr.DataArray(V.reshape(2, 60, 2, 3), coords, ("member", "time", "lat", "lon"), name="sst")
    data = data.stack(sample=("member", "time")) if rows else data.isel(member=0).stack(place=("lat", "lon"))
    data = data.transpose("sample" if rows else "time", ...)
    given, dim = data.chunk() if lazy else data, "sample" if rows else "place"
    model = fitted(given)
    with warnings.catch_warnings(action="error"):
        for one in (model, reloaded(model)):
            found = one.to_xarray(given)
            back = one.inverse_transform(one.transform(given))
            assert found.indexes[dim].equals(data.indexes[dim])
            assert back.indexes[dim].equals(data.indexes[dim])
            wanted = ("mode", "lat", "lon") if rows else ("mode", "place")
            assert found.components.dims == wanted
            if not rows:
                assert found.components.unstack("place").sel(lat=10.0, lon=2.0).dims == ("mode",)


@pytest.mark.parametrize("name", ["coords", "$class", "a/b"])
def test_models_of_any_names_are_saved(name: str) -> None:
    data = xr.DataArray(V.reshape(120, 2, 3), {name: [10.0, 20.0], "lon": [0, 1, 2]}, ("time", name, "lon"), name="sst")
    data.attrs = {name: 1, "units": "K"}
    model = fitted(data)
    xr.testing.assert_identical(reloaded(model).to_xarray(data), model.to_xarray(data))
    values = xr.DataArray(V[:, :2], {name: ["u", "v"]}, ("time", name))
    regressor = dsp.HermiteRegressor(dsp.basis.Landmarks(dsp.kernels.Gaussian(5.0), 20), folds=None).fit(data, values)
    xr.testing.assert_identical(reloaded(regressor).predict(data), regressor.predict(data))
