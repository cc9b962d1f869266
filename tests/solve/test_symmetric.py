"""The symmetric eigenproblem, from below and from above, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import Problem, Symmetric, whiten
from tests.solve.common import positive, spd, symmetric


@settings(max_examples=40)
@given(p=st.integers(1, 12), seed=st.integers(0, 1000), count=st.integers(1, 14), descending=st.booleans())
def test_nonsingular_problems_are_scipys(p: int, seed: int, count: int, descending: bool) -> None:
    rng = np.random.default_rng(seed)
    phi, form = spd(p, rng), symmetric(p, rng)
    expected, vectors = scipy.linalg.eigh(form, phi)
    if descending:
        expected, vectors = expected[::-1], vectors[:, ::-1]
    found = Symmetric().solve(Problem(form, phi, count=count, cut=1e-10, descending=descending))
    k = min(count, p)
    assert found.rank == p
    np.testing.assert_allclose(found.values, expected[:k], atol=1e-11 * p)
    np.testing.assert_allclose(found.left.T @ phi @ found.left, np.eye(k), atol=1e-11)
    np.testing.assert_allclose(form @ found.left, phi @ found.left * found.values, atol=1e-10)
    gaps = np.abs(expected[:, None] - expected[:k] + 9 * np.eye(p)[:, :k]).min(axis=0)
    apart = gaps > 1e-2
    np.testing.assert_allclose(np.abs(found.left)[:, apart], np.abs(vectors[:, :k])[:, apart], atol=1e-8)
    assert positive(np.linalg.solve(whiten(phi, 1e-10).matrix, found.left))
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-12 * p
    assert found.right is found.left
    skew = np.triu(form, 1) - np.tril(form, -1)  # what rounding adds to sums, and more: the symmetric part counts
    other = Symmetric().solve(Problem(form + skew, phi, count=count, cut=1e-10, descending=descending))
    np.testing.assert_allclose(other.values, found.values, atol=1e-11 * p)
    assert found.status.startswith(f"{k} of the {count} values wanted; rank {p} of {p}; residuals up to ")


@settings(max_examples=20)
@given(p=st.integers(4, 14), seed=st.integers(0, 1000))
def test_singular_problems_are_solved_on_the_range(p: int, seed: int) -> None:
    """Redundant functions change nothing: A^T phi A and A^T L A have the spectrum of phi and L."""
    rng = np.random.default_rng(seed)
    r = p // 2
    phi, form, mix = spd(r, rng), spd(r, rng), rng.standard_normal((r, p))
    found = Symmetric().solve(Problem(mix.T @ form @ mix, mix.T @ phi @ mix, count=p, cut=1e-10))
    assert found.rank == r
    np.testing.assert_allclose(found.values, scipy.linalg.eigvalsh(form, phi), atol=1e-7)


def test_the_ridge_goes_on_the_form() -> None:
    rng = np.random.default_rng(2)
    phi, form = spd(6, rng), spd(6, rng)
    found = Symmetric().solve(Problem(form, phi, count=6, cut=1e-10, ridge=0.1))
    expected = scipy.linalg.eigvalsh(form + 0.1 * np.trace(form) / 6 * np.eye(6), phi)
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


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
        if killed == [0]:
            np.testing.assert_allclose(found.left[1:, 0], 0, atol=1e-10)
