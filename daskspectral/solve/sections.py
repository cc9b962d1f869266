"""The Sobolev kernel of a manifold at given points, averaged over the elements of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from daskspectral.groups import Isometry
from daskspectral.manifolds import SO3, Eigenspace, Interval, Manifold, Sphere
from daskspectral.manifolds.interval import LegendreSpace
from daskspectral.manifolds.zonal import RotationKernel, SphereKernel, ZonalKernel
from daskspectral.solve.dense import symmetric_part

Array = NDArray[np.floating[Any]]
_VALUES = 2**21  # of an array of functions at a block of points: 16 MB
_PANEL = 2**16  # entries of the kernel at a time, which stay in the cache


class Sections(ABC):
    """k_i(x) = 1/|G| sum_g K(x, g x_i) for n centres x_i, of the kernel K = sum_lambda w_lambda sum_l phi phi."""

    @abstractmethod
    def gram(self) -> Array:
        """k_j(x_i), (n, n)."""

    @abstractmethod
    def combined(self, x: Array, coefficients: Array) -> Array:
        """sum_i c_i k_i at points x (c, d), for coefficients (n, m): (c, m)."""


def sections(
    manifold: Manifold, count: int, exponent: float, centres: Array, elements: Sequence[Isometry], *, room: int
) -> Sections:
    """Sections of the Sobolev kernel, w_lambda = D_lambda^-exponent, over whole levels of at most `count` functions.

    `centres` (n, d); `elements` are the isometries g of the average, the identity alone for K itself. On spheres and
    rotations K is a polynomial in x . y: an entry costs one recurrence, however many functions there are. Elsewhere it
    is a product of the functions' values; raises MemoryError where these need more than `room` bytes.
    """
    levels = range(manifold.levels_within(count))
    multiplicities = [manifold.multiplicity(level) for level in levels]
    weights = np.cumsum(multiplicities).astype(float) ** -exponent
    if isinstance(manifold, Sphere) and manifold.d > 2:
        return ZonalSections.of([SphereKernel(manifold.d, level) for level in levels], weights, centres, elements)
    if isinstance(manifold, SO3):
        return ZonalSections.of([RotationKernel(level) for level in levels], weights, centres, elements)
    if 8 * sum(multiplicities) * len(centres) > room:
        raise MemoryError(
            f"{sum(multiplicities)} eigenfunctions at {len(centres)} points take "
            f"{8e-9 * sum(multiplicities) * len(centres):.1f} GB, and {1e-9 * room:.1f} GB are free; lower "
            "n_eigenfunctions, or give fewer rows"
        )
    spaces = tuple(manifold.eigenfunctions(level) for level in levels)
    if isinstance(manifold, Interval):  # the polynomials of all degrees at once, by one recurrence
        degrees = np.concatenate([space.degrees for space in spaces if isinstance(space, LegendreSpace)])
        spaces = (LegendreSpace(manifold, degrees, np.nan),)
    features, scale = np.zeros((sum(multiplicities), len(centres))), np.sqrt(np.repeat(weights, multiplicities))
    for rows in _blocks(len(centres), len(features), _PANEL):
        for g in elements:
            _add_values(spaces, g(centres[rows]), features[:, rows])
    features *= scale[:, None] / len(elements)
    return SpectralSections(spaces, scale, features)


@final
@dataclass(frozen=True, eq=False)
class SpectralSections(Sections):
    """The kernel as a product of values of eigenfunctions, sqrt(w) phi, averaged over the group at the centres."""

    spaces: tuple[Eigenspace, ...]
    scale: Array  # sqrt(w) of each function (p,)
    features: Array  # sqrt(w) times the mean of phi over the orbits of the centres (p, n)

    def gram(self) -> Array:
        return np.asarray(self.features.T @ self.features)  # the mean over G is a projection: once for either point

    def combined(self, x: Array, coefficients: Array) -> Array:
        a = self.scale[:, None] * (self.features @ coefficients)
        found = []
        for rows in _blocks(len(x), len(a), _VALUES):
            values = np.zeros((len(a), len(x[rows])))
            _add_values(self.spaces, x[rows], values)
            found.append(values.T @ a)
        return np.concatenate(found)


@final
@dataclass(frozen=True, eq=False)
class ZonalSections(Sections):
    """The kernel as a polynomial p(x . y), by its Chebyshev series in s = (x . y - middle) / half."""

    kernel: ZonalKernel
    series: Array
    middle: float
    half: float
    centres: Array
    moved: tuple[Array, ...]  # for each element g, the points g x_i (n, d)

    @classmethod
    def of(
        cls, kernels: Sequence[ZonalKernel], weights: Array, centres: Array, elements: Sequence[Isometry]
    ) -> ZonalSections:
        top, bottom = (3.0, -1.0) if isinstance(kernels[0], RotationKernel) else (1.0, -1.0)
        middle, half, count = (top + bottom) / 2, (top - bottom) / 2, len(kernels)
        nodes = chebyshev.chebpts1(count)  # the kernel of level l has degree l: interpolation is exact
        values = np.sum([w * k.profile(middle + half * nodes) for w, k in zip(weights, kernels, strict=True)], axis=0)
        series = 2 / count * (chebyshev.chebvander(nodes, count - 1).T @ values)
        series[0] /= 2
        moved = tuple(kernels[0].project(g(centres)) for g in elements)
        return cls(kernels[0], series, middle, half, kernels[0].project(centres), moved)

    def gram(self) -> Array:
        k = self._at(self.centres)
        return symmetric_part(k)

    def combined(self, x: Array, coefficients: Array) -> Array:
        points, blocks = self.kernel.project(x), _blocks(len(x), len(self.centres), _VALUES)
        return np.concatenate([self._at(points[rows]) @ coefficients for rows in blocks])

    def _at(self, x: Array) -> Array:
        """k_i(x), (c, n)."""
        out = np.zeros((len(x), len(self.centres)))
        for rows in _blocks(len(x), len(self.centres), _PANEL):
            for y in self.moved:
                out[rows] += self._polynomial(x[rows] @ y.T)
        out /= len(self.moved)
        return out

    def _polynomial(self, t: Array) -> Array:
        """Clenshaw's recurrence, in place."""
        if len(self.series) == 1:
            return np.full_like(t, self.series[0])
        t -= self.middle
        t /= self.half
        twice = 2 * t
        now, after, buffer = np.full_like(t, self.series[-1]), np.zeros_like(t), np.empty_like(t)
        for c in self.series[-2:0:-1]:
            np.multiply(twice, now, out=buffer)
            buffer -= after
            buffer += c
            now, after, buffer = buffer, now, after
        t *= now
        t -= after
        t += self.series[0]
        return t


def _blocks(rows: int, width: int, entries: int) -> list[slice]:
    """Consecutive slices of rows, of about `entries` entries each; at least one slice."""
    step = max(1, entries // max(width, 1))
    return [slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step)]


def _add_values(spaces: Sequence[Eigenspace], x: Array, out: Array) -> None:
    """Add phi(x_k), (p, c), to `out`."""
    start = 0
    for space in spaces:
        raw = space.raw(x)
        out[start : start + space.size] += raw if space.transform is None else space.transform @ raw
        start += space.size
