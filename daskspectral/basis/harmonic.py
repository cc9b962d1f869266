"""Eigenfunctions of a manifold's Laplace-Beltrami operator, whole levels at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.basis.base import Array, Basis, Block, Evaluation
from daskspectral.errors import SmoothnessError, renumbered
from daskspectral.forms import Atom
from daskspectral.kernels.base import check_index, is_number
from daskspectral.manifolds import Eigenspace, Manifold

Transform = Array | csr_array | None


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class HarmonicBasis(Basis):
    """The eigenfunctions of a manifold's first levels, as many whole levels as have at most `count` functions together.

    Orthonormal for the uniform probability, by ascending eigenvalue, the constant 1 first. They have values and first
    derivatives; the tangential Dirichlet form on uniform data tends to diag(eigenvalues). Evaluation raises PointError
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
    levels: tuple[Eigenspace, ...]
    """The eigenspaces."""

    def __init__(self, manifold: Manifold, count: int, *, tolerance: float = 1e-5):
        if not isinstance(manifold, Manifold):
            raise TypeError(f"HarmonicBasis takes a manifold of daskspectral.manifolds; got {manifold!r}")
        if not is_number(count) or count % 1 or count < 1:
            raise ValueError(f"count, the most functions there may be, is a whole number of 1 or more; it is {count!r}")
        if not tolerance > 0:
            raise ValueError(f"tolerance, a distance to the manifold, is a positive number; it is {tolerance!r}")
        levels = tuple(manifold.eigenfunctions(level) for level in range(manifold.levels_within(int(count))))
        self._set(manifold, int(count), tolerance, levels)

    def _set(self, manifold: Manifold, count: int, tolerance: float, levels: tuple[Eigenspace, ...]) -> None:
        object.__setattr__(self, "manifold", manifold)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "tolerance", float(tolerance))
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        return f"HarmonicBasis({self.manifold!r}, {self.count})"

    @property
    def size(self) -> int:
        return sum(space.size for space in self.levels)

    @property
    def dimension(self) -> int:
        return self.manifold.ambient

    @property
    def order(self) -> float:
        return 1

    @property
    def description(self) -> str:
        return f"the {self.size} eigenfunctions of {self.manifold!r} at its first {len(self.levels)} levels"

    @property
    def holds_constant(self) -> bool:
        return True

    @property
    def slices(self) -> tuple[slice, ...]:
        """Which functions belong to each level."""
        return slices_of([space.size for space in self.levels])

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The eigenvalue of each function, (p,)."""
        return np.repeat([space.eigenvalue for space in self.levels], [space.size for space in self.levels])

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """D_lambda of each function, (p,): how many functions have its eigenvalue or a lower one."""
        sizes = [space.size for space in self.levels]
        return np.repeat(np.cumsum(sizes), sizes)

    def remedy(self, order: int) -> str:
        return "harmonics have first derivatives at most; use a smooth kernel or MonomialBasis"

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return HarmonicEvaluation(self, [(space, space.transform) for space in self.levels], block)

    def state(self) -> dict[str, Any]:
        points = [space.points() for space in self.levels]
        return {"manifold": self.manifold, "count": self.count, "tolerance": self.tolerance, "points": points}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HarmonicBasis:
        """The inverse of `state`: the same functions on any machine, from their fundamental points."""
        basis, manifold = cls.__new__(cls), state["manifold"]
        levels = tuple(manifold.eigenfunctions(level, points) for level, points in enumerate(state["points"]))
        basis._set(manifold, int(state["count"]), float(state["tolerance"]), levels)
        return basis


def slices_of(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Consecutive slices of these lengths."""
    ends = np.cumsum(sizes, dtype=int).tolist()
    return tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True))


class HarmonicEvaluation(Evaluation):
    """Combinations T r of the raw functions r of each eigenspace on one block, computed at the first request."""

    def __init__(self, harmonic: HarmonicBasis, parts: Sequence[tuple[Eigenspace, Transform]], block: Block):
        self.harmonic, self.parts, self.block = harmonic, parts, block
        self.points = block.x.astype(float, copy=False)
        if np.isfinite(harmonic.tolerance):
            with renumbered(int, block.points):
                harmonic.manifold.check(self.points, tolerance=harmonic.tolerance)
        self._value: Array | None = None

    def feature(self, atom: Atom) -> Array:
        if atom.kind == "value" or (atom.kind == "partial" and atom.order == 0):
            if self._value is None:
                self._value = self._combined([space.raw(self.points) for space, _ in self.parts])
            return self._value
        if atom.kind == "along" and atom.direction is not None:
            direction = self.block.field(atom.direction).astype(float, copy=False)
        elif atom.kind == "partial":
            check_index(atom.alpha, self.harmonic.dimension)
            if atom.order > 1:
                raise SmoothnessError(
                    f"a form takes derivatives of order {atom.order} of {self.harmonic.description}; "
                    f"{self.harmonic.remedy(atom.order)}"
                )
            direction = np.zeros_like(self.points)
            direction[:, atom.alpha.index(1)] = 1
        else:
            raise ValueError("the gradient is a vector; its features are the partial derivatives")
        return self._combined([space.raw_along(self.points, direction) for space, _ in self.parts])

    def _combined(self, raws: Sequence[Array]) -> Array:
        """T r of each eigenspace, one below the other, times the square root of the weight, (p, c)."""
        sizes = [len(r) if t is None else t.shape[0] for r, (_, t) in zip(raws, self.parts, strict=True)]
        out = np.empty((sum(sizes), len(self.points)), self.block.dtype)
        for rows, raw, (_, transform) in zip(slices_of(sizes), raws, self.parts, strict=True):
            out[rows] = raw if transform is None else transform @ raw
        if self.block.scale is not None:
            out *= self.block.scale.astype(self.block.dtype, copy=False)
        return out
