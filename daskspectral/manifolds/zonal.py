"""Spheres: eigenspaces spanned by zonal functions at fundamental points."""

from __future__ import annotations

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
from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.flat_torus import FlatTorus, WaveSpace
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.validation import check_integer

_KEPT = 1e-7  # relative to a kernel's mean: larger pivots belong to functions
_ROUNDING = 1e-9  # smaller ones do not


@final
@dataclass(frozen=True, repr=False)
class Sphere(Manifold):
    """Unit sphere Sᵈ⁻¹ in Rᵈ, d ≥ 2, evaluated at x / |x|; isometries are orthogonal matrices (d, d).

    The eigenvalues are l (l + d - 2); the harmonic polynomials of degree l have dimension N(d, 0) = 1 and N(d, l) = (2
    l + d - 2) / l * C(l + d - 3, l - 1). For d ≥ 3 they are spanned by zonal functions, on the circle by cos(l t) and
    sin(l t). Tangents have a closed form on the circle only.

    Parameters
    ----------
    d : int
        Number of coordinates.

    See Also
    --------
    Circle : The sphere with d = 2.

    Examples
    --------
    >>> Sphere(4).eigenvalues(6)
    array([0., 3., 3., 3., 3., 8.])
    >>> Sphere(3).sample(5, np.random.default_rng(0)).shape
    (5, 3)
    """

    d: int

    def __post_init__(self) -> None:
        self._set(d=check_integer("d", self.d, 2))

    def __repr__(self) -> str:
        return "Circle()" if self.d == 2 else f"Sphere(d={self.d})"

    @property
    def ambient(self) -> int:
        return self.d

    @property
    def dimension(self) -> int:
        return self.d - 1

    def _normals(self, x: Array) -> Array:
        return projected(x)[0][None]

    def _tangents(self, x: Array) -> Array | None:
        return FlatTorus(1).tangents(x) if self.d == 2 else None

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

    Returns
    -------
    Sphere
        `Sphere(2)`.

    See Also
    --------
    Sphere : Unit sphere of any dimension.

    Examples
    --------
    >>> Circle().eigenvalues(5)
    array([0., 1., 1., 4., 4.])
    """
    return Sphere(2)


def projected(x: Array, direction: Array | None = None) -> tuple[Array, Array | None]:
    """Return x / |x| for ambient points (c, d), and its derivative along directions."""
    radius = np.linalg.norm(x, axis=1, keepdims=True)
    if not radius.all():
        raise PointError("expected points of the sphere, received the origin in", int(radius.argmin()), "")
    unit = x / radius
    if direction is None:
        return unit, None
    return unit, (direction - unit * np.sum(unit * direction, axis=1, keepdims=True)) / radius


@final
@dataclass(frozen=True)
class SphereKernel:
    """Reproducing kernel of all harmonics of degree l on the sphere, d ≥ 3, for the uniform probability.

    Z_l(t) = N(d, l) C_l^a(t) / C_l^a(1), t = x . y, a = (d - 2) / 2.
    """

    ambient: int
    """Number of coordinates d."""
    degree: int

    @property
    def size(self) -> int:
        degree, d = self.degree, self.ambient
        return (2 * degree + d - 2) * comb(degree + d - 3, degree - 1) // degree if degree else 1

    @property
    def eigenvalue(self) -> float:
        return float(self.degree * (self.degree + self.ambient - 2))

    def between(self, v: Array, w: Array, direction: Array | None = None) -> Array:
        """Return Z(v_i, w_j), (m, c), or its derivative along direction_j."""
        if direction is None:
            return self.size * _gegenbauer(self.ambient, self.degree, v @ w.T)
        # (C_l^a)' = 2 a C_(l-1)^(a+1), and a + 1 belongs to d + 2
        slope = _gegenbauer(self.ambient + 2, max(self.degree - 1, 0), v @ w.T)
        slope *= self.size * self.eigenvalue / (self.ambient - 1)
        slope *= v @ direction.T
        return slope


@final
@dataclass(frozen=True, eq=False)
class ZonalSpace(Eigenspace):
    """Harmonics of a degree by their zonal kernel, exact at any degree.

    φ(x) = C⁻¹ Z(V, x), Z(V, V) = C Cᵀ, with fundamental points V (m, d), at x / |x|, so that gradients are tangential.
    D(g) = C⁻¹ Z(V g Vᵀ) C^(-T), and dD(X) = C⁻¹ [Z'(v_i . v_j) (v_iᵀ X v_j)] C^(-T).
    """

    kernel: SphereKernel
    fundamental: NDArray[np.float64]
    eigenvalue: float

    def __post_init__(self) -> None:
        _ = self.transform  # workers use those of the driver

    @classmethod
    def of(cls, manifold: Manifold, kernel: SphereKernel, points: Iterator[NDArray[np.float64]] | None) -> ZonalSpace:
        """Return the functions at saved points, or at points of a fixed sample."""
        return _sampled(manifold, kernel) if points is None else cls(kernel, next(points), kernel.eigenvalue)

    @property
    def ambient(self) -> int:
        return self.kernel.ambient

    @property
    def size(self) -> int:
        return len(self.fundamental)

    @cached_property
    def transform(self) -> Array:
        factor = np.linalg.cholesky(self.kernel.between(self.fundamental, self.fundamental))
        return np.asarray(scipy.linalg.solve_triangular(factor, np.eye(self.size), lower=True))

    def raw(self, x: Array) -> Array:
        return self.kernel.between(self.fundamental, *projected(x))

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self.kernel.between(self.fundamental, *projected(x, direction))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return (self.fundamental,)

    def action(self, g: Isometry) -> Array:
        moved = self.fundamental @ g.matrix  # rows (g^T v)^T: entry (i, j) of Z is at (g^T v_i) . v_j = v_i . g v_j
        return np.asarray(self.transform @ self.kernel.between(moved, self.fundamental) @ self.transform.T)

    def derived_action(self, field: KillingField) -> Array:
        v = self.fundamental
        return np.asarray(self.transform @ self.kernel.between(v, v, v @ field.matrix.T) @ self.transform.T)


@lru_cache(maxsize=64)
def _sampled(manifold: Manifold, kernel: SphereKernel) -> ZonalSpace:
    m = kernel.size
    pool = manifold.sample(min(4 * m + 16, m + 2500), np.random.default_rng(0))
    return ZonalSpace(kernel, _fundamental(kernel, pool), kernel.eigenvalue)


def _fundamental(kernel: SphereKernel, pool: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points (m, d) selected by pivoted Cholesky from a sample (n, d), n > m.

    With random points C is ill conditioned. Raises ValueError if the rank of the kernel is not the number of
    functions.
    """
    m = kernel.size
    gram = kernel.between(pool, pool)
    scale = float(np.trace(gram)) / len(pool)
    factor, pivots, rank, _ = dpstrf(gram.T, lower=1, tol=1e-14 * scale, overwrite_a=1)
    found = np.diag(factor)[: min(rank, m + 1)] ** 2 / scale
    if len(found) < m or found[m - 1] < _KEPT or found[m:].max(initial=0) > _ROUNDING:
        raise ValueError(
            f"expected {m} functions of eigenvalue {kernel.eigenvalue:g}, received a kernel with relative "
            f"pivots {found[max(0, m - 1) :].tolist()} at the last of them and the next"
        )
    return np.ascontiguousarray(pool[pivots[:m] - 1])


def _gegenbauer(d: int, degree: int, t: Array) -> Array:
    """Return C_l^a(t) / C_l^a(1), a = (d - 2) / 2, by recurrence."""
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
