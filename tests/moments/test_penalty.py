"""Norms of function spaces, and of a form's functionals in them, against sums over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, FourierBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments.penalty import inverse_norm, roughness, trace
from daskspectral.operators import Laplacian, TangentPropagation

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
    kernel, squares = np.exp(-np.sum((Y[:, None] - Y) ** 2, axis=2) / 0.98), np.diag(gram)[13:23]
    expected = np.zeros_like(gram)
    expected[1:13, 1:13], expected[13:23, 13:23] = kernel, np.diag(squares)
    expected[23:, 23:] = np.eye(fourier.size)
    np.testing.assert_allclose(together.norm(gram), expected, rtol=1e-12, atol=1e-15)
    assert together.slope_norm is None  # of monomials none is known
    known = Concatenated((parts[0], parts[1], fourier)).slope_norm
    assert known == pytest.approx(1 / 0.49 + fourier.slope_norm)


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
