"""Folds through the engine: every row in one fold, whatever the chunks; the same bits whatever the scheduler."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.engine import plan as planning
from daskspectral.errors import InvalidRowError, ReliabilityWarning
from daskspectral.kernels import Exponential, Gaussian, Polynomial
from daskspectral.moments import NUMBER, Moments
from daskspectral.moments.autocovariance import ONE_SERIES, Series
from daskspectral.moments.folds import hashed
from daskspectral.moments.measure import UNFOLDED
from daskspectral.moments.summing import SumTask
from daskspectral.passes import folds as fold_plans
from daskspectral.passes.folds import FoldRequest
from daskspectral.spectral import choice as sides
from daskspectral.workspace import Workspace
from tests.common import Scheduling, assert_close, assert_same_arrays, unreliable
from tests.moments.common import folds_of

RNG, N = np.random.default_rng(11), 4000
X, WEIGHT = RNG.standard_normal((N, 2)), RNG.uniform(0.5, 2, N)
Y = X[:12] + 0.01
SMOOTH = Gaussian(1.0)
GIVEN = Landmarks(SMOOTH, points=Y)


def make(basis: Any = GIVEN, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(basis=basis, n_components=3, **options)


def assert_folds(moments: Moments, groups: np.ndarray, x: np.ndarray = X, weight: np.ndarray | None = None) -> None:
    """The folds hold the sums of the rows with these groups, each measured alone."""
    folds, w = folds_of(moments), np.ones(len(x)) if weight is None else weight
    assert folds.count.tolist() == np.bincount(groups, minlength=len(folds.count)).tolist()
    np.testing.assert_allclose(folds.weight, np.bincount(groups, w, minlength=len(folds.count)), rtol=1e-12)
    phi = np.exp(-((x[None] - Y[:, None]) ** 2).sum(axis=2) / 2)
    gradient = -phi[:, :, None] * (x[None] - Y[:, None])
    for g in range(len(folds.count)):
        a, b, c = phi[:, groups == g], gradient[:, groups == g], w[groups == g]
        np.testing.assert_allclose(folds.arrays["gram"][g][1:, 1:], a * c @ a.T, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(folds.arrays["first"][g][1:], a @ c, rtol=1e-10, atol=1e-10)
        energy = np.einsum("iks,jks,k->ij", b, b, c)
        np.testing.assert_allclose(folds.arrays["form"][g][1:, 1:], energy, rtol=1e-9, atol=1e-9)
    assert moments.arrays.keys() - folds.arrays.keys() == UNFOLDED


@contextmanager
def tasks(count: int, split: bool = False) -> Iterator[None]:
    """Plans of about so many tasks, with a task for each fold if `split`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_plans, "SPLIT_SHARE", 0 if split else 1 << 40)
        patch.setattr(planning, "LEAST_FLOPS", 1.0)
        patch.setattr(planning, "LEAST_TASKS", count)
        yield


@pytest.mark.slow
@unreliable
@settings(max_examples=10)
@given(
    st.lists(st.integers(0, N), max_size=6),
    st.sampled_from([1, 7, 40]),
    st.sampled_from([2, 10, "blocks", "random", "labels"]),
    st.booleans(),
    st.booleans(),
)
def test_each_row_is_in_one_fold_for_any_chunks(
    cuts: list[int], count: int, rule: Any, weighted: bool, split: bool
) -> None:
    edges = np.unique([0, *cuts, N])
    x = da.from_array(X, chunks=(tuple(np.diff(edges).tolist()), 2))
    labels = np.arange(N) * 13 % 5
    weight = WEIGHT if weighted else None
    with tasks(count, split), dask.config.set(scheduler="synchronous"):
        moments = make(folds=labels if rule == "labels" else rule).fit(x, sample_weight=weight).moments_
    groups = {"blocks": np.repeat(np.arange(10), N // 10), "labels": labels}.get(rule)
    number = 10 if rule == "random" else rule
    assert_folds(moments, hashed(np.arange(N), number) if groups is None else groups, weight=weight)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "standardize"), [(2, True), (5, False)])
