"""Folds: sums by group of rows, which add group by group and travel with their moments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import MonomialBasis
from daskspectral.moments import Folds, Moments
from daskspectral.moments.folds import ALL, COUNT, WEIGHT, gathered, name_in
from daskspectral.operators import Laplacian
from tests.common import assert_same_arrays


def folds(groups: int = 3, *, seed: int = 0, **rule: Any) -> Folds:
    rng = np.random.default_rng(seed)
    arrays = {"form": rng.standard_normal((groups, 4, 4)), "first": rng.standard_normal((groups, 4))}
    return Folds(arrays, rng.random(groups), rng.integers(1, 9, groups), **rule)


def moments(parts: Folds | None) -> Moments:
    arrays = {"form": np.eye(4), "first": np.ones(4)} if parts is None else parts.total()
    return Moments(arrays, 5.0, 5, MonomialBasis(1, 3), Laplacian(), folds=parts)


def test_folds_add_group_by_group() -> None:
    a, b = folds(seed=1, dealt=3), folds(seed=2, dealt=4)
    total = (moments(a) + moments(b)).folds
    assert total is not None
    assert (total.number, total.dealt, total.reserved, total.judges) == (3, 7, (), (0, 1, 2))
    np.testing.assert_array_equal(total.weight, a.weight + b.weight)
    np.testing.assert_array_equal(total.count, a.count + b.count)
    assert_same_arrays(total.arrays, {name: a.arrays[name] + b.arrays[name] for name in a.arrays})
    for name, values in a.arrays.items():
        np.testing.assert_allclose(a.total()[name], values.sum(axis=0), rtol=1e-13)
    assert (moments(a) + moments(None)).folds is None
    assert (moments(None) + moments(a)).folds is None
    assert moments(a).fingerprint == moments(None).fingerprint


def test_the_group_of_landmark_rows_counts_as_zero_where_it_is_missing() -> None:
    a, b = folds(3), folds(4, landmarks=True, seed=3)
    for total in (a + b, b + a):
        assert (total.number, total.landmarks) == (3, True)
        np.testing.assert_array_equal(total.arrays["form"][3], b.arrays["form"][3])
        np.testing.assert_array_equal(total.arrays["form"][:3], a.arrays["form"] + b.arrays["form"][:3])
        assert total.count[3] == b.count[3]


def test_functions_are_judged_on_folds_that_are_reserved_on_both_sides() -> None:
    one = folds(reserved=(0, 2))
    assert one.judges == (0, 2)
    assert (one + folds()).reserved == (0, 2)
    assert (one + folds(reserved=(2,))).reserved == (2,)
    with pytest.raises(ValueError, match=r"which reserve \(0, 2\) and \(1,\): none is left to judge functions on"):
        one + folds(reserved=(1,))


def test_other_folds_do_not_add() -> None:
    with pytest.raises(ValueError, match=r"moments of 3 and of 2 folds do not add; .* folds=None"):
        folds(3) + folds(2)
    with pytest.raises(ValueError, match=r"labels 0, 1, 2 and none do not add"):
        folds(labels=(0, 1, 2), rule="labels") + folds()
    with pytest.raises(ValueError, match=r"labels 0, 1, 2, 3, 4 and 0, 1, 2, 3, 4, \.\.\. do not add"):
        folds(6, labels=tuple(range(5))) + folds(6, labels=tuple(range(6)))


def test_folds_are_saved_with_their_moments(tmp_path: Path) -> None:
    whole = moments(folds(4, landmarks=True, rule="labels", labels=("north", 2.5, 3), block=(40, 4), dealt=7))
    dsp.save(replace(whole, landmark_rows="apart"), tmp_path / "m.zarr")
    found = dsp.load(tmp_path / "m.zarr")
    own = found.folds
    assert found.landmark_rows == "apart"
    assert (own.rule, own.block, own.dealt, own.number, own.labels) == ("labels", (40, 4), 7, 3, ("north", 2.5, 3))
    assert whole.folds is not None
    assert_same_arrays(own.arrays, whole.folds.arrays)


def test_what_tasks_send_is_gathered_with_zeros_for_groups_without_rows() -> None:
    sums = {name_in(g, "form"): np.full((2, 2), g + 1.0) for g in (2, 0)} | {name_in(ALL, "modes"): np.ones(3)}
    found, total = gathered({**sums, WEIGHT: np.ones(3), COUNT: np.array([1.0, 0, 4])}, 3, rule="hash")
    np.testing.assert_array_equal(found.arrays["form"][:, 0, 0], [1, 0, 3])
    assert found.count.tolist() == [1, 0, 4]
    assert_same_arrays(total, {"form": np.full((2, 2), 4.0), "modes": np.ones(3)})
