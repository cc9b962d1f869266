"""One engine for forms, right-hand sides and iterations, whatever chunks, scheduler or workers there are."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info, threadpool_limits

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Source, open_source
from daskspectral.data.writer import create_array
from daskspectral.engine import Plan, Run, plan_run
from daskspectral.engine import plan as plan_module
from daskspectral.engine.progress import Progress
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.engine.threads import limit_worker, one_blas_thread
from daskspectral.errors import InvalidRowError
from daskspectral.forms import form, functional, grad, inner, partial
from daskspectral.kernels import Gaussian, Polynomial
from daskspectral.moments import Measure
from daskspectral.moments.coincidence import Coincidence
from tests.common import Scheduling, assert_close, assert_same_arrays

N, P = 2000, 12
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, 2))
Y = np.sin(X[:, 0]) + X[:, 1]
TARGET = RNG.standard_normal((N, 2))
WEIGHT = RNG.integers(0, 3, N).astype(float)
LANDMARKS = RNG.standard_normal((P, 2))
BASIS = LandmarkBasis(Gaussian(1.3), LANDMARKS)


@form
def advection(f: Any, g: Any, x: Any) -> Any:
    """Not symmetric."""
    return inner(f, partial(g, 1, 0))


@form
def gram(f: Any, g: Any, x: Any) -> Any:
    """Symmetric."""
    return inner(f, g)


@functional
def load(f: Any, x: Any) -> Any:
    """The right-hand side of a Hermite regression."""
    return inner(f, x.y) + inner(grad(f), x.target)


MEASURE = Measure(BASIS, BASIS, {"form": advection, "gram": gram}, {"load": load})


def in_numpy(x: np.ndarray, y: np.ndarray, target: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The same sums by loops over landmarks and coordinates."""
    shift = x[None] - LANDMARKS[:, None]  # (p, n, d)
    phi = np.exp(-(shift**2).sum(axis=2) / (2 * 1.3**2))
    slope = -shift / 1.3**2 * phi[..., None]
    return {
        "form": np.einsum("ik,jk,k->ij", phi, slope[..., 0], weight),
        "gram": np.einsum("ik,jk,k->ij", phi, phi, weight),
        "load": np.einsum("ik,k,k->i", phi, y, weight) + np.einsum("ikd,kd,k->i", slope, target, weight),
    }


def small_plan(source: Source) -> Plan:
    """Many small ranges, in several epochs with trees of several levels."""
    flops = plan_module.TASK_FLOPS / 100
    plan = plan_run(source.edges, flops_per_row=flops, row_bytes=16, splittable=not source.dask_fields)
    return replace(plan, epoch=7, split_every=2)


def run_of(x: Any, rules: Mapping[str, Any] | None = None, **fields: Any) -> Run:
    source = open_source(x, **fields)
    return Run(source, small_plan(source), **(rules or {}))


SCHEDULERS = ["synchronous", "threads", "threads 5", "own pool", "cluster"]
CHUNKS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x,
    "one dask block": lambda x: da.from_array(x, chunks=-1),
    "dask blocks": lambda x: da.from_array(x, chunks=(130, 1) if x.ndim > 1 else 130),
    "uneven blocks": lambda x: da.from_array(x, chunks=((1, 1400, 99, 500), *([-1] * (x.ndim - 1)))),
}


def measured(kind: str, weight: np.ndarray | None = None) -> dict[str, np.ndarray]:
    make = CHUNKS[kind]
    fields = {"y": make(Y), "target": make(TARGET), "weight": None if weight is None else make(weight)}
    return dict(run_of(make(X), **fields).reduce(MEASURE).sums)


@pytest.mark.parametrize("kind", CHUNKS)
def test_form_and_functional_are_those_of_numpy(kind: str) -> None:
    assert_close(measured(kind), in_numpy(X, Y, TARGET, np.ones(N)), 1e-13)
    assert_close(measured(kind, WEIGHT), in_numpy(X, Y, TARGET, WEIGHT), 1e-13)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_any_scheduler_gives_the_same_bits(scheduler: str, scheduling: Scheduling) -> None:
    for kind in ("numpy", "dask blocks"):
        with dask.config.set(scheduler="synchronous"):
            wanted = measured(kind)
        with scheduling(scheduler):
            assert_same_arrays(measured(kind), wanted)


