"""Forecasts against a linear regression, and weights of equilibrium against a chain's stationary vector."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.operators import Transfer

LINEAR = dsp.basis.MonomialBasis(2, 1)


@pytest.fixture(scope="module")
def series() -> Any:
    """A damped rotation with noise, (3000, 2)."""
    rng, x = np.random.default_rng(1), np.zeros((3000, 2))
    for t in range(1, len(x)):
        x[t] = x[t - 1] @ [[0.9, -0.3], [0.2, 0.85]] + rng.normal(size=2) + 0.1
    return x


@pytest.mark.parametrize("operator", [Transfer(2), Transfer(2, "eigen"), Transfer(2, center=True)])
def test_a_forecast_of_linear_functions_is_a_regression_to_a_power(series: Any, operator: Transfer) -> None:
    early, late = series[:2000], series[2000:]
    est = dsp.SpectralDecomposition(operator, basis=LINEAR, n_components=3 - operator.center, folds=None).fit(early)
    beside = [np.column_stack([np.ones(len(x)), x]) for x in (early[:-2], early[2:], late)]
    moved = np.linalg.lstsq(beside[0], beside[1], rcond=None)[0]
    expected = beside[2] @ np.linalg.matrix_power(moved, 3)[:, 1:]
    near = 0.02 if operator.center else 1e-8  # means of starts and ends differ by a few rows
    np.testing.assert_allclose(est.forecast(late, 3), expected, atol=near)
    spread = ((late[6:] - late[6:].mean(axis=0)) ** 2).sum(axis=0)
    score = np.mean(1 - ((late[6:] - expected[:-6]) ** 2).sum(axis=0) / spread)
    assert est.forecast_score(late, 3) == pytest.approx(score, abs=near)


def test_a_forecast_has_the_labels_and_units_of_its_field(series: Any) -> None:
    field = xr.DataArray(1000 + 50 * series, {"lat": [0.0, 30.0]}, ("time", "lat"), name="height")
    rows = dsp.Rows(field, sample_dims=("time",), standardize=True)
    est = dsp.SpectralDecomposition(Transfer(1), basis=LINEAR, n_components=3).fit(rows)
    found = est.forecast(field[:10], 2)
    assert found.dims == ("time", "lat")
    np.testing.assert_allclose(found.lat, [0, 30])
    again = dsp.SpectralDecomposition(Transfer(1), basis=LINEAR, n_components=3).fit(series).forecast(series[:10], 2)
    np.testing.assert_allclose(found, 1000 + 50 * again, atol=1e-6)
    assert est.forecast_score(field, 2) > 0.5


def test_rows_weigh_as_in_equilibrium() -> None:
    rng, jumps = np.random.default_rng(0), np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.2, 0.3]])
    walks = []
    for _ in range(300):
        walk = [2]
        for _ in range(5):
            walk.append(rng.choice(3, p=jumps[walk[-1]]))
        walks.append(np.array(walk, float)[:, None])
    states = np.arange(3.0)[:, None]
    basis = dsp.basis.LandmarkBasis(dsp.kernels.Gaussian(0.05), states)
    est = dsp.SpectralDecomposition(Transfer(1), basis=basis, n_components=3)
    with pytest.warns(dsp.TrustWarning, match="do not start in equilibrium: its weights vary by 52 %"):
        est.fit(walks)
    assert est.trusted_.tolist() == [True, False, False]  # the constant
    counts = np.zeros((3, 3))
    for walk in walks:
        np.add.at(counts, (walk[:-1, 0].astype(int), walk[1:, 0].astype(int)), 1)
    values, vectors = np.linalg.eig((counts / counts.sum(axis=1, keepdims=True)).T)
    stationary = vectors[:, np.abs(values - 1).argmin()].real
    stationary /= stationary.sum()
    weights = stationary / (counts.sum(axis=1) / counts.sum())
    np.testing.assert_allclose(est.equilibrium_weights(states), weights)
    several = est.equilibrium_weights(walks)
    np.testing.assert_allclose(np.concatenate(several), weights[np.concatenate(walks)[:, 0].astype(int)])
    np.testing.assert_allclose(np.sqrt(np.average((weights - 1) ** 2, weights=counts.sum(axis=1))), 0.52, atol=0.005)
    again = est.set_params(folds=None).fit(walks, sample_weight=several)  # in equilibrium
    np.testing.assert_allclose(again.equilibrium_weights(states), 1, rtol=0.2)
    operator = Transfer(1, reversible=True, further=())
    reversible = dsp.SpectralDecomposition(operator, basis=basis, n_components=3, folds=None)
    np.testing.assert_allclose(reversible.fit(walks).equilibrium_weights(states), weights)
