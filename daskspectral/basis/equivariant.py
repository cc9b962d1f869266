"""The vector-valued functions on a manifold that are equivariant under a group and a representation of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array
from daskspectral.basis.harmonic import HarmonicBasis, LevelBasis
from daskspectral.groups import Group
from daskspectral.groups.invariants import plain_matrix, saved_matrix
from daskspectral.groups.representations import Representation
from daskspectral.manifolds.eigenspace import Combination, Matrix
from daskspectral.manifolds.invariants import equivariant_coefficients


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class EquivariantBasis(LevelBasis):
    """All f = Aᵀ φ in R^k with f(g x) = ρ(g) f(x) for every g, of the harmonics φ of each level.

    The coefficients A (m, k) of a level are an orthonormal basis of {A : D(g) A ρ(g)ᵀ = A for every generator g}, so
    that |f(g x) - ρ(g) f(x)| is rounding for every g in the group and every combination f. The functions are
    orthonormal for the uniform probability and the inner product of R^k. Raises ValueError where a generator is not an
    isometry of the manifold, and for a representation that does not fit the group.

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
    """Of each level of the harmonic basis the r matrices A, row by row, side by side: (m k, r); sparse on tori."""

    def __init__(self, harmonic: HarmonicBasis, group: Group, representation: Representation):
        if not isinstance(harmonic, HarmonicBasis) or not isinstance(group, Group):
            raise TypeError(
                f"EquivariantBasis takes a HarmonicBasis and a group of daskspectral.groups; got {harmonic!r}, "
                f"{group!r}"
            )
        group.check(harmonic.manifold)
        representation.check(group, harmonic.manifold)
        pairs, k = representation.pairs(group), representation.components(group)
        found = (equivariant_coefficients(space, pairs, k) for space in harmonic.levels)
        self._of(harmonic, group, representation, tuple(found))

    def leading(self, levels: int) -> EquivariantBasis:
        """The functions of the first levels, of the same eigenspaces."""
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
        """All components of the functions of a level, one function after the other."""
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
        """Coefficients (r,) or (r, 1) of the functions, as A (m, k) in the harmonics of each level."""
        flat = np.ravel(coefficients)
        return tuple(
            np.asarray(u @ flat[part]).reshape(-1, self.components)
            for u, part in zip(self.vectors, self.slices, strict=True)
        )

    def remedy(self, order: int) -> str:
        return "derivatives of equivariant functions are not offered"

    def state(self) -> dict[str, Any]:
        vectors = [plain_matrix(u) for u in self.vectors]
        parts = {"harmonic": self.harmonic, "group": self.group, "representation": self.representation}
        return parts | {"vectors": vectors}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> EquivariantBasis:
        """The inverse of `state`, without solving again."""
        vectors = tuple(saved_matrix(saved) for saved in state["vectors"])
        return cls.__new__(cls)._of(state["harmonic"], state["group"], state["representation"], vectors)
