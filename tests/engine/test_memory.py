"""The plan knows what a run needs, here and in the workers, and refuses what does not fit before anything is read."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import daskspectral as dsp
from daskspectral.engine import memory as budget
from daskspectral.engine.memory import Memory, check_memory
from daskspectral.moments import block_rows
from tests.engine.common import model

X = np.random.default_rng(0).standard_normal((5000, 2))


def test_a_run_that_does_not_fit_is_refused_before_any_row_is_read() -> None:
    def no_row(*_: Any) -> None:
        raise AssertionError("a row was read")

    large = np.broadcast_to(X[:1], (1_000_000, 2))
    unread = da.from_array(large, chunks=(100_000, 2)).map_blocks(no_row, dtype=float, meta=np.empty((0, 0)))
    for x in (unread, large):
        for call in (model(n_landmarks=400_000).fit, model(n_landmarks=400_000).plan):
            with pytest.raises(MemoryError, match=r"this run needs .* lower n_landmarks"):
                call(x)


def test_blocks_and_directions_count() -> None:
    small = model().plan(da.zeros((2_000_000, 50), chunks=(10_000, 50))).memory
    large = model().plan(da.zeros((2_000_000, 50), chunks=(1_000_000, 50))).memory
    assert large.tasks > small.tasks + 1_000_000 * 50 * 8
    slopes = model(operator=dsp.operators.TangentPropagation(), kernel=dsp.kernels.Gaussian(1.0))
    one = slopes.plan(X, fields={"direction": X}).memory
    five = slopes.plan(X, fields={"direction": np.ones((5000, 5, 2))}).memory
    assert five.tasks - one.tasks == one.threads * 4 * 21 * block_rows(21) * 8  # an array (p, c) for each further one


def test_workers_with_too_little_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, workers = Memory(now=0, tasks=800 << 20, sums=100 << 20, solver=0, threads=2), []
    monkeypatch.setattr(budget, "cluster_workers", lambda: workers)
    for limit, threads in ((800 << 20, 2), (600 << 20, 1)):
        workers[:] = [{"nthreads": threads, "memory_limit": limit}]
        with pytest.raises(MemoryError, match=rf"a worker of {threads} threads needs .* lower n_landmarks"):
            check_memory(memory)
    workers[:] = [{"nthreads": 1, "memory_limit": 800 << 20}, {"nthreads": 1}]
    check_memory(memory)


@pytest.mark.slow
def test_the_workers_of_the_active_client_are_asked() -> None:
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="1GB"):
        workers = budget.cluster_workers()
        assert workers is not None
        assert [w["memory_limit"] for w in workers] == [10**9] * 2
        with dask.config.set(scheduler="threads"):
            assert budget.cluster_workers() is None
