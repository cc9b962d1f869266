"""Interface of manifolds; subclasses implement the underscored hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.errors import PointError
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.isometry import Isometry, KillingField, orthogonal_fault
from daskspectral.registry import Registered, arguments_of
from daskspectral.validation import check_integer

Array = NDArray[np.floating[Any]]
MOST_FUNCTIONS = 10**6  # eigenfunctions whose levels `levels_within` counts


class Manifold(Registered, ABC):
    """Compact submanifold of Rᵈ, immutable, without boundary except for `Interval` and products with it.

    Eigenfunctions are of the Laplace-Beltrami operator, on an `Interval` of another operator that isometries commute
    with. Quantities without a closed form raise ValueError.

    See Also
    --------
    Sphere : Unit spheres.
    Implicit : A user-defined manifold.
    daskspectral.testing.check_manifold : Test of a user-defined manifold.

    Examples
    --------
    >>> from daskspectral.manifolds import Sphere
    >>> sphere = Sphere(3)
    >>> sphere.eigenvalues(5)
    array([0., 2., 2., 2., 6.])
    >>> float(sphere.distance([[2.0, 0.0, 0.0]])[0])
    1.0
    """

    @property
    @abstractmethod
    def ambient(self) -> int:
        """Number of coordinates d."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Intrinsic dimension."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name; `deep`, for scikit-learn, has no effect."""
        return arguments_of(self)

    @abstractmethod
    def _normals(self, x: Array) -> Array:
        """Return normals (codimension, c, d) at a checked x."""

    def _tangents(self, x: Array) -> Array | None:
        """Return tangents (dimension, c, d) at a checked x."""
        return None

    def _distance(self, x: Array) -> Array | None:
        """Return distances (c,) of a checked x."""
        return None

    def _level(self, level: int) -> tuple[float, int]:
        """Return the eigenvalue and its multiplicity, for level >= 0."""
        raise self._unknown("eigenvalues of")

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        raise self._unknown("uniform samples of")

    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> Eigenspace:
        """Return the functions of a level >= 0, at saved `points` if passed."""
        raise self._unknown("eigenfunctions of")

    def _fault(self, g: Isometry) -> str | None:
        """Return why a map with an orthogonal matrix is not an isometry, or None."""
        if g.shift.any():
            return f"it shifts the coordinates, by {g.shift}; isometries of embedded points are orthogonal matrices"
        off = float(self.distance(g(self.sample(32, np.random.default_rng(0)))).max())
        return None if off <= 1e-9 else f"it moves points off the manifold, by {off:.3g}"

    def state(self) -> dict[str, Any]:
        return self.get_params(deep=False)

    @property
    def periods(self) -> tuple[float | None, ...]:
        """Period of each coordinate, (d,); None for a coordinate that is not periodic."""
        return (None,) * self.ambient

    @property
    def ends(self) -> NDArray[np.float64]:
        """Bounds of each coordinate on an interval, (2, d); infinite for other coordinates."""
        return np.repeat([[-np.inf], [np.inf]], self.ambient, axis=1)

    def _departure(self, x: Array) -> Array | None:
        """Return the distance in units of the manifold's size, (c,), for a checked x."""
        return self._distance(x)

    @final
    @property
    def codimension(self) -> int:
        """Number of normals, ambient - dimension."""
        return self.ambient - self.dimension

    @final
    def __sklearn_clone__(self) -> Self:
        return self

    @final
    def normals(self, x: ArrayLike) -> Array:
        """Return orthonormal normals (codimension, c, d) at the points x (c, d)."""
        return self._normals(self._points(x))

    @final
    def tangents(self, x: ArrayLike) -> Array | None:
        """Return orthonormal tangents (dimension, c, d) at x (c, d), or None without a cheap closed form."""
        return self._tangents(self._points(x))

    @final
    def distance(self, x: ArrayLike) -> Array:
        """Return the distances (c,) of the points x (c, d) from the manifold, in their units."""
        found = self.known_distance(x)
        if found is None:
            raise self._unknown("distances to")
        return found

    @final
    def known_distance(self, x: ArrayLike) -> Array | None:
        """Return the `distance` (c,) of the points x (c, d), or None without a closed form."""
        return self._distance(self._points(x))

    @final
    def check(self, x: ArrayLike, *, tolerance: float = 1e-6) -> None:
        """Raise PointError unless the rows of x (c, d) are on the manifold to within ``tolerance``.

        The tolerance is a distance, beyond the ends of an interval a share of its width. The error names the farthest
        or non-finite row. If `distance` is unknown, only the shape is checked.
        """
        points = self._points(x)
        departure = self._departure(points)
        if departure is None or not departure.size:
            return
        worst = int(np.argmax(departure))  # NaN counts as the largest
        if not departure[worst] <= tolerance:
            distance = self.distance(points[worst : worst + 1])[0]
            widen = ", or widen the interval" if np.isfinite(self.ends).any() else ""
            raise PointError(
                f"expected points on {self!r} to within {tolerance:g}, received",
                worst,
                f" at distance {distance:.3g}; project the rows onto the manifold{widen}",
            )

    @final
    def eigenvalue(self, level: int) -> float:
        """Return the eigenvalue of -Laplace-Beltrami at a level: distinct values ascending, from 0."""
        return float(self._level(check_integer("level", level, 0))[0])

    @final
    def multiplicity(self, level: int) -> int:
        """Return the dimension of the eigenspace at a level, exactly."""
        return self._level(check_integer("level", level, 0))[1]

    @final
    def eigenvalues(self, count: int) -> NDArray[np.float64]:
        """Return the first ``count`` eigenvalues (count,), ascending, with multiplicity."""
        count = check_integer("count", count, 0)
        found = np.empty(count)
        level = filled = 0
        while filled < count:
            value, multiplicity = self._level(level)
            stop = min(filled + multiplicity, count)
            found[filled:stop] = value
            filled, level = stop, level + 1
        return found

    @final
    def eigenfunctions(self, level: int, points: Iterable[NDArray[np.float64]] | None = None) -> Eigenspace:
        """Return the eigenspace at a level: functions orthonormal for the uniform probability.

        Its basis depends on points chosen once per process; with ``points``, those of `Eigenspace.points()` elsewhere,
        the functions are the same on any machine.
        """
        return self._eigenspace(check_integer("level", level, 0), None if points is None else iter(points))

    @final
    def levels_within(self, count: int) -> int:
        """Return the number of first levels with at most ``count`` eigenfunctions together.

        Raises ValueError for a count above a million.
        """
        count = check_integer("count", count, 0, MOST_FUNCTIONS)
        level = total = 0
        while (total := total + self.multiplicity(level)) <= count:
            level += 1
        return level

    @final
    def check_isometry(self, g: Isometry) -> None:
        """Raise ValueError unless a map of the coordinates is an isometry of the manifold.

        The matrix must be orthogonal to 1e-11, and keep points of an embedded manifold on it (32 are tried).
        """
        self.check_size(g.size, "group")
        fault = orthogonal_fault(g) or self._fault(g)
        if fault is not None:
            raise ValueError(f"expected an isometry of {self!r}: {fault}")

    @final
    def check_killing(self, field: KillingField) -> None:
        """Raise ValueError unless the flow of a field consists of isometries, closed at s = 2π.

        The matrix X must be antisymmetric to 1e-11 with eigenvalues i times integers, and 2π b whole `periods`, both
        to 1e-6; on an embedded manifold the field must be tangential.
        """
        self.check_size(field.size, "field")
        fault = field.fault
        if fault is None and (moved := self._fault(field.flow(1.0))) is not None:
            fault = f"its flow at s = 1 is not an isometry: {moved}"
        fault = fault or self._open(field)
        if fault is not None:
            raise ValueError(f"expected a Killing field of {self!r}: {fault}")

    @final
    def check_size(self, size: int, what: str) -> None:
        """Raise ValueError if `what`, as the message calls it, acts on another number of coordinates."""
        if size != self.ambient:
            raise ValueError(
                f"expected a {what} that acts on the {self.ambient} coordinates of {self!r}, received one that acts on "
                f"{size}"
            )

    @final
    def _open(self, field: KillingField) -> str | None:
        """Return why translations do not close at s = 2 pi, or None."""
        turns = 2 * np.pi * field.shift / [period or np.inf for period in self.periods]
        if np.abs(turns - np.rint(turns)).max() <= 1e-6:
            return None
        return (
            f"2 pi b must be whole periods, so that translations close, got {turns.round(9) + 0.0} of them; "
            "pass a vector between two copies of one point"
        )

    @final
    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent points (n, d), uniform for the Riemannian volume."""
        return self._sample(check_integer("n", n, 0), rng)

    @final
    def _unknown(self, what: str) -> ValueError:
        return ValueError(f"{what} {self!r} are not known in closed form; use another manifold")

    @final
    def _points(self, x: ArrayLike) -> Array:
        points = np.asarray(x)
        if points.ndim != 2 or points.shape[1] != self.ambient:
            raise ValueError(f"expected points (c, {self.ambient}) for {self!r}, received shape {points.shape}")
        if points.dtype.kind not in "fiub":
            raise ValueError(f"expected real coordinates for {self!r}, received {points.dtype}; convert them")
        return points if points.dtype.kind == "f" else points.astype(np.float64)


@dataclass(frozen=True)
class Flat(Manifold):
    """Box of full dimension in Cartesian coordinates, a product of m intervals."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @final
    @property
    def ambient(self) -> int:
        return len(self.lower)

    @final
    @property
    def dimension(self) -> int:
        return self.ambient

    @final
    @property
    def widths(self) -> NDArray[np.float64]:
        return np.asarray(np.array(self.upper) - np.array(self.lower))

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(self.lower, self.upper, (n, self.ambient))

    @final
    def _normals(self, x: Array) -> Array:
        return np.zeros((0, *x.shape), dtype=x.dtype)

    @final
    def _tangents(self, x: Array) -> Array:
        axes = np.eye(self.ambient, dtype=x.dtype)
        return np.repeat(axes[:, None], len(x), axis=1)

    def _distance(self, x: Array) -> Array:
        return np.asarray(0 * x.sum(axis=1))  # NaN where a coordinate is not finite


