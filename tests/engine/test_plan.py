"""A plan cuts the rows into tasks, by the shape of the data and the work a row, and knows what memory they need."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.engine import Plan, plan_run
from daskspectral.engine import memory as budget
from daskspectral.engine import plan as module
from daskspectral.engine.memory import Memory, check_memory
from tests.engine.common import TWENTY, X, model

chunk_lengths = st.lists(st.integers(0, 10**5), min_size=1, max_size=40).filter(lambda c: sum(c) > 0)
work = st.floats(1e3, 1e7)


def covers(plan: Plan, n: int) -> bool:
    flat = [i for epoch in plan.epochs for i in epoch]
    return (
        flat == list(range(len(plan.ranges)))
        and plan.ranges[0][0] == 0
        and plan.ranges[-1][1] == n
        and all(a < b for a, b in plan.ranges)
        and all(before[1] == after[0] for before, after in pairwise(plan.ranges))
    )


@given(chunk_lengths, work, st.integers(0, 10**5))
def test_large_chunks_are_split_evenly_or_stay_whole(lengths: list[int], flops: float, row_bytes: int) -> None:
    edges = np.concatenate([[0], np.cumsum(lengths)])
    n = int(edges[-1])
    whole = plan_run(edges, flops_per_row=flops, row_bytes=row_bytes, splittable=False)
    assert covers(whole, n)
    assert {b for r in whole.ranges for b in r} <= set(edges.tolist())
    assert whole == plan_run(edges.astype("int32"), flops_per_row=flops, row_bytes=row_bytes, splittable=False)
    plan = plan_run(edges, flops_per_row=flops, row_bytes=row_bytes)
    assert covers(plan, n)
    rows = module.TASK_FLOPS / flops
    if n >= module.LEAST_TASKS * module.TASK_ROWS:  # several blocks at least, where there are rows enough
        rows = max(rows, module.TASK_ROWS)
    rows = max(1, min(rows, module.TASK_BYTES / max(row_bytes, 1)))
    assert max(b - a for a, b in plan.ranges) <= 1.5 * rows + 1
    if n * flops < 2 * module.LEAST_FLOPS and n * row_bytes < module.TASK_BYTES:
        assert len(plan.ranges) <= 4  # two, and what a small chunk before them and one after them make
    for a, b in plan.ranges:  # a range is a union of whole chunks, or lies within one
        first, last = np.searchsorted(edges, [a, b])
        inside = np.searchsorted(edges, a, "right") == np.searchsorted(edges, b, "left")
        assert inside or (edges[first] == a and edges[last] == b)


def test_a_run_that_does_not_fit_is_refused_before_any_row_is_read() -> None:
    def no_row(*_: Any) -> None:
        raise AssertionError("a row was read")

    large = np.broadcast_to(X[:1], (1_000_000, 2))
    unread = da.from_array(large, chunks=(100_000, 2)).map_blocks(no_row, dtype=float, meta=np.empty((0, 0)))
    for x in (unread, large):
        estimator = model(replace(TWENTY, n_landmarks=400_000))
        for call in (estimator.fit, estimator.plan):
            with pytest.raises(MemoryError, match=r"this run needs .* [Uu]se fewer landmarks"):
                call(x)


def test_workers_with_too_little_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, workers = Memory(now=0, tasks=800 << 20, sums=100 << 20, solver=0, threads=2), []
    monkeypatch.setattr(budget, "cluster_workers", lambda: workers)
    for limit, threads in ((800 << 20, 2), (600 << 20, 1)):
        workers[:] = [{"nthreads": threads, "memory_limit": limit}]
        with pytest.raises(MemoryError, match=rf"a worker of {threads} threads needs .* [Uu]se fewer landmarks"):
            check_memory(memory)
    workers[:] = [{"nthreads": 1, "memory_limit": 800 << 20}, {"nthreads": 1}]
    check_memory(memory)
