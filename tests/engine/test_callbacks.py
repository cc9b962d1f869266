"""Dask's own callbacks see one computation where the engine runs several graphs, some of them at the same time."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.callbacks import Callback

from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine import plan as planning
from daskspectral.errors import InvalidRowError
from tests.common import Scheduling
from tests.engine.common import blocks, slow

X = np.random.default_rng(3).standard_normal((1300, 2))
TASKS = 13
ADDED = 3 * 3  # sums of two in the trees of three whole epochs of four tasks; the last epoch is one task


class Sums:
    """The sum of the rows; dask computes within the task too."""

    def __call__(self, batches: Any, state: Any) -> dict[str, Any]:
        total = sum(batch["x"].sum(axis=0) for batch in batches)
        dask.compute(dask.delayed(np.sum)(total), scheduler="synchronous")
        return {"x": total}


class Recording(Callback):  # type: ignore[misc]
    """What a callback is told, and whether two calls overlap."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.keys: list[Any] = []
        self.failed: list[bool] = []
        self._busy = threading.Lock()
        super().__init__()

    def _told(self, name: str) -> None:
        assert self._busy.acquire(blocking=False), "two calls at the same time"
        self.calls.append(name)
        self._busy.release()

    def _start(self, dsk: Mapping[Any, Any]) -> None:
        self._told("start")
        self.keys.clear()

    def _posttask(self, key: Any, value: Any, dsk: Any, state: Mapping[str, Any], worker: Any) -> None:
        self._told("posttask")
        self.keys.append(key)
        assert key in state["finished"]

    def _finish(self, dsk: Any, state: Mapping[str, Any], failed: bool) -> None:
        self._told("finish")
        self.failed.append(failed)
        assert failed or set(self.keys) == set(state["finished"])


def kinds(keys: list[Any]) -> tuple[int, int]:
    """How many tasks looked at rows, and how many added sums."""
    names = [str(key[0]).partition("-")[0] for key in keys if isinstance(key, tuple)]
    return names.count("look"), names.count("tree")


def run_of(x: Any = X, **rules: Any) -> Run:
    source = open_source(blocks(x, 100))
    plan = replace(plan_rows(source, 1e9), epoch=4, split_every=2)
    assert len(plan.ranges) == TASKS
    return Run(source, plan, **{"description": "look", **rules})


@pytest.fixture(autouse=True)
def _many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TASK_FLOPS", 1e9)


@pytest.mark.parametrize("scheduler", ["synchronous", "own pool", slow("processes 2")])
def test_a_pass_has_one_start_all_tasks_and_one_finish(scheduler: str, scheduling: Scheduling) -> None:
    wanted = run_of().reduce(Sums()).sums["x"]
    with scheduling(scheduler), Recording() as first, Recording() as second:
        np.testing.assert_array_equal(run_of().reduce(Sums()).sums["x"], wanted)
    for seen in (first, second):
        assert [seen.calls.count("start"), seen.calls.count("finish")] == [1, 1]
        assert (seen.calls[0], seen.calls[-1], seen.failed) == ("start", "finish", [False])
        assert len(set(seen.keys)) == len(seen.keys)
        if scheduler != "processes 2":  # which fuses tasks before it runs them
            assert kinds(seen.keys) == (TASKS, ADDED)
            assert not [key for key in seen.keys if str(key).startswith("sum-")], "computed within a task"


def test_an_error_is_a_finish_too_and_callbacks_are_active_again_afterwards() -> None:
    broken = X.copy()
    broken[250, 1] = np.nan
    with Recording() as seen:
        with pytest.raises(InvalidRowError, match="row 250 is the first"):
            run_of(broken).reduce(Sums())
        assert (seen.calls.count("start"), seen.calls[-1], seen.failed) == (1, "finish", [True])
        da.ones(3, chunks=1).sum().compute(scheduler="synchronous")
        assert seen.calls.count("start") == 2
    run_of().reduce(Sums())
    assert seen.calls.count("start") == 2
