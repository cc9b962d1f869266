"""The vector-valued functions on a manifold that are equivariant under a group and a representation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.basis.harmonic import HarmonicBasis, slices_of
from daskspectral.errors import SmoothnessError, renumbered
from daskspectral.forms import Atom
from daskspectral.groups import Group
from daskspectral.groups.invariants import plain_matrix, saved_matrix
from daskspectral.groups.representations import Representation
from daskspectral.manifolds import Eigenspace, Manifold
from daskspectral.manifolds.eigenspace import Matrix
from daskspectral.manifolds.equivariants import equivariant_coefficients


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class EquivariantBasis(Basis):
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
    vectors: tuple[Matrix, ...]
    """Of each level of the harmonic basis the r matrices A, row by row, side by side: (m k, r); sparse on tori."""
    _parts: tuple[tuple[Eigenspace, Matrix], ...]

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
        self._set(harmonic, group, representation, tuple(found))

    def leading(self, levels: int) -> EquivariantBasis:
        """The functions of the first levels, of the same eigenspaces."""
        count = int(self.multiplicities[:levels].sum())
        basis = EquivariantBasis.__new__(EquivariantBasis)
        built = dict(enumerate(self.harmonic.levels[:levels]))
        harmonic = HarmonicBasis.of_levels(self.manifold, count, levels, tolerance=self.harmonic.tolerance, built=built)
        basis._set(harmonic, self.group, self.representation, self.vectors[:levels])
        return basis

    def _set(
        self, harmonic: HarmonicBasis, group: Group, representation: Representation, vectors: tuple[Matrix, ...]
    ) -> None:
        object.__setattr__(self, "harmonic", harmonic)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "representation", representation)
        object.__setattr__(self, "vectors", vectors)
        k = self.components
        parts = [(space, _combined(space, u, k)) for space, u in zip(harmonic.levels, vectors, strict=True)]
        object.__setattr__(self, "_parts", tuple(part for part in parts if part[1].shape[0]))

    def __repr__(self) -> str:
        return f"EquivariantBasis({self.harmonic!r}, {self.group!r}, {self.representation!r})"

    @property
    def size(self) -> int:
        return sum(u.shape[1] for u in self.vectors)

    @property
    def dimension(self) -> int:
        return self.harmonic.dimension

    @property
    def components(self) -> int:
        return self.representation.components(self.group)

    @property
    def manifold(self) -> Manifold:
        """The manifold."""
        return self.harmonic.manifold

    @property
    def dimensions(self) -> NDArray[np.int64]:
        """How many equivariant functions each level has."""
        return np.array([u.shape[1] for u in self.vectors])

    @property
    def multiplicities(self) -> NDArray[np.int64]:
        """How many harmonics each level has."""
        return np.array([space.size for space in self.harmonic.levels])

    @property
    def order(self) -> float:
        return 0

    @property
    def description(self) -> str:
        return (
            f"the {self.size} functions with {self.components} components equivariant under {self.group!r} and "
            f"{self.representation!r} among {self.harmonic.description}"
        )

    @property
    def slices(self) -> tuple[slice, ...]:
        """Which functions belong to each level."""
        return slices_of(self.dimensions.tolist())

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """D_lambda of each function, (r,): how many harmonics have its eigenvalue or a lower one."""
        return np.repeat(np.cumsum(self.multiplicities), self.dimensions)

    def by_level(self, coefficients: Array) -> tuple[Array, ...]:
        """Coefficients (r,) or (r, 1) of the functions, as A (m, k) in the harmonics of each level."""
        flat = np.ravel(coefficients)
        return tuple(
            np.asarray(u @ flat[part]).reshape(-1, self.components)
            for u, part in zip(self.vectors, self.slices, strict=True)
        )

    def check(self, x: Array) -> None:
        """Raise PointError for points (c, d) off the manifold."""
        if np.isfinite(self.harmonic.tolerance):
            self.manifold.check(x, tolerance=self.harmonic.tolerance)

    def remedy(self, order: int) -> str:
        return "derivatives of equivariant functions are not offered"

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _EquivariantEvaluation(self, self._parts, block)

    def state(self) -> dict[str, Any]:
        vectors = [plain_matrix(u) for u in self.vectors]
        parts = {"harmonic": self.harmonic, "group": self.group, "representation": self.representation}
        return parts | {"vectors": vectors}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> EquivariantBasis:
        """The inverse of `state`, without solving again."""
        basis = cls.__new__(cls)
        vectors = tuple(saved_matrix(saved) for saved in state["vectors"])
        basis._set(state["harmonic"], state["group"], state["representation"], vectors)
        return basis


def _combined(space: Eigenspace, u: Matrix, k: int) -> Matrix:
    """The r functions with k components each in the raw functions of an eigenspace: (r k, q)."""
    m, r = space.size, u.shape[1]
    if isinstance(u, csr_array) and space.transform is None:
        entries = u.tocoo()
        rows, columns = entries.coords
        return csr_array((entries.data, (columns * k + rows % k, rows // k)), shape=(r * k, m))
    whole = np.asarray(u.toarray() if isinstance(u, csr_array) else u).reshape(m, k, r).transpose(2, 1, 0)
    flat = whole.reshape(r * k, m)
    return np.ascontiguousarray(flat if space.transform is None else flat @ space.transform)


class _EquivariantEvaluation(Evaluation):
    """The values of all functions on one block, (p, k c)."""

    def __init__(self, basis: EquivariantBasis, parts: Sequence[tuple[Eigenspace, Matrix]], block: Block):
        self.basis, self.parts, self.block = basis, parts, block
        self.points = block.x.astype(float, copy=False)
        with renumbered(int, block.points):
            basis.check(self.points)
        self._value: Array | None = None

    def feature(self, atom: Atom) -> Array:
        if atom.kind != "value" and not (atom.kind == "partial" and atom.order == 0):
            raise SmoothnessError(f"a form takes derivatives of {self.basis.description}; {self.basis.remedy(1)}")
        if self._value is None:
            self._value = self._evaluated()
        return self._value

    def _evaluated(self) -> Array:
        c, k = len(self.points), self.basis.components
        out = np.empty((self.basis.size, k, c), self.block.dtype)
        sizes = [matrix.shape[0] // k for _, matrix in self.parts]
        for rows, (space, matrix) in zip(slices_of(sizes), self.parts, strict=True):
            out[rows] = np.asarray(matrix @ space.raw(self.points)).reshape(-1, k, c)
        if self.block.scale is not None:
            out *= self.block.scale.astype(self.block.dtype, copy=False)
        return out.reshape(len(out), -1)
