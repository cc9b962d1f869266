"""The plan knows what a run needs, here and in the workers, and refuses what does not fit before anything is read."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.engine import memory as budget
from daskspectral.engine.memory import Memory, check_memory
from daskspectral.engine.plan import Plan
from daskspectral.moments import block_rows

X = np.random.default_rng(0).standard_normal((5000, 2))


def estimator(**changes: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), **{"n_landmarks": 20, **changes})


def test_how_many_sums_wait() -> None:
    ranges = tuple((i, i + 1) for i in range(20))
    assert Plan(ranges).live(1) == 1 + 4  # a path down the binary tree of 16 ranges
    assert Plan(ranges).live(2) == 5 + 3  # the second epoch has 4 ranges
    assert Plan(ranges[:1]).live(3) == 1
    assert Plan(ranges, split_every=8).live(1) == 1 + 2 * 7
    dealt = Plan(ranges, epoch=20, deal=5)
    assert [list(hand) for hand in dealt.hands(range(0, 20))][1] == [1, 6, 11, 16]
    assert dealt.live(1) == 5 + 2  # five sums that are done, and a path down a tree of 4 ranges


def test_a_run_that_does_not_fit_is_refused_before_any_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_row(*_: Any) -> None:
        raise AssertionError("a row was read")

    large = np.broadcast_to(X[:1], (1_000_000, 2))
    blocks = da.from_array(large, chunks=(100_000, 2)).map_blocks(no_row, dtype=float, meta=np.empty((0, 0)))
    for x in (blocks, large):
        with pytest.raises(MemoryError, match=r"this run needs .* lower n_landmarks"):
            estimator(n_landmarks=400_000).fit(x)
        with pytest.raises(MemoryError, match=r"this run needs .* lower n_landmarks"):
            estimator(n_landmarks=400_000).plan(x)


def test_blocks_of_dask_arrays_count() -> None:
    small = estimator().plan(da.zeros((2_000_000, 50), chunks=(10_000, 50))).memory
    large = estimator().plan(da.zeros((2_000_000, 50), chunks=(1_000_000, 50))).memory
    assert large.tasks > small.tasks + 1_000_000 * 50 * 8


def test_workers_with_too_little_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(now=0, tasks=800 << 20, sums=100 << 20, solver=0, threads=2)
    for limit, threads in ((800 << 20, 2), (600 << 20, 1)):
        monkeypatch.setattr(budget, "cluster_workers", lambda: [{"nthreads": threads, "memory_limit": limit}])  # noqa: B023
        with pytest.raises(MemoryError, match=rf"a worker of {threads} threads needs .* lower n_landmarks"):
            check_memory(memory)
    monkeypatch.setattr(
        budget, "cluster_workers", lambda: [{"nthreads": 1, "memory_limit": 800 << 20}, {"nthreads": 1}]
    )
    check_memory(memory)


def test_the_workers_of_the_active_client_are_asked() -> None:
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="1GB"):
        workers = budget.cluster_workers()
        assert workers is not None
        assert [w["memory_limit"] for w in workers] == [10**9] * 2
    with dask.config.set(scheduler="threads"):
        assert budget.cluster_workers() is None


def test_several_directions_a_row_count_each() -> None:
    fields = {"direction": np.ones((5000, 5, 2))}
    one = estimator(operator=dsp.operators.TangentPropagation()).plan(X, fields={"direction": X}).memory
    five = estimator(operator=dsp.operators.TangentPropagation()).plan(X, fields=fields).memory
    assert five.tasks - one.tasks == one.threads * 4 * 21 * block_rows(21) * 8  # an array (p, c) for each further one
