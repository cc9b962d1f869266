"""What every manifold offers; a concrete one supplies the underscored hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
T = TypeVar("T")


class Manifold(ABC):
    """A compact submanifold of R^d without boundary, as a frozen value.

    Points are rows x (c, d); their floating type is kept. A hook that answers None says that the quantity is
    not known in closed form; the public method then raises ValueError.
    """

    @property
    @abstractmethod
    def ambient(self) -> int:
        """The number of coordinates d."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The intrinsic dimension."""

    @abstractmethod
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name; `deep`, for scikit-learn, changes nothing."""

    @abstractmethod
    def _normals(self, x: Array) -> Array:
        """(codimension, c, d), for a checked x."""

    @abstractmethod
    def _tangents(self, x: Array) -> Array | None:
        """(dimension, c, d), for a checked x."""

    @abstractmethod
    def _distance(self, x: Array) -> Array | None:
        """(c,), for a checked x."""

    @abstractmethod
    def _level(self, level: int) -> tuple[int | float, int] | None:
        """The eigenvalue and its multiplicity, for level >= 0."""

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64] | None:
        """(n, d), uniform."""

    @final
    @property
    def codimension(self) -> int:
        """The number of normals, ambient - dimension."""
        return self.ambient - self.dimension

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
        """Return how far each of the points x (c, d) is off the manifold: (c,), in their units."""
        return self._known(self._distance(self._points(x)), "distances to")

    @final
    def check(self, x: ArrayLike, *, tolerance: float = 1e-6) -> None:
        """Raise ValueError unless the rows of x (c, d) lie on the manifold to within ``tolerance``.

        The error names the row that is farthest off (or not finite). Where `distance` is unknown only the
        shape is checked.
        """
        distance = self._distance(self._points(x))
        if distance is None or not distance.size:
            return
        worst = int(np.argmax(distance))  # NaN counts as the largest
        if not distance[worst] <= tolerance:
            raise ValueError(
                f"expected points on {self!r} to within {tolerance:g}, received row {worst} at distance "
                f"{distance[worst]:.3g}; project the rows onto the manifold"
            )

    @final
    def eigenvalue(self, level: int) -> float:
        """Return the eigenvalue of -Laplace-Beltrami at a level: distinct values ascending, from 0."""
        return float(self._spectrum(level)[0])

    @final
    def multiplicity(self, level: int) -> int:
        """Return the dimension of the eigenspace at a level, exactly."""
        return self._spectrum(level)[1]

    @final
    def eigenvalues(self, count: int) -> NDArray[np.float64]:
        """Return the first ``count`` eigenvalues in ascending order, repeated by multiplicity: (count,)."""
        count = _natural(count, "count")
        found = np.empty(count)
        level = filled = 0
        while filled < count:
            value, multiplicity = self._spectrum(level)
            stop = min(filled + multiplicity, count)
            found[filled:stop] = value
            filled, level = stop, level + 1
        return found

    @final
    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent points (n, d), uniform for the Riemannian volume."""
        return self._known(self._sample(_natural(n, "n"), rng), "uniform samples of")

    @final
    def _spectrum(self, level: int) -> tuple[int | float, int]:
        return self._known(self._level(_natural(level, "level")), "eigenvalues of")

    @final
    def _known(self, value: T | None, what: str) -> T:
        if value is None:
            raise ValueError(f"{what} {self!r} are not known in closed form; use a manifold that offers them")
        return value

    @final
    def _points(self, x: ArrayLike) -> Array:
        points = np.asarray(x)
        if points.ndim != 2 or points.shape[1] != self.ambient:
            raise ValueError(f"expected points (c, {self.ambient}) for {self!r}, received shape {points.shape}")
        if points.dtype.kind not in "fiub":
            raise ValueError(f"expected real coordinates for {self!r}, received {points.dtype}; convert them")
        return points if points.dtype.kind == "f" else points.astype(np.float64)


def _natural(value: int, name: str) -> int:
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"expected {name} to be an integer of 0 or more, received {value!r}")
    return int(value)
