"""Clients of every kind: in a task, in an event loop, set aside by dask's configuration."""

from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from tests.common import doubtful, local_cluster
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


@doubtful
@pytest.mark.slow
@pytest.mark.parametrize("task", [fitted, on_own_threads])
def test_a_fit_in_a_task_frees_its_thread_for_its_tasks(task: Any, wanted: Any) -> None:
    with local_cluster(n_workers=1) as one_thread, Client(one_thread) as client:
        before = tasks(client)
        for found in client.gather([client.submit(task, pure=False) for _ in range(2)]):
            np.testing.assert_array_equal(found, wanted)
        assert (tasks(client) - before > 20) == (task is not on_own_threads)
        assert client.submit(abs, -3, pure=False).result(timeout=60) == 3  # the thread is there again


@doubtful
def test_the_configured_scheduler_comes_before_the_client(client: Client, wanted: Any) -> None:
    for scheduler in ("threads", "synchronous", client, "distributed"):
        before = tasks(client)
        with dask.config.set(scheduler=scheduler, num_workers=2):
            np.testing.assert_array_equal(fitted(), wanted)
        assert (tasks(client) > before) == (scheduler in (client, "distributed"))
