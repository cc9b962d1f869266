"""Rows far from those of the fit: one rule for all estimators, one parameter, and one warning that counts them."""

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks, NormalizedRBF
from daskspectral.kernels import Exponential, Gaussian, Mahalanobis, Matern
from tests.common import unreliable

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")
X = np.random.default_rng(0).uniform(0, 1, (200, 2))
FAR = np.array([[40.0, 0.5], [0.5, -60.0]])
NEW = np.vstack([X[:3], FAR])
KERNELS = (Gaussian(0.4), Matern(1.5, 0.4), Exponential(0.4), Mahalanobis(Gaussian(1.0), np.eye(2) / 0.16))


def decomposition(basis: Any) -> Any:
    return dsp.SpectralDecomposition(basis=basis, n_components=3, random_state=0)


MODELS: dict[str, Any] = {
    **{type(k).__name__: lambda k=k: decomposition(Landmarks(k, 40)) for k in KERNELS},
    "lattice": lambda: decomposition(FourierBasis(4)),
    "cells": lambda: decomposition(NormalizedRBF(X[:20], width=0.3)),
    "HermiteRegressor": lambda: dsp.HermiteRegressor(basis=Landmarks(Gaussian(0.4), 40), random_state=0),
    "gradients": lambda: MODELS["HermiteRegressor"](),
    "SDPEmbedding": lambda: dsp.SDPEmbedding(bandwidth=0.5, method="exact"),
    "DiffusionMap": lambda: dsp.DiffusionMap(bandwidth=0.5, method="exact"),
    "DiffusionMap of landmarks": lambda: dsp.DiffusionMap(
        bandwidth=0.5, method="lowrank", landmarks=Landmarks(n_landmarks=60)
    ),
    "KernelEmbedding": lambda: dsp.KernelEmbedding(bandwidth=0.5),
}


def fitted(name: str) -> Any:
    """A fitted model, and its function of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
        if not hasattr(model, "transform"):
            model.fit(X, np.sin(3 * X[:, 0]) + X[:, 1])
            return model.predict_gradient if name == "gradients" else model.predict
        return model.fit(X).transform


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", MODELS)
def test_far_rows_have_values_of_a_place_of_the_fit(name: str) -> None:
    values = fitted(name)
    with warnings.catch_warnings(action="error"):
        known = values(X)
    with pytest.warns(dsp.ExtrapolationWarning) as caught:
        found = values(NEW)
    (warned,) = [w.message for w in caught if isinstance(w.message, dsp.ExtrapolationWarning)]
    assert (warned.count, warned.rows) == (2, 5)
    np.testing.assert_allclose(found[:3], known[:3], atol=1e-9)
    assert np.isfinite(found).all()
    assert name == "cells" or np.abs(found).max() < 2 * np.abs(known).max()  # far out one cell is alone
    with pytest.warns(dsp.ExtrapolationWarning):
        gone = values(NEW, extrapolate="nan")
    np.testing.assert_allclose(gone[:3], known[:3], atol=1e-9)
    assert np.isnan(gone[3:]).all()
    with pytest.raises(ValueError, match=r"2 of 5 rows.*40\.0, 0\.5"):
        values(NEW, extrapolate="raise")
    with pytest.raises(ValueError, match="extrapolate must be"):
        values(NEW, extrapolate="guess")
    lazy = values(da.from_array(NEW, chunks=(5, 2)))
    with pytest.warns(dsp.ExtrapolationWarning) as caught:
        np.testing.assert_allclose(lazy.compute(), found, atol=1e-12)
    assert caught[0].message.count == 2  # type: ignore[union-attr]


@unreliable
def test_functions_that_do_not_decay_are_extrapolated() -> None:
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(X)
    found = model.transform(FAR, extrapolate="raise")
    np.testing.assert_allclose(found, (FAR - X.mean(axis=0)) @ np.linalg.pinv(model.patterns_.maps), atol=1e-8)
