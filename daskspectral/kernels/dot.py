"""Dot-product kernels k(x, y) = q(t), t = x.y: polynomial, linear, and a user's own profile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from daskspectral.kernels.base import Array, MultiIndex, OwnProfile, ProfileKernel
from daskspectral.validation import NOT_NEGATIVE, POSITIVE, check_integer, check_number


class DotKernel(ProfileKernel):
    """k(x, y) = q(x.y). A subclass gives `profile`.

    Examples
    --------
    >>> t, out = np.array([0.0, 2.0]), np.empty(2)
    >>> Polynomial(2).profile(t, 1, out)
    array([2., 6.])
    """

    @property
    def order(self) -> float:
        return math.inf

    @property
    def affine(self) -> tuple[float, float]:
        """(a, b): `pair` takes u = a t + b."""
        return 1.0, 0.0

    @property
    def slope(self) -> float:
        """A constant factor of q' that `pair` leaves out."""
        return 1.0

    def pair(self, u: Array, q: Array, dq: Array) -> None:
        """q(t) and q'(t) / slope, u = a t + b (`affine`), into two buffers."""
        self.profile(u, 0, q)
        self.profile(u, 1, dq)

    def argument(self, x: Array, y: Array) -> Array:
        return y @ x.T

    def diagonal(self, x: Array) -> Array:
        return self.profiled(np.einsum("kd,kd->k", x, x), 0)

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        result = self.profiled(self.argument(x, y), self.check_derivative(alpha, x))
        for axis, a in enumerate(alpha):
            if a:
                result *= y[:, axis, None] ** a
        return result

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        result = self.profiled(self.argument(x, y), 1)
        result *= y @ direction.T
        return result

    def second(self, x: Array, y: Array, matrix: Array | None = None) -> Array:
        # d_a d_b q(x.y) = q'' y_a y_b
        result = self.profiled(self.argument(x, y), 2)
        squares = np.einsum("ia,ib->iab", y, y).reshape(len(y), -1)
        result *= np.sum(y * y, axis=1)[:, None] if matrix is None else squares @ matrix.reshape(-1, squares.shape[1]).T
        return result


@dataclass
class Polynomial(DotKernel):
    """(offset + x.y / scale²)^degree.

    Theorem 3 of the Galerkin paper takes offset 1/2 and scale √2 max|x|.

    Examples
    --------
    >>> Polynomial(2, offset=1.0)(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[9., 4.]])
    """

    degree: int = 3
    offset: float = 1.0
    scale: float = 1.0

    def check(self) -> None:
        check_integer("degree", self.degree)
        check_number("offset", self.offset, NOT_NEGATIVE)
        check_number("scale", self.scale, POSITIVE)

    def profile(self, s: Array, order: int, out: Array) -> Array:
        degree = int(self.degree)
        if order > degree:
            out[...] = 0
            return out
        rate = 1 / self.scale**2
        base = (s if rate == 1 else s * rate) + self.offset
        power_into(base, degree - order, out)
        if order:
            out *= math.perm(degree, order) * rate**order
        return out

    @property
    def affine(self) -> tuple[float, float]:
        return 1 / self.scale**2, self.offset

    @property
    def slope(self) -> float:
        return int(self.degree) / self.scale**2

    def pair(self, u: Array, q: Array, dq: Array) -> None:
        power_into(u, int(self.degree) - 1, dq)
        np.multiply(u, dq, out=q)


@dataclass
class Linear(DotKernel):
    """x.y.

    Examples
    --------
    >>> Linear()(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[2., 1.]])
    """

    def profile(self, s: Array, order: int, out: Array) -> Array:
        if order == 0:
            np.copyto(out, s)
        else:
            out[...] = 1 if order == 1 else 0
        return out


@dataclass
class Dot(OwnProfile, DotKernel):
    """A user's own dot-product kernel: q(t) and its derivatives in t, each a function of an array.

    Examples
    --------
    >>> kernel = Dot(np.cosh, (np.sinh, np.cosh))
    >>> kernel(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 0.0]])).round(3)
    array([[3.762, 1.   ]])
    """


def power_into(base: Array, exponent: int, out: Array) -> None:
    """out = base ** exponent by multiplication; `out` is not `base`."""
    if exponent == 0:
        out[...] = 1
    elif exponent == 1:
        np.copyto(out, base)
    else:
        factor = base  # out holds the power of the leading bits once two have been read
        for bit in bin(exponent)[3:]:
            np.multiply(factor, factor, out=out)
            factor = out
            if bit == "1":
                np.multiply(out, base, out=out)
