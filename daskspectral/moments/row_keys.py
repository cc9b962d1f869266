"""What folds of rows go by: the values of a row, so that copies of it share a fold, or its number where they are round.

Rows that were copied say nothing that the first of them does not: in several folds, they are judged by themselves. Rows
that are equal because their values are rounded are independent, and are told from copies by their few digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
KEY = "row key"
"""The field of a batch that holds the keys of its rows; no form can read a field of this name."""

BLOCK = 8192  # rows, whose arrays are used again: fresh ones cost more than all sums on them
DIGITS = 5  # of a value that counts as rounded, or six where the first is a 1: of float32 few others have no more
NEAR = 1e-6  # of the last of these digits: 0.1 + 0.2 is 0.3
UNITS = np.tile(10.0 ** np.clip(DIGITS - 1 - np.floor((np.arange(2048) - 1023) * np.log10(2)), -308, 308), 2)
"""What makes whole numbers of rounded values, by the sign and the binary exponent of a value."""


def row_keys(x: Array, numbers: Array) -> NDArray[np.uint64]:
    """The keys (c,) of rows x (c, d) with these `numbers` (c,).

    A row has its number as its key where none of its values has more than five digits, or six from a 1 on, as they are
    or rounded to float32; else a hash of its values, the same for -0.0 and 0.0 and for each type that holds them.

    Examples
    --------
    >>> row_keys(np.array([[0.1 + 0.2, 7.0], [np.float32(0.3), 7.0]]), np.array([3, 4])).tolist()
    [3, 4]
    >>> len(set(row_keys(np.array([[np.pi, 7.0], [np.pi, 7.0]]), np.array([3, 4])).tolist()))
    1
    """
    keys = np.array(numbers, dtype=np.uint64)
    for start in range(0, len(keys), BLOCK):
        part = slice(start, start + BLOCK)
        values = np.asarray(x[part], dtype=float) + 0.0  # -0.0 is 0.0
        found, round_ = _content(values), np.flatnonzero(_is_round(values[:, 0]))
        for column in values.T[1:]:
            round_ = round_[_is_round(column[round_])]
        found[round_] = keys[part][round_]
        keys[part] = found
    return keys


def distinct_rows(x: Array) -> NDArray[np.intp]:
    """Numbers (m,) of rows x (m, d), from 0 on as they first appear: one for all copies of a row that is not rounded.

    Examples
    --------
    >>> distinct_rows(np.array([[0.5], [np.pi], [0.5], [np.pi]])).tolist()
    [0, 1, 2, 1]
    """
    _, first, inverse = np.unique(row_keys(x, np.arange(len(x))), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _content(values: Array) -> NDArray[np.uint64]:
    """A hash (c,) of the bits of rows (c, d)."""
    found, high = np.zeros((2, len(values)), dtype=np.uint64)
    for column in np.ascontiguousarray(values).view(np.uint64).T:
        found ^= column
        found *= np.uint64(0x9E3779B97F4A7C15)
        found ^= np.right_shift(found, np.uint64(32), out=high)
    return found


def _is_round(values: Array) -> NDArray[np.bool_]:
    """Which values (c,) have few digits."""
    values = np.ascontiguousarray(values)
    unit = UNITS.take((values.view(np.int64) >> 52) & 4095)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity, and what is none in float32
        rest = values * unit
        whole = np.rint(rest)
        rest -= whole
        whole /= unit
        return np.asarray((np.abs(rest, out=rest) <= NEAR) | (whole.astype(np.float32) == values))
