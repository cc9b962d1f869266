"""The two-metric singular value decomposition against explicit inverse square roots and centred features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import Penalty, Problem, Singular, Spectrum, whiten
from daskspectral.solve.singular import _centred_root
from tests.solve.common import Array, gaussian, positive, spd

CUT = 1e-10


def inverse_root(a: Array) -> Array:
    return np.linalg.inv(scipy.linalg.sqrtm(a).real)


@settings(max_examples=40)
@given(p=st.integers(1, 10), q=st.integers(1, 10), count=st.integers(1, 12), seed=st.integers(0, 1000))
def test_nonsingular_problems_are_scipys(p: int, q: int, count: int, seed: int) -> None:
    """A = U^T Phi^(-1/2), B = V^T Psi^(-1/2), with one sign for a pair."""
    rng = np.random.default_rng(seed)
    phi, psi, form = spd(p, rng), spd(q, rng), rng.standard_normal((p, q))
    a, b = inverse_root(phi), inverse_root(psi)
    u, expected, vt = scipy.linalg.svd(a @ form @ b)
    found = Singular().solve(Problem(form, phi, right_gram=psi, count=count, cut=CUT))
    k = min(count, p, q)
    assert found.rank == (p, q)
    assert found.status.startswith(f"{k} of the {count} values wanted; ranks {p} of {p} and {q} of {q}; residuals")
    np.testing.assert_allclose(found.values, expected[:k], atol=1e-11 * (p + q))
    np.testing.assert_allclose(found.left.T @ form @ found.right, np.diag(found.values), atol=1e-10)
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-12 * (p + q)
    assert positive(np.linalg.solve(whiten(phi, CUT).matrix, found.left))
    gaps = np.abs(expected[:, None] - expected[:k] + 9 * np.eye(len(expected))[:, :k]).min(axis=0)
    for i in np.flatnonzero(gaps > 1e-3):
        sign = np.sign(u[:, i] @ a @ phi @ found.left[:, i])
        np.testing.assert_allclose(found.left[:, i], sign * u[:, i] @ a, atol=1e-8)
        np.testing.assert_allclose(found.right[:, i], sign * vt[i] @ b, atol=1e-8)


@settings(max_examples=20)
@given(r=st.integers(1, 6), s=st.integers(1, 6), extra=st.integers(0, 5), seed=st.integers(0, 1000))
def test_singular_problems_are_solved_on_both_ranges(r: int, s: int, extra: int, seed: int) -> None:
    """Redundant functions of any size change nothing: A^T phi A, B^T psi B and A^T L B have phi's, psi's and L's."""
    rng = np.random.default_rng(seed)
    phi, psi, form = spd(r, rng), spd(s, rng), rng.standard_normal((r, s))
    a = rng.standard_normal((r, r + extra)) * 10.0 ** rng.uniform(-5, 5, r + extra)
    b = rng.standard_normal((s, s + 2 * extra)) * 10.0 ** rng.uniform(-5, 5, s + 2 * extra)
    found = Singular().solve(Problem(a.T @ form @ b, a.T @ phi @ a, right_gram=b.T @ psi @ b, count=20, cut=CUT))
    assert found.rank == (r, s)
    expected = scipy.linalg.svdvals(inverse_root(phi) @ form @ inverse_root(psi))
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


# -- centring ----------------------------------------------------------------------------------------------------------


def cross(f: Array, g: Array, count: int = 30, **options: Any) -> Spectrum:
    """Of features (p, n) and (q, n), without their means."""
    n, means = f.shape[1], (f.mean(axis=1), g.mean(axis=1))
    options = {"means": means, "cut": CUT, **options}
    return Singular().solve(Problem(f @ g.T / n, f @ f.T / n, right_gram=g @ g.T / n, count=count, **options))


def canonical_correlations(f: Array, g: Array) -> Array:
    """Cosines of the angles between the centred features (Bjorck and Golub 1973), of full rank each."""
    q, r = (np.linalg.qr((a - a.mean(axis=1, keepdims=True)).T)[0] for a in (f, g))
    return np.linalg.svd(q.T @ r)[1]


