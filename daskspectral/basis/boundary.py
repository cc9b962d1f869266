"""Boundary functions, positive inside a domain and 0 on its boundary, and boxes of points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Registered
from daskspectral.validation import POSITIVE, check_number

Array = NDArray[np.floating[Any]]
Interval = tuple[float, float]


class Boundary(Registered, ABC):
    """Boundary function w, positive in a domain, that decreases linearly to 0 at its boundary.

    A subclass implements `values`, and `gradient` and `hessian` for derivatives, or declares a lower `order`.

    See Also
    --------
    BoxBoundary : A box.
    BallBoundary : A ball.
    DirichletBasis : Functions times a boundary function.

    Examples
    --------
    >>> boundary = BallBoundary(2.0)
    >>> boundary.values(np.array([[0.0, 0.0], [0.0, 2.0]])).tolist()
    [1.0, 0.0]
    """

    @property
    def order(self) -> int:
        """Highest order of a known derivative: 0, 1 or 2."""
        return 2

    @property
    def dimension(self) -> int | None:
        """Number of variables d; None if any number is accepted."""
        return None

    @abstractmethod
    def values(self, x: Array) -> Array:
        """Return w (c,) at points x (c, d)."""

    def gradient(self, x: Array) -> Array:
        """Return the gradient of w, (c, d)."""
        raise NotImplementedError

    def hessian(self, x: Array) -> Array:
        """Return the second derivatives of w, (c, d, d)."""
        raise NotImplementedError

    def outside(self, x: Array) -> NDArray[np.bool_]:
        """Return the mask (c,) of points outside the domain."""
        return np.asarray(self.values(x) < 0)

    def sides(self, x: Array) -> Array:
        """Return the distances (n, s) of rows from each part of the boundary, in any unit.

        By default, there is one part.
        """
        return self.values(x)[:, None]


@dataclass(frozen=True, init=False)
class BoxBoundary(Boundary):
    """Boundary of a box: prod_a 4 (x_a - lower_a)(upper_a - x_a) / (upper_a - lower_a)².

    It is 0 on the sides and 1 in the center. A column with the bounds -inf and inf has no sides; with one finite bound,
    its factor is the distance from it.

    Parameters
    ----------
    lower : float or sequence of float
        Lower bounds: a number for one column, or one for each.
    upper : float or sequence of float
        Upper bounds.

    Raises
    ------
    ValueError
        If lower < upper does not hold, the lengths differ, or no bound is finite.

    See Also
    --------
    BallBoundary : Boundary of a ball.
    DirichletBasis : Functions times a boundary function.

    Examples
    --------
    >>> boundary = BoxBoundary([0, -np.inf], [2, np.inf])  # the strip 0 < x < 2
    >>> boundary.values(np.array([[1.0, 7.0], [0.5, 7.0], [2.0, 7.0]])).tolist()
    [1.0, 0.75, 0.0]
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __init__(self, lower: float | Sequence[float], upper: float | Sequence[float]) -> None:
        a, b = (np.atleast_1d(np.asarray(bound, dtype=float)) for bound in (lower, upper))
        if a.ndim != 1 or a.shape != b.shape or not (a < b).all() or not np.isfinite([a, b]).any():
            raise ValueError(
                "BoxBoundary requires lower < upper for every column and at least one finite bound, got "
                f"lower={lower!r}, upper={upper!r}."
            )
        self._set(lower=tuple(a.tolist()), upper=tuple(b.tolist()))

    @property
    def dimension(self) -> int:
        return len(self.lower)

    def values(self, x: Array) -> Array:
        return np.asarray(self._factors(x)[0].prod(axis=1))

    def gradient(self, x: Array) -> Array:
        f, slopes, _ = self._factors(x)
        return np.stack([slopes[:, a] * np.delete(f, a, axis=1).prod(axis=1) for a in range(f.shape[1])], axis=1)

    def hessian(self, x: Array) -> Array:
        f, slopes, bends = self._factors(x)
        d = f.shape[1]
        found = np.empty((len(x), d, d))
        for a in range(d):
            for b in range(a + 1):
                product = bends[:, a] if a == b else slopes[:, a] * slopes[:, b]
                found[:, a, b] = found[:, b, a] = product * np.delete(f, [a, b], axis=1).prod(axis=1)
        return found

    def outside(self, x: Array) -> NDArray[np.bool_]:
        return np.asarray(((x < self.lower) | (x > self.upper)).any(axis=1))

    def sides(self, x: Array) -> Array:
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        low, high = np.isfinite(lower), np.isfinite(upper)
        return np.hstack([x[:, low] - lower[low], upper[high] - x[:, high]])

    def _factors(self, x: Array) -> tuple[Array, Array, Array]:
        """Return each column's factor and first two derivatives, (c, d) each."""
        lower, upper = np.array([self.lower, self.upper])[:, :, None]
        low, high = np.isfinite(lower), np.isfinite(upper)
        above = np.where(low, x.T - np.where(low, lower, 0), 1.0)
        below = np.where(high, np.where(high, upper, 0) - x.T, 1.0)
        unit = np.where(low & high, 4 / (upper - lower) ** 2, 1.0)
        bends = np.broadcast_to(-2 * unit * (low & high), above.shape)
        return (unit * above * below).T, (unit * (low * below - high * above)).T, bends.T