def test_copies_of_a_row_are_as_good_as_its_weight_and_warned_of(times: int, standardize: bool) -> None:
    """Whatever their order: values are the same, and error bars too narrow, which is said once."""
    x = X[: 2000 // times]

    def fitted(x: Any, **options: Any) -> dsp.SpectralDecomposition:
        return make().fit(dsp.Rows(x, columns=[1, 0], standardize=standardize), **options)

    def told(basis: Any, x: Any, **options: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make(basis, random_state=0, **options).fit(x)
        assert all(issubclass(w.category, ReliabilityWarning) for w in caught)
        return [text for text in model.warnings_ if "rows are copies" in text]

    copies = np.random.default_rng(0).permutation(np.repeat(x, times, axis=0))
    with warnings.catch_warnings(action="ignore"):
        one, found = fitted(x, sample_weight=np.full(len(x), float(times))), fitted(copies)
    np.testing.assert_allclose(found.eigenvalues_, one.eigenvalues_, rtol=1e-9, atol=1e-9)
    for basis in (Landmarks("gaussian:auto", 30), Landmarks(SMOOTH, 30, n_candidates=1000)):
        assert len(told(basis, copies)) == 1
        assert told(basis, X) == told(basis, np.round(copies, 1)) == told(basis, np.vstack([X, X[:15]])) == []
    _, labels = np.unique(copies, axis=0, return_inverse=True)
    assert told(basis, copies, folds=labels.ravel() % 10) == told(basis, copies, folds=None) == []


@pytest.mark.parametrize(("name", "count"), [("threads 3", 130), pytest.param("cluster", 130, marks=pytest.mark.slow)])
@pytest.mark.parametrize("split", [False, True])
def test_the_same_bits_on_every_scheduler(
    split: bool, count: int, name: str, scheduling: Scheduling, tmp_path: Path
) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(N // count, 2))
    drawn = make(Landmarks(SMOOTH, 60, method="uniform"), random_state=0)
    with tasks(count, split):
        with dask.config.set(scheduler="synchronous"):
            assert (drawn.plan(tmp_path / "x.zarr").ranges.parts > 1) == split
            wanted = clone(drawn).fit(tmp_path / "x.zarr")
        with scheduling(name):
            found = clone(drawn).fit(tmp_path / "x.zarr")
    np.testing.assert_array_equal(folds_of(wanted).count[:10].sum(), N - 60)
    assert_same_arrays(found.moments_.arrays, wanted.moments_.arrays)
    assert_same_arrays(folds_of(found).arrays, folds_of(wanted).arrays)
    assert folds_of(found).count.tolist() == folds_of(wanted).count.tolist()
    assert folds_of(wanted).count[-1] == 60


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_tasks_of_folds_skip_report_and_resume_as_others(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, bad, drawn = X.copy(), [17, 18, 3999], make(Landmarks(SMOOTH, 60, method="uniform"), random_state=0)
    x[bad, 1] = np.nan
    with dask.config.set(scheduler=scheduler):
        with tasks(130):
            wanted = drawn.fit(dsp.Rows(x, on_invalid="skip"), sample_weight=WEIGHT).moments_
        with tasks(130, split=True), monkeypatch.context() as patch:
            with pytest.raises(InvalidRowError) as caught:
                drawn.fit(x)
            patch.setattr(SumTask, "sum_part", stopping := Stopping(SumTask.sum_part, 100))
            skipped = dsp.Rows(x, on_invalid="skip")
            with pytest.raises(ZeroDivisionError) as stopped:
                drawn.fit(skipped, sample_weight=WEIGHT, checkpoint=tmp_path / "run")
            stopping.left = N
            found = drawn.fit(skipped, sample_weight=WEIGHT, checkpoint=tmp_path / "run").moments_
    assert caught.value.row == 17
    assert "while summing rows" in stopped.value.__notes__[0]
    assert N - stopping.left < 11 * 11  # the first epoch is not summed again
    assert (found.skipped, found.count) == (3, wanted.count)
    assert_close(found.weight, wanted.weight, 1e-12)
    assert_close(found.arrays, wanted.arrays, 1e-12)
    assert_close(folds_of(found).arrays, folds_of(wanted).arrays, 1e-12)


class Stopping:
    """A method that fails once a number of calls are left."""

    def __init__(self, method: Any, left: int):
        self.method, self.left = method, left

    def __get__(self, task: Any, owner: Any) -> Any:
        return lambda *given: self(task, *given)

    def __call__(self, task: Any, *given: Any) -> Any:
        self.left -= 1
        return self.method(task, *given) if self.left else 1 / 0


@pytest.mark.parametrize("folds", [1, "block", np.arange(N - 1) % 3, [1, "a", None] * 5], ids=str)
def test_bad_folds(folds: Any) -> None:
    with pytest.raises(ValueError, match="fold"):
        make(folds=folds).fit(X)


def fold_rule(n: int, lag: int | None = None, series: Series = ONE_SERIES, **request: Any) -> Any:
    in_time, longest = lag is not None, lag or 0
    source: Any = SimpleNamespace(n=n, rows=f"{n} rows", in_time=in_time, longest=longest, series=series)
    return FoldRequest(**request).fold_rule(source)


def test_how_many_folds_rows_fill() -> None:
    """Few rows have fewer of them, of equal size; where more are asked for, too few rows are an error."""
    assert [getattr(fold_rule(n), "number", None) for n in (1, 2, 9, 11, 99, 100)] == [None, 2, 9, 10, 10, 10]
    assert [fold_rule(n).rows for n in (99, 100)] == [99, 0]
    for n, lag, number in ((99, 9, 10), (98, 10, 9), (15, 10, None), (300, 30, 10)):
        assert getattr(fold_rule(n, lag), "number", None) == number
    for n, request in (
        (120, {"number": 60}),
        (50, {"number": 20}),
        (100, {"lag": 11}),
        (19, {"blocks": True, "number": 20}),
        (100, {"lag": 1, "random": True}),
    ):
        with pytest.raises(ValueError, match="folds="):
            fold_rule(n, **request)  # type: ignore[arg-type]


@pytest.mark.parametrize(("members", "times", "lag"), [(3, 120, 1), (12, 40, 1), (3, 40, 9)])
@pytest.mark.parametrize("stride", [1, 5])
def test_members_are_held_out_whole_or_at_the_same_times(members: int, times: int, lag: int, stride: int) -> None:
    rule = fold_rule(members * times * stride, lag, Series(stride, times * stride))
    numbers = np.arange(members * times * stride)
    folds = rule.of({NUMBER: numbers}).reshape(members, times, stride)
    assert np.all(folds == folds[:, :, :1])
    if times == 120:  # blocks of times, in all members
        assert np.all(folds == folds[:1])
        np.testing.assert_array_equal(folds[0, :, 0], np.arange(120) // 12)
    else:  # series too short for that
        assert np.all(folds == folds[:, :1])
        assert len(np.unique(folds)) == min(10, members)
    for start, stop in ((0, 7), (stride, times * stride + 2), (3, 3 * stride + 30)):
        assert len(np.unique(folds.ravel()[start:stop])) <= rule.most(start, stop)


@unreliable
def test_trajectories_have_blocks_of_pairs() -> None:
    parts, lag = [X[:1500], X[1500:2700], X[2700:]], 4
    folds = folds_of(make(operator=dsp.operators.Transfer(lag), folds=6).fit(parts))
    pairs = np.concatenate([part[:-lag] for part in parts])
    assert (folds.rule, folds.number) == ("blocks", 6)
    phi = np.exp(-((pairs[None] - Y[:, None]) ** 2).sum(axis=2) / 2)
    for g, (a, b) in enumerate(pairwise(np.linspace(0, len(pairs), 7).astype(int).tolist())):
        assert folds.count[g] == b - a
        np.testing.assert_allclose(folds.arrays["gram"][g], phi[:, a:b] @ phi[:, a:b].T, rtol=1e-10)


# -- appended rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [5, "blocks", "labels"])
def test_appended_rows_go_on_by_the_rule(rule: Any) -> None:
    groups = np.arange(N) * 7 % 4 if rule == "labels" else hashed(np.arange(N), 5)
    if rule == "blocks":
        groups = np.append(np.arange(2500) // 250, np.arange(N - 2500) // 250 % 10)
    first, second, third = (groups[:n] if rule == "labels" else None for n in (2500, 3100, N))
    model = make(folds=rule if first is None else first).fit(X[:2500])
    model.update(X[:3100], folds=second).update(X, folds=third)
    assert_folds(model.moments_, groups)


def test_labels_of_all_rows_are_wanted_again() -> None:
    labels = np.arange(N) % 3
    fitted = make(folds=labels[:3000]).fit(X[:3000])
    for model, again in (
        (fitted, None),
        (fitted, np.where(np.arange(N) > 3500, 9, labels)),
        (fitted, 5),
        (make(folds=3).fit(X[:3000]), labels),
    ):
        with pytest.raises(ValueError, match="folds"):
            model.update(X, folds=again)
    assert make(folds=None).fit(X[:3000]).update(X).moments_.folds is None


# -- rows that coincide with landmarks --------------------------------------------------------------------------------


@pytest.mark.one_in(6)
@unreliable
@pytest.mark.parametrize(
    ("dtype", "changes"), [("float64", {"columns": [2, 0]}), ("float32", {"columns": [1], "standardize": True})]
)
@pytest.mark.parametrize("exclude", [None, True, False])
def test_landmarks_of_a_fit_reproduce_it_to_the_bit(
    dtype: str, changes: dict[str, Any], exclude: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(6).standard_normal((1000, 3)).astype(dtype)
    kept: list[Any] = []
    discretize = sides.Choice.discretize
    monkeypatch.setattr(sides.Choice, "discretize", lambda *a, **k: kept.append(discretize(*a, **k)) or kept[-1])
    rows, landmarks = dsp.Rows(x, **changes), Landmarks(SMOOTH, 50, drop_landmark_rows=exclude)
    drawn = make(landmarks, random_state=1).fit(rows)
    raw = kept[-1].selection.best_params["basis"].points
    assert (raw[:, None] == x).all(axis=2).any(axis=1).all()
    given = make(replace(landmarks, points=raw), random_state=1).fit(rows)
    assert given.moments_.landmark_rows == {None: "apart", True: "dropped", False: "kept"}[exclude]
    assert_same_arrays(given.moments_.arrays, drawn.moments_.arrays)
    assert given.moments_.count == drawn.moments_.count == (950 if exclude else 1000)
    assert_same_arrays(folds_of(given).arrays, folds_of(drawn).arrays)
    assert folds_of(given).landmarks is (exclude is None)
    assert exclude is not None or folds_of(given).count[-1] == 50


@pytest.mark.slow
@unreliable
def test_equal_rows_coincide_and_nine_tenths_of_the_rows_remain() -> None:
    few = X[:1000]
    x = np.vstack([few, X[:10], X[:10]])
    assert folds_of(make(replace(GIVEN, points=X[:12])).fit(x)).count[-1] == 32
    assert make(replace(GIVEN, points=X[:12], drop_landmark_rows=True)).fit(x).moments_.count == 988
    for kernel, expected in (  # by default, of few landmarks and of 11
        (SMOOTH, ("kept", "apart")),
        (Exponential(1.0), ("dropped", "dropped")),
        (Polynomial(2), ("kept", "kept")),
    ):
        found = [make(replace(GIVEN, kernel=kernel, points=X[:p])).fit(few).moments_.landmark_rows for p in (9, 11)]
        assert tuple(found) == expected


def test_independent_rows_that_are_sorted_are_warned_of() -> None:
    x = X[np.argsort(X[:, 0])]
    model = make(folds="random").fit(x)
    assert not any("order" in text for text in model.warnings_)
    more = np.concatenate([x, RNG.standard_normal((500, 2))])
    found = folds_of(model.update(more))
    assert found.rule == "random"
    np.testing.assert_array_equal(found.count, np.bincount(hashed(np.arange(len(more)), 10)))


@unreliable
def test_a_pass_leaves_no_buffers_behind() -> None:
    """Whenever Python looks for cycles."""
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, Workspace) for one in gc.get_objects())
        make().fit(X).transform(X)
        assert sum(isinstance(one, Workspace) for one in gc.get_objects()) == before
    finally:
        gc.enable()
