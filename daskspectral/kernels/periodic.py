"""Kernels on periodic coordinates: a kernel at points whose periodic columns are bent into circles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskspectral.errors import SmoothnessError
from daskspectral.kernels.base import LEAST_SCALE, Array, MultiIndex, check_index, is_number
from daskspectral.kernels.embedded import EmbeddedKernel

Terms = dict[tuple[MultiIndex, MultiIndex], float]


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

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        # sum_ab M_ab (J_a . Hess k J_b + d_a d_b e . grad k), and d_a d_a e = -(2 pi / L)^2 e on the circle of a
        d = x.shape[1]
        matrix = np.broadcast_to(np.eye(d, like=x), (len(x), d, d)) if matrix is None else matrix
        units = np.broadcast_to(np.eye(d, like=x)[:, None], (d, *x.shape))
        frame = np.stack([self.pushed(x, unit) for unit in units], axis=1)
        bend: list[Array] = []
        for axis, (column, period) in enumerate(zip(self._columns(x), self.periods, strict=True)):
            curvature = 0.0 if period is None else -((2 * math.pi / period) ** 2)
            bend += [curvature * matrix[:, axis, axis] * part for part in column]
        ex, ey = self.embedded(x), self.embedded(y)
        spread = np.einsum("kae,kab,kbf->kef", frame, matrix, frame, optimize=True)
        return self.kernel.second(ex, ey, spread) + self.kernel.along(ex, ey, np.stack(bend, axis=1))

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        check_index(alpha, x.shape[1])
        if sum(alpha) > self.order:
            raise SmoothnessError(f"{self} has derivatives up to order {self.order:g}, not {sum(alpha)}")
        ex, ey = self.embedded(x), self.embedded(y)
        factors: dict[MultiIndex, Array] = defaultdict(lambda: np.zeros(len(x), like=x))
        for (beta, powers), coefficient in self._terms(alpha).items():
            factors[beta] += coefficient * _monomial(ex, powers)
        total = np.zeros((len(y), len(x)), like=x)
        for beta, factor in factors.items():
            total += factor * self.kernel.partial(ex, ey, beta)
        return total

    def _columns(self, x: Array) -> list[tuple[Array, ...]]:
        """The one or two coordinates that each column becomes."""
        if x.shape[1] != len(self.periods):
            raise ValueError(
                f"Periodic takes one period or None for each column: it has {len(self.periods)}, and the points have "
                f"{x.shape[1]} column{'s' if x.shape[1] != 1 else ''}"
            )
        columns: list[tuple[Array, ...]] = []
        for column, period in zip(x.astype(float, copy=False).T, self.periods, strict=True):
            if period is None:
                columns.append((column,))
            else:
                radius = period / (2 * math.pi)
                columns.append((radius * np.cos(column / radius), radius * np.sin(column / radius)))
        return columns

    def _terms(self, alpha: MultiIndex) -> Terms:
        """d^alpha k(e(x)) = sum_t coefficient_t e(x)^powers_t (d^beta_t k)(e(x)), as {(beta, powers): coefficient}.

        Along a circle of radius R the derivative in x is (u d_v - v d_u) / R in its two coordinates (u, v).
        """
        first = np.cumsum([0, *(1 if period is None else 2 for period in self.periods)]).tolist()
        zero = (0,) * first[-1]
        terms: Terms = {(zero, zero): 1.0}
        for axis, (order, period) in enumerate(zip(alpha, self.periods, strict=True)):
            u = first[axis]
            for _ in range(order):
                if period is None:
                    terms = {(_raised(beta, u), powers): c for (beta, powers), c in terms.items()}
                else:
                    terms = _turned(terms, u, 2 * math.pi / period)
        return terms


def _monomial(x: Array, powers: Sequence[int]) -> Array:
    """prod_a x_a^powers_a, (c,)."""
    found = np.ones(len(x), like=x)
    for column, power in zip(x.T, powers, strict=True):
        if power:
            found = found * column**power
    return found


def _turned(terms: Terms, u: int, rate: float) -> Terms:
    """rate (u d_v - v d_u) applied to a sum of terms, by the product rule; v is the coordinate after u."""
    found: Terms = defaultdict(float)
    for (beta, powers), c in terms.items():
        for onto, off, sign in ((u, u + 1, 1), (u + 1, u, -1)):
            found[_raised(beta, off), _raised(powers, onto)] += sign * rate * c
            if powers[off]:
                found[beta, _raised(_raised(powers, onto), off, -1)] += sign * rate * c * powers[off]
    return found


def _raised(index: MultiIndex, axis: int, by: int = 1) -> MultiIndex:
    return (*index[:axis], index[axis] + by, *index[axis + 1 :])
