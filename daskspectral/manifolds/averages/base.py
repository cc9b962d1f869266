"""What the mean of zonal kernels over a group offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import comb, exp, lgamma, prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.eigenspace import Functions

Array = NDArray[np.floating[Any]]

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


def powers(d: int, degree: int) -> NDArray[np.float64]:
    """c_k of the zonal kernel Z_l(t) = sum_k c_k t^k for the uniform probability on S^(d-1), (degree + 1,)."""
    found = np.zeros(degree + 1)
    a = (d - 2) / 2
    size = (2 * degree + d - 2) * comb(degree + d - 3, degree - 1) / degree if degree else 1.0
    # N 2^l (a)_l / (2 a)_l, the leading one
    found[degree] = size * prod(2 * (a + i) / (2 * a + i) for i in range(degree))
    for j in range(degree // 2):
        k = degree - 2 * j
        found[k - 2] = -found[k] * k * (k - 1) / (4 * (j + 1) * (a + degree - j - 1))
    return found


def mean_power(d: int, k: int) -> float:
    """The mean of |t|^k over S^(d-1), t one coordinate."""
    return exp(lgamma((k + 1) / 2) + lgamma(d / 2) - lgamma(0.5) - lgamma((k + d) / 2))


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
