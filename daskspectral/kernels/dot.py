"""Dot-product kernels k(x, y) = q(t), t = x.y: polynomial, linear, and given profiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from daskspectral.kernels.base import Array, GivenProfile, ProfileKernel
from daskspectral.kernels.geometry import DOT
from daskspectral.validation import NOT_NEGATIVE, POSITIVE, check_integer, check_number


@dataclass
class Polynomial(ProfileKernel):
    """Polynomial kernel (offset + x.y / scale²)^degree.

    Theorem 3 of the Galerkin paper uses offset 1/2 and scale √2 max|x|.

    Parameters
    ----------
    degree : int
        Positive degree.
    offset : float
        Constant, at least 0.
    scale : float
        Positive length in the units of the data.

    See Also
    --------
    Linear : The kernel x.y.

    Examples
    --------
    >>> Polynomial(2, offset=1.0)(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[9., 4.]])
    """

    geometry = DOT
    smoothness = math.inf
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

    def pair(self, s: Array, q: Array, t: Array, *, touching: bool = True) -> None:
        power_into(s, int(self.degree) - 1, t)
        np.multiply(s, t, out=q)


@dataclass
class Linear(ProfileKernel):
    """Linear kernel x.y.

    See Also
    --------
    Polynomial : Powers of it.

    Examples
    --------
    >>> Linear()(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([[2., 1.]])
    """

    geometry = DOT
    smoothness = math.inf

    def profile(self, s: Array, order: int, out: Array) -> Array:
        out[...] = s if order == 0 else float(order == 1)
        return out


@dataclass
class Dot(GivenProfile):
    """Dot-product kernel q(t), t = x.y, of a given profile.

    Parameters
    ----------
    q : callable
        Profile, a function of an array.
    derivatives : sequence of callable
        Derivatives q', q'', ...; with m of them derivatives in x up to order m are available.

    See Also
    --------
    Radial : The same for |x - y|.

    Examples
    --------
    >>> kernel = Dot(np.cosh, (np.sinh, np.cosh))
    >>> kernel(np.ones((1, 2)), np.array([[1.0, 1.0], [0.0, 0.0]])).round(3)
    array([[3.762, 1.   ]])
    """

    geometry = DOT


def power_into(base: Array, exponent: int, out: Array) -> None:
    """Write base ** exponent into `out`, which is not `base`, by multiplication."""
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
