"""Errors of rows with missing values propose what works for these data and this operator."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Linear
from daskspectral.operators import Covariance, Cross, Laplacian

RNG = np.random.default_rng(0)
HOLED = np.where(RNG.random((600, 12)) < 0.2, np.nan, RNG.standard_normal((600, 12)))
ONE_ROW = np.vstack([np.full(12, np.nan), RNG.standard_normal((300, 12))])
FIELD = xr.DataArray(
    HOLED[:, :6].reshape(600, 2, 3), dims=("time", "lat", "lon"), coords={"time": np.arange(600)}, name="t"
)
LINEAR = Landmarks(Linear())


def fit(data: Any, operator: Any, basis: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    model = dsp.SpectralDecomposition(operator, basis, n_components=2, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        return model.fit(dsp.Rows(data, **options))


@pytest.mark.parametrize(
    ("data", "operator", "basis", "options"),
    [
        (HOLED, Covariance(), None, {}),
        ((HOLED, HOLED[:, ::-1]), Cross(center=True), LINEAR, {}),
        (FIELD, Covariance(), None, {"sample_dims": "time"}),
        (ONE_ROW, Covariance(), None, {}),
    ],
)
def test_the_option_that_an_error_proposes_works(data: Any, operator: Any, basis: Any, options: Any) -> None:
    with pytest.raises(dsp.InvalidRowError) as caught:
        fit(data, operator, basis, **options)
    proposed = re.findall(r"on_invalid='(\w+)'", str(caught.value))
    assert proposed == ["skip" if data is ONE_ROW else "pairwise"]
    model = fit(data, operator, basis, **options, on_invalid=proposed[0])
    assert model.moments_.count >= 300


@pytest.mark.parametrize("operator", [Laplacian(), Cross()])
def test_options_that_would_be_refused_are_not_proposed(operator: Any) -> None:
    data, basis = ((HOLED, HOLED), LINEAR) if isinstance(operator, Cross) else (HOLED, None)
    with pytest.raises(dsp.InvalidRowError) as caught:
        fit(data, operator, basis)
    assert "on_invalid" not in str(caught.value)
