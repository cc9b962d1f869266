"""Representations of a group by orthogonal matrices: how the values of an equivariant function change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.groups.averaging import by_vectors
from daskspectral.groups.base import Generated, Group
from daskspectral.groups.elements import elements
from daskspectral.manifolds import Isometry, KillingField, Manifold, Product, Sphere
from daskspectral.registry import Named

Array = NDArray[np.float64]

_ROUNDING = 1e-11  # an entry of rho rho^T - 1, or of drho + drho^T
_AGREE = 1e-9  # an entry of what two words for one element give
_MOST = 1000  # elements that are listed to compare all words
_POWERS = 60  # powers of an element of a larger group that are compared with the identity


class Representation(Named, ABC):
    """Orthogonal matrices ρ(g), ρ(g h) = ρ(g) ρ(h): a function f is equivariant if f(g x) = ρ(g) f(x).

    Examples
    --------
    >>> from daskspectral.groups import SignFlips
    >>> VectorRepresentation().matrices(SignFlips(2)).tolist()
    [[[-1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]]
    >>> PseudovectorRepresentation().matrices(SignFlips(2))[0].tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """

    @abstractmethod
    def matrices(self, group: Group) -> Array:
        """rho(g) of each of the group's generators in their order, (q, k, k).

        Raises ValueError for a group that it does not represent.
        """

    @abstractmethod
    def derived(self, group: Group) -> Array:
        """drho(X) of each element X of the group's algebra in their order, (a, k, k): the derivative of ρ(exp(s X)).

        Raises ValueError for a group that it does not represent.
        """

    @final
    def pairs(self, group: Group) -> tuple[list[Isometry], list[KillingField]]:
        """The generators of the group and of its algebra, each with its matrix as one map of d + k coordinates."""
        isometries = zip(group.generators, self.matrices(group), strict=True)
        algebra = zip(group.algebra, self.derived(group), strict=True)
        return [g.beside(Isometry(rho)) for g, rho in isometries], [x.beside(KillingField(rho)) for x, rho in algebra]

    def check(self, group: Group, manifold: Manifold) -> None:
        """Raise ValueError, saying where, unless the matrices multiply as the elements of the group do."""
        self.pairs(group)

    @final
    def components(self, group: Group) -> int:
        """The number k of components of values."""
        return int(self.matrices(group).shape[1])

    @classmethod
    def of(cls, output: Any) -> Representation:
        """A representation by its name, by its matrices (q, k, k), or itself. Raises ValueError for anything else."""
        if isinstance(output, Representation) or (isinstance(output, str) and output in Representation.family()):
            return Representation.named(output, "output")
        if isinstance(output, (np.ndarray, list, tuple)):
            return MatrixRepresentation(output)
        raise ValueError(
            f"output must be {' or '.join(map(repr, Representation.family()))}, matrices (q, k, k), one for each "
            f"generator of the group, or None; it is {output!r}"
        )


@final
@dataclass(frozen=True, repr=False)
class TrivialRepresentation(Representation):
    """rho(g) = 1: an invariant number.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> TrivialRepresentation().matrices(Permutations(3)).tolist()
    [[[1.0]], [[1.0]]]
    """

    name: ClassVar[str] = "trivial"

    def matrices(self, group: Group) -> Array:
        return np.ones((len(group.generators), 1, 1))

    def derived(self, group: Group) -> Array:
        return np.zeros((len(group.algebra), 1, 1))


@final
@dataclass(frozen=True, repr=False)
class VectorRepresentation(Representation):
    """rho(g) is the matrix of g itself: a velocity, a dipole, a force.

    Examples
    --------
    >>> from daskspectral.groups import Rotations
    >>> VectorRepresentation().matrices(Rotations(4)).round(9).tolist()
    [[[0.0, -1.0], [1.0, 0.0]]]
    """

    name: ClassVar[str] = "vector"

    def matrices(self, group: Group) -> Array:
        return _matrices(group.generators, group.dimension)

    def derived(self, group: Group) -> Array:
        return _matrices(group.algebra, group.dimension)


@final
@dataclass(frozen=True, repr=False)
class DeterminantRepresentation(Representation):
    """rho(g) is the determinant of g, 1 or -1: of one vector a pseudoscalar, which reflections negate.

    Of groups that turn several vectors alike it is ambiguous, and refused where it matters: a reflection of two vectors
    together has the determinant 1, and an exchange one of its own. Give the signs of the generators in their order
    (`MatrixRepresentation`).

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> DeterminantRepresentation().matrices(Permutations(3)).tolist()  # of a swap, and of a cycle
    [[[-1.0]], [[1.0]]]
    """

    name: ClassVar[str] = "determinant"

    def matrices(self, group: Group) -> Array:
        return _signs(group)

    def derived(self, group: Group) -> Array:
        return np.zeros((len(group.algebra), 1, 1))


@final
@dataclass(frozen=True, repr=False)
class PseudovectorRepresentation(Representation):
    """rho(g) is det(g) g: an angular momentum, a magnetic field. As `DeterminantRepresentation` for several vectors.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> PseudovectorRepresentation().matrices(Permutations(2)).tolist()
    [[[0.0, -1.0], [-1.0, 0.0]]]
    """

    name: ClassVar[str] = "pseudovector"

    def matrices(self, group: Group) -> Array:
        return _signs(group) * _matrices(group.generators, group.dimension) + 0.0

    def derived(self, group: Group) -> Array:
        return _matrices(group.algebra, group.dimension)


@final
@dataclass(frozen=True, eq=False, repr=False)
class MatrixRepresentation(Representation):
    """A representation by your own orthogonal matrices (q, k, k), one for each generator of a group, in their order.

    Of a continuous group `algebra` (a, k, k) are the antisymmetric matrices drho(X) of the elements X of its algebra.
    Raises ValueError for matrices that are not orthogonal, or not antisymmetric, to 1e-11.

    Examples
    --------
    >>> from daskspectral.groups import Cyclic
    >>> sign = MatrixRepresentation([[[-1.0]]])  # of a shift of four coordinates, of which two make rho = 1
    >>> sign.matrices(Cyclic(4)).shape
    (1, 1, 1)
    """

    given: Array
    algebra: Array

    def __init__(self, given: ArrayLike, algebra: ArrayLike | None = None):
        matrices = _squares(given, "generator of the group")
        k = matrices.shape[1]
        fields = np.zeros((0, k, k)) if algebra is None else _squares(algebra, "element of its algebra")
        if fields.shape[1] != k:
            raise ValueError(f"expected matrices of {k} components for the algebra too, received {fields.shape[1]}")
        off = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(k)).max(axis=(1, 2))
        if (off > _ROUNDING).any():
            number = int(off.argmax())
            raise ValueError(
                f"expected orthogonal matrices of a representation, received one (number {number}) with rho rho^T off "
                f"the identity by {off[number]:.3g}; coordinates in which they are orthogonal exist for every compact "
                "group, and the orthogonal factor of a matrix is scipy.linalg.polar(rho)[0]"
            )
        if (np.abs(fields + fields.transpose(0, 2, 1)) > _ROUNDING).any():
            raise ValueError("expected antisymmetric matrices drho(X) for the algebra, received others")
        self._set(given=matrices, algebra=fields)

    def __repr__(self) -> str:
        return f"MatrixRepresentation({len(self.given)} matrices of {self.given.shape[1]} components)"

    def matrices(self, group: Group) -> Array:
        return _for_each(self.given, len(group.generators), f"generators of {group!r}")

    def derived(self, group: Group) -> Array:
        return _for_each(self.algebra, len(group.algebra), f"elements of the algebra of {group!r}")

    def check(self, group: Group, manifold: Manifold) -> None:
        """Raise ValueError where there are too many or too few matrices, or two words for one element disagree.

        Words are compared for all elements of a group of up to 1000; of larger ones for the powers of generators, of
        their products and of their commutators. Flows that close at 2π have matrices that do.
        """
        isometries, algebra = self.pairs(group)
        d, k = group.dimension, self.given.shape[1]
        found = elements(group, manifold, _MOST) if isometries else None
        if found is not None:
            both = Product(manifold, Sphere(2 * k))
            twice = [g.beside(Isometry(rho)) for g, rho in zip(isometries, self.given, strict=True)]
            if elements(Generated(twice), both, len(found)) is None:  # more than there are elements
                raise ValueError(
                    f"the matrices do not represent {group!r}: words in its generators that are one of its "
                    f"{len(found)} elements have different products of matrices; check the order of the matrices"
                )
            return
        letters = [(f"generator {i}", g) for i, g in enumerate(isometries)]
        letters += [(f"the flow of element {i} of the algebra at 1", x.flow(1.0)) for i, x in enumerate(algebra)]
        letters += [(f"the flow of element {i} of the algebra at pi", x.flow(np.pi)) for i, x in enumerate(algebra)]
        for name, word in _words(letters):
            power = word
            for n in range(1, _POWERS + 1):
                if elements(Generated([power.block(np.arange(d))]), manifold, 1) is not None:
                    off = float(np.abs(power.matrix[d:, d:] - np.eye(k)).max())
                    if off > _AGREE:
                        raise ValueError(
                            f"the matrices do not represent {group!r}: power {n} of {name} moves nothing, and the "
                            f"power of its matrix is off the identity by {off:.3g}; check the order of the matrices"
                        )
                    break
                power = word @ power


def _squares(given: ArrayLike, each: str) -> Array:
    """Matrices (q, k, k), one for `each`. Raises ValueError for anything else."""
    try:
        matrices = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected matrices (q, k, k) of one size, one for each {each}: {error}") from None
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or not matrices.shape[1]:
        raise ValueError(f"expected square matrices (q, k, k), one for each {each}, received shape {matrices.shape}")
    if not np.isfinite(matrices).all():
        raise ValueError("expected finite matrices of a representation, received NaN or infinity")
    return matrices


def _for_each(matrices: Array, count: int, of: str) -> Array:
    if len(matrices) != count:
        raise ValueError(f"expected a matrix for each of the {count} {of}, in their order, received {len(matrices)}")
    return matrices


def _words(letters: list[tuple[str, Isometry]]) -> list[tuple[str, Isometry]]:
    """Letters, and products and commutators of two, with what they are called."""
    words = list(letters)
    for i, (first, g) in enumerate(letters):
        for second, h in letters[:i]:
            words.append((f"the product of {first} and {second}", g @ h))
            words.append((f"the commutator of {first} and {second}", g @ h @ g.inverse @ h.inverse))
    return words


def _matrices(moves: Sequence[Isometry | KillingField], d: int) -> Array:
    """The matrices of generators, or of elements of the algebra, (q, d, d)."""
    return np.array([move.matrix for move in moves], dtype=float).reshape(-1, d, d)


def _signs(group: Group) -> Array:
    """The determinants of the generators, (q, 1, 1).

    Raises ValueError where these are not those of the turns of vectors that all turn alike.
    """
    for size in range(2, group.dimension // 2 + 1):
        if group.dimension % size:
            continue
        parts = [by_vectors(g.matrix, size) for g in group.generators]
        fields = [by_vectors(x.matrix, size) for x in group.algebra if not x.trivial]
        if any(part is None for part in (*parts, *fields)):
            continue
        for number, (g, part) in enumerate(zip(group.generators, parts, strict=True)):
            assert part is not None
            whole, own = (round(float(np.linalg.det(matrix))) for matrix in (g.matrix, part[1]))
            if whole != own:
                raise ValueError(
                    f"{group!r} turns {group.dimension // size} vectors of {size} coordinates alike, and the "
                    f"determinant of generator {number} is {whole} on all of them, {own} on one: give output as "
                    "matrices (q, k, k) of the generators in their order, such as [[[-1.0]]] for a pseudoscalar"
                )
    return np.array([np.rint(np.linalg.det(g.matrix)) for g in group.generators], dtype=float).reshape(-1, 1, 1)
