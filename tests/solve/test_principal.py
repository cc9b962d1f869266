"""Largest variance for the norm: kernel principal components against the centred kernel matrix, columns against PCA."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import Principal, Problem
from tests.solve.common import gaussian, positive, spd


def test_kernel_components_are_those_of_the_centred_kernel_matrix() -> None:
    """With every row a landmark and the constant among the functions: eigenvalues of H K H / n, functions of mean 0."""
    x = np.random.default_rng(0).standard_normal((14, 2))
    k = gaussian(x, x, 0.8)
    features = np.column_stack([np.ones(14), k])
    norm = scipy.linalg.block_diag(0.0, k)
    moments = features.T @ features / 14
    found = Principal().solve(Problem(moments, moments, 5, 1e-10, norm=norm))
    centring = np.eye(14) - 1 / 14
    values, vectors = np.linalg.eigh(centring @ k @ centring / 14)
    np.testing.assert_allclose(found.values, values[::-1][:5], rtol=1e-9)
    functions = features @ found.left
    np.testing.assert_allclose(functions.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.abs(functions), np.sqrt(14) * np.abs(vectors[:, ::-1][:, :5]), atol=1e-7)
    np.testing.assert_allclose(found.left.T @ norm @ found.left, np.diag(1 / found.values), atol=1e-6)
    assert positive(found.left[1:] * np.sqrt(found.values))
    assert found.rank == 13
    assert found.residuals.max() < 1e-12
    assert found.right is found.left
    assert found.status.startswith("5 of the 5 values wanted; rank 13 of 15")


def test_without_a_constant_nothing_is_subtracted() -> None:
    rng = np.random.default_rng(1)
    form, norm = spd(6, rng), spd(6, rng)
    norm *= np.outer(*2 * [3.0 ** np.arange(6)])
    found = Principal().solve(Problem(form, form, 9, 0.0, norm=norm))
    values, vectors = scipy.linalg.eigh(form, norm)
    np.testing.assert_allclose(found.values, values[::-1], rtol=1e-7)
    np.testing.assert_allclose(np.abs(found.left), np.abs(vectors[:, ::-1]) / np.sqrt(values[::-1]), rtol=1e-5)
    skew = np.triu(form, 1) - np.tril(form, -1)  # what rounding adds to sums, and more: the symmetric part counts
    np.testing.assert_allclose(Principal().solve(Problem(form + skew, form, 9, 0.0, norm=norm)).values, found.values)


def test_combinations_that_are_no_functions_and_values_below_the_cut_are_left_out() -> None:
    form, q = np.diag([4.0, 1.0, 1.5e-3, 0.5e-3]), scipy.linalg.hadamard(4) / 2
    assert Principal().solve(Problem(form, form, 9, 2.5e-4, norm=np.eye(4))).rank == 3
    assert Principal().solve(Problem(form, form, 9, 0.25, norm=np.eye(4))).rank == 1  # those above the cut
    for least, rank in ((6e-12, 4), (2e-12, 3)):  # beside 1e-12 of the largest
        norm = q * [3.6, 0.2, 0.2, least] @ q.T
        assert Principal().solve(Problem(np.eye(4), np.eye(4), 9, 0.0, norm=norm)).rank == rank


def test_functions_of_norm_0_alone_are_refused() -> None:
    for norm in (None, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="the norm of every function is 0"):
            Principal().solve(Problem(np.eye(2), np.eye(2), 1, 1e-10, norm=norm))
