"""Batches of a range of rows in a task: read ahead, checked, prepared, without dropped rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import Reader
from daskspectral.data.source import Preparation
from daskspectral.errors import PointError
from daskspectral.moments import NUMBER

Batch = TypeVar("Batch")
END: Any = object()


@contextmanager
def read_ahead(batches: Iterable[Batch]) -> Iterator[Iterator[Batch]]:
    """Yield the batches in order, each read by a thread while the previous one is processed.

    An error is raised at the position of its batch; the thread ends with the block.

    Examples
    --------
    >>> with read_ahead(range(3)) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    source = iter(batches)
    with ThreadPoolExecutor(1, "daskspectral-reader") as reader:

        def following() -> Iterator[Batch]:
            coming = reader.submit(next, source, END)
            while (batch := coming.result()) is not END:
                coming = reader.submit(next, source, END)
                yield batch

        yield following()


Array = NDArray[Any]
BATCH_ROWS = 1 << 15
LARGEST = 1e153  # whose squares do not overflow
READ_BYTES = 1 << 22  # whole chunks are read together up to this size: stores decode several in parallel


@dataclass(frozen=True)
class InvalidRow:
    """Invalid row: global number, reason, field, and the `share` of invalid rows among those read with it.

    `error` is set for a point that a manifold rejects, an error for any `on_invalid`. `column` is before selection, in
    the row `delay` rows before the last one of a window.
    """

    row: int
    reason: str
    field: str = "x"
    error: PointError | None = None
    column: int | None = None
    share: float = 0.0
    delay: int = 0


@dataclass(frozen=True, eq=False)
class ReadOptions:
    """Options of all ranges of a run: preparation of points, selected rows, treatment of invalid rows.

    `preparations` has an entry for each field of points; if `raw`, points are not prepared, and only these columns
    checked. Rows whose prepared `x` passes the test `dropped` are dropped. `selected` are sorted global numbers of the
    rows to read. Each batch has the numbers of its rows as the field NUMBER. `on_invalid` is "raise", "skip", "keep"
    (no checks), or "pairwise": invalid entries become NaN, rows without a valid one are skipped. Batches have `least`
    rows if chunks allow it.
    """

    preparations: Mapping[str, Preparation]
    dropped: Callable[[Array], NDArray[np.bool_]] | None = None
    selected: Array | None = None
    on_invalid: str = "raise"
    raw: bool = False
    least: int = 0


@dataclass(eq=False)
class Batches:
    """Iterable over the batches of rows start to stop, which counts `count`, `weight` and `skipped`.

    With on_invalid="raise" it stops at the first invalid row, `bad`.
    """

    readers: Mapping[str, Reader]
    rows: ReadOptions
    start: int
    stop: int
    edges: Array
    cancelled: Callable[[], bool] | None = None
    count: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)
    weight: float = field(default=0.0, init=False)
    bad: InvalidRow | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        size = max(BATCH_ROWS, self.rows.least)
        for chunk in self._chunks():
            for i in range(0, len(chunk["x"]), size):
                if self.cancelled is not None and self.cancelled():
                    raise InterruptedError("the run was stopped")
                batch = self._clean({k: v[i : i + size] for k, v in chunk.items()})
                if self.bad is not None:
                    return
                batch = self._prepared(batch)
                if len(batch["x"]):
                    self.count += len(batch["x"])
                    self.weight += float(batch["weight"].sum()) if "weight" in batch else len(batch["x"])
                    yield batch

    def _chunks(self) -> Iterator[dict[str, Array]]:
        """Yield the fields of the selected rows, a few whole chunks at a time."""
        first, last = self.edges.searchsorted(self.start, "right"), self.edges.searchsorted(self.stop, "left")
        borders = [self.start]
        row_bytes = sum(int(np.prod(r.shape[1:])) * r.dtype.itemsize for r in self.readers.values())
        for a, b in pairwise([*self.edges[first:last].tolist(), self.stop]):
            if (b - borders[-1]) * row_bytes > max(READ_BYTES, self.rows.least * row_bytes) and a > borders[-1]:
                borders.append(a)
        borders.append(self.stop)
        selected = self.rows.selected
        for a, b in pairwise(borders):
            if selected is None:
                yield {**self._read(a, b), NUMBER: np.arange(a, b)}
                continue
            numbers = selected[slice(*np.searchsorted(selected, [a, b]))]
            if len(numbers):
                yield {**{k: v[numbers - a] for k, v in self._read(a, b).items()}, NUMBER: numbers}

    def _read(self, start: int, stop: int) -> dict[str, Array]:
        found = {name: reader.read(start, stop) for name, reader in self.readers.items()}
        if "weight" in found:  # sums of integers would wrap, of half precision overflow
            found["weight"] = np.asarray(found["weight"], dtype=float)
        return found

    def _clean(self, batch: dict[str, Array]) -> dict[str, Array]:
        columns = {name: p.columns for name, p in self.rows.preparations.items() if p.columns is not None}
        checked = {name: batch[name] for name in self.readers}
        checked |= {name: batch[name][:, list(chosen)] for name, chosen in columns.items()}
        if self.rows.on_invalid == "pairwise":
            return self._with_gaps(batch, checked)
        valid = None if self.rows.on_invalid == "keep" else valid_rows(checked)
        if valid is not None:
            if self.rows.on_invalid == "raise":
                delays = {name: p.delays for name, p in self.rows.preparations.items()}
                bad = first_invalid(checked, columns, delays)
                assert bad is not None
                self.bad = replace(
                    bad, row=int(batch[NUMBER][bad.row]), share=(np.count_nonzero(~valid) - 1) / len(valid)
                )
                return batch
            self.skipped += int(np.count_nonzero(~valid))
        return batch if valid is None else {k: v[valid] for k, v in batch.items()}

    def _with_gaps(self, batch: dict[str, Array], checked: dict[str, Array]) -> dict[str, Array]:
        """Return the batch with NaN for invalid entries, without rows that have no valid point or field."""
        points = {name: checked.pop(name) for name in self.rows.preparations}
        present = np.concatenate([usable(values) for values in points.values()], axis=1)
        kept, others = present.any(axis=1), valid_rows(checked)
        kept = kept if others is None else kept & others
        self.skipped += int(np.count_nonzero(~kept))
        if not present.all():
            batch = batch | {name: np.where(usable(batch[name]), batch[name], np.nan) for name in points}
        return batch if kept.all() else {k: v[kept] for k, v in batch.items()}

    def _prepared(self, batch: dict[str, Array]) -> dict[str, Array]:
        if self.rows.raw:
            return batch
        preparations = self.rows.preparations
        batch = {**batch, **{name: p(batch[name]) for name, p in preparations.items()}}
        if self.rows.dropped is None or not (touching := self.rows.dropped(batch["x"])).any():
            return batch
        return {k: v[~touching] for k, v in batch.items()}


