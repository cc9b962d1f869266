"""The unit sphere."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.flat_torus import FlatTorus
from daskspectral.manifolds.waves import WaveSpace
from daskspectral.manifolds.zonal import SphereKernel, ZonalSpace


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
        object.__setattr__(self, "d", operator.index(self.d))
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