def test_processes_give_the_same_bits(tmp_path: Path) -> None:
    x = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(700, 2))
    wanted = run_of(x, y=Y, target=TARGET).reduce(MEASURE).sums
    with dask.config.set(scheduler="processes", num_workers=2):
        assert_same_arrays(run_of(x, y=Y, target=TARGET).reduce(MEASURE).sums, wanted)


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_zarr_is_read_in_the_tasks(scheduler: str, scheduling: Scheduling, tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [{"chunks": (77, 2)}, {"chunks": (50, 1), "shards": (500, 2)}, {"chunks": (N, 1)}]
    for i, chunks in enumerate(options):
        zarr.create_array(tmp_path / f"{i}.zarr", data=X, **chunks)
        with scheduling(scheduler):
            sums = run_of(f"{tmp_path}/{i}.zarr", y=Y, target=TARGET, weight=WEIGHT).reduce(MEASURE).sums
        assert_close(sums, in_numpy(X, Y, TARGET, WEIGHT), 1e-13)


def test_weight_two_is_the_row_twice() -> None:
    counts = WEIGHT.astype(int)
    twice = [np.repeat(a, counts, axis=0) for a in (X, Y, TARGET)]
    weighted = run_of(X, y=Y, target=TARGET, weight=WEIGHT).reduce(MEASURE)
    repeated = run_of(twice[0], y=twice[1], target=twice[2]).reduce(MEASURE)
    assert_close(weighted.sums, repeated.sums, 1e-13)
    assert (weighted.weight, weighted.count) == (repeated.weight, N)


def test_two_different_bases() -> None:
    right = LandmarkBasis(Polynomial(2), LANDMARKS[:5])
    found = run_of(X).reduce(Measure(BASIS, right, {"form": gram, "gram": gram, "right_gram": gram})).sums
    phi, psi = BASIS.values(X), right.values(X)
    assert_close(found, {"form": phi @ psi.T, "gram": phi @ phi.T, "right_gram": psi @ psi.T}, 1e-12)


# -- several passes with a small state -----------------------------------------------------------------------


def embedding_task(basis: LandmarkBasis, whitening: np.ndarray) -> Any:
    """Sums of the low-rank SDP iteration; local, so that it travels by value."""

    class Embedding:
        def __call__(self, batches: Any, state: Any = None) -> dict[str, np.ndarray]:
            total: Any = 0.0
            for batch in batches:
                psi = whitening.T @ basis.values(batch["x"])  # (q, c)
                total = total + (psi.sum(axis=1) if state is None else self.step(psi, **state))
            return {} if isinstance(total, float) else {"z": total}

        def step(self, psi: np.ndarray, sigma: np.ndarray, z: np.ndarray) -> np.ndarray:
            m, mass = sigma @ psi, sigma @ sigma
            degree = 1 / m - m / mass
            h = psi.T @ (z - np.outer(sigma, sigma @ z) / mass)
            h /= np.linalg.norm(h, axis=1, keepdims=True)
            return (psi * np.sqrt(degree / m)) @ h

    return Embedding()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "cluster"])
def test_sdp_iteration_on_a_small_state(scheduler: str, scheduling: Scheduling) -> None:
    """Z <- sum sqrt(d_i / m_i) psi_i h_i^T, with h_i = normalise(psi_i^T P Z): repeated `reduce`."""
    basis = LandmarkBasis(Gaussian(2.0), LANDMARKS)
    k = basis.values(LANDMARKS)
    values, vectors = np.linalg.eigh(k)
    kept = values > 1e-10 * values[-1]
    task = embedding_task(basis, vectors[:, kept] / np.sqrt(values[kept]))
    start = np.random.default_rng(0).standard_normal((np.count_nonzero(kept), 2))

    def iterate(reduce: Callable[[Any, Any], np.ndarray]) -> tuple[np.ndarray, list[float]]:
        sigma, z, objective = reduce(task, None), start, []
        for _ in range(4):
            z = reduce(task, {"sigma": sigma, "z": z})
            objective.append(float(np.sum((z - np.outer(sigma, sigma @ z) / (sigma @ sigma)) ** 2)))
        return z, objective

    run = run_of(da.from_array(X, chunks=(300, 2)))
    with scheduling(scheduler):
        z, objective = iterate(lambda t, state: run.reduce(t, state).sums["z"])
    whole, _ = iterate(lambda t, state: t([{"x": X}], state)["z"])
    np.testing.assert_allclose(z, whole, rtol=1e-10, atol=1e-12 * np.abs(whole).max())
    assert objective == sorted(objective)


