"""Eigenfunctions of a manifold's Laplace-Beltrami operator, in whole eigenspaces."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.errors import renumbered
from daskspectral.forms import Atom
from daskspectral.manifolds import Eigenspace, Manifold
from daskspectral.manifolds.eigenspace import Functions
from daskspectral.manifolds.product import slices_of
from daskspectral.validation import check_integer, check_type

_BUILDING = threading.RLock()  # one thread builds eigenspaces


class LevelBasis(Basis):
    """Functions of a manifold's first levels (eigenspaces): all eigenfunctions, or those with a symmetry."""

    manifold: Manifold
    tolerance: float
    order: float = 1
    holds_constant = True

    @property
    @abstractmethod
    def dimensions(self) -> NDArray[np.int64]:
        """Number of functions of each level, (levels,)."""

    @property
    @abstractmethod
    def raw_parts(self) -> Sequence[Functions]: ...

    @property
    def multiplicities(self) -> NDArray[np.int64]:
        return np.array([self.manifold.multiplicity(level) for level in range(len(self.dimensions))])

    @property
    def size(self) -> int:
        return int(self.dimensions.sum())

    @property
    def dimension(self) -> int:
        return self.manifold.ambient

    @property
    def slices(self) -> list[slice]:
        return slices_of(self.dimensions.tolist())

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        values = [self.manifold.eigenvalue(level) for level in range(len(self.dimensions))]
        return np.repeat(values, self.dimensions)

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """Number of eigenfunctions up to each function's eigenvalue, (p,)."""
        return np.repeat(np.cumsum(self.multiplicities), self.dimensions)

    def check(self, x: Array) -> None:
        if np.isfinite(self.tolerance):
            self.manifold.check(x, tolerance=self.tolerance)

    def remedy(self, order: int) -> str:
        return "Harmonics have first derivatives at most; use a smooth kernel or MonomialBasis."

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _LevelEvaluation(self, block)


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class HarmonicBasis(LevelBasis):
    """Eigenfunctions of a manifold's first levels (eigenspaces), in whole levels.

    They are orthonormal for the uniform probability, by ascending eigenvalue, the constant 1 first, with first
    derivatives. The tangential Dirichlet form on uniform data tends to diag(eigenvalues), except for an `Interval`,
    whose functions are polynomials.

    Parameters
    ----------
    manifold : Manifold
        Manifold with eigenfunctions in closed form.
    count : int
        Largest number of functions; the basis has as many whole levels as fit.
    tolerance : float
        Largest distance of points from the manifold: others raise PointError. Infinity disables the check.

    Raises
    ------
    ValueError
        If the eigenfunctions of the manifold are not known in closed form.

    See Also
    --------
    InvariantBasis : The functions that are invariant under a group.
    EquivariantBasis : Equivariant vector-valued functions.

    Examples
    --------
    >>> from daskspectral.manifolds import Sphere
    >>> basis = HarmonicBasis(Sphere(3), 10)
    >>> basis.size, basis.eigenvalues.tolist()
    (9, [0.0, 2.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 6.0])
    """

    expects: ClassVar = {"manifold": Manifold}

    count: int
    number: int
    """Number of levels."""
    _built: dict[int, Eigenspace]
    """Eigenspaces built so far."""

    def __init__(self, manifold: Manifold, count: int, *, tolerance: float = 1e-5):
        check_type("manifold", manifold, Manifold, "one of daskspectral.manifolds, such as Sphere(3)")
        count = check_integer("count", count)
        if not tolerance > 0:
            raise ValueError(f"tolerance must be a positive distance to the manifold, got {tolerance!r}.")
        number = manifold.levels_within(count)
        self._set(manifold=manifold, count=count, tolerance=float(tolerance), number=number, _built={})
        manifold.eigenfunctions(0)

    @classmethod
    def of_levels(
        cls, manifold: Manifold, count: int, number: int, *, tolerance: float, built: Mapping[int, Eigenspace]
    ) -> HarmonicBasis:
        """Return the functions of the first `number` levels, given those built before."""
        basis = cls.__new__(cls)
        return basis._set(manifold=manifold, count=count, tolerance=tolerance, number=number, _built=dict(built))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with all eigenspaces, which workers share with the driver."""
        return {**self.__dict__, "_built": dict(enumerate(self.levels))}

    @property
    def levels(self) -> tuple[Eigenspace, ...]:
        """Eigenspaces, built at the first access."""
        with _BUILDING:
            for level in range(self.number):
                if level not in self._built:
                    self._built[level] = self.manifold.eigenfunctions(level)
        return tuple(self._built[level] for level in range(self.number))

    def __repr__(self) -> str:
        return f"HarmonicBasis({self.manifold!r}, {self.count})"

    @property
    def dimensions(self) -> NDArray[np.int64]:
        return np.array([self.manifold.multiplicity(level) for level in range(self.number)])

    @property
    def raw_parts(self) -> Sequence[Functions]:
        return self.levels

    @property
    def description(self) -> str:
        return f"the {self.size} eigenfunctions of {self.manifold!r} at its first {self.number} levels"

    def state(self) -> dict[str, Any]:
        points = [space.points() for space in self.levels]
        return {"manifold": self.manifold, "count": self.count, "tolerance": self.tolerance, "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HarmonicBasis:
        """Return the basis of a `state`, with the same functions on any machine."""
        manifold, tolerance = state["manifold"], float(state["tolerance"])
        built = {level: manifold.eigenfunctions(level, points) for level, points in enumerate(state["points"])}
        return cls.of_levels(manifold, int(state["count"]), len(built), tolerance=tolerance, built=built)


class _LevelEvaluation(Evaluation):
    """Combinations T r of raw functions r on one block, computed at the first request."""

    def __init__(self, basis: LevelBasis, block: Block):
        self.basis, self.block = basis, block
        self.parts, self.points = basis.raw_parts, block.x.astype(float, copy=False)
        with renumbered(int, block.points):
            basis.check(self.points)

    @cached_property
    def value(self) -> Array:
        return self._combined([part.raw(self.points) for part in self.parts])

    def along(self, direction: Array) -> Array:
        direction = direction.astype(float, copy=False)
        return self._combined([part.raw_along(self.points, direction) for part in self.parts])

    def _combined(self, raws: Sequence[Array]) -> Array:
        """Return T r, weighted, (p, c) or (p, k c)."""
        sizes = [part.size for part in self.parts]
        out = np.empty((sum(sizes), len(self.points)), self.block.dtype)
        for rows, raw, part in zip(slices_of(sizes), raws, self.parts, strict=True):
            out[rows] = raw if part.transform is None else part.transform @ raw
        return self.block.weighted(out).reshape(self.basis.size, -1)
