"""Sums over the elements of a finite group, and over commuting circles by quadratures, exact for each degree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import final

import numpy as np
import scipy.linalg

from daskspectral.manifolds.averages.base import ZonalAverage, characteristic, distinct, inverse_series, whole
from daskspectral.manifolds.eigenspace import Array
from daskspectral.manifolds.zonal import SphereKernel

_BLOCK = 2**17  # inner products at once
_MOST = 50_000  # elements in the quadrature


@final
@dataclass(frozen=True, eq=False)
class FiniteAverage(ZonalAverage):
    """The mean over orthogonal matrices (n, d, d), all elements of a group."""

    elements: Array

    @property
    def ambient(self) -> int:
        return int(self.elements.shape[1])

    @cached_property
    def _classes(self) -> tuple[Array, Array]:
        return distinct(characteristic(self.elements))

    def invariant_polynomials(self, degree: int) -> int:
        polynomials, shares = self._classes
        return whole(float(shares @ inverse_series(polynomials, degree)[:, -1]), f"degree {degree}")

    def reaches(self, degree: int) -> bool:
        return True

    def terms(self, degree: int) -> int:
        return len(self.elements) * self.dimension(degree)

    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        zonal = SphereKernel(self.ambient, degree)
        found = np.zeros((len(v), len(w)))
        for columns, moved in self._moved(v, w):
            if direction is None:
                part = zonal.between(moved, w[columns])
            else:
                part = zonal.along(moved, w[columns], direction[columns])
            found[:, columns] += part.reshape(-1, len(v), part.shape[1]).sum(axis=0)
        return found / len(self.elements)

    def _moved(self, v: Array, w: Array) -> Iterator[tuple[slice, Array]]:
        """Slices of w, and g^T v for some elements at a time, (b m, d): v . g w = (g^T v) . w."""
        width = max(1, min(len(w), max(256, _BLOCK // max(1, len(v)))))
        count = max(1, _BLOCK // (width * max(1, len(v))))
        for first in range(0, len(self.elements), count):
            moved = (v @ self.elements[first : first + count]).reshape(-1, self.ambient)
            for start in range(0, len(w), width):
                yield slice(start, start + width), moved


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
        return _quadrature(self, degree).invariant_polynomials(degree)

    def reaches(self, degree: int) -> bool:
        return len(self.elements) * int(np.prod(self.steps(degree))) <= _MOST

    def terms(self, degree: int) -> int:
        return _quadrature(self, degree).terms(degree)

    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        return _quadrature(self, degree).kernel(degree, v, w, direction)

    def steps(self, degree: int) -> list[int]:
        """How many steps each circle takes."""
        return [degree * round(float(np.abs(np.linalg.eigvalsh(1j * x)).max())) + 1 for x in self.fields]


@lru_cache(maxsize=4)
def _quadrature(average: CircleAverage, degree: int) -> FiniteAverage:
    """All products of the elements with the steps on the circles."""
    found = average.elements
    for x, steps in zip(average.fields, average.steps(degree), strict=True):
        turns = np.array([scipy.linalg.expm(2 * np.pi * j / steps * x) for j in range(steps)])
        found = (found[:, None] @ turns).reshape(-1, *x.shape)
    return FiniteAverage(found)
