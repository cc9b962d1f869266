"""One run over a source: `reduce` sums what a task returns for each range, `map` writes rows."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import dask.array as da
import numpy as np
import zarr
from dask.core import flatten
from dask.optimization import cull
from numpy.typing import NDArray

from daskspectral.data.batches import Bad, Batches, Rows
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.source import DaskReader, Source
from daskspectral.engine.plan import Plan
from daskspectral.engine.progress import Progress
from daskspectral.engine.scheduler import Scheduler, TaskCallback, active_scheduler
from daskspectral.engine.threads import limit_worker, one_blas_thread, warn_slow_blas
from daskspectral.errors import InvalidRowError

Array = NDArray[Any]
_stopped: set[str] = set()  # runs of this process that were interrupted; their tasks end at the next batch


class ReduceTask(Protocol):
    """Sums over the batches of one range: named arrays that add."""

    def __call__(self, batches: Batches, state: Any) -> dict[str, Array]: ...


class MapTask(Protocol):
    """The result (c, ...) of each row of one batch."""

    def __call__(self, batch: Mapping[str, Array], state: Any) -> Array: ...


@dataclass(frozen=True, eq=False)
class Total:
    """Sums over rows with what was counted on the way; totals add in the order of their rows."""

    sums: Mapping[str, Array]
    weight: float = 0.0
    count: int = 0
    skipped: int = 0
    bad: Bad | None = None

    def __add__(self, other: Total) -> Total:
        if self.bad is not None or other.bad is not None:
            worst = [t.bad for t in (self, other) if t.bad is not None]
            return Total({}, bad=min(worst, key=lambda bad: bad.row))
        if not self.count or not other.count:  # a range without a row has no sums to add
            some = self if self.count else other
            return Total(some.sums, some.weight, some.count, self.skipped + other.skipped)
        return Total(
            {k: v + other.sums[k] for k, v in self.sums.items()},
            self.weight + other.weight,
            self.count + other.count,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True, eq=False)
class _Shared:
    """What every task of a run needs besides its rows; it travels to each worker once."""

    token: str
    task: Any
    rows: Rows
    edges: Array | None  # chunk borders; None where the rows arrive as dask blocks
    out: Any = None

    def batches(self, readers: Mapping[str, Reader], start: int, stop: int) -> Batches:
        edges = np.array([start, stop]) if self.edges is None else self.edges
        return Batches(readers, self.rows, start, stop, edges, lambda: self.token in _stopped)


def _reduce_range(shared: _Shared, state: Any, start: int, stop: int, *parts: Any) -> Total:
    limit_worker()
    batches = shared.batches(_readers(parts, start), start, stop)
    sums = shared.task(batches, state)
    if batches.bad is not None:
        return Total({}, bad=batches.bad)
    return Total(sums, batches.weight, batches.count, batches.skipped)


def _map_range(shared: _Shared, state: Any, start: int, stop: int, *parts: Any) -> tuple[Array | None, Bad | None]:
    limit_worker()
    batches = shared.batches(_readers(parts, start), start, stop)
    results = [shared.task(batch, state) for batch in batches]
    if batches.bad is not None or not results:
        return None, batches.bad
    result = np.concatenate(results)
    if shared.out is None:
        return result, None
    zarr.open_array(shared.out, mode="r+")[start:stop] = result
    return None, None


def _readers(parts: tuple[Any, ...], start: int) -> dict[str, Reader]:
    readers: dict[str, Reader] = {}
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        if isinstance(part, list):  # the blocks of a dask array
            part = ArrayReader(np.concatenate([np.asarray(b) for b in part]) if len(part) > 1 else np.asarray(part[0]), start)
        readers[name] = part
    return readers


def _sum(totals: list[Total]) -> Total:
    result = totals[0]
    for total in totals[1:]:
        result = result + total
    return result


def _together(results: list[Any]) -> list[Any]:
    return results


@dataclass(eq=False)
class Run:
    """A source, its plan and the rules for its rows; `reduce` and `map` may be called many times."""

    source: Source
    plan: Plan
    excluded: Array | None = None
    on_invalid: str = "raise"
    progress: bool | None = False
    description: str = "rows"

    def reduce(self, task: ReduceTask, state: Any = None) -> Total:
        """The sum of what the task returns over all ranges, in a fixed order: same data and plan, same bits.

        Raises InvalidRowError for the lowest invalid row (on_invalid="raise"), whatever finished first.
        """
        total: Total | None = None
        rows = Rows(self.source.preparation, self.excluded, None, self.on_invalid)
        with self._epochs(task, rows, state, _reduce_range, self._tree) as results:
            for part in results:
                total = part if total is None else total + part
                if total.bad is not None:
                    raise self._error(total.bad)
        assert total is not None
        if not total.count:
            raise ValueError(f"no rows are left: {total.skipped} of {self.source.n} are invalid")
        return total

    def map(
        self, task: MapTask, state: Any = None, *, out: Any = None, selected: Array | None = None
    ) -> Array | None:
        """The task's result for every row (or the `selected` ones, sorted): written into the zarr array at the
        path or store `out`, whose chunks the plan's ranges are multiples of, or returned (n, ...) as numpy.

        Raises InvalidRowError for the lowest invalid row; with on_invalid="skip" such rows are left out.
        """
        rows = Rows(self.source.preparation, None, selected, self.on_invalid)
        pieces: list[Array] = []
        with self._epochs(task, rows, state, _map_range, self._collect, out=out) as results:
            for part in results:
                bad = [b for _, b in part if b is not None]
                if bad:
                    raise self._error(min(bad, key=lambda b: b.row))
                pieces.extend(r for r, _ in part if r is not None)
        return np.concatenate(pieces) if pieces else None

    def _error(self, bad: Bad) -> InvalidRowError:
        return InvalidRowError(
            f"row {bad.row} is the first that cannot be used: {bad.reason}. Mend the data, or leave such rows out "
            "with on_invalid='skip' (--on-invalid skip in the shell)",
            bad.row,
        )

    @contextmanager
    def _epochs(
        self, task: Any, rows: Rows, state: Any, function: Callable[..., Any], combine: Callable[..., Any], out: Any = None
    ) -> Iterator[Iterator[Any]]:
        warn_slow_blas()
        token = uuid.uuid4().hex
        blocks = _DaskBlocks(self.source)
        edges = None if blocks else self.source.edges
        bar = Progress(self.source.n, self.description, self.progress)
        sizes = [stop - start for start, stop in self.plan.ranges]

        def done(key: Any) -> None:
            if isinstance(key, tuple) and key[0] == f"range-{token}":
                bar.advance(sizes[key[1]])

        with one_blas_thread(), active_scheduler() as scheduler, TaskCallback(done):
            local = scheduler.shares_memory
            shared = scheduler.share(_Shared(token, task, rows, edges, out), f"shared-{token}")
            state = scheduler.share(state, f"state-{token}")
            pending: deque[Any] = deque()

            def results() -> Iterator[Any]:
                epochs = self.plan.epochs
                queue = deque(epochs)
                for epoch in epochs:
                    while queue and len(pending) < scheduler.in_flight:
                        ahead = queue.popleft()
                        graph = self._ranges(function, ahead, blocks, scheduler, token)
                        graph |= {f"shared-graph-{token}": shared, f"state-graph-{token}": state}
                        key = combine(graph, ahead, token)
                        pending.append(scheduler.submit(graph, key))
                    value = scheduler.result(pending[0])
                    pending.popleft()
                    if not local:
                        bar.advance(sum(sizes[i] for i in epoch))
                    yield value

            try:
                yield results()
            except BaseException:
                _stopped.add(token)
                scheduler.stop(list(pending))
                raise
            finally:
                bar.close()
        _stopped.discard(token)

    def _ranges(
        self, function: Callable[..., Any], epoch: range, blocks: _DaskBlocks, scheduler: Scheduler, token: str
    ) -> dict[Any, Any]:
        graph: dict[Any, Any] = {}
        for i in epoch:
            start, stop = self.plan.ranges[i]
            parts: list[Any] = []
            for name, reader in self.source.readers.items():
                if isinstance(reader, DaskReader):
                    parts += [name, blocks.add(graph, name, start, stop)]
                else:
                    parts += [name, reader if scheduler.shares_memory else reader.localise(start, stop)]
            graph[f"range-{token}", i] = (
                function, f"shared-graph-{token}", f"state-graph-{token}", start, stop, *parts,
            )
        return graph

    def _tree(self, graph: dict[Any, Any], epoch: range, token: str) -> Any:
        level = 0
        keys: list[Any] = [(f"range-{token}", i) for i in epoch]
        while len(keys) > 1:
            above = []
            for j in range(0, len(keys), self.plan.split_every):
                key = (f"sum-{token}", epoch.start, level, j)
                graph[key] = (_sum, keys[j : j + self.plan.split_every])
                above.append(key)
            keys, level = above, level + 1
        return keys[0]

    def _collect(self, graph: dict[Any, Any], epoch: range, token: str) -> Any:
        key = (f"collect-{token}", epoch.start)
        graph[key] = (_together, [(f"range-{token}", i) for i in epoch])
        return key


class _DaskBlocks:
    """The graphs of a source's dask arrays, optimised once and handed out block by block."""

    def __init__(self, source: Source):
        self._graphs: dict[str, dict[Any, Any]] = {}
        self._keys: dict[str, list[Any]] = {}
        self._edges: dict[str, Array] = {}
        for name, array in source.dask_fields.items():
            keys = list(flatten(array.__dask_keys__()))
            self._keys[name] = keys
            self._graphs[name] = dict(da.optimize(array.__dask_graph__(), keys))
            self._edges[name] = np.concatenate([[0], np.cumsum(array.chunks[0])])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, graph: dict[Any, Any], name: str, start: int, stop: int) -> list[Any]:
        """Put the blocks of rows start to stop into a graph; their keys."""
        first, last = np.searchsorted(self._edges[name], [start, stop])
        keys = self._keys[name][first:last]
        graph.update(cull(self._graphs[name], keys)[0])
        return keys
