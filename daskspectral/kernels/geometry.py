"""Geometries of kernels: the argument s(x, y) of a profile q, and derivatives of q(s(x, y)) in x.

Points are x (c, d), landmarks y (p, d). q(s, order) returns a derivative of the profile, a new array. Gradients in x
are T (x - y) for distances and T y for dot products, with T = `factor` q'(s).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import largest, smallest

Array = NDArray[np.floating[Any]]
MultiIndex = tuple[int, ...]
Derivatives = Callable[[Array, int], Array]


class Distance:
    """Squared distances, s = |x - y|²."""

    factor = 2.0

    def order(self, smoothness: float) -> float:
        """Return the highest order of a bounded derivative in x."""
        return 2 * smoothness + 1

    def argument(self, x: Array, y: Array, *, exact: bool) -> Array:
        """Return s (p, c), exactly 0 for coincident points if `exact`."""
        return squared_distances(x, y, exact=exact)

    def diagonal(self, x: Array) -> Array:
        return np.zeros(len(x))

    def partial(self, q: Derivatives, s: Array, x: Array, y: Array, alpha: MultiIndex) -> Array:
        """Return the partial derivative of q(s) in x, as `Kernel.partial`."""
        # d^a q(u^2)/du^a = sum_k a! / (k! (a-2k)!) (2u)^(a-2k) q^(a-k)(u^2), one factor per coordinate
        result = np.zeros_like(s)
        for ks in product(*(range(a // 2 + 1) for a in alpha)):
            derivative = q(s, sum(alpha) - sum(ks))
            for axis, (a, k) in enumerate(zip(alpha, ks, strict=True)):
                if a == 0:
                    continue
                derivative *= math.factorial(a) / (math.factorial(k) * math.factorial(a - 2 * k))
                if a > 2 * k:
                    derivative *= (2 * (x[:, axis] - y[:, axis, None])) ** (a - 2 * k)
            result += derivative
        return result

    def along(self, q: Derivatives, s: Array, x: Array, y: Array, direction: Array) -> Array:
        t = q(s, 1)
        t *= 2
        center = y.mean(axis=0)
        t *= np.einsum("kd,kd->k", x - center, direction) - (y - center) @ direction.T
        return t

    def second(self, q: Derivatives, s: Array, x: Array, y: Array, matrix: Array | None) -> Array:
        # d_a d_b q(|u|^2) = 4 q'' u_a u_b + 2 q' (a == b), u = x - y
        first, curvature, d = q(s, 1), q(s, 2), x.shape[1]
        curvature *= 4
        first *= 2
        if matrix is None:
            curvature *= s
            first *= d
            return np.add(curvature, first, out=first)
        center = y.mean(axis=0)
        x, y = x - center, y - center
        quadratic = np.zeros_like(s)
        for a in range(d):
            column = np.einsum("kd,kd->k", x, matrix[:, a]) - y @ matrix[:, a].T
            column *= x[:, a] - y[:, a, None]
            quadratic += column
        curvature *= quadratic
        first *= np.trace(matrix, axis1=1, axis2=2)
        return np.add(curvature, first, out=first)


class DotProduct:
    """Dot products, s = x.y."""

    factor = 1.0

    def order(self, smoothness: float) -> float:
        return smoothness

    def argument(self, x: Array, y: Array, *, exact: bool) -> Array:
        return y @ x.T

    def diagonal(self, x: Array) -> Array:
        return np.asarray(np.einsum("kd,kd->k", x, x))

    def partial(self, q: Derivatives, s: Array, x: Array, y: Array, alpha: MultiIndex) -> Array:
        result = q(s, sum(alpha))
        for axis, a in enumerate(alpha):
            if a:
                result *= y[:, axis, None] ** a
        return result

    def along(self, q: Derivatives, s: Array, x: Array, y: Array, direction: Array) -> Array:
        result = q(s, 1)
        result *= y @ direction.T
        return result

    def second(self, q: Derivatives, s: Array, x: Array, y: Array, matrix: Array | None) -> Array:
        # d_a d_b q(x.y) = q'' y_a y_b
        result = q(s, 2)
        squares = np.einsum("ia,ib->iab", y, y).reshape(len(y), -1)
        result *= np.sum(y * y, axis=1)[:, None] if matrix is None else squares @ matrix.reshape(-1, squares.shape[1]).T
        return result


Geometry = Distance | DotProduct
DISTANCE = Distance()
"""The geometry of radial kernels, functions of s = |x - y|²."""
DOT = DotProduct()
"""The geometry of dot-product kernels, functions of s = x.y."""


def squared_distances(x: Array, y: Array, *, exact: bool = False) -> Array:
    """Return |x - y|² (p, c) for points x (c, d) and landmarks y (p, d), centered at the mean of y.

    If `exact`, pairs that rounding cannot distinguish from coincident ones, s ≤ 64 eps (|x|² + |y|²), are set to 0.
    """
    center = y.mean(axis=0)
    x, y = x - center, y - center
    xx, yy = np.einsum("kd,kd->k", x, x), np.einsum("id,id->i", y, y)
    s: Array = -2 * (y @ x.T)
    s += yy[:, None]
    s += xx
    clean_distances(s, xx, yy, exact=exact)
    return s


def clean_distances(s: Array, xx: Array, yy: Array, *, exact: bool) -> bool:
    """Clip s (p, c) at 0 in place, if `exact` to 0 for coincident pairs; return whether some may be 0."""
    if not exact:
        np.maximum(s, 0, out=s)
        return True
    tolerance = 64 * float(np.finfo(s.dtype).eps)
    if smallest(s) > tolerance * (largest(xx) + largest(yy)):
        return False
    s[s <= tolerance * (yy[:, None] + xx)] = 0
    return True