@dataclass(frozen=True)
class BallBoundary(Boundary):
    """Boundary of a ball: 1 - |x - center|² / radius², 0 on the sphere and 1 in the center.

    Parameters
    ----------
    radius : float
        Radius.
    center : tuple of float, optional
        Center (d,); by default the origin.

    See Also
    --------
    BoxBoundary : Boundary of a box.
    DirichletBasis : Functions times a boundary function.

    Examples
    --------
    >>> BallBoundary(2.0, (1.0, 0.0)).gradient(np.array([[3.0, 0.0]])).tolist()
    [[-1.0, -0.0]]
    """

    radius: float = 1.0
    center: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_number("radius", self.radius, POSITIVE)
        if self.center is not None:
            center = np.asarray(self.center, dtype=float)
            if center.ndim != 1 or not np.isfinite(center).all():
                raise ValueError(f"center must be one finite number for each column, got {self.center!r}.")
            self._set(center=tuple(center.tolist()))

    @property
    def dimension(self) -> int | None:
        return None if self.center is None else len(self.center)

    def values(self, x: Array) -> Array:
        return np.asarray(1 - np.einsum("kd,kd->k", self._from_center(x), self._from_center(x)) / self.radius**2)

    def gradient(self, x: Array) -> Array:
        return np.asarray(-2 / self.radius**2 * self._from_center(x))

    def hessian(self, x: Array) -> Array:
        return np.zeros((*x.shape, x.shape[1])) - 2 / self.radius**2 * np.eye(x.shape[1])

    def _from_center(self, x: Array) -> Array:
        return np.asarray(x if self.center is None else x - self.center, dtype=float)


@dataclass(frozen=True, eq=False)
class Box:
    """Box of a lattice of Fourier functions, outside of which rows are excluded from sums, up to a `share`.

    `sides` are (lower, upper) by column, None for periodic ones, `period` (d,) the periods of the functions. Functions
    outside have the values of the nearest point of the box.

    Examples
    --------
    >>> box = Box(((0.0, 2.0), None), np.array([4.0, 1.0]), 0.02)
    >>> box(np.array([[1.0, 9.0], [3.0, 0.0]])).tolist(), box.periods_outside(np.array([[3.0, 0.0]]))
    ([False, True], array([0.25]))
    """

    sides: tuple[Interval | None, ...]
    period: Array
    share: float

    @property
    def center(self) -> Array:
        return np.array([0.5 * (side[0] + side[1]) if side else 0.0 for side in self.sides])

    @property
    def bounds_text(self) -> str:
        pairs = zip(self.period, self.sides, strict=True)
        return f"[{', '.join(f'({s[0]:.6g}, {s[1]:.6g})' if s else f'period {p:.6g}' for p, s in pairs)}]"

    def __str__(self) -> str:
        return f"outside the box {self.bounds_text} of the lattice; pass a wider box"

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        """Return the mask (c,) of points outside the box."""
        found = np.zeros(len(x), dtype=bool)
        columns = np.ascontiguousarray(x.T)  # extremes of contiguous columns are ten times faster
        for column, side in zip(columns, self.sides, strict=True):
            if side and (column.min(initial=side[1]) < side[0] or column.max(initial=side[0]) > side[1]):
                found |= ~((column >= side[0]) & (column <= side[1]))
        return found

    def check(self, outside: int, rows: int) -> None:
        if outside > self.share * rows:
            raise ValueError(
                f"{outside} of {rows} rows lie outside the box {self.bounds_text} of the lattice. Pass a wider box, or "
                f"a larger share than FourierBasis(outside={self.share:g})."
            )

    def nearest(self, x: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return the nearest points of the box, and the mask of coordinates outside."""
        if not self(x).any():
            return x, None
        lower, upper = np.array([side or (-np.inf, np.inf) for side in self.sides]).T
        return np.clip(x, lower, upper, dtype=x.dtype), (x < lower) | (x > upper)

    def periods_outside(self, x: Array) -> Array | None:
        """Return the distances (c,) of points from the box in periods, or None."""
        nearest, outside = self.nearest(x)
        if outside is None:
            return None
        return np.asarray(np.where(outside, np.abs(nearest - x) / self.period, 0.0).max(axis=1))
