"""One run over a source: `reduce` sums the results of tasks over ranges, `map` returns or writes rows."""

from __future__ import annotations

import logging
import signal
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import islice, starmap
from operator import add, iadd
from typing import Any

import numpy as np
from dask.core import flatten
from dask.optimization import cull
from dask.sizeof import sizeof
from numpy.typing import NDArray

from daskspectral.data.batches import InvalidRow, ReadOptions
from daskspectral.data.source import Source
from daskspectral.data.writing import progress_bar
from daskspectral.devices import least_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.plan import Plan
from daskspectral.engine.scheduler import Scheduler, active_scheduler
from daskspectral.engine.tasks import (
    MapTask,
    ReduceTask,
    Shared,
    Tally,
    Total,
    map_range,
    part_of,
    reduce_range,
    split_range,
    stopped,
    sum_part,
)
from daskspectral.engine.threads import one_blas_thread
from daskspectral.errors import InvalidRowError, PointError, Stopped, raise_on_signals

logger, planning = logging.getLogger(__name__), logging.getLogger("daskspectral.plan")
Array = NDArray[Any]
Plus = Callable[[Total, Total], Total]
PREFIXES = {"fit": "sums", "transform": "apply"}  # of the keys of tasks, if not the description


@dataclass(eq=False)
class Run:
    """Passes over a source in the ranges of a plan; `reduce` and `map` may be called many times.

    `reduce` excludes rows whose prepared points satisfy the test `dropped`, which describes them in words. The progress
    bar has the label `description`, and so have tasks on a dashboard, but "sums" for "fit" and "apply" for "transform";
    sums of several are "tree". `counted` has the rows counted by the last `map`. Tasks on an accelerator, the `device`,
    have larger batches, and a thread of each reads the next one meanwhile.
    """

    source: Source
    plan: Plan
    dropped: Callable[[Array], NDArray[np.bool_]] | None = None
    description: str = "rows"
    device: str = "cpu"
    counted: Tally = field(default_factory=Tally, init=False)

    def reduce(self, task: ReduceTask, state: Any = None, checkpoint: Checkpoint | None = None) -> Total:
        """Return the sum of the task's results over all ranges, in a fixed order: same data and plan, same bits.

        The task is called with the batches of one range and `state`. With a checkpoint, the sum resumes after its
        epochs, and a run that is stopped (by an error, Ctrl-C, SIGTERM, SIGHUP, SIGUSR1) writes its partial sums: after
        a signal at once, and again at the end of the current epoch.

        Raises InvalidRowError for the lowest invalid row (on_invalid="raise"), PointError for a point that a manifold
        does not accept, and ValueError if no row is left or the checkpoint has another plan.
        """
        first, total = (0, None) if checkpoint is None else (checkpoint.epochs, checkpoint.total)
        ends = [self.plan.ranges[epoch[-1]][1] for epoch in self.plan.epochs]
        if checkpoint is not None:
            checkpoint.set_plan(self.plan)
            if first:
                before = ends[first - 1], ends[-1]
                text = f"resuming from the checkpoint {checkpoint.path} at epoch %d of %d, after %d of %d rows"
                planning.info(text, min(first + 1, len(ends)), len(ends), *before)
        rows = self._rows(self.dropped, None)
        plus: Plus = iadd if checkpoint is None else add  # a signal may ask for the sums in the middle of an addition
        with (
            checkpoint_signals(checkpoint),
            self._epochs(reduce_range, task, rows, state, checkpoint=checkpoint) as results,
        ):
            for number, parts in enumerate(results, first + 1):
                while parts:  # free each before the next is added
                    part = parts.pop(0)
                    total = part if total is None else plus(total, part)
                if total is not None and total.bad is not None:
                    raise self._error(total.bad)
                logger.info(
                    "%s: epoch %d of %d, %d of %d rows", self.description, number, len(ends), ends[number - 1], ends[-1]
                )
                if checkpoint is not None and total is not None:
                    checkpoint.add(number, total)
        if checkpoint is not None:
            checkpoint.write()
        if total is None or not total.count:
            invalid, read = total.skipped if total else 0, sum(stop - start for start, stop in self.plan.ranges)
            others = f", and the others are {self.dropped}" if self.dropped is not None and invalid < read else ""
            raise ValueError(f"no rows are left: {invalid} of {read} are invalid{others}. {self.source.remedy(1.0)}")
        return total

    def map(
        self,
        task: MapTask,
        state: Any = None,
        *,
        out: Any = None,
        selected: Array | None = None,
        raw: bool = False,
    ) -> Array | None:
        """Return the task's result for every row, or for rows with the sorted numbers `selected`.

        The task is called with a batch of rows, with `raw` of points before preparation, and with `state`. Results are
        returned as numpy (n, ...), None without rows, or written into the zarr array at the path or store `out`; the
        plan's ranges must then be multiples of its chunks, so that no two tasks write to one chunk.

        Raises InvalidRowError for the lowest invalid row; with on_invalid="skip" such rows are left out.
        """
        rows = self._rows(None, selected, raw)
        pieces: list[Array] = []
        self.counted = Tally()
        with self._epochs(map_range, task, rows, state, out=out) as results:
            for part in results:
                bad = [b for *_, b in part if b is not None]
                if bad:
                    raise self._error(min(bad, key=lambda b: b.row))
                pieces.extend(r for r, *_ in part if r is not None)
                self.counted = sum((tally for _, tally, _ in part), self.counted)
        return np.concatenate(pieces) if pieces else None

    def _rows(self, dropped: Any, selected: Array | None, raw: bool = False) -> ReadOptions:
        least = least_rows(self.device)
        return ReadOptions(self.source.preparations, dropped, selected, self.source.on_invalid, raw, least)

    def _error(self, bad: InvalidRow) -> InvalidRowError | PointError:
        trajectory, row = self.source.place(bad.field, bad.row, bad.delay)
        of, which, lagged = "", f"row {row} is the first that cannot be used", self.source.lagged
        if lagged is not None:
            of = f" of trajectory {trajectory}" if len(lagged.trajectories) > 1 else ""
            which = f"row {row}{of} cannot be used"
        if bad.error is not None:
            return PointError(bad.error.before, row, of + bad.error.after, bad.field)
        column = bad.column if bad.field in ("x", *self.source.views) else None
        return InvalidRowError(f"{which}: {bad.reason}. {self.source.remedy(bad.share)}", row, column)

    @contextmanager
    def _epochs(
        self,
        function: Callable[..., Any],
        task: Any,
        rows: ReadOptions,
        state: Any,
        out: Any = None,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[Iterator[list[Any]]]:
        """Yield for each epoch the function's results for its ranges, or their sum for `reduce_range`."""
        token = uuid.uuid4().hex
        tasks = f"{PREFIXES.get(self.description, self.description)}-{token}"
        blocks = _DaskBlocks(self.source)
        edges = None if blocks else self.source.edges
        sizes, epochs = [stop - start for start, stop in self.plan.ranges], self.plan.epochs
        first = 0 if checkpoint is None else checkpoint.epochs
        restored = sum(sizes[i] for epoch in epochs[:first] for i in epoch)
        summed = function is reduce_range
        parts = self.plan.parts if summed else 1
        left = {key for epoch in epochs[first:] for key in _results(tasks, epoch, parts)}

        def done(key: Any) -> None:  # several times for a task that is repeated, and from several threads
            if isinstance(key, tuple) and key[0] == tasks:
                with suppress(KeyError):
                    left.remove(key)
                    size, part = sizes[key[1]], 1 if parts == 1 else key[2]
                    bar.update(size * part // parts - size * max(0, part - 1) // parts)

        def place(key: Any) -> str:
            kind, *numbers = key if isinstance(key, tuple) else (key,)
            if kind not in {tasks, f"tree-{token}"}:
                return f"{self.description}, task {key}"
            last = numbers[0] if kind == tasks else min(numbers[0] + self.plan.epoch, len(sizes)) - 1
            return f"rows {self.plan.ranges[numbers[0]][0]} to {self.plan.ranges[last][1]}"

        with (
            one_blas_thread(),
            progress_bar(sum(sizes), self.description, self.source.progress, leave=False, initial=restored) as bar,
            active_scheduler(None if bar.disable else done, place) as scheduler,
        ):
            reports = scheduler.reports and not bar.disable
            recipe = Shared(token, task, rows, edges, out, self.device != "cpu", reports)
            shared = scheduler.share(recipe, f"shared-{token}")
            state = scheduler.share(state, f"state-{token}")
            constants = {f"shared-{token}-graph": shared, f"state-{token}-graph": state}
            pending: deque[Any] = deque()

            def graphs() -> Iterator[tuple[dict[Any, Any], list[Any]]]:
                for epoch in epochs[first:]:
                    graph = self._ranges(function, epoch, blocks, scheduler, token, tasks) | constants
                    keys = _results(tasks, epoch, parts)
                    yield graph, _tree(graph, keys, f"tree-{token}", scheduler) if summed else keys

            def results() -> Iterator[list[Any]]:
                ahead, held = graphs(), None
                sent = 0 if scheduler.shares_memory else self._sent(blocks)
                for epoch in epochs[first:]:
                    missing = max(0, scheduler.in_flight(self.plan.epoch * parts, held) - len(pending))
                    pending.extend(starmap(scheduler.submit, islice(ahead, missing)))
                    stop: BaseException | None = None
                    try:
                        value = scheduler.result(pending[0])
                    except (KeyboardInterrupt, Stopped) as signalled:  # Ctrl-C or a signal, not an error of the run
                        if checkpoint is None:
                            raise
                        since = time.monotonic()
                        _despite_signals(checkpoint.write, since)  # at once: there may be no time to end the epoch
                        logger.warning("stopping after the current epoch; a second signal stops at once")
                        stop, value = signalled, _despite_signals(partial(scheduler.result, pending[0]), since)
                    pending.popleft()
                    held = sent + sizeof(value)
                    for key in _results(tasks, epoch, parts):  # of those that were not reported, or not yet
                        done(key)
                    yield value
                    if stop is not None:
                        raise stop

            try:
                yield results()
            except BaseException:
                stopped.add(token)
                scheduler.stop(list(pending))
                raise
        stopped.discard(token)

    def _sent(self, blocks: _DaskBlocks) -> int:
        """Return the bytes of rows in memory that the graph of an epoch carries to a cluster."""
        ranges, epochs = self.plan.ranges, self.plan.epochs
        rows = max((ranges[epoch[-1]][1] - ranges[epoch[0]][0] for epoch in epochs), default=0)
        held = [r for r in self.source.readers.values() if any(part.in_memory for part in r.parts)]
        of_row = sum(int(np.prod(r.shape[1:])) * r.dtype.itemsize for r in held)
        return rows * of_row + blocks.held // max(1, len(epochs))

    def _ranges(
        self,
        function: Callable[..., Any],
        epoch: range,
        blocks: _DaskBlocks,
        scheduler: Scheduler,
        token: str,
        tasks: str,
    ) -> dict[Any, Any]:
        graph: dict[Any, Any] = {}
        for i in epoch:
            start, stop = self.plan.ranges[i]
            parts: list[Any] = []
            for name, reader in self.source.readers.items():
                if reader.lazy:
                    parts += [name, blocks.add(graph, name, start, stop)]
                else:
                    parts += [name, reader if scheduler.shares_memory else reader.localize(start, stop)]
            shared, split = f"shared-{token}-graph", f"split-{token}"
            if function is not reduce_range or self.plan.parts == 1:
                graph[tasks, i] = (function, shared, f"state-{token}-graph", start, stop, *parts)
                continue
            graph[split, i] = (split_range, shared, start, stop, *parts)
            graph[tasks, i, 0] = (part_of, (split, i), 0)
            for part in range(1, self.plan.parts + 1):
                graph[split, i, part] = (part_of, (split, i), part)
                graph[tasks, i, part] = (sum_part, shared, start, stop, part - 1, (split, i, part))
        return graph


def _results(tasks: str, epoch: range, parts: int) -> list[tuple[Any, ...]]:
    """Return the keys of results of an epoch in the order of addition; part 0 has the sums without parts."""
    if parts == 1:
        return [(tasks, i) for i in epoch]
    return [(tasks, i, part) for part in range(parts + 1) for i in epoch]


def _tree(graph: dict[Any, Any], keys: list[Any], name: str, scheduler: Scheduler) -> list[Any]:
    """Add tasks to a graph that add results two at a time, and return a list with the key of the sum.

    Sums are added in place, except on clusters, which need results of tasks again if a worker is lost.
    """
    level, first, plus = 0, keys[0][1], iadd if scheduler.shares_memory else add
    while len(keys) > 1:
        above: list[Any] = []
        for j in range(0, len(keys), 2):
            above.append((name, first, level, j))
            graph[above[-1]] = (reduce, plus, keys[j : j + 2])
        keys, level = above, level + 1
    return keys


def _despite_signals(function: Callable[[], Any], since: float) -> Any:
    """Call a function after a signal at time `since`, and again after repeated signals within 2 s."""
    while True:
        try:
            return function()
        except (KeyboardInterrupt, Stopped):
            if time.monotonic() - since > 2:
                raise


@contextmanager
def checkpoint_signals(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Write the checkpoint if the block ends early; SIGTERM, SIGHUP and SIGUSR1 end it like Ctrl-C."""
    if checkpoint is None:
        yield
        return
    with raise_on_signals(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        try:
            yield
        except BaseException as error:
            try:
                checkpoint.write()
            except OSError as failed:
                error.add_note(f"the newest sums could not be written: {failed}")
            when = ", of the data as they were before," if checkpoint.spoilt else ""
            error.add_note(
                f"the sums of the first {checkpoint.saved} epochs{when} are in the checkpoint {checkpoint.path}"
            )
            raise


class _DaskBlocks:
    """Graphs of a source's dask arrays, optimized once and used block by block."""

    def __init__(self, source: Source):
        self._edges = {name: source.readers[name].edges for name in source.dask_fields}
        self._keys = {name: list(flatten(array.__dask_keys__())) for name, array in source.dask_fields.items()}
        self._graphs = {
            name: dict(array.__dask_optimize__(array.__dask_graph__(), self._keys[name]))
            for name, array in source.dask_fields.items()
        }

    @property
    def held(self) -> int:
        """Return the bytes of the graphs, including their arrays in memory."""
        return sum(map(sizeof, self._graphs.values()))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, graph: dict[Any, Any], name: str, start: int, stop: int) -> list[Any]:
        """Put the blocks of rows start to stop into a graph, and return their keys."""
        first, last = np.searchsorted(self._edges[name], [start, stop])
        keys = self._keys[name][first:last]
        graph.update(cull(self._graphs[name], keys)[0])
        return keys
