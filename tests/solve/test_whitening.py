"""Whitening against eigendecompositions written out: any rank and size, the cut, functions that it may not take."""

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import whiten
from daskspectral.solve.whitening import eigh, orthonormal
from tests.solve.common import Array, skew, spd


def rooted(matrix: Array) -> Array:
    """V values^(-1/2) of all eigenvectors, the largest first, with the signs of positive largest entries."""
    values, vectors = np.linalg.eigh(matrix)
    found = (vectors / np.sqrt(values))[:, ::-1]
    return np.asarray(found * np.sign(found[np.abs(found).argmax(axis=0), np.arange(len(found))]))


def test_whitening_is_that_of_the_correlations() -> None:
    """Functions of very different sizes hide nothing; those that are combinations of others are left out."""
    rng = np.random.default_rng(0)
    gram, norms = spd(7, rng), 10.0 ** rng.uniform(-5, 5, 7)
    scale = 1 / np.sqrt(np.diag(gram))
    correlation = gram * np.outer(scale, scale)
    for sums in (gram, gram + skew(gram)):
        found = whiten(sums * np.outer(norms, norms), 1e-10)
        np.testing.assert_allclose(found.spectrum, np.linalg.eigvalsh(correlation)[::-1])
        np.testing.assert_allclose(found.matrix * norms[:, None], scale[:, None] * rooted(correlation), atol=1e-9)
        assert found.rank == 7
    mix = rng.standard_normal((7, 12))
    twice = whiten(mix.T @ gram @ mix, 1e-10)
    assert twice.matrix.shape == (12, 7)
    np.testing.assert_allclose(twice.matrix.T @ mix.T @ gram @ mix @ twice.matrix, np.eye(7), atol=1e-9)


def test_the_cut_is_relative_to_the_largest() -> None:
    q = scipy.linalg.hadamard(4) / 2  # every function has the same norm
    phi = q * np.array([1.0, 1e-3, 1e-5, 1e-11]) @ q.T
    for scale in (1e-200, 1.0, 1e200):
        assert [whiten(scale * phi, cut).rank for cut in (1e-13, 1e-10, 1e-4, 0.1)] == [4, 3, 2, 1]


def test_functions_that_vanish_are_not_seen() -> None:
    phi = np.diag([4.0, 0.0, 1e-30])
    for cut in (1e-10, 0.0):
        found = whiten(phi, cut)
        assert found.rank == 2
        assert not found.matrix[1].any()
        np.testing.assert_allclose(found.matrix.T @ phi @ found.matrix, np.eye(2), atol=1e-14)
    with pytest.raises(ValueError, match="every function is 0"):
        whiten(np.zeros((3, 3)), 1e-10)


def test_functions_that_the_cut_must_keep() -> None:
    """They come first, whitened alone; the others follow, whitened in what is left of them."""
    rng = np.random.default_rng(0)
    phi, keep = spd(6, rng), np.array([False, True, False, True, True, False])
    scale = 1 / np.sqrt(np.diag(phi))
    correlation = phi * np.outer(scale, scale)
    inside, across = correlation[np.ix_(keep, keep)], correlation[np.ix_(keep, ~keep)]
    schur = correlation[np.ix_(~keep, ~keep)] - across.T @ np.linalg.solve(inside, across)
    for rounding in (0, np.where(np.equal.outer(keep, keep), skew(phi), 0)):
        w = whiten(phi + rounding, 1e-8, keep).matrix
        np.testing.assert_allclose(w[keep, :3], scale[keep, None] * rooted(inside), atol=1e-7)
        np.testing.assert_allclose(w[~keep, 3:], scale[~keep, None] * rooted(schur), atol=1e-7)
        np.testing.assert_allclose(w.T @ phi @ w, np.eye(6), atol=1e-10)
        assert not w[~keep, :3].any()
    assert np.array_equal(whiten(phi, 1e-8, ~keep & keep).matrix, whiten(phi, 1e-8).matrix)
    near = np.array([[1, 0.999, 0], [0.999, 1, 0], [0, 0, 1.0]])  # a difference of 1e-3 of the largest, 1.999
    for cut, rank in ((1e-4, 3), (0.0012, 2)):  # takes what is like them
        w = whiten(near, cut, np.array([False, True, False])).matrix
        assert w.shape == (3, rank)
        np.testing.assert_allclose(np.abs(w[:, 0]), [0, 1, 0])
    assert whiten(np.ones((2, 2)), 0.0, np.array([True, False])).rank == 1  # nothing is left of the other


def test_functions_become_orthonormal_by_the_least_move() -> None:
    rng = np.random.default_rng(1)
    span, inner = rng.standard_normal((9, 5)), np.eye(5) + 0.1 * spd(5, rng)
    found = orthonormal(span, inner + skew(inner))
    np.testing.assert_allclose(found, span @ np.linalg.inv(np.real(scipy.linalg.sqrtm(inner))), atol=1e-12)


def test_a_failed_driver_is_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, tried = scipy.linalg.eigh, []

    def fragile(matrix: Array, driver: str | None = None) -> tuple[Array, Array]:
        tried.append(driver)
        if driver is None:  # as on some clusters of equal eigenvalues, now and then
            raise scipy.linalg.LinAlgError("Internal Error.")
        return solve(matrix, driver=driver)

    monkeypatch.setattr(scipy.linalg, "eigh", fragile)
    values, vectors = eigh(np.diag([3.0, 1.0, 1.0]))
    np.testing.assert_allclose(values, [1, 1, 3])
    np.testing.assert_allclose(np.abs(vectors[0]), [0, 0, 1], atol=1e-15)
    assert tried == [None, "evd"]
