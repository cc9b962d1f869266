"""Folds through the engine: every row in one fold, whatever the chunks; the same bits whatever the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.engine import Run
from daskspectral.engine import plan as planning
from daskspectral.moments import Folds, Moments
from daskspectral.moments.dealing import hashed
from daskspectral.moments.measure import UNFOLDED
from daskspectral.passes import folds as fold_pass
from tests.common import Scheduling, assert_same_arrays

RNG = np.random.default_rng(11)
N = 4000
X = RNG.standard_normal((N, 2))
Y = X[:12] + 0.01
WEIGHT = RNG.uniform(0.5, 2, N)
SCHEDULERS = ["synchronous", "threads 3", "cluster"]


def make(**changes: Any) -> dsp.SpectralDecomposition:
    options = {"kernel": dsp.kernels.Gaussian(1.0), "landmarks": Y, "n_components": 3, **changes}
    return dsp.SpectralDecomposition(**options)


def folds_of(model: Any) -> Folds:
    found = model.moments_.folds
    assert isinstance(found, Folds)
    return found


def assert_folds(moments: Moments, groups: np.ndarray, x: np.ndarray = X, weight: np.ndarray | None = None) -> None:
    """The folds hold the sums of the rows with these groups, each measured alone."""
    folds = moments.folds
    assert folds is not None
    w = np.ones(len(x)) if weight is None else weight
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
    for name in folds.arrays:
        np.testing.assert_array_equal(folds.total()[name], moments.arrays[name])
        assert len(folds.arrays[name]) == len(folds.count)


@contextmanager
def tasks(count: int) -> Iterator[None]:
    """Plans of about so many tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "LEAST_FLOPS", 1.0)
        patch.setattr(planning, "LEAST_TASKS", count)
        yield


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.integers(0, N), max_size=6),
    st.sampled_from([1, 7, 40]),
    st.sampled_from([2, 10, "blocks", "labels"]),
    st.booleans(),
)
def test_each_row_is_in_one_fold_whatever_the_chunks(cuts: list[int], count: int, rule: Any, weighted: bool) -> None:
    edges = np.unique([0, *cuts, N])
    x = da.from_array(X, chunks=(tuple(np.diff(edges).tolist()), 2))
    labels = np.arange(N) * 13 % 5
    weight = WEIGHT if weighted else None
    with tasks(count), dask.config.set(scheduler="synchronous"):
        moments = make(folds=labels if rule == "labels" else rule).fit(x, sample_weight=weight).moments_
    if rule == "blocks":
        groups = np.repeat(np.arange(10), N // 10)
    else:
        groups = labels if rule == "labels" else hashed(np.arange(N), rule)
    assert_folds(moments, groups, weight=weight)


def test_a_hundred_tasks_are_dealt_in_turn() -> None:
    with tasks(150):
        moments = make(folds=7).fit(X, sample_weight=WEIGHT).moments_
        starts = np.array([a for a, _ in make().plan(X).ranges.ranges])
    assert moments.folds is not None
    assert (moments.folds.rule, moments.folds.dealt) == ("tasks", len(starts))
    groups = (np.searchsorted(starts, np.arange(N), "right") - 1) % 7
    assert_folds(moments, groups, weight=WEIGHT)


def test_weight_two_is_the_row_twice() -> None:
    labels = np.arange(N) % 4
    doubled = make(folds=labels).fit(X, sample_weight=np.where(X[:, 0] > 0, 2.0, 1.0))
    again = X[:, 0] > 0
    twice = make(folds=np.append(labels, labels[again])).fit(np.vstack([X, X[again]]))
    np.testing.assert_allclose(folds_of(doubled).weight, folds_of(twice).weight, rtol=1e-12)
    for name in ("form", "gram", "first"):
        a, b = folds_of(doubled).arrays[name], folds_of(twice).arrays[name]
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * np.abs(b).max())


