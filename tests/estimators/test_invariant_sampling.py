"""Rows that are not uniform on a manifold, empty places, weights, and the held-out score of an invariant regression."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.groups import Generated, Permutations, SignFlips
from daskspectral.manifolds import Sphere

Array = NDArray[Any]
S2 = Sphere(3)
CUBE = Generated([Permutations(3), SignFlips(3)])
NEW = S2.sample(1000, np.random.default_rng(99))


def mises_fisher(n: int, concentration: float, rng: np.random.Generator) -> Array:
    """Points of the density exp(kappa z) up to a factor, about the pole; the heights by inversion."""
    u = rng.random(n)
    z = 1 + np.log(u + (1 - u) * np.exp(-2 * concentration)) / concentration
    return _about(z, rng)


def cap(n: int, degrees: float, rng: np.random.Generator) -> Array:
    """Uniform points of a cap about the pole."""
    return _about(rng.uniform(np.cos(np.radians(degrees)), 1, n), rng)


def _about(z: Array, rng: np.random.Generator) -> Array:
    angle, radius = rng.uniform(0, 2 * np.pi, len(z)), np.sqrt(1 - z**2)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), z])


def target(x: Array) -> Array:
    return np.asarray(x.sum(axis=1) + x[:, 0] * x[:, 2])


def error(model: dsp.InvariantRegressor) -> float:
    return float(np.sqrt(np.mean((model.predict(NEW) - target(NEW)) ** 2) / target(NEW).var()))


def projection(**options: Any) -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(S2, n_eigenfunctions=9, solver="projection", **options)


# -- density -----------------------------------------------------------------------------------------------------------


def test_projection_says_how_far_off_it_is_and_weights_put_it_right(tmp_path: Path) -> None:
    """The mean of z is coth(kappa) - 1 / kappa, with sqrt(3) z alone after the constant's level."""
    x = mises_fisher(8000, 2.0, np.random.default_rng(0))
    with pytest.warns(dsp.FitWarning, match=r"the rows are not uniform on Sphere.* are 1 together, .* 0.032\. Means"):
        assert error(projection().fit(x, target(x))) > 0.5
    with pytest.warns(dsp.FitWarning, match="not uniform"):
        found = projection().set_params(n_eigenfunctions=4).fit(x, x[:, 0]).uniformity_
    assert (found.functions, found.uniform, found.likelihood) == (3, False, pytest.approx(0, abs=1e-300))
    assert found.deviation == pytest.approx(np.sqrt(3) * (1 / np.tanh(2) - 1 / 2), rel=0.03)
    assert found.chance == pytest.approx(np.sqrt(3 / 8000))
    weighed = projection(density="estimated").fit(x, target(x))
    weighed.save(tmp_path / "m.zarr")
    for model in (weighed, dsp.load(tmp_path / "m.zarr")):
        assert error(model) < 0.06  # of 9 means over 2000 effective rows: 0.06
    assert weighed.uniformity_.uniform
    exact = np.exp(-2 * NEW[:, 2]) * np.sinh(2) / 2  # one over the density, of mean 1 over the rows
    np.testing.assert_allclose(weighed.moments_.operator.importance(NEW), exact, rtol=0.3)
    with pytest.raises(ValueError, match=r"measured with density='\w+', and this model has density='\w+'; measure"):
        projection().fit_moments(weighed.moments_)
    with pytest.warns(dsp.DensityWarning, match="no weights give these rows the means of the uniform probability"):
        dsp.InvariantRegressor(S2, density="estimated").fit(cap(500, 60, np.random.default_rng(6)), np.arange(500))


