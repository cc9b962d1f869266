"""How rows come to their folds: by a hash of their keys, by tasks dealt in turn, by blocks, by labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.moments.coincidence import Coincidence
from daskspectral.moments.measure import NUMBER
from daskspectral.moments.row_keys import KEY

Array = NDArray[Any]
Rows = Mapping[str, Array]
FOLD = "fold"
"""The field of a batch that holds the labels of its rows."""


class Dealing(ABC):
    """A rule that gives each row one of `number` folds."""

    rule: ClassVar[str]
    keyed: ClassVar[bool] = False
    """Whether it goes by the keys of the rows, their field KEY."""
    number: int

    @abstractmethod
    def of(self, rows: Rows) -> Array | int:
        """The folds (c,) of these rows, or one number where all of them are in one fold."""

    def each(self, rows: Rows) -> Array:
        """The folds (c,) of rows from anywhere in the data."""
        return np.broadcast_to(self.of(rows), rows[NUMBER].shape)

    def most(self, start: int, stop: int) -> int:
        """The most folds that the rows start to stop can be in."""
        return min(self.number, stop - start)

    @property
    def origin(self) -> dict[str, Any]:
        """What `Folds` keep of the rule, by which rows that are appended later come to their folds."""
        return {"rule": self.rule}


@dataclass(frozen=True)
class Hashed(Dealing):
    """A row's fold is a hash of its key: the same whatever the chunks, whatever is appended, and for its copies."""

    number: int
    rule = "hash"
    keyed = True

    def of(self, rows: Rows) -> Array:
        return hashed(rows[KEY], self.number)


@dataclass(frozen=True)
class Ranked(Dealing):
    """The `rows` rows, which are few, in the order of the hashes of their numbers are dealt in turn: folds of equal
    size, whatever the values."""

    number: int
    rows: int
    rule = "hash"

    @cached_property
    def folds(self) -> Array:
        """The folds of the rows."""
        found = np.empty(self.rows, dtype=np.int64)
        found[np.argsort(mixed(np.arange(self.rows)))] = np.arange(self.rows) % self.number
        return found

    def of(self, rows: Rows) -> Array:
        return np.asarray(self.folds[rows[NUMBER]])


@dataclass(frozen=True, eq=False)
class Dealt(Dealing):
    """Whole tasks are dealt to the folds in turn; `starts` are the first rows of the tasks, `before` were dealt before.

    On rows sorted by a coordinate every fold has its share of each stretch; folds drawn at random would not.
    """

    number: int
    starts: Array
    before: int = 0
    rule = "tasks"

    def of(self, rows: Rows) -> int:
        return int(self.each({NUMBER: rows[NUMBER][:1]})[0])

    def each(self, rows: Rows) -> Array:
        tasks = np.searchsorted(self.starts, rows[NUMBER], "right") - 1
        return np.asarray((tasks + self.before) % self.number)

    def most(self, start: int, stop: int) -> int:
        first, last = np.searchsorted(self.starts, [start, stop - 1], "right")
        return min(self.number, int(last - first) + 1)

    @property
    def origin(self) -> dict[str, Any]:
        return {"rule": self.rule, "dealt": len(self.starts)}


@dataclass(frozen=True)
class Blocked(Dealing):
    """The first `rows` rows are cut into as many contiguous blocks as there are folds, of `length` rows or one more.

    Rows appended to them are dealt to the folds in turn, in blocks of the same length.
    """

    number: int
    rows: int
    rule = "blocks"

    @property
    def length(self) -> int:
        """The rows of the shortest block."""
        return self.rows // self.number

    @cached_property
    def ends(self) -> Array:
        """The row after the last of each block."""
        return np.linspace(0, self.rows, self.number + 1).astype(np.int64)[1:]

    def of(self, rows: Rows) -> Array | int:
        numbers = rows[NUMBER]
        first, last = self.block(numbers[[0, -1]])
        return int(first) % self.number if first == last else self.block(numbers) % self.number

    def most(self, start: int, stop: int) -> int:
        first, last = self.block(np.array([start, stop - 1]))
        return min(self.number, int(last - first) + 1)

    def each(self, rows: Rows) -> Array:
        return np.asarray(self.block(rows[NUMBER]) % self.number)

    def block(self, numbers: Array) -> Array:
        """The numbers of the blocks in which these rows are."""
        early = np.searchsorted(self.ends, numbers, "right")
        return np.asarray(early + np.maximum(numbers - self.rows, 0) // self.length)

    @property
    def origin(self) -> dict[str, Any]:
        return {"rule": self.rule, "block": (self.rows, self.length)}


@dataclass(frozen=True, eq=False)
class Labelled(Dealing):
    """The field `fold` has a label for each row: one of `values`, sorted, which users know by their `names`.

    A row whose label is not among the values is an error.
    """

    values: Array
    names: tuple[Any, ...]
    rule = "labels"

    @property
    def number(self) -> int:  # type: ignore[override]
        return len(self.values)

    def of(self, rows: Rows) -> Array:
        labels = rows[FOLD]
        found = np.minimum(np.searchsorted(self.values, labels), self.number - 1)
        strange = np.flatnonzero(self.values[found] != labels)
        if len(strange):
            row = int(strange[0])
            raise ValueError(
                f"row {rows[NUMBER][row]} has the label {labels[row]} among the folds, which had none of this label: "
                "the labels changed after they were counted"
            )
        return found

    @property
    def origin(self) -> dict[str, Any]:
        return {"rule": self.rule, "labels": self.names}


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups in which a pass sums its rows: the folds, and behind them rows that coincide with landmarks."""

    dealing: Dealing
    landmarks: Coincidence | None = None

    @property
    def number(self) -> int:
        """The number G of groups."""
        return self.dealing.number + (self.landmarks is not None)

    def most(self, start: int, stop: int) -> int:
        """The most groups that the rows start to stop can be in."""
        return self.dealing.most(start, stop) + (self.landmarks is not None)

    def of(self, rows: Rows) -> Array | int:
        """The groups (c,) of these rows, or one number where all of them are in one group."""
        found = self.dealing.of(rows)
        if self.landmarks is None:
            return found
        touching = self.landmarks(rows["x"])
        return np.where(touching, self.dealing.number, found) if touching.any() else found

    def split(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """The rows of each group that has some, with the group's number."""
        found = self.of(rows)
        if isinstance(found, int):
            yield found, rows
            return
        short = found.astype(np.uint16) if self.number <= 2**16 else found  # of short integers by radix, in linear time
        order = np.argsort(short, kind="stable")
        borders = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=self.number))])
        for group in np.flatnonzero(np.diff(borders)).tolist():
            chosen = order[borders[group] : borders[group + 1]]
            yield group, {name: values.take(chosen, axis=0) for name, values in rows.items() if name != KEY}


def hashed(keys: Array, folds: int) -> Array:
    """The fold of each key: its hash, modulo the number of folds."""
    return np.asarray((mixed(keys) % np.uint64(folds)).astype(np.int64))


def mixed(numbers: Array) -> Array:
    """The splitmix64 of each number."""
    z = np.asarray(numbers).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
