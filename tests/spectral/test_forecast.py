"""Forecasts against a linear regression."""

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
