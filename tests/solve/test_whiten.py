"""Whitening: functions of any rank and any size, the cut, and functions that the cut may not take away."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import resolve_cut, whiten


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
