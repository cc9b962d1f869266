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

DIGITS = 5  # of a value that counts as rounded, or six where the first is a 1: of float32 few others have no more
NEAR = 1e-6  # of the last of these digits: 0.1 + 0.2 is 0.3
UNITS = 10.0 ** np.clip(DIGITS - 1 - np.floor((np.arange(2048) - 1023) * np.log10(2)), -308, 308)  # by binary exponent


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
    values = np.asarray(x, dtype=float) + 0.0  # -0.0 is 0.0
    keys = _content(values)
    round_ = np.arange(len(values))
    for column in values.T:
        round_ = round_[_is_round(column[round_])]
        if not len(round_):
            return keys
    keys[round_] = np.asarray(numbers)[round_].astype(np.uint64)
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
    found = np.zeros(len(values), dtype=np.uint64)
    for column in np.ascontiguousarray(values).view(np.uint64).T:
        found ^= column
        found *= np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return found


def _is_round(values: Array) -> NDArray[np.bool_]:
    """Which values (c,) have few digits."""
    unit = UNITS[(values.view(np.uint64) >> np.uint64(52)) & np.uint64(2047)]
    with np.errstate(invalid="ignore", over="ignore"):  # infinity, and what is none in float32
        scaled = values * unit
        whole = np.rint(scaled)
        return np.asarray((np.abs(scaled - whole) <= NEAR) | ((whole / unit).astype(np.float32) == values))
