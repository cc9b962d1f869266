"""Dask's own callbacks see one computation where the engine runs several graphs, some of them at the same time."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback
from dask.core import flatten
from dask.diagnostics import Profiler, ProgressBar

from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows, progress
from daskspectral.engine import plan as planning
from daskspectral.engine.callbacks import pass_callbacks
from daskspectral.errors import InvalidRowError
from tests.common import Scheduling

N = 1300
X = np.random.default_rng(3).standard_normal((N, 2))
LOCAL = ["synchronous", "threads 3", "own pool", "processes 2"]
EPOCH, TASKS = 4, 13
ADDED = 3 * 3  # sums of two in the trees of three whole epochs of four tasks; the last epoch is one task


class Sums:
    """The sum of the rows; dask computes within the task too."""

    def __init__(self, inner: bool = False):
        self.inner = inner

    def __call__(self, batches: Any, state: Any) -> dict[str, Any]:
        total = np.zeros(2)
        for batch in batches:
            total += batch["x"].sum(axis=0)
        if self.inner:
            dask.compute(dask.delayed(np.sum)(total), scheduler="synchronous")
        return {"x": total}


class Recording(Callback):  # type: ignore[misc]
    """What a callback is told, and whether two calls overlap or tasks change in number."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.totals: set[int] = set()
        self.failed: list[bool] = []
        self.graph: Mapping[Any, Any] = {}
        self.finished: set[Any] = set()
        self.left = -1
        self._busy = threading.Lock()
        super().__init__()

    def _told(self, name: str) -> None:
        assert self._busy.acquire(blocking=False), "two calls at the same time"
        self.calls.append(name)
        self._busy.release()

    def _start(self, dsk: Mapping[Any, Any]) -> None:
        self._told("start")
        self.graph = dsk

    def _start_state(self, dsk: Mapping[Any, Any], state: Mapping[str, Any]) -> None:
        self._told("start_state")

    def _pretask(self, key: Any, dsk: Mapping[Any, Any], state: Mapping[str, Any]) -> None:
        self._told("pretask")
        assert key in state["running"]
        assert key in dsk
        self.before.append(key)
        self.totals.add(sum(len(state[k]) for k in ("ready", "waiting", "running", "finished")))

    def _posttask(self, key: Any, value: Any, dsk: Any, state: Mapping[str, Any], worker: Any) -> None:
        self._told("posttask")
        assert key in state["finished"]
        assert all(d in state["finished"] for d in state["dependencies"][key] if d in self.before)
        self.after.append(key)

    def _finish(self, dsk: Any, state: Mapping[str, Any], failed: bool) -> None:
        self._told("finish")
        self.failed.append(failed)
        self.finished = set(state["finished"])
        self.left = sum(len(state[k]) for k in ("ready", "waiting", "running"))


def run_of(x: Any = X, **rules: Any) -> Run:
    source = open_source(da.from_array(x, chunks=(100, 2)))
    plan = replace(plan_rows(source, 1e9), epoch=EPOCH, split_every=2)
    assert len(plan.ranges) == TASKS
    return Run(source, plan, **{"description": "look", **rules})


@pytest.fixture(autouse=True)
def _many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_FLOPS", 1e9)


@pytest.mark.parametrize("scheduler", LOCAL)
def test_a_pass_has_one_start_all_tasks_and_one_finish(scheduler: str, scheduling: Scheduling) -> None:
    with scheduling(scheduler), Recording() as first, Recording() as second:
        total = run_of().reduce(Sums())
    np.testing.assert_allclose(total.sums["x"], X.sum(axis=0))
    for seen in (first, second):
        assert [seen.calls.count(name) for name in ("start", "start_state", "finish")] == [1, 1, 1]
        assert (seen.calls[0], seen.calls[-1], seen.failed) == ("start", "finish", [False])
        assert len(set(seen.after)) == len(seen.after) == len(seen.before)
        assert set(seen.before) == set(seen.after) == seen.finished
        assert seen.left == 0
        kinds = [str(key[0]).partition("-")[0] if isinstance(key, tuple) else "" for key in seen.after]
        if scheduler != "processes 2":  # which fuses tasks before it runs them
            assert (kinds.count("look"), kinds.count("tree")) == (TASKS, ADDED)
            assert seen.totals == {len(seen.after)}
        assert {key for key in seen.graph if key[0].startswith(("look-", "tree-"))} >= {
            key for key in seen.after if key[0].startswith(("look-", "tree-"))
        }


