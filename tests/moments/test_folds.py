"""Folds: sums by group of rows, which add group by group and travel with their moments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.moments import Folds, Moments
from daskspectral.moments.folds import COUNT, WEIGHT, gathered, name_in
from daskspectral.operators import Laplacian

RNG = np.random.default_rng(8)
BASIS = LandmarkBasis(dsp.kernels.Gaussian(1.0), RNG.standard_normal((4, 2)))


def folds(groups: int = 3, *, landmarks: bool = False, seed: int = 0, **rule: object) -> Folds:
    rng = np.random.default_rng(seed)
    arrays = {"form": rng.standard_normal((groups, 4, 4)), "first": rng.standard_normal((groups, 4))}
    return Folds(arrays, rng.random(groups), rng.integers(1, 9, groups), landmarks, **rule)  # type: ignore[arg-type]


def moments(parts: Folds | None) -> Moments:
    arrays = {"form": np.eye(4), "first": np.ones(4)} if parts is None else parts.total()
    return Moments(arrays, 5.0, 5, BASIS, Laplacian(), folds=parts)


def test_folds_add_group_by_group() -> None:
    a, b = folds(seed=1), folds(seed=2)
    total = (moments(a) + moments(b)).folds
    assert total is not None
    assert total.number == 3
    np.testing.assert_array_equal(total.weight, a.weight + b.weight)
    np.testing.assert_array_equal(total.count, a.count + b.count)
    for name in a.arrays:
        np.testing.assert_array_equal(total.arrays[name], a.arrays[name] + b.arrays[name])
        np.testing.assert_allclose(total.total()[name], (moments(a) + moments(b)).arrays[name], rtol=1e-14)


def test_the_group_of_landmark_rows_counts_as_zero_where_it_is_missing() -> None:
    a, b = folds(3), folds(4, landmarks=True, seed=3)
    for total in (a + b, b + a):
        assert (total.number, total.landmarks) == (3, True)
        np.testing.assert_array_equal(total.arrays["form"][3], b.arrays["form"][3])
        np.testing.assert_array_equal(total.arrays["form"][:3], a.arrays["form"] + b.arrays["form"][:3])
        assert total.count[3] == b.count[3]


def test_other_folds_do_not_add() -> None:
    with pytest.raises(ValueError, match=r"moments of 3 and of 2 folds do not add; .* folds=None"):
        moments(folds(3)) + moments(folds(2))
    with pytest.raises(ValueError, match=r"labels 0, 1, 2 and 0, 1, 3 do not add"):
        moments(folds(labels=(0, 1, 2), rule="labels")) + moments(folds(labels=(0, 1, 3), rule="labels"))
    assert (moments(folds(3)) + moments(None)).folds is None
    assert (moments(None) + moments(folds(3))).folds is None


def test_fingerprints_do_not_depend_on_folds() -> None:
    assert moments(folds()).fingerprint == moments(None).fingerprint


def test_folds_are_saved_with_their_moments(tmp_path: Path) -> None:
    whole = moments(folds(4, landmarks=True, rule="blocks", block=(40, 4), dealt=7))
    dsp.save(replace(whole, landmark_rows="apart"), tmp_path / "m.zarr")
    found = dsp.load(tmp_path / "m.zarr")
    assert found.landmark_rows == "apart"
    assert (found.folds.rule, found.folds.block, found.folds.dealt, found.folds.number) == ("blocks", (40, 4), 7, 3)
    assert whole.folds is not None
    for name, values in whole.folds.arrays.items():
        np.testing.assert_array_equal(found.folds.arrays[name], values)
    np.testing.assert_array_equal(found.folds.count, whole.folds.count)
    labelled = moments(folds(labels=("north", 2.5, 3), rule="labels"))
    dsp.save(labelled, tmp_path / "l.zarr")
    assert dsp.load(tmp_path / "l.zarr").folds.labels == ("north", 2.5, 3)


def test_what_tasks_send_is_gathered_with_zeros_for_groups_without_rows() -> None:
    sums = {name_in(g, "form"): np.full((2, 2), g + 1.0) for g in (2, 0)}
    found, total = gathered({**sums, WEIGHT: np.ones(3), COUNT: np.array([1.0, 0, 4])}, 3, rule="hash")
    np.testing.assert_array_equal(found.arrays["form"][:, 0, 0], [1, 0, 3])
    assert found.count.tolist() == [1, 0, 4]
    np.testing.assert_array_equal(total["form"], np.full((2, 2), 4.0))