def test_power_iteration() -> None:
    class Multiply:
        """sum_k phi(x_k) (phi(x_k) . v)."""

        def __call__(self, batches: Any, state: Any) -> dict[str, np.ndarray]:
            parts = [(phi := BASIS.values(batch["x"])) @ (state @ phi) for batch in batches]
            return {"v": np.sum(parts, axis=0)} if parts else {}

    run, v = run_of(X), np.ones(P)
    for _ in range(60):
        v = run.reduce(Multiply(), v).sums["v"]
        norm = np.linalg.norm(v)
        v /= norm
    phi = BASIS.values(X)
    assert norm == pytest.approx(np.linalg.eigvalsh(phi @ phi.T)[-1], rel=1e-10)


# -- rows that are left out, or cannot be used ----------------------------------------------------------------


def count_task(delay: Callable[[int], float] = lambda start: 0.0) -> Any:
    class Count:
        def __call__(self, batches: Any, state: Any = None) -> dict[str, np.ndarray]:
            time.sleep(delay(batches.start))
            parts = [batch["x"].sum(axis=0) for batch in batches]
            return {"sum": np.sum(parts, axis=0)} if parts else {}

    return Count()


def broken(*rows: int) -> np.ndarray:
    x = X.copy()
    x[list(rows), 1] = np.nan
    return x


@pytest.mark.parametrize(
    ("scheduler", "rows"),
    [(s, r) for s in ("synchronous", "threads 4") for r in ((640, 1999), (1990,), (650, 651, 120), (0, 1))]
    + [("cluster", (650, 651, 120))],
)
def test_lowest_bad_row_whatever_finished_first(
    scheduler: str, rows: tuple[int, ...], scheduling: Scheduling, tmp_path: Path
) -> None:
    task = count_task(lambda start: 0.2 if start <= 120 else 0.0)  # the early ranges are the last to end
    zarr.create_array(tmp_path / "x.zarr", data=broken(*rows), chunks=(90, 2))
    with scheduling(scheduler):
        for x in (broken(*rows), f"{tmp_path}/x.zarr", da.from_array(broken(*rows), chunks=(110, 1))):
            with pytest.raises(
                InvalidRowError, match=f"row {min(rows)} is the first .*X holds NaN in column 1"
            ) as caught:
                run_of(x).reduce(task)
            assert caught.value.row == min(rows)
            with pytest.raises(InvalidRowError, match=f"row {min(rows)} is the first that cannot be used"):
                run_of(x).map(double())


@pytest.mark.parametrize("kind", CHUNKS)
def test_invalid_rows_are_skipped_and_counted(kind: str) -> None:
    rows = [3, 640, 641, 1999]
    total = run_of(CHUNKS[kind](broken(*rows)), {"on_invalid": "skip"}).reduce(count_task())
    np.testing.assert_allclose(total.sums["sum"], np.delete(X, rows, axis=0).sum(axis=0))
    assert (total.count, total.skipped, total.weight) == (N - 4, 4, N - 4)


def test_ranges_without_a_valid_row() -> None:
    x = X.copy()
    x[:1950] = np.inf
    total = run_of(x, {"on_invalid": "skip"}).reduce(count_task())
    assert (total.count, total.skipped) == (50, 1950)
    with pytest.raises(ValueError, match="no rows are left: 2000 of 2000 are invalid"):
        run_of(np.full_like(X, np.nan), {"on_invalid": "skip"}).reduce(count_task())


@pytest.mark.parametrize("kind", CHUNKS)
def test_dropped_rows_are_not_measured(kind: str) -> None:
    rows = np.array([0, 99, 100, 101, 1234, 1999])
    total = run_of(CHUNKS[kind](broken(1500)), {"on_invalid": "skip", "dropped": Coincidence(X[rows])}).reduce(
        count_task()
    )
    np.testing.assert_allclose(total.sums["sum"], np.delete(X, [*rows, 1500], axis=0).sum(axis=0))
    assert (total.count, total.skipped) == (N - 7, 1)


# -- results for every row, and rows drawn --------------------------------------------------------------------


