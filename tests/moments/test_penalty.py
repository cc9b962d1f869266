"""Norms of function spaces, and of a form's functionals in them, against sums over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, FourierBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments.penalty import inverse_norm, roughness, trace
from daskspectral.operators import (
    Augmentation,
    Cross,
    Generator,
    Laplacian,
    Operator,
    Schroedinger,
    TangentPropagation,
    Transfer,
)

Array = NDArray[Any]
RNG = np.random.default_rng(0)
Y = RNG.standard_normal((12, 3))
X = RNG.standard_normal((200, 3))
SMOOTH = [Gaussian(0.7), Matern(1.5, 1.3), Matern(2.5, 0.8)]


def gram_of(basis: Basis, x: Array = X) -> Array:
    values = basis.values(x)
    return np.asarray(values @ values.T / len(x))


def slopes(kernel: Kernel, x: Array, y: Array, step: float = 1e-5) -> Array:
    """d k(x, y_i) / d x_a by differences: (p, d)."""
    ends = np.vstack([x + step * np.eye(len(x)), x - step * np.eye(len(x))])
    ahead, behind = np.split(kernel.values(ends, y), 2, axis=1)
    return np.asarray((ahead - behind) / (2 * step))


@pytest.mark.parametrize("kernel", [*SMOOTH, Exponential(1.0), Polynomial(3)], ids=repr)
def test_the_norm_of_kernel_functions_is_their_reproducing_one(kernel: Kernel) -> None:
    """|sum a_i k(., y_i)|^2 = sum_ij a_i a_j k(y_i, y_j), whatever the data."""
    found = LandmarkBasis(kernel, Y).norm(np.zeros((12, 12)))
    expected = [[float(kernel.values(a[None], b[None])[0, 0]) for b in Y] for a in Y]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_norms_of_the_other_bases() -> None:
    fourier = FourierBasis.draw(Gaussian(0.7), 3, 10, np.random.default_rng(1))
    np.testing.assert_array_equal(fourier.norm(gram_of(fourier)), np.eye(fourier.size))
    monomial = MonomialBasis(3, 2)
    squares = np.mean(monomial.values(X) ** 2, axis=1)
    np.testing.assert_allclose(monomial.norm(gram_of(monomial)), np.diag(squares), rtol=1e-12)
    assert monomial.slope_norm is None
    constant = ConstantBasis(3)
    np.testing.assert_array_equal(constant.norm(np.ones((1, 1))), [[0.0]])
    assert constant.slope_norm == 0
    kernel = LandmarkBasis(Gaussian(0.7), Y)
    parts = (constant, kernel, monomial, fourier)
    together = Concatenated(parts)
    gram = gram_of(together)
    ends = np.cumsum([0, *(part.size for part in parts)])
    expected = np.zeros_like(gram)
    for part, a, b in zip(parts, ends[:-1], ends[1:], strict=True):
        expected[a:b, a:b] = part.norm(gram_of(part))
    np.testing.assert_allclose(together.norm(gram), expected, rtol=1e-12)
    assert together.slope_norm is None  # of monomials none is known
    assert Concatenated((constant, kernel, fourier)).slope_norm == pytest.approx(kernel.slope_norm + fourier.slope_norm)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_the_norm_of_a_derivative_is_the_least_upper_bound(kernel: Kernel) -> None:
    """|f -> f_a(x)|^2 = sup f_a(x)^2 / |f|^2: that over a span of kernel functions close to x comes near from below."""
    near = 0.3 * np.vstack([RNG.standard_normal((60, 3)), np.eye(3), -np.eye(3)])
    slope = slopes(kernel, np.zeros(3), near)
    norm = LandmarkBasis(kernel, near).norm(np.zeros((66, 66)))
    values, vectors = np.linalg.eigh(norm)
    kept = values > 1e-9
    bounds = np.sum((vectors[:, kept].T @ slope) ** 2 / values[kept, None], axis=0)
    found = LandmarkBasis(kernel, near).slope_norm
    assert found is not None
    assert (bounds <= found * (1 + 1e-3)).all()
    assert (bounds >= 0.6 * found).all()


def test_derivatives_without_a_norm() -> None:
    for kernel in (Exponential(1.0), Polynomial(3)):
        assert LandmarkBasis(kernel, Y).slope_norm is None
    for kernel, expected in zip(SMOOTH, (1 / 0.49, 3 / 1.69, 5 / (3 * 0.64)), strict=True):
        assert LandmarkBasis(kernel, Y).slope_norm == pytest.approx(expected)


def test_random_features_have_the_slope_of_their_kernel_on_average() -> None:
    basis = FourierBasis.draw(Gaussian(0.7), 3, 4000, np.random.default_rng(2))
    assert basis.slope_norm == pytest.approx(1 / 0.49, rel=0.05)
    # by the features: |f -> f_a(x)|^2 = sum_i (d_a phi_i)^2, the mean over directions, at any x
    step = 1e-5
    moved = [(basis.values(X[:1] + h) - basis.values(X[:1] - h)) / (2 * step) for h in step * np.eye(3)]
    assert np.mean([np.sum(m**2) for m in moved]) == pytest.approx(basis.slope_norm, rel=1e-6)


SQUARES: list[tuple[Operator, float | None]] = [
    (Laplacian(), 3.0),
    (Schroedinger(), 3.0),
    (Generator(diffusion=2.0, reversible=True), 6.0),  # (1/2) sigma^2 |grad f|^2
    (Generator(diffusion=2.0), 6.0),
    (Generator(), None),
    (TangentPropagation(), None),
    (Augmentation(2), None),
    (Cross(), None),
    (Transfer(), None),
]


@pytest.mark.parametrize(("operator", "expected"), SQUARES, ids=str)
def test_squared_lengths_of_directions(operator: Operator, expected: float | None) -> None:
    assert operator.slopes_squared(3) == expected


def test_squared_lengths_on_a_manifold_are_its_dimension() -> None:
    assert Laplacian(Sphere(3)).slopes_squared(3) == 2.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), kernel=st.sampled_from(SMOOTH))
def test_kappa_is_the_mean_squared_norm_of_functionals(seed: int, kernel: Kernel) -> None:
    """By a loop over rows and directions: in the span of p functions it is no more than kappa, tr(K^+ L) exactly."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((20, 2)), rng.standard_normal((6, 2))
    basis = LandmarkBasis(kernel, y)
    norm, form, total = basis.norm(np.eye(6)), np.zeros((6, 6)), 0.0
    for row in x:
        for slope in slopes(kernel, row, y).T:
            form += np.outer(slope, slope) / 20
            total += slope @ np.linalg.solve(norm, slope) / 20
    root = inverse_norm(norm)
    if np.linalg.cond(norm) < 1e8:
        assert trace(root, form) == pytest.approx(total, rel=1e-6)
    kappa = roughness(Laplacian(), basis, form, root)
    assert kappa == pytest.approx(2 * basis.slope_norm)  # type: ignore[operator]
    assert trace(root, form) <= kappa * (1 + 1e-6)
    assert roughness(TangentPropagation(), basis, form, root) == pytest.approx(trace(root, form))


def test_the_pseudo_inverse_of_a_norm() -> None:
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.0), np.vstack([Y, Y[:2]]))))
    norm = basis.norm(np.eye(15))
    root = inverse_norm(norm)
    assert root.shape == (15, 12)  # neither the constant nor functions that come twice
    np.testing.assert_allclose(root @ root.T, np.linalg.pinv(norm, rcond=1e-10), rtol=1e-6, atol=1e-6)
    assert inverse_norm(np.diag([1.0, 1e-8]), "float32").shape == (2, 1)
    assert inverse_norm(np.diag([1.0, 1e-8])).shape == (2, 2)
