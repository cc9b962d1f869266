"""The two-metric singular value decomposition against explicit inverse square roots and centred features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.solve import Problem, Singular, Symmetric, whiten
from tests.solve.common import spd

CUT = 1e-10


def inverse_root(a: Any) -> Any:
    return np.linalg.inv(scipy.linalg.sqrtm(a).real)


@settings(max_examples=50, deadline=None)
@given(p=st.integers(1, 12), q=st.integers(1, 12), count=st.integers(1, 14), seed=st.integers(0, 1000))
def test_nonsingular_problems_are_scipys(p: int, q: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, psi, form = spd(p, rng), spd(q, rng), rng.standard_normal((p, q))
    a, b = inverse_root(phi), inverse_root(psi)
    u, expected, vt = scipy.linalg.svd(a @ form @ b)
    found = Singular().solve(Problem(form, phi, right_gram=psi, count=count, cut=CUT))
    k = min(count, p, q)
    assert found.rank == (p, q)
    assert (found.left.shape, found.right.shape, found.residuals.shape) == ((p, k), (q, k), (k,))
    np.testing.assert_allclose(found.values, expected[:k], rtol=0, atol=1e-12 * (p + q))
    np.testing.assert_allclose(found.left.T @ phi @ found.left, np.eye(k), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.right.T @ psi @ found.right, np.eye(k), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.left.T @ form @ found.right, np.diag(found.values), rtol=0, atol=1e-11)
    assert found.residuals.max() < 1e-12 * (p + q)
    # A = U^T Phi^(-1/2), B = V^T Psi^(-1/2) where the values are apart, up to one sign of the pair
    gaps = np.abs(expected[:, None] - expected[:k] + 9 * np.eye(len(expected))[:, :k]).min(axis=0)
    for i in np.flatnonzero(gaps > 1e-3):
        sign = np.sign(u[:, i] @ a @ phi @ found.left[:, i])
        np.testing.assert_allclose(found.left[:, i], sign * u[:, i] @ a, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.right[:, i], sign * vt[i] @ b, rtol=0, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(r=st.integers(1, 6), s=st.integers(1, 6), extra=st.integers(0, 5), seed=st.integers(0, 1000))
def test_singular_problems_are_solved_on_both_ranges(r: int, s: int, extra: int, seed: int) -> None:
    """Redundant functions change nothing: A^T phi A, B^T psi B and A^T L B have the values of phi, psi and L."""
    rng = np.random.default_rng(seed)
    phi, psi, form = spd(r, rng), spd(s, rng), rng.standard_normal((r, s))
    a, b = rng.standard_normal((r, r + extra)), rng.standard_normal((s, s + 2 * extra))
    left_norms, right_norms = 10.0 ** rng.uniform(-5, 5, r + extra), 10.0 ** rng.uniform(-5, 5, s + 2 * extra)
    a, b = a * left_norms, b * right_norms
    found = Singular().solve(Problem(a.T @ form @ b, a.T @ phi @ a, right_gram=b.T @ psi @ b, count=20, cut=CUT))
    assert found.rank == (r, s)
    assert len(found.values) == min(r, s)
    plain = Singular().solve(Problem(form, phi, right_gram=psi, count=20, cut=CUT))
    np.testing.assert_allclose(found.values, plain.values, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        found.values, scipy.linalg.svdvals(inverse_root(phi) @ form @ inverse_root(psi)), atol=1e-5
    )


def test_the_largest_whitened_coefficient_of_the_left_is_positive_and_the_right_follows() -> None:
    rng = np.random.default_rng(7)
    phi, psi, form = spd(8, rng), spd(6, rng), rng.standard_normal((8, 6))
    found = Singular().solve(Problem(form, phi, right_gram=psi, count=6, cut=CUT))
    whitened = np.linalg.lstsq(whiten(phi, CUT).matrix, found.left, rcond=None)[0]
    assert (whitened[np.abs(whitened).argmax(axis=0), np.arange(6)] > 0).all()
    assert (np.einsum("ik,ij,jk->k", found.left, form, found.right) > 0).all()
    flipped = Singular().solve(Problem(-form, phi, right_gram=psi, count=6, cut=CUT))
    np.testing.assert_allclose(flipped.left, found.left, rtol=0, atol=1e-11)
    np.testing.assert_allclose(flipped.right, -found.right, rtol=0, atol=1e-11)


def test_symmetric_forms_have_their_absolute_eigenvalues() -> None:
    rng = np.random.default_rng(3)
    phi, form = spd(7, rng), rng.standard_normal((7, 7))
    form = form + form.T
    expected = np.abs(Symmetric().solve(Problem(form, phi, count=7, cut=CUT)).values)
    found = Singular().solve(Problem(form, phi, right_gram=phi, count=7, cut=CUT))
    np.testing.assert_allclose(found.values, np.sort(expected)[::-1], rtol=0, atol=1e-12)


def test_the_transposed_form_exchanges_the_sides() -> None:
    rng = np.random.default_rng(4)
    phi, psi, form = spd(5, rng), spd(9, rng), rng.standard_normal((5, 9))
    found = Singular().solve(Problem(form, phi, right_gram=psi, count=4, cut=CUT))
    other = Singular().solve(Problem(form.T, psi, right_gram=phi, count=4, cut=CUT))
    np.testing.assert_allclose(other.values, found.values, rtol=0, atol=1e-12)
    signs = np.sign(np.einsum("ik,ij,jk->k", other.right, phi, found.left))
    np.testing.assert_allclose(other.right * signs, found.left, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other.left * signs, found.right, rtol=0, atol=1e-10)
    assert other.rank == found.rank[::-1]


# centring


def pairs(n: int, d: int, seed: int = 0, correlation: float = 0.8) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) + 0.5
    return x, correlation * x + np.sqrt(1 - correlation**2) * rng.standard_normal((n, d))


def cross(left: Basis, right: Basis, x: Any, y: Any, count: int = 30, center: bool = True) -> Any:
    f, g = left.values(x), right.values(y)
    n = len(x)
    means = (f.mean(axis=1), g.mean(axis=1)) if center else None
    return Singular().solve(
        Problem(f @ g.T / n, f @ f.T / n, right_gram=g @ g.T / n, count=count, cut=CUT, means=means)
    )


def canonical_correlations(f: Any, g: Any) -> Any:
    """Cosines of the angles between the centred features (Bjorck and Golub 1973), of full rank each."""
    q, r = (np.linalg.qr((a - a.mean(axis=1, keepdims=True)).T)[0] for a in (f, g))
    return np.linalg.svd(q.T @ r)[1]


@pytest.mark.parametrize("constant", [False, True])
def test_centred_problems_are_those_of_centred_features(constant: bool) -> None:
    x, y = pairs(300, 2)
    left, right = LandmarkBasis(Gaussian(1.0), x[:6]), LandmarkBasis(Gaussian(0.7), y[:9])
    expected = canonical_correlations(left.values(x), right.values(y))
    if constant:
        both = Concatenated((ConstantBasis(2), left)), Concatenated((right, ConstantBasis(2)))
    else:
        both = left, right
    found = cross(*both, x, y)
    assert found.rank == (6, 9)
    assert found.values.shape == (6,)
    np.testing.assert_allclose(found.values, expected[:6], rtol=0, atol=1e-9)
    for basis, points, coefficients in ((both[0], x, found.left), (both[1], y, found.right)):
        values = coefficients.T @ basis.values(points)
        values -= values.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(values @ values.T / len(x), np.eye(6), rtol=0, atol=1e-8)
    assert found.residuals.max() < 1e-12


def test_centring_removes_the_value_one_of_the_constant_and_no_other() -> None:
    x, y = pairs(500, 1)
    basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(1.5), x[:4])))
    plain, found = cross(basis, basis, x, y, center=False), cross(basis, basis, x, y)
    assert plain.values[0] == pytest.approx(1, abs=1e-9)
    assert found.rank == tuple(r - 1 for r in plain.rank)
    np.testing.assert_allclose(found.values, plain.values[1:], rtol=0, atol=1e-9)


def test_polynomials_hold_the_constant_themselves() -> None:
    x, y = pairs(400, 2, seed=2)
    basis = LandmarkBasis(Polynomial(2), np.random.default_rng(0).standard_normal((12, 2)))
    found = cross(basis, basis, x, y)
    assert found.rank == (5, 5)
    monomials = [np.stack([a[:, 0], a[:, 1], a[:, 0] ** 2, a[:, 0] * a[:, 1], a[:, 1] ** 2]) for a in (x, y)]
    np.testing.assert_allclose(found.values, canonical_correlations(*monomials), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("constant", [False, True])
def test_functions_that_are_almost_constant_add_no_noise(scale: float, constant: bool) -> None:
    """Correlations stay below 1, and near those of the law; centred before the cut, noise goes up to 6."""
    x, y = pairs(20_000, 1, seed=1)
    part = LandmarkBasis(Gaussian(scale), np.random.default_rng(1).standard_normal((30, 1)))
    basis = Concatenated((ConstantBasis(1), part)) if constant else part
    found = cross(basis, basis, x, y)
    assert len(found.values)
    np.testing.assert_allclose(found.values, 0.8 ** np.arange(1, len(found.values) + 1), rtol=0, atol=0.03)


def test_means_of_zero_change_nothing() -> None:
    rng = np.random.default_rng(5)
    phi, psi, form = spd(4, rng), spd(5, rng), rng.standard_normal((4, 5))
    plain = Singular().solve(Problem(form, phi, right_gram=psi, count=4, cut=CUT))
    found = Singular().solve(Problem(form, phi, right_gram=psi, count=4, cut=CUT, means=(np.zeros(4), np.zeros(5))))
    assert np.array_equal(found.values, plain.values)
    assert np.array_equal(found.left, plain.left)
    assert np.array_equal(found.right, plain.right)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(30, 60), p=st.integers(1, 5), q=st.integers(1, 5), shift=st.floats(0, 100), seed=st.integers(0, 1000)
)
def test_centred_features_of_any_offset(n: int, p: int, q: int, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((p, n)) + shift, rng.standard_normal((q, n)) - shift
    f, g = f * rng.uniform(0.1, 10, (p, 1)), g * rng.uniform(0.1, 10, (q, 1))
    means = f.mean(axis=1), g.mean(axis=1)
    found = Singular().solve(Problem(f @ g.T / n, f @ f.T / n, right_gram=g @ g.T / n, count=5, cut=1e-12, means=means))
    assert found.rank == (p, q)
    np.testing.assert_allclose(found.values, canonical_correlations(f, g)[: min(p, q)], rtol=0, atol=1e-6)


def test_a_basis_of_constants_has_nothing_left() -> None:
    x, y = pairs(50, 1)
    for basis in (ConstantBasis(1), Concatenated((ConstantBasis(1), ConstantBasis(1)))):
        with pytest.raises(ValueError, match=r"nothing is left of the basis once the means are subtracted"):
            cross(basis, LandmarkBasis(Gaussian(), y[:3]), x, y)
        with pytest.raises(ValueError, match=r"nothing is left of the basis once the means are subtracted"):
            cross(LandmarkBasis(Gaussian(), x[:3]), basis, x, y)
    with pytest.raises(ValueError, match=r"every basis function is zero on every point"):
        Singular().solve(Problem(np.zeros((2, 2)), np.eye(2), right_gram=np.zeros((2, 2)), count=1, cut=CUT))
