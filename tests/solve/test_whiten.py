"""Whitening against eigendecompositions written out: any rank and size, the cut, functions that it may not take."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.devices import HOST
from daskspectral.solve import resolve_cut, whiten
from daskspectral.solve.dense import eigh, solving_on
from daskspectral.solve.extremes import Largest, Smallest
from daskspectral.solve.signs import fix_signs
from tests.solve.common import spd


@settings(max_examples=30)
@given(p=st.integers(1, 12), r=st.integers(1, 12), seed=st.integers(0, 1000), decades=st.integers(0, 6))
def test_whitening_is_that_of_the_correlations(p: int, r: int, seed: int, decades: int) -> None:
    rng = np.random.default_rng(seed)
    r = min(p, r)
    norms = 10.0 ** rng.uniform(-decades, decades, p)  # functions of very different sizes hide nothing
    root = np.linalg.qr(rng.standard_normal((p, r)))[0] * rng.uniform(0.1, 1, r) * rng.choice([-1, 1], (p, 1))
    phi = (root @ root.T) * norms[:, None] * norms
    found = whiten(phi, 1e-10)
    scale = np.sqrt(np.diag(phi))
    values, vectors = np.linalg.eigh(phi / np.outer(scale, scale))
    np.testing.assert_allclose(found.spectrum, values[::-1], atol=1e-12)
    assert found.rank == r
    vectors = vectors[:, ::-1][:, :r]
    expected = vectors / np.sqrt(values[::-1][:r])
    signs = np.sign(np.sum(found.matrix * scale[:, None] * expected, axis=0))
    apart = np.abs(np.subtract.outer(values[::-1], values[::-1]) + 9 * np.eye(p)).min(axis=0)[:r] > 1e-3
    difference = found.matrix * scale[:, None] - signs * expected
    np.testing.assert_allclose(difference[:, apart], 0, atol=1e-7)
    np.testing.assert_allclose(found.matrix.T @ phi @ found.matrix, np.eye(r), atol=1e-7)
    skew = np.triu(phi, 1) - np.tril(phi, -1)  # what rounding adds to sums, and more: the symmetric part counts
    np.testing.assert_allclose(whiten(phi + skew, 1e-10).spectrum, found.spectrum, atol=1e-10)


def test_the_cut_is_relative_to_the_largest() -> None:
    q = scipy.linalg.hadamard(4) / 2  # every function has the same norm
    phi = q * np.array([1.0, 1e-3, 1e-5, 1e-11]) @ q.T
    for scale in (1e-200, 1.0, 1e200):
        assert [whiten(scale * phi, cut).rank for cut in (1e-13, 1e-10, 1e-4, 0.1)] == [4, 3, 2, 1]


def test_functions_that_vanish_are_not_seen() -> None:
    phi = np.zeros((3, 3))
    phi[0, 0], phi[2, 2] = 4.0, 1e-30
    for cut in (1e-10, 0.0):
        found = whiten(phi, cut)
        assert found.rank == 2
        assert not found.matrix[1].any()
        np.testing.assert_allclose(found.matrix.T @ phi @ found.matrix, np.eye(2), atol=1e-14)
    with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
        whiten(np.zeros((3, 3)), 1e-10)


@settings(max_examples=30)
@given(p=st.integers(3, 9), kept=st.integers(0, 3), seed=st.integers(0, 1000))
def test_functions_that_the_cut_may_not_take_away(p: int, kept: int, seed: int) -> None:
    """They come first, whitened alone; the others follow, whitened in what is left of them."""
    rng = np.random.default_rng(seed)
    phi, keep = spd(p, rng), np.arange(p) < kept
    rng.shuffle(keep)
    w = whiten(phi, 1e-8, keep).matrix
    if not kept:
        assert np.array_equal(w, whiten(phi, 1e-8).matrix)
        return
    scale = 1 / np.sqrt(np.diag(phi))
    correlation = phi * np.outer(scale, scale)
    inside, across = correlation[np.ix_(keep, keep)], correlation[np.ix_(keep, ~keep)]
    schur = correlation[np.ix_(~keep, ~keep)] - across.T @ np.linalg.solve(inside, across)
    for matrix, block in ((inside, w[keep, :kept]), (schur, w[~keep, kept:])):
        values, vectors = np.linalg.eigh(matrix)
        block = block / scale[keep if matrix is inside else ~keep, None]
        np.testing.assert_allclose(np.abs(block), np.abs(vectors / np.sqrt(values))[:, ::-1], atol=1e-7)
    assert not w[~keep, :kept].any()
    np.testing.assert_allclose(w.T @ phi @ w, np.eye(p), atol=1e-10)
    skew = np.where(np.equal.outer(keep, keep), np.triu(phi, 1) - np.tril(phi, -1), 0)  # as of rounding: it is dropped
    np.testing.assert_allclose(np.abs(whiten(phi + skew, 1e-8, keep).matrix), np.abs(w), atol=1e-6)


def test_kept_functions_survive_a_cut_that_takes_what_is_like_them() -> None:
    near = np.array([[1, 0.999, 0], [0.999, 1, 0], [0, 0, 1.0]])  # a difference of 1e-3 of the largest, 1.999
    keep = np.array([False, True, False])
    for cut, rank in ((1e-4, 3), (0.0012, 2)):
        w = whiten(near, cut, keep).matrix
        assert w.shape == (3, rank)
        np.testing.assert_allclose(np.abs(w[:, 0]), [0, 1, 0])
        np.testing.assert_allclose(w.T @ near @ w, np.eye(rank), atol=1e-10)
    assert whiten(np.ones((2, 2)), 0.0, np.array([True, False])).rank == 1  # nothing is left of the other


def test_cuts() -> None:
    assert [resolve_cut(None, dtype) for dtype in ("float64", "float32")] == [1e-10, 1e-6]
    assert [resolve_cut(0, "float64"), resolve_cut(1e-7, "float32")] == [0, 1e-7]
    for rtol, dtype, least in (
        (-1e-10, "float64", "0"), (1.0, "float64", "0"), (np.nan, "float64", "0"), (9e-8, "float32", "1e-07"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"rtol must lie in \[{least}, 1\) for dtype {dtype}; it is {rtol!r}"):
            resolve_cut(rtol, dtype)


def test_signs() -> None:
    columns = np.array([[1.0, -3.0, 2.0, 0.0, -1.0, -1.0 + 1.5e-6], [-2.0, 1.0, -2.0, 0.0, 1.0 + 1e-9, 1.0]])
    follower = np.ones((1, 6))
    fix_signs(columns, follower)
    assert columns[0].tolist() == [-1.0, 3.0, 2.0, 0.0, 1.0, -1.0 + 1.5e-6]
    assert follower.tolist() == [[-1.0, -1.0, 1.0, 1.0, -1.0, 1.0]]  # of equal magnitudes the first decides
    fix_signs(np.zeros((0, 2)))


def test_extremes_add_like_sums() -> None:
    assert (Largest() + Largest(2.0) + Largest(1.0)).value == 2
    assert (Smallest(1.0) + Smallest(2.0) + Smallest(-1.0)).value == -1


def test_decompositions_of_large_matrices_go_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host stands for an accelerator here: what it is given, and what comes back."""
    given: list[int] = []

    class There:
        accelerated = True
        guarded = HOST.guarded

        def put(self, array: np.ndarray) -> np.ndarray:
            given.append(len(array))
            return array

        def get(self, array: np.ndarray) -> np.ndarray:
            return array

    monkeypatch.setattr("daskspectral.solve.dense.LARGE", 3)
    with solving_on(There()):  # type: ignore[arg-type]
        for p in (3, 4):
            np.testing.assert_allclose(eigh(np.diag(np.arange(p)[::-1] + 1.0))[0], np.arange(p) + 1)
    eigh(np.eye(9))
    assert given == [4]
