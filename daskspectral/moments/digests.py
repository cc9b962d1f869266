"""Whether the rows that were summed are still the same: digests of what was read, and of the files behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Registered

Array = NDArray[np.uint64]
MOST = 1 << 13  # stretches that are told apart: 330 kB for two fields
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: no digest is lost in a power of it


@dataclass(frozen=True, eq=False)
class Digests(Registered):
    """Digests of rows 0, 1, ... as tasks read them, for each field and stretch of rows.

    `dtypes` names the F fields, each with the type as which its values were digested. `lengths` (T,) are the rows of
    the tasks in their order. `table` (E, 1 + 2F) has a row for each stretch of one task, or, where these would be more
    than 8192, of several: their number, the digest of each field's values, and of the files behind them (names, sizes,
    times or etags). A digest is 0 where it is not known: of values that were not given, and of data in no files.

    The digest of a stretch is a polynomial in those of its tasks, modulo 2^64: stretches can be joined to longer ones.
    """

    dtypes: Mapping[str, str]
    lengths: NDArray[np.int32]
    table: Array

    @classmethod
    def of(
        cls, dtypes: Mapping[str, str], ranges: Sequence[tuple[int, int]], values: Array, files: Mapping[str, Array]
    ) -> Self:
        """Of tasks over these ranges of rows, with the digests (T, F) of values, and by field (T,) of files."""
        ones = np.ones(len(ranges), np.uint64)
        table = np.column_stack([ones, values, *(files[name] for name in dtypes)])
        return cls(dtypes, np.array([stop - start for start, stop in ranges], np.int32), _few(table))

    def __add__(self, other: Digests) -> Digests:
        """Of these rows and the other ones behind them. A field that one side has not is unknown there."""
        dtypes = {**other.dtypes, **self.dtypes}
        tables = [
            np.column_stack([d.table[:, 0], *(d._column(name, of) for of in (0, 1) for name in dtypes)])
            for d in (self, other)
        ]
        return Digests(dtypes, np.concatenate([self.lengths, other.lengths]), _few(np.concatenate(tables)))

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """The rows of each task."""
        return list(pairwise([0, *np.cumsum(self.lengths).tolist()]))

    @cached_property
    def stretch(self) -> NDArray[np.intp]:
        """The stretch of each task (T,)."""
        return np.repeat(np.arange(len(self.table)), self.table[:, 0].astype(np.intp))

    def moved(self, name: str, files: Array) -> NDArray[np.bool_]:
        """Which stretches (E,) of a field may have changed, by the digests (T,) of the files behind each task now."""
        now, then = self._joined(files), self._column(name, 1)
        return np.asarray((self._column(name, 0) != 0) & ((now != then) | (now == 0)))

    def differing(self, name: str, values: Array) -> NDArray[np.intp]:
        """The stretches of a field with other values, by the digests (T,) of what tasks read; 0 where none did."""
        now, then = self._joined(values), self._column(name, 0)
        return np.flatnonzero((now != 0) & (then != 0) & (now != then))

    def behind(self, files: Mapping[str, Array]) -> Digests:
        """The same rows with the digests (T,) of the files that are behind some fields now."""
        names = list(self.dtypes)
        columns = [self._joined(files[name]) if name in files else self._column(name, 1) for name in names]
        return replace(self, table=np.column_stack([self.table[:, : 1 + len(names)], *columns]))

    def _column(self, name: str, of: int) -> Array:
        """A column of the table: digests of a field's values (`of` = 0) or files (1); zeros for an unknown field."""
        if name not in self.dtypes:
            return np.zeros(len(self.table), np.uint64)
        return self.table[:, 1 + of * len(self.dtypes) + list(self.dtypes).index(name)]

    def _joined(self, tasks: Array) -> Array:
        """Digests (E,) of the stretches from those of the tasks (T,)."""
        ones = np.ones(len(tasks), np.uint64)
        starts = np.flatnonzero(np.diff(self.stretch, prepend=-1))
        return _joined(np.column_stack([ones, tasks]), starts)[:, 1]


def _few(table: Array) -> Array:
    """A table of neighbouring stretches as one of at most `MOST` longer ones."""
    return _joined(table, np.arange(0, len(table), -(-len(table) // MOST)))


def _joined(table: Array, starts: NDArray[np.intp]) -> Array:
    """A table in which the stretches from each of `starts` to the next are one."""
    tasks, digests = table[:, 0], table[:, 1:]
    together = np.add.reduceat(tasks, starts)
    ends = np.repeat(np.cumsum(together), np.diff(starts, append=len(table)))
    powers = FACTOR ** (ends - np.cumsum(tasks))
    joined = np.add.reduceat(digests * powers[:, None], starts)
    joined[np.minimum.reduceat(digests, starts) == 0] = 0
    return np.column_stack([together, joined])
