"""Functions given outright: monomials, random Fourier features, a user's own. Their sums are in test_contraction."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.basis import MonomialBasis, NormalizedRBF, RandomFourierFeatures, TrigonometricBasis
from daskspectral.forms import form, gram, inner, partial
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern
from daskspectral.moments import Measure
from tests.basis.test_contraction import BATCH
from tests.common import assert_close


def test_derivatives_above_the_degree_are_exactly_zero() -> None:
    basis = MonomialBasis(2, 2)
    cubic = form(lambda f, g, x: inner(partial(f, 2, 1), g))
    quadratic = form(lambda f, g, x: inner(partial(f, 2, 0), g))
    mixed = form(lambda f, g, x: inner(partial(f, 2, 1) - f, g))
    sums = Measure(basis, basis, {"cubic": cubic, "quadratic": quadratic, "mixed": mixed, "gram": gram})([BATCH])
    assert_close(sums["mixed"], -sums["gram"])
    assert not sums["cubic"].any()
    assert sums["quadratic"].any(axis=1).tolist() == [False, False, False, True, False, False]


@given(d=st.integers(1, 5), degree=st.integers(1, 5), constant=st.booleans())
def test_every_exponent_once_by_degree(d: int, degree: int, constant: bool) -> None:
    exponents = MonomialBasis(d, degree, constant=constant).exponents
    every = {e for e in itertools.product(range(degree + 1), repeat=d) if (not constant) <= sum(e) <= degree}
    assert {tuple(e) for e in exponents.tolist()} == every
    assert len(exponents) == len(every)
    assert (np.diff(exponents.sum(axis=1)) >= 0).all()


@pytest.mark.parametrize(("dtype", "reach", "fits"), [("float32", 300.0, 30.0), ("float64", 1e25, 1e20)])
def test_powers_that_overflow_are_named(dtype: str, reach: float, fits: float) -> None:
    basis = MonomialBasis(2, 6)
    with pytest.raises(ValueError, match=dtype):
        basis.values(np.array([[0.1, -reach]]), dtype)
    assert np.isfinite(basis.values(np.array([[0.1, -fits]]), dtype) ** 2).all()
    assert np.isfinite(MonomialBasis(2, 6, scale=reach).values(np.array([[0.1, -reach]]), dtype)).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 4e-10), ("float32", 2e-7)])
def test_large_angles_and_half_turns(dtype: str, tolerance: float) -> None:
    """Rounding of the angle alone, 1e6 times eps of float64, whatever the dtype."""
    x = np.array([[0.0], [1.0], [-1.0], [0.3]])
    basis = RandomFourierFeatures(np.array([[math.pi], [1e6], [-2 * math.pi], [1e-9]]))
    found = basis.values(x, dtype)
    assert found.dtype == dtype
    angles = basis.frequencies @ x.T
    np.testing.assert_allclose(found, np.vstack([np.cos(angles), np.sin(angles)]) / 2, rtol=0, atol=tolerance)
    np.testing.assert_allclose((found**2).sum(axis=0), 1, rtol=0, atol=1e-15 if dtype == "float64" else 3e-7)


@pytest.mark.parametrize(("kernel", "d"), [(Gaussian(0.8), 2), (Matern(2.5, 1.3), 4), (Exponential(1.1), 1)], ids=str)
def test_products_of_features_approach_the_kernel(kernel: Kernel, d: int) -> None:
    """A mean of m cosines, each of variance (k(2 r) + 1) / 2 - k(r)^2, of at most 1 / 2: within 4.5 deviations."""
    rng = np.random.default_rng(3)
    x, m = rng.standard_normal((12, d)) / np.sqrt(d), 20_000
    values = RandomFourierFeatures.draw(kernel, d, 2 * m, rng).values(x)
    error = np.abs(values.T @ values - kernel(x, x))
    assert 0 < error.max() <= 4.5 * np.sqrt(0.5 / m)
    np.testing.assert_allclose((values**2).sum(axis=0), 1, rtol=1e-12)


def test_functions_of_angles_have_the_space_of_a_matern_kernel() -> None:
    """Of a tenth of each period, made periodic, over its integral 2π / 100; its second derivative at 0 is 500 / 3."""
    basis = TrigonometricBasis((360.0, 1.0), 60, 30)
    x, y = np.random.default_rng(0).uniform(0, 1, (2, 9, 2)) * basis.periods
    weights = 1 / np.diag(basis.norm(np.eye(basis.size)))[1:]
    found = 1 + basis.values(x)[1:].T @ (weights[:, None] * basis.values(y)[1:])
    images = itertools.product(range(-2, 3), repeat=2)
    exact = sum(Matern(2.5, 0.1)(x / basis.periods, y / basis.periods + image) for image in images)
    np.testing.assert_allclose(2 * math.pi / 100 * found, exact, atol=1e-6)
    slope = 500 / 3 / (2 * math.pi / 100) * np.mean(1 / np.array(basis.periods) ** 2)
    assert basis.slope_norm == pytest.approx(slope, rel=0.005)  # of the waves up to 30
    assert basis.norm(np.eye(basis.size))[0, 0] == 0  # the constant is free


def test_cells_of_rows() -> None:
    """Three groups of points have a cell each, of centers at their means; far narrower ones are their indicators."""
    means, rng = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]), np.random.default_rng(0)
    x = (means[:, None] + rng.uniform(-0.3, 0.3, (3, 50, 2))).reshape(-1, 2)
    cells = NormalizedRBF.draw(x, 3, ratio=0.1, random_state=1)
    order = np.lexsort(cells.centers.round().T)
    np.testing.assert_allclose(cells.centers[order], x.reshape(3, 50, 2).mean(axis=1), atol=1e-12)
    assert cells.width == pytest.approx(0.1 * np.median([3.5, 4, 4.5]), rel=0.05)
    np.testing.assert_allclose(cells.values(x)[order], np.repeat(np.eye(3), 50, axis=1), atol=1e-9)
