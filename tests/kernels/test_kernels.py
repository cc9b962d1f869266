"""Kernels against plain formulas, their scales and names; on circles and in a metric."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.base import clone

from daskspectral import kernels
from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Mahalanobis, Matern, Periodic, Polynomial
from tests.common import assert_close
from tests.kernels.common import KERNELS, at_landmarks

D = 3
RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((4, D)), RNG.standard_normal((3, D))


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_the_formula(name: str) -> None:
    """Derivatives are in the contracts' test, and in sums of forms."""
    kernel, formula, _ = KERNELS[name]
    expected = at_landmarks(formula, Y)(X)
    assert_close(kernel.values(X, Y), expected, 1e-14)
    assert_close(kernel(Y, X), expected, 1e-14)
    assert_close(kernel.diagonal(X), at_landmarks(formula, X)(X).diagonal(), 1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 5.5, 12.5, 19.5])
def test_matern_is_its_bessel_function(nu: float) -> None:
    s = np.linspace(0.01, 9, 40)
    z = np.sqrt(2 * nu * s) / 1.2
    expected = 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)
    kernel = Matern(nu, 1.2)
    assert_close(kernel.profile(s, 0, np.empty_like(s)), expected, 1e-13)
    assert kernel.order == 2 * nu
    assert kernel.profile(np.zeros(1), 0, np.empty(1))[0] == pytest.approx(1, rel=1e-15)
    assert np.isfinite(kernel.profile(np.zeros(1), int(2 * nu), np.empty(1))).all()


def test_the_last_derivative_of_matern_jumps() -> None:
    near, at = np.array([[1e-5, 0.0]]), np.zeros((1, 2))
    assert abs(Matern(1.5).partial(near, at, (3, 0))[0, 0]) > 1
    assert Matern(1.5).partial(at, at, (3, 0))[0, 0] == 0
    assert Matern(1.5).partial(at, at, (2, 0))[0, 0] == pytest.approx(-3)
    assert Matern(2.5).partial(at, at, (5, 0))[0, 0] == 0
    assert Matern(2.5).partial(at, at, (2, 2))[0, 0] == pytest.approx(25 / 3)  # 4 q''(0), q'' = (25/12) exp(-z)


def test_distances_within_rounding_are_zero() -> None:
    """Where that matters: |x - y|^2 at most 64 eps (|x|^2 + |y|^2) counts as 0."""
    x, y = np.array([[1.0], [5.0]]), np.array([[1 + 2e-7], [5.0]])
    assert Gaussian(2e-7).values(x, y)[0, 0] == pytest.approx(math.exp(-0.5), rel=0.1)  # smooth: it need not be
    assert Exponential(2e-7).values(x, y)[0, 0] == 1
    assert Exponential(2e-7).values(x, y + 1e-6)[0, 0] < 1


# what is refused


def test_parameters_refused() -> None:
    scales: list[Any] = [0, math.nan, 1e-76, 1e76, "mean", True]
    for make, what in (
        *((lambda scale=scale: Gaussian(scale), "scale") for scale in scales),
        (lambda: Matern(1.0), "nu"),
        (lambda: Polynomial(0), "degree"),
        (lambda: Gaussian() * 0, "factor"),
        (lambda: kernels.Sum(Gaussian(), 1.0), "right"),
        (lambda: Gaussian().partial(X, Y, (1, 0)), "orders"),
        (lambda: kernels.FunctionKernel(lambda x, y: np.ones(len(y))).values(X, Y), "shape"),
        (lambda: (Gaussian(0.5) + Exponential()).set_params(left__scale=2.0, right__scale=-1.0), "scale"),
    ):
        with pytest.raises(ValueError, match=what):
            make()


# parameters, names, states


def test_parameters_by_name() -> None:
    kernel = Gaussian(0.5) + 2 * Matern(2.5, 3.0)
    assert kernel.get_params()["right__kernel__nu"] == 2.5
    assert set(kernel.get_params(deep=False)) == {"left", "right"}
    assert kernel.set_params(left__scale=1.5, right__kernel__scale=4.0, right__factor=3.0) is kernel
    assert kernel == Gaussian(1.5) + 3 * Matern(2.5, 4.0)
    assert kernel.set_params(left=Exponential()) == Exponential() + 3 * Matern(2.5, 4.0)


