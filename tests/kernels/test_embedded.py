"""Kernels on circles and in a metric: derivatives in the columns of the data, periods."""

import numpy as np
import pytest

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Mahalanobis, Matern, Periodic, Polynomial
from daskspectral.testing import check_kernel
from tests.common import assert_close

KERNELS: dict[str, tuple[Kernel, tuple[float | None, ...]]] = {
    "exponential": (Exponential(1.5), (None, 3.0, None)),
    "sum": (Gaussian(0.8) + 0.5 * Matern(3.5, 1.2), (2.5, 7.0)),
    "families": (Gaussian(0.8) * Polynomial(2) + Linear(), (2.5, None)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_are_right_and_periodic(name: str) -> None:
    inner, periods = KERNELS[name]
    check_kernel(Periodic(inner, periods), len(periods))
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
