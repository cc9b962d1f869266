"""Representations of a group by orthogonal matrices, for the values of equivariant functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.groups.base import Group
from daskspectral.manifolds import Isometry, KillingField
from daskspectral.registry import Named

Array = NDArray[np.float64]

_ROUNDING = 1e-11  # an entry of rho rho^T - 1, or of drho + drho^T


class Representation(Named, ABC):
    """Orthogonal matrices ρ(g) with ρ(g h) = ρ(g) ρ(h); f is equivariant if f(g x) = ρ(g) f(x).

    See Also
    --------
    VectorRepresentation, MatrixRepresentation : The representations.

    Examples
    --------
    >>> from daskspectral.groups import SignFlips
    >>> VectorRepresentation().matrices(SignFlips(2)).tolist()
    [[[-1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]]
    """

    @abstractmethod
    def matrices(self, group: Group) -> Array:
        """Return rho(g) of each generator in their order, (q, k, k), or raise ValueError."""

    @abstractmethod
    def derived(self, group: Group) -> Array:
        """Return drho(X), the derivative of ρ(exp(s X)) at s = 0, of each X of the algebra, (a, k, k)."""

    @final
    def pairs(self, group: Group) -> tuple[list[Isometry], list[KillingField]]:
        """Return the generators of group and algebra, each with its matrix as one map of d + k coordinates."""
        isometries = zip(group.generators, self.matrices(group), strict=True)
        algebra = zip(group.algebra, self.derived(group), strict=True)
        return [g.direct_sum(Isometry(rho)) for g, rho in isometries], [
            x.direct_sum(KillingField(rho)) for x, rho in algebra
        ]

    @final
    def components(self, group: Group) -> int:
        """Return the number k of components of an equivariant function."""
        return int(self.matrices(group).shape[1])

    @classmethod
    def of(cls, output: Any) -> Representation:
        """Return a representation by its name or matrices (q, k, k); raise ValueError for other values."""
        if isinstance(output, Representation) or (isinstance(output, str) and output in Representation.family()):
            return Representation.from_name(output, "output")
        if isinstance(output, (np.ndarray, list, tuple)):
            return MatrixRepresentation(output)
        raise ValueError(
            f"output must be {' or '.join(map(repr, Representation.family()))}, matrices (q, k, k), one for each "
            f"generator of the group, or None, got {output!r}"
        )


@final
@dataclass(frozen=True, repr=False)
class VectorRepresentation(Representation):
    """Representation by the matrices of the group: velocities, dipoles, forces.

    See Also
    --------
    MatrixRepresentation : Other matrices.

    Examples
    --------
    >>> from daskspectral.groups import Rotations
    >>> VectorRepresentation().matrices(Rotations(4)).round(9).tolist()
    [[[0.0, -1.0], [1.0, 0.0]]]
    """

    name: ClassVar[str] = "vector"

    def matrices(self, group: Group) -> Array:
        return np.array([g.matrix for g in group.generators]).reshape(-1, group.dimension, group.dimension)

    def derived(self, group: Group) -> Array:
        return np.array([x.matrix for x in group.algebra]).reshape(-1, group.dimension, group.dimension)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MatrixRepresentation(Representation):
    """Representation by given orthogonal matrices, one for each generator of a group.

    Matrices that are not a representation leave few equivariant functions, or only 0.

    Parameters
    ----------
    given : array-like of shape (q, k, k)
        Matrices of the generators, in their order, orthogonal to 1e-11.
    algebra : array-like of shape (a, k, k), optional
        Antisymmetric matrices drho(X) of the elements X of the algebra of a continuous group.

    Raises
    ------
    ValueError
        If matrices are not orthogonal, or not antisymmetric.

    See Also
    --------
    VectorRepresentation : The matrices of the group.

    Examples
    --------
    A pseudovector of one vector, such as an angular momentum, has det(g) g for each generator g:

    >>> from daskspectral.groups import Permutations
    >>> group = Permutations(2)
    >>> pseudovector = MatrixRepresentation([np.linalg.det(g.matrix) * g.matrix for g in group.generators])
    >>> pseudovector.matrices(group).shape
    (1, 2, 2)
    """

    given: Array
    algebra: Array

    def __init__(self, given: ArrayLike, algebra: ArrayLike | None = None):
        matrices = orthogonal_matrices(given)
        k = matrices.shape[1]
        fields = np.zeros((0, k, k)) if algebra is None else _squares(algebra)
        if fields.shape[1] != k:
            raise ValueError(f"algebra must have matrices of {k} components, as the generators, got {fields.shape[1]}")
        if (np.abs(fields + fields.transpose(0, 2, 1)) > _ROUNDING).any():
            raise ValueError("algebra must contain antisymmetric matrices drho(X)")
        self._set(given=matrices, algebra=fields)

    def __repr__(self) -> str:
        return f"MatrixRepresentation({len(self.given)} matrices of {self.given.shape[1]} components)"

    def matrices(self, group: Group) -> Array:
        return _for_each(self.given, len(group.generators), f"generators of {group!r}")

    def derived(self, group: Group) -> Array:
        return _for_each(self.algebra, len(group.algebra), f"elements of the algebra of {group!r}")


def orthogonal_matrices(given: ArrayLike) -> Array:
    """Return orthogonal matrices (q, k, k), one for each generator; raise ValueError for others."""
    matrices = _squares(given)
    off = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(matrices.shape[1])).max(axis=(1, 2))
    if (off > _ROUNDING).any():
        number = int(off.argmax())
        raise ValueError(
            f"matrices must be orthogonal, but A A^T of number {number} differs from the identity by "
            f"{off[number]:.3g}. The nearest orthogonal matrix is scipy.linalg.polar(A)[0]."
        )
    return matrices


def _squares(given: ArrayLike) -> Array:
    try:
        matrices = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"matrices must have the shape (q, k, k): {error}") from None
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not matrices.shape[1]:
        raise ValueError(f"matrices must have the shape (q, k, k), got {matrices.shape}")
    if not np.isfinite(matrices).all():
        raise ValueError("matrices must be finite, got NaN or infinity")
    return matrices


def _for_each(matrices: Array, count: int, of: str) -> Array:
    if len(matrices) != count:
        raise ValueError(f"one matrix is needed for each of the {count} {of}, got {len(matrices)}")
    return matrices
