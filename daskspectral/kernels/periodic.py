"""Kernels on periodic coordinates: a kernel at points whose periodic columns are bent into circles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskspectral.kernels.base import LEAST_SCALE, Array, MultiIndex, is_number
from daskspectral.kernels.embedded import EmbeddedKernel, Terms, raised


@dataclass
class Periodic(EmbeddedKernel):
    """kernel(e(x), e(y)), where e bends each periodic column into a circle as long as its period.

    A column x_a of period L becomes the two coordinates L / (2π) (cos(2π x_a / L), sin(2π x_a / L)); the other
    columns stay. So x_a and x_a + L are the same point, distances are chords, and short distances hardly change.
    `periods` has one entry for each column, in its units, None where the column is not periodic. Derivatives are taken
    in x, by the chain rule, up to the order that the kernel has. Raises ValueError for another number of columns.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> kernel = Periodic(Gaussian(0.1), (1.0, None))
    >>> kernel(np.array([[0.0, 5.0]]), np.array([[1.0, 5.0], [0.5, 5.0]])).round(3)
    array([[1.   , 0.006]])
    """

    periods: Sequence[float | None]

    def check(self) -> None:
        super().check()
        periods: Any = self.periods
        if not isinstance(periods, (tuple, list)) or all(p is None for p in periods):
            raise ValueError(
                "Periodic takes one period or None for each column, such as (6.28, None), and one period at least; it "
                f"got {periods!r}"
            )
        for period in periods:
            if period is not None and not (is_number(period) and LEAST_SCALE < period < 1 / LEAST_SCALE):
                raise ValueError(f"a period is a positive number in the units of its column; it is {period!r}")

    def embedded(self, x: Array) -> Array:
        """e(x) (c, e), in float64."""
        return np.stack([column for pair in self._columns(x) for column in pair], axis=1)

    def pushed(self, x: Array, direction: Array) -> Array:
        parts: list[Array] = []
        for column, v, period in zip(self._columns(x), direction.T, self.periods, strict=True):
            if period is None:
                parts.append(v)
            else:
                rate = 2 * math.pi / period
                parts += [-rate * column[1] * v, rate * column[0] * v]
        return np.stack(parts, axis=1)

    def bent(self, x: Array, matrix: Array) -> Array:
        # d_a d_a e = -(2 pi / L)^2 e on the circle of a
        parts: list[Array] = []
        for axis, (column, period) in enumerate(zip(self._columns(x), self.periods, strict=True)):
            curvature = 0.0 if period is None else -((2 * math.pi / period) ** 2)
            parts += [curvature * matrix[:, axis, axis] * part for part in column]
        return np.stack(parts, axis=1)

    def _columns(self, x: Array) -> list[tuple[Array, ...]]:
        """The one or two coordinates that each column becomes."""
        self.check_columns(x, "period or None", len(self.periods))
        columns: list[tuple[Array, ...]] = []
        for column, period in zip(x.astype(float, copy=False).T, self.periods, strict=True):
            if period is None:
                columns.append((column,))
            else:
                radius = period / (2 * math.pi)
                columns.append((radius * np.cos(column / radius), radius * np.sin(column / radius)))
        return columns

    def terms(self, alpha: MultiIndex) -> Terms:
        # along a circle of radius R the derivative in x is (u d_v - v d_u) / R in its two coordinates (u, v)
        first = np.cumsum([0, *(1 if period is None else 2 for period in self.periods)]).tolist()
        zero = (0,) * first[-1]
        terms: Terms = {(zero, zero): 1.0}
        for axis, (order, period) in enumerate(zip(alpha, self.periods, strict=True)):
            u = first[axis]
            for _ in range(order):
                if period is None:
                    terms = {(raised(beta, u), powers): c for (beta, powers), c in terms.items()}
                else:
                    terms = _turned(terms, u, 2 * math.pi / period)
        return terms


def _turned(terms: Terms, u: int, rate: float) -> Terms:
    """rate (u d_v - v d_u) applied to a sum of terms, by the product rule; v is the coordinate after u."""
    found: Terms = defaultdict(float)
    for (beta, powers), c in terms.items():
        for onto, off, sign in ((u, u + 1, 1), (u + 1, u, -1)):
            found[raised(beta, off), raised(powers, onto)] += sign * rate * c
            if powers[off]:
                found[beta, raised(raised(powers, onto), off, -1)] += sign * rate * c * powers[off]
    return found
