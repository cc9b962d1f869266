"""HermiteRegressor against triple loops, hat matrices and independent reference arrays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Polynomial
from tests.common import assert_close, reference_arrays
from tests.estimators.common import as_path

Array = NDArray[Any]
N = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3)) * [1.0, 0.7, 0.4] + [0.0, 1.0, -2.0]
DIRECTION = np.array([1.0, -0.5, 2.0])
Y = np.sin(X @ DIRECTION) + 0.01 * RNG.standard_normal(N)
T = np.cos(X @ DIRECTION)[:, None] * DIRECTION + 0.01 * RNG.standard_normal((N, 3))


BASIS = Landmarks(Gaussian(1.0), 40)


def make(basis: Landmarks = BASIS, **options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(basis, random_state=0, **options)


def at(points: Array) -> Landmarks:
    return Landmarks(Gaussian(1.0), points=points)


@pytest.fixture(scope="module")
def fitted() -> dsp.HermiteRegressor:
    return make().fit(X, Y, T)


def sums(model: dsp.HermiteRegressor) -> tuple[Array, Array]:
    """A (p, p) and b (p, m), of values about 0."""
    arrays, (*origin,) = model.moments_.arrays, model.moments_.operator.origin
    values = arrays["values"] + np.outer(arrays["first"], origin or [0.0])
    return arrays["gram"] + arrays["dirichlet"], values + arrays["slopes"]


def cosine(x: Array) -> Array:
    return np.asarray(np.cos(3 * np.pi * x[:, 0]))


CASES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array], float]] = {
    "const": (lambda x: np.ones(len(x)), np.zeros_like, 5e-4),
    "cos3pi": (cosine, lambda x: -3 * np.pi * np.sin(3 * np.pi * x[:, :1]) * [1, 0], 0.2),
}


@pytest.mark.parametrize("case", CASES)
def test_reference_cases(case: str) -> None:
    """A, b and predictions at (i / 99.9, 1/2) of independent code: exp(-r^2), the first 100 of 1000 points."""
    reference = reference_arrays("hermite_small")
    function, gradient, tolerance = CASES[case]
    x = np.random.RandomState(0).rand(1000, 2)
    model = make(Landmarks(Gaussian(np.sqrt(0.5)), points=x[:100]), folds=None).fit(x, function(x), gradient(x))
    a, b = sums(model)
    np.testing.assert_allclose(a, reference["A"], rtol=1e-11)
    np.testing.assert_allclose(b[:, 0], reference[f"{case}_b"], rtol=1e-9, atol=1e-9)
    line = np.column_stack([np.linspace(0, 1, 1000)[::10], np.full(100, 0.5)])
    # A has condition 3e18, and the second coordinate of the reference's line is not known
    np.testing.assert_allclose(model.predict(line), reference[f"{case}_prediction"], atol=tolerance)


def test_a_polynomial_and_its_gradient_are_found_exactly() -> None:
    """Values and gradients of a quadratic in the span of a polynomial kernel, through standardized columns."""
    y, t = 1 + X @ DIRECTION + X[:, 0] * X[:, 1], np.tile(DIRECTION, (N, 1))
    t[:, 0], t[:, 1] = t[:, 0] + X[:, 1], t[:, 1] + X[:, 0]
    model = make(Landmarks(Polynomial(2), 40)).fit(dsp.Rows(X, standardize=True), y, t)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)
    np.testing.assert_allclose(model.predict_gradient(X), t, atol=1e-5)


def test_gradient_weight_and_alpha_without_the_data(fitted: dsp.HermiteRegressor) -> None:
    for options in ({"gradient_weight": 0.01}, {"alpha": 1e-3}):
        again = make(**options).fit_moments(fitted.moments_)
        np.testing.assert_array_equal(again.coef_, make(**options).fit(X, Y, T).coef_)
        assert not np.allclose(again.coef_, fitted.coef_)
    plain = make(at(fitted.basis_.landmarks), alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(make(gradient_weight=0, alpha=0.1).fit_moments(fitted.moments_).coef_, plain.coef_)


def test_invalid_rows(tmp_path: Path) -> None:
    broken = np.isin(np.arange(N), [217, 252])
    x, t = as_path(tmp_path, "x", np.where(broken[:, None], np.nan, X)), np.where(broken[:, None], np.nan, T)
    for (rows, *data), what in (((x, Y, T), "217"), ((X, Y, t), "gradients")):
        with pytest.raises(dsp.InvalidRowError, match=what):
            make(Landmarks(Gaussian("median"), 40)).fit(dsp.Rows(rows, standardize=True), *data)
        skipped = make(at(X[:30])).fit(dsp.Rows(rows, on_invalid="skip"), *data)
        without = make(at(X[:30])).fit(X[~broken], Y[~broken], T[~broken])
        assert (skipped.moments_.skipped, skipped.moments_.count) == (2, N - 2)
        assert_close(skipped.moments_.arrays["slopes"], without.moments_.arrays["slopes"], 1e-9)
    for find in (skipped.predict, skipped.predict_gradient):
        found = np.isnan(np.asarray(find(dsp.Rows(x, on_invalid="skip")))).reshape(N, -1)
        np.testing.assert_array_equal(found, np.broadcast_to(broken[:, None], found.shape))
