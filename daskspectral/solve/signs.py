"""The signs of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


def fix_signs(whitened: Array, *followers: Array) -> None:
    """Make each column's largest-magnitude coefficient positive, in place; the followers flip along.

    Among entries that rounding cannot tell from the largest, the first decides.
    """
    if not whitened.size:
        return
    magnitude = np.abs(whitened)
    ties = magnitude >= magnitude.max(axis=0, initial=0) * (1 - 1e-6)
    first = ties.argmax(axis=0)
    signs = np.where(np.take_along_axis(whitened, first[None], axis=0)[0] < 0, -1.0, 1.0)
    for array in (whitened, *followers):
        array *= signs
