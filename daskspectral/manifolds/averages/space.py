"""The invariant functions of one degree, from an averaged zonal kernel alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from daskspectral.manifolds.averages.base import Array, Average
from daskspectral.manifolds.eigenspace import Functions
from daskspectral.manifolds.zonal import SphereKernel

_KEPT = 1e-7  # of a kernel's mean: pivots above belong to functions
_ROUNDING = 1e-9  # those below do not


class ZonalAverage(Average, ABC):
    """A mean over a group by the values of averaged zonal kernels."""

    @abstractmethod
    def kernel(self, degree: int, v: Array, w: Array) -> Array:
        """Zbar(v_i, w_j), (m, c), at unit vectors v (m, d) and w (c, d)."""

    @abstractmethod
    def slope(self, degree: int, v: Array, w: Array, direction: Array) -> Array:
        """direction_j . grad_w Zbar(v_i, w_j), (m, c), for directions (c, d)."""

    @final
    def functions(self, degree: int) -> AveragedSpace:
        return AveragedSpace.build(self, degree)

    @final
    def restored(self, degree: int, points: Iterator[NDArray[np.float64]]) -> AveragedSpace:
        return AveragedSpace.at(self, degree, next(points))


@final
@dataclass(frozen=True, eq=False)
class AveragedSpace(Functions):
    """u(x) = C⁻¹ Zbar(V x), Zbar(V Vᵀ) = C Cᵀ, at as many fundamental points V (r, d) as functions are invariant.

    An orthonormal basis of the invariant harmonics of one degree for the uniform probability; nothing of the size of
    the eigenspace is made.
    """

    average: ZonalAverage
    degree: int
    fundamental: NDArray[np.float64]
    inverse: NDArray[np.float64]

    @classmethod
    def build(cls, average: ZonalAverage, degree: int) -> AveragedSpace:
        """The functions at points chosen by pivoted Cholesky among a fixed sample.

        Raises ValueError where the rank of the kernel is not the dimension that characters give.
        """
        r, d = average.dimension(degree), average.ambient
        if not r:
            return cls.at(average, degree, np.zeros((0, d)))
        rng = np.random.default_rng(0)
        pool = rng.standard_normal((2 * r + 16, d))
        pool /= np.linalg.norm(pool, axis=1, keepdims=True)
        gram = average.kernel(degree, pool, pool)
        scale = float(np.trace(gram)) / len(pool)
        factor, pivots, rank, _ = dpstrf(0.5 * (gram + gram.T), lower=1, tol=1e-14 * scale)
        found = np.diag(factor)[: min(rank, r + 1)] ** 2 / scale
        if len(found) < r or found[r - 1] < _KEPT or found[r:].max(initial=0) > _ROUNDING:
            raise ValueError(
                f"expected {r} invariant harmonics of degree {degree} by characters, received an averaged kernel with "
                f"pivots {found[max(0, r - 1) :].tolist()} (relative) at the last of them and the next"
            )
        return cls.at(average, degree, np.ascontiguousarray(pool[pivots[:r] - 1]))

    @classmethod
    def at(cls, average: ZonalAverage, degree: int, fundamental: NDArray[np.float64]) -> AveragedSpace:
        """The functions of fundamental points (r, d)."""
        if not len(fundamental):
            return cls(average, degree, fundamental, np.zeros((0, 0)))
        gram = average.kernel(degree, fundamental, fundamental)
        factor = np.linalg.cholesky(0.5 * (gram + gram.T))
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
        return cls(average, degree, fundamental, inverse)

    @property
    def ambient(self) -> int:
        return self.average.ambient

    @property
    def eigenvalue(self) -> float:
        return SphereKernel(self.ambient, self.degree).eigenvalue

    @property
    def size(self) -> int:
        return len(self.fundamental)

    @property
    def transform(self) -> Array:
        return self.inverse

    def raw(self, x: Array) -> Array:
        if not self.size:
            return np.zeros((0, len(x)))
        return self.average.kernel(self.degree, self.fundamental, self._kernel.project(x))

    def raw_along(self, x: Array, direction: Array) -> Array:
        kernel = self._kernel
        if not self.size:
            return np.zeros((0, len(x)))
        return self.average.slope(self.degree, self.fundamental, kernel.project(x), kernel.push(x, direction))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return (self.fundamental,)

    @property
    def _kernel(self) -> SphereKernel:
        return SphereKernel(self.ambient, self.degree)
