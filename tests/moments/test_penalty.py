"""Norms of function spaces, and of a form's functionals in them, against sums over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, FourierBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments.penalty import inverse_norm, roughness, trace
from daskspectral.operators import Generator, Laplacian, Operator, Schroedinger, TangentPropagation

RNG = np.random.default_rng(0)
Y, X = RNG.standard_normal((12, 3)), RNG.standard_normal((200, 3))
SMOOTH: list[tuple[Kernel, float]] = [
    (Gaussian(0.7), 1 / 0.49),
    (Matern(1.5, 1.3), 3 / 1.69),
    (Matern(2.5, 0.8), 5 / (3 * 0.64)),
]


def slopes(kernel: Kernel, x: Any, y: Any, step: float = 1e-5) -> Any:
    """d k(x, y_i) / d x_a by differences: (p, d)."""
    ends = np.vstack([x + step * np.eye(len(x)), x - step * np.eye(len(x))])
    ahead, behind = np.split(kernel.values(ends, y), 2, axis=1)
    return (ahead - behind) / (2 * step)


def test_norms_of_bases() -> None:
    """|sum a_i k(., y_i)|^2 = sum_ij a_i a_j k(y_i, y_j); of monomials mean squares; of the constant 0."""
    fourier = FourierBasis.draw(Gaussian(0.7), 3, 10, np.random.default_rng(1))
    parts = (ConstantBasis(3), LandmarkBasis(Gaussian(0.7), Y), MonomialBasis(3, 2), fourier)
    together = Concatenated(parts)
    values = together.values(X)
    gram = values @ values.T / len(X)
    squares = np.exp(-np.sum((Y[:, None] - Y) ** 2, axis=2) / (2 * 0.49)), np.mean(MonomialBasis(3, 2).values(X) ** 2, 1)
    expected = np.zeros_like(gram)
    expected[1:13, 1:13], expected[13:23, 13:23] = squares[0], np.diag(squares[1])
    expected[23:, 23:] = np.eye(fourier.size)
    np.testing.assert_allclose(together.norm(gram), expected, rtol=1e-12, atol=1e-15)
    assert together.slope_norm is None  # of monomials none is known
    known = Concatenated((parts[0], parts[1], fourier)).slope_norm
    assert known == pytest.approx(1 / 0.49 + fourier.slope_norm)


@pytest.mark.parametrize(("kernel", "expected"), SMOOTH, ids=repr)
def test_the_norm_of_a_derivative_is_the_least_upper_bound(kernel: Kernel, expected: float) -> None:
    """|f -> f_a(x)|^2 = sup f_a(x)^2 / |f|^2: that over a span of kernel functions close to x comes near from below."""
    near = 0.3 * np.vstack([RNG.standard_normal((60, 3)), np.eye(3), -np.eye(3)])
    found = LandmarkBasis(kernel, near).slope_norm
    assert found == pytest.approx(expected)
    values, vectors = np.linalg.eigh(LandmarkBasis(kernel, near).norm(np.zeros((66, 66))))
    kept = values > 1e-9
    bounds = np.sum((vectors[:, kept].T @ slopes(kernel, np.zeros(3), near)) ** 2 / values[kept, None], axis=0)
    assert (bounds <= expected * (1 + 1e-3)).all()
    assert (bounds >= 0.6 * expected).all()


def test_derivatives_without_a_norm_and_of_random_features() -> None:
    for kernel in (Exponential(1.0), Polynomial(3)):
        assert LandmarkBasis(kernel, Y).slope_norm is None
    basis, step = FourierBasis.draw(Gaussian(0.7), 3, 4000, np.random.default_rng(2)), 1e-5
    assert basis.slope_norm == pytest.approx(1 / 0.49, rel=0.05)
    moved = [(basis.values(X[:1] + h) - basis.values(X[:1] - h)) / (2 * step) for h in step * np.eye(3)]
    assert np.mean([np.sum(m**2) for m in moved]) == pytest.approx(basis.slope_norm, rel=1e-6)


SQUARES: list[tuple[Operator, float | None]] = [
    (Schroedinger(), 3.0),
    (Laplacian(Sphere(3)), 2.0),
    (Generator(diffusion=2.0), 6.0),  # (1/2) sigma^2 |grad f|^2
    (Generator(), None),
    (TangentPropagation(), None),
]


@pytest.mark.parametrize(("operator", "expected"), SQUARES, ids=str)
def test_squared_lengths_of_directions(operator: Operator, expected: float | None) -> None:
    assert operator.slopes_squared(3) == expected


@pytest.mark.parametrize(("kernel", "expected"), SMOOTH, ids=repr)
def test_kappa_is_the_mean_squared_norm_of_functionals(kernel: Kernel, expected: float) -> None:
    """By a loop over rows and directions: in the span of p functions it is no more than kappa, tr(K^+ L) exactly."""
    x, y = RNG.standard_normal((20, 2)), 2 * RNG.standard_normal((6, 2))
    basis = LandmarkBasis(kernel, y)
    norm, form, total = basis.norm(np.eye(6)), np.zeros((6, 6)), 0.0
    for row in x:
        for slope in slopes(kernel, row, y).T:
            form += np.outer(slope, slope) / 20
            total += slope @ np.linalg.solve(norm, slope) / 20
    root = inverse_norm(norm)
    assert trace(root, form) == pytest.approx(total, rel=1e-6)
    assert total <= roughness(Laplacian(), basis, form, root) == pytest.approx(2 * expected)
    assert roughness(TangentPropagation(), basis, form, root) == pytest.approx(total)
    assert roughness(TangentPropagation(), basis, -form, root) == 0


def test_the_pseudo_inverse_of_a_norm() -> None:
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.0), np.vstack([Y, Y[:2]]))))
    norm = basis.norm(np.eye(15))
    root = inverse_norm(norm + np.triu(np.ones((15, 15)), 1) * 1e-14)
    assert root.shape == (15, 12)  # neither the constant nor functions that come twice
    np.testing.assert_allclose(root @ root.T, np.linalg.pinv(norm, rcond=1e-10), rtol=1e-6, atol=1e-6)
    for dtype, cut in (("float64", 1e-10), ("float32", 1e-6)):
        assert [inverse_norm(np.diag([1.0, f * cut]), dtype).shape[1] for f in (0.9, 1.1)] == [1, 2]
