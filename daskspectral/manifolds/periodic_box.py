"""A box whose opposite sides are glued: a flat torus in the user's own coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.base import Array, Manifold, axes
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.frequencies import shell, shells, sums_of_squares
from daskspectral.manifolds.isometry import Isometry, orthogonal_fault
from daskspectral.manifolds.waves import Chart, WaveSpace


@final
@dataclass(frozen=True)
class PeriodicBox(Manifold):
    """prod_i [lower_i, upper_i) with periodic sides L_i = upper_i - lower_i, in coordinates x (c, m): [-1, 1)^10 is
    PeriodicBox([-1] * 10, [1] * 10), and m angles live on PeriodicBox([0] * m, [2 * numpy.pi] * m).

    Any finite coordinates are a point, x_i + L_i the same as x_i. The metric is the Euclidean one of the coordinates:
    -Laplace-Beltrami has the eigenvalues Σ_i (2π k_i / L_i)² over k in Z^m, with eigenfunctions
    exp(2π i Σ_i k_i x_i / L_i); values that agree to a relative 1e-9 are one level. Isometries are
    x -> A x + b with a signed permutation A that takes each side to a side of the same length.

    Examples
    --------
    >>> box = PeriodicBox([0, -1], [2 * np.pi, 1])
    >>> box.eigenvalues(6).round(2)
    array([0., 1., 1., 4., 4., 9.])
    >>> box.periods
    (6.283185307179586, 2.0)
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __init__(self, lower: Sequence[float], upper: Sequence[float]):
        a, b = (np.asarray(bound, dtype=np.float64) for bound in (lower, upper))
        if a.ndim != 1 or a.shape != b.shape or not a.size:
            raise ValueError(f"expected as many lower as upper bounds, received shapes {a.shape} and {b.shape}")
        if not (np.isfinite(b - a).all() and (b > a).all()):
            raise ValueError(f"expected finite bounds lower < upper, received lower={lower!r}, upper={upper!r}")
        object.__setattr__(self, "lower", tuple(a.tolist()))
        object.__setattr__(self, "upper", tuple(b.tolist()))

    @property
    def ambient(self) -> int:
        return len(self.lower)

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The sides L (m,)."""
        return np.asarray(np.array(self.upper) - np.array(self.lower))

    @property
    def periods(self) -> tuple[float | None, ...]:
        return tuple(self.lengths.tolist())

    @property
    def lattice(self) -> NDArray[np.float64]:
        return np.diag(self.lengths)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    def _normals(self, x: Array) -> Array:
        return np.zeros((0, *x.shape), dtype=x.dtype)

    def _tangents(self, x: Array) -> Array:
        return axes(x)

    def _distance(self, x: Array) -> Array:
        return np.asarray(0 * x.sum(axis=1))  # NaN where a coordinate is not finite

    def _level(self, level: int) -> tuple[float, int]:
        unit, weights = self._scale()
        if max(weights) == 1:
            limit = 16
            while len(found := sums_of_squares(self.ambient, limit)) <= level:
                limit *= 2
            n, multiplicity = found[level]
            return unit * n, multiplicity
        vectors, value = self._uneven(level)
        return unit * value, 2 * len(vectors) if value else 1

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(self.lower, self.upper, (n, self.ambient))

    def _eigenspace(self, level: int) -> Eigenspace:
        unit, weights = self._scale()
        if max(weights) == 1:
            vectors = shell(self.ambient, round(self._level(level)[0] / unit))
        else:
            vectors = self._uneven(level)[0]
        return WaveSpace(BoxChart(tuple(self.lengths.tolist())), vectors, float(self._level(level)[0]))

    def _restored(self, level: int, points: Iterator[NDArray[np.float64]]) -> Eigenspace:
        return self._eigenspace(level)

    def _fault(self, g: Isometry) -> str | None:
        fault = orthogonal_fault(g)
        if fault is not None:
            return fault
        entries = np.abs(g.matrix)
        if np.abs(entries - np.rint(entries)).max() > 1e-11:
            return "its matrix is not a signed permutation, and does not take the lattice of periods to itself"
        i, j = np.nonzero(np.rint(entries))
        lengths = self.lengths
        wrong = np.flatnonzero(np.abs(lengths[i] - lengths[j]) > 1e-9 * lengths[i])
        if len(wrong):
            i, j = i[wrong[0]], j[wrong[0]]
            return f"it takes side {j}, of length {lengths[j]:g}, to side {i}, of length {lengths[i]:g}"
        return None

    def _scale(self) -> tuple[float, tuple[float, ...]]:
        """(2 pi / L)^2 of the longest side, and the squares of the sides' frequencies in this unit (m,)."""
        lengths = self.lengths
        longest = float(lengths.max())
        even = lengths >= longest * (1 - 1e-12)
        weights = np.where(even, 1.0, (longest / lengths) ** 2)
        return (2 * np.pi / longest) ** 2, tuple(weights.tolist())

    def _uneven(self, level: int) -> tuple[NDArray[np.int64], float]:
        """The frequencies of a level, and their sum of squares in units of the longest side."""
        sides = np.diag(np.sqrt(self._scale()[1]))
        return shells(tuple(map(tuple, sides.tolist()))).shell(level, self)


@final
@dataclass(frozen=True)
class BoxChart(Chart):
    """Angles t_i = 2 pi x_i / L_i."""

    lengths: tuple[float, ...]

    @property
    def ambient(self) -> int:
        return len(self.lengths)

    def angles(self, x: Array) -> Array:
        return x * (2 * np.pi / np.array(self.lengths))

    def push(self, x: Array, direction: Array) -> Array:
        return direction * (2 * np.pi / np.array(self.lengths))

    def affine(self, g: Isometry) -> tuple[NDArray[np.int64], Array]:
        return np.rint(g.matrix).astype(np.int64), g.shift * (2 * np.pi / np.array(self.lengths))