def test_only_the_density_averaged_over_the_group_counts() -> None:
    """One of 48 cells holds all rows, and means of invariant functions do not tell."""
    x = np.sort(np.abs(S2.sample(5000, np.random.default_rng(2))), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = dsp.InvariantRegressor(S2, CUBE, solver="projection", n_eigenfunctions=81).fit(x, (x**4).sum(axis=1))
        assert model.uniformity_.uniform
        assert model.leverage(NEW).max() < 0.2
        model.predict(NEW)


# -- places without rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 1000])
def test_rows_far_from_those_of_the_fit_are_counted(n: int) -> None:
    x = cap(n, 30, np.random.default_rng(n))
    model = dsp.InvariantRegressor(S2).fit(x, np.exp(x[:, 0]))
    leverage, angle = model.leverage(NEW), np.degrees(np.arccos(NEW[:, 2]))
    assert (leverage[angle < 25] < 1).all()
    assert (leverage[angle > 75] > 1).all()
    with pytest.warns(dsp.TrustWarning, match=rf"{np.count_nonzero(leverage > 1)} of 1000 rows .* gradients there are"):
        model.predict_gradient(NEW)
    with pytest.warns(dsp.TrustWarning, match=rf"{np.count_nonzero(leverage > 1)} of 1000 rows lie where the fit had"):
        model.predict(NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(x)
        lazy = model.leverage(da.from_array(NEW, chunks=(300, 3)))
    np.testing.assert_allclose(lazy.compute(), leverage, rtol=1e-10)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), n=st.integers(5, 300))
def test_leverages_of_the_fit_add_up_to_the_functions(seed: int, n: int) -> None:
    """Each is 1 at most: the diagonal of the hat matrix of the first functions."""
    x = S2.sample(n, np.random.default_rng(seed))
    model = dsp.InvariantRegressor(S2, SignFlips(3), n_eigenfunctions=4, alpha=1e-3).fit(x, x[:, 0] ** 2)
    leverage = model.leverage(x)
    assert leverage.max() <= 1 + 1e-9
    assert leverage.sum() == pytest.approx(len(model._support.coverage.whitening), rel=1e-6)


# -- weights and scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["least_squares", "projection"])
def test_held_out_score_equals_fits_without_each_fold(solver: str) -> None:
    """And its standard error that of a ratio of means over the folds."""
    rng = np.random.default_rng(7)
    x, label = S2.sample(300, rng), np.arange(300) % 5
    y = np.column_stack([target(x), x[:, 1] ** 2]) + 0.2 * rng.standard_normal((300, 2))
    options: dict[str, Any] = {"solver": solver, "n_eigenfunctions": 25}
    model = dsp.InvariantRegressor(S2, folds=label, **options).fit(x, y)
    missed, spread = np.zeros(5), np.zeros(5)
    for k in range(5):
        rest, own = label != k, label == k
        part = dsp.InvariantRegressor(S2, folds=None, alpha=model.alpha_, **options).fit(x[rest], y[rest])
        missed[k] = np.sum((y[own] - part.predict(x[own])) ** 2)
        spread[k] = np.sum((y[own] - y[rest].mean(axis=0)) ** 2)
    ratio = missed.sum() / spread.sum()
    assert model.cv_ == pytest.approx(missed.sum() / 300, rel=1e-8)
    assert model.cv_score_ == pytest.approx(1 - ratio, rel=1e-8)
    assert model.cv_score_error_ == pytest.approx(
        np.sqrt(np.sum((missed - ratio * spread) ** 2) * 5 / 4) / spread.sum()
    )
    none = dsp.InvariantRegressor(S2, folds=None, **options).fit(x, y)
    assert (none.cv_, none.cv_score_, none.cv_score_error_) == (None, None, None)


def test_a_projection_on_the_constant_alone_says_so() -> None:
    x = S2.sample(5000, np.random.default_rng(0))
    with pytest.warns(dsp.FitWarning, match=r"the first \d+ eigenfunctions have one invariant function, the constant"):
        dsp.InvariantRegressor(S2, CUBE, solver="projection").fit(x, (x**4).sum(axis=1))
    dsp.InvariantRegressor(S2, CUBE, solver="projection").fit(x, np.ones(5000))
    assert dsp.InvariantRegressor(S2, CUBE).fit(x, (x**4).sum(axis=1)).cv_score_ > 1 - 1e-9
