"""How InvariantRegressor chooses its functions and penalty: rows that are not uniform, offsets, units, weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.errors import TrustWarning
from daskspectral.groups import Permutations, SignFlips
from daskspectral.manifolds import Sphere

Array = NDArray[Any]
S2 = Sphere(3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def skewed(n: int, seed: int) -> Array:
    """Points of the sphere, nearly all on one side."""
    x = rng(seed).normal(size=(n, 3)) + np.array([0, 0, 2])
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


SKEWED: dict[str, Any] = {
    "normal": (lambda n, seed: rng(seed).normal(size=(n, 2)), lambda x: np.abs(x[:, 0]) + x[:, 1], {}, 1e-3),
    "sphere": (skewed, lambda x: np.abs(x[:, 0]) + x[:, 1], {"manifold": S2}, 2e-3),
}


@pytest.mark.parametrize("name", SKEWED)
def test_rows_that_are_not_uniform_are_fitted_as_well_as_held_out_rows_say(name: str) -> None:
    """Generalised cross-validation sees the mean leverage alone, and took next to no penalty: R^2 of -10 to -1e5."""
    draw, f, options, most = SKEWED[name]
    x, new = draw(500, 0), draw(1000, 99)
    model = dsp.InvariantRegressor(**options).fit(x, f(x))
    assert model.cv_score_ > 1 - most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of a row beyond the ranges
        assert model.score(new, f(new)) > 1 - most


def test_penalty_has_the_least_error_on_the_folds() -> None:
    """No penalty on a grid does better than the one that is chosen, nor another number of levels."""
    x = S2.sample(300, rng())
    y = np.exp(2 * x[:, 0]) + 0.3 * rng(1).normal(size=300)
    chosen = dsp.InvariantRegressor(S2).fit(x, y)
    for most in (4, 16, 64, int(chosen.n_eigenfunctions_)):
        for alpha in np.geomspace(1e-9, 1e-1, 9):
            given = dsp.InvariantRegressor(S2, n_eigenfunctions=most, alpha=float(alpha)).fit(x, y)
            assert chosen.cv_ <= given.cv_ * 1.02
    best = chosen.gcv_curve_[np.argmin(chosen.gcv_curve_[:, 2])]
    np.testing.assert_allclose(best, [chosen.n_eigenfunctions_, chosen.alpha_, chosen.cv_], rtol=1e-6)


def test_rows_left_out_that_are_not_explained_are_told() -> None:
    x = S2.sample(400, rng())
    with pytest.warns(TrustWarning, match="the constant, and predictions are the mean of y"):
        dsp.InvariantRegressor(S2, n_eigenfunctions=3).fit(x, x[:, 0])
    with pytest.warns(TrustWarning, match="left out|the mean of y"):  # odd: the group leaves its mean alone
        dsp.InvariantRegressor(S2, SignFlips(3)).fit(x, x[:, 0])
    skew = rng().normal(size=(1000, 2))
    with pytest.warns(TrustWarning, match=r"explain nothing of rows that were left out \(R\^2 = -"):
        dsp.InvariantRegressor(n_eigenfunctions=500, alpha=1e-16).fit(skew, np.abs(skew[:, 0]) + skew[:, 1])
    model = dsp.InvariantRegressor(S2, Permutations(3)).fit(x, np.ones(400))  # nothing to explain, and no warning
    np.testing.assert_allclose(model.predict(x), 1, rtol=1e-14)


@pytest.mark.parametrize(("scale", "offset"), [(1, -1e8), (1e150, 0), (1e-150, 1e-145)])
def test_offset_and_unit_of_y_change_nothing(scale: float, offset: float, tmp_path: Any) -> None:
    """The penalty is 0 on the constant, and sums are about a first guess of the mean, in a unit of their own."""
    x, new = S2.sample(300, rng()), S2.sample(50, rng(1))
    y = np.exp(x.sum(axis=1)) + 0.1 * rng(2).normal(size=300)
    plain = dsp.InvariantRegressor(S2, Permutations(3)).fit(x[:250], y[:250])
    moved = dsp.InvariantRegressor(S2, Permutations(3)).fit(x[:250], scale * y[:250] + offset)
    rounding = 1e-6 + 1e-15 * abs(offset) / scale
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)
    assert moved.cv_score_ == pytest.approx(plain.cv_score_, abs=rounding)
    assert moved.cv_ / scale / scale == pytest.approx(plain.cv_, rel=1e-6)
    moved.save(tmp_path / "model")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model").predict(new), moved.predict(new))
    plain.update(x, y)
    moved.update(x, scale * y + offset)
    np.testing.assert_allclose((moved.predict(new) - offset) / scale, plain.predict(new), rtol=rounding)


def test_whole_weights_are_rows_so_many_times_with_defaults() -> None:
    """D was bounded by the number of rows, whatever they weigh, and the pilot's functions with it."""
    sphere = Sphere(5)
    x = sphere.sample(150, rng())
    y, w = np.sin(3 * x.sum(axis=1)) + 0.05 * rng(1).normal(size=150), np.arange(150) % 4
    model = dsp.InvariantRegressor(sphere, folds=None)
    weighted = clone(model).fit(x, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    assert (weighted.basis_.size, weighted.n_eigenfunctions_) == (repeated.basis_.size, repeated.n_eigenfunctions_)
    np.testing.assert_allclose(weighted.predict(x), repeated.predict(x), atol=1e-8)


def test_constant_columns_do_not_count_among_those_without_products() -> None:
    """One column beside a constant has no products to miss."""
    x = np.column_stack([rng().uniform(-1, 1, 60), np.ones(60)])
    assert dsp.InvariantRegressor().fit(x, x[:, 0] ** 3).cv_score_ > 0.99  # warnings are errors
