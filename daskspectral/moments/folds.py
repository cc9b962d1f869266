"""Folds of rows for error bars and validation values: assignment of rows, and sums of each fold.

The fold of a row is a hash of its number, independent of its values and of chunks, unless folds are blocks or labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import NUMBER
from daskspectral.registry import Registered

Array = NDArray[Any]
RELEASED = 1 << 20  # bytes of a sum above which memory is returned to the system
LEAST_PAIRS, LEAST_COPIES = 3, 0.01  # of sampled rows; share of all rows
MOST_LEVELS, SAME = 1e5, 1e-6  # levels of a rounded column; share of its range within which values are equal


def distinct_rows(x: Array) -> NDArray[np.intp]:
    """Return numbers (m,) of the distinct rows of x (m, d), from 0, equal for copies of a row.

    If all columns are rounded, to multiples of a step from any origin, equal rows are not copies.

    Examples
    --------
    >>> distinct_rows(np.array([[np.e], [np.pi], [np.e], [1.0]])).tolist()
    [0, 1, 0, 2]
    >>> distinct_rows(np.array([[0.5], [1.5], [0.5], [1.0]])).tolist()
    [0, 1, 2, 3]
    """
    x = np.asarray(x, dtype=float)
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(x) or all(_is_rounded(column) for column in x.T):
        return np.arange(len(x))
    return np.argsort(np.argsort(first))[inverse.ravel()]


def copies_words(x: Array, rows: int) -> str:
    """Return a warning if many of `rows` are copies, estimated from a sample x (m, d); otherwise "".

    If each of n rows has c further copies, a sample of m rows contains about c m² / (2 n) pairs.
    """
    counts = np.bincount(distinct_rows(x), minlength=1)
    pairs = int(np.sum(counts * (counts - 1)) // 2)
    copies = 2 * rows * pairs / max(1, len(x)) ** 2
    if pairs < LEAST_PAIRS or copies <= LEAST_COPIES:
        return ""
    return (
        f"rows are copies of others, about {float(f'{copies:.2g}'):g} copies for each row, so that intervals are about "
        f"{np.sqrt(1 + copies):.3g} times too narrow. Pass each row once, with sample_weight, or folds=labels"
    )


def _is_rounded(values: Array) -> bool:
    """Return whether values are equally spaced, with at most 100 000 levels."""
    values = np.unique(values) - values.min()
    gaps = np.diff(values)
    gaps = gaps[gaps > SAME * values[-1]]
    if not len(gaps):
        return True
    levels = float(np.rint(values[-1] / gaps.min()))
    places = values * (levels / values[-1])
    return levels <= MOST_LEVELS and bool(np.abs(places - np.rint(places)).max() <= max(SAME * levels, 0.01))


# -- sums of each fold, and rules that assign rows to folds ------------------------------------------------------------


Rows = Mapping[str, Array]
FOLD = "fold"
"""Field of a batch with the labels of its rows."""
WEIGHT, COUNT = "weight of groups", "rows of groups"
ALL = "all"
"""In place of the number of a group, for sums over all rows that are not kept by group."""

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gram", "form", "dirichlet"), ("function", "function")),
    **dict.fromkeys(("values", "slopes"), ("function", "target")),
    **dict.fromkeys(("value_sums", "value_squares", "observed", "slope_squares"), ("target",)),
    **dict.fromkeys(("mean", "scale", "point sums", "point squares"), ("column",)),
    "points": ("function", "column"),
    "finalist_gap": ("component",),
    "first": ("function",),
    "right_gram": ("right_function", "right_function"),
    "right_first": ("right_function",),
}
"""Dimensions of the arrays of moments by name."""


def name_in(group: int | str, name: str) -> str:
    """Return the name of the sum of a group in the results of tasks."""
    return f"{group}/{name}"


class FoldKind(StrEnum):
    """Assignment of rows to folds; RANDOM is HASH for rows that the user declares independent."""

    HASH = "hash"
    RANDOM = "random"
    BLOCKS = "blocks"
    LABELS = "labels"


@dataclass(frozen=True, eq=False)
class Folds(Registered):
    """Sums of moments by group of rows; the groups add up to the whole.

    `arrays` contains the sums (G, ...) of each group for every name in `Moments.arrays` except products with columns;
    `weight` and `count` (G,) are the weight and the number of rows of each group. With `landmarks`, the last group
    contains the rows that coincide with landmarks, which are in no fold.

    `rule` is the kind of folds. Blocks have `block` = (rows, rows per block) of the first fit, with the unit and the
    period of `BlockedFolds` if rows are in several series; labels have `labels`, the value of each fold. `reserved` are
    the folds without rows on which functions were trained, the only ones for validation values.

    Examples
    --------
    >>> ones = np.ones((3, 2, 2))
    >>> folds = Folds({"gram": ones}, weight=np.full(3, 5.0), count=np.full(3, 5), landmarks=True)
    >>> folds.number, (folds + folds).count.tolist()
    (2, [10, 10, 10])
    """

    dimension_names: ClassVar = {k: (FOLD, *v) for k, v in {**DIMENSIONS, "weight": (), "count": ()}.items()}

    expects: ClassVar = {"rule": FoldKind}
    arrays: Mapping[str, Array]
    weight: Array
    count: NDArray[np.int64]
    landmarks: bool = False
    rule: FoldKind = FoldKind.HASH
    labels: tuple[Any, ...] = ()
    block: tuple[int, ...] | None = None
    reserved: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        return len(self.count) - self.landmarks

    @property
    def validation_folds(self) -> tuple[int, ...]:
        """Folds for validation values: those that are reserved, or else all."""
        return self.reserved or tuple(range(self.number))

    def __add__(self, other: Folds) -> Folds:
        """Add the sums of each group; a missing group of landmark rows counts as zero.

        Raises ValueError if numbers of folds or labels differ, or no fold is reserved on both sides.
        """
        if not isinstance(other, Folds):
            return NotImplemented
        if self.number != other.number:
            raise ValueError(
                f"cannot add moments of {self.number} and {other.number} folds. Fit one of them with folds=None"
            )
        if self.labels != other.labels:
            raise ValueError("cannot add moments with folds of different labels. Fit one of them with folds=None")
        groups = max(len(self.count), len(other.count))
        reserved = tuple(k for k in self.validation_folds if k in other.validation_folds)
        if not reserved:
            raise ValueError(
                f"cannot add moments without a common reserved fold, got {self.reserved} and {other.reserved}. Fit one "
                "of them with folds=None"
            )
        return replace(
            self,
            reserved=reserved if self.reserved or other.reserved else (),
            arrays={k: _widened(v, groups) + _widened(other.arrays[k], groups) for k, v in self.arrays.items()},
            weight=_widened(self.weight, groups) + _widened(other.weight, groups),
            count=_widened(self.count, groups) + _widened(other.count, groups),
            landmarks=self.landmarks or other.landmarks,
        )

    @property
    def filled(self) -> list[int]:
        return [fold for fold in range(self.number) if self.weight[fold] > 0]

    def of(self, group: int) -> dict[str, Array]:
        return {name: values[group] for name, values in self.arrays.items()}

    def mapped(self, each: Callable[[Mapping[str, Array], float], Mapping[str, Array]]) -> Folds:
        """Return the folds with sums transformed by `each(sums, weight)`."""
        found = [each(self.of(group), float(weight)) for group, weight in enumerate(self.weight)]
        return replace(self, arrays={name: np.stack([sums[name] for sums in found]) for name in found[0]})

    def means(self, groups: NDArray[np.integer[Any]], weight: float, counts: frozenset[str]) -> dict[str, Array]:
        """Return the means over the rows of `groups`, of total `weight`, of all sums except `counts`."""
        return {name: _added(v, groups) / weight for name, v in self.arrays.items() if name not in counts}

    def merged(self, part: NDArray[np.integer[Any]]) -> Folds:
        """Return the folds merged into parts (K,), without landmark rows."""
        own, number = slice(self.number), int(part.max()) + 1
        return replace(
            self,
            arrays={
                k: np.stack([v[own][part == i].sum(axis=0) for i in range(number)]) for k, v in self.arrays.items()
            },
            weight=np.bincount(part, self.weight[own]),
            count=np.bincount(part, self.count[own]).astype(np.int64),
            landmarks=False,
        )

    def total(self) -> dict[str, Array]:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported when the moments are solved
            return {name: _added(v, np.arange(len(v))) for name, v in self.arrays.items()}


def _added(values: Array, groups: NDArray[np.integer[Any]]) -> Array:
    """Return the sum of some entries (...) of an array (G, ...), without copies."""
    total: Array = values[groups[0]].copy()
    for group in groups[1:]:
        total += values[group]
    return total


def gathered(
    sums: MutableMapping[str, Any], groups: int, release: Callable[[], None] = lambda: None, **rule: Any
) -> tuple[Folds, dict[str, Array]]:
    """Return folds from the sums of tasks, `name_in(group, name)`, and the total sums.

    Sums are removed from the mapping one by one, so that at most one is in memory twice; `release` returns the freed
    memory to the system.
    """
    weight, count = sums.pop(WEIGHT), sums.pop(COUNT)
    whole = {key.partition("/")[2]: sums.pop(key) for key in list(sums) if key.startswith(name_in(ALL, ""))}
    names = dict.fromkeys(key.partition("/")[2] for key in sums)
    arrays: dict[str, Array] = {}
    for name in names:
        parts = {g: sums.pop(name_in(g, name)) for g in range(groups) if name_in(g, name) in sums}
        found = next(iter(parts.values()))
        arrays[name] = np.empty((groups, *found.shape), found.dtype)
        for g in range(groups):
            arrays[name][g] = parts.pop(g, 0)
            if arrays[name][g].nbytes > RELEASED:
                release()
    folds = Folds(arrays, weight, count.astype(np.int64), **rule)
    return folds, folds.total() | whole


def _widened(values: Any, groups: int) -> Any:
    missing = groups - len(values)
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)]) if missing else values


class FoldRule(ABC):
    """Rule that assigns each row to one of `number` folds."""

    rule: FoldKind
    number: int

    @abstractmethod
    def of(self, rows: Rows) -> Array:
        """Return the folds (c,) of any rows of the data."""

    def most(self, start: int, stop: int) -> int:
        """Return the maximum number of folds of the rows from start to stop."""
        return min(self.number, stop - start)

    @property
    def origin(self) -> dict[str, Any]:
        """Fields of `Folds` that define the rule for rows that are appended later."""
        return {"rule": self.rule}


@dataclass(frozen=True)
class RandomFolds(FoldRule):
    """Folds by a hash of the number of the row, independent of chunks and of appended rows.

    If the total number of `rows` is given and small, folds have equal sizes: rows are assigned in the order of hashes.
    """

    number: int
    rule: FoldKind = FoldKind.HASH
    rows: int = 0

    @cached_property
    def _few(self) -> Array:
        found = np.empty(self.rows, dtype=np.int64)
        found[np.argsort(mixed(np.arange(self.rows)))] = np.arange(self.rows) % self.number
        return found

    def of(self, rows: Rows) -> Array:
        return np.asarray(self._few[rows[NUMBER]]) if self.rows else hashed(rows[NUMBER], self.number)


@dataclass(frozen=True)
class BlockedFolds(FoldRule):
    """Folds that are contiguous blocks of rows.

    The first `rows` rows are divided into as many blocks as folds, of `length` rows or one more. Appended rows are
    assigned to the folds in turn, in blocks of the same length. Blocks consist of units of `unit` rows: those of one
    time, or of one member of an ensemble. With a `period`, rows are counted from 0 again in each period of that many
    rows: a block has the same times in all members.
    """

    number: int
    rows: int
    rule: FoldKind = FoldKind.BLOCKS
    unit: int = 1
    period: int = 0

    @property
    def length(self) -> int:
        return self.rows // self.number

    @cached_property
    def ends(self) -> Array:
        return np.linspace(0, self.rows, self.number + 1).astype(np.int64)[1:]

    def of(self, rows: Rows) -> Array:
        return np.asarray(self.block(rows[NUMBER]) % self.number)

    def most(self, start: int, stop: int) -> int:
        first, last = self.block(np.array([start, stop - 1]))
        if self.period and start // self.period < (stop - 1) // self.period:
            return self.number
        return min(self.number, int(last - first) + 1)

    def block(self, numbers: Array) -> Array:
        numbers = (numbers % self.period if self.period else numbers) // self.unit
        early = np.searchsorted(self.ends, numbers, "right")
        return np.asarray(early + np.maximum(numbers - self.rows, 0) // self.length)

    @property
    def origin(self) -> dict[str, Any]:
        own = (self.unit, self.period) if (self.unit, self.period) != (1, 0) else ()
        return {"rule": self.rule, "block": (self.rows, self.length, *own)}


@dataclass(frozen=True, eq=False)
class LabeledFolds(FoldRule):
    """Folds by labels in the field `fold`: sorted `values`, with the `names` of the user."""

    values: Array
    names: tuple[Any, ...]
    rule: FoldKind = FoldKind.LABELS

    @property
    def number(self) -> int:  # type: ignore[override]
        return len(self.values)

    def of(self, rows: Rows) -> Array:
        labels = rows[FOLD]
        found = np.minimum(np.searchsorted(self.values, labels), self.number - 1)
        strange = np.flatnonzero(self.values[found] != labels)
        if len(strange):
            row = int(strange[0])
            raise ValueError(f"row {rows[NUMBER][row]} has a label, {labels[row]}, that is not among those of the fit")
        return found

    @property
    def origin(self) -> dict[str, Any]:
        return {"rule": self.rule, "labels": self.names}


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows in a pass: the folds, followed by the rows that coincide with landmarks."""

    fold_rule: FoldRule
    landmarks: LandmarkMatcher | None = None

    @property
    def number(self) -> int:
        return self.fold_rule.number + (self.landmarks is not None)

    def of(self, rows: Rows) -> Array:
        found = self.fold_rule.of(rows)
        return found if self.landmarks is None else np.where(self.landmarks(rows["x"]), self.fold_rule.number, found)

    def split(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield the number of each nonempty group with its rows."""
        found = self.of(rows)
        if (found == found[:1]).all():  # without copies
            yield from ((int(group), rows) for group in found[:1])
            return
        short = found.astype(np.min_scalar_type(self.number))  # of two bytes at most: radix sort, in linear time
        order = np.argsort(short, kind="stable")
        borders = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=self.number))])
        for group in np.flatnonzero(np.diff(borders)).tolist():
            chosen = order[borders[group] : borders[group + 1]]
            yield group, {name: values.take(chosen, axis=0) for name, values in rows.items()}


def hashed(keys: Array, folds: int) -> Array:
    """Return the fold of each key: its hash modulo the number of folds."""
    found, number = mixed(keys), np.uint64(folds)
    found -= found // number * number  # faster than %
    return np.asarray(found.astype(np.int64))


def mixed(numbers: Array) -> Array:
    """Return the splitmix64 hash of each number."""
    z = np.asarray(numbers).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class LandmarkMatcher:
    """Test of points (c, d) for exact equality with any of the landmarks (p, d).

    Examples
    --------
    >>> test = LandmarkMatcher(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> test(np.array([[2.0, 3.0], [2.0, 1.0], [0.0, 1.0]], dtype="float32"))
    array([ True, False,  True])
    """

    def __init__(self, landmarks: Array):
        points = np.asarray(landmarks, dtype=float) + 0.0  # -0.0 is 0.0
        self.column, self.values = 0, np.zeros(0)
        for number, column in enumerate(points.T):
            values = np.unique(column)
            if len(values) > len(self.values):
                self.column, self.values = number, values
            if len(values) == len(points):
                break
        self.points = np.sort(_whole(points))

    def __str__(self) -> str:
        return "landmarks, which are left out. Use fewer landmarks, or Landmarks(drop_landmark_rows=False)"

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        values = np.asarray(x[:, self.column], dtype=float)
        result = np.asarray(self.values[np.searchsorted(self.values[:-1], values)] == values)
        rows = np.flatnonzero(result)
        if len(rows):
            wanted = _whole(np.asarray(x[rows], dtype=float) + 0.0)
            places = np.minimum(np.searchsorted(self.points, wanted), len(self.points) - 1)
            result[rows] = self.points[places] == wanted
        return result


def _whole(points: Array) -> Array:
    """Return each point as a single value, compared by its bytes."""
    points = np.ascontiguousarray(points)
    return points.view(np.dtype((np.void, points.itemsize * points.shape[1])))[:, 0]
