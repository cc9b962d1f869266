"""Isometries as affine maps of the coordinates, and Killing fields, the infinitesimal isometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from daskspectral.registry import Registered

_WHOLE = 1e-6  # tolerance of integer eigenvalues
_SAME = 1e-11  # tolerance of equal entries


@dataclass(frozen=True, eq=False)
class _Affine(Registered):
    """Matrix (d, d) and shift (d,) of coordinates."""

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]

    def __init__(self, matrix: ArrayLike, shift: ArrayLike | None = None):
        a = np.array(matrix, dtype=np.float64)
        if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size:
            raise ValueError(f"expected a square matrix (d, d), received shape {a.shape}")
        b = np.zeros(len(a)) if shift is None else np.array(shift, dtype=np.float64)
        if b.shape != (len(a),):
            raise ValueError(f"expected a shift of shape ({len(a)},) for a matrix {a.shape}, received {b.shape}")
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError("expected finite entries of a matrix and its shift, received NaN or infinity")
        self._set(matrix=a, shift=b)

    @final
    @property
    def size(self) -> int:
        return len(self.matrix)

    dimension = size

    @final
    def block(self, part: slice) -> Self:
        """Return the restriction to some coordinates, if they do not mix with others."""
        return type(self)(self.matrix[part, part], self.shift[part])

    @final
    def direct_sum(self, other: Self) -> Self:
        matrix = scipy.linalg.block_diag(self.matrix, other.matrix)
        return type(self)(matrix, np.concatenate([self.shift, other.shift]))


@final
@dataclass(frozen=True, eq=False, init=False)
class Isometry(_Affine):
    """Isometry x -> A x + b in coordinates; on rows x (c, d), x Aᵀ + b.

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        A, finite.
    shift : array-like of shape (d,), optional
        Shift b, by default 0.

    Raises
    ------
    ValueError
        If A is not a finite square matrix or b does not match it.

    See Also
    --------
    Manifold.check_isometry : Check that the map is an isometry of a manifold.

    Examples
    --------
    >>> quarter = Isometry([[0, -1], [1, 0]])
    >>> quarter([[1.0, 0.0]])
    array([[0., 1.]])
    >>> (quarter @ quarter.inverse).trivial
    True
    """

    algebra = ()

    @property
    def generators(self) -> tuple[Isometry]:
        """The isometry itself, as the only generator of a group."""
        return (self,)

    @property
    def trivial(self) -> bool:
        """True for the exact identity."""
        return not self.shift.any() and bool((self.matrix == np.eye(self.size)).all())

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the images (c, d) of points x (c, d)."""
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.size:
            raise ValueError(f"expected points (c, {self.size}), received shape {points.shape}")
        return np.asarray(points @ self.matrix.T + self.shift)

    def __matmul__(self, other: Isometry) -> Isometry:
        if not isinstance(other, Isometry):
            return NotImplemented
        if other.size != self.size:
            raise ValueError(f"isometries of {self.size} and of {other.size} coordinates do not compose")
        return Isometry(self.matrix @ other.matrix, self.matrix @ other.shift + self.shift)

    @property
    def inverse(self) -> Isometry:
        """Return the inverse; the matrix must be orthogonal."""
        return Isometry(self.matrix.T, -self.matrix.T @ self.shift)


@final
@dataclass(frozen=True, eq=False, init=False)
class KillingField(_Affine):
    """Velocity field X x + b of isometries, an element of the Lie algebra of a group, with the flow exp(s X).

    Parameters
    ----------
    matrix : array-like of shape (d, d)
        X, finite.
    shift : array-like of shape (d,), optional
        Shift b, by default 0.

    Raises
    ------
    ValueError
        If X is not a finite square matrix or b does not match it.

    See Also
    --------
    Manifold.check_killing : Check that the flow acts on a manifold and closes at s = 2π.

    Examples
    --------
    >>> turning = KillingField([[0, -1], [1, 0]])
    >>> turning.flow(np.pi / 2)([[1.0, 0.0]]).round(9)
    array([[0., 1.]])
    """

    generators = ()

    @property
    def algebra(self) -> tuple[KillingField]:
        """The field itself, as the only element of the algebra of a group."""
        return (self,)

    @property
    def trivial(self) -> bool:
        """True if it is 0."""
        return not (self.shift.any() or self.matrix.any())

    def flow(self, s: float) -> Isometry:
        """Return the isometry exp(s X) generated in the time s."""
        if not self.matrix.any():
            return Isometry(np.eye(self.size), s * self.shift)
        d = self.size
        affine = np.zeros((d + 1, d + 1))
        affine[:d, :d], affine[:d, d] = self.matrix, self.shift
        moved = scipy.linalg.expm(s * affine)
        return Isometry(moved[:d, :d], moved[:d, d])

    @property
    def fault(self) -> str | None:
        """Return why exp(s X) are not rotations that close at s = 2π, or None.

        X must be antisymmetric to 1e-11, and its eigenvalues i times integers to 1e-6.
        """
        x = self.matrix
        off = float(np.abs(x + x.T).max())
        if not off <= _SAME:
            return (
                f"its matrix X is not antisymmetric: X + X^T has an entry {off:.3g}; the antisymmetric part is "
                "(X - X.T) / 2"
            )
        turns = np.linalg.eigvalsh(1j * x)
        if np.abs(turns - np.rint(turns)).max() <= _WHOLE:
            return None
        turns = turns[turns > _WHOLE]
        return (
            "its matrix X must have i times integers as eigenvalues, got i times "
            f"{np.array2string(turns, precision=6, separator=', ', threshold=8)} and their negatives; scale X, "
            "or pass the rotations of each plane as separate elements"
        )


def orthogonal_fault(g: Isometry) -> str | None:
    """Return why the matrix is not orthogonal (A Aᵀ = I to 1e-11 per entry), or None."""
    off = float(np.abs(g.matrix @ g.matrix.T - np.eye(g.size)).max())
    return None if off <= 1e-11 else f"its matrix is not orthogonal: A A^T differs from the identity by {off:.3g}"