def double(delay: float = 0.0) -> Any:
    class Double:
        def __call__(self, batch: Mapping[str, np.ndarray], state: Any = None) -> np.ndarray:
            time.sleep(delay)
            return 2.0 * batch["x"]

    return Double()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_map_keeps_the_order_of_the_rows(scheduler: str, scheduling: Scheduling, tmp_path: Path) -> None:
    some = np.array([0, 5, 700, 1999])
    with scheduling(scheduler):
        for make in CHUNKS.values():
            np.testing.assert_array_equal(run_of(make(X)).map(double()), 2 * X)
            np.testing.assert_array_equal(run_of(make(X)).map(double(), selected=some), 2 * X[some])
        with create_array(tmp_path / "y.zarr", X.shape, float, chunk_rows=100) as out:
            source = open_source(X)
            plan = Plan(tuple((i, i + 200) for i in range(0, N, 200)), epoch=3)
            assert Run(source, plan).map(double(), out=str(out.store.root)) is None  # type: ignore[attr-defined]
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "y.zarr", mode="r")[:], 2 * X)


@pytest.mark.parametrize("size", [1, 37, N, 2 * N])
def test_drawn_rows_do_not_depend_on_the_chunks(size: int, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(77, 1))
    draws = [
        draw_rows(open_source(x), size, np.random.default_rng(3))
        for x in (*(make(X) for make in CHUNKS.values()), f"{tmp_path}/x.zarr")
    ]
    rows, points = draws[0]
    assert len(rows) == min(size, N) == len(np.unique(rows))
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(points, X[rows])
    for other_rows, other_points in draws[1:]:
        np.testing.assert_array_equal(other_rows, rows)
        np.testing.assert_array_equal(other_points, points)
    if size == 37:
        assert not np.array_equal(draw_rows(open_source(X), size, np.random.default_rng(4))[0], rows)


def test_a_draw_names_the_lowest_bad_row_drawn_or_not() -> None:
    first = int(draw_rows(open_source(X), 50, np.random.default_rng(3))[0][20])
    before = first - 1
    for rows, lowest in [((first,), first), ((first, before), before), ((first, N - 1), first)]:
        for make in CHUNKS.values():
            with pytest.raises(InvalidRowError, match=f"row {lowest} is the first"):
                draw_rows(open_source(make(broken(*rows))), 50, np.random.default_rng(3))


def test_invalid_rows_are_drawn_again() -> None:
    bad = np.arange(0, N, 2)
    for size, count in [(100, 100), (N // 2, N // 2), (N, N // 2)]:
        rows, points = draw_rows(open_source(broken(*bad)), size, np.random.default_rng(3), on_invalid="skip")
        assert len(rows) == count == len(np.unique(rows))
        assert (rows % 2 == 1).all()
        np.testing.assert_array_equal(points, X[rows])
    rows, points = draw_rows(open_source(np.full_like(X, np.nan)), 5, np.random.default_rng(3), on_invalid="skip")
    assert (len(rows), points.shape) == (0, (0, 2))


def test_take_rows_prepares_them() -> None:
    source = open_source(X, columns=[1]).with_preparation(mean=np.array([1.0]), scale=np.array([2.0]))
    rows, points = take_rows(source, np.array([4, 900]))
    np.testing.assert_array_equal(rows, [4, 900])
    np.testing.assert_allclose(points, (X[[4, 900], 1:] - 1) / 2)


# -- errors and interrupts --------------------------------------------------------------------------------------


def failing_task(error: BaseException, row: int = 1234) -> Any:
    class Fail:
        def __call__(self, batches: Any, state: Any = None) -> dict[str, np.ndarray]:
            if batches.start <= row < batches.stop:
                raise error
            return count_task()(batches)

    return Fail()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_errors_of_a_task_come_through(scheduler: str, scheduling: Scheduling) -> None:
    with scheduling(scheduler):
        for x in (X, da.from_array(X, chunks=(90, 2))):
            with pytest.raises(ZeroDivisionError, match="of the task"):
                run_of(x).reduce(failing_task(ZeroDivisionError("of the task")))
            assert run_of(x).reduce(count_task()).count == N  # the next run is not disturbed


def test_errors_of_a_dask_graph_come_through() -> None:
    def fail(block: np.ndarray) -> np.ndarray:
        raise OSError("the disk is gone")

    x = da.from_array(X, chunks=(90, 2)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="the disk is gone"):
        run_of(x).reduce(count_task())


def ours() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("daskspectral")]


@contextmanager
def interrupted_after(started: threading.Event, ended: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
    """SIGINT to the main thread once the first task has started, as a process finds it that has imported nothing.

    To import dask_jobqueue, which other tests do, has the signal end the process by SystemExit: that is to be `ended`.
    """
    handler = signal.default_int_handler if ended is KeyboardInterrupt else lambda *_: sys.exit()
    before = signal.signal(signal.SIGINT, handler)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        if started.wait(20):
            time.sleep(0.1)
            signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(ended):
            yield
    finally:
        started.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "own pool"])
