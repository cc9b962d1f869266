"""Folds as a parameter of estimators: what may be asked for, and how the rows of one pass are dealt to them."""

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
from daskspectral.moments.folds import FOLD, BlockedFolds, FoldKind, FoldRule, Folds, LabelledFolds, RandomFolds, hashed
from daskspectral.passes.scale import added
from daskspectral.validation import check_integer, is_sequence, loaded

Array = NDArray[Any]
DEFAULT = 10
MOST = 100
LEAST_JOINED = 8  # tasks
MANY_TASKS = 100  # of which so many as there are folds are joined: a sum for each fold is sent no more often
SHORT_EPOCH = 4  # where each task sends the sums of many folds, so that few of them wait
BRIEF = 10  # times of a block, below which whole series are held out if there are enough of them
FEW_ROWS = 100  # below, fewer folds than asked for are better than none, and a hash is uneven


@dataclass(frozen=True, eq=False)
class FoldRequest:
    """A `number` of folds, of rows at `random` or contiguous `blocks`, or one by each of the distinct `values` of the
    field `labels` of the data.

    `names` are the labels as the user has them; None for both where the labels are not in memory and not read yet.
    `before` are the folds of rows measured earlier, of which these continue the rule.
    """

    number: int = DEFAULT
    blocks: bool = False
    random: bool = False
    labels: Any = None
    values: Array | None = None
    names: tuple[Any, ...] | None = None
    before: Folds | None = None

    def counted(self, source: Source) -> FoldRequest:
        """The same with the distinct labels, for which labels outside memory are read once.

        Raises ValueError for one label, and for more than 100.
        """
        if self.labels is None or self.values is not None:
            return self
        reader = source.readers[FOLD]
        labels = Source({"x": reader, FOLD: reader}, on_invalid="skip", progress=source.progress)
        run = Run(labels, plan_rows(labels, 20.0), None, description="labels")
        values = run.reduce(partial(added, _distinct)).sums.get("labels", _Distinct(np.empty(0))).values
        return replace(self, values=_checked_distinct(values), names=tuple(values.tolist()))

    def fold_rule(self, source: Source) -> FoldRule | None:
        """Return how the rows are dealt to folds; None if there are too few of them for two folds.

        Raises ValueError where folds would be left without rows, or blocks would be too short.
        """
        before = self.before
        if self.labels is not None:
            assert self.values is not None
            assert self.names is not None
            return LabelledFolds(self.values, self.names)
        if before is not None:
            rule, block = before.rule, before.block
            if block is None:
                return RandomFolds(before.number, rule)
            return BlockedFolds(before.number, block[0], FoldKind.BLOCKS, *block[2:])
        if self.random and source.longest > 0:
            raise ValueError("folds='random' requires independent rows, and pairs or windows overlap. Leave it out")
        if self.blocks or (source.in_time and not self.random):
            return _blocks(source, self.number)
        rule = FoldKind.RANDOM if self.random else FoldKind.HASH
        if source.n < FEW_ROWS and self.number <= DEFAULT:
            number = min(self.number, source.n)
            return RandomFolds(number, rule, source.n) if number > 1 else None
        return RandomFolds(_filled(source, self.number), rule)

    def by_number(self, source: Source) -> bool:
        """Return whether the numbers of rows decide their folds, so that copies of a row are in several."""
        return self.labels is None and not self.blocks and (self.random or not source.in_time)


WORDS = ("blocks", "random")


def saved_folds(value: Any) -> int | str | None:
    """Return `folds` as files keep it: None for labels, which are data, and for a path of them."""
    if isinstance(value, str):
        return value if value in WORDS else None
    return int(value) if isinstance(value, (int, np.integer)) else None


def checked_folds(value: Any) -> FoldRequest | None:
    """What the parameter `folds` of an estimator asks for; None for no folds. Raises ValueError for anything else."""
    if value is None:
        return None
    if isinstance(value, str) and value in WORDS:
        return FoldRequest(blocks=value == "blocks", random=value == "random")
    if isinstance(value, str) and "://" not in value and not os.path.exists(value):
        raise ValueError(
            f"folds is {value!r}, which is neither 'blocks' nor 'random', nor the path of an array of labels"
        )
    outside: tuple[Any, ...] = (
        str,
        os.PathLike,
        *loaded("zarr.Array", "dask.array.Array", "xarray.DataArray"),
    )  # read in a pass
    several = is_sequence(value)
    if isinstance(value, outside) or (several and any(isinstance(part, outside[2:]) for part in value)):
        return FoldRequest(labels=value)
    if several and any(isinstance(part, (np.ndarray, list, tuple)) for part in value):  # of several trajectories
        parts = [_labels(part) for part in value]
        codes, values = _coded(np.concatenate(parts))
        borders = np.cumsum([len(part) for part in parts])[:-1]
        return FoldRequest(labels=np.split(codes, borders), values=np.arange(len(values)), names=values)
    if np.ndim(value) == 0:
        return FoldRequest(check_integer("folds", value, 2, MOST))
    codes, values = _coded(_labels(value))
    return FoldRequest(labels=codes, values=np.arange(len(values)), names=values)


