"""Levels of eigenvalues: tuples of indices, gathered by the values that they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOGETHER = 1e-9
"""Values that agree to this relative difference are one level."""
LARGEST = 10**7
"""The most tuples that are enumerated."""

_GROWTH = 1.5  # of the bound up to which tuples are enumerated


class Spectrum:
    """The distinct values of a function of tuples of indices, ascending, with the tuples that have each.

    ``within(bound)`` gives the tuples (r, m) of values up to a bound and a little above, with these values (r,), or
    None where they are too many. The bound grows with what is asked for, and what was found is kept. Errors name what
    the spectrum is `of`.
    """

    def __init__(self, of: object, within: Callable[[float], tuple[Integers, Floats] | None], bound: float):
        self._of, self._within, self._bound = of, within, bound
        self._found: tuple[Integers, Integers, Floats] = np.zeros((0, 0), dtype=np.int64), np.zeros(0, int), np.zeros(0)

    def level(self, number: int, value: float | None = None) -> tuple[Integers, float]:
        """The tuples of a level (r, m), in lexicographic order, and the least of their values.

        Where the value is known, no larger ones are enumerated. Raises ValueError where more than 10^7 tuples would be.
        """
        found, bound = self._found, self._bound if value is None else value
        while len(found[2]) <= number + (value is None):  # the last level may lack tuples beyond the bound
            tuples = self._within(bound)
            if tuples is None:
                raise ValueError(f"level {number} of {self._of!r} lies beyond {LARGEST} functions; ask for a lower one")
            found, bound = _gathered(*tuples), _GROWTH * bound
            self._found, self._bound = found, bound
        indices, edges, values = found
        return indices[edges[number] : edges[number + 1]], float(values[number])


def _gathered(indices: Integers, values: Floats) -> tuple[Integers, Integers, Floats]:
    """The tuples level by level, where each begins and the last ends, and the values."""
    order = np.argsort(values, kind="stable")
    indices, values = indices[order], values[order]
    fresh = np.diff(values, prepend=-1.0) > TOGETHER * values
    starts = np.flatnonzero(fresh)
    order = np.lexsort((*indices.T[::-1], np.cumsum(fresh)))
    return indices[order], np.append(starts, len(values)), values[starts]


def sums_within(tables: Sequence[Floats], bound: float) -> tuple[Integers, Floats] | None:
    """The tuples l (r, m) with Σ_i tables_i[l_i] ≤ bound, and these sums (r,), for ascending tables from 0 on."""
    indices, sums = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for table in tables:
        found = branches(np.searchsorted(table, bound * (1 + TOGETHER) - sums, side="right"))
        if found is None:
            return None
        rows, k = found
        indices, sums = np.column_stack([indices[rows], k]), sums[rows] + table[k]
    return indices, sums


def branches(counts: NDArray[Any]) -> tuple[Integers, Integers] | None:
    """Of rows with so many branches each, the row and the number of every branch; None for more than `LARGEST`."""
    if counts.sum() > LARGEST:
        return None
    counts = counts.astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
