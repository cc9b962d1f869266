"""A plan cuts the rows into tasks; it depends on the shape of the data and the work a row, on nothing else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.data.source import open_source
from daskspectral.engine import Plan, plan_run
from daskspectral.engine import plan as module
from daskspectral.engine.sampling import plan_of_rows

chunk_lengths = st.lists(st.integers(0, 10**5), min_size=1, max_size=40).filter(lambda c: sum(c) > 0)
work = st.floats(1e3, 1e7)
widths = st.integers(0, 10**5)


def borders(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


def covers(plan: Plan, n: int) -> bool:
    flat = [i for epoch in plan.epochs for i in epoch]
    return (
        flat == list(range(len(plan.ranges)))
        and plan.ranges[0][0] == 0
        and plan.ranges[-1][1] == n
        and all(a < b for a, b in plan.ranges)
        and all(before[1] == after[0] for before, after in pairwise(plan.ranges))
    )


@given(chunk_lengths, work, widths)
def test_whole_chunks_partition_the_rows(lengths: list[int], flops: float, row_bytes: int) -> None:
    edges = borders(lengths)
    plan = plan_run(edges, flops_per_row=flops, row_bytes=row_bytes, splittable=False)
    assert covers(plan, edges[-1])
    assert {b for r in plan.ranges for b in r} <= set(edges.tolist())
    assert plan == plan_run(edges.astype("int32"), flops_per_row=flops, row_bytes=row_bytes, splittable=False)


@given(chunk_lengths, work, widths)
def test_large_chunks_are_split_evenly(lengths: list[int], flops: float, row_bytes: int) -> None:
    edges = borders(lengths)
    n = int(edges[-1])
    plan = plan_run(edges, flops_per_row=flops, row_bytes=row_bytes)
    assert covers(plan, n)
    rows = module.TASK_FLOPS / flops
    if n >= module.LEAST_TASKS * module.TASK_ROWS:  # several blocks at least, where there are rows enough
        rows = max(rows, module.TASK_ROWS)
    rows = max(1, min(rows, module.TASK_BYTES / max(row_bytes, 1)))
    longest = max(b - a for a, b in plan.ranges)
    assert longest <= 1.5 * rows + 1
    for a, b in plan.ranges:  # a range is a union of whole chunks, or lies within one
        first, last = np.searchsorted(edges, [a, b])
        inside = np.searchsorted(edges, a, "right") == np.searchsorted(edges, b, "left")
        assert inside or (edges[first] == a and edges[last] == b)


@given(st.integers(1, 10**8), st.floats(1e3, 1e5))
def test_tasks_are_neither_tiny_nor_huge(n: int, flops: float) -> None:
    plan = plan_run(np.array([0, n]), flops_per_row=flops, row_bytes=24)
    lengths = np.array([b - a for a, b in plan.ranges])
    assert lengths.max() - lengths.min() <= 1
    assert len(plan.ranges) <= max(module.LEAST_TASKS, 1.5 * n * flops / module.TASK_FLOPS) + 1
    if n * flops < 2 * module.LEAST_FLOPS:
        assert len(plan.ranges) <= 2


def test_very_long_runs_have_long_tasks() -> None:
    """1e12 rows of p = 1000 were 6e7 tasks: a day for a scheduler, gigabytes of ranges for the driver."""
    edges = np.arange(0, 10**12 + 1, 10**6)
    plan = plan_run(edges, flops_per_row=4e6, row_bytes=8)
    assert covers(plan, 10**12)
    assert len(plan.ranges) <= 1.5 * module.MOST_TASKS
    wide = plan_run(edges[:10_001], flops_per_row=4e6, row_bytes=8000)  # of many bytes: still no more than these
    assert max(b - a for a, b in wide.ranges) <= 1.5 * module.TASK_BYTES / 8000


@pytest.mark.parametrize("rows", [[0], [0, 999], [498, 499, 500, 501]], ids=str)
def test_plan_of_some_rows_reads_no_more_than_their_ranges(monkeypatch: pytest.MonkeyPatch, rows: list[int]) -> None:
    monkeypatch.setattr(module, "TASK_BYTES", 100 * 24)
    numbers = np.array(rows)
    plan = plan_of_rows(open_source(np.zeros((1000, 3))), numbers)
    counts = [np.count_nonzero((numbers >= a) & (numbers < b)) for a, b in plan.ranges]
    assert min(counts) > 0
    assert sum(counts) == len(rows)


def test_how_many_sums_wait() -> None:
    ranges = tuple((i, i + 1) for i in range(20))
    assert Plan(ranges, epoch=16).epochs == [range(16), range(16, 20)]
    assert Plan(ranges).live(1) == 1 + 4  # a path down the binary tree of 16 ranges
    assert Plan(ranges).live(2) == 5 + 3  # the second epoch has 4 ranges
    assert Plan(ranges[:1]).live(3) == 1
    assert Plan(ranges, split_every=8).live(1) == 1 + 2 * 7
    dealt = Plan(ranges, epoch=20, deal=5)
    assert [list(hand) for hand in dealt.hands(range(0, 20))][1] == [1, 6, 11, 16]
    assert dealt.live(1) == 5 + 2  # five sums that are done, and a path down a tree of 4 ranges
