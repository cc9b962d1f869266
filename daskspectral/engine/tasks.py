"""Functions of a task: one range of rows, summed or mapped, and totals that add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from numpy.typing import NDArray

from daskspectral.data.batches import Batches, InvalidRow, ReadOptions, read_ahead
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.engine.scheduler import report_done
from daskspectral.engine.threads import limit_worker
from daskspectral.errors import PointError
from daskspectral.validation import loaded

Array = NDArray[Any]
OVERFLOW: Any = {"over": "ignore", "invalid": "ignore", "divide": "warn", "under": "ignore"}
"""Also in threads of the caller: values that are not finite are reported by the solver."""
LARGE = 1 << 16  # bytes from which a new array costs more than the addition
stopped: set[str] = set()  # runs of this process that were interrupted; their tasks end at the next batch


ReduceTask = Callable[[Batches, Any], dict[str, Array]]
"""Function of the batches of one range and a state: named arrays that add, none of which the state shares.

If the plan has parts, its method `split` returns a list of sums without parts and the rows of each, None without rows,
and `sum_part` returns the sums of the rows of a part, by its number.
"""


@dataclass(frozen=True)
class Tally:
    """Number of rows to warn of, and the largest of a number that describes them."""

    count: int = 0
    most: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.count + other.count, max(self.most, other.most))


@dataclass(frozen=True, eq=False)
class Counted:
    """Results (c, ...) of the rows of one batch, and the tally of rows to warn of."""

    values: Array
    tally: Tally


MapTask = Callable[[Mapping[str, Array], Any], Array | Counted]
"""Function of one batch and a state: result (c, ...) of each row."""


@dataclass(frozen=True, eq=False)
class Total:
    """Named sums over rows, with their `weight` and `count`; totals are added in the order of rows.

    `skipped` is the number of invalid rows left out, `bad` the lowest unusable row, with which there are no sums.
    """

    sums: Mapping[str, Any]
    weight: float = 0.0
    count: int = 0
    skipped: int = 0
    bad: InvalidRow | None = None

    def __sizeof__(self) -> int:
        return int(sizeof(dict(self.sums)))

    def __add__(self, other: Total) -> Total:
        return self._with(other, add_sums)

    def __iadd__(self, other: Total) -> Total:
        """Return the same total, in the arrays of this one, which must not be used elsewhere."""
        return self._with(other, partial(add_sums, in_place=True))

    def _with(self, other: Total, add: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]) -> Total:
        if self.bad is not None or other.bad is not None:
            worst = [t.bad for t in (self, other) if t.bad is not None]
            return Total({}, bad=min(worst, key=lambda bad: bad.row))
        return Total(
            add(self.sums, other.sums),
            self.weight + other.weight,
            self.count + other.count,
            self.skipped + other.skipped,
        )


def add_sums(left: Mapping[str, Any], right: Mapping[str, Any], *, in_place: bool = False) -> dict[str, Any]:
    """Return the sum of named sums; a missing one, as of a fold without rows, counts as zero.

    Large arrays of the left side are added to `in_place`, in a third of the time of a new array.
    """
    names = Counter(map(id, left.values()))  # two names may share an array

    def total(one: Any, two: Any) -> Any:
        own = in_place and isinstance(one, np.ndarray) and one.nbytes >= LARGE and names[id(one)] == 1
        if own and one.flags.owndata and one.flags.writeable and one.dtype == two.dtype:
            return np.add(one, two, out=one)
        return one + two

    both = {k: total(v, right[k]) if k in right else v for k, v in left.items()}
    return both | {k: v for k, v in right.items() if k not in left}


@dataclass(frozen=True, eq=False)
class Shared:
    """Data of all tasks of a run, sent to each worker once.

    `ahead`: a thread reads the next batch while a task works on the last one. `reports`: a worker reports each task.
    """

    token: str
    task: Any
    rows: ReadOptions
    edges: Array | None  # chunk borders; None for dask blocks
    out: Any = None
    ahead: bool = False
    reports: bool = False


def reduce_range(shared: Shared, state: Any, start: int, stop: int, *parts: Any) -> Total:
    """Return the total of one range; an error has a note with the rows of the range."""
    batches = _batches(shared, start, stop, parts)
    sums, bad = _done(shared, batches, lambda read: shared.task(read, state), "summing")
    return Total({}, bad=bad) if bad is not None else _total(sums, batches)


def split_range(shared: Shared, start: int, stop: int, *parts: Any) -> list[Any]:
    """Return the total of one range without its parts, and the rows of each part."""
    batches = _batches(shared, start, stop, parts)
    found, bad = _done(shared, batches, shared.task.split, "splitting")
    return [Total({}, bad=bad)] if bad is not None else [_total(found[0], batches), *found[1:]]


def part_of(found: list[Any], number: int) -> Any:
    """Return an entry of a list, None beyond its end."""
    return found[number] if number < len(found) else None


def sum_part(shared: Shared, start: int, stop: int, number: int, rows: Any) -> Total:
    """Return the total of a part of one range, without weight and count."""
    if rows is None:
        return Total({})
    if shared.token in stopped:
        raise InterruptedError("the run was stopped")
    none = _batches(shared, start, stop, ())
    sums, bad = _done(shared, none, lambda _: shared.task.sum_part(rows, number), "summing")
    return Total({}, bad=bad) if bad is not None else Total(sums)


def _total(sums: Mapping[str, Any], batches: Batches) -> Total:
    """Return the total of a range; one without rows has no sums to add."""
    return Total(sums if batches.count else {}, batches.weight, batches.count, batches.skipped)


def map_range(
    shared: Shared, state: Any, start: int, stop: int, *parts: Any
) -> tuple[Array | None, Tally, InvalidRow | None]:
    """Return the results of one range, None if written; the tally; and the first unusable row."""
    batches = _batches(shared, start, stop, parts)
    results, bad = _done(shared, batches, lambda read: [shared.task(batch, state) for batch in read], "working on")
    if bad is not None or not results:
        return None, Tally(), bad
    result = np.concatenate([r.values if isinstance(r, Counted) else r for r in results])
    tally = sum((r.tally for r in results if isinstance(r, Counted)), Tally())
    if shared.out is None:
        return result, tally, None
    out = shared.out
    if isinstance(out, (str, loaded("zarr.abc.store.Store"))):
        from daskspectral.data.stores import open_array

        out = open_array(out, mode="r+")
    out[start:stop] = result
    return None, tally, None


def _done(shared: Shared, batches: Batches, work: Callable[[Any], Any], doing: str) -> tuple[Any, InvalidRow | None]:
    """Return the results of the batches of a range, and the first unusable row; errors name the range."""
    limit_worker()
    try:
        with read_ahead(batches) if shared.ahead else nullcontext(batches) as read, np.errstate(**OVERFLOW):
            found = work(read), batches.bad
    except PointError as error:
        return None, InvalidRow(error.row, str(error), error.field, error)
    except BaseException as error:
        error.add_note(f"while {doing} rows {batches.start} to {batches.stop}")
        raise
    if shared.reports:
        report_done()
    return found


def _batches(shared: Shared, start: int, stop: int, parts: tuple[Any, ...]) -> Batches:
    """Return the batches of one range, of fields by name, each a reader or the blocks of a dask array."""
    readers: dict[str, Reader] = {}
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        if isinstance(part, list):
            blocks = [np.asarray(b) for b in part]
            rows = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
            part = ArrayReader(rows, start)
        readers[name] = part
    edges = np.array([start, stop]) if shared.edges is None else shared.edges
    return Batches(readers, shared.rows, start, stop, edges, lambda: shared.token in stopped)
