"""HermiteRegressor on a Fourier lattice: normal equations, units, moments."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierBasis
from daskspectral.basis.lattice import spectral_weights
from daskspectral.choosing.spectral_density import INTERCEPT
from daskspectral.kernels import Gaussian, Kernel
from tests.common import unreliable

RNG = np.random.default_rng(7)
N = 1000
X = RNG.uniform(-1, 1, (N, 2))
FRESH = RNG.uniform(-0.9, 0.9, (400, 2))


def f(x: Any) -> Any:
    return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + x[:, 0]


def slopes(x: Any) -> Any:
    a, b = 3 * x[:, 0], 2 * x[:, 1]
    return np.column_stack([3 * np.cos(a) * np.cos(b) + 1, -2 * np.sin(a) * np.sin(b)])


Y, T = f(X) + 0.05 * RNG.standard_normal(N), slopes(X)


def make(kernel: Kernel | str = "auto", **options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(FourierBasis(6, kernel=kernel), random_state=0, **options)


@pytest.fixture(scope="module")
def fitted() -> dsp.HermiteRegressor:
    return make().fit(X, Y)


@pytest.mark.parametrize(("gradients", "weight"), [(True, 0.3), (False, 1.0)])
def test_the_normal_equations(gradients: bool, weight: float) -> None:
    """Coefficients of the features at the rows, by least squares with a penalty: no modes, no folds."""
    kernel, alpha = Gaussian(0.5), 1e-3
    lattice = FourierBasis((4, 3), box=[(-1, 1)] * 2, method="matmul", kernel=kernel)
    rows, w = slice(0, 700), np.random.default_rng(1).uniform(0.5, 2, 700)
    model = dsp.HermiteRegressor(lattice, alpha, gradient_weight=weight, random_state=0)
    model.fit(X[rows], Y[rows], gradients=T[rows] if gradients else None, sample_weight=w)
    basis = model.basis_
    prior = spectral_weights(kernel, basis)
    prior[0] = INTERCEPT**2
    features = [basis.values(X[rows])]
    mean = w @ Y[rows] / w.sum()
    targets, weights = [Y[rows] - mean], [w]
    if gradients:
        shift = 1e-5 * np.eye(2)
        for axis in range(2):
            ahead, behind = basis.values(X[rows] + shift[axis]), basis.values(X[rows] - shift[axis])
            features.append((ahead - behind) / 2e-5)
            targets.append(T[rows, axis])
            weights.append(weight * w)
    u = np.concatenate(features, axis=1) * np.concatenate(weights)
    gram = u @ np.concatenate(features, axis=1).T / w.sum() + alpha * np.diag(1 / prior)
    wanted = np.linalg.solve(gram, u @ np.concatenate(targets) / w.sum())
    wanted[0] += mean
    np.testing.assert_allclose(model.coef_, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


def test_columns_and_units() -> None:
    wide = np.column_stack([X[:, 1] * 100, np.full(N, np.nan), X[:, 0] + 5])
    model = make(Gaussian(0.7), alpha=1e-6).fit(dsp.Rows(wide, columns=[2, 0], standardize=True), Y)
    new = np.column_stack([FRESH[:, 1] * 100, np.zeros(400), FRESH[:, 0] + 5])
    np.testing.assert_allclose(model.predict(new), f(FRESH), atol=0.08)
    gradient = model.predict_gradient(new)
    assert gradient.shape == (400, 3)
    assert not gradient[:, 1].any()
    for axis, h in ((0, 1e-3), (2, 1e-5)):
        step = h * np.eye(3)[axis]
        wanted = (model.predict(new + step) - model.predict(new - step)) / (2 * h)
        np.testing.assert_allclose(gradient[:, axis], wanted, atol=1e-4 * max(1, np.abs(wanted).max()))


def test_functions_do_not_wrap_around_the_box(fitted: dsp.HermiteRegressor) -> None:
    (_, upper), _ = fitted.basis_.box
    far = np.array([[50.0, 0.2], [upper + fitted.basis_.period[0], 0.2]])
    edge = fitted.predict(np.array([[upper, 0.2]]))
    with pytest.warns(dsp.ExtrapolationWarning):
        np.testing.assert_allclose(fitted.predict(far), [edge[0]] * 2, atol=1e-9)
    gradient = fitted.predict_gradient(far)
    assert not gradient[:, 0].any()
    assert np.abs(gradient[:, 1]).min() > 0.1


@pytest.mark.slow
@unreliable
def test_other_solutions_of_the_same_moments(fitted: dsp.HermiteRegressor) -> None:
    found, wanted = (make(Gaussian(0.5), alpha="gcv") for _ in range(2))
    np.testing.assert_array_equal(found.fit_moments(fitted.moments_).coef_, wanted.fit(X, Y).coef_)
    lower = dsp.HermiteRegressor(FourierBasis(3)).fit_moments(fitted.moments_)
    assert np.count_nonzero(lower.coef_) == 49
    spectral = dsp.SpectralDecomposition(basis=FourierBasis(3), n_components=2)
    with pytest.raises(ValueError, match="regression"):
        spectral.fit_moments(fitted.moments_)
    with pytest.raises(ValueError, match="HermiteRegressor"):
        make().fit_moments(spectral.fit(X).moments_)