def test_data_in_a_graph_are_no_tasks() -> None:
    graphs = []
    for number in range(2):
        x = da.from_array(X, chunks=(650, 2), name=f"block-{number}")
        blocks = dict(da.optimize(x.__dask_graph__(), list(flatten(x.__dask_keys__()))))
        total = {(f"look-{number}", i): (np.sum, (f"block-{number}", i, 0)) for i in range(2)}
        graphs.append((blocks | total, list(total)))
    with Recording() as seen, pass_callbacks(lambda key: None) as watched:
        for graph, keys in watched.over(iter(graphs)):
            found = dask.get(graph, keys, callbacks=[watched.of_a_graph])
    np.testing.assert_allclose(found, [X[:650].sum(), X[650:].sum()])
    assert seen.finished == set(seen.after) >= {("look-0", 0), ("look-0", 1), ("look-1", 0), ("look-1", 1)}
    assert (seen.left, seen.calls.count("start"), seen.calls.count("finish")) == (0, 1, 1)


def test_callbacks_change_no_bit(scheduling: Scheduling) -> None:
    with scheduling("threads 3"):
        wanted = run_of().reduce(Sums()).sums["x"]
        with Recording():
            np.testing.assert_array_equal(run_of().reduce(Sums()).sums["x"], wanted)


@pytest.mark.parametrize("scheduler", LOCAL[:3])
def test_an_error_is_a_finish_too(scheduler: str, scheduling: Scheduling) -> None:
    broken = X.copy()
    broken[250, 1] = np.nan
    with scheduling(scheduler), Recording() as seen, pytest.raises(InvalidRowError, match="row 250 is the first"):
        run_of(broken).reduce(Sums())
    assert (seen.calls.count("start"), seen.calls[-1], seen.failed) == (1, "finish", [True])


def test_what_tasks_compute_themselves_is_not_told(scheduling: Scheduling) -> None:
    with scheduling("threads 3"), Recording() as seen:
        run_of().reduce(Sums(inner=True))
    assert seen.calls.count("start") == 1
    assert not [key for key in seen.after if str(key).startswith("sum-")]


def test_callbacks_are_active_again_after_a_pass(scheduling: Scheduling) -> None:
    with Recording() as seen:
        run_of().reduce(Sums())
        run_of().reduce(Sums())
        assert seen.calls.count("start") == seen.calls.count("finish") == 2
        da.ones(3, chunks=1).sum().compute(scheduler="synchronous")
        assert seen.calls.count("start") == 3
    run_of().reduce(Sums())
    assert seen.calls.count("start") == 3


@pytest.mark.parametrize("scheduler", LOCAL)
def test_dasks_progress_bar_rises_once(scheduler: str, scheduling: Scheduling, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []
    draw = ProgressBar._draw_bar

    def drawing(bar: Any, fraction: float, elapsed: float) -> None:
        drawn.append(fraction)
        draw(bar, fraction, elapsed)

    monkeypatch.setattr(ProgressBar, "_draw_bar", drawing)
    out = io.StringIO()
    with scheduling(scheduler), ProgressBar(out=out, dt=0.0005):
        run_of().reduce(Sums())
    assert drawn == sorted(drawn)
    assert drawn[-1] == 1
    assert drawn.count(1) == 1
    assert len(re.findall("100% Completed", out.getvalue())) == 1


def test_the_profiler_has_a_record_of_every_task(scheduling: Scheduling) -> None:
    with scheduling("threads 3"), Profiler() as profiler:
        run_of().reduce(Sums())
    kinds = [str(result.key[0]).partition("-")[0] for result in profiler.results]
    assert (kinds.count("look"), kinds.count("tree")) == (TASKS, ADDED)


@pytest.mark.parametrize(("wanted", "shown"), [(None, False), (True, True), (False, False)])
def test_dasks_bar_takes_the_place_of_our_own(wanted: Any, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    disabled: list[Any] = []
    bar = progress.tqdm

    def recorded(**options: Any) -> Any:
        disabled.append(options["disable"])
        return bar(**options)

    monkeypatch.setattr(progress, "tqdm", recorded)
    with ProgressBar(out=io.StringIO()):
        run_of(progress=wanted).reduce(Sums())
    with Recording():
        run_of(progress=None).reduce(Sums())
    assert disabled == [not shown, None]
