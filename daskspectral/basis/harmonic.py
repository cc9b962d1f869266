"""Eigenfunctions of a manifold's Laplace-Beltrami operator, whole levels at a time."""

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

_BUILDING = threading.RLock()  # eigenspaces are built once, however many threads ask


class LevelBasis(Basis):
    """Functions of a manifold's first levels, the eigenspaces of its Laplacian: all, or those with a symmetry."""

    manifold: Manifold
    tolerance: float
    order: float = 1
    holds_constant = True

    @property
    @abstractmethod
    def dimensions(self) -> NDArray[np.int64]:
        """How many functions of each level there are, (levels,)."""

    @property
    @abstractmethod
    def raw_parts(self) -> Sequence[Functions]:
        """What is evaluated, one below the other."""

    @property
    def multiplicities(self) -> NDArray[np.int64]:
        """How many eigenfunctions each level has, (levels,)."""
        return np.array([self.manifold.multiplicity(level) for level in range(len(self.dimensions))])

    @property
    def size(self) -> int:
        return int(self.dimensions.sum())

    @property
    def dimension(self) -> int:
        return self.manifold.ambient

    @property
    def slices(self) -> list[slice]:
        """Which functions belong to each level."""
        return slices_of(self.dimensions.tolist())

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The eigenvalue of each function, (p,)."""
        values = [self.manifold.eigenvalue(level) for level in range(len(self.dimensions))]
        return np.repeat(values, self.dimensions)

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """D_lambda of each function, (p,): how many eigenfunctions have its eigenvalue or a lower one."""
        return np.repeat(np.cumsum(self.multiplicities), self.dimensions)

    def check(self, x: Array) -> None:
        """Raise PointError for points (c, d) off the manifold."""
        if np.isfinite(self.tolerance):
            self.manifold.check(x, tolerance=self.tolerance)

    def remedy(self, order: int) -> str:
        return "harmonics have first derivatives at most; use a smooth kernel or MonomialBasis"

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _LevelEvaluation(self, block)


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class HarmonicBasis(LevelBasis):
    """The eigenfunctions of a manifold's first levels, as many whole levels as have at most `count` functions together.

    Orthonormal for the uniform probability, by ascending eigenvalue, the constant 1 first. They have values and first
    derivatives; the tangential Dirichlet form on uniform data tends to diag(eigenvalues), but for an `Interval`, whose
    functions are polynomials. Evaluation raises PointError
    for points farther than `tolerance` from the manifold; infinity turns this check off. Raises ValueError for a
    manifold whose eigenfunctions are not known in closed form.

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
    """How many levels there are."""
    _built: dict[int, Eigenspace]
    """The eigenspaces that were needed or given."""

    def __init__(self, manifold: Manifold, count: int, *, tolerance: float = 1e-5):
        check_type("manifold", manifold, Manifold, "one of daskspectral.manifolds, such as Sphere(3)")
        count = check_integer("count", count)
        if not tolerance > 0:
            raise ValueError(f"tolerance, a distance to the manifold, is a positive number; it is {tolerance!r}")
        number = manifold.levels_within(count)
        self._set(manifold=manifold, count=count, tolerance=float(tolerance), number=number, _built={})
        manifold.eigenfunctions(0)

    @classmethod
    def of_levels(
        cls, manifold: Manifold, count: int, number: int, *, tolerance: float, built: Mapping[int, Eigenspace]
    ) -> HarmonicBasis:
        """The functions of the first `number` levels, some of which were built before."""
        basis = cls.__new__(cls)
        return basis._set(manifold=manifold, count=count, tolerance=tolerance, number=number, _built=dict(built))

    def __getstate__(self) -> dict[str, Any]:
        """With all eigenspaces: workers have the driver's."""
        return {**self.__dict__, "_built": dict(enumerate(self.levels))}

    @property
    def levels(self) -> tuple[Eigenspace, ...]:
        """The eigenspaces, built when they are first asked for."""
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
        """The inverse of `state`: the same functions on any machine, from their fundamental points."""
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
        """T r of each part, one below the other, times the square root of the weight, (p, c) or (p, k c)."""
        sizes = [part.size for part in self.parts]
        out = np.empty((sum(sizes), len(self.points)), self.block.dtype)
        for rows, raw, part in zip(slices_of(sizes), raws, self.parts, strict=True):
            out[rows] = raw if part.transform is None else part.transform @ raw
        return self.block.weighted(out).reshape(self.basis.size, -1)
