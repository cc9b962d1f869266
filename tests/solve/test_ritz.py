"""Ritz values of given functions, against functions that are whitened row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import explained, ritz, ritz_singular

SEEDS = st.integers(0, 10**6)


def moments(seed: int, p: int = 8, n: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (n, p) and another set (n, p), as of derivatives or of the future, and coefficients (p, 3)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal((n, p)), rng.standard_normal((p, 3))


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_ritz_values_are_those_of_functions_made_orthonormal_at_the_rows(seed: int) -> None:
    f, g, c = moments(seed)
    q, r = np.linalg.qr(f @ c)  # no Gram matrix
    slopes = g @ c @ np.linalg.inv(r)
    expected = np.linalg.svd(slopes, compute_uv=False)[::-1] ** 2
    np.testing.assert_allclose(ritz(c, g.T @ g, f.T @ f), expected, rtol=1e-9)
    found = ritz(c, f.T @ g, f.T @ f, symmetric=False)
    expected = np.linalg.eigvals(q.T @ slopes)
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-7, atol=1e-9)
    assert np.all(np.diff(found.real) <= 1e-12)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_values_depend_on_the_span_alone(seed: int) -> None:
    f, g, c = moments(seed)
    mixing = np.random.default_rng(seed + 1).standard_normal((3, 3)) + 3 * np.eye(3)
    for form, symmetric in ((g.T @ g, True), (f.T @ g, False)):
        a, b = (ritz(functions, form, f.T @ f, symmetric=symmetric) for functions in (c, c @ mixing))
        np.testing.assert_allclose(a.sum(), b.sum(), rtol=1e-6, atol=1e-9)
        if symmetric:
            np.testing.assert_allclose(a, b, rtol=1e-6)
    pair = [ritz_singular(u, u[::-1], f.T @ g, f.T @ f, g.T @ g) for u in (c, c @ mixing)]
    np.testing.assert_allclose(*pair, rtol=1e-6)
    conjugate = np.column_stack([c[:, 0] + 1j * c[:, 1], c[:, 0] - 1j * c[:, 1], c[:, 2]])
    again = ritz_singular(conjugate, conjugate[::-1], f.T @ g, f.T @ f, g.T @ g)
    np.testing.assert_allclose(again, pair[0], rtol=1e-6)  # a conjugate pair spans its real and imaginary parts


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 7))
def test_min_max(seed: int, k: int) -> None:
    f, g, _ = moments(seed)
    c = np.random.default_rng(seed + 2).standard_normal((8, k))
    least = scipy.linalg.eigh(g.T @ g, f.T @ f, eigvals_only=True)
    assert np.all(ritz(c, g.T @ g, f.T @ f) >= least[:k] * (1 - 1e-9))
    generator = f.T @ g  # Ky Fan, for the symmetric part
    part = scipy.linalg.eigh(0.5 * (generator + generator.T), f.T @ f, eigvals_only=True)
    assert ritz(c, generator, f.T @ f, symmetric=False).real.sum() <= part[::-1][:k].sum() + 1e-9
    whole = np.linalg.svd(np.linalg.qr(f)[0].T @ np.linalg.qr(g)[0], compute_uv=False)
    assert np.all(ritz_singular(c, c[::-1], f.T @ g, f.T @ f, g.T @ g) <= whole[:k] + 1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_singular_values_are_canonical_correlations(seed: int) -> None:
    f, g, c = moments(seed)
    f, g, n = f + 3, g + f, len(f)
    u, v = f @ c, g @ c[::-1]
    for centred in (False, True):
        means = (f.mean(axis=0), g.mean(axis=0)) if centred else None
        left, right = ((a - a.mean(axis=0) if centred else a) for a in (u, v))
        expected = np.linalg.svd(np.linalg.qr(left)[0].T @ np.linalg.qr(right)[0], compute_uv=False)
        found = ritz_singular(c, c[::-1], f.T @ g / n, f.T @ f / n, g.T @ g / n, means)
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_directions_that_the_rows_do_not_determine_have_no_value() -> None:
    f, g, c = moments(0)
    f[:, -1] = g[:, -1] = 0.0  # a function that vanishes on these rows
    vanishing = np.eye(8)[:, -1:]
    together = np.hstack([c[:, :2], vanishing])
    found = ritz(together, g.T @ g, f.T @ f)
    np.testing.assert_allclose(found[:2], ritz(c[:, :2], g.T @ g, f.T @ f), rtol=1e-9)
    assert np.isnan(found[2])
    assert np.isnan(ritz(vanishing, g.T @ g, f.T @ f)).all()
    assert np.isnan(ritz(c, 0 * f.T @ f, 0 * f.T @ f)).all()
    gram = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])  # two functions that are equal but for rounding
    assert np.isnan(ritz(np.array([[1.0], [-1.0]]), np.eye(2), gram)).all()
    repeated = np.hstack([c, c @ [[1.0], [2.0], [3.0]]])
    assert np.count_nonzero(np.isnan(ritz(repeated, g.T @ g, f.T @ f))) == 1
    few = f[:2], g[:2]
    assert np.count_nonzero(np.isnan(ritz(c, few[1].T @ few[1], few[0].T @ few[0]))) == 1
    np.testing.assert_array_equal(ritz_singular(vanishing, c[:, :1], f.T @ g, f.T @ f, g.T @ g), [0.0])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_the_basis_and_of_the_functions_do_not_matter(scale: float) -> None:
    f, g, c = moments(1)
    units = np.logspace(-8, 8, 8)
    expected = ritz(c, g.T @ g, f.T @ f)
    found = ritz(scale * c / units[:, None], units[:, None] * (g.T @ g) * units, units[:, None] * (f.T @ f) * units)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_constant_drops_out_once_the_means_are_subtracted() -> None:
    f, g, _ = moments(2)
    f[:, 0] = g[:, 0] = 1.0
    n, constant = len(f), np.eye(8)[:, :1]
    grams = f.T @ g / n, f.T @ f / n, g.T @ g / n
    assert ritz_singular(constant, constant, *grams)[0] == pytest.approx(1)
    assert ritz_singular(constant, constant, *grams, (f.mean(axis=0), g.mean(axis=0)))[0] == 0


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_what_is_explained_is_the_norm_less_the_norm_of_the_error(seed: int) -> None:
    """Values of two finite variables: operators are matrices, and their norm is Frobenius'."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.ones(30)).reshape(5, 6)
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    exact = joint / np.sqrt(np.outer(p, q))
    values, u, v = rng.uniform(0, 1, 3), rng.standard_normal((5, 3)), rng.standard_normal((6, 3))
    left, right = (np.sqrt(w)[:, None] * c for w, c in ((p, u), (q, v)))
    fitted = (left / np.linalg.norm(left, axis=0) * values) @ (right / np.linalg.norm(right, axis=0)).T
    shares = explained(values, u, v, joint, np.diag(p), np.diag(q))
    assert shares.sum() == pytest.approx((exact**2).sum() - ((exact - fitted) ** 2).sum(), rel=1e-9)
    left, singular, right = np.linalg.svd(exact, full_matrices=False)
    whole = explained(
        singular, left / np.sqrt(p)[:, None], right.T / np.sqrt(q)[:, None], joint, np.diag(p), np.diag(q)
    )
    np.testing.assert_allclose(whole, singular**2, atol=1e-12)
    centred = explained(
        singular[1:],
        (left / np.sqrt(p)[:, None])[:, 1:] + 3,
        (right.T / np.sqrt(q)[:, None])[:, 1:] - 2,
        joint,
        np.diag(p),
        np.diag(q),
        (p, q),
    )
    np.testing.assert_allclose(centred, singular[1:] ** 2, atol=1e-12)
