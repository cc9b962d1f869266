"""Folds through the engine: every row in one fold, whatever the chunks; the same bits whatever the scheduler."""

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
from daskspectral.choosing.landmarks import advise_copies
from daskspectral.data.source import open_source
from daskspectral.engine import Plan
from daskspectral.engine import plan as planning
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Exponential, Gaussian, Polynomial
from daskspectral.moments import Moments
from daskspectral.moments.folds import DealtFolds, HashedFolds, hashed, row_keys
from daskspectral.moments.measure import UNFOLDED
from daskspectral.passes.folds import FoldRequest, dealt_plan
from daskspectral.spectral import choice as sides
from tests.common import Scheduling, assert_same_arrays, doubtful
from tests.moments.common import folds_of

RNG, N = np.random.default_rng(11), 4000
X, WEIGHT = RNG.standard_normal((N, 2)), RNG.uniform(0.5, 2, N)
Y, KEYS = X[:12] + 0.01, row_keys(X, np.arange(N))
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
def tasks(count: int) -> Iterator[None]:
    """Plans of about so many tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "LEAST_FLOPS", 1.0)
        patch.setattr(planning, "LEAST_TASKS", count)
        yield


@doubtful
@settings(max_examples=10)
@given(
    st.lists(st.integers(0, N), max_size=6),
    st.sampled_from([1, 7, 40]),
    st.sampled_from([2, 10, "blocks", "random", "labels"]),
    st.booleans(),
)
def test_each_row_is_in_one_fold_whatever_the_chunks(cuts: list[int], count: int, rule: Any, weighted: bool) -> None:
    edges = np.unique([0, *cuts, N])
    x = da.from_array(X, chunks=(tuple(np.diff(edges).tolist()), 2))
    labels = np.arange(N) * 13 % 5
    weight = WEIGHT if weighted else None
    with tasks(count), dask.config.set(scheduler="synchronous"):
        moments = make(folds=labels if rule == "labels" else rule).fit(x, sample_weight=weight).moments_
    groups = {"blocks": np.repeat(np.arange(10), N // 10), "labels": labels, "random": hashed(np.arange(N), 10)}.get(
        rule
    )
    assert_folds(moments, hashed(KEYS, rule) if groups is None else groups, weight=weight)


@doubtful
@settings(max_examples=5)
@given(st.sampled_from([2, 5]), st.sampled_from([500, 2000]), st.booleans(), st.integers(0, 99))
def test_copies_of_a_row_are_as_good_as_its_weight(times: int, n: int, standardize: bool, seed: int) -> None:
    """Whatever their order; rows that are equal because they are rounded are spread over the folds."""
    x = X[: n // times]

    def rows(x: Any) -> dsp.Rows:
        return dsp.Rows(x, columns=[1, 0], standardize=standardize)

    one = make().fit(rows(x), sample_weight=np.full(n // times, float(times)))
    found = make().fit(rows(np.random.default_rng(seed).permutation(np.repeat(x, times, axis=0))))
    np.testing.assert_allclose(folds_of(found).weight[:10], folds_of(one).weight[:10])
    for name in ("standard_errors_", "held_out_"):
        np.testing.assert_allclose(getattr(found, name), getattr(one, name), rtol=1e-6, atol=1e-9)
    rounded = make().fit(rows(np.round(X, 0)))
    np.testing.assert_array_equal(folds_of(rounded).count, np.bincount(hashed(np.arange(N), 10)))


def test_copies_that_tasks_hold_apart_are_told() -> None:
    """By the rows that are drawn for landmarks, or for a choice; few copies are not, nor rows that are rounded."""
    copies = np.repeat(X[:1500], 2, axis=0)[np.random.default_rng(0).permutation(3000)]
    for kernel in ("auto", SMOOTH):
        with tasks(110), pytest.warns(TrustWarning, match=r"about (1|0.9\d|1.1) further ones .* pairs of [13]000 rows"):
            make(Landmarks(kernel, 30, sample=1000), random_state=0).fit(copies)
    with warnings.catch_warnings(action="error"):
        for x in (copies, copies[:50], np.round(copies, 1), np.vstack([X, X[:15]])):
            advise_copies(x, replace(open_source(copies), by_tasks=x is not copies))


@doubtful
def test_a_hundred_tasks_are_dealt_in_turn_and_go_on() -> None:
    with tasks(110):
        model = make(folds=7).fit(X[:2000], sample_weight=WEIGHT[:2000])
        starts = [a for a, _ in make().plan(X[:2000]).ranges.ranges]
    groups = (np.searchsorted(starts, np.arange(2000), "right") - 1) % 7
    assert (folds_of(model).rule, folds_of(model).dealt) == ("tasks", len(starts))
    assert_folds(model.moments_, groups, X[:2000], WEIGHT[:2000])
    for count, appended in ((110, False), (230, True)):
        with tasks(count):
            found = clone(model).fit(X[:2000]).update(X)
            first = [a for a, _ in make().plan(X[:2000]).ranges.ranges]
            later = [max(a, 2000) for a, b in make().plan(X).ranges.ranges if b > 2000]
        assert (len(later) >= 100) is appended  # a plan of fewer tasks deals rows
        groups = np.append((np.searchsorted(first, np.arange(2000), "right") - 1) % 7, hashed(KEYS[2000:], 7))
        if appended:
            groups[2000:] = (len(first) + np.searchsorted(later, np.arange(2000, N), "right") - 1) % 7
        own, dealt = folds_of(found), len(first) + appended * len(later)
        assert (own.dealt, own.count.tolist()) == (dealt, np.bincount(groups).tolist())


@pytest.mark.parametrize(("name", "count"), [("threads 3", 9), pytest.param("cluster", 130, marks=pytest.mark.slow)])
def test_the_same_bits_on_every_scheduler(count: int, name: str, scheduling: Scheduling, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(N // count, 2))
    drawn = make(Landmarks(SMOOTH, 60, method="uniform"), random_state=0)
    with tasks(count):
        with dask.config.set(scheduler="synchronous"):
            wanted = clone(drawn).fit(tmp_path / "x.zarr")
        with scheduling(name):
            found = clone(drawn).fit(tmp_path / "x.zarr")
    assert folds_of(wanted).rule == ("tasks" if count > 100 else "hash")
    assert_same_arrays(found.moments_.arrays, wanted.moments_.arrays)
    assert_same_arrays(folds_of(found).arrays, folds_of(wanted).arrays)
    assert folds_of(found).count.tolist() == folds_of(wanted).count.tolist()
    assert folds_of(wanted).count[-1] == 60


def test_tasks_are_joined_until_a_fold_has_half_a_block_in_each() -> None:
    ranges = tuple((100 * i, 100 * i + 100) for i in range(160))
    plan = Plan(ranges, 32, None)
    dealt = dealt_plan(plan, DealtFolds(7, np.arange(0, 16_000, 100)), block=512, row_bytes=8)
    assert (dealt.epoch, dealt.deal, dealt.ranges) == (77, 7, ranges)
    assert dealt_plan(plan, DealtFolds(90, np.arange(160) * 100), block=512, row_bytes=8).epoch == 90
    for block, wanted in ((512, 12), (2048, 20), (20, 1)):  # 5 block / 2 / 100, as long as there are eight
        joined = dealt_plan(plan, HashedFolds(5), block=block, row_bytes=8)
        assert (joined.ranges[0], joined.ranges[-1][1]) == ((0, 100 * wanted), 16_000)
        assert (len(joined.ranges), joined.epoch) == (-(-160 // wanted), 4)
    for functions, wanted in ((1250, 1300), (5000, 5000)):  # as many rows as functions, in a single task if need be
        assert dealt_plan(plan, HashedFolds(5), block=512, row_bytes=8, functions=functions).ranges[0] == (0, wanted)
    large = dealt_plan(plan, HashedFolds(5), block=2048, row_bytes=planning.TASK_BYTES // 300, functions=5000)
    assert large.ranges[0] == (0, 300)
    assert dealt_plan(plan, HashedFolds(2), block=512, row_bytes=8) is plan
    assert dealt_plan(plan, None, block=512, row_bytes=8) is plan


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "folds must be a whole number of 2 or more; it is 1"),
        (101, "100 or less"),
        (np.zeros((N, 1)), r"an array \(n,\), one for each row; they have shape"),
        ("block", r"folds is 'block', which is neither 'blocks' nor 'random', nor the path of an array of labels"),
        (np.arange(101), r"there are more than 100 of them; give fewer, such as folds=labels % 10"),
        (np.zeros(N), "there is only 0.0; two at least are needed"),
        (np.arange(N - 1) % 3, f"folds has {N - 1} rows and X has {N}; they go together row by row"),
        (np.where(np.arange(N) == 7, np.nan, 1.0), "must be finite; row 7 has nan"),
        ([1, "a", None] * 5, "values of one kind"),
        (da.from_array(np.arange(N)), "more than 100"),
    ],
)
def test_bad_folds(folds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(folds=folds).fit(X)


def fold_rule(n: int, tasks: int = 1, lag: int | None = None, **request: Any) -> Any:
    source: Any = SimpleNamespace(
        n=n,
        rows=f"{n} rows",
        in_time=lag is not None,
        lagged=None if lag is None else SimpleNamespace(lag=lag, longest=lag),
    )
    ranges = [(int(a), int(b)) for a, b in pairwise(np.linspace(0, n, tasks + 1))]
    return FoldRequest(**request).fold_rule(source, Plan(tuple(ranges), 32, None))


def test_how_many_folds_rows_fill() -> None:
    """Few rows have fewer of them, of equal size; where more are asked for, too few rows are an error."""
    assert [getattr(fold_rule(n), "number", None) for n in (1, 2, 9, 11, 99, 100)] == [None, 2, 9, 10, 10, 10]
    assert [fold_rule(n).rule for n in (99, 100)] == ["hash", "hash"]
    assert [hasattr(fold_rule(n), "rows") for n in (99, 100)] == [True, False]
    assert [fold_rule(10_000, tasks=t).rule for t in (99, 100)] == ["hash", "tasks"]
    assert [fold_rule(10_000, tasks=t, number=100).rule for t in (99, 100)] == ["hash", "tasks"]
    for n, lag, number in ((99, 9, 10), (98, 10, 9), (15, 10, None), (300, 30, 10)):
        assert getattr(fold_rule(n, lag=lag), "number", None) == number
    for n, request, match in (
        (120, {"number": 60}, r"folds=60 leaves \d+ of the folds without rows: X has 120 rows"),
        (50, {"number": 20}, "folds=20 leaves"),
        (100, {"lag": 11}, "makes blocks of 10 rows, shorter than the lag of 11 rows: X has 100 rows"),
        (19, {"blocks": True, "number": 20}, "folds=20 makes blocks of 0 rows, shorter than one row: X has 19 rows"),
    ):
        with pytest.raises(ValueError, match=match):
            fold_rule(n, **request)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["words", "dask", "path"])
def test_labels_from_anywhere(kind: str, tmp_path: Path) -> None:
    codes = np.arange(N) % 3 * 5 - 4
    zarr.create_array(tmp_path / "labels.zarr", data=codes, chunks=(700,))
    words = np.array(["east", "north", "west"])[np.arange(N) % 3].tolist()
    labels = {"words": words, "dask": da.from_array(codes, chunks=300), "path": f"{tmp_path}/labels.zarr"}
    fitted = make(folds=labels[kind]).fit(da.from_array(X, chunks=(300, 2)) if kind == "dask" else X)
    assert folds_of(fitted).labels == (("east", "north", "west") if kind == "words" else (-4, 1, 6))
    assert_folds(fitted.moments_, np.arange(N) % 3)


@doubtful
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
    groups = np.arange(N) * 7 % 4 if rule == "labels" else hashed(KEYS, 5)
    if rule == "blocks":
        groups = np.append(np.arange(2500) // 250, np.arange(N - 2500) // 250 % 10)
    first, second, third = (groups[:n] if rule == "labels" else None for n in (2500, 3100, N))
    model = make(folds=rule if first is None else first).fit(X[:2500])
    model.update(X[:3100], folds=second).update(X, folds=third)
    assert_folds(model.moments_, groups)


def test_labels_of_all_rows_are_wanted_again() -> None:
    labels = np.arange(N) % 3
    fitted = make(folds=labels[:3000]).fit(X[:3000])
    for model, again, match in (
        (fitted, None, r"give the labels of all rows, old and new, as update\(..., folds=labels\)"),
        (fitted, np.where(np.arange(N) > 3500, 9, labels), "the label 9 is new among the folds, and the model was"),
        (fitted, 5, "needs labels again; got 5"),
        (make(folds=3).fit(X[:3000]), labels, "3 folds by the rule 'hash': leave them out"),
    ):
        with pytest.raises(ValueError, match=match):
            model.update(X, folds=again)
    assert make(folds=None).fit(X[:3000]).update(X).moments_.folds is None


# -- rows that coincide with landmarks --------------------------------------------------------------------------------


@doubtful
@pytest.mark.parametrize(
    ("dtype", "changes"), [("float64", {"columns": [2, 0]}), ("float32", {"columns": [1], "standardize": True})]
)
@pytest.mark.parametrize("exclude", [None, True, False])
def test_landmarks_given_back_give_the_same_bits(
    dtype: str, changes: dict[str, Any], exclude: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(6).standard_normal((1000, 3)).astype(dtype)
    kept: list[Any] = []
    discretise = sides.Choice.discretise
    monkeypatch.setattr(sides.Choice, "discretise", lambda *a, **k: kept.append(discretise(*a, **k)) or kept[-1])
    rows, landmarks = dsp.Rows(x, **changes), Landmarks(SMOOTH, 50, exclude=exclude)
    drawn = make(landmarks, random_state=1).fit(rows)
    raw = kept[-1].selection.parameters["basis"].points
    assert (raw[:, None] == x).all(axis=2).any(axis=1).all()
    given = make(replace(landmarks, points=raw), random_state=1).fit(rows)
    assert given.moments_.landmark_rows == {None: "apart", True: "dropped", False: "kept"}[exclude]
    assert_same_arrays(given.moments_.arrays, drawn.moments_.arrays)
    assert given.moments_.count == drawn.moments_.count == (950 if exclude else 1000)
    assert_same_arrays(folds_of(given).arrays, folds_of(drawn).arrays)
    assert folds_of(given).landmarks is (exclude is None)
    assert exclude is not None or folds_of(given).count[-1] == 50


@doubtful
def test_rows_alike_coincide_together_and_nine_tenths_of_the_rows_remain() -> None:
    x = np.vstack([X, X[:40], X[:40]])
    assert folds_of(make(replace(GIVEN, points=X[:45])).fit(x)).count[-1] == 125
    assert make(replace(GIVEN, points=X[:45], exclude=True)).fit(x).moments_.count == N - 45
    for p, wanted in ((401, ("apart", N)), (399, ("dropped", N - 399))):
        few = make(replace(GIVEN, points=X[:p], exclude=True)).fit(X).moments_
        assert (few.landmark_rows, few.count) == wanted
    for kernel, expected in (  # by default, of few landmarks and of 41
        (SMOOTH, ("kept", "apart")),
        (Exponential(1.0), ("dropped", "dropped")),
        (Polynomial(2), ("kept", "kept")),
    ):
        found = [make(replace(GIVEN, kernel=kernel, points=X[:p])).fit(X).moments_.landmark_rows for p in (39, 41)]
        assert tuple(found) == expected


def test_independent_rows_that_are_sorted_are_said_to_be_so() -> None:
    x = X[np.argsort(X[:, 0])]
    with pytest.warns(TrustWarning, match=r"the order of the rows matters: .* that are sorted, folds='random'"):
        make().fit(x)
    model = make(folds="random").fit(x)
    assert not any("the order of the rows" in doubt for doubt in model.doubts_)
    more = np.concatenate([x, X[:500]])
    np.testing.assert_array_equal(folds_of(model.update(more)).count, np.bincount(hashed(np.arange(len(more)), 10)))
    with pytest.raises(ValueError, match="folds='random' is for independent rows, and pairs of a trajectory overlap"):
        dsp.SpectralDecomposition(dsp.operators.Transfer(1), folds="random").fit(x)
