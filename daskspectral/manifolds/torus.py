"""The flat torus."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.base import Array, Manifold


@final
@dataclass(frozen=True)
class FlatTorus(Manifold):
    """The product of m >= 1 unit circles, (cos t_1, sin t_1, ..., cos t_m, sin t_m) in R^(2m).

    -Laplace-Beltrami has the eigenvalues |k|^2 over k in Z^m, with eigenfunctions exp(i k.t): level by level,
    the sums n of m squares, with multiplicity r_m(n), the number of such k.
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
        while len(found := _sums_of_squares(self.m, limit)) <= level:
            limit *= 2
        return found[level]

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        t = rng.uniform(0.0, 2 * np.pi, (n, self.m))
        return np.stack([np.cos(t), np.sin(t)], axis=-1).reshape(n, 2 * self.m)

    def _circles(self, x: Array) -> Array:
        return x.reshape(len(x), self.m, 2)

    def _unit(self, x: Array) -> Array:
        """Return the radial unit vector in each circle's plane, (c, m, 2)."""
        circles = self._circles(x)
        radius = np.linalg.norm(circles, axis=2, keepdims=True)
        if not radius.all():
            row, circle, _ = np.unravel_index(radius.argmin(), radius.shape)
            raise ValueError(f"expected points of {self!r}, received the origin of circle {circle} in row {row}")
        unit: Array = circles / radius
        return unit

    def _frame(self, plane: Array) -> Array:
        """Return the m fields (m, c, 2m) of which field a is plane[:, a] in the coordinates of circle a."""
        frame = np.zeros((self.m, len(plane), self.m, 2), dtype=plane.dtype)
        circle = np.arange(self.m)
        frame[circle, :, circle] = plane.transpose(1, 0, 2)
        return frame.reshape(self.m, len(plane), 2 * self.m)


@lru_cache(maxsize=64)
def _sums_of_squares(m: int, limit: int) -> tuple[tuple[int, int], ...]:
    """Return (n, r_m(n)) for the n <= limit with r_m(n) > 0: coefficients of (sum_k z^(k^2))^m, exact."""
    counts = np.zeros(limit + 1, dtype=object)
    counts[0] = 1
    for _ in range(m):
        total = counts.copy()
        for k in range(1, isqrt(limit) + 1):
            total[k * k :] += 2 * counts[: limit + 1 - k * k]
        counts = total
    return tuple((n, int(r)) for n, r in enumerate(counts) if r)
