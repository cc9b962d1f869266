"""Clients of every kind: in a task, in an event loop, set aside by dask's configuration."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskspectral.data.folders import folder_at
from daskspectral.data.source import open_source
from daskspectral.data.writing import progress_bar
from daskspectral.engine import Plan, Run
from daskspectral.engine import run as running
from daskspectral.engine import scheduler as scheduling
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.tasks import Total
from tests.common import local_cluster, unreliable
from tests.engine.common import model

N = 3000
X = np.random.default_rng(4).standard_normal((N, 2))


def fitted() -> np.ndarray:
    return np.array(model().fit(X, progress=False).eigenvalues_)


def on_own_threads() -> np.ndarray:
    with dask.config.set(scheduler="threads", num_workers=2):
        return fitted()


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with dask.config.set(scheduler="synchronous"):
        return fitted()


def tasks(client: Client) -> int:
    """How many changes of state of a task the scheduler has seen."""
    return int(client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter))


@unreliable
@pytest.mark.slow
@pytest.mark.parametrize("task", [fitted, on_own_threads])
def test_a_fit_in_a_task_frees_its_thread_for_its_tasks(task: Any, wanted: Any) -> None:
    with local_cluster(n_workers=1) as one_thread, Client(one_thread) as client:
        before = tasks(client)
        for found in client.gather([client.submit(task, pure=False) for _ in range(2)]):
            np.testing.assert_array_equal(found, wanted)
        assert (tasks(client) - before > 20) == (task is not on_own_threads)
        assert client.submit(abs, -3, pure=False).result(timeout=60) == 3  # the thread is there again


@unreliable
def test_the_configured_scheduler_comes_before_the_client(client: Client, wanted: Any) -> None:
    for scheduler in ("threads", "synchronous", client, "distributed"):
        before = tasks(client)
        with dask.config.set(scheduler=scheduler, num_workers=2):
            np.testing.assert_array_equal(fitted(), wanted)
        assert (tasks(client) > before) == (scheduler in (client, "distributed"))


SIXTY_FOUR = Plan(tuple((i, i + 100) for i in range(0, 6400, 100)), epoch=4)
ROWS = np.arange(6400.0)[:, None]
look: Callable[[], int] = int
seen: list[int] = []


def looking(batches: Any, state: Any) -> dict[str, np.ndarray]:
    """Of this module, whose names tasks in this process find."""
    time.sleep(0.02)
    seen.append(look())
    return {"sum": np.sum([batch["x"].sum(axis=0) for batch in batches], axis=0)}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    monkeypatch.setitem(globals(), "seen", [])
    with local_cluster(n_workers=1, processes=False) as cluster, Client(cluster):
        yield cluster


@pytest.mark.parametrize("rows_held", [1 << 20, 4000])
def test_all_that_is_left_is_submitted_unless_it_is_large(
    rows_held: int, in_this_process: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adaptive clusters grow by the tasks that they know; rows in memory are part of the tasks."""
    monkeypatch.setattr(scheduling, "AHEAD_BYTES", rows_held)
    tasks = in_this_process.scheduler.tasks
    monkeypatch.setitem(globals(), "look", lambda: sum("sums" in str(key) for key in [*tasks]))
    total = Run(open_source(ROWS), SIXTY_FOUR, description="fit").reduce(looking)
    np.testing.assert_array_equal(total.sums["sum"], ROWS.sum(axis=0))
    assert max(seen) >= 40 if rows_held > 4000 else max(seen) <= 12


@pytest.mark.parametrize("restored", [0, 5])
def test_the_bar_moves_within_an_epoch_and_begins_where_a_checkpoint_ends(
    restored: int, in_this_process: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bars: list[Any] = []

    def recorded(*args: Any, **options: Any) -> Any:
        bars.append(progress_bar(*args, **options))
        return bars[-1]

    monkeypatch.setattr(running, "progress_bar", recorded)
    monkeypatch.setitem(globals(), "look", lambda: bars[0].n)
    checkpoint = Checkpoint(folder_at(tmp_path), {}, {})
    checkpoint.set_plan(SIXTY_FOUR)
    if restored:
        checkpoint.add(restored, Total({"sum": np.ones(1)}, 1.0, 1))
    Run(open_source(ROWS, progress=True), SIXTY_FOUR).reduce(looking, checkpoint=checkpoint)
    assert (bars[0].initial, bars[0].n) == (400 * restored, 6400)
    assert {n % 400 for n in seen} > {0}
