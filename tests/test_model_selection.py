"""Scores in scikit-learn's hands: splitters of trajectories, and data that are cut."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

import daskspectral as dsp
from daskspectral.model_selection import BlockFold, Trajectory, Views, pieces
from daskspectral.operators import Cross, Schroedinger, Transfer
from tests.common import autoregression, unreliable
from tests.estimators.common import make

RNG = np.random.default_rng(0)
X = RNG.uniform(0, np.pi, (600, 1))
CUBIC = dsp.basis.MonomialBasis(1, 3)
WALK = autoregression(1200, 0.8)


def transfer(**options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(Transfer(2), basis=CUBIC, n_components=3, **options)


# -- splitters ---------------------------------------------------------------------------------------------------------


@given(st.integers(2, 60), st.integers(2, 6), st.integers(0, 8))
def test_blocks_are_tested_once_and_their_neighbors_left_out(n: int, splits: int, gap: int) -> None:
    if splits > n:
        return
    fold = BlockFold(splits, gap=gap)
    try:
        found = list(fold.split(np.zeros(n)))
    except ValueError:  # some block and its gaps are everything
        assert any(len(test) + 2 * gap >= n - gap for _, test in KFold(splits).split(np.zeros(n)))
        return
    assert len(found) == fold.get_n_splits() == splits
    for (train, test), (_, expected) in zip(found, KFold(splits).split(np.zeros(n)), strict=True):
        np.testing.assert_array_equal(test, expected)
        near = np.abs(np.arange(n)[:, None] - test).min(axis=1)
        np.testing.assert_array_equal(train, np.flatnonzero(near > gap))


BAD: dict[str, Any] = {
    "n_splits": lambda: BlockFold(1),
    "gap=500": lambda: list(BlockFold(2, gap=500).split(np.zeros((1000, 1)))),
    "ascending": lambda: pieces(X, [3, 1]),
    "view 1": lambda: Views((X, X[:3])),
    "field b": lambda: dsp.Rows(X, fields={"b": X[:3]})[:2],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        BAD[name]()


# -- trajectories ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 30), min_size=1, unique=True).map(sorted), st.integers(1, 4))
def test_no_pair_crosses_a_cut(rows: list[int], lag: int) -> None:
    x = np.arange(31.0)[:, None]
    found = pieces(x, rows)
    np.testing.assert_array_equal(np.concatenate(found)[:, 0], rows)
    pairs = [(a[0], b[0]) for piece in found for a, b in zip(piece[:-lag], piece[lag:], strict=True)]
    gone = set(range(31)) - set(rows)
    assert pairs == [(t, t + lag) for t in rows if not gone & set(range(t, t + lag + 1)) and t + lag <= 30]
    assert all(np.shares_memory(piece, x) for piece in found)


@unreliable
def test_a_trajectory_is_cut_at_validation_rows() -> None:
    fold = BlockFold(4, gap=5)
    found = cross_val_score(transfer(), Trajectory(WALK), cv=fold)
    expected, holed = [], []
    for train, test in fold.split(WALK):
        hole = np.flatnonzero(np.diff(train) > 1) + 1
        parts = np.split(WALK[train], hole)
        fitted = transfer().fit(parts)
        assert fitted.moments_.count == len(train) - 2 * len(parts)
        expected.append(fitted.score(WALK[test]))
        holed.append(transfer().fit(WALK[train]).score(WALK[test]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not np.allclose(found, holed, rtol=1e-9)  # the trap: pairs across the hole
    np.testing.assert_allclose(holed, cross_val_score(transfer(), WALK, cv=fold), rtol=1e-12)


# -- weights, views, fields --------------------------------------------------------------------------------------------


@pytest.mark.slow
@unreliable
def test_weights_are_routed() -> None:
    weights, fold = RNG.integers(1, 4, len(WALK)).astype(float), BlockFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = transfer().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_val_score(routed, Trajectory(WALK), cv=fold, params={"sample_weight": Trajectory(weights)})
    for score, (train, test) in zip(found, fold.split(WALK), strict=True):
        fitted = transfer().fit(pieces(WALK, train), sample_weight=pieces(weights, train))
        assert score == pytest.approx(fitted.score(WALK[test], sample_weight=weights[test]), rel=1e-12)


@unreliable
def test_fields_are_cut_with_their_rows() -> None:
    potential = X[:, 0] ** 2
    est = make(Schroedinger("V"), n_components=2)
    found = cross_val_score(est, dsp.Rows(X, fields={"V": potential}), cv=KFold(3), error_score="raise")
    expected = [
        clone(est).fit(dsp.Rows(X[a], fields={"V": potential[a]})).score(dsp.Rows(X[b], fields={"V": potential[b]}))
        for a, b in KFold(3).split(X)
    ]
    np.testing.assert_array_equal(found, expected)
    cut = dsp.Rows(Trajectory(X), fields={"V": Trajectory(potential)})[np.array([0, 1, 5])]
    assert [len(x) for x in cut.data] == [len(v) for v in cut.fields["V"]] == [2, 1]


def test_views() -> None:
    y = np.sin(X) + 0.1 * RNG.standard_normal(X.shape)
    est = dsp.SpectralDecomposition(Cross(), CUBIC, right_basis=dsp.basis.MonomialBasis(1, 1), n_components=2)
    views = Views((da.from_array(X, chunks=(300, 1)), y))
    fold = KFold(3, shuffle=True, random_state=0)
    found = cross_val_score(est, views, cv=fold, error_score="raise")
    expected = [clone(est).fit((X[a], y[a])).score((X[b], y[b])) for a, b in fold.split(X)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
