"""Spheres and rotations: eigenspaces spanned by zonal functions at fundamental points."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import final

import numpy as np
import scipy.linalg
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Action, Eigenspace, Functions, by_products
from daskspectral.manifolds.flat_torus import FlatTorus, WaveSpace
from daskspectral.manifolds.isometry import Isometry, KillingField

_KEPT = 1e-7  # of a kernel's mean: pivots above belong to functions
_ROUNDING = 1e-9  # those below do not
_ROWS = 1024  # of a block of zonal functions at the points moved by an isometry


@final
@dataclass(frozen=True, repr=False)
class Sphere(Manifold):
    """The unit sphere Sᵈ⁻¹ in Rᵈ, d ≥ 2.

    -Laplace-Beltrami has the eigenvalues l (l + d - 2); their eigenspaces, the harmonic polynomials of degree
    l, have dimension N(d, 0) = 1 and N(d, l) = (2 l + d - 2) / l * C(l + d - 3, l - 1).
    For d ≥ 3 they are spanned by zonal functions, exactly for any d and l; on the circle by cos(l t) and sin(l t).
    Eigenfunctions are taken at x / |x|, and isometries are orthogonal matrices (d, d).
    Tangents have a closed form on the circle only (no continuous frame exists on S²).

    Examples
    --------
    >>> Sphere(4).eigenvalues(6)
    array([0., 3., 3., 3., 3., 8.])
    >>> Sphere(3).sample(5, np.random.default_rng(0)).shape
    (5, 3)
    """

    d: int

    def __post_init__(self) -> None:
        self._set(d=operator.index(self.d))
        if self.d < 2:
            raise ValueError(f"expected d >= 2, the coordinates of the sphere S^(d-1), received d={self.d}")

    def __repr__(self) -> str:
        return "Circle()" if self.d == 2 else f"Sphere(d={self.d})"

    @property
    def ambient(self) -> int:
        return self.d

    @property
    def dimension(self) -> int:
        return self.d - 1

    def _normals(self, x: Array) -> Array:
        radius = np.linalg.norm(x, axis=1, keepdims=True)
        if not radius.all():
            raise PointError(f"expected points of {self!r}, received the origin in", int(radius.argmin()), "")
        normal: Array = x / radius
        return normal[None]

    def _tangents(self, x: Array) -> Array | None:
        if self.d > 2:
            return None
        normal = self._normals(x)
        return np.stack([-normal[..., 1], normal[..., 0]], axis=-1)

    def _distance(self, x: Array) -> Array:
        off: Array = np.abs(np.linalg.norm(x, axis=1) - 1)
        return off

    def _level(self, level: int) -> tuple[int, int]:
        return level * (level + self.d - 2), SphereKernel(self.d, level).size

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        x = rng.standard_normal((n, self.d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return x

    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> Eigenspace:
        if self.d == 2:
            return WaveSpace(FlatTorus(1), np.array([[level]]), float(level * level))
        return ZonalSpace.of(self, SphereKernel(self.d, level), points)


def Circle() -> Sphere:
    """Return the unit circle in R², the sphere with d = 2.

    Examples
    --------
    >>> Circle().eigenvalues(5)
    array([0., 1., 1., 4., 4.])
    """
    return Sphere(2)


@final
@dataclass(frozen=True)
class SO3(Manifold):
    """The rotation matrices R (3, 3), row by row as points of R^9: x = R.reshape(9).

    The metric is inherited from R^9, where a rotation by a small angle w moves a point by √2 w. -Laplace-Beltrami
    has the eigenvalues l (l + 1) / 2 (l (l + 1) where distances are angles, 4 l (l + 1) on the unit quaternions), with
    multiplicity (2 l + 1)²; the eigenfunctions are the harmonics of degree 2 l of the unit quaternions.
    The isometry R -> A R Bᵀ, A and B rotations, has the matrix numpy.kron(A, B) (9, 9).

    Examples
    --------
    >>> SO3().multiplicity(2), SO3().eigenvalue(2)
    (25, 3.0)
    >>> SO3().check(np.eye(3).reshape(1, 9))
    """

    ambient = 9
    dimension = 3

    def _normals(self, x: Array) -> Array:
        return self._frame(x, _SYMMETRIC)

    def _tangents(self, x: Array) -> Array:
        return self._frame(x, _ANTISYMMETRIC)

    def _distance(self, x: Array) -> Array:
        finite = np.isfinite(x).all(axis=1)
        off = np.full(len(x), np.nan, dtype=x.dtype)
        matrices = x[finite].reshape(-1, 3, 3)
        u, _, v = np.linalg.svd(matrices)
        u[..., -1] *= np.linalg.det(u @ v)[:, None]
        off[finite] = np.linalg.norm(matrices - u @ v, axis=(1, 2))
        return off

    def _level(self, level: int) -> tuple[float, int]:
        kernel = RotationKernel(level)
        return kernel.eigenvalue, kernel.size

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        q = rng.standard_normal((n, 4))
        w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return np.ascontiguousarray(np.array(rows).reshape(9, n).T)

    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> ZonalSpace:
        return ZonalSpace.of(self, RotationKernel(level), points)

    def _frame(self, x: Array, generators: NDArray[np.float64]) -> Array:
        """R S for each generator S (k, 3, 3), (k, c, 9)."""
        frame = x.reshape(-1, 3, 3) @ generators[:, None].astype(x.dtype)
        return np.asarray(frame.reshape(len(generators), len(x), 9))


def _generators(sign: int) -> NDArray[np.float64]:
    """Orthonormal symmetric (sign 1) or antisymmetric (-1) matrices."""
    e = np.eye(9).reshape(3, 3, 3, 3)
    found = [e[i, j] + sign * e[j, i] for i in range(3) for j in range(i if sign > 0 else i + 1, 3)]
    return np.array([s / np.linalg.norm(s) for s in found])


_SYMMETRIC, _ANTISYMMETRIC = _generators(1), _generators(-1)


class ReproducingKernel(ABC):
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


class ZonalKernel(ReproducingKernel):
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
class SphericalKernel(ReproducingKernel):
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


@dataclass(frozen=True, eq=False)
class KernelFunctions(Functions):
    """φ(x) = C⁻¹ Z(V, x), Z(V, V) = C Cᵀ, at fundamental points V (m, d): an orthonormal basis of what Z reproduces.

    As many points as functions; nothing is made of the size of other functions of the eigenvalue.
    """

    kernel: ReproducingKernel
    fundamental: NDArray[np.float64]

    def __post_init__(self) -> None:
        _ = self.transform  # workers have the driver's

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


def fundamental_points(kernel: ReproducingKernel, pool: NDArray[np.float64]) -> NDArray[np.float64]:
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


@final
@dataclass(frozen=True)
class RotationKernel(ZonalKernel):
    """Z_l(s) = (2 l + 1) sin((2 l + 1) θ / 2) / sin(θ / 2), s = tr(Rᵀ S) = 1 + 2 cos(θ), on SO(3).

    The characters 1 + 2 cos(θ) + ... + 2 cos(l θ) are sums of Chebyshev polynomials of cos(θ). On unit quaternions
    this is the kernel of degree 2 l: Z_(2l)(q . q') on S³ with q . q' = cos(θ / 2).
    """

    degree: int
    ambient = 9

    @property
    def size(self) -> int:
        return (2 * self.degree + 1) ** 2

    @property
    def eigenvalue(self) -> float:
        return self.degree * (self.degree + 1) / 2

    @property
    def _character(self) -> Chebyshev:
        """As a function of s."""
        return (2 * self.degree + 1) * Chebyshev([1] + [2] * self.degree, domain=[-1, 3])

    def profile(self, s: Array) -> Array:
        return np.asarray(self._character(s))

    def slope(self, s: Array) -> Array:
        return np.asarray(self._character.deriv()(s))

    def projected(self, x: Array, direction: Array | None = None) -> tuple[Array, Array | None]:
        a, v = x.reshape(-1, 3, 3), None if direction is None else direction.reshape(-1, 3, 3)
        for _ in range(3):  # Newton's iteration to the polar factor, for matrices that were rounded or are a little off
            b = a.transpose(0, 2, 1)
            if v is not None:  # the derivative of each step: at a rotation R this is R times a skew matrix
                v = 1.5 * v - 0.5 * (v @ b @ a + a @ v.transpose(0, 2, 1) @ a + a @ b @ v)
            a = 1.5 * a - 0.5 * a @ b @ a
        return a.reshape(-1, 9), None if v is None else v.reshape(-1, 9)
