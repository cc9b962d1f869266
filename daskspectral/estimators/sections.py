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
from daskspectral.manifolds import SO3, Eigenspace, Manifold, Sphere
from daskspectral.manifolds.zonal import RotationKernel, SphereKernel, ZonalKernel

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


def sections(manifold: Manifold, count: int, exponent: float, centres: Array, elements: Sequence[Isometry]) -> Sections:
    """Sections of the Sobolev kernel, w_lambda = D_lambda^-exponent, of whole levels of at most `count` functions.

    On spheres and rotations K is a polynomial in x . y: its cost is one recurrence an entry, however many functions
    there are. Elsewhere it is a product of their values. `elements` (G) of isometries, the identity alone for K itself.
    """
    levels = range(manifold.levels_within(count))
    multiplicities = [manifold.multiplicity(level) for level in levels]
    weights = np.cumsum(multiplicities).astype(float) ** -exponent
    if isinstance(manifold, Sphere) and manifold.d > 2:
        return ZonalSections.of([SphereKernel(manifold.d, level) for level in levels], weights, centres, elements)
    if isinstance(manifold, SO3):
        return ZonalSections.of([RotationKernel(level) for level in levels], weights, centres, elements)
    spaces = tuple(manifold.eigenfunctions(level) for level in levels)
    features = np.zeros((len(centres), sum(multiplicities)))
    for g in elements:
        for rows in _blocks(len(centres), features.shape[1]):
            features[rows] += _values(spaces, g(centres[rows]))
    features *= np.sqrt(np.repeat(weights, multiplicities)) / len(elements)
    return SpectralSections(spaces, np.sqrt(np.repeat(weights, multiplicities)), features)


@final
@dataclass(frozen=True, eq=False)
class SpectralSections(Sections):
    """The kernel as a product of values of eigenfunctions, sqrt(w) phi; averages of these keep the kernel's shape."""

    spaces: tuple[Eigenspace, ...]
    scale: NDArray[np.float64]  # sqrt(w) of each function (p,)
    features: NDArray[np.float64]  # sqrt(w) times the mean of phi over the orbits of the centres (n, p)

    def gram(self) -> Array:
        return np.asarray(self.features @ self.features.T)  # the mean over G is a projection: once for either point

    def combined(self, x: Array, coefficients: Array) -> Array:
        a = self.scale[:, None] * (self.features.T @ coefficients)
        return np.concatenate([_values(self.spaces, x[rows]) @ a for rows in _blocks(len(x), len(a))])


@final
@dataclass(frozen=True, eq=False)
class ZonalSections(Sections):
    """The kernel as a polynomial p(x . y), by its Chebyshev series in s = (x . y - middle) / half."""

    kernel: ZonalKernel
    series: NDArray[np.float64]
    middle: float
    half: float
    centres: NDArray[np.float64]
    moved: tuple[NDArray[np.float64], ...]  # g x_i of each element, (n, d)

    @classmethod
    def of(
        cls, kernels: Sequence[ZonalKernel], weights: Array, centres: Array, elements: Sequence[Isometry]
    ) -> ZonalSections:
        top, bottom = (3.0, -1.0) if isinstance(kernels[0], RotationKernel) else (1.0, -1.0)
        middle, half = (top + bottom) / 2, (top - bottom) / 2

        def profile(s: Array) -> Array:
            t = middle + half * s
            return np.asarray(np.sum([w * k.profile(t) for w, k in zip(weights, kernels, strict=True)], axis=0))

        series = chebyshev.chebinterpolate(profile, len(kernels) - 1)
        moved = tuple(kernels[0].project(g(centres)) for g in elements)
        return cls(kernels[0], series, middle, half, kernels[0].project(centres), moved)

    def gram(self) -> Array:
        k = self._at(self.centres)
        return 0.5 * (k + k.T)

    def combined(self, x: Array, coefficients: Array) -> Array:
        points = self.kernel.project(x)
        return np.concatenate([self._at(points[rows]) @ coefficients for rows in _blocks(len(x), len(self.centres))])

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


def _blocks(rows: int, width: int, entries: int = _VALUES) -> list[slice]:
    """Consecutive slices of rows, of about that many entries each; at least one."""
    step = max(1, entries // max(width, 1))
    return [slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step)]


def _values(spaces: Sequence[Eigenspace], x: Array) -> Array:
    return np.concatenate([space.values(x) for space in spaces], axis=1)