def continued_folds(before: Folds | None, value: Any) -> FoldRequest | None:
    """The folds of rows appended to rows with the folds `before`; `value` are the labels of all rows, where they count.

    Raises ValueError where the labels are missing, or not wanted, or have new values.
    """
    if before is None or before.rule != FoldKind.LABELS:
        if value is not None:
            raise ValueError("this model was not fitted with labels as its folds: leave folds out")
        return None if before is None else FoldRequest(before.number, before=before)
    request = checked_folds(value)
    if request is None or request.labels is None:
        raise ValueError(
            f"this model was fitted with labels as its folds: expected folds=labels of all rows, old and new, received "
            f"{value!r}"
        )
    known = {name: i for i, name in enumerate(before.labels)}
    if request.names is None:
        return replace(request, values=np.asarray(before.labels), names=before.labels, before=before)
    new = [name for name in request.names if name not in known]
    if new:
        raise ValueError(f"the label {new[0]!r} is new among the folds: fit all rows again")
    places = np.array([known[name] for name in request.names])
    several = isinstance(request.labels, list)
    labels = [places[part] for part in request.labels] if several else places[request.labels]
    return replace(request, labels=labels, values=np.arange(len(known)), names=before.labels, before=before)


def joined_plan(plan: Plan, fold_rule: FoldRule | None, *, block: int, row_bytes: int, functions: int) -> Plan:
    """Return the plan with tasks joined if their rows are in many folds, and short epochs, so that few sums wait.

    They are joined until each fold has half a block of rows in a task, as long as there are eight tasks, or until
    there are a hundred; and until a task has as many rows as there are functions: p x p sums of fewer rows cost more
    than the rows.
    """
    if fold_rule is None or max(fold_rule.most(start, stop) for start, stop in plan.ranges) <= 2:
        return plan
    count, longest = len(plan.ranges), max(stop - start for start, stop in plan.ranges)
    joined = min(count // LEAST_JOINED, fold_rule.number * block // 2 // longest)
    joined = max(joined, min(count // MANY_TASKS, fold_rule.number), -(-functions // longest))
    joined = max(1, min(joined, TASK_BYTES // (longest * row_bytes)))
    parts = [plan.ranges[i : i + joined] for i in range(0, count, joined)]
    spans = tuple((part[0][0], part[-1][1]) for part in parts)
    return replace(plan, ranges=spans, epoch=min(plan.epoch, SHORT_EPOCH))


@dataclass(frozen=True, eq=False)
class _Distinct:
    """Distinct labels, sorted; no more than tell that there are too many."""

    values: Array

    def __add__(self, other: _Distinct) -> _Distinct:
        return _Distinct(np.union1d(self.values, other.values)[: MOST + 1])


def _distinct(batch: Mapping[str, Array]) -> dict[str, _Distinct]:
    """The distinct labels of some rows."""
    return {"labels": _Distinct(np.unique(batch[FOLD])[: MOST + 1])}


def _labels(value: Any) -> Array:
    """Labels in memory, (n,)."""
    labels = np.asarray(in_memory(value, "folds"))
    if labels.ndim != 1:
        raise ValueError(f"folds as labels are an array (n,), one for each row; they have shape {labels.shape}")
    numbers = labels
    if labels.dtype.kind == "O":
        numbers = np.array([label if isinstance(label, float) else 0.0 for label in labels])
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"folds as labels must be finite; row {row} has {labels[row]}")
    return labels


def _coded(labels: Array) -> tuple[Array, tuple[Any, ...]]:
    """The number (n,) of each label among the distinct ones, and these, sorted."""
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"folds as labels are values of one kind, which can be sorted: {error}") from None
    return codes, tuple(_checked_distinct(values).tolist())


def _checked_distinct(values: Array) -> Array:
    if not 2 <= len(values) <= MOST:
        raise ValueError(
            f"each distinct label is a fold: expected 2 to {MOST} of them, received {len(values)}"
            f"{' or more' if len(values) > MOST else ''}; labels % 10 are fewer"
        )
    return values


def _filled(source: Source, number: int) -> int:
    """This number of folds. Raises ValueError where the hash leaves some of them without rows."""
    n = source.n
    if n < 300 * number and len(np.unique(hashed(np.arange(n), number))) < number:
        raise ValueError(f"folds={number} leaves folds without rows: X has {source.rows}; take fewer folds")
    return number


def _blocks(source: Source, number: int) -> BlockedFolds | None:
    """Return blocks of at least the longest lag, fewer ones of few rows; None for a single one.

    Those of several series are of the same times in all of them, or whole series if these are short. Raises ValueError
    if the blocks would be too short.
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
                f"folds={number} makes blocks of {rows // number} rows, and {lag} at least (the longest lag) are "
                f"needed: X has {source.rows}; take fewer folds, or folds=None"
            )
        number = rows // lag
    return BlockedFolds(number, rows, unit=unit, period=period) if number > 1 else None
