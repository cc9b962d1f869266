"""Functions on a manifold that are invariant under a group, and equivariant vector-valued functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.basis.base import Array
from daskspectral.basis.harmonic import HarmonicBasis, LevelBasis
from daskspectral.groups import Generated, Group, Isometry
from daskspectral.groups.invariants import Invariants, plain_matrix, saved_matrix
from daskspectral.groups.representations import Representation
from daskspectral.manifolds import Manifold
from daskspectral.manifolds.eigenspace import Combination, Functions, Matrix
from daskspectral.manifolds.interval import LegendreSpace
from daskspectral.manifolds.invariants import equivariant_coefficients
from daskspectral.manifolds.product import TensorFunctions
from daskspectral.validation import check_type

MOST_COST = 2e8  # bound of `Invariants.cost`: some seconds
MOST_LEVELS = 1000


def _check(harmonic: Any, group: Any) -> None:
    check_type("harmonic", harmonic, HarmonicBasis, "a HarmonicBasis")
    check_type("group", group, Group, "one of daskspectral.groups, such as Permutations(3)")


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class InvariantBasis(LevelBasis):
    """Functions of a manifold's first levels that are invariant under a group, |f(g x) - f(x)| to rounding.

    All invariant functions of the levels, orthonormal for the uniform probability, the constant 1 first. With
    harmonics φ of a level they are Uᵀ φ, U an orthonormal basis of {a : D(g) a = a for every generator g, dD(X) a = 0
    for every X of the algebra}. Eigenspaces of more than 250 functions on spheres of five or more coordinates are not
    built if the group permutes these, up to signs.

    Parameters
    ----------
    harmonic : HarmonicBasis
        Functions of the levels.
    group : Group
        Group of isometries of the manifold.

    Raises
    ------
    ValueError
        If a generator is not an isometry of the manifold.

    See Also
    --------
    EquivariantBasis : Vector-valued functions.
    daskspectral.InvariantRegressor : Regression in these functions.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> InvariantBasis(HarmonicBasis(Sphere(3), 100), Permutations(3)).size
    22
    >>> basis = InvariantBasis.within(Sphere(8), Permutations(8), most_invariant=50)
    >>> basis.size, basis.harmonic.size
    (37, 9867)
    """

    expects: ClassVar = {"manifold": Manifold, "group": Group}
    representation: ClassVar[None] = None

    count: int
    group: Group
    functions: tuple[Functions, ...]
    """Invariant functions of each level."""
    _invariants: Invariants

    def __init__(self, harmonic: HarmonicBasis, group: Group):
        _check(harmonic, group)
        invariants = Invariants.of(harmonic.manifold, group)
        self._of(invariants, group, harmonic.count, harmonic.tolerance, harmonic.number)

    def _of(self, invariants: Invariants, group: Group, count: int, tolerance: float, number: int) -> InvariantBasis:
        functions = tuple(invariants.functions(level) for level in range(number))
        self._set(manifold=invariants.manifold, count=count, tolerance=float(tolerance), group=group)
        return self._set(functions=functions, _invariants=invariants)

    @classmethod
    def within(
        cls,
        manifold: Manifold,
        group: Group,
        *,
        most_invariant: int,
        most: int | None = None,
        most_terms: int | None = None,
        tolerance: float = 1e-5,
        invariants: Invariants | None = None,
    ) -> InvariantBasis:
        """Return the whole levels with at most `most_invariant` invariant functions together.

        Functions are counted by characters, without building eigenspaces, if the group can be averaged over; other
        levels up to a cost of some seconds or, if given, up to `most` harmonics D. `most_terms` bounds the cost per
        row. Trailing levels without invariant functions are left out. Raises ValueError if a generator is not an
        isometry of the manifold.
        """
        invariants = invariants or Invariants.of(manifold, group)
        found = harmonics = terms = number = 0
        cost = 0.0
        for level in range(MOST_LEVELS):
            cost += invariants.cost(level)
            harmonics += manifold.multiplicity(level)
            if level and (cost > MOST_COST if most is None else harmonics > most):
                break
            more = invariants.dimension(level)
            terms += invariants.terms(level) if more else 0
            if level and (found + more > most_invariant or (most_terms is not None and terms > most_terms)):
                break
            if more:
                found, number = found + more, level + 1
        count = sum(manifold.multiplicity(level) for level in range(number))
        return cls.__new__(cls)._of(invariants, group, count, tolerance, number)

    def __repr__(self) -> str:
        return f"InvariantBasis(HarmonicBasis({self.manifold!r}, {self.count}), {self.group!r})"

    @property
    def harmonic(self) -> HarmonicBasis:
        """All functions of the levels; missing ones are built at the first access."""
        built = {level: f.space for level, f in enumerate(self.functions) if isinstance(f, Combination)}
        number = len(self.functions)
        return HarmonicBasis.of_levels(self.manifold, self.count, number, tolerance=self.tolerance, built=built)

    @property
    def dimensions(self) -> NDArray[np.int64]:
        return np.array([functions.size for functions in self.functions])

    @cached_property
    def raw_parts(self) -> tuple[Functions, ...]:
        """Functions that are evaluated, with shared factors of products and intervals together."""
        tensors = [f for f in self.functions if isinstance(f, TensorFunctions)]
        if tensors:
            return (TensorFunctions(tuple(term for each in tensors for term in each.terms)),)
        parts = tuple(f for f in self.functions if f.size)
        found = [(f.space, f.vectors) for f in parts if isinstance(f, Combination)]
        spaces = [space for space, _ in found if isinstance(space, LegendreSpace)]
        if spaces:
            together = LegendreSpace(spaces[0].interval, np.concatenate([space.degrees for space in spaces]), np.nan)
            return (Combination(together, csr_array(sparse.block_diag([u for _, u in found]))),)
        return parts

    @property
    def description(self) -> str:
        harmonics = f"the {self.multiplicities.sum()} eigenfunctions of {self.manifold!r}"
        return (
            f"the {self.size} functions invariant under {self.group!r} among {harmonics} at its first "
            f"{len(self.functions)} levels"
        )

    @property
    def vectors(self) -> tuple[Matrix | None, ...]:
        """Matrices U (m, r) of the levels; None for harmonics that were not built."""
        return tuple(f.vectors if isinstance(f, Combination) else None for f in self.functions)

    @classmethod
    def all_of(cls, harmonic: HarmonicBasis) -> InvariantBasis:
        """Return all functions of a harmonic basis, the invariants of the trivial group."""
        return cls(harmonic, Generated([Isometry(np.eye(harmonic.dimension))], "Trivial()"))

    def by_level(self, coefficients: Array) -> tuple[Array, ...]:
        """Return coefficients in the harmonics by level, (m,) or (m, k), from (r,) or (r, k) in this basis.

        Levels whose harmonics were not built keep (r,) or (r, k).
        """
        parts = [coefficients[part] for part in self.slices]
        return tuple(part if u is None else np.asarray(u @ part) for u, part in zip(self.vectors, parts, strict=True))

    def state(self) -> dict[str, Any]:
        number = len(self.functions)
        return {
            "manifold": self.manifold,
            "group": self.group,
            "count": self.count,
            "tolerance": self.tolerance,
            "levels": number,
            "functions": self._invariants.state(number),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> InvariantBasis:
        """Return the basis of a `state`, without solving again."""
        number, saved = state["levels"], state["functions"]
        if not 0 < number <= len(saved.get("levels", range(MOST_LEVELS))):
            raise ValueError(f"functions of {number!r} levels expected, got fewer. The file was changed after saving.")
        invariants = Invariants.of(state["manifold"], state["group"]).restore(saved)
        return cls.__new__(cls)._of(
            invariants, state["group"], int(state["count"]), float(state["tolerance"]), int(number)
        )


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class EquivariantBasis(LevelBasis):
    """Equivariant functions f = Aᵀ φ in R^k, f(g x) = ρ(g) f(x), of the harmonics φ of each level.

    The A (m, k) of a level are an orthonormal basis of {A : D(g) A ρ(g)ᵀ = A for every generator g}, so that |f(g x) -
    ρ(g) f(x)| is rounding error. The functions are orthonormal for the uniform probability and the inner product of
    R^k.

    Parameters
    ----------
    harmonic : HarmonicBasis
        Functions of the levels.
    group : Group
        Group of isometries of the manifold.
    representation : Representation
        Representation ρ of the group on R^k.

    Raises
    ------
    ValueError
        If a generator is not an isometry of the manifold, or the representation does not fit the group.

    See Also
    --------
    InvariantBasis : Invariant scalar functions.
    daskspectral.InvariantRegressor : Regression in these functions.

    Examples
    --------
    >>> from daskspectral.groups import Permutations, VectorRepresentation
    >>> from daskspectral.manifolds import Sphere
    >>> basis = EquivariantBasis(HarmonicBasis(Sphere(3), 9), Permutations(3), VectorRepresentation())
    >>> basis.size, basis.components  # of degree 0, 1 and 2
    (6, 3)
    """

    expects: ClassVar = {"harmonic": HarmonicBasis, "group": Group, "representation": Representation}

    harmonic: HarmonicBasis
    group: Group
    representation: Representation
    order = 0
    holds_constant = False
    vectors: tuple[Matrix, ...]
    """The r matrices A of each level as columns, (m k, r); sparse on tori."""

    def __init__(self, harmonic: HarmonicBasis, group: Group, representation: Representation):
        _check(harmonic, group)
        group.check(harmonic.manifold)
        pairs, k = representation.pairs(group), representation.components(group)
        found = (equivariant_coefficients(space, pairs, k) for space in harmonic.levels)
        self._of(harmonic, group, representation, tuple(found))

    def leading(self, levels: int) -> EquivariantBasis:
        """Return the functions of the first levels, from the same eigenspaces."""
        count = int(self.multiplicities[:levels].sum())
        built = dict(enumerate(self.harmonic.levels[:levels]))
        harmonic = HarmonicBasis.of_levels(self.manifold, count, levels, tolerance=self.tolerance, built=built)
        basis = EquivariantBasis.__new__(EquivariantBasis)
        return basis._of(harmonic, self.group, self.representation, self.vectors[:levels])

    def _of(
        self, harmonic: HarmonicBasis, group: Group, representation: Representation, vectors: tuple[Matrix, ...]
    ) -> EquivariantBasis:
        self._set(harmonic=harmonic, group=group, representation=representation, vectors=vectors)
        return self._set(manifold=harmonic.manifold, tolerance=harmonic.tolerance)

    def __repr__(self) -> str:
        return f"EquivariantBasis({self.harmonic!r}, {self.group!r}, {self.representation!r})"

    @property
    def components(self) -> int:
        return self.representation.components(self.group)

    @cached_property
    def raw_parts(self) -> tuple[Combination, ...]:
        """All components of the functions of a level, function by function."""
        parts = []
        for space, u in zip(self.harmonic.levels, self.vectors, strict=True):
            by_function = np.arange(u.shape[1] * self.components).reshape(self.components, -1).T.ravel()
            if u.shape[1]:
                parts.append(Combination(space, u.reshape((space.size, -1))[:, by_function]))
        return tuple(parts)

    @property
    def dimensions(self) -> NDArray[np.int64]:
        return np.array([u.shape[1] for u in self.vectors])

    @property
    def description(self) -> str:
        return (
            f"the {self.size} functions with {self.components} components equivariant under {self.group!r} and "
            f"{self.representation!r} among {self.harmonic.description}"
        )

    def by_level(self, coefficients: Array) -> tuple[Array, ...]:
        """Return coefficients A (m, k) in the harmonics of each level, from (r,) or (r, 1)."""
        flat = np.ravel(coefficients)
        return tuple(
            np.asarray(u @ flat[part]).reshape(-1, self.components)
            for u, part in zip(self.vectors, self.slices, strict=True)
        )

    def remedy(self, order: int) -> str:
        return "Derivatives of equivariant functions are not implemented."

    def state(self) -> dict[str, Any]:
        vectors = [plain_matrix(u) for u in self.vectors]
        parts = {"harmonic": self.harmonic, "group": self.group, "representation": self.representation}
        return parts | {"vectors": vectors}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> EquivariantBasis:
        vectors = tuple(saved_matrix(saved) for saved in state["vectors"])
        return cls.__new__(cls)._of(state["harmonic"], state["group"], state["representation"], vectors)