@pytest.mark.parametrize("verb", ["reduce", "map"])
def test_interrupt_leaves_nothing_running_and_nothing_written(
    verb: str, scheduler: str, ended: type[BaseException], scheduling: Scheduling, tmp_path: Path
) -> None:
    started, calls = threading.Event(), []

    class Slow:
        def __call__(self, given: Any, state: Any = None) -> Any:
            calls.append(1)
            started.set()
            time.sleep(0.05)
            return count_task()(given) if verb == "reduce" else 2.0 * given["x"]

    source = open_source(X)
    run = Run(source, Plan(tuple((i, i + 10) for i in range(0, N, 10)), epoch=100))
    with scheduling(scheduler), interrupted_after(started, ended):
        if verb == "reduce":
            run.reduce(Slow())
        else:
            with create_array(tmp_path / "y.zarr", X.shape, float, chunk_rows=10) as out:
                run.map(Slow(), out=str(out.store.root))  # type: ignore[attr-defined]
    finished = len(calls)
    assert 0 < finished < N // 10
    time.sleep(0.2)
    assert len(calls) == finished
    assert ours() == []
    assert os.listdir(tmp_path) == []
    assert run.reduce(count_task()).count == N


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "own pool"])
def test_keyboard_interrupt_in_a_task(scheduler: str, scheduling: Scheduling) -> None:
    with scheduling(scheduler):
        for x in (X, da.from_array(X, chunks=(90, 2))):
            with pytest.raises(KeyboardInterrupt):
                run_of(x).reduce(failing_task(KeyboardInterrupt(), row=0))
            assert ours() == []
            assert run_of(x).reduce(count_task()).count == N


def test_interrupt_on_a_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    started = threading.Event()
    with Client(cluster) as client:
        threading.Timer(1.0, started.set).start()
        with interrupted_after(started), create_array(tmp_path / "y.zarr", X.shape, float, chunk_rows=10) as out:
            run = Run(open_source(X), Plan(tuple((i, i + 10) for i in range(0, N, 10)), epoch=50))
            run.map(double(0.1), out=str(out.store.root))  # type: ignore[attr-defined]
        for _ in range(100):
            if not any(client.processing().values()):
                break
            time.sleep(0.1)
        assert not any(client.processing().values())
        assert os.listdir(tmp_path) == []
        assert run_of(X).reduce(count_task()).count == N


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def set_blas_threads(number: int) -> None:
    threadpool_limits(number, "blas")
    with threadpool_limits(None):  # other threads may set it too
        pass


def test_a_task_that_starts_after_its_run_was_stopped_leaves_the_blas_threads_of_the_driver() -> None:
    before = blas_threads()
    run_of(X).reduce(count_task())
    limit_worker.cache_clear()
    late = threading.Thread(target=limit_worker)
    late.start()
    late.join()
    try:
        assert blas_threads() == before
    finally:
        set_blas_threads(max(before))


def test_blas_threads_come_back_after_runs_of_several_threads() -> None:
    before, (entered, left, over, ended) = blas_threads(), (threading.Event() for _ in range(4))

    def first() -> None:
        with one_blas_thread():
            entered.set()
            left.wait()
        over.set()
        ended.wait()

    other = threading.Thread(target=first)
    other.start()
    assert entered.wait(10)
    try:
        with one_blas_thread():
            left.set()
            over.wait()
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
    finally:
        ended.set()
        other.join()
        set_blas_threads(max(before))


def test_blas_threads_come_back() -> None:
    seen: list[list[int]] = []

    class Look:
        def __call__(self, batches: Any, state: Any = None) -> dict[str, np.ndarray]:
            seen.append(blas_threads())
            return count_task()(batches)

    with threadpool_limits(2, "blas"):
        before = blas_threads()
        run_of(X).reduce(Look())
        assert blas_threads() == before
    assert all(set(c) == {1} for c in seen)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_progress_counts_every_row(scheduler: str, scheduling: Scheduling, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    monkeypatch.setattr(Progress, "advance", lambda self, n: rows.append(n))
    with scheduling(scheduler):
        for x in (X, da.from_array(X, chunks=(90, 2))):
            rows.clear()
            run_of(x, {"progress": True}).reduce(count_task())
            assert sum(rows) == N


def test_no_bar_on_short_runs_nor_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (True, False, None):
        run_of(X, {"progress": progress}).reduce(count_task())
    assert capsys.readouterr().err == ""