def bounds_of(lower: ArrayLike, upper: ArrayLike, *, scalar: bool = False) -> tuple[Array, Array]:
    """Return the bounds of m coordinates, (m,) each; raise ValueError if they are not finite and ascending."""
    a, b = (np.array(bound, dtype=np.float64, ndmin=int(scalar)) for bound in (lower, upper))
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise ValueError(f"expected as many lower as upper bounds, received shapes {a.shape} and {b.shape}")
    if not (np.isfinite(b - a).all() and (b > a).all()):
        raise ValueError(f"expected finite bounds lower < upper, received lower={lower!r}, upper={upper!r}")
    return a, b


def sides_fault(g: Isometry, lengths: NDArray[np.float64]) -> str | None:
    """Return why a matrix does not permute sides of equal lengths (m,), or None."""
    entries = np.abs(g.matrix)
    if np.abs(entries - np.rint(entries)).max() > 1e-11:
        return "its matrix is not a signed permutation, and does not map sides to sides"
    source = entries.argmax(axis=1)  # side i is the image of side source[i]
    for i in np.flatnonzero(np.abs(lengths - lengths[source]) > 1e-9 * lengths):
        return f"it maps side {source[i]}, of length {lengths[source[i]]:g}, to side {i}, of length {lengths[i]:g}"
    return None
