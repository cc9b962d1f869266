"""The rotations of space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.zonal import ZonalKernel, ZonalSpace


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


def _generators(sign: int) -> NDArray[np.float64]:
    """Orthonormal symmetric (sign 1) or antisymmetric (-1) matrices."""
    e = np.eye(9).reshape(3, 3, 3, 3)
    found = [e[i, j] + sign * e[j, i] for i in range(3) for j in range(i if sign > 0 else i + 1, 3)]
    return np.array([s / np.linalg.norm(s) for s in found])


_SYMMETRIC, _ANTISYMMETRIC = _generators(1), _generators(-1)
