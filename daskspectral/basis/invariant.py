"""The eigenfunctions of a manifold that are invariant under a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.basis.base import Array, Basis, Block, Evaluation
from daskspectral.basis.harmonic import HarmonicBasis, HarmonicEvaluation, Transform, slices_of
from daskspectral.forms import Atom
from daskspectral.groups import Generated, Group, Isometry
from daskspectral.manifolds import Eigenspace, invariant_coefficients
from daskspectral.manifolds.eigenspace import Matrix


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class InvariantBasis(Basis):
    """U^T phi for the harmonics phi of each level and an orthonormal basis U of {a : D(g) a = a for every generator g}.

    These are all invariant functions of the levels, and exactly invariant: |f(g x) - f(x)| is rounding for every g in
    the group and every combination f. They are orthonormal for the uniform probability; the first is the constant 1.
    Levels without invariant functions cost nothing. Raises ValueError where a generator is not an isometry of the
    manifold.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> InvariantBasis(HarmonicBasis(Sphere(3), 100), Permutations(3)).size
    22
    """

    expects: ClassVar = {"harmonic": HarmonicBasis, "group": Group}

    harmonic: HarmonicBasis
    group: Group
    vectors: tuple[Matrix, ...]
    """U (m, r) of each level of the harmonic basis; sparse on tori."""
    _parts: tuple[tuple[Eigenspace, Transform], ...]

    def __init__(self, harmonic: HarmonicBasis, group: Group):
        if not isinstance(harmonic, HarmonicBasis) or not isinstance(group, Group):
            raise TypeError(
                f"InvariantBasis takes a HarmonicBasis and a group of daskspectral.groups; got {harmonic!r}, {group!r}"
            )
        group.check(harmonic.manifold)
        generators = group.generators
        self._set(harmonic, group, tuple(invariant_coefficients(space, generators) for space in harmonic.levels))

    def _set(self, harmonic: HarmonicBasis, group: Group, vectors: tuple[Matrix, ...]) -> None:
        parts = [(space, _combined(space, u)) for space, u in zip(harmonic.levels, vectors, strict=True) if u.shape[1]]
        object.__setattr__(self, "harmonic", harmonic)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "_parts", tuple(parts))

    def __repr__(self) -> str:
        return f"InvariantBasis({self.harmonic!r}, {self.group!r})"

    @property
    def size(self) -> int:
        return sum(u.shape[1] for u in self.vectors)

    @property
    def dimension(self) -> int:
        return self.harmonic.dimension

    @property
    def order(self) -> float:
        return 1

    @property
    def description(self) -> str:
        return f"the {self.size} functions invariant under {self.group!r} among {self.harmonic.description}"

    @property
    def holds_constant(self) -> bool:
        return True

    @property
    def slices(self) -> tuple[slice, ...]:
        """Which functions belong to each level."""
        return slices_of([u.shape[1] for u in self.vectors])

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The eigenvalue of each function, (r,)."""
        return np.repeat([space.eigenvalue for space in self.harmonic.levels], [u.shape[1] for u in self.vectors])

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """D_lambda of each function, (r,): how many harmonics, invariant or not, have its eigenvalue or a lower one."""
        totals = np.cumsum([space.size for space in self.harmonic.levels])
        return np.repeat(totals, [u.shape[1] for u in self.vectors])

    @property
    def coefficients(self) -> csr_array:
        """The invariant functions in the harmonics, block diagonal (p, r)."""
        return csr_array(sparse.block_diag(self.vectors))

    @classmethod
    def all_of(cls, harmonic: HarmonicBasis) -> InvariantBasis:
        """All functions of a harmonic basis, as invariant functions of the group of the identity alone."""
        return cls(harmonic, Generated([Isometry(np.eye(harmonic.dimension))], "Trivial()"))

    def by_level(self, coefficients: Array) -> tuple[Array, ...]:
        """Coefficients (r,) or (r, k) of the invariant functions, in the harmonics of each level: (m,) or (m, k)."""
        return tuple(np.asarray(u @ coefficients[part]) for u, part in zip(self.vectors, self.slices, strict=True))

    def project(self, coefficients: Array) -> Array:
        """The nearest invariant coefficients to coefficients a of the harmonics, (p,) or (p, m): U U^T a (Prop. 6)."""
        if len(coefficients) != self.harmonic.size:
            raise ValueError(
                f"expected coefficients of the {self.harmonic.size} harmonics, received shape {np.shape(coefficients)}"
            )
        u = self.coefficients
        return np.asarray(u @ (u.T @ coefficients))

    def remedy(self, order: int) -> str:
        return self.harmonic.remedy(order)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return HarmonicEvaluation(self.harmonic, self._parts, block)

    def state(self) -> dict[str, Any]:
        return {"harmonic": self.harmonic, "group": self.group, "vectors": [_plain(u) for u in self.vectors]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> InvariantBasis:
        """The inverse of `state`, without solving again."""
        basis = cls.__new__(cls)
        basis._set(state["harmonic"], state["group"], tuple(_matrix(saved) for saved in state["vectors"]))
        return basis


def _combined(space: Eigenspace, u: Matrix) -> Matrix:
    """U^T T, in C order."""
    if space.transform is not None:
        return np.ascontiguousarray(u.T @ space.transform)
    return csr_array(u.T) if isinstance(u, csr_array) else np.ascontiguousarray(u.T)


def _plain(u: Matrix) -> dict[str, Any]:
    if isinstance(u, csr_array):
        return {"shape": u.shape, "data": u.data, "indices": u.indices, "indptr": u.indptr}
    return {"dense": u}


def _matrix(state: Mapping[str, Any]) -> Matrix:
    if "dense" in state:
        return np.asarray(state["dense"])
    return csr_array((state["data"], state["indices"], state["indptr"]), shape=state["shape"])
