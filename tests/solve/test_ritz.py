"""Ritz values of given functions, against functions that are whitened row by row."""

from dataclasses import replace

import numpy as np
import pytest

from daskspectral.solve import GalerkinSystem
from daskspectral.solve.ritz import explained, ritz, ritz_singular
from tests.solve.common import Array, skew


def moments(seed: int, p: int = 8, n: int = 200) -> tuple[Array, Array, Array]:
    """Features (n, p) and another set (n, p), as of derivatives or of the future, and coefficients (p, 3)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal((n, p)), rng.standard_normal((p, 3))


@pytest.mark.parametrize("seed", [0, 1])
def test_ritz_values_are_those_of_functions_made_orthonormal_at_the_rows(seed: int) -> None:
    """They depend on the span alone, in any units; a conjugate pair spans its real and imaginary parts."""
    f, g, c = moments(seed)
    form, gram = g.T @ g, f.T @ f
    q, r = np.linalg.qr(f @ c)  # no Gram matrix
    slopes = g @ c @ np.linalg.inv(r)
    expected = np.linalg.svd(slopes, compute_uv=False)[::-1] ** 2
    for rounding in (0, skew(gram)):
        np.testing.assert_allclose(ritz(c, form + rounding, gram + rounding), expected, rtol=1e-9)
    conjugate = np.column_stack([c[:, 0] + 1j * c[:, 1], c[:, 0] - 1j * c[:, 1], c[:, 2]])
    units = np.logspace(-8, 8, 8)
    for functions in (c @ (np.ones((3, 3)) + 3 * np.eye(3)), 1e-12 * c * np.exp(1j * np.arange(3)), conjugate):
        np.testing.assert_allclose(ritz(functions, form, gram), expected, rtol=1e-6)
        scaled = ritz(functions / units[:, None], form * np.outer(units, units), gram * np.outer(units, units))
        np.testing.assert_allclose(scaled, expected, rtol=1e-6)
        found = ritz_singular(functions, functions[::-1], GalerkinSystem(f.T @ g, gram, form))
        np.testing.assert_allclose(found, ritz_singular(c, c[::-1], GalerkinSystem(f.T @ g, gram, form)), rtol=1e-6)
    assert ritz(np.eye(2), np.array([[1.0, -2], [2, 1]]), np.eye(2), symmetric=False) == pytest.approx([1 + 2j, 1 - 2j])
    for turn in (np.eye(3), np.exp(1j * np.arange(3)) * np.eye(3)):
        found = ritz(c @ turn, f.T @ g, gram, symmetric=False)
        expected = np.linalg.eigvals(q.T @ slopes)
        assert np.all(np.diff(found.real) <= 1e-12)
        found, expected = (values[np.lexsort([values.imag, values.real.round(9)])] for values in (found, expected))
        np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("centered", [False, True])
def test_singular_values_are_canonical_correlations(centered: bool) -> None:
    f, g, c = moments(0)
    f, g, n = f + 3, g + f, len(f)
    u, v = f @ c, g @ c[::-1]
    means = (f.mean(axis=0), g.mean(axis=0)) if centered else None
    left, right = ((a - a.mean(axis=0) if centered else a) for a in (u, v))
    expected = np.linalg.svd(np.linalg.qr(left)[0].T @ np.linalg.qr(right)[0], compute_uv=False)
    for turn in (np.eye(3), np.diag([1, 1j, -1j])):
        for sides in ((c @ turn, c[::-1]), (c, c[::-1] @ turn)):
            found = ritz_singular(*sides, GalerkinSystem(f.T @ g / n, f.T @ f / n, g.T @ g / n, means))
            np.testing.assert_allclose(found, expected, rtol=1e-8)
    f[:, 0] = g[:, 0] = 1.0
    constant = np.eye(8)[:, :1]
    means = (f.mean(axis=0), g.mean(axis=0)) if centered else None
    found = ritz_singular(constant, constant, GalerkinSystem(f.T @ g / n, f.T @ f / n, g.T @ g / n, means))
    assert found[0] == pytest.approx(0 if centered else 1)


def test_directions_that_the_rows_do_not_determine_have_no_value() -> None:
    f, g, c = moments(0)
    f[:, -1] = g[:, -1] = 0.0  # a function that vanishes on these rows
    vanishing = np.eye(8)[:, -1:]
    found = ritz(np.hstack([c[:, :2], vanishing]), g.T @ g, f.T @ f)
    np.testing.assert_allclose(found[:2], ritz(c[:, :2], g.T @ g, f.T @ f), rtol=1e-9)
    assert np.isnan(found[2])
    assert np.isnan(ritz(c, 0 * f.T @ f, 0 * f.T @ f)).all()
    repeated = np.hstack([c, c @ [[1.0], [2.0], [3.0]]])
    assert np.count_nonzero(np.isnan(ritz(repeated, g.T @ g, f.T @ f))) == 1
    np.testing.assert_array_equal(ritz_singular(vanishing, c[:, :1], GalerkinSystem(f.T @ g, f.T @ f, g.T @ g)), [0.0])


def test_what_is_explained_is_the_norm_less_the_norm_of_the_error() -> None:
    """Values of two finite variables: operators are matrices, and their norm is Frobenius'."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(30)).reshape(5, 6)
    p, q = joint.sum(axis=1), joint.sum(axis=0)
    known = GalerkinSystem(joint, np.diag(p), np.diag(q))
    exact = joint / np.sqrt(np.outer(p, q))
    values, u, v = rng.uniform(0, 1, 3), rng.standard_normal((5, 3)), rng.standard_normal((6, 3))
    left, right = (np.sqrt(w)[:, None] * c for w, c in ((p, u), (q, v)))
    fitted = (left / np.linalg.norm(left, axis=0) * values) @ (right / np.linalg.norm(right, axis=0)).T
    for turn in (1.0, np.exp(1j * np.arange(3))):
        shares = explained(values, u * turn, v * turn, known)
        assert shares.sum() == pytest.approx((exact**2).sum() - ((exact - fitted) ** 2).sum(), rel=1e-9)
    left, singular, right = np.linalg.svd(exact, full_matrices=False)
    u, v = left / np.sqrt(p)[:, None], right.T / np.sqrt(q)[:, None]
    whole = explained(singular, u, v, known)
    np.testing.assert_allclose(whole, singular**2, atol=1e-12)
    means = explained(singular[1:], u[:, 1:] + 3, v[:, 1:] - 2, replace(known, means=(p, q)))
    np.testing.assert_allclose(means, singular[1:] ** 2, atol=1e-12)
    assert explained(np.ones(1), 0 * u[:, :1], v[:, :1], known) == [0]
