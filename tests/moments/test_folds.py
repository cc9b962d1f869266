"""How rows come to their folds and are told that coincide with landmarks; and sums by fold, which add and travel."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.basis import MonomialBasis
from daskspectral.moments import NUMBER, Folds, Moments
from daskspectral.moments.folds import (
    FOLD,
    BlockedFolds,
    Groups,
    LabeledFolds,
    LandmarkMatcher,
    RandomFolds,
    distinct_rows,
    hashed,
    mixed,
)
from daskspectral.operators import Laplacian
from tests.common import assert_same_arrays, reloaded
from tests.moments.common import folds_of


def rows(start: int, stop: int, **fields: Any) -> dict[str, Any]:
    numbers = np.arange(start, stop)
    return {"x": numbers[:, None].astype(float), NUMBER: numbers, **fields}


def test_the_hash_is_splitmix64() -> None:
    """The values of the reference implementation."""
    values = [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]
    assert mixed(np.arange(2)).tolist() == values
    assert [hashed(np.arange(2), folds).tolist() for folds in (2, 97)] == [[v % f for v in values] for f in (2, 97)]


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (2.54, 0.0), (1.0, 1e3 / 3), (-0.1, 7.0)])
def test_copies_are_found_from_any_origin_in_any_unit(unit: float, origin: float) -> None:
    """Rows that are equal because each of their columns is rounded are none."""
    x = np.random.default_rng(0).standard_normal((2000, 2))
    halves = np.vstack([x[:1000], x[:1000]])
    np.testing.assert_array_equal(distinct_rows(unit * halves + origin), np.tile(np.arange(1000), 2))
    for other in (x, x.round(1), np.rint(3 * x[:, :1]), np.ones((2000, 1))):
        np.testing.assert_array_equal(distinct_rows(unit * other + origin), np.arange(2000))
    mixed_columns = np.column_stack([halves[:, :1], halves[:, 1:].round()])
    assert distinct_rows(unit * mixed_columns + origin).max() == 999


@given(st.integers(2, 12), st.integers(0, 500), st.lists(st.integers(1, 60), min_size=1, max_size=20), st.data())
def test_a_row_has_one_fold_for_any_batches(folds: int, start: int, lengths: list[int], data: Any) -> None:
    """That which its rule says, row by row."""
    stop, length = start + sum(lengths), data.draw(st.integers(folds, 600))
    borders, numbers = np.cumsum([start, *lengths]), np.arange(start, stop)
    ends = [length * (k + 1) // folds for k in range(folds)]
    labels = numbers * 7 % folds
    wanted = {
        RandomFolds(folds): hashed(numbers, folds),
        BlockedFolds(folds, length): [
            next(k for k in range(folds) if n < ends[k]) if n < length else (n - length) // (length // folds) % folds
            for n in numbers.tolist()
        ],
        LabeledFolds(np.arange(folds), tuple(range(folds))): labels,
    }
    whole = rows(start, stop, **{FOLD: labels})
    for fold_rule, of_rows in wanted.items():
        np.testing.assert_array_equal(fold_rule.of(whole), of_rows)
        for groups in (Groups(fold_rule), Groups(fold_rule, LandmarkMatcher(whole["x"][::5]))):
            apart = groups.landmarks is not None
            assert groups.number == folds + apart
            expected = np.where((numbers - start) % 5 == 0, folds, of_rows) if apart else np.array(of_rows)
            for a, b in itertools.pairwise(borders.tolist()):  # batches of a task have rows of this task only
                found = list(groups.split({k: v[a - start : b - start] for k, v in whole.items()}))
                here = expected[a - start : b - start]
                assert len(np.unique(of_rows[a - start : b - start])) <= fold_rule.most(a, b) <= min(folds, b - a)
                assert [group for group, _ in found] == np.unique(here).tolist()
                for group, part in found:
                    assert part[NUMBER].tolist() == numbers[a - start : b - start][here == group].tolist()


@given(st.integers(2, 10), st.integers(2, 99))
def test_few_rows_are_in_folds_of_equal_size(folds: int, n: int) -> None:
    """In the order of their hashes."""
    found = RandomFolds(folds, rows=n).of(rows(0, n))
    order = sorted(range(n), key=lambda i: int(mixed(np.array([i]))[0]))
    assert [found[i] for i in order] == [i % folds for i in range(n)]


def test_a_label_that_was_not_counted_is_an_error() -> None:
    fold_rule = LabeledFolds(np.array([2, 5]), (2, 5))
    assert fold_rule.of(rows(0, 3, fold=np.array([5, 2, 5]))).tolist() == [1, 0, 1]
    for label in (1, 3, 6):
        with pytest.raises(ValueError, match="row 11"):
            fold_rule.of(rows(10, 12, fold=np.array([5, label])))


@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_coincidence_is_equality_of_whole_points(d: int, p: int, seed: int, whole: bool, single: bool) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.integers(-2, 3, (200, d)) if whole else rng.standard_normal((200, d))).astype("f4" if single else "f8")
    landmarks = np.vstack([x[rng.choice(200, p)].astype(float), rng.standard_normal((2, d))])
    expected = (x[:, None] == landmarks).all(axis=2).any(axis=1)
    np.testing.assert_array_equal(LandmarkMatcher(landmarks)(x), expected)


# sums by fold


def folds(groups: int = 3, *, seed: int = 0, **rule: Any) -> Folds:
    rng = np.random.default_rng(seed)
    arrays = {"form": rng.standard_normal((groups, 4, 4)), "first": rng.standard_normal((groups, 4))}
    return Folds(arrays, rng.random(groups), rng.integers(1, 9, groups), **rule)


def moments(parts: Folds | None) -> Moments:
    arrays = {"form": np.eye(4), "first": np.ones(4)} if parts is None else parts.total()
    return Moments(arrays, 5.0, 5, MonomialBasis(1, 3), Laplacian(), folds=parts)


def test_folds_add_group_by_group() -> None:
    """A group of landmark rows that is missing counts as zero."""
    a, b = folds(seed=1), folds(4, seed=2, landmarks=True)
    for one, other in ((a, b), (b, a)):
        total = folds_of(moments(one) + moments(other))
        assert (total.number, total.reserved, total.validation_folds) == (3, (), (0, 1, 2))
        for found, x, y in ((total.weight, a.weight, b.weight), (total.count, a.count, b.count)):
            np.testing.assert_array_equal(found, np.append(x, 0) + y)
        for name, values in total.arrays.items():
            np.testing.assert_array_equal(values[:3], a.arrays[name] + b.arrays[name][:3])
            np.testing.assert_array_equal(values[3], b.arrays[name][3])
            np.testing.assert_allclose(total.total()[name], values.sum(axis=0), rtol=1e-13)
    assert (moments(a) + moments(None)).folds is (moments(None) + moments(a)).folds is None
    assert moments(a).fingerprint == moments(None).fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (folds(reserved=(0, 2)), folds(reserved=(1,))),
        (folds(3), folds(2)),
        (folds(labels=(0, 1, 2), rule="labels"), folds()),
    ],
)
def test_other_folds_do_not_add(one: Folds, other: Folds) -> None:
    with pytest.raises(ValueError, match="folds=None"):
        one + other


def test_folds_are_saved_with_their_moments() -> None:
    whole = moments(folds(4, landmarks=True, rule="labels", labels=("north", 2.5, 3), block=(40, 4)))
    found = reloaded(replace(whole, landmark_rows="apart"))
    own = found.folds
    assert found.landmark_rows == "apart"
    assert (own.rule, own.block, own.number, own.labels) == ("labels", (40, 4), 3, ("north", 2.5, 3))
    assert_same_arrays(own.arrays, folds_of(whole).arrays)
