"""Bandwidths chosen from rows: against dense eigenvalues and all pairs, on any chunks, with copies, for bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import load_wine, make_blobs, make_moons

from daskspectral import InvalidRowError
from daskspectral.data.source import open_source
from daskspectral.passes.bandwidth import MULTIPLE, chosen_bandwidth
from daskspectral.solve.bandwidth import JOINED, joining_bandwidth

Array = NDArray[Any]
MOONS = make_moons(700, noise=0.1, random_state=0)[0]


def chosen(x: Any, word: str | float, **options: Any) -> float:
    return chosen_bandwidth(open_source(x), word, 0, **({"on_invalid": "raise", "progress": False} | options))


def modes(x: Array, h: float) -> Array:
    """The eigenvalues of D^-1 K, descending, from the non-symmetric matrix; the first is 1."""
    k = np.exp(-cdist(x, x, "sqeuclidean") / h**2)
    values = scipy.linalg.eigvals(k / k.sum(axis=1, keepdims=True))
    return np.sort(np.real(values))[::-1]


def test_auto_is_where_the_tenth_eigenvalue_has_fallen() -> None:
    for x in (MOONS[:300], load_wine().data, make_blobs(200, 5, centers=3, random_state=0)[0]):
        h = chosen(x, "auto")
        assert modes(x, h)[10] < JOINED <= modes(x, h / 1.012)[10]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**16), st.floats(-100, 100), st.integers(2, 60))
def test_auto_in_any_units_and_place(seed: int, exponent: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    squares = squareform(pdist(x, "sqeuclidean"))
    one = joining_bandwidth(squares)
    assert chosen(10**exponent * (x + rng.standard_normal(3)), "auto") == pytest.approx(10**exponent * one, rel=0.012)


def test_local_is_a_multiple_of_the_median_seventh_distance() -> None:
    seventh = np.sort(cdist(MOONS[:350], MOONS[:350]), axis=1)[:, 7]
    assert chosen(MOONS[:350], "local") == pytest.approx(MULTIPLE * np.median(seventh), rel=1e-12)


def test_median_is_the_median_distance() -> None:
    assert chosen(MOONS, "median") == pytest.approx(np.median(pdist(MOONS)), rel=1e-12)


@pytest.mark.parametrize("word", ["auto", "median", "local"])
def test_bad_rows(word: str) -> None:
    with pytest.raises(ValueError, match=r"expected rows that differ, received 30 that are all \[2.0, 2.0\]"):
        chosen(np.full((30, 2), 2.0), word)
    with pytest.raises(ValueError, match=r"no rows are left: every row is invalid"):
        chosen(np.full((3, 2), np.nan), word, on_invalid="skip")
    with pytest.raises(InvalidRowError, match=r"row 3 is the first"):
        chosen(np.where(np.arange(30)[:, None] == 3, np.nan, MOONS[:30]), word)
    marred = np.where(np.arange(31)[:, None] == 30, np.nan, MOONS[:31])
    assert chosen(marred, word, on_invalid="skip") == pytest.approx(chosen(MOONS[:30], word), rel=1e-12)
