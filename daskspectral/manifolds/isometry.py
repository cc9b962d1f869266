"""Isometries as affine maps of the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.registry import Registered


@final
@dataclass(frozen=True, eq=False)
class Isometry(Registered):
    """x -> A x + b in coordinates; on rows x (c, d), x Aᵀ + b. `matrix` is A (d, d), `shift` b (d,), by default 0.

    Raises ValueError where A is not a finite square matrix or b does not fit it. `Manifold.check_isometry` tells
    whether the map is an isometry of a manifold.

    Examples
    --------
    >>> quarter = Isometry([[0, -1], [1, 0]])
    >>> quarter([[1.0, 0.0]])
    array([[0., 1.]])
    >>> (quarter @ quarter.inverse).trivial
    True
    """

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]

    def __init__(self, matrix: ArrayLike, shift: ArrayLike | None = None):
        a = np.array(matrix, dtype=np.float64)
        if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
            raise ValueError(f"expected a square matrix (d, d), received shape {a.shape}")
        b = np.zeros(len(a)) if shift is None else np.array(shift, dtype=np.float64)
        if b.shape != (len(a),):
            raise ValueError(f"expected a shift of shape ({len(a)},) beside a matrix {a.shape}, received {b.shape}")
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError("expected finite entries of a matrix and its shift, received NaN or infinity")
        object.__setattr__(self, "matrix", a)
        object.__setattr__(self, "shift", b)

    @property
    def size(self) -> int:
        """The number of coordinates d."""
        return len(self.matrix)

    @property
    def trivial(self) -> bool:
        """Whether it moves nothing, exactly."""
        return not self.shift.any() and bool((self.matrix == np.eye(self.size)).all())

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """The images (c, d) of points x (c, d)."""
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.size:
            raise ValueError(f"expected points (c, {self.size}), received shape {points.shape}")
        return np.asarray(points @ self.matrix.T + self.shift)

    def __matmul__(self, other: Isometry) -> Isometry:
        """The composition x -> self(other(x))."""
        if not isinstance(other, Isometry):
            return NotImplemented
        if other.size != self.size:
            raise ValueError(f"isometries of {self.size} and of {other.size} coordinates do not compose")
        return Isometry(self.matrix @ other.matrix, self.matrix @ other.shift + self.shift)

    @property
    def inverse(self) -> Isometry:
        """The inverse of a map whose matrix is orthogonal."""
        return Isometry(self.matrix.T, -self.matrix.T @ self.shift)

    def block(self, part: NDArray[np.int64]) -> Isometry:
        """The map of some of the coordinates, by their numbers, where it does not mix them with the others."""
        return Isometry(self.matrix[np.ix_(part, part)], self.shift[part])


def orthogonal_fault(g: Isometry) -> str | None:
    """Why the matrix is not orthogonal, or None: A A^T is I to within 1e-11 an entry."""
    off = float(np.abs(g.matrix @ g.matrix.T - np.eye(g.size)).max())
    return None if off <= 1e-11 else f"its matrix is not orthogonal: A A^T differs from the identity by {off:.3g}"
