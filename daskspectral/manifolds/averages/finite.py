"""Sums over the elements of a finite group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from daskspectral.manifolds.averages.base import Array, characteristic, distinct, inverse_series, whole
from daskspectral.manifolds.averages.space import ZonalAverage
from daskspectral.manifolds.zonal import SphereKernel

_BLOCK = 2**17  # inner products at once


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

    def kernel(self, degree: int, v: Array, w: Array) -> Array:
        zonal = SphereKernel(self.ambient, degree)
        found = np.zeros((len(v), len(w)))
        for columns, moved in self._moved(v, w):
            found[:, columns] += _added(zonal.profile(moved @ w[columns].T), len(v))
        return found / len(self.elements)

    def slope(self, degree: int, v: Array, w: Array, direction: Array) -> Array:
        zonal = SphereKernel(self.ambient, degree)
        found = np.zeros((len(v), len(w)))
        for columns, moved in self._moved(v, w):
            part = zonal.slope(moved @ w[columns].T)
            part *= moved @ direction[columns].T
            found[:, columns] += _added(part, len(v))
        return found / len(self.elements)

    def _moved(self, v: Array, w: Array) -> Iterator[tuple[slice, Array]]:
        """Slices of w, and g^T v for some elements at a time, (b m, d): v . g w = (g^T v) . w."""
        width = max(1, min(len(w), max(256, _BLOCK // max(1, len(v)))))
        count = max(1, _BLOCK // (width * max(1, len(v))))
        for first in range(0, len(self.elements), count):
            moved = (v @ self.elements[first : first + count]).reshape(-1, self.ambient)
            for start in range(0, len(w), width):
                yield slice(start, start + width), moved


def _added(values: Array, m: int) -> Array:
    return np.asarray(values.reshape(-1, m, values.shape[1]).sum(axis=0))