@pytest.mark.parametrize("count", [9, 130])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_same_bits_on_every_scheduler(count: int, name: str, scheduling: Scheduling, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(N // count, 2))
    options = {"landmarks": "uniform", "n_landmarks": 60, "random_state": 0}
    with tasks(count):
        with dask.config.set(scheduler="synchronous"):
            wanted = make(**options).fit(tmp_path / "x.zarr").moments_
        with scheduling(name):
            found = make(**options).fit(tmp_path / "x.zarr").moments_
    assert wanted.folds is not None
    assert found.folds is not None
    assert wanted.folds.rule == ("tasks" if count > 100 else "hash")
    assert wanted.folds.landmarks
    assert_same_arrays(found.arrays, wanted.arrays)
    assert_same_arrays(found.folds.arrays, wanted.folds.arrays)
    assert found.folds.count.tolist() == wanted.folds.count.tolist()
    assert wanted.folds.count[-1] == 60


@pytest.mark.parametrize("rule", ["tasks", "hash", "blocks"])
def test_the_same_bits_after_a_stop(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(folds="blocks" if rule == "blocks" else 3)
    monkeypatch.setattr(fold_pass, "LEAST_JOINED", 60)
    reduced = Run._tree

    def broken(self: Run, graph: Any, epoch: range, *names: Any) -> Any:
        return reduced(self, graph, epoch, *names) if epoch.start < stop or self.description != "fit" else 1 / 0

    with tasks(310 if rule == "tasks" else 60), dask.config.set(scheduler="threads", num_workers=2):
        stop = 230 if rule == "tasks" else 30
        wanted = clone(model).fit(X)
        assert folds_of(wanted).rule == rule
        monkeypatch.setattr(Run, "_tree", broken)
        with pytest.raises(ZeroDivisionError):
            clone(model).fit(X, checkpoint=tmp_path / "run", checkpoint_every=0)
        assert max(int(p.name[-2:]) for p in (tmp_path / "run").glob("epoch*")) > 0
        monkeypatch.setattr(Run, "_tree", reduced)
        found = clone(model).fit(X, checkpoint=tmp_path / "run")
    assert_same_arrays(found.moments_.arrays, wanted.moments_.arrays)
    assert_same_arrays(folds_of(found).arrays, folds_of(wanted).arrays)


def mean_error(x: np.ndarray, **options: Any) -> float:
    """The standard error of the mean of x_1^2 by the folds."""
    with tasks(120):
        model = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(x.shape[1], 1), n_components=2, **options)
        folds = folds_of(model.fit(x))
    means = folds.arrays["gram"][:, 1, 1] / folds.weight
    return float(means.std(ddof=1) / np.sqrt(folds.number))


def eigenvalue_error(x: np.ndarray, **options: Any) -> float:
    """The median relative standard error of the first ten eigenvalues on a square, by the jackknife over the folds."""
    landmarks = np.random.default_rng(9).uniform(size=(40, 2))
    model = make(kernel=dsp.kernels.Gaussian(0.5), landmarks=landmarks, n_components=11, **options)
    with tasks(100):
        moments = model.fit(x).moments_
    folds = moments.folds
    assert folds is not None
    found = []
    for k in range(folds.number):
        arrays = {name: moments.arrays[name] - values[k] for name, values in folds.arrays.items()}
        part = replace(moments, arrays=arrays, weight=moments.weight - folds.weight[k], folds=None)
        found.append(clone(model).fit_moments(part).eigenvalues_[1:])
    error = np.std(found, axis=0) * np.sqrt(folds.number - 1)
    return float(np.median(error / model.eigenvalues_[1:]))


def test_sorted_rows_have_the_error_bars_of_shuffled_rows() -> None:
    """Section 8: .004 shuffled, .0045 dealt in turn, .07 at random, for n = 1e5; here n = 2e4."""
    x = np.random.default_rng(2).uniform(size=(20_000, 2))
    by_x = x[np.argsort(x[:, 0])]
    shuffled, in_turn = eigenvalue_error(x), eigenvalue_error(by_x)
    at_random = np.repeat(np.random.default_rng(1).permutation(np.arange(100) % 10), 200)
    assert in_turn < 1.6 * shuffled
    assert eigenvalue_error(by_x, folds=at_random) > 4 * shuffled


def test_rows_by_coordinate_by_class_and_by_time() -> None:
    rng = np.random.default_rng(2)
    u = rng.uniform(size=(30_000, 2)) + 1
    kind = rng.random(len(u)) < 0.5
    plain = mean_error(u)
    assert plain == pytest.approx(np.std(u[:, 0] ** 2) / np.sqrt(len(u)), rel=0.5)
    sweep = 3 / 120 * np.std(np.arange(10), ddof=1) / np.sqrt(10)  # the folds of sorted tasks are i / 120 apart
    assert mean_error(u[np.argsort(u[:, 0])]) == pytest.approx(sweep, rel=0.2)
    by_class = mean_error(np.where(kind[:, None], u, u + 2)[np.argsort(kind)])
    assert by_class < 10 / 12 / np.sqrt(10)  # no fold has more than one task of twelve too many of a class
    assert mean_error(u[np.argsort(u[:, 0])], folds="blocks") > 10 * sweep
    a = 0.8
    ar = lfilter([np.sqrt(1 - a**2)], [1, -a], rng.standard_normal((30_000, 2)), axis=0)
    time = (1 + a**2) / (1 - a**2)  # of the squares
    error = np.sqrt(2 * time / len(ar))
    assert mean_error(ar) == pytest.approx(error, rel=0.5)
    assert mean_error(ar, folds=hashed(np.arange(len(ar)), 10)) < 0.75 * error  # single rows know nothing of it


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "folds must be a whole number of 2 or more; it is 1"),
        (True, "folds must be a whole number of 2 or more, None, 'blocks', or an array"),
        (2.5, "it is 2.5"),
        (101, "100 or less"),
        (np.zeros((N, 1)), r"an array \(n,\), one for each row; they have shape"),
        ("block", r"folds is 'block', which is neither 'blocks' nor the path of an array of labels"),
        (np.arange(N), r"there are more than 100 of them; give fewer, such as folds=labels % 10"),
        (np.zeros(N), "there is only 0.0; two at least are needed"),
        (np.arange(N - 1) % 3, f"folds has {N - 1} rows and X has {N}; they go together row by row"),
        (np.where(np.arange(N) == 7, np.nan, 1.0), "must be finite; row 7 has nan"),
        (np.array([-np.inf, 1.0, 2] * 100, dtype=object), "must be finite; row 0 has -inf"),
        ([], "there is none; two at least are needed"),
        ([1, "a", None] * 5, "values of one kind"),
    ],
)
@pytest.mark.usefixtures("no_tasks")
def test_bad_folds_before_any_task(folds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(folds=folds).fit(X)


@pytest.mark.usefixtures("no_tasks")
def test_folds_that_rows_cannot_fill() -> None:
    with pytest.raises(ValueError, match=r"folds=60 leaves \d+ of the folds without rows: X has 120 rows"):
        make(folds=60).fit(X[:120])
    transfer = make(operator=dsp.operators.Transfer(30))
    with pytest.raises(ValueError, match="blocks of 27 rows, shorter than the lag of 30 rows: X has 270 pairs"):
        transfer.fit(X[:300])


def test_few_rows_have_fewer_folds() -> None:
    numbers = [
        folds_of(make(landmarks=X[:3] + 0.1, n_components=1, min_support=0).fit(X[:n])).number for n in (8, 25, 99)
    ]
    assert numbers[0] >= 2
    assert numbers[1:] == [10, 10]


LABELS = np.array(["east", "north", "west"])[np.arange(N) % 3]


@pytest.mark.parametrize("kind", ["words", "list", "dask", "zarr", "path"])
def test_labels_from_anywhere(kind: str, tmp_path: Path) -> None:
    codes = np.arange(N) % 3 * 5 - 4
    stored = zarr.create_array(tmp_path / "labels.zarr", data=codes, chunks=(700,))
    lazy = da.from_array(codes, chunks=300)
    labels = {
        "words": LABELS.tolist(),
        "list": codes.tolist(),
        "dask": lazy,
        "zarr": stored,
        "path": f"{tmp_path}/labels.zarr",
    }
    model = make(folds=labels[kind])
    fitted = clone(model).fit(da.from_array(X, chunks=(300, 2)) if kind == "dask" else X)
    assert folds_of(fitted).labels == (("east", "north", "west") if kind == "words" else (-4, 1, 6))
    assert_folds(fitted.moments_, np.arange(N) % 3)
    dsp.save(fitted, tmp_path / "m.zarr")
    loaded = dsp.load(tmp_path / "m.zarr")
    assert_same_arrays(folds_of(loaded).arrays, folds_of(fitted).arrays)
    assert clone(loaded).fit(X).moments_.count == N


def test_too_many_labels_outside_memory(tmp_path: Path) -> None:
    for values, message in ((np.arange(N), "more than 100"), (np.full(N, 3), "only 3")):
        stored = zarr.create_array(tmp_path / "labels.zarr", data=values, chunks=(100,), overwrite=True)
        with pytest.raises(ValueError, match=message):
            make(folds=stored).fit(X)


def test_trajectories_have_blocks_of_pairs() -> None:
    parts = [X[:1500], X[1500:2700], X[2700:]]
    lag = 4
    fitted = make(operator=dsp.operators.Transfer(lag), folds=6).fit(parts)
    pairs = np.concatenate([part[:-lag] for part in parts])
    folds = folds_of(fitted)
    assert (folds.rule, folds.number) == ("blocks", 6)
    borders = np.linspace(0, len(pairs), 7).astype(int)
    phi = np.exp(-((pairs[None] - Y[:, None]) ** 2).sum(axis=2) / 2)
    for g, (a, b) in enumerate(pairwise(borders.tolist())):
        assert folds.count[g] == b - a
        np.testing.assert_allclose(folds.arrays["gram"][g], phi[:, a:b] @ phi[:, a:b].T, rtol=1e-10)
    labelled = make(operator=dsp.operators.Transfer(lag), folds=[np.repeat(k % 2, len(p)) for k, p in enumerate(parts)])
    assert folds_of(labelled.fit(parts)).count.tolist() == [1496 + 1296, 1196]


# -- appended rows, and moments that are added ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [5, "blocks", "labels"])
def test_appended_rows_go_on_by_the_rule(rule: Any) -> None:
    labels = np.arange(N) * 7 % 4
    labelled = rule == "labels"
    model = make(folds=labels[:2500] if labelled else rule).fit(X[:2500])
    model.update(X[:3100], folds=labels[:3100] if labelled else None).update(X, folds=labels if labelled else None)
    if rule == "blocks":
        groups = np.append(np.arange(2500) // 250, np.arange(N - 2500) // 250 % 10)
    else:
        groups = labels if labelled else hashed(np.arange(N), rule)
    folds = folds_of(model)
    assert folds.count.tolist() == np.bincount(groups).tolist()
    assert_same_values(folds, make(folds=groups).fit(X))


def assert_same_values(folds: Folds, other: Any) -> None:
    for name, wanted in folds_of(other).arrays.items():
        np.testing.assert_allclose(folds.arrays[name], wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


def test_appended_tasks_are_dealt_on() -> None:
    with tasks(103):
        model = make(folds=10).fit(X[:2000]).update(X)
        before = list(make().plan(X[:2000]).ranges.ranges)
        appended = [(max(a, 2000), b) for a, b in make().plan(X).ranges.ranges if b > 2000]
    groups = np.empty(N, dtype=int)
    if len(appended) < 100:  # a plan of fewer tasks deals rows
        groups[2000:] = hashed(np.arange(2000, N), 10)
    for i, (a, b) in enumerate(before):
        groups[a:b] = i % 10
    folds = folds_of(model)
    assert (folds.rule, folds.dealt) == ("tasks", len(before))
    assert_same_values(folds, make(folds=groups).fit(X))
    with tasks(230):
        model = make(folds=10).fit(X[:2000]).update(X)
        before = list(make().plan(X[:2000]).ranges.ranges)
        appended = [(max(a, 2000), b) for a, b in make().plan(X).ranges.ranges if b > 2000]
    for i, (a, b) in enumerate([*before, *appended]):
        groups[a:b] = i % 10
    assert folds_of(model).dealt == len(before) + len(appended)
    assert len(appended) > 100
    assert_same_values(folds_of(model), make(folds=groups).fit(X))


def test_labels_of_all_rows_are_wanted_again() -> None:
    labels = np.arange(N) % 3
    fitted = make(folds=labels[:3000]).fit(X[:3000])
    with pytest.raises(ValueError, match=r"give the labels of all rows, old and new, as update\(..., folds=labels\)"):
        fitted.update(X)
    with pytest.raises(ValueError, match="the label 9 is new among the folds"):
        fitted.update(X, folds=np.where(np.arange(N) > 3500, 9, labels))
    with pytest.raises(ValueError, match="folds has 3000 rows and X has 4000"):
        fitted.update(X, folds=labels[:3000])
    with pytest.raises(ValueError, match="3 folds by the rule 'hash': leave them out"):
        make(folds=3).fit(X[:3000]).update(X, folds=labels)
    assert make(folds=None).fit(X[:3000]).update(X).moments_.folds is None


def test_parts_add_up_with_their_folds() -> None:
    labels = np.arange(N) % 3
    parts = [make(folds=labels[s]).fit(X[s]).moments_ for s in (slice(1000), slice(1000, N))]
    total = parts[0] + parts[1]
    assert_folds(total_of(total), labels)
    with pytest.raises(ValueError, match="moments of 3 and of 5 folds do not add"):
        parts[0] + make(folds=5).fit(X[1000:]).moments_


def total_of(moments: Moments) -> Moments:
    """The same, with the total as the sum over the folds: additions in another order round differently."""
    assert moments.folds is not None
    for name, value in moments.folds.total().items():
        np.testing.assert_allclose(value, moments.arrays[name], rtol=1e-10, atol=1e-10)
    return replace(moments, arrays={**moments.arrays, **moments.folds.total()})


# -- rows that coincide with landmarks --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "changes", [{}, {"standardize": True}, {"columns": [2, 0]}, {"columns": [1], "standardize": True}]
)
def test_landmarks_given_back_give_the_same_bits(dtype: str, changes: dict[str, Any]) -> None:
    from daskspectral.passes import sides

    x = np.random.default_rng(6).standard_normal((3000, 3)).astype(dtype)
    kept: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        discretise = sides.Choice.discretise
        patch.setattr(sides.Choice, "discretise", lambda *a, **k: kept.append(discretise(*a, **k)) or kept[-1])
        for exclude in (None, True, False):
            options = {**changes, "n_landmarks": 50, "random_state": 1, "exclude_landmarks": exclude}
            drawn = make(**{**options, "landmarks": "kmeans++"}).fit(x).moments_
            raw = kept[-1].raw_landmarks
            assert raw.shape == (50, 3)
            assert (raw[:, None] == x).all(axis=2).any(axis=1).all()
            given = make(**{**options, "landmarks": raw}).fit(x).moments_
            assert (
                drawn.landmark_rows == given.landmark_rows == {None: "apart", True: "dropped", False: "kept"}[exclude]
            )
            assert_same_arrays(given.arrays, drawn.arrays)
            assert given.count == drawn.count == (2950 if exclude else 3000)
            assert drawn.folds is not None
            assert given.folds is not None
            assert_same_arrays(given.folds.arrays, drawn.folds.arrays)
            assert given.folds.landmarks is (exclude is None)
            assert exclude is not None or given.folds.count[-1] == 50


def test_rows_alike_coincide_together() -> None:
    x = np.vstack([X, X[:40], X[:40]])
    apart = make(landmarks=X[:45]).fit(x).moments_
    assert apart.folds is not None
    assert apart.folds.count[-1] == 125
    dropped = make(landmarks=X[:45], exclude_landmarks=True).fit(x).moments_
    assert dropped.count == len(x) - 125
    for name in ("form", "gram", "first"):
        rest = apart.arrays[name] - apart.folds.arrays[name][-1]
        np.testing.assert_allclose(dropped.arrays[name], rest, rtol=1e-10, atol=1e-10)


def test_nine_tenths_of_the_rows_remain() -> None:
    many = make(landmarks=X[:401], exclude_landmarks=True).fit(X).moments_
    assert (many.landmark_rows, many.count) == ("apart", N)
    few = make(landmarks=X[:399], exclude_landmarks=True).fit(X).moments_
    assert (few.landmark_rows, few.count) == ("dropped", N - 399)
    alike = np.repeat(X[:50], 80, axis=0)  # a tenth of the distinct points is a tenth of the rows, and more
    for landmarks in (X[:12], "kmeans++"):
        model = make(landmarks=landmarks, n_landmarks=12, exclude_landmarks=True, random_state=0).fit(alike)
        assert (model.moments_.landmark_rows, model.moments_.count) == ("apart", N)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (dsp.kernels.Gaussian(1.0), ("kept", "apart")),
        (dsp.kernels.Exponential(1.0), ("dropped", "dropped")),
        (dsp.kernels.Matern(1.5, 1.0), ("kept", "apart")),
        (dsp.kernels.Polynomial(2), ("kept", "kept")),
    ],
)
def test_what_is_done_by_default(kernel: Any, expected: tuple[str, str]) -> None:
    for p, wanted in zip((39, 41), expected, strict=True):
        model = make(landmarks="uniform", n_landmarks=p, random_state=0, kernel=kernel).fit(X)
        assert model.moments_.landmark_rows == wanted
