"""What a spectral solver is given and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Values (k,), coefficients of the left and right functions (p, k) and (q, k), ranks, residuals (k,).

    Values and coefficients are complex from the non-symmetric solver, real from the others.
    """

    values: NDArray[np.inexact[Any]]
    left: NDArray[np.inexact[Any]]
    right: NDArray[np.inexact[Any]]
    rank: int | tuple[int, int]
    residuals: Array


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
