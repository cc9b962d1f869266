"""How rows come to their folds, and how rows are told that coincide with landmarks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.moments import NUMBER
from daskspectral.moments.coincidence import Coincidence
from daskspectral.moments.dealing import FOLD, Blocked, Dealt, Groups, Hashed, Labelled, Ranked, hashed


def rows(start: int, stop: int, **fields: Any) -> dict[str, Any]:
    numbers = np.arange(start, stop)
    return {"x": numbers[:, None].astype(float), NUMBER: numbers, **fields}


def test_the_hash_is_splitmix64() -> None:
    """The values of the reference implementation for the seeds 0, 1 and 2^63."""
    values = [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]
    for folds in (2, 10, 97):
        assert hashed(np.arange(2), folds).tolist() == [v % folds for v in values]
    counts = np.bincount(hashed(np.arange(10**5), 10))
    assert np.sum((counts - 1e4) ** 2 / 1e4) < 27.9  # chi-square, 9 degrees of freedom, .1 %
    pairs = np.bincount(10 * hashed(np.arange(10**5), 10) + hashed(np.arange(1, 10**5 + 1), 10), minlength=100)
    assert np.sum((pairs - 1e3) ** 2 / 1e3) < 149  # neighbours are dealt independently


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(0, 500), st.lists(st.integers(1, 60), min_size=1, max_size=20), st.data())
def test_a_row_has_one_fold_whatever_the_batches(folds: int, start: int, lengths: list[int], data: Any) -> None:
    stop = start + sum(lengths)
    borders = np.cumsum([start, *lengths])
    whole = rows(start, stop, **{FOLD: np.arange(start, stop) * 7 % folds})
    dealings = [
        Hashed(folds),
        Dealt(folds, borders[:-1], data.draw(st.integers(0, 30))),
        Blocked(folds, data.draw(st.integers(folds, 600))),
        Labelled(np.arange(folds), tuple(range(folds))),
    ]
    for dealing in dealings:
        apart = Coincidence(whole["x"][::5])
        for groups in (Groups(dealing), Groups(dealing, apart)):
            seen: dict[int, int] = {}
            for a, b in itertools.pairwise(borders):  # batches of a task have rows of this task only
                found = list(groups.split({k: v[a - start : b - start] for k, v in whole.items()}))
                assert len(found) <= groups.most(a, b)
                for group, part in found:
                    assert 0 <= group < groups.number
                    assert len(part["x"])
                    for number in part[NUMBER].tolist():
                        assert number not in seen
                        seen[number] = group
            assert sorted(seen) == list(range(start, stop))
            if groups.landmarks is not None:
                assert {n for n, g in seen.items() if g == folds} == set(range(start, stop, 5))


@given(st.integers(2, 10), st.integers(2, 99), st.integers(0, 120))
def test_few_rows_are_in_folds_of_equal_size(folds: int, n: int, cut: int) -> None:
    dealing = Ranked(folds, n)
    parts = [dealing.of(rows(a, b)) for a, b in ((0, min(cut, n)), (min(cut, n), n + 50)) if a < b]
    found = np.concatenate(parts)
    sizes = np.bincount(found[:n], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(found[n:], hashed(np.arange(n, n + 50), folds))
    assert dealing.origin == {"rule": "hash"}


def test_tasks_are_dealt_in_turn() -> None:
    starts = np.arange(0, 1000, 10)
    dealing = Dealt(7, starts, before=3)
    found = [dealing.of(rows(start, start + 10)) for start in starts.tolist()]
    assert found == [(i + 3) % 7 for i in range(100)]


def test_blocks_are_contiguous_and_go_on_with_their_length() -> None:
    blocks = Blocked(4, 10)
    assert np.ravel([blocks.of(rows(i, i + 1)) for i in range(10)]).tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    assert blocks.length == 2
    assert np.asarray(blocks.of(rows(8, 20))).tolist() == [3, 3, 0, 0, 1, 1, 2, 2, 3, 3, 0, 0]


def test_a_label_that_was_not_counted_is_an_error() -> None:
    dealing = Labelled(np.array([2, 5]), (2, 5))
    assert dealing.of(rows(0, 3, fold=np.array([5, 2, 5]))).tolist() == [1, 0, 1]
    for label in (1, 3, 6):
        with pytest.raises(ValueError, match=rf"row 11 has the label {label} among the folds"):
            dealing.of(rows(10, 12, fold=np.array([5, label])))


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_coincidence_is_equality_of_whole_points(d: int, p: int, seed: int, whole: bool, single: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (200, d)).astype(float) if whole else rng.standard_normal((200, d))
    x = x.astype("float32") if single else x
    landmarks = np.vstack([x[rng.choice(200, p)].astype(float), rng.standard_normal((2, d))])
    expected = (x[:, None] == landmarks).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(Coincidence(landmarks)(x), expected)


def test_zero_has_no_sign() -> None:
    assert Coincidence(np.array([[0.0, 1.0]]))(np.array([[-0.0, 1.0], [0.0, -1.0]])).tolist() == [True, False]
