"""Radial kernels k(x, y) = q(s), s = |x - y|^2: Gaussian, exponential, Matern, and a user's own profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskspectral.devices import smallest
from daskspectral.errors import ParameterError
from daskspectral.kernels.base import Array, OwnProfile, ProfileKernel, check_scale, number
from daskspectral.kernels.geometry import DISTANCE
from daskspectral.validation import is_number


@dataclass
class Gaussian(ProfileKernel):
    """exp(-r^2 / (2 scale^2)), scale in the units of the data or "median".

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
    """z^nu K_nu(z) normalised at 0, z = rate r, nu = n + 1/2: exp(-z) θ_n(z) / θ_n(0).

    Each derivative in s lowers nu by one: d/ds [z^nu K_nu(z)] = -(rate² / 2) z^(nu-1) K_(nu-1)(z)
    (Abramowitz and Stegun 9.6.28). So every order has a closed form.
    """

    geometry = DISTANCE
    nu: float
    scale: float | str

    def check(self) -> None:
        check_scale(self.scale)

    @property
    def rate(self) -> float:
        """z / r."""
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
    """Coefficients of theta_n(z), highest power first: 1; 1, 1; 1, 3, 3; 1, 6, 15, 15; ..."""
    return [math.factorial(n + k) / (2**k * math.factorial(k) * math.factorial(n - k)) for k in range(n + 1)]


def _times_polynomial(out: Array, z: Array, coefficients: Sequence[float]) -> None:
    """out *= polynomial(z) by Horner's rule."""
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
    """exp(-r / scale). Its gradient jumps at r = 0 and counts as 0 there.

    Examples
    --------
    >>> Exponential(2.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]])).round(3)
    array([[1.   , 0.368]])
    """

    scale: float | str = 1.0
    nu = 0.5


@dataclass
class Matern(HalfIntegerBessel):
    """The Matern (Sobolev) kernel for half-integer nu, z = √(2 nu) r / scale; nu = 1/2 is Exponential.

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
class Radial(OwnProfile):
    """A user's own radial kernel: q(s) and its derivatives in s, each a function of an array.

    `derivatives` = (dq/ds, d²q/ds², ...): with m of them, the kernel has derivatives in x up to order m.

    Examples
    --------
    >>> kernel = Radial(lambda s: 1 / (1 + s), [lambda s: -1 / (1 + s) ** 2])
    >>> kernel(np.zeros((1, 1)), np.array([[1.0], [2.0]]))
    array([[0.5, 0.2]])
    >>> kernel.order
    1
    """

    geometry = DISTANCE
