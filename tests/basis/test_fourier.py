"""Random Fourier features: large angles, spectral laws against their kernels. Their sums are in test_contraction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskspectral.basis import FourierBasis
from daskspectral.forms import form, inner, partial
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern
from daskspectral.moments import Measure
from tests.basis.test_contraction import BATCH, CASES


def test_a_partial_of_the_wrong_length() -> None:
    flat = form(lambda f, g, x: inner(f, partial(g, 1, 0)))
    with pytest.raises(ValueError, match=r"a derivative in 3 variables takes 3 orders"):
        Measure(CASES["fourier"][0], CASES["fourier"][0], {"form": flat})([BATCH])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 4e-10), ("float32", 2e-7)])
def test_large_angles_and_half_turns(dtype: str, tolerance: float) -> None:
    """Rounding of the angle alone, 1e6 times eps of float64, whatever the dtype."""
    x = np.array([[0.0], [1.0], [-1.0], [0.3]])
    basis = FourierBasis(np.array([[math.pi], [1e6], [-2 * math.pi], [1e-9]]))
    found = basis.values(x, dtype)
    assert found.dtype == dtype
    angles = basis.frequencies @ x.T
    np.testing.assert_allclose(found, np.vstack([np.cos(angles), np.sin(angles)]) / 2, rtol=0, atol=tolerance)
    np.testing.assert_allclose((found**2).sum(axis=0), 1, rtol=0, atol=1e-15 if dtype == "float64" else 3e-7)


@pytest.mark.parametrize(
    ("kernel", "d"),
    [
        (Gaussian(0.8), 2),
        (3.0 * Matern(2.5, 1.3), 4),
        (Gaussian(0.9) * Matern(1.5, 1.1), 1),
        (0.5 * (Matern(2.5) * Matern(2.5)) + Gaussian(0.3) * Exponential(1.0), 4),
    ],
    ids=str,
)
def test_products_of_features_approach_the_kernel(kernel: Kernel, d: int) -> None:
    """A mean of m cosines, each of variance (k(2 r) + 1) / 2 - k(r)^2 for k(0) = 1: within 4.5 deviations."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((12, d)) / np.sqrt(d)
    m = 20_000
    values = FourierBasis.draw(kernel, d, 2 * m, rng).values(x)
    top = float(kernel.diagonal(x)[0])
    exact = kernel(x, x) / top
    origin = np.zeros((1, d))
    twice = np.array([[kernel(2 * (a - b)[None], origin)[0, 0] for a in x] for b in x]) / top
    deviation = np.sqrt(np.maximum((twice + 1) / 2 - exact**2, 0) / m)
    error = np.abs(values.T @ values / top - exact)
    assert (error <= 4.5 * deviation + 1e-12).all()
    assert error.max() > 0.1 * deviation.max()  # the bound is one of the right size
    np.testing.assert_allclose((values**2).sum(axis=0), top, rtol=1e-12)


def test_draws_are_reproducible() -> None:
    first = FourierBasis.draw(Gaussian(2.0), 2, 6, 4)
    again = FourierBasis.draw(Gaussian(2.0), 2, 6, np.random.default_rng(4))
    other = FourierBasis.draw(Gaussian(2.0), 2, 6, 5)
    assert np.array_equal(first.frequencies, again.frequencies)
    assert not np.isclose(first.frequencies, other.frequencies).any()
    assert (first.size, first.dimension, first.variance, first.order) == (6, 2, 1.0, math.inf)
    assert FourierBasis.draw(2.5 * Gaussian(1.0), 2, 6, 4).variance == 2.5


def test_refused() -> None:
    with pytest.raises(TypeError, match=r"kernel must be one of daskspectral.kernels, .* it is 'gaussian'"):
        FourierBasis.draw("gaussian", 2, 10, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the scale is still 'median'"):
        FourierBasis.draw(Gaussian("median"), 2, 4, 0)
    with pytest.raises(ValueError, match="p is even, a cosine and a sine for each frequency; it is 7"):
        FourierBasis.draw(Gaussian(), 2, 7, 0)
    with pytest.raises(ValueError, match=r"frequencies are finite numbers \(m, d\), one in each row"):
        FourierBasis(np.array([[np.nan, 1.0]]))
