"""One engine for forms, right-hand sides and iterations, whatever chunks, scheduler or workers there are."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from threadpoolctl import threadpool_info, threadpool_limits

from daskspectral.basis import LandmarkBasis
from daskspectral.data.rows import Rows
from daskspectral.data.source import open_source
from daskspectral.data.writing import create_array
from daskspectral.engine import Plan, Run, plan_run
from daskspectral.engine import plan as planning
from daskspectral.engine.tasks import LARGE, Total
from daskspectral.errors import InvalidRowError
from daskspectral.forms import along, form, functional, gram, inner, partial
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from daskspectral.moments.folds import LandmarkMatcher
from tests.common import Scheduling, assert_close, assert_same_arrays
from tests.engine.common import slow

N, P = 2000, 12
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, 2))
Y = np.sin(X[:, 0]) + X[:, 1]
TARGET = RNG.standard_normal((N, 2))
WEIGHT = RNG.integers(0, 3, N).astype(float)
BASIS = LandmarkBasis(Gaussian(1.3), RNG.standard_normal((P, 2)))


@form
def advection(f: Any, g: Any, x: Any) -> Any:
    """Not symmetric."""
    return inner(f, partial(g, 1, 0))


@functional
def load(f: Any, x: Any) -> Any:
    """The right-hand side of a Hermite regression."""
    return inner(f, x.y) + inner(along(f, x.target), 1)


MEASURE = Measure(BASIS, BASIS, {"form": advection, "gram": gram}, {"load": load})


def run_of(x: Any, dropped: Any = None, **fields: Any) -> Run:
    """A run of many small ranges, in several epochs with trees of several levels."""
    source, flops = open_source(x, **fields), planning.TASK_FLOPS / 100
    plan = plan_run(source.edges, flops_per_row=flops, row_bytes=16, splittable=not source.dask_fields)
    return Run(source, replace(plan, epoch=7), dropped)


SCHEDULERS = ["synchronous", "threads 5", "own pool", slow("cluster")]
KINDS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x,
    "dask blocks": lambda x: da.from_array(x, chunks=(130, 1) if x.ndim > 1 else 130),
    "uneven blocks": lambda x: da.from_array(x, chunks=((1, 1400, 99, 500), *([-1] * (x.ndim - 1)))),
}


@pytest.mark.parametrize("scheduler", SCHEDULERS[1:])
def test_results_are_the_same_bits_on_any_scheduler(scheduler: str, scheduling: Scheduling, tmp_path: Path) -> None:
    """Rows are read in the tasks, or are blocks of a graph."""
    stored = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(50, 1), shards=(500, 2))
    fields = {"y": Y, "target": TARGET, "weight": WEIGHT}
    for x in (stored, *(make(X) for make in KINDS.values())):
        run = run_of(x, **fields)
        run.plan = replace(run.plan, epoch=20)
        wanted = run.reduce(MEASURE).sums
        assert_close(wanted, MEASURE([{"x": X, **fields}]), 1e-13)
        with scheduling(scheduler):
            assert_same_arrays(run.reduce(MEASURE).sums, wanted)


# -- rows that are left out, or cannot be used ----------------------------------------------------------------


def count_task(delay: Callable[[int], float] = lambda start: 0.0) -> Any:
    def count(batches: Any, state: Any = None) -> dict[str, np.ndarray]:
        time.sleep(delay(batches.start))
        parts = [batch["x"].sum(axis=0) for batch in batches]
        return {"sum": np.sum(parts, axis=0)} if parts else {}

    return count


def broken(*rows: int) -> np.ndarray:
    x = X.copy()
    x[list(rows), 1] = np.nan
    return x


@pytest.mark.parametrize("scheduler", ["synchronous", "threads 4", slow("cluster")])
@pytest.mark.parametrize("rows", [(650, 651, 120), (0, 1)], ids=str)
def test_the_lowest_bad_row_is_reported_in_any_order_of_tasks(
    rows: tuple[int, ...], scheduler: str, scheduling: Scheduling, tmp_path: Path
) -> None:
    task = count_task(lambda start: 0.1 if start <= 120 else 0.0)  # the early ranges are the last to end
    zarr.create_array(tmp_path / "x.zarr", data=broken(*rows), chunks=(90, 2))
    with scheduling(scheduler):
        for x in (broken(*rows), f"{tmp_path}/x.zarr", da.from_array(broken(*rows), chunks=(110, 1))):
            for call in (lambda run: run.reduce(task), lambda run: run.map(double)):
                with pytest.raises(InvalidRowError) as caught:
                    call(run_of(x))
                assert (caught.value.row, caught.value.column) == (min(rows), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_skipped_dropped_and_counted(kind: str) -> None:
    bad, dropped = [3, 640, 641, 1999], np.array([0, 99, 100, 1234])
    rows = Rows(KINDS[kind](broken(*bad)), on_invalid="skip")
    total = run_of(rows, LandmarkMatcher(X[dropped])).reduce(count_task())
    np.testing.assert_allclose(total.sums["sum"], np.delete(X, [*bad, *dropped], axis=0).sum(axis=0))
    assert (total.count, total.skipped, total.weight) == (N - 8, 4, N - 8)


def double(batch: Mapping[str, np.ndarray], state: Any = None) -> np.ndarray:
    return 2.0 * np.asarray(batch["x"])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_map_keeps_the_order_of_the_rows(scheduler: str, scheduling: Scheduling, tmp_path: Path) -> None:
    some = np.array([0, 5, 700, 1999])
    with scheduling(scheduler):
        for make in KINDS.values():
            np.testing.assert_array_equal(run_of(make(X)).map(double), 2 * X)
            np.testing.assert_array_equal(run_of(make(X)).map(double, selected=some), 2 * X[some])
        with create_array(tmp_path / "y.zarr", X.shape, float, chunk_rows=100) as out:
            plan = Plan(tuple((i, i + 200) for i in range(0, N, 200)), epoch=3)
            assert Run(open_source(X), plan).map(double, out=str(out.store.root)) is None  # type: ignore[attr-defined]
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "y.zarr", mode="r")[:], 2 * X)


# -- errors and interrupts --------------------------------------------------------------------------------------


def failing_task(error: BaseException, row: int = 1234) -> Any:
    def fail(batches: Any, state: Any = None) -> Any:
        if batches.start <= row < batches.stop:
            raise error
        return count_task()(batches)

    return fail


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_errors_of_a_task_come_through(scheduler: str, scheduling: Scheduling) -> None:
    errors = [ZeroDivisionError] if scheduler == "cluster" else [ZeroDivisionError, KeyboardInterrupt]
    with scheduling(scheduler):
        for x, error in product((X, da.from_array(X, chunks=(90, 2))), errors):
            with pytest.raises(error, match="of the task"):
                run_of(x).reduce(failing_task(error("of the task")))
            assert ours() == []
            assert run_of(x).reduce(count_task()).count == N  # the next run is not disturbed


@pytest.fixture
def default_interrupt() -> Iterator[None]:
    """What is run in the background may ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ours() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("daskspectral")]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "own pool"])
