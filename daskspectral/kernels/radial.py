"""Radial kernels k(x, y) = q(s), s = |x - y|^2: Gaussian, exponential, Matern, and a user's own profile."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from daskspectral.devices import largest, smallest
from daskspectral.errors import ParameterError, SmoothnessError
from daskspectral.kernels.base import Array, MultiIndex, OwnProfile, ProfileKernel, check_scale, number
from daskspectral.validation import is_number


class RadialKernel(ProfileKernel):
    """k(x, y) = q(|x - y|²). A subclass gives `profile` and `smoothness`.

    A derivative of order m in x is made of derivatives of q in s of the orders ceil(m / 2) to m. `profile` is therefore
    asked for every order up to 2 smoothness + 1, the highest in x; orders above the smoothness come with factors that
    vanish at s = 0. A subclass that knows fewer derivatives declares an `order` of its own, as `Radial` does.

    Examples
    --------
    >>> s, out = np.array([0.0, 4.0]), np.empty(2)
    >>> Exponential(2.0).profile(s, 0, out).round(3)
    array([1.   , 0.368])
    """

    stationary = True

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """How many derivatives of q in s are bounded at s = 0 (infinite when smooth)."""

    @property
    def order(self) -> float:
        return 2 * self.smoothness + 1

    @abstractmethod
    def profile(self, s: Array, order: int, out: Array) -> Array:
        """q^(order)(s) elementwise into `out` (never s itself); 0 at s = 0 where the derivative is unbounded there.

        `order` goes from 0 to the `order` of the kernel, 2 smoothness + 1 unless it declares another.
        """

    def pair(self, s: Array, q: Array, t: Array, *, touching: bool = True) -> None:
        """q(s) and T / slope, T = 2 dq/ds = q'(r)/r, into two buffers; kernels that share work override it.

        `touching=False` promises that no s is 0.
        """
        self.profile(s, 0, q)
        self.profile(s, 1, t)
        t *= 2

    @property
    def slope(self) -> float:
        """A constant factor of T that `pair` leaves out."""
        return 1.0

    @property
    def proportional(self) -> float | None:
        """The constant T / q where T is a multiple of q = exp(proportional s / 2) (the Gaussian), else None."""
        return None

    def argument(self, x: Array, y: Array) -> Array:
        return squared_distances(x, y, exact=self.smoothness < math.inf)

    def diagonal(self, x: Array) -> Array:
        return np.full(len(x), self.profiled(np.zeros(1), 0)[0])

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        # d^a q(u^2)/du^a = sum_k a! / (k! (a-2k)!) (2u)^(a-2k) q^(a-k)(u^2), one factor per coordinate
        total = self.check_derivative(alpha, x)
        s = self.argument(x, y)
        result = np.zeros_like(s)
        derivative = np.empty_like(s)
        for ks in product(*(range(a // 2 + 1) for a in alpha)):
            self.profile(s, total - sum(ks), derivative)
            for axis, (a, k) in enumerate(zip(alpha, ks, strict=True)):
                if a == 0:
                    continue
                derivative *= math.factorial(a) / (math.factorial(k) * math.factorial(a - 2 * k))
                if a > 2 * k:
                    derivative *= (2 * (x[:, axis] - y[:, axis, None])) ** (a - 2 * k)
            result += derivative
        return result

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        t = self.profiled(self.argument(x, y), 1)
        t *= 2
        centre = y.mean(axis=0)
        t *= np.einsum("kd,kd->k", x - centre, direction) - (y - centre) @ direction.T
        return t

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        # d_a d_b q(|u|^2) = 4 q'' u_a u_b + 2 q' (a == b), u = x - y
        if self.order < 2:
            raise SmoothnessError(f"{self} has derivatives up to order {self.order:g}, not 2")
        d = x.shape[1]
        s = self.argument(x, y)
        first, curvature = (self.profiled(s, order) for order in (1, 2))
        curvature *= 4
        first *= 2
        if matrix is None:
            curvature *= s
            first *= d
            return np.add(curvature, first, out=first)
        centre = y.mean(axis=0)
        x, y = x - centre, y - centre
        quadratic = np.zeros_like(s)
        for a in range(d):
            column = np.einsum("kd,kd->k", x, matrix[:, a]) - y @ matrix[:, a].T
            column *= x[:, a] - y[:, a, None]
            quadratic += column
        curvature *= quadratic
        first *= np.trace(matrix, axis1=1, axis2=2)
        return np.add(curvature, first, out=first)


@dataclass
class Gaussian(RadialKernel):
    """exp(-r^2 / (2 scale^2)), scale in the units of the data or "median".

    Examples
    --------
    >>> kernel = Gaussian("median").resolve(2.0)
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [2.0, 0.0]])).round(3)
    array([[1.   , 0.607]])
    """

    scale: float | str = 1.0
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

    def pair(self, s: Array, q: Array, t: Array, *, touching: bool = True) -> None:
        self.profile(s, 0, q)
        np.multiply(q, -1.0 / number(self.scale) ** 2, out=t)


class HalfIntegerBessel(RadialKernel):
    """z^nu K_nu(z) normalised at 0, z = rate r, nu = n + 1/2: exp(-z) θ_n(z) / θ_n(0).

    Each derivative in s lowers nu by one: d/ds [z^nu K_nu(z)] = -(rate² / 2) z^(nu-1) K_(nu-1)(z)
    (Abramowitz and Stegun 9.6.28). So every order has a closed form.
    """

    nu: float
    scale: float | str

    def check(self) -> None:
        check_scale(self.scale)

    @property
    def rate(self) -> float:
        """z / r."""
        return math.sqrt(2 * self.nu) / number(self.scale)

    @property
    def degree(self) -> int:
        """n."""
        return round(self.nu - 0.5)

    @property
    def slope(self) -> float:
        return -(self.rate**2) if self.degree == 1 else self.rate**2

    @property
    def smoothness(self) -> float:
        return self.degree

    def profile(self, s: Array, order: int, out: Array) -> Array:
        n = self.degree - order
        z = np.sqrt(s)
        z *= self.rate
        np.negative(z, out=out)
        np.exp(out, out=out)
        out *= (-0.5 * self.rate**2) ** order / _reverse_bessel(self.degree)[-1]
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
        if self.degree > 1:
            super().pair(s, q, t, touching=touching)
            t *= 1 / self.slope
            return
        z = np.sqrt(s, out=t) if self.degree == 0 else np.sqrt(s)  # exp once
        if self.degree == 0:  # T = -q / (scale^2 z)
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
class Radial(OwnProfile, RadialKernel):
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

    @property
    def smoothness(self) -> float:
        return len(self.derivatives)


def squared_distances(x: Array, y: Array, *, exact: bool = False) -> Array:
    """s (p, c) between points x (c, d) and landmarks y (p, d), never negative, from coordinates about the mean of y.

    With `exact`, pairs that rounding cannot tell from coincident ones, s ≤ 64 eps (|x|² + |y|²), are set to 0.
    """
    centre = y.mean(axis=0)
    x, y = x - centre, y - centre
    xx, yy = np.einsum("kd,kd->k", x, x), np.einsum("id,id->i", y, y)
    s: Array = -2 * (y @ x.T)
    s += yy[:, None]
    s += xx
    clean_distances(s, xx, yy, exact=exact)
    return s


def clean_distances(s: Array, xx: Array, yy: Array, *, exact: bool) -> bool:
    """Clip s (p, c) at 0 in place; `exact` sets coincident pairs to exactly 0. Returns whether some may be 0."""
    if not exact:
        np.maximum(s, 0, out=s)
        return True
    tolerance = 64 * float(np.finfo(s.dtype).eps)
    if smallest(s) > tolerance * (largest(xx) + largest(yy)):
        return False
    s[s <= tolerance * (yy[:, None] + xx)] = 0
    return True
