"""The flat torus."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import PointError
from daskspectral.manifolds.base import Array, Manifold, embedded_fault
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.frequencies import shell, sums_of_squares
from daskspectral.manifolds.isometry import Isometry
from daskspectral.manifolds.waves import Chart, WaveSpace


@final
@dataclass(frozen=True)
class FlatTorus(Manifold):
    """The product of m ≥ 1 unit circles, (cos t_1, sin t_1, ..., cos t_m, sin t_m) in R^(2m).

    -Laplace-Beltrami has the eigenvalues |k|² over k in Z^m, with eigenfunctions exp(i k.t): level by level,
    the sums n of m squares, with multiplicity r_m(n), the number of such k. Isometries are orthogonal matrices
    (2m, 2m) that take circles to circles. Where the data are the angles themselves, use `PeriodicBox`.

    Examples
    --------
    >>> torus = FlatTorus(2)
    >>> torus.ambient, torus.dimension, torus.multiplicity(1)
    (4, 2, 4)
    """

    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", operator.index(self.m))
        if self.m < 1:
            raise ValueError(f"expected m >= 1 circles, received m={self.m}")

    @property
    def ambient(self) -> int:
        return 2 * self.m

    @property
    def dimension(self) -> int:
        return self.m

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"m": self.m}

    def _normals(self, x: Array) -> Array:
        return self._frame(self._unit(x))

    def _tangents(self, x: Array) -> Array:
        unit = self._unit(x)
        return self._frame(np.stack([-unit[..., 1], unit[..., 0]], axis=-1))

    def _distance(self, x: Array) -> Array:
        off: Array = np.linalg.norm(np.linalg.norm(self._circles(x), axis=2) - 1, axis=1)
        return off

    def _level(self, level: int) -> tuple[int, int]:
        if self.m == 1:
            return level * level, 2 if level else 1
        limit = 16
        while len(found := sums_of_squares(self.m, limit)) <= level:
            limit *= 2
        return found[level]

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        t = rng.uniform(0.0, 2 * np.pi, (n, self.m))
        return np.stack([np.cos(t), np.sin(t)], axis=-1).reshape(n, 2 * self.m)

    def _eigenspace(self, level: int) -> Eigenspace:
        n = self._level(level)[0]
        return WaveSpace(CircleChart(self.m), shell(self.m, n), float(n))

    def _restored(self, level: int, points: Iterator[NDArray[np.float64]]) -> Eigenspace:
        return self._eigenspace(level)

    def _fault(self, g: Isometry) -> str | None:
        return embedded_fault(self, g)

    def _circles(self, x: Array) -> Array:
        return x.reshape(len(x), self.m, 2)

    def _unit(self, x: Array) -> Array:
        """Return the radial unit vector in each circle's plane, (c, m, 2)."""
        circles = self._circles(x)
        radius = np.linalg.norm(circles, axis=2, keepdims=True)
        if not radius.all():
            row, circle, _ = np.unravel_index(radius.argmin(), radius.shape)
            raise PointError(f"expected points of {self!r}, received the origin of circle {circle} in", int(row), "")
        unit: Array = circles / radius
        return unit

    def _frame(self, plane: Array) -> Array:
        """Return the m fields (m, c, 2m) of which field a is plane[:, a] in the coordinates of circle a."""
        frame = np.zeros((self.m, len(plane), self.m, 2), dtype=plane.dtype)
        circle = np.arange(self.m)
        frame[circle, :, circle] = plane.transpose(1, 0, 2)
        return frame.reshape(self.m, len(plane), 2 * self.m)


@final
@dataclass(frozen=True)
class CircleChart(Chart):
    """Angles t_j = atan2(x_(2j+1), x_(2j)) of m circles; functions are constant along each radius."""

    m: int

    @property
    def ambient(self) -> int:
        return 2 * self.m

    def angles(self, x: Array) -> Array:
        circles = x.reshape(len(x), self.m, 2)
        return np.arctan2(circles[..., 1], circles[..., 0])

    def push(self, x: Array, direction: Array) -> Array:
        circles, v = x.reshape(len(x), self.m, 2), direction.reshape(len(x), self.m, 2)
        turned = circles[..., 0] * v[..., 1] - circles[..., 1] * v[..., 0]
        return np.asarray(turned / np.sum(circles * circles, axis=2))

    def affine(self, g: Isometry) -> tuple[NDArray[np.int64], Array]:
        blocks = g.matrix.reshape(self.m, 2, self.m, 2).transpose(0, 2, 1, 3)
        sign = np.rint(np.linalg.det(blocks)).astype(np.int64)  # 0 where circle j does not go to circle i
        i, j = np.nonzero(sign)
        shift = np.zeros(self.m)
        shift[i] = np.arctan2(blocks[i, j, 1, 0], blocks[i, j, 0, 0])  # the image of the angle 0
        return sign, shift