def usable(values: Array) -> Array:
    """Return which entries have finite squares."""
    return np.asarray(np.abs(values) < (LARGEST if values.dtype.itemsize > 4 else np.inf))


def _all_usable(values: Array) -> bool:
    """Return whether a sum of squares, which needs no copy, shows that all entries are usable."""
    if values.dtype.kind != "f" or values.dtype.itemsize < 4 or not values.flags.c_contiguous:
        return False
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(flat @ flat) < LARGEST


def valid_rows(batch: Mapping[str, Array]) -> Array | None:
    """Return which rows (c,) are usable, with finite and nonnegative weights; None if all are."""
    valid: Array | None = None
    for name, values in batch.items():
        if name != "weight" and _all_usable(values):
            continue
        good: Array = np.isfinite(values) & (values >= 0) if name == "weight" else usable(values)
        if not good.all():
            rows = np.asarray(good.reshape(len(good), -1).all(axis=1))
            valid = rows if valid is None else valid & rows
    return valid


def first_invalid(
    batch: Mapping[str, Array],
    columns: Mapping[str, tuple[int, ...]] | None = None,
    delays: Mapping[str, int] | None = None,
) -> InvalidRow | None:
    """Return the first invalid row of a batch; `columns` numbers the columns of some fields.

    For windows of rows, with these numbers of `delays`, it is the first invalid row of the data.
    """
    valid = valid_rows(batch)
    if valid is None:
        return None
    row = int(np.argmin(valid))
    for name, values in batch.items():
        entry = np.asarray(values[row])
        broken = np.argwhere(~(np.isfinite(entry) if name == "weight" else usable(entry)))
        if len(broken):
            width, delay = entry.size // (delays or {}).get(name, 1), 0
            if width < entry.size:  # the earliest row of a window
                delay = int(broken[-1, 0]) // width
                broken = broken[broken[:, 0] >= delay * width]
            index = tuple(broken[0].tolist())
            value = "NaN" if np.isnan(entry[index]) else entry[index]
            why = ", whose square overflows: scale it down" if np.isfinite(entry[index]) else ""
            if not index:
                return InvalidRow(row, f"{'the sample weight' if name == 'weight' else name} is {value}{why}", name)
            chosen = (columns or {}).get(name)
            shown = (chosen or range(width))[index[0] % width] if len(index) == 1 else index
            place = shown if isinstance(shown, int) else None
            reason = f"{'X' if name == 'x' else name} has {value} in column {shown}{why}"
            return InvalidRow(row, reason, name, column=place, delay=delay)
        if name == "weight" and entry < 0:
            return InvalidRow(row, f"the sample weight is negative ({entry})", name)
    raise AssertionError("the row is valid")
