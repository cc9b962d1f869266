"""The symmetric eigenproblem against scipy, closed forms and known spectra."""

from __future__ import annotations

from math import comb

import numpy as np
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Polynomial
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.solve import Problem, Symmetric, whiten
from tests.solve.common import spd


@settings(max_examples=50, deadline=None)
@given(p=st.integers(1, 15), seed=st.integers(0, 1000), count=st.integers(1, 20))
def test_nonsingular_problems_are_scipys(p: int, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    phi, form = spd(p, rng), rng.standard_normal((p, p))
    form = form + form.T
    expected, vectors = scipy.linalg.eigh(form, phi)
    found = Symmetric().solve(Problem(form, phi, count=count, cut=1e-10))
    k = min(count, p)
    assert found.rank == p
    np.testing.assert_allclose(found.values, expected[:k], rtol=0, atol=1e-12 * p)
    np.testing.assert_allclose(found.left.T @ phi @ found.left, np.eye(k), rtol=0, atol=1e-12)
    np.testing.assert_allclose(form @ found.left, phi @ found.left * found.values, rtol=0, atol=1e-11)
    overlap = np.abs(np.einsum("ik,ij,jk->k", found.left, phi, vectors[:, :k]))
    gaps = np.abs(expected[:, None] - expected[:k] + 9 * np.eye(p)[:, :k]).min(axis=0)
    np.testing.assert_allclose(overlap[gaps > 1e-3], 1, rtol=0, atol=1e-8)
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-12 * p
    assert found.right is found.left


@settings(max_examples=25, deadline=None)
@given(p=st.integers(4, 20), seed=st.integers(0, 1000))
def test_singular_problems_are_solved_on_the_range(p: int, seed: int) -> None:
    """Redundant functions change nothing: A^T phi A and A^T L A have the spectrum of phi and L."""
    rng = np.random.default_rng(seed)
    r = p // 2
    phi, form, mix = spd(r, rng), spd(r, rng), rng.standard_normal((r, p))
    found = Symmetric().solve(Problem(mix.T @ form @ mix, mix.T @ phi @ mix, count=p, cut=1e-10))
    assert found.rank == r
    np.testing.assert_allclose(found.values, scipy.linalg.eigvalsh(form, phi), rtol=0, atol=1e-7)


def test_the_largest_whitened_coefficient_is_positive() -> None:
    rng = np.random.default_rng(7)
    phi, form = spd(8, rng), spd(8, rng)
    found = Symmetric().solve(Problem(form, phi, count=8, cut=1e-10))
    whitened = np.linalg.lstsq(whiten(phi, 1e-10).matrix, found.left, rcond=None)[0]
    assert (whitened[np.abs(whitened).argmax(axis=0), np.arange(8)] > 0).all()
    again = Symmetric().solve(Problem(form[::-1, ::-1], phi[::-1, ::-1], count=8, cut=1e-10))
    np.testing.assert_allclose(np.abs(again.left), np.abs(found.left[::-1]), rtol=0, atol=1e-12)


def test_the_ridge_goes_on_the_form() -> None:
    rng = np.random.default_rng(2)
    phi, form = spd(6, rng), spd(6, rng)
    found = Symmetric().solve(Problem(form, phi, count=6, cut=1e-10, ridge=0.1))
    expected = scipy.linalg.eigvalsh(form + 0.1 * np.trace(form) / 6 * np.eye(6), phi)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    plain = Symmetric().solve(Problem(form, phi, count=6, cut=1e-10))
    assert (found.values > plain.values).all()


def test_functions_that_the_form_kills_have_the_eigenvalue_zero() -> None:
    rng = np.random.default_rng(5)
    root, form = rng.standard_normal((6, 6)), spd(6, rng)
    root[2] = root[0] + 1e-4 * root[2]  # almost the function 0: the cut takes their difference away
    phi = root @ root.T
    for killed in ([0], [0, 4], range(6)):
        form[killed] = form[:, killed] = 0
        found = Symmetric().solve(Problem(form, phi, count=6, cut=1e-6))
        zeros = found.rank if killed == range(6) else len(killed)
        assert np.abs(found.values[:zeros]).max() < 1e-13
        assert not (found.values[zeros:] < 1e-3).any()
    assert not Symmetric().solve(Problem(np.zeros((1, 1)), np.ones((1, 1)), count=3, cut=1e-10)).values.any()


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 3), degree=st.integers(1, 6), extra=st.integers(0, 10), seed=st.integers(0, 10**6))
def test_polynomials_of_normal_data(d: int, degree: int, extra: int, seed: int) -> None:
    """Rank C(d + s, s) exactly; eigenvalues 0, 1, 2, ... of the normal law: one zero, none negative."""
    rng = np.random.default_rng(seed)
    rank = comb(d + degree, degree)
    p = max(2 * rank, 20) + extra
    n = max(20 * p, 6000)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((p, d))
    basis = LandmarkBasis(Polynomial(degree), y)
    sums = Measure(basis, basis, Laplacian().forms)([{"x": x}])
    found = Symmetric().solve(Problem(sums["form"] / n, sums["gram"] / n, count=p, cut=1e-10))
    assert found.rank == rank == len(found.values)
    assert abs(found.values[0]) < 1e-8 * max(1, found.values[-1])  # the constant
    assert found.values[1] > 0.5
    assert found.values[1] < 1.1
