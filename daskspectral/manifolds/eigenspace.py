"""Interface of eigenspaces of the Laplace-Beltrami operator, and levels of eigenvalues by tuples of indices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from daskspectral.manifolds.isometry import Isometry, KillingField

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

TOGETHER = 1e-9
"""Relative difference up to which values are one level."""
LARGEST = 10**7
"""Largest number of enumerated tuples."""

_GROWTH = 1.5  # excess of the bound for enumeration


class IndexLevels:
    """Levels of a function of tuples of indices: ascending values with their tuples.

    ``within(bound)`` returns the tuples (r, m) of values up to a bound and a little above, and these values (r,).
    """

    def __init__(self, within: Callable[[float], tuple[Integers, Floats]], bound: float):
        self._within = within
        none = np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        self._known: tuple[tuple[Integers, Integers, Floats], float] = none, bound

    def level(self, number: int) -> tuple[Integers, float]:
        """Return the tuples of a level (r, m), in lexicographic order, and the least of their values.

        Raises ValueError if more than 10^7 tuples would be enumerated.
        """
        found, bound = self._known
        while len(found[2]) <= number or found[2][number] * (1 + 2 * TOGETHER) > bound:
            bound *= _GROWTH  # the last level may be incomplete
            found = _gathered(*self._within(bound))
            self._known = found, bound
        indices, edges, values = found
        return indices[edges[number] : edges[number + 1]], float(values[number])


def _gathered(indices: Integers, values: Floats) -> tuple[Integers, Integers, Floats]:
    order = np.argsort(values, kind="stable")
    indices, values = indices[order], values[order]
    fresh = np.diff(values, prepend=-1.0) > TOGETHER * values
    starts = np.flatnonzero(fresh)
    order = np.lexsort((*indices.T[::-1], np.cumsum(fresh)))
    return indices[order], np.append(starts, len(values)), values[starts]


def sums_within(tables: Sequence[Floats], bound: float) -> tuple[Integers, Floats]:
    """Return the tuples l (r, m) with Σ_i tables_i[l_i] ≤ bound, and the sums (r,), for tables ascending from 0."""
    indices, sums = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for table in tables:
        counts = np.searchsorted(table, bound * (1 + TOGETHER) - sums, side="right")
        check_count(int(counts.sum()))
        rows = np.repeat(np.arange(len(counts)), counts)
        k = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        indices, sums = np.column_stack([indices[rows], k]), sums[rows] + table[k]
    return indices, sums


def check_count(count: int) -> None:
    """Raise ValueError for more tuples than are enumerated."""
    if count > LARGEST:
        raise ValueError(f"levels are known up to {LARGEST} functions; use a lower level")


# -- eigenspaces -------------------------------------------------------------------------------------------------------


Array = NDArray[np.floating[Any]]
Matrix = Array | csr_array

DENSE_LIMIT = 5000
"""Largest number of functions among which invariant ones are computed."""

_STEP = 1e-30  # its square is negligible relative to 1


def dense(matrix: Matrix) -> Array:
    """Return a matrix as an array (m, m)."""
    return np.asarray(matrix.toarray()) if isinstance(matrix, csr_array) else matrix


def along(polynomials: Callable[[Array], Array], x: Array, direction: Array) -> Array:
    """Return Im f(x + i h v) / h, derivatives of polynomials along directions, exact to rounding.

    Squire and Trapp 1998.
    """
    return np.asarray(polynomials(x + 1j * _STEP * direction).imag / _STEP)


class Functions(ABC):
    """Functions of one eigenvalue of -Laplace-Beltrami, orthonormal for the uniform probability.

    They are combinations φ = T r of raw functions r (zonal functions, waves); Uᵀ φ = (Uᵀ T) r.
    """

    @property
    @abstractmethod
    def ambient(self) -> int: ...

    @property
    @abstractmethod
    def size(self) -> int: ...

    @property
    def transform(self) -> Matrix | None:
        """Matrix T (m, q), or None for the identity."""
        return None

    @abstractmethod
    def raw(self, x: Array) -> Array:
        """Return r(x_k), (q, c), at points x (c, d)."""

    @abstractmethod
    def raw_along(self, x: Array, direction: Array) -> Array:
        """Return direction(x_k) . grad r(x_k), (q, c), for directions (c, d)."""

    def points(self) -> tuple[NDArray[np.float64], ...]:
        """Return the fundamental points, which reproduce the same functions."""
        return ()

    @final
    def values(self, x: ArrayLike) -> Array:
        """Return φ_i(x_k), (c, m), at points x (c, d)."""
        return self._transformed(self.raw(self._checked(x)))

    @final
    def derivatives(self, x: ArrayLike, direction: ArrayLike) -> Array:
        """Return direction(x_k) . grad phi_i(x_k), (c, m)."""
        return self._transformed(self.raw_along(self._checked(x), self._checked(direction)))

    @final
    def _transformed(self, raw: Array) -> Array:
        return np.asarray((raw if self.transform is None else self.transform @ raw).T)

    @final
    def _checked(self, x: ArrayLike) -> Array:
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.ambient:
            raise ValueError(f"expected points (c, {self.ambient}), received shape {points.shape}")
        return points


@final
@dataclass(frozen=True, eq=False)
class Combination(Functions):
    """Functions Uᵀ φ for the harmonics φ of an eigenspace, U (m, r) with orthonormal columns."""

    space: Eigenspace
    vectors: Matrix

    @property
    def ambient(self) -> int:
        return self.space.ambient

    @property
    def size(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def transform(self) -> Matrix:
        u, inner = self.vectors, self.space.transform
        if inner is not None:
            return np.ascontiguousarray(u.T @ inner)
        return np.ascontiguousarray(u.T) if isinstance(u, np.ndarray) else csr_array(u.T)

    def raw(self, x: Array) -> Array:
        return self.space.raw(x)

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self.space.raw_along(x, direction)

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return self.space.points()


class Eigenspace(Functions, ABC):
    """Eigenspace of -Laplace-Beltrami: m functions φ, orthonormal for the uniform probability.

    An isometry g acts by an orthogonal matrix, φ(g x) = D(g) φ(x); a function aᵀ φ is invariant iff D(g) a = a. A
    Killing field X acts by the antisymmetric derivative dD(X) of D(exp(s X)) at s = 0: invariance iff dD(X) a = 0.

    See Also
    --------
    Manifold.eigenfunctions : Returns the eigenspace of a level.

    Examples
    --------
    >>> from daskspectral.manifolds import Sphere
    >>> space = Sphere(3).eigenfunctions(1)
    >>> float(np.sum(space.values([[0.0, 0.0, 1.0]]) ** 2).round(9))  # at every point the multiplicity
    3.0
    """

    eigenvalue: float
    """Eigenvalue of all functions."""

    @abstractmethod
    def action(self, g: Isometry) -> Matrix:
        """Return D(g), (m, m), of an isometry of the manifold, sparse or dense."""

    @abstractmethod
    def derived_action(self, field: KillingField) -> Matrix:
        """Return the antisymmetric matrix dD(X), (m, m), of a Killing field of the manifold."""

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> Matrix | None:
        """Return an orthonormal basis (m, r) of invariant coefficients if a closed form is cheaper, or None."""
        return None
