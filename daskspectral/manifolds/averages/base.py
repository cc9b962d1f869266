"""What the mean of zonal kernels over a group offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.eigenspace import Array, Functions
from daskspectral.manifolds.zonal import KernelFunctions, RadialKernel, SphereKernel

LOST = 2e-10  # of a kernel's values to rounding, at most, as estimated


class Average(ABC):
    """The mean over a compact group G of orthogonal matrices, on the unit sphere of Rᵈ, d ≥ 3.

    Zbar(v, w) = mean of Z_l(v . g w) is the reproducing kernel of the invariant functions of degree l for the uniform
    probability; its trace, the mean of Zbar(x, x), is how many there are.
    """

    @property
    @abstractmethod
    def ambient(self) -> int:
        """The number of coordinates d."""

    @abstractmethod
    def invariant_polynomials(self, degree: int) -> int:
        """How many homogeneous polynomials of a degree are invariant: a coefficient of Molien's series."""

    @abstractmethod
    def reaches(self, degree: int) -> bool:
        """Whether it can be evaluated at a degree, to rounding and with a bearable number of terms."""

    @abstractmethod
    def terms(self, degree: int) -> int:
        """About how many zonal functions of the degree take as long at a row as the invariant ones."""

    @abstractmethod
    def functions(self, degree: int) -> Functions:
        """An orthonormal basis of the invariant harmonics of a degree."""

    @abstractmethod
    def restored(self, degree: int, points: Iterator[NDArray[np.float64]]) -> Functions:
        """The same functions again, from the arrays that their `points` gave."""

    @final
    def dimension(self, degree: int) -> int:
        """How many harmonics of a degree are invariant: polynomials less |x|^2 times those of degree l - 2."""
        fewer = self.invariant_polynomials(degree - 2) if degree > 1 else 0
        return self.invariant_polynomials(degree) - fewer


class ZonalAverage(Average, ABC):
    """A mean over a group by the values of averaged zonal kernels."""

    @abstractmethod
    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        """Zbar(v_i, w_j), (m, c), at unit vectors v (m, d) and w (c, d), or direction_j . grad_w Zbar(v_i, w_j)."""

    @final
    def functions(self, degree: int) -> AveragedSpace:
        pool = np.random.default_rng(0).standard_normal((2 * self.dimension(degree) + 16, self.ambient))
        pool /= np.linalg.norm(pool, axis=1, keepdims=True)
        return AveragedSpace.build(_AveragedKernel(self, degree), pool)

    @final
    def restored(self, degree: int, points: Iterator[NDArray[np.float64]]) -> AveragedSpace:
        return AveragedSpace.at(_AveragedKernel(self, degree), next(points))


@final
class AveragedSpace(KernelFunctions):
    """The invariant harmonics of one degree, from an averaged zonal kernel alone."""


@final
@dataclass(frozen=True, eq=False)
class _AveragedKernel(RadialKernel):
    """Zbar of one degree."""

    average: ZonalAverage
    degree: int

    @property
    def ambient(self) -> int:
        return self.average.ambient

    @property
    def size(self) -> int:
        return self.average.dimension(self.degree)

    @property
    def eigenvalue(self) -> float:
        return SphereKernel(self.ambient, self.degree).eigenvalue

    def between(self, v: Array, w: Array) -> Array:
        return self.average.kernel(self.degree, v, w)

    def along(self, v: Array, w: Array, direction: Array) -> Array:
        return self.average.kernel(self.degree, v, w, direction)


def inverse_series(polynomials: Array, degree: int) -> Array:
    """The coefficients (n, degree + 1) of 1 / p(t) for polynomials (n, q + 1) with p(0) = 1, ascending."""
    found = np.zeros((len(polynomials), degree + 1))
    found[:, 0] = 1
    for k in range(1, degree + 1):
        q = min(k, polynomials.shape[1] - 1)
        found[:, k] = -np.sum(polynomials[:, 1 : q + 1] * found[:, k - q : k][:, ::-1], axis=1)
    return found


def characteristic(matrices: Array) -> Array:
    """det(1 - t g), ascending in t, of matrices (n, d, d), (n, d + 1), by Newton's identities."""
    n, d, _ = matrices.shape
    found, traces = np.zeros((n, d + 1)), np.zeros((n, d + 1))
    found[:, 0] = 1
    power = matrices
    for k in range(1, d + 1):
        traces[:, k] = np.trace(power, axis1=1, axis2=2)
        found[:, k] = -np.sum(traces[:, 1 : k + 1] * found[:, :k][:, ::-1], axis=1) / k
        power = power @ matrices
    return found


def distinct(polynomials: Array) -> tuple[Array, Array]:
    """Polynomials that differ by more than rounding (k, q), and the share of each (k,)."""
    rounded, inverse, counts = np.unique(np.rint(polynomials * 1e8), axis=0, return_inverse=True, return_counts=True)
    first = np.zeros(len(rounded), dtype=int)
    first[inverse.ravel()] = np.arange(len(polynomials))
    return polynomials[first], counts / len(polynomials)


def whole(value: float, what: str) -> int:
    """A dimension from a mean of characters. Raises ValueError where it is no whole number."""
    found = round(value)
    if abs(value - found) > 1e-4:
        raise ValueError(
            f"expected the mean of characters over a group to be a whole number, received {value:.9g} for {what}; the "
            "elements are not those of a group"
        )
    return found