@settings(max_examples=30)
@given(
    n=st.integers(30, 60),
    p=st.integers(1, 5),
    q=st.integers(1, 5),
    shift=st.floats(0, 100),
    constant=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_centred_problems_are_those_of_centred_features(
    n: int, p: int, q: int, shift: float, constant: bool, seed: int
) -> None:
    """Of any offset, whether the constant is among the functions or not."""
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((p, n)) + shift, rng.standard_normal((q, n)) - shift
    f, g = f * rng.uniform(0.1, 10, (p, 1)), g * rng.uniform(0.1, 10, (q, 1))
    one = [np.ones((1, n))] if constant else []
    left, right = np.concatenate([*one, f]), np.concatenate([g, *one])
    found = cross(left, right, 5, cut=1e-12)
    assert found.rank == (p, q)
    np.testing.assert_allclose(found.values, canonical_correlations(f, g)[: min(p, q)], atol=1e-6)
    for functions, features in ((found.left, left), (found.right, right)):
        values = functions.T @ features
        values -= values.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(values @ values.T / n, np.eye(min(p, q)), atol=1e-5)


@pytest.mark.parametrize("scale", [10.0, 100.0])
def test_functions_that_are_almost_constant_add_no_noise(scale: float) -> None:
    """Correlations stay below 1, and near those of the law (Mehler); centred before the cut, noise goes up to 6."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20_000, 1))
    y, at = 0.8 * x + 0.6 * rng.standard_normal((20_000, 1)), rng.standard_normal((12, 1))
    found = cross(gaussian(at, x, scale), gaussian(at, y, scale))
    assert len(found.values)
    np.testing.assert_allclose(found.values, 0.8 ** np.arange(1, len(found.values) + 1), atol=0.03)


def test_whitened_functions_stay_white_without_their_means() -> None:
    least = 1e-5
    mean = np.array([0.3, -0.8, 0.2])
    for size, left in ((0.0, 3), (0.5, 3), (1 - 0.8 * least, 3), (1 - 0.4 * least, 2), (1.0, 2), (1 + least, 2)):
        m = size * mean / np.linalg.norm(mean)
        root = _centred_root(m, least)
        assert root.shape == (3, left)
        inside = np.eye(3) - np.outer(m, m)
        np.testing.assert_allclose(root.T @ inside @ root, np.eye(left), atol=1e-9)
    flipped = _centred_root(-mean / np.linalg.norm(mean), least)
    np.testing.assert_allclose(flipped.T @ mean, 0, atol=1e-15)


def test_a_basis_of_constants_has_nothing_left() -> None:
    f, constants = np.random.default_rng(0).standard_normal((3, 50)), np.ones((2, 50))
    for left, right in ((constants, f), (f, constants)):
        with pytest.raises(ValueError, match=r"nothing is left of the basis once the means are subtracted"):
            cross(left, right)
    with pytest.raises(ValueError, match=r"every basis function is zero on every point"):
        cross(f, 0 * f)


# -- among leading functions -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 8), q=st.integers(1, 8), centre=st.booleans())
def test_sides_of_few_functions_are_taken_whole(seed: int, p: int, q: int, centre: bool) -> None:
    """Of whatever penalty: the solution by cut, also where the sides differ in size and the means matter."""
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((p, 50)) + 2, rng.standard_normal((q, 50)) - 1
    options = {} if centre else {"means": None}
    by_cut = cross(f, g, 8, **options)
    found = cross(f, g, 8, penalty=Penalty(0.1 * np.eye(p), 0.2 * np.eye(q)), **options)
    np.testing.assert_allclose(found.values, by_cut.values, atol=1e-9)
    assert found.rank == by_cut.rank
    if not centre:
        np.testing.assert_array_equal(np.sign(np.sum(found.left * by_cut.left, axis=0)), 1)


def test_centring_within_a_span_of_leading_functions() -> None:
    """40 linear functions of 40 columns with means: no constant among them, and more than a Ritz space holds."""
    rng = np.random.default_rng(6)
    f = rng.standard_normal((40, 4000)) + rng.standard_normal((40, 1))
    g = np.vstack([0.9 * f[:3] + 0.3 * rng.standard_normal((3, 4000)), rng.standard_normal((37, 4000))]) + 5
    found = cross(f, g, 3, penalty=Penalty(1e-6 * np.eye(40), 1e-6 * np.eye(40)))
    np.testing.assert_allclose(found.values, canonical_correlations(f, g)[:3], rtol=2e-3)
    assert found.rank == (40, 40)
