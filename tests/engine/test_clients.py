"""Clients of every kind: in a task, in an event loop, set aside by dask's configuration, or not there at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_client, worker_client

import daskspectral as dsp
from tests.common import local_cluster

X = np.random.default_rng(4).standard_normal((3000, 2))


def fitted() -> np.ndarray:
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=4, random_state=0)
    return np.array(model.fit(X, progress=False).eigenvalues_)


def with_worker_client() -> np.ndarray:
    with worker_client():
        return fitted()


def with_get_client() -> np.ndarray:
    with get_client().as_current():
        return fitted()


def on_own_threads() -> np.ndarray:
    with dask.config.set(scheduler="threads", num_workers=2):
        return fitted()


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    with dask.config.set(scheduler="synchronous"):
        return fitted()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[LocalCluster]:
    """A worker whose only thread waits for tasks of its own, unless it is left to them."""
    with local_cluster(n_workers=1) as cluster:
        yield cluster


def stages(client: Client) -> list[str]:
    return [event["stage"] for _, event in client.get_events("daskspectral")]


@pytest.mark.parametrize("task", [fitted, with_worker_client, with_get_client])
def test_a_fit_in_a_task_leaves_its_thread_to_its_own_tasks(task: Any, one_thread: LocalCluster, wanted: Any) -> None:
    with Client(one_thread) as client:
        before = len(stages(client))
        np.testing.assert_array_equal(client.submit(task, pure=False).result(timeout=60), wanted)
        assert "fit" in stages(client)[before:]
        assert client.submit(abs, -3, pure=False).result(timeout=60) == 3  # the thread is there again


def test_two_fits_in_tasks_of_one_thread(one_thread: LocalCluster, wanted: Any) -> None:
    with Client(one_thread) as client:
        for found in client.gather([client.submit(fitted, pure=False) for _ in range(2)]):
            np.testing.assert_array_equal(found, wanted)


def test_an_error_in_a_task_gives_the_thread_back(one_thread: LocalCluster) -> None:
    def failing() -> None:
        broken = X.copy()
        broken[7] = np.nan
        dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), landmarks=X[:5]).fit(broken)

    with Client(one_thread) as client:
        with pytest.raises(dsp.InvalidRowError, match="row 7 is the first"):
            client.submit(failing, pure=False).result(timeout=60)
        assert client.submit(abs, -4, pure=False).result(timeout=60) == 4


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "processes"])
def test_the_configured_scheduler_comes_before_the_client(scheduler: str, client: Client, wanted: Any) -> None:
    before = len(stages(client))
    with dask.config.set(scheduler=scheduler, num_workers=2):
        np.testing.assert_array_equal(fitted(), wanted)
    assert len(stages(client)) == before


def test_a_task_may_choose_its_own_threads(one_thread: LocalCluster, wanted: Any) -> None:
    with Client(one_thread) as client:
        before = len(stages(client))
        np.testing.assert_array_equal(client.submit(on_own_threads, pure=False).result(timeout=60), wanted)
        assert len(stages(client)) == before


def test_other_ways_to_name_a_scheduler(client: Client, wanted: Any) -> None:
    with ThreadPoolExecutor(2) as pool, dask.config.set(scheduler=pool):
        np.testing.assert_array_equal(fitted(), wanted)
    for scheduler in (client, "distributed"):
        before = len(stages(client))
        with dask.config.set(scheduler=scheduler):
            np.testing.assert_array_equal(fitted(), wanted)
        assert "fit" in stages(client)[before:]


def test_a_fit_within_a_dask_computation_of_threads(wanted: Any) -> None:
    np.testing.assert_array_equal(dask.delayed(fitted)().compute(scheduler="threads"), wanted)


def test_an_asynchronous_client_says_what_to_do_and_works_from_a_thread(wanted: Any) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"processes": False, "dashboard_address": None, "threads_per_worker": 2}
        async with (
            LocalCluster(n_workers=1, asynchronous=True, **options) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            with pytest.raises(RuntimeError, match=r"asynchronous.*await asyncio\.to_thread\(estimator\.fit, x\)"):
                fitted()
            np.testing.assert_array_equal(await asyncio.to_thread(fitted), wanted)
            assert "fit" in [event["stage"] for _, event in await client.get_events("daskspectral")]

    asyncio.run(main())


def test_a_scheduler_that_is_not_there_is_named() -> None:
    told = r"no Client active\. Start a dask\.distributed\.Client, or choose another scheduler"
    with pytest.raises(RuntimeError, match=told), dask.config.set(scheduler="distributed"):
        fitted()
    with pytest.raises(ValueError, match="Expected one of"), dask.config.set(scheduler="thread-pool"):
        fitted()
