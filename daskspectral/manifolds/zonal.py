"""Eigenspaces spanned by zonal functions at fundamental points: spheres and rotations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Self, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from daskspectral.errors import PointError
from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Action, Array, Eigenspace, Functions, by_products
from daskspectral.manifolds.isometry import Isometry, KillingField

_KEPT = 1e-7  # of a kernel's mean: pivots above belong to functions
_ROUNDING = 1e-9  # those below do not
_ROWS = 1024  # of a block of zonal functions at the points moved by an isometry


class Kernel(ABC):
    """A reproducing kernel Z(x, y) of functions of one eigenvalue, for the uniform probability."""

    @property
    @abstractmethod
    def ambient(self) -> int:
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
    def between(self, v: Array, w: Array) -> Array:
        """Z(v_i, w_j), (m, c), of points v (m, d) and w (c, d)."""

    @abstractmethod
    def along(self, v: Array, w: Array, direction: Array) -> Array:
        """direction_j . grad_w Z(v_i, w_j), (m, c), for directions (c, d)."""

    @abstractmethod
    def project(self, x: Array) -> Array:
        """The points (c, d) at which functions of ambient points x are taken."""

    @abstractmethod
    def push(self, x: Array, direction: Array) -> Array:
        """The derivative of `project` along directions (c, d), (c, d)."""


class ZonalKernel(Kernel):
    """The kernel Z(x . y) of all functions of one eigenvalue; Z at x = y is the multiplicity."""

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """Z(s) of inner products, an array of its own."""

    @abstractmethod
    def slope(self, s: Array) -> Array:
        """Z'(s), an array of its own."""

    @final
    def between(self, v: Array, w: Array) -> Array:
        return self.profile(v @ w.T)

    @final
    def along(self, v: Array, w: Array, direction: Array) -> Array:
        slope = self.slope(v @ w.T)
        slope *= v @ direction.T
        return slope


class RadialKernel(Kernel):
    """A kernel on the unit sphere, of functions taken at x / |x|, so that their gradient is tangential."""

    @final
    def project(self, x: Array) -> Array:
        return np.asarray(x / _radius(x))

    @final
    def push(self, x: Array, direction: Array) -> Array:
        radius = _radius(x)
        unit = x / radius
        return np.asarray((direction - unit * np.sum(unit * direction, axis=1, keepdims=True)) / radius)


def _radius(x: Array) -> Array:
    radius = np.linalg.norm(x, axis=1, keepdims=True)
    if not radius.all():
        raise PointError("expected points of the sphere, received the origin in", int(radius.argmin()), "")
    return np.asarray(radius)


@final
@dataclass(frozen=True)
class SphereKernel(RadialKernel, ZonalKernel):
    """Z_l(t) = N(d, l) C_l^a(t) / C_l^a(1), a = (d - 2) / 2, on Sᵈ⁻¹, d ≥ 3."""

    d: int
    degree: int

    @property
    def ambient(self) -> int:
        return self.d

    @property
    def size(self) -> int:
        degree, d = self.degree, self.d
        return (2 * degree + d - 2) * comb(degree + d - 3, degree - 1) // degree if degree else 1

    @property
    def eigenvalue(self) -> float:
        return float(self.degree * (self.degree + self.d - 2))

    def profile(self, s: Array) -> Array:
        return self.size * gegenbauer(self.d, self.degree, s)

    def slope(self, s: Array) -> Array:
        if not self.degree:
            return np.zeros_like(s)
        # (C_l^a)' = 2 a C_(l-1)^(a+1), and a + 1 belongs to d + 2
        return self.size * self.eigenvalue / (self.d - 1) * gegenbauer(self.d + 2, self.degree - 1, s)


@final
@dataclass(frozen=True)
class RotationKernel(ZonalKernel):
    """Z_l(s) = (2 l + 1) sin((2 l + 1) θ / 2) / sin(θ / 2), s = tr(Rᵀ S) = 1 + 2 cos(θ), on SO(3).

    On unit quaternions this is the kernel of degree 2 l: Z_(2l)(q . q') on S³ with q . q' = cos(θ / 2).
    """

    degree: int

    @property
    def ambient(self) -> int:
        return 9

    @property
    def size(self) -> int:
        return (2 * self.degree + 1) ** 2

    @property
    def eigenvalue(self) -> float:
        return self.degree * (self.degree + 1) / 2

    def profile(self, s: Array) -> Array:
        return self._recurrence(s)[0]

    def slope(self, s: Array) -> Array:
        return self._recurrence(s)[1]

    def _recurrence(self, s: Array) -> tuple[Array, Array]:
        """Value and derivative; the character X_l obeys X_(l+1) = (s - 1) X_l - X_(l-1), X_0 = 1, X_(-1) = -1."""
        twice = s - 1
        before, now = np.full_like(s, -1.0), np.ones_like(s)
        before_slope, slope = np.zeros_like(s), np.zeros_like(s)
        for _ in range(self.degree):
            before_slope, slope = slope, now + twice * slope - before_slope
            before, now = now, twice * now - before
        scale = 2 * self.degree + 1
        return scale * now, scale * slope

    def project(self, x: Array) -> Array:
        a = x.reshape(-1, 3, 3)
        for _ in range(3):  # Newton's iteration to the polar factor, for matrices that were rounded or are a little off
            a = 1.5 * a - 0.5 * a @ a.transpose(0, 2, 1) @ a
        return a.reshape(-1, 9)

    def push(self, x: Array, direction: Array) -> Array:
        a, v = x.reshape(-1, 3, 3), direction.reshape(-1, 3, 3)
        for _ in range(3):  # the derivative of each step: at a rotation R this is R times a skew matrix
            b, w = a.transpose(0, 2, 1), v.transpose(0, 2, 1)
            a, v = 1.5 * a - 0.5 * a @ b @ a, 1.5 * v - 0.5 * (v @ b @ a + a @ w @ a + a @ b @ v)
        return v.reshape(-1, 9)


