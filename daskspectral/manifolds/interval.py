"""Intervals: coordinates that are not periodic, with Legendre polynomials as functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.manifolds.base import Array, Flat, bounds_of, sides_fault
from daskspectral.manifolds.eigenspace import Eigenspace, Floats, IndexLevels, Integers, along, sums_within
from daskspectral.manifolds.invariants import Move, orbits, positions_among
from daskspectral.manifolds.isometry import Isometry, KillingField


@final
@dataclass(frozen=True, repr=False)
class Interval(Flat):
    """Interval [lower, upper], or the product of m intervals, in coordinates x (c, m).

    Its functions are the Legendre polynomials prod_i √(2 l_i + 1) P_(l_i)(t_i), t_i in [-1, 1], not the cosines of the
    Laplacian, which converge slowly at free ends (for e^x, 40 cosines have an error of 3e-3, 10 polynomials of 5e-10).
    They are eigenfunctions of (Σ_i 2 A_i^(1/2) / L_i)², A = -d/dt (1 - t²) d/dt, with A P_l = l (l + 1) P_l: functions
    of one coordinate precede products of several more than in a `Product`. Values that agree to a relative 1e-9 are
    one level. Beyond an end, functions have the values at that end. Isometries are x -> A x + b with a signed
    permutation A that maps each side to one of the same bounds and length.

    Parameters
    ----------
    lower : float or sequence of m floats
        Lower bounds.
    upper : float or sequence of m floats
        Upper bounds.
    lengths : float or sequence of m floats, optional
        L_i, by default upper_i - lower_i: the longer a side, the more of its functions are among the first. Use equal
        lengths for coordinates of different units.

    Raises
    ------
    ValueError
        If bounds are not finite and ascending, or lengths are not positive.

    See Also
    --------
    PeriodicBox : A box with periodic sides.

    Examples
    --------
    >>> interval = Interval(0, 2)
    >>> interval.eigenvalues(4)
    array([ 0.,  2.,  6., 12.])
    >>> interval.distance([[1.5], [2.5]])
    array([0. , 0.5])
    >>> Interval([0, 0], [1, 300], lengths=[1, 1]).multiplicity(1)
    2
    """

    lengths: tuple[float, ...]

    def __init__(
        self,
        lower: float | Sequence[float],
        upper: float | Sequence[float],
        *,
        lengths: float | Sequence[float] | None = None,
    ):
        a, b = bounds_of(lower, upper, scalar=True)
        sides = b - a if lengths is None else np.atleast_1d(np.asarray(lengths, dtype=np.float64))
        if sides.shape != a.shape or not (np.isfinite(sides).all() and (sides > 0).all()):
            raise ValueError(f"expected a positive length for each of {a.size} coordinates, received {lengths!r}")
        self._set(lower=tuple(a.tolist()), upper=tuple(b.tolist()), lengths=tuple(sides.tolist()))

    def __repr__(self) -> str:
        single = self.ambient == 1
        parts = [repr(bound[0] if single else list(bound)) for bound in (self.lower, self.upper)]
        if (self.widths != self.lengths).any():
            parts.append(f"lengths={self.lengths[0] if single else list(self.lengths)!r}")
        return f"Interval({', '.join(parts)})"

    @property
    def ends(self) -> NDArray[np.float64]:
        return np.array([self.lower, self.upper])

    def _distance(self, x: Array) -> Array:
        return np.asarray(np.linalg.norm(self._beyond(x), axis=1))

    def _departure(self, x: Array) -> Array:
        return np.asarray(np.linalg.norm(self._beyond(x) / self.widths, axis=1))

    def _beyond(self, x: Array) -> Array:
        return np.asarray(np.maximum(np.maximum(self.lower - x, x - self.upper), 0))

    def _level(self, level: int) -> tuple[float, int]:
        degrees, value = self._degrees(level)
        return value, len(degrees)

    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> LegendreSpace:
        return LegendreSpace(self, *self._degrees(level))

    def _fault(self, g: Isometry) -> str | None:
        fault = sides_fault(g, np.array(self.lengths))
        corners = np.sort(g(self.ends), axis=0)
        if fault is None and (np.abs(corners - self.ends) > 1e-9 * self.widths).any():
            return f"it maps the corners {self.ends.tolist()} to {corners.tolist()}"
        return fault

    def _degrees(self, level: int) -> tuple[Integers, float]:
        degrees, value = _spectrum(self).level(level)
        return degrees, float((value * 2 / max(self.lengths)) ** 2)


@lru_cache(maxsize=16)
def _spectrum(interval: Interval) -> IndexLevels:
    """Return the levels of degrees l by Σ_i (L / L_i) (l_i (l_i + 1))^(1/2)."""
    weights = [max(interval.lengths) / length for length in interval.lengths]

    def within(bound: float) -> tuple[Integers, Floats]:
        degrees = [np.arange(2.0 + bound / weight) for weight in weights]
        return sums_within([w * np.sqrt(k * (k + 1)) for w, k in zip(weights, degrees, strict=True)], bound)

    return IndexLevels(within, 2.0)


@final
@dataclass(frozen=True, eq=False)
class LegendreSpace(Eigenspace):
    """Products prod_i √(2 l_i + 1) P_(l_i)(t_i) of one level, with degrees l (r, m).

    A signed permutation permutes the degrees, and reflections change the sign of odd ones: D(g) is sparse. Only the
    zero flow preserves an interval.
    """

    interval: Interval
    degrees: Integers
    eigenvalue: float

    @property
    def ambient(self) -> int:
        return self.interval.ambient

    @property
    def size(self) -> int:
        return len(self.degrees)

    def raw(self, x: Array) -> Array:
        return self._polynomials(self._scaled(x))

    def raw_along(self, x: Array, direction: Array) -> Array:
        lower, upper = self.interval.ends
        speed = np.where((x >= lower) & (x <= upper), direction * (2 / (upper - lower)), 0.0)
        return along(self._polynomials, self._scaled(x), speed)

    def _scaled(self, x: Array) -> Array:
        """Return t (c, m) in [-1, 1]; beyond the ends, the nearer end."""
        lower, upper = self.interval.ends
        return np.asarray(np.clip((2 * x - (lower + upper)) / (upper - lower), -1, 1))

    def _polynomials(self, t: Array) -> Array:
        found = np.ones((self.size, len(t)), dtype=t.dtype)
        for column, degrees in zip(t.T, self.degrees.T, strict=True):
            norms = np.sqrt(2 * np.arange(degrees.max() + 1) + 1)
            values = legvander(column, degrees.max()).T * norms[:, None]
            rows = np.flatnonzero(degrees)
            found[rows] *= values[degrees[rows]]
        return found

    def action(self, g: Isometry) -> csr_array:
        target, phase = self._moved(g)
        return csr_array((np.cos(phase).round(), (np.arange(self.size), target)), shape=(self.size, self.size))

    def derived_action(self, field: KillingField) -> csr_array:
        return csr_array((self.size, self.size))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> csr_array:
        """Return a sparse basis, one function for each orbit with consistent signs."""
        orbit, phase, closed = orbits(self.size, [self._moved(g) for g in isometries])
        rows = np.flatnonzero(closed[orbit])
        columns = (np.cumsum(closed) - 1)[orbit[rows]]
        entries = (np.cos(phase).round() / np.sqrt(np.bincount(orbit))[orbit])[rows]
        return csr_array((entries, (rows, columns)), shape=(self.size, int(closed.sum())))

    def _moved(self, g: Isometry) -> Move:
        """Return indices and phases (0, pi) with phi_k(g x) = ± phi_index(k)(x)."""
        source = np.abs(g.matrix).argmax(axis=1)  # (g x)_i is x_source[i], or its reflection
        reflected = g.matrix[np.arange(self.ambient), source] < 0
        images = np.empty_like(self.degrees)
        images[:, source] = self.degrees
        return positions_among(images, self.degrees), np.pi * (self.degrees[:, reflected].sum(axis=1) % 2)
