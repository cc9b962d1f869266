"""Plans: the rows of each task, by the shape and chunks of the data and the work per row only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.devices import ACCELERATOR_ROWS

TASK_FLOPS = 2e10  # a task of half a second to a second on one core
MOST_TASKS = 100_000  # a scheduler serves some hundreds a second: tasks of very long runs are longer
LEAST_FLOPS = 2e9  # tasks of short runs are smaller, down to this, for parallelism
LEAST_TASKS = 16
TASK_ROWS = 1 << 14  # several blocks at least, if there are enough rows: a p x p result is small in comparison
ACCELERATION = 100  # times the operations of a task on the CPU: of some tenths of a second on an accelerator
TASK_BYTES = 1 << 28  # limit of the rows of one task as float64, for dask blocks
EPOCH = 16


@dataclass(frozen=True)
class Plan:
    """Ranges (start, stop) of rows in order, one for each task; epochs of `epoch` ranges are summed in sequence.

    Within an epoch, results are added two at a time: of 16 at most five wait, with 8 up to nine. With several `parts`,
    such as folds, a task reads a range and splits its rows, which further tasks sum, one for each part.
    """

    ranges: tuple[tuple[int, int], ...]
    epoch: int = EPOCH
    parts: int = 1

    @property
    def tasks(self) -> int:
        """Number of tasks that sum rows."""
        return len(self.ranges) * self.parts

    @property
    def epochs(self) -> list[range]:
        n = len(self.ranges)
        return [range(i, min(i + self.epoch, n)) for i in range(0, n, self.epoch)]

    def live(self, in_flight: int, size: Callable[[range], int] = lambda ranges: 1) -> int:
        """Return the most partial sums that wait in the trees of `in_flight` epochs, while others are made.

        Sums are added in place. `size` returns the size of a sum over some ranges, or of one part.
        """
        if self.parts > 1:
            return sum(self.parts * max(1, (len(epoch) - 1).bit_length()) for epoch in self.epochs[:in_flight])
        waiting = 0
        for number, epoch in enumerate(self.epochs[:in_flight]):
            levels = (len(epoch) - 1).bit_length()
            waiting += sum(size(epoch[: 2**i]) for i in range(levels)) + (size(epoch) if number else 0)
        return waiting


def task_rows(n: int, flops_per_row: float, row_bytes: int, device: str = "cpu") -> int:
    """Return the rows of a task of a run over n rows: about 2e10 operations, fewer in short runs, more in long ones.

    On an accelerator about 2e12, and at least two of its blocks.
    """
    accelerated = device != "cpu"
    flops_per_row = flops_per_row / ACCELERATION if accelerated else flops_per_row
    work = n * flops_per_row
    flops = max(min(TASK_FLOPS, max(LEAST_FLOPS, work / LEAST_TASKS)), work / MOST_TASKS)
    rows = int(flops / max(flops_per_row, 1.0))
    if accelerated:
        rows = max(rows, 2 * ACCELERATOR_ROWS)
    elif n >= LEAST_TASKS * TASK_ROWS:
        rows = max(rows, TASK_ROWS)
    return max(1, min(rows, TASK_BYTES // max(row_bytes, 1)))


def plan_run(
    edges: NDArray[Any], *, flops_per_row: float, row_bytes: int, splittable: bool = True, device: str = "cpu"
) -> Plan:
    """Return ranges of about `task_rows` rows, of whole chunks; a chunk with much more work is split.

    `edges` are the chunk borders (0, ..., n), `row_bytes` the size of a row as float64; dask blocks are not
    `splittable`.
    """
    rows = task_rows(int(edges[-1]), flops_per_row, row_bytes, device)
    ranges: list[tuple[int, int]] = []
    start = 0
    for stop, following in zip(edges[1:].tolist(), [*edges[2:].tolist(), None], strict=True):
        if following is not None and following - start <= rows:
            continue
        pieces = max(1, round((stop - start) / rows)) if splittable else 1
        cuts = np.linspace(start, stop, pieces + 1).astype(np.int64).tolist()
        ranges.extend(pairwise(cuts))
        start = stop
    return Plan(tuple(r for r in ranges if r[0] < r[1]), EPOCH)


def plan_rows(
    source: Source, flops_per_row: float, *, start: int = 0, row_bytes: int | None = None, device: str = "cpu"
) -> Plan:
    """Return the plan of one pass over the rows of a source from `start` on, by the work per row on the `device`.

    `row_bytes` is the size of a row that is read or written, by default of all its fields as float64.
    """
    whole = bool(source.dask_fields)
    size = source.row_bytes if row_bytes is None else row_bytes
    size *= 4 if whole else 1  # blocks are held with what they are made of, and what is made of them
    plan = plan_run(source.edges, flops_per_row=flops_per_row, row_bytes=size, splittable=not whole, device=device)
    ranges = tuple((max(a, start), b) for a, b in plan.ranges if b > start)
    return replace(plan, ranges=ranges)
