"""Eigenfunctions of a manifold's Laplace-Beltrami operator, whole levels at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.errors import SmoothnessError, renumbered
from daskspectral.forms import Atom
from daskspectral.kernels.base import check_index, is_number
from daskspectral.manifolds import Eigenspace, Manifold
from daskspectral.manifolds.eigenspace import Matrix

REMEDY = "harmonics have first derivatives at most; use a smooth kernel or MonomialBasis"
_BUILDING = threading.RLock()  # eigenspaces are built once, however many threads ask


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class HarmonicBasis(Basis):
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

    manifold: Manifold
    count: int
    tolerance: float
    number: int
    """How many levels there are."""
    _built: dict[int, Eigenspace]
    """The eigenspaces that were needed or given."""

    def __init__(self, manifold: Manifold, count: int, *, tolerance: float = 1e-5):
        if not isinstance(manifold, Manifold):
            raise TypeError(f"HarmonicBasis takes a manifold of daskspectral.manifolds; got {manifold!r}")
        if not is_number(count) or count % 1 or count < 1:
            raise ValueError(f"count, the most functions there may be, is a whole number of 1 or more; it is {count!r}")
        if not tolerance > 0:
            raise ValueError(f"tolerance, a distance to the manifold, is a positive number; it is {tolerance!r}")
        self._set(manifold, int(count), tolerance, manifold.levels_within(int(count)), {})
        manifold.eigenfunctions(0)

    @classmethod
    def of_levels(
        cls, manifold: Manifold, count: int, number: int, *, tolerance: float, built: Mapping[int, Eigenspace]
    ) -> HarmonicBasis:
        """The functions of the first `number` levels, some of which were built before."""
        basis = cls.__new__(cls)
        basis._set(manifold, count, tolerance, number, dict(built))
        return basis

    def _set(self, manifold: Manifold, count: int, tolerance: float, number: int, built: dict[int, Eigenspace]) -> None:
        object.__setattr__(self, "manifold", manifold)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "tolerance", float(tolerance))
        object.__setattr__(self, "number", number)
        object.__setattr__(self, "_built", built)

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
    def size(self) -> int:
        return sum(self._sizes)

    @property
    def dimension(self) -> int:
        return self.manifold.ambient

    @property
    def order(self) -> float:
        return 1

    @property
    def description(self) -> str:
        return f"the {self.size} eigenfunctions of {self.manifold!r} at its first {self.number} levels"

    @property
    def holds_constant(self) -> bool:
        return True

    @property
    def slices(self) -> tuple[slice, ...]:
        """Which functions belong to each level."""
        return slices_of(self._sizes)

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The eigenvalue of each function, (p,)."""
        return np.repeat([self.manifold.eigenvalue(level) for level in range(self.number)], self._sizes)

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """D_lambda of each function, (p,): how many functions have its eigenvalue or a lower one."""
        return np.repeat(np.cumsum(self._sizes), self._sizes)

    @property
    def _sizes(self) -> list[int]:
        return [self.manifold.multiplicity(level) for level in range(self.number)]

    def remedy(self, order: int) -> str:
        return REMEDY

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return HarmonicEvaluation(self, self.manifold, self.tolerance, self.levels, block)

    def state(self) -> dict[str, Any]:
        points = [space.points() for space in self.levels]
        return {"manifold": self.manifold, "count": self.count, "tolerance": self.tolerance, "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HarmonicBasis:
        """The inverse of `state`: the same functions on any machine, from their fundamental points."""
        basis, manifold = cls.__new__(cls), state["manifold"]
        built = {level: manifold.eigenfunctions(level, points) for level, points in enumerate(state["points"])}
        basis._set(manifold, int(state["count"]), float(state["tolerance"]), len(built), built)
        return basis


def slices_of(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Consecutive slices of these lengths."""
    ends = np.cumsum(sizes, dtype=int).tolist()
    return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))


class Raw(Protocol):
    """Raw functions r and a matrix T, for the functions T r of points (c, d)."""

    @property
    def size(self) -> int:
        """The number of functions."""

    @property
    def transform(self) -> Matrix | None:
        """T (m, q), or None for the identity."""

    def raw(self, x: Array, /) -> Array:
        """r(x_k), (q, c)."""

    def raw_along(self, x: Array, direction: Array, /) -> Array:
        """direction(x_k) . grad r(x_k), (q, c)."""


class HarmonicEvaluation(Evaluation):
    """Combinations T r of raw functions r on one block, computed at the first request."""

    def __init__(self, basis: Basis, manifold: Manifold, tolerance: float, parts: Sequence[Raw], block: Block):
        self.basis = basis
        self.parts, self.block = parts, block
        self.points = block.x.astype(float, copy=False)
        if np.isfinite(tolerance):
            with renumbered(int, block.points):
                manifold.check(self.points, tolerance=tolerance)
        self._value: Array | None = None

    def feature(self, atom: Atom) -> Array:
        if atom.kind == "value" or (atom.kind == "partial" and atom.order == 0):
            if self._value is None:
                self._value = self._combined([part.raw(self.points) for part in self.parts])
            return self._value
        if atom.kind == "along" and atom.direction is not None:
            direction = self.block.field(atom.direction).astype(float, copy=False)
        elif atom.kind == "partial":
            check_index(atom.alpha, self.basis.dimension)
            if atom.order > 1:
                raise SmoothnessError(
                    f"a form takes derivatives of order {atom.order} of {self.basis.description}; "
                    f"{self.basis.remedy(atom.order)}"
                )
            direction = np.zeros_like(self.points)
            direction[:, atom.alpha.index(1)] = 1
        else:
            raise ValueError("the gradient is a vector; its features are the partial derivatives")
        return self._combined([part.raw_along(self.points, direction) for part in self.parts])

    def _combined(self, raws: Sequence[Array]) -> Array:
        """T r of each part, one below the other, times the square root of the weight, (p, c)."""
        sizes = [part.size for part in self.parts]
        out = np.empty((sum(sizes), len(self.points)), self.block.dtype)
        for rows, raw, part in zip(slices_of(sizes), raws, self.parts, strict=True):
            out[rows] = raw if part.transform is None else part.transform @ raw
        if self.block.scale is not None:
            out *= self.block.scale.astype(self.block.dtype, copy=False)
        return out