def test_an_interrupt_leaves_no_task_and_no_file(
    scheduler: str, scheduling: Scheduling, tmp_path: Path, default_interrupt: None
) -> None:
    calls: list[int] = []

    def slowly(batch: Mapping[str, np.ndarray], state: Any = None) -> np.ndarray:
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        return double(batch)

    run = Run(open_source(X), Plan(tuple((i, i + 10) for i in range(0, N, 10)), epoch=100))
    with (
        scheduling(scheduler),
        pytest.raises(KeyboardInterrupt),
        create_array(tmp_path / "y.zarr", X.shape, float, chunk_rows=10) as out,
    ):
        run.map(slowly, out=str(out.store.root))  # type: ignore[attr-defined]
    finished = len(calls)
    assert 0 < finished < N // 10
    time.sleep(0.1)
    assert (len(calls), ours(), os.listdir(tmp_path)) == (finished, [], [])
    assert run.reduce(count_task()).count == N


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_tasks_have_one_blas_thread_and_the_driver_all() -> None:
    seen: list[list[int]] = []

    def look(batches: Any, state: Any = None) -> Any:
        seen.append(blas_threads())
        return count_task()(batches)

    with threadpool_limits(2, "blas"):
        run_of(X).reduce(look)
        assert all(set(c) == {1} for c in seen)
        assert set(blas_threads()) == {2}


def test_a_run_of_one_task_computes_as_any_other() -> None:
    with np.errstate(all="raise"):
        found = Run(open_source(X), Plan(((0, N),))).map(lambda batch, _: np.exp(-800 - np.abs(batch["x"])))
    assert not found.any()


def test_totals_add_in_place_but_for_arrays_that_are_shared_or_small():
    def total(value: float) -> Total:
        large, frozen = (np.full(LARGE, value) for _ in range(2))
        frozen.flags.writeable = False
        sums = {"large": large, "one": (both := large + 1), "two": both, "frozen": frozen, "few": np.full(2, value)}
        return Total(sums, 1.0, 1)

    left, right = total(1.0), total(2.0)
    expected, before = (left + right).sums, dict(left.sums)
    after = left
    after += right
    assert_same_arrays(after.sums, expected)
    assert {name for name in before if after.sums[name] is before[name]} == {"large"}
    assert_same_arrays(right.sums, total(2.0).sums)
