"""The symmetric eigenproblem, from below and from above, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import Problem, Symmetric, whiten
from tests.solve.common import positive, skew, spd, symmetric


@pytest.mark.parametrize(("count", "descending", "ridge"), [(4, False, 0.0), (14, True, 0.1), (1, True, 0.0)])
def test_nonsingular_problems_are_scipys(count: int, descending: bool, ridge: float) -> None:
    rng = np.random.default_rng(count)
    phi, form = spd(7, rng), symmetric(7, rng)
    expected, vectors = scipy.linalg.eigh(form + ridge * np.trace(form) / 7 * np.eye(7), phi)
    step, k = -1 if descending else 1, min(count, 7)
    for sums in (form, form + skew(form)):  # as rounding makes them, and more: the symmetric part counts
        found = Symmetric().solve(Problem(sums, phi, count, 1e-10, descending=descending, ridge=ridge))
        np.testing.assert_allclose(found.values, expected[::step][:k], atol=1e-10)
        np.testing.assert_allclose(np.abs(found.left), np.abs(vectors[:, ::step][:, :k]), atol=1e-8)
    assert positive(np.linalg.solve(whiten(phi, 1e-10).matrix, found.left))
    assert found.residuals.shape == (k,)
    assert found.residuals.max() < 1e-11
    assert found.right is found.left
    assert found.status.startswith(f"{k} of the {count} values wanted; rank 7 of 7; residuals up to ")


def test_singular_problems_are_solved_on_the_range() -> None:
    """Redundant functions change nothing: A^T phi A and A^T L A have the spectrum of phi and L."""
    rng = np.random.default_rng(0)
    phi, form, mix = spd(5, rng), spd(5, rng), rng.standard_normal((5, 11))
    found = Symmetric().solve(Problem(mix.T @ form @ mix, mix.T @ phi @ mix, count=11, cut=1e-10))
    assert found.rank == 5
    np.testing.assert_allclose(found.values, scipy.linalg.eigvalsh(form, phi), atol=1e-7)


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
