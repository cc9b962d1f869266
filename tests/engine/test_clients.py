"""Clients of every kind: in a task, in an event loop, set aside by dask's configuration; and what they are told."""

from dataclasses import replace
from typing import Any

import dask
import numpy as np
import pytest
from dask.utils import key_split
from distributed import Client, LocalCluster, span

import daskspectral as dsp
from daskspectral.engine import plan as planning
from daskspectral.engine import progress as bars_of
from daskspectral.engine.scheduler import active_report
from daskspectral.kernels import Gaussian
from tests.common import doubtful, local_cluster
from tests.engine.common import TWENTY, model

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


def events(client: Client) -> list[dict[str, Any]]:
    return [event for _, event in client.get_events("daskspectral")]


@doubtful
@pytest.mark.slow
@pytest.mark.parametrize("task", [fitted, on_own_threads])
def test_a_fit_in_a_task_leaves_its_thread_to_its_own_tasks(task: Any, wanted: Any) -> None:
    with local_cluster(n_workers=1) as one_thread, Client(one_thread) as client:
        before = len(events(client))
        for found in client.gather([client.submit(task, pure=False) for _ in range(2)]):
            np.testing.assert_array_equal(found, wanted)
        assert bool(events(client)[before:]) == (task is not on_own_threads)
        assert client.submit(abs, -3, pure=False).result(timeout=60) == 3  # the thread is there again


@doubtful
def test_the_configured_scheduler_comes_before_the_client(client: Client, wanted: Any) -> None:
    for scheduler in ("threads", "synchronous", client, "distributed"):
        before = len(events(client))
        with dask.config.set(scheduler=scheduler, num_workers=2):
            np.testing.assert_array_equal(fitted(), wanted)
        assert bool(events(client)[before:]) == (scheduler in (client, "distributed"))


def test_a_scheduler_that_is_not_there_is_named() -> None:
    assert active_report() is None
    told = r"no Client active\. Start a dask\.distributed\.Client, or choose another scheduler"
    with pytest.raises(RuntimeError, match=told), dask.config.set(scheduler="distributed"):
        fitted()


# -- what a cluster is told of a fit ------------------------------------------------------------------------------


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPOCH", 2), ("TASK_FLOPS", 1e6), ("LEAST_FLOPS", 1e6)):
        monkeypatch.setattr(planning, name, value)


@doubtful
@pytest.mark.usefixtures("many_tasks")
def test_spans_and_events_tell_what_the_bars_show(
    cluster: LocalCluster, client: Client, bars: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars_of, "REPORTED", 0.0)
    before = len(events(client))
    with span("names"):
        model(replace(TWENTY, kernel=Gaussian(1.0))).fit(dsp.Rows(X, standardize=True), progress=True)
    spans: Any = cluster.scheduler.extensions["spans"].spans.values()
    stages = [one for one in spans if one.name[:2] == ("names", "daskspectral") and len(one.name) == 3]
    names = {one.name[2]: {key_split(group.name) for group in one.groups} - {"shared", "state"} for one in stages}
    assert len(stages) == len(names), "the passes of one stage are one span"
    wanted = {"standardize": {"standardize", "tree"}, "landmarks": {"landmarks"}, "fit": {"sums", "tree"}}
    assert names == wanted
    told = events(client)[before:]
    assert [(e["stage"], e["total"], e["done"]) for e in told if e["state"] == "finished"] == bars
    assert [name for name, *_ in bars] == list(wanted)
    fit = [e for e in told if e["stage"] == "fit"]
    assert [e["state"] for e in fit[:1] + fit[-1:]] == ["started", "finished"]
    done = [e["done"] for e in fit]
    assert done == sorted(done)
    assert len(set(done)) > 2  # from epoch to epoch


def test_a_run_that_fails_is_told(client: Client) -> None:
    broken = X.copy()
    broken[2500, 0] = np.inf
    with pytest.raises(dsp.InvalidRowError, match="row 2500"):
        model(replace(TWENTY, points=X[:15])).fit(broken)
    last = events(client)[-1]
    assert (last["stage"], last["state"], last["error"]) == ("fit", "failed", "InvalidRowError")
