"""The parameter `folds` of estimators, and the assignment of the rows of a pass to folds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.containers import in_memory
from daskspectral.data.source import Source
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.engine.plan import TASK_BYTES
from daskspectral.moments.folds import FOLD, BlockedFolds, FoldKind, FoldRule, Folds, LabeledFolds, RandomFolds, hashed
from daskspectral.passes.scale import added
from daskspectral.validation import check_integer, is_sequence, loaded

Array = NDArray[Any]
DEFAULT = 10
MOST = 100
LEAST_JOINED = 4  # tasks
SPLIT_SHARE = 4  # rows are held for their folds if a task has so many times more bytes of sums than of rows
MANY_TASKS = 100  # as many of them as folds are joined, so that the sums of a fold are not sent more often
SHORT_EPOCH = 4  # tasks per epoch if tasks have sums of many folds, which must not accumulate
BRIEF = 10  # rows of a block below which complete series are held out, if there are enough
FEW_ROWS = 100  # below this, the number of folds may be reduced, and a hash is uneven


@dataclass(frozen=True, eq=False)
class FoldRequest:
    """Requested folds: random ones, contiguous blocks, or one per distinct label.

    `values` are the distinct values of the field `labels`, `names` those of the user, both unknown until labels outside
    memory are read. `before` are the folds of an earlier fit, whose rule is continued.
    """

    number: int = DEFAULT
    blocks: bool = False
    random: bool = False
    labels: Any = None
    values: Array | None = None
    names: tuple[Any, ...] | None = None
    before: Folds | None = None

    def counted(self, source: Source) -> FoldRequest:
        """Return the request with its distinct labels, 2 to 100; labels outside memory are read once."""
        if self.labels is None or self.values is not None:
            return self
        reader = source.readers[FOLD]
        labels = Source({"x": reader, FOLD: reader}, on_invalid="skip", progress=source.progress)
        run = Run(labels, plan_rows(labels, 20.0), None, description="labels")
        values = run.reduce(partial(added, _distinct)).sums.get("labels", _Distinct(np.empty(0))).values
        return replace(self, values=_checked_distinct(values), names=tuple(values.tolist()))

    def fold_rule(self, source: Source) -> FoldRule | None:
        """Return the rule that assigns rows to folds, None for too few rows.

        Raises ValueError if folds would be empty, or blocks too short.
        """
        before = self.before
        if self.labels is not None:
            assert self.values is not None
            assert self.names is not None
            return LabeledFolds(self.values, self.names)
        if before is not None:
            rule, block = before.rule, before.block
            if block is None:
                return RandomFolds(before.number, rule)
            return BlockedFolds(before.number, block[0], FoldKind.BLOCKS, *block[2:])
        if self.random and source.longest > 0:
            raise ValueError("folds='random' requires independent rows, but pairs or windows overlap. Omit it")
        if self.blocks or (source.in_time and not self.random):
            return _blocks(source, self.number)
        rule = FoldKind.RANDOM if self.random else FoldKind.HASH
        if source.n < FEW_ROWS and self.number <= DEFAULT:
            number = min(self.number, source.n)
            return RandomFolds(number, rule, source.n) if number > 1 else None
        return RandomFolds(_filled(source, self.number), rule)

    def by_number(self, source: Source) -> bool:
        """Return whether folds are by row numbers, so that copies of a row are in several folds."""
        return self.labels is None and not self.blocks and (self.random or not source.in_time)


WORDS = ("blocks", "random")


def saved_folds(value: Any) -> int | str | None:
    """Return `folds` as stored in files: None for labels, and for a path of labels."""
    if isinstance(value, str):
        return value if value in WORDS else None
    return int(value) if isinstance(value, (int, np.integer)) else None


def checked_folds(value: Any) -> FoldRequest | None:
    """Return the request of the parameter `folds`, or None; raise ValueError if it is invalid."""
    if value is None:
        return None
    if isinstance(value, str) and value in WORDS:
        return FoldRequest(blocks=value == "blocks", random=value == "random")
    if isinstance(value, str) and "://" not in value and not os.path.exists(value):
        raise ValueError(
            f"folds must be an integer, 'blocks', 'random', labels or the path of an array of labels, got {value!r}"
        )
    outside: tuple[Any, ...] = (
        str,
        os.PathLike,
        *loaded("zarr.Array", "dask.array.Array", "xarray.DataArray"),
    )  # read in a pass
    several = is_sequence(value)
    if isinstance(value, outside) or (several and any(isinstance(part, outside[2:]) for part in value)):
        return FoldRequest(labels=value)
    if several and any(isinstance(part, (np.ndarray, list, tuple)) for part in value):  # for several trajectories
        parts = [_labels(part) for part in value]
        codes, values = _coded(np.concatenate(parts))
        borders = np.cumsum([len(part) for part in parts])[:-1]
        return FoldRequest(labels=np.split(codes, borders), values=np.arange(len(values)), names=values)
    if np.ndim(value) == 0:
        return FoldRequest(check_integer("folds", value, 2, MOST))
    codes, values = _coded(_labels(value))
    return FoldRequest(labels=codes, values=np.arange(len(values)), names=values)


def continued_folds(before: Folds | None, value: Any) -> FoldRequest | None:
    """Return the folds of appended rows, continuing the folds `before`.

    `value` are the labels of all rows, if any. Raises ValueError if labels are missing, not expected, or have new
    values.
    """
    if before is None or before.rule != FoldKind.LABELS:
        if value is not None:
            raise ValueError("folds must be None: the model was not fitted with labels as folds")
        return None if before is None else FoldRequest(before.number, before=before)
    request = checked_folds(value)
    if request is None or request.labels is None:
        raise ValueError(f"folds must be the labels of all rows, old and new, as in the fit, got {value!r}")
    known = {name: i for i, name in enumerate(before.labels)}
    if request.names is None:
        return replace(request, values=np.asarray(before.labels), names=before.labels, before=before)
    new = [name for name in request.names if name not in known]
    if new:
        raise ValueError(f"the label {new[0]!r} is not among the folds of the fit. Fit all rows again")
    places = np.array([known[name] for name in request.names])
    several = isinstance(request.labels, list)
    labels = [places[part] for part in request.labels] if several else places[request.labels]
    return replace(request, labels=labels, values=np.arange(len(known)), names=before.labels, before=before)


def joined_plan(
    plan: Plan, fold_rule: FoldRule | None, *, block: int, row_bytes: int, functions: int, parts: int
) -> Plan:
    """Return the plan with tasks joined, if their rows are in many folds, to limit memory.

    If sums are much larger than the rows, tasks are joined until a range has one task for each of `parts`, the groups
    of rows. Otherwise they are joined until each fold has a block of rows per task, with at least four tasks, or until
    there are a hundred; and until a task has as many rows as there are functions: p x p sums of fewer rows cost more.
    """
    if fold_rule is None or max(fold_rule.most(start, stop) for start, stop in plan.ranges) <= 2:
        return plan
    count, longest = len(plan.ranges), max(stop - start for start, stop in plan.ranges)
    split = parts > 1 and count > 1 and SPLIT_SHARE * longest * row_bytes < 16 * functions**2
    joined = -(-count // max(1, count // parts))
    if not split:
        joined = min(count // LEAST_JOINED, fold_rule.number * block // longest)
        joined = max(joined, min(count // MANY_TASKS, fold_rule.number), -(-functions // longest))
    joined = max(1, min(joined, TASK_BYTES // (longest * row_bytes)))
    spans = [plan.ranges[i : i + joined] for i in range(0, count, joined)]
    ranges = tuple((span[0][0], span[-1][1]) for span in spans)
    return replace(plan, ranges=ranges, epoch=min(plan.epoch, SHORT_EPOCH), parts=parts if split else 1)


@dataclass(frozen=True, eq=False)
class _Distinct:
    """Sorted distinct labels, up to one more than allowed."""

    values: Array

    def __add__(self, other: _Distinct) -> _Distinct:
        return _Distinct(np.union1d(self.values, other.values)[: MOST + 1])


def _distinct(batch: Mapping[str, Array]) -> dict[str, _Distinct]:
    return {"labels": _Distinct(np.unique(batch[FOLD])[: MOST + 1])}


def _labels(value: Any) -> Array:
    labels = np.asarray(in_memory(value, "folds"))
    if labels.ndim != 1:
        raise ValueError(f"folds as labels must have the shape (n,), got {labels.shape}")
    numbers = labels
    if labels.dtype.kind == "O":
        numbers = np.array([label if isinstance(label, float) else 0.0 for label in labels])
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"folds as labels must be finite, got {labels[row]} in row {row}")
    return labels


def _coded(labels: Array) -> tuple[Array, tuple[Any, ...]]:
    """Return the index (n,) of each label among the sorted distinct ones, and these."""
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"folds as labels must be sortable values of one kind: {error}") from None
    return codes, tuple(_checked_distinct(values).tolist())


def _checked_distinct(values: Array) -> Array:
    if not 2 <= len(values) <= MOST:
        raise ValueError(
            f"folds as labels must have 2 to {MOST} distinct values, one per fold, got {len(values)}"
            f"{' or more' if len(values) > MOST else ''}. Pass fewer, such as labels % 10"
        )
    return values


def _filled(source: Source, number: int) -> int:
    """Return the number of folds; raise ValueError if the hash leaves a fold without rows."""
    n = source.n
    if n < 300 * number and len(np.unique(hashed(np.arange(n), number))) < number:
        raise ValueError(f"folds={number} leaves folds without rows: X has {source.rows}. Use fewer folds")
    return number


def _blocks(source: Source, number: int) -> BlockedFolds | None:
    """Return blocks of at least the longest lag, fewer ones of few rows; None for a single one.

    Blocks contain the same times of all series, or complete series if these are short.
    """
    n, lag, series = source.n, max(1, source.longest), source.series
    unit, period, several = series.stride, 0, 1
    if series.length:
        period, several = series.length, n // series.length
    rows = (period or n) // unit
    if several > 1 and (rows // number < lag or (rows // number < BRIEF and several >= number)):
        return BlockedFolds(min(number, several), several, unit=period)
    if rows // number < lag:
        if rows >= FEW_ROWS or number > DEFAULT:
            raise ValueError(
                f"blocks require at least {lag} rows (the longest lag), got {rows // number} with folds={number}: X "
                f"has {source.rows}. Use fewer folds, or folds=None"
            )
        number = rows // lag
    return BlockedFolds(number, rows, unit=unit, period=period) if number > 1 else None