def gegenbauer(d: int, degree: int, t: Array) -> Array:
    """C_l^a(t) / C_l^a(1), a = (d - 2) / 2, for d >= 2, by its three-term recurrence; an array of its own."""
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
    inverse: NDArray[np.float64]

    @classmethod
    def at(cls, kernel: Kernel, fundamental: NDArray[np.float64]) -> Self:
        """The functions of the fundamental points (m, d)."""
        if not len(fundamental):
            return cls(kernel, fundamental, np.zeros((0, 0)))
        factor = np.linalg.cholesky(kernel.between(fundamental, fundamental))
        return cls(kernel, fundamental, scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True))

    @classmethod
    def build(cls, kernel: Kernel, pool: NDArray[np.float64]) -> Self:
        """The functions at points chosen by pivoted Cholesky among a sample (n, d), which has more of them.

        Random points would give independent functions too, but lose digits: C is then ill conditioned. Raises
        ValueError where the rank of the kernel is not the number of functions.
        """
        m = kernel.size
        if not m:
            return cls.at(kernel, pool[:0])
        gram = kernel.between(pool, pool)
        scale = float(np.trace(gram)) / len(pool)
        factor, pivots, rank, _ = dpstrf(gram.T, lower=1, tol=1e-14 * scale, overwrite_a=1)
        found = np.diag(factor)[: min(rank, m + 1)] ** 2 / scale
        if len(found) < m or found[m - 1] < _KEPT or found[m:].max(initial=0) > _ROUNDING:
            raise ValueError(
                f"expected {m} functions of eigenvalue {kernel.eigenvalue:g}, received a kernel with pivots "
                f"{found[max(0, m - 1) :].tolist()} (relative) at the last of them and the next"
            )
        return cls.at(kernel, np.ascontiguousarray(pool[pivots[:m] - 1]))

    @property
    def ambient(self) -> int:
        return self.kernel.ambient

    @property
    def eigenvalue(self) -> float:
        return self.kernel.eigenvalue

    @property
    def size(self) -> int:
        return len(self.fundamental)

    @property
    def transform(self) -> Array:
        return self.inverse

    def raw(self, x: Array) -> Array:
        points = self.kernel.project(x)
        return self.kernel.between(self.fundamental, points) if self.size else np.zeros((0, len(x)))

    def raw_along(self, x: Array, direction: Array) -> Array:
        points, steps = self.kernel.project(x), self.kernel.push(x, direction)
        return self.kernel.along(self.fundamental, points, steps) if self.size else np.zeros((0, len(x)))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return (self.fundamental,)


@final
@dataclass(frozen=True, eq=False)
class ZonalSpace(KernelFunctions, Eigenspace):
    """A whole eigenspace by its zonal kernel: exact, any degree.

    D(g) = C⁻¹ Z(V g Vᵀ) C^(-T), and dD(X) = C⁻¹ [Z'(v_i . v_j) (v_iᵀ X v_j)] C^(-T).
    """

    kernel: ZonalKernel

    @classmethod
    def sampled(
        cls, kernel: ZonalKernel, sample: Callable[[int, np.random.Generator], NDArray[np.float64]]
    ) -> ZonalSpace:
        """The functions at points of a fixed sample of the manifold."""
        m = kernel.size
        return cls.build(kernel, sample(min(4 * m + 16, m + 2500), np.random.default_rng(0)))

    def action(self, g: Isometry) -> Action:
        moved = self.fundamental @ g.matrix  # rows (g^T v)^T: entry (i, j) of Z is at (g^T v_i) . v_j = v_i . g v_j
        if self.size > DENSE_LIMIT:
            return by_products(self.size, lambda x: self._product(moved, x))
        return np.asarray(self.inverse @ self.kernel.profile(moved @ self.fundamental.T) @ self.inverse.T)

    def _product(self, moved: Array, x: Array) -> Array:
        """C⁻¹ Z(M Vᵀ) C^(-T) x for moved points M, Z evaluated block by block, never kept."""
        inner = self.inverse.T @ x
        products = (moved[i : i + _ROWS] @ self.fundamental.T for i in range(0, self.size, _ROWS))
        return np.asarray(self.inverse @ np.concatenate([self.kernel.profile(s) @ inner for s in products]))

    def derived_action(self, field: KillingField) -> Array:
        v = self.fundamental
        return np.asarray(self.inverse @ self.kernel.along(v, v, v @ field.matrix.T) @ self.inverse.T)
