"""How rows come to their folds, and how rows are told that coincide with landmarks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.moments import NUMBER
from daskspectral.moments.coincidence import BITS, Coincidence, _hashes
from daskspectral.moments.dealing import FOLD, Blocked, Dealt, Groups, Hashed, Labelled, Ranked, hashed, mixed


def rows(start: int, stop: int, **fields: Any) -> dict[str, Any]:
    numbers = np.arange(start, stop)
    return {"x": numbers[:, None].astype(float), NUMBER: numbers, **fields}


def test_the_hash_is_splitmix64() -> None:
    """The values of the reference implementation."""
    values = [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]
    assert mixed(np.arange(2)).tolist() == values
    for folds in (2, 10, 97):
        assert hashed(np.arange(2), folds).tolist() == [v % folds for v in values]


@settings(max_examples=50)
@given(st.integers(2, 12), st.integers(0, 500), st.lists(st.integers(1, 60), min_size=1, max_size=20), st.data())
def test_a_row_has_one_fold_whatever_the_batches(folds: int, start: int, lengths: list[int], data: Any) -> None:
    """That which its rule says, row by row."""
    stop, before, length = start + sum(lengths), data.draw(st.integers(0, 30)), data.draw(st.integers(folds, 600))
    borders, numbers = np.cumsum([start, *lengths]), np.arange(start, stop)
    ends = [length * (k + 1) // folds for k in range(folds)]
    labels = numbers * 7 % folds
    wanted = {
        Hashed(folds): hashed(numbers, folds),
        Dealt(folds, borders[:-1], before): (np.repeat(np.arange(len(lengths)), lengths) + before) % folds,
        Blocked(folds, length): [
            next(k for k in range(folds) if n < ends[k]) if n < length else (n - length) // (length // folds) % folds
            for n in numbers.tolist()
        ],
        Labelled(np.arange(folds), tuple(range(folds))): labels,
    }
    whole = rows(start, stop, **{FOLD: labels})
    for dealing, of_rows in wanted.items():
        np.testing.assert_array_equal(dealing.each(whole), of_rows)
        for groups in (Groups(dealing), Groups(dealing, Coincidence(whole["x"][::5]))):
            apart = groups.landmarks is not None
            assert groups.number == folds + apart
            expected = np.where((numbers - start) % 5 == 0, folds, of_rows) if apart else np.array(of_rows)
            for a, b in itertools.pairwise(borders.tolist()):  # batches of a task have rows of this task only
                found = list(groups.split({k: v[a - start : b - start] for k, v in whole.items()}))
                here = expected[a - start : b - start]
                assert len(np.unique(of_rows[a - start : b - start])) <= dealing.most(a, b) <= min(folds, b - a)
                assert len(found) <= groups.most(a, b) <= dealing.most(a, b) + apart
                assert [group for group, _ in found] == np.unique(here).tolist()
                for group, part in found:
                    assert part[NUMBER].tolist() == numbers[a - start : b - start][here == group].tolist()


@given(st.integers(2, 10), st.integers(2, 99))
def test_few_rows_are_in_folds_of_equal_size(folds: int, n: int) -> None:
    """In the order of their hashes; rows that are appended are dealt by these."""
    found = Ranked(folds, n).of(rows(0, n + 50))
    order = sorted(range(n), key=lambda i: int(mixed(np.array([i]))[0]))
    assert [found[i] for i in order] == [i % folds for i in range(n)]
    np.testing.assert_array_equal(found[n:], hashed(np.arange(n, n + 50), folds))


def test_what_folds_keep_of_their_rule() -> None:
    assert Ranked(3, 9).origin == Hashed(3).origin == {"rule": "hash"}
    assert Dealt(7, np.arange(0, 100, 10), before=3).origin == {"rule": "tasks", "dealt": 10}
    assert Blocked(4, 10).origin == {"rule": "blocks", "block": (10, 2)}
    assert Dealt(7, np.arange(0, 100, 10)).most(5, 11) == 2
    assert Dealt(7, np.arange(0, 100, 10)).most(0, 10) == 1


def test_a_label_that_was_not_counted_is_an_error() -> None:
    dealing = Labelled(np.array([2, 5]), (2, 5))
    assert dealing.of(rows(0, 3, fold=np.array([5, 2, 5]))).tolist() == [1, 0, 1]
    for label in (1, 3, 6):
        with pytest.raises(ValueError, match=rf"row 11 has the label {label} among the folds"):
            dealing.of(rows(10, 12, fold=np.array([5, label])))


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_coincidence_is_equality_of_whole_points(d: int, p: int, seed: int, whole: bool, single: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (200, d)).astype(float) if whole else rng.standard_normal((200, d))
    x = x.astype("float32") if single else x
    landmarks = np.vstack([x[rng.choice(200, p)].astype(float), rng.standard_normal((2, d))])
    expected = (x[:, None] == landmarks).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(Coincidence(landmarks)(x), expected)


def test_the_table_of_hashes() -> None:
    """Of the column in which most landmarks differ; zero has no sign."""
    test = Coincidence(np.array([[0.0, 1.0], [0.0, -1.0]]))
    assert test(np.array([[-0.0, 1.0], [0.0, -2.0], [0.0, -1.0]])).tolist() == [True, False, True]
    assert test.column == 1
    hashes = _hashes(np.random.default_rng(0).standard_normal(4000))
    assert 0 <= hashes.min() < hashes.max() < 2**BITS == len(test.table)
    assert len(np.unique(hashes)) > 3900  # spread over the table
