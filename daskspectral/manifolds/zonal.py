"""Eigenspaces spanned by zonal functions at fundamental points: spheres and rotations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Action, Array, Eigenspace, Functions, by_products
from daskspectral.manifolds.isometry import Isometry, KillingField

_KEPT = 1e-7  # of a kernel's mean: pivots above belong to functions
_ROUNDING = 1e-9  # those below do not
_ROWS = 1024  # of a block of zonal functions at the points moved by an isometry


class Kernel(ABC):
    """A reproducing kernel Z(x, y) of functions of one eigenvalue, for the uniform probability."""

    ambient: int
    """The number of coordinates d."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of functions, the mean of Z(x, x)."""

    @property
    @abstractmethod
    def eigenvalue(self) -> float:
        """The eigenvalue."""

    @abstractmethod
    def between(self, v: Array, w: Array, direction: Array | None = None) -> Array:
        """Z(v_i, w_j), (m, c), of points v (m, d) and w (c, d), or direction_j . grad_w Z(v_i, w_j)."""

    @abstractmethod
    def projected(self, x: Array, direction: Array | None = None) -> tuple[Array, Array | None]:
        """The points (c, d) at which functions of ambient points x are taken, and their derivative along directions."""


class ZonalKernel(Kernel):
    """The kernel Z(x . y) of all functions of one eigenvalue; Z at x = y is the multiplicity."""

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """Z(s) of inner products, an array of its own."""

    @abstractmethod
    def slope(self, s: Array) -> Array:
        """Z'(s), an array of its own."""

    @final
    def between(self, v: Array, w: Array, direction: Array | None = None) -> Array:
        if direction is None:
            return self.profile(v @ w.T)
        slope = self.slope(v @ w.T)
        slope *= v @ direction.T
        return slope


@dataclass(frozen=True)
class SphericalKernel(Kernel):
    """A kernel of harmonics of one degree on Sᵈ⁻¹, taken at x / |x|, so that their gradient is tangential."""

    ambient: int
    degree: int

    @final
    @property
    def eigenvalue(self) -> float:
        return float(self.degree * (self.degree + self.ambient - 2))

    @final
    def projected(self, x: Array, direction: Array | None = None) -> tuple[Array, Array | None]:
        radius = np.linalg.norm(x, axis=1, keepdims=True)
        if not radius.all():
            raise PointError("expected points of the sphere, received the origin in", int(radius.argmin()), "")
        unit = x / radius
        if direction is None:
            return unit, None
        return unit, (direction - unit * np.sum(unit * direction, axis=1, keepdims=True)) / radius


@final
@dataclass(frozen=True)
class SphereKernel(SphericalKernel, ZonalKernel):
    """Z_l(t) = N(d, l) C_l^a(t) / C_l^a(1), a = (d - 2) / 2, on Sᵈ⁻¹, d ≥ 3."""

    @property
    def size(self) -> int:
        degree, d = self.degree, self.ambient
        return (2 * degree + d - 2) * comb(degree + d - 3, degree - 1) // degree if degree else 1

    def profile(self, s: Array) -> Array:
        return self.size * _gegenbauer(self.ambient, self.degree, s)

    def slope(self, s: Array) -> Array:
        # (C_l^a)' = 2 a C_(l-1)^(a+1), and a + 1 belongs to d + 2
        below = _gegenbauer(self.ambient + 2, max(self.degree - 1, 0), s)
        return self.size * self.eigenvalue / (self.ambient - 1) * below


def _gegenbauer(d: int, degree: int, t: Array) -> Array:
    """C_l^a(t) / C_l^a(1), a = (d - 2) / 2, for d >= 3, by its three-term recurrence; an array of its own."""
    before = np.ones_like(t)
    if not degree:
        return before
    now, buffer = t.copy(), np.empty_like(t)
    for k in range(1, degree):
        np.multiply(t, now, out=buffer)
        buffer *= (2 * k + d - 2) / (k + d - 2)
        before *= k / (k + d - 2)
        np.subtract(buffer, before, out=before)
        before, now = now, before
    return now


