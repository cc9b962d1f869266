"""The box of points in which the functions of a Fourier series describe the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Box:
    """The `sides` (lower, upper) of a box by column, None for a periodic one, and the `period` (d,) of functions.

    Rows outside are left out of sums, and may be a `share` of all rows; functions there have the values of the nearest
    point of the box, because beyond it they return to their values at its other end.

    Examples
    --------
    >>> box = Box(((0.0, 2.0), None), np.array([4.0, 1.0]), 0.02)
    >>> box(np.array([[1.0, 9.0], [3.0, 0.0]])).tolist(), box.beyond(np.array([[3.0, 0.0]]))
    ([False, True], array([0.25]))
    """

    sides: tuple[Interval | None, ...]
    period: Array
    share: float

    @property
    def center(self) -> Array:
        """The middle of the box, (d,); 0 along periodic axes."""
        return np.array([0.5 * (side[0] + side[1]) if side else 0.0 for side in self.sides])

    @property
    def shown(self) -> str:
        """The rounded ends, or the period, by column."""
        pairs = zip(self.period, self.sides, strict=True)
        return f"[{', '.join(f'({s[0]:.6g}, {s[1]:.6g})' if s else f'period {p:.6g}' for p, s in pairs)}]"

    def __str__(self) -> str:
        return f"outside the box {self.shown} of the lattice: give a wider one"

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        """Return which of the points (c, d) are outside, (c,)."""
        found = np.zeros(len(x), dtype=bool)
        columns = np.ascontiguousarray(x.T)  # extremes of contiguous columns are ten times quicker
        for column, side in zip(columns, self.sides, strict=True):
            if side and (column.min(initial=side[1]) < side[0] or column.max(initial=side[0]) > side[1]):
                found |= ~((column >= side[0]) & (column <= side[1]))
        return found

    def check(self, outside: int, rows: int) -> None:
        """Raise ValueError if more than the share of all rows are outside."""
        if outside > self.share * rows:
            raise ValueError(
                f"{outside} of {rows} rows lie outside the box {self.shown} of the lattice: give a wider box, or "
                f"a larger share than FourierBasis(outside={self.share:g})"
            )

    def nearest(self, x: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return the points of the box nearest to points (c, d), and which coordinates are outside; None if none is."""
        if not self(x).any():
            return x, None
        lower, upper = np.array([side or (-np.inf, np.inf) for side in self.sides]).T
        return np.clip(x, lower, upper, dtype=x.dtype), (x < lower) | (x > upper)

    def beyond(self, x: Array) -> Array | None:
        """Return how many periods points (c, d) are outside, (c,); None if none is."""
        nearest, outside = self.nearest(x)
        if outside is None:
            return None
        return np.asarray(np.where(outside, np.abs(nearest - x) / self.period, 0.0).max(axis=1))
