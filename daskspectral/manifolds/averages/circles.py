"""The mean over commuting circles of rotations and a finite group, by a quadrature that is exact for each degree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
import scipy.linalg

from daskspectral.manifolds.averages.base import Array
from daskspectral.manifolds.averages.finite import FiniteAverage
from daskspectral.manifolds.averages.space import ZonalAverage

_MOST = 50_000  # elements in the quadrature


@final
@dataclass(frozen=True, eq=False)
class CircleAverage(ZonalAverage):
    """The mean over products of exp(s X), 0 ≤ s < 2π, for commuting X, and of a finite group that they absorb.

    `fields` are the X (k, d, d), antisymmetric with eigenvalues i times integers of at most q; `elements` (n, d, d) are
    the group's. Z_l(v . exp(s X) w) is a trigonometric polynomial of degree l q: l q + 1 equal steps take its mean.
    """

    fields: Array
    elements: Array

    @property
    def ambient(self) -> int:
        return int(self.fields.shape[1])

    def invariant_polynomials(self, degree: int) -> int:
        return self._finite(degree).invariant_polynomials(degree)

    def reaches(self, degree: int) -> bool:
        return len(self.elements) * int(np.prod(self._steps(degree))) <= _MOST

    def terms(self, degree: int) -> int:
        return self._finite(degree).terms(degree)

    def kernel(self, degree: int, v: Array, w: Array) -> Array:
        return self._finite(degree).kernel(degree, v, w)

    def slope(self, degree: int, v: Array, w: Array, direction: Array) -> Array:
        return self._finite(degree).slope(degree, v, w, direction)

    def _steps(self, degree: int) -> list[int]:
        return [degree * round(float(np.abs(np.linalg.eigvalsh(1j * x)).max())) + 1 for x in self.fields]

    def _finite(self, degree: int) -> FiniteAverage:
        return _quadrature(self, degree)


@lru_cache(maxsize=4)
def _quadrature(average: CircleAverage, degree: int) -> FiniteAverage:
    """All products of the elements with the steps on the circles."""
    found = average.elements
    for x, steps in zip(average.fields, average._steps(degree), strict=True):
        turns = np.array([scipy.linalg.expm(2 * np.pi * j / steps * x) for j in range(steps)])
        found = (found[:, None] @ turns).reshape(-1, *x.shape)
    return FiniteAverage(found)
