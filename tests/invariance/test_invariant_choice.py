"""What InvariantRegressor chooses, and says of it: offsets, units, rows that are not uniform, places without rows."""

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.errors import TrustWarning
from daskspectral.groups import Permutations
from daskspectral.manifolds import Sphere
from tests.common import doubtful

Array = NDArray[Any]
S2 = Sphere(3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def skewed(n: int, seed: int) -> Array:
    """Points of the sphere, nearly all on one side."""
    x = rng(seed).normal(size=(n, 3)) + np.array([0, 0, 2])
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_rows_that_are_not_uniform_are_fitted_as_well_as_held_out_rows_say() -> None:
    """Generalised cross-validation sees the mean leverage alone, and took next to no penalty: R^2 of -10 to -1e5."""
    x, new = skewed(500, 0), skewed(1000, 99)
    model = dsp.InvariantRegressor(S2).fit(x, np.abs(x[:, 0]) + x[:, 1])
    assert model.cv_score_ > 1 - 2e-3
    assert model.score(new, np.abs(new[:, 0]) + new[:, 1]) > 1 - 2e-3


def test_rows_left_out_that_are_not_explained_are_told() -> None:
    x = S2.sample(400, rng())
    with pytest.warns(TrustWarning, match="the constant, and predictions are the mean of y"):
        dsp.InvariantRegressor(S2, n_eigenfunctions=3).fit(x, x[:, 0])
    skew = rng().normal(size=(1000, 2))
    with pytest.warns(TrustWarning, match=r"explain nothing of rows that were left out \(R\^2 = -"):
        dsp.InvariantRegressor(n_eigenfunctions=500, alpha=1e-16).fit(skew, np.abs(skew[:, 0]) + skew[:, 1])
    model = dsp.InvariantRegressor(S2, Permutations(3)).fit(x, np.ones(400))  # nothing to explain, and no warning
    np.testing.assert_allclose(model.predict(x), 1, rtol=1e-14)


@pytest.mark.parametrize(("scale", "offset"), [(1, -1e8), (1e-150, 1e-145)])
def test_offset_and_unit_of_y_change_nothing(scale: float, offset: float) -> None:
    """The penalty is 0 on the constant, and sums are about a first guess of the mean, in a unit of their own."""
    x, new = S2.sample(300, rng()), S2.sample(50, rng(1))
    y = np.exp(x.sum(axis=1)) + 0.1 * rng(2).normal(size=300)
    model = dsp.InvariantRegressor(S2, Permutations(3), n_eigenfunctions=81)
    plain, moved = (clone(model).fit(x[:250], values) for values in (y[:250], scale * y[:250] + offset))
    rounding = 1e-6 + 1e-15 * abs(offset) / scale
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)
    assert moved.cv_score_ == pytest.approx(plain.cv_score_, abs=rounding)
    assert moved.cv_ / scale / scale == pytest.approx(plain.cv_, rel=1e-6)
    plain.update(x, y)
    moved.update(x, scale * y + offset)
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)


# -- rows that are not uniform, and places without rows ----------------------------------------------------------------


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


@doubtful
def test_projection_says_how_far_off_it_is() -> None:
    x = mises_fisher(8000, 2.0, np.random.default_rng(0))
    with pytest.warns(dsp.FitWarning, match=r"the rows are not uniform on Sphere.* are 1 together, .* 0.032\. Means"):
        assert error(projection().fit(x, target(x))) > 0.5


# -- places without rows -----------------------------------------------------------------------------------------------


def test_rows_far_from_those_of_the_fit_are_counted() -> None:
    x = cap(200, 30, np.random.default_rng(60))
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
