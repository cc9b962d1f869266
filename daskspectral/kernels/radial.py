"""Radial kernels k(x, y) = q(s), s = |x - y|²: Gaussian, exponential, Matern, and given profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskspectral.devices import smallest
from daskspectral.errors import ParameterError
from daskspectral.kernels.base import Array, GivenProfile, ProfileKernel, check_scale, number
from daskspectral.kernels.geometry import DISTANCE
from daskspectral.validation import is_number


@dataclass
class Gaussian(ProfileKernel):
    """Gaussian kernel exp(-r² / (2 scale²)), r = |x - y|.

    Parameters
    ----------
    scale : float, "median" or "auto"
        Length in the units of the data, "median", the median distance between rows, or "auto", by cross-validation.

    See Also
    --------
    Matern : Less smooth kernels.

    Examples
    --------
    >>> kernel = Gaussian("median").resolve(2.0)
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]])).round(3)
    array([[1.   , 0.607]])
    """

    scale: float | str = 1.0
    geometry = DISTANCE
    smoothness = math.inf

    def check(self) -> None:
        check_scale(self.scale)

    @property
    def proportional(self) -> float | None:
        return -1.0 / number(self.scale) ** 2

    def profile(self, s: Array, order: int, out: Array) -> Array:
        rate = -0.5 / number(self.scale) ** 2
        np.multiply(s, rate, out=out)
        np.exp(out, out=out)
        if order:
            out *= rate**order
        return out


class HalfIntegerBessel(ProfileKernel):
    """Kernel z^nu K_nu(z), normalized at 0, with z = rate r and nu = n + 1/2: exp(-z) θ_n(z) / θ_n(0).

    Derivatives in s lower nu by one: d/ds [z^nu K_nu(z)] = -(rate² / 2) z^(nu-1) K_(nu-1)(z) (Abramowitz and Stegun
    9.6.28).
    """

    geometry = DISTANCE
    nu: float
    scale: float | str

    def check(self) -> None:
        check_scale(self.scale)

    @property
    def rate(self) -> float:
        return math.sqrt(2 * self.nu) / number(self.scale)

    @property
    def slope(self) -> float:
        return -(self.rate**2) if self.smoothness == 1 else self.rate**2

    @property
    def smoothness(self) -> int:
        return round(self.nu - 0.5)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        n = self.smoothness - order
        z = np.sqrt(s)
        z *= self.rate
        np.negative(z, out=out)
        np.exp(out, out=out)
        out *= (-0.5 * self.rate**2) ** order / _reverse_bessel(self.smoothness)[-1]
        if n >= 0:
            _times_polynomial(out, z, _reverse_bessel(n))
        else:
            _times_polynomial(out, z, _reverse_bessel(-n - 1))
            np.maximum(z, np.finfo(z.dtype).tiny ** 0.2, out=z)
            if smallest(s) == 0:
                z[s == 0] = np.inf
            for _ in range(-2 * n - 1):
                out /= z
        return out

    def pair(self, s: Array, q: Array, t: Array, *, touching: bool = True) -> None:
        if self.smoothness > 1:
            super().pair(s, q, t, touching=touching)
            t *= 1 / self.slope
            return
        z = np.sqrt(s, out=t) if self.smoothness == 0 else np.sqrt(s)  # exp once
        if self.smoothness == 0:  # T = -q / (scale^2 z)
            z *= -self.rate
            np.exp(z, out=q)
            if touching:
                z[s == 0] = -np.inf
            np.divide(q, z, out=t)
            return
        z *= self.rate
        np.negative(z, out=t)
        np.exp(t, out=t)
        z += 1
        np.multiply(t, z, out=q)


def _reverse_bessel(n: int) -> list[float]:
    """Return the coefficients of θ_n(z), highest power first: 1; 1, 1; 1, 3, 3; ..."""
    return [math.factorial(n + k) / (2**k * math.factorial(k) * math.factorial(n - k)) for k in range(n + 1)]


def _times_polynomial(out: Array, z: Array, coefficients: Sequence[float]) -> None:
    """Multiply `out` by a polynomial of z."""
    if len(coefficients) == 1:
        out *= coefficients[0]
        return
    value = z + coefficients[1]  # the first is 1
    for c in coefficients[2:]:
        value *= z
        value += c
    out *= value


@dataclass
class Exponential(HalfIntegerBessel):
    """Exponential kernel exp(-r / scale), r = |x - y|; its gradient jumps at r = 0 and is set to 0 there.

    Parameters
    ----------
    scale : float, "median" or "auto"
        Length in the units of the data, as in `Gaussian`.

    See Also
    --------
    Matern : Smoother kernels.

    Examples
    --------
    >>> Exponential(2.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]])).round(3)
    array([[1.   , 0.368]])
    """

    scale: float | str = 1.0
    nu = 0.5


@dataclass
class Matern(HalfIntegerBessel):
    """Matern (Sobolev) kernel for half-integer nu, a function of √(2 nu) r / scale.

    Parameters
    ----------
    nu : float
        Smoothness 1/2, 3/2, ..., 39/2; 1/2 is the exponential kernel.
    scale : float, "median" or "auto"
        Length in the units of the data, as in `Gaussian`.

    See Also
    --------
    Gaussian : The limit of large nu.

    Examples
    --------
    >>> Matern(1.5, 2.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]])).round(3)
    array([[1.   , 0.483]])
    >>> Matern(1.5).order
    3
    """

    nu: float = 1.5
    scale: float | str = 1.0

    def check(self) -> None:
        super().check()
        if not is_number(self.nu) or self.nu <= 0 or (2 * self.nu) % 2 != 1 or self.nu > 20:
            raise ParameterError("nu", "1/2, 3/2, 5/2, ... or 39/2", self.nu)


@dataclass
class Radial(GivenProfile):
    """Radial kernel q(s), s = |x - y|², of a given profile.

    Parameters
    ----------
    q : callable
        Profile, a function of an array.
    derivatives : sequence of callable
        Derivatives dq/ds, d²q/ds², ...; with m of them derivatives in x up to order m are available.

    See Also
    --------
    Dot : The same for x.y.

    Examples
    --------
    >>> kernel = Radial(lambda s: 1 / (1 + s), [lambda s: -1 / (1 + s) ** 2])
    >>> kernel(np.zeros((1, 1)), np.array([[1.0], [2.0]]))
    array([[0.5, 0.2]])
    >>> kernel.order
    1
    """

    geometry = DISTANCE