@dataclass(frozen=True, eq=False)
class KernelFunctions(Functions):
    """φ(x) = C⁻¹ Z(V, x), Z(V, V) = C Cᵀ, at fundamental points V (m, d): an orthonormal basis of what Z reproduces.

    As many points as functions; nothing is made of the size of other functions of the eigenvalue.
    """

    kernel: Kernel
    fundamental: NDArray[np.float64]

    @property
    def ambient(self) -> int:
        return self.kernel.ambient

    @property
    def size(self) -> int:
        return len(self.fundamental)

    @cached_property
    def transform(self) -> Array:
        if not self.size:
            return np.zeros((0, 0))
        factor = np.linalg.cholesky(self.kernel.between(self.fundamental, self.fundamental))
        return np.asarray(scipy.linalg.solve_triangular(factor, np.eye(self.size), lower=True))

    def raw(self, x: Array) -> Array:
        return self._zonal(*self.kernel.projected(x))

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self._zonal(*self.kernel.projected(x, direction))

    def _zonal(self, points: Array, steps: Array | None) -> Array:
        return self.kernel.between(self.fundamental, points, steps) if self.size else np.zeros((0, len(points)))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return (self.fundamental,)


def fundamental_points(kernel: Kernel, pool: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (m, d) chosen by pivoted Cholesky among a sample (n, d), which has more of them.

    Random points would give independent functions too, but lose digits: C is then ill conditioned. Raises
    ValueError where the rank of the kernel is not the number of functions.
    """
    m = kernel.size
    if not m:
        return pool[:0]
    gram = kernel.between(pool, pool)
    scale = float(np.trace(gram)) / len(pool)
    factor, pivots, rank, _ = dpstrf(gram.T, lower=1, tol=1e-14 * scale, overwrite_a=1)
    found = np.diag(factor)[: min(rank, m + 1)] ** 2 / scale
    if len(found) < m or found[m - 1] < _KEPT or found[m:].max(initial=0) > _ROUNDING:
        raise ValueError(
            f"expected {m} functions of eigenvalue {kernel.eigenvalue:g}, received a kernel with pivots "
            f"{found[max(0, m - 1) :].tolist()} (relative) at the last of them and the next"
        )
    return np.ascontiguousarray(pool[pivots[:m] - 1])


@final
@dataclass(frozen=True, eq=False)
class ZonalSpace(KernelFunctions, Eigenspace):
    """A whole eigenspace by its zonal kernel: exact, any degree.

    D(g) = C⁻¹ Z(V g Vᵀ) C^(-T), and dD(X) = C⁻¹ [Z'(v_i . v_j) (v_iᵀ X v_j)] C^(-T).
    """

    kernel: ZonalKernel
    eigenvalue: float

    @classmethod
    def of(cls, manifold: Manifold, kernel: ZonalKernel, points: Iterator[NDArray[np.float64]] | None) -> ZonalSpace:
        """The functions at the next of saved points, or at points of a fixed sample of the manifold."""
        return _sampled(manifold, kernel) if points is None else cls(kernel, next(points), kernel.eigenvalue)

    def action(self, g: Isometry) -> Action:
        moved = self.fundamental @ g.matrix  # rows (g^T v)^T: entry (i, j) of Z is at (g^T v_i) . v_j = v_i . g v_j
        if self.size > DENSE_LIMIT:
            return by_products(self.size, lambda x: self._product(moved, x))
        return np.asarray(self.transform @ self.kernel.between(moved, self.fundamental) @ self.transform.T)

    def _product(self, moved: Array, x: Array) -> Array:
        """C⁻¹ Z(M Vᵀ) C^(-T) x for moved points M, Z evaluated block by block, never kept."""
        inner = self.transform.T @ x
        blocks = (moved[i : i + _ROWS] for i in range(0, self.size, _ROWS))
        products = [self.kernel.between(block, self.fundamental) @ inner for block in blocks]
        return np.asarray(self.transform @ np.concatenate(products))

    def derived_action(self, field: KillingField) -> Array:
        v = self.fundamental
        return np.asarray(self.transform @ self.kernel.between(v, v, v @ field.matrix.T) @ self.transform.T)


@lru_cache(maxsize=64)
def _sampled(manifold: Manifold, kernel: ZonalKernel) -> ZonalSpace:
    m = kernel.size
    pool = manifold.sample(min(4 * m + 16, m + 2500), np.random.default_rng(0))
    return ZonalSpace(kernel, fundamental_points(kernel, pool), kernel.eigenvalue)