def test_the_median_is_a_scale_to_be_resolved() -> None:
    kernel = Gaussian("median") + 2 * Exponential(3.0)
    assert kernel.needs_median
    assert clone(kernel) == kernel
    with pytest.raises(ValueError, match="'median'"):
        kernel.values(X, Y)
    resolved = kernel.resolve(0.7)
    assert resolved == Gaussian(0.7) + 2 * Exponential(3.0) != kernel
    assert not resolved.needs_median
    assert Matern(1.5, "median").resolve(2.0) == Matern(1.5, 2.0)
    assert Polynomial(3).resolve(2.0) == Polynomial(3)


def test_kernels_by_name() -> None:
    assert kernels.parse("matern:2.5:3") == Matern(2.5, 3)
    assert kernels.parse("gaussian:median + linear + matern:1.5") == Gaussian("median") + Linear() + Matern(1.5)


def test_compositions_keep_a_common_geometry() -> None:
    radial, dot = Gaussian() + 2 * Exponential(), Linear() * Polynomial()
    compositions = [radial, dot, 2 * (radial * dot), radial + kernels.FunctionKernel(np.dot)]
    found = [(kernel.geometry, kernel.mixes_origin) for kernel in compositions]
    assert found == [(kernels.DISTANCE, False), (kernels.DOT, False), (None, True), (None, False)]


# on circles and in a metric


@pytest.mark.parametrize("inner", [Exponential(1.5), Gaussian(0.8) * Polynomial(2) + Linear()], ids=str)
def test_values_and_derivatives_are_periodic(inner: Kernel) -> None:
    kernel, rng = Periodic(inner, (2.5, None, 7.0)), np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    far = x + rng.integers(-5, 6, (6, 3)) * [2.5, 0, 7.0]
    for alpha in ((0, 0, 0), (0, 1, 0)):
        np.testing.assert_allclose(kernel.partial(far, y, alpha), kernel.partial(x, y, alpha), atol=1e-12)


def test_the_closed_form_on_a_circle() -> None:
    """exp(-(L / pi)^2 sin^2(pi (x - y) / L) / (2 scale^2)), and its derivative."""
    x, y, period, scale = np.linspace(-5, 5, 11)[:, None], np.array([[0.3], [2.0]]), 3.0, 0.7
    angle = np.pi * (x.T - y) / period
    expected = np.exp(-((period / np.pi * np.sin(angle)) ** 2) / (2 * scale**2))
    kernel = Periodic(Gaussian(scale), (period,))
    np.testing.assert_allclose(kernel.values(x, y), expected, rtol=1e-13)
    slope = -expected * period / (2 * np.pi * scale**2) * np.sin(2 * angle)
    np.testing.assert_allclose(kernel.partial(x, y, (1,)), slope, atol=1e-13)


def test_a_metric_far_from_the_origin() -> None:
    """Points a multiple of 2^-20 apart, about 0 and about 1.7e9: the difference is exact, and so is the kernel."""
    rng = np.random.default_rng(0)
    x, y = (np.round(rng.standard_normal((n, 2)) * 2**20) / 2**20 for n in (40, 7))
    far, a = np.array([1.7e9, -3.0]), np.array([[1.0, 0.3], [-0.2, 0.5]])
    for kernel in (
        Mahalanobis(Gaussian(1.0), a),
        Mahalanobis(Matern(2.5, 0.7), a),
        Periodic(Gaussian(1.0), (6.0, None)),
    ):
        near, there = LandmarkBasis(kernel, y), LandmarkBasis(kernel, y + far)
        assert_close(there.values(x + far), near.values(x), 1e-12)
        assert_close(kernel.values(x + far, y + far), near.values(x), 1e-12)
        for alpha in ((1, 0), (0, 2)):
            wanted = kernel.partial(x, y, alpha)
            assert_close(kernel.partial(x + far, y + far, alpha), wanted, 1e-11)
        weights = rng.standard_normal((7, 2))
        assert_close(there.span_gradient(weights)(x + far), near.span_gradient(weights)(x), 1e-11)
        assert_close(kernel.second(x + far, y + far), kernel.second(x, y), 1e-11)


@pytest.mark.parametrize("e", [2, 3, 5])
def test_a_step_in_a_metric_is_as_long_as_the_metric_measures(e: int) -> None:
    rng = np.random.default_rng(0)
    kernel, x = Mahalanobis(Gaussian(1.0), rng.standard_normal((3, e))), rng.standard_normal((4000, 3))
    lengths = np.linalg.norm(
        kernel.embedded(kernel.moved(x, rng.standard_normal(x.shape))) - kernel.embedded(x), axis=1
    )
    np.testing.assert_allclose((lengths**2).mean(), 3, rtol=0.05)
    np.testing.assert_array_equal((2 * kernel).moved(x, x), kernel.moved(x, x))  # jitter does not depend on a factor
