"""Whitening and the symmetric eigenproblem against scipy, closed forms and known spectra."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Polynomial
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.solve import Problem, Symmetric, resolve_cut, whiten
from daskspectral.solve.signs import fix_signs


def spd(p: int, rng: np.random.Generator, least: float = 0.1) -> Any:
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return q * rng.uniform(least, 1, p) @ q.T


@settings(max_examples=50, deadline=None)
@given(p=st.integers(1, 20), r=st.integers(1, 20), seed=st.integers(0, 1000), decades=st.integers(0, 6))
def test_whitening_of_any_rank(p: int, r: int, seed: int, decades: int) -> None:
    rng = np.random.default_rng(seed)
    r = min(p, r)
    norms = 10.0 ** rng.uniform(-decades, decades, p)  # functions of very different sizes hide nothing
    root = np.linalg.qr(rng.standard_normal((p, r)))[0] * rng.uniform(0.1, 1, r) * rng.choice([-1, 1], (p, 1))
    phi = (root @ root.T) * norms[:, None] * norms
    found = whiten(phi, 1e-10)
    assert found.rank == r
    assert found.matrix.shape == (p, r)
    np.testing.assert_allclose(found.matrix.T @ phi @ found.matrix, np.eye(r), rtol=0, atol=1e-7)
    assert found.spectrum.shape == (p,)
    assert (np.diff(found.spectrum) <= 0).all()
    # all of the range: W W^T is a generalised inverse
    np.testing.assert_allclose(
        (phi @ found.matrix @ found.matrix.T @ phi) / norms[:, None] / norms,
        phi / norms[:, None] / norms,
        rtol=0,
        atol=1e-7,
    )


def test_the_cut_is_relative_to_the_largest() -> None:
    q = scipy.linalg.hadamard(4) / 2  # every function has the same norm
    phi = q * np.array([1.0, 1e-3, 1e-5, 1e-11]) @ q.T
    for scale in (1e-200, 1.0, 1e200):
        assert [whiten(scale * phi, cut).rank for cut in (1e-13, 1e-10, 1e-4, 0.1)] == [4, 3, 2, 1]


def test_functions_that_vanish_are_not_seen() -> None:
    phi = np.zeros((3, 3))
    phi[0, 0], phi[2, 2] = 4.0, 1e-30
    found = whiten(phi, 1e-10)
    assert found.rank == 2
    assert not found.matrix[1].any()
    np.testing.assert_allclose(found.matrix.T @ phi @ found.matrix, np.eye(2), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
        whiten(np.zeros((3, 3)), 1e-10)


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


def test_signs() -> None:
    columns = np.array([[1.0, -3.0, 2.0, 0.0, -1.0], [-2.0, 1.0, -2.0, 0.0, 1.0 + 1e-9]])
    follower = np.ones((1, 5))
    fix_signs(columns, follower)
    assert columns.tolist() == [[-1.0, 3.0, 2.0, 0.0, 1.0], [2.0, -1.0, -2.0, 0.0, -1.0 - 1e-9]]
    assert follower.tolist() == [[-1.0, -1.0, 1.0, 1.0, -1.0]]  # of equal magnitudes the first decides


def test_the_ridge_goes_on_the_form() -> None:
    rng = np.random.default_rng(2)
    phi, form = spd(6, rng), spd(6, rng)
    found = Symmetric().solve(Problem(form, phi, count=6, cut=1e-10, ridge=0.1))
    expected = scipy.linalg.eigvalsh(form + 0.1 * np.trace(form) / 6 * np.eye(6), phi)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    plain = Symmetric().solve(Problem(form, phi, count=6, cut=1e-10))
    assert (found.values > plain.values).all()


@settings(max_examples=50, deadline=None)
@given(p=st.integers(1, 12), kept=st.integers(0, 4), seed=st.integers(0, 1000), decades=st.integers(0, 12))
def test_functions_that_the_cut_may_not_take_away(p: int, kept: int, seed: int, decades: int) -> None:
    """One, the constant, whatever the others are; several as far as they are independent themselves."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((p, p)) * 10.0 ** -rng.uniform(0, decades if kept < 2 else min(decades, 2), p)
    phi = root @ root.T
    keep = np.arange(p) < kept
    rng.shuffle(keep)
    w = whiten(phi, 1e-8, keep).matrix
    np.testing.assert_allclose(w.T @ phi @ w, np.eye(w.shape[1]), rtol=0, atol=1e-5)
    assert w.shape[1] <= whiten(phi, 1e-8).rank + min(kept, p)
    scale = 1 / np.sqrt(np.diag(phi))
    for i in np.flatnonzero(keep):
        projected = w @ (w.T @ phi[:, i])
        residual = scale[i] * (projected - np.eye(p)[i])
        assert residual @ phi @ residual < 1e-7  # relative to a norm of 1
    if not keep.any():
        assert np.array_equal(w, whiten(phi, 1e-8).matrix)


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


@pytest.mark.parametrize(
    ("rtol", "dtype", "expected"),
    [
        (None, "float64", 1e-10),
        (None, "float32", 1e-6),
        (0, "float64", 0.0),
        (1e-14, "float64", 1e-14),
        (1e-7, "float32", 1e-7),
    ],
)
def test_cuts(rtol: float | None, dtype: str, expected: float) -> None:
    assert resolve_cut(rtol, dtype) == expected


@pytest.mark.parametrize(
    ("rtol", "dtype"),
    [(-1e-10, "float64"), (1.0, "float64"), (np.nan, "float64"), (9e-8, "float32"), (0, "float32")],
)
def test_cuts_refused(rtol: float, dtype: str) -> None:
    least = "0" if dtype == "float64" else "1e-07"
    with pytest.raises(ValueError, match=rf"rtol must lie in \[{least}, 1\) for dtype {dtype}; it is {rtol!r}"):
        resolve_cut(rtol, dtype)


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
