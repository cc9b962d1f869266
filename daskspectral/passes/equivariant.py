"""What a regression with an output that changes with the group measures, and what it cannot take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskspectral.basis import Basis, EquivariantBasis, HarmonicBasis, InvariantBasis
from daskspectral.groups import Group, Representation
from daskspectral.manifolds import Manifold
from daskspectral.operators.regression import Regression
from daskspectral.passes.invariant import MOST, Levels

MOST_HARMONICS = 1500  # eigenfunctions, unless told


@dataclass(frozen=True, eq=False)
class Output:
    """How values change with a group: by a `representation`, or not at all (None); `given` is the parameter."""

    given: Any
    group: Group | None
    representation: Representation | None

    @classmethod
    def of(cls, given: Any, group: Group | None) -> Output:
        """From the parameter `output`. Raises ValueError for one that does not exist, and without a group."""
        if given is None:
            return cls(given, group, None)
        if group is None:
            raise ValueError(f"output={given!r} says how values change with a group: give the group")
        return cls(given, group, Representation.of(given))

    def check(self, manifold: Manifold | None) -> None:
        """Raise ValueError where the representation is none of the group."""
        if self.representation is None or self.group is None:
            return
        self.representation.pairs(self.group)
        if manifold is not None:
            self.representation.check(self.group, manifold)

    def check_targets(self, operator: Regression) -> None:
        """Raise ValueError where y has not the components of the representation, and for gradients."""
        if self.representation is None or self.group is None:
            return
        if operator.gradients:
            raise ValueError(f"gradients are for invariant functions: leave them out with output={self.given!r}")
        k = self.representation.components(self.group)
        if (operator.targets or 1) != k:
            what = f"output={self.given!r}" if isinstance(self.given, str) else "output"
            shape = "(n,) or (n, 1)" if k == 1 else f"(n, {k})"
            raise ValueError(
                f"y has {operator.targets or 1} columns, and {what} is a representation by matrices of "
                f"{k} components: give y of shape {shape}, or another output"
            )

    def basis(self, levels: Levels, most: int | None) -> EquivariantBasis:
        """The equivariant functions of the levels within `most` eigenfunctions, by default as many as rows can tell.

        Raises ValueError where the levels that were asked for have no function, or more than there are numbers in y.
        """
        assert self.representation is not None
        assert self.group is not None
        harmonic = HarmonicBasis(levels.manifold, most or MOST_HARMONICS, tolerance=levels.tolerance)
        basis = EquivariantBasis(harmonic, self.group, self.representation)
        numbers = levels.rows * basis.components
        if most is None:
            enough = np.cumsum(basis.dimensions) <= max(1, min(numbers // 2, MOST))
            basis = basis.leading(max(1, int(np.count_nonzero(enough))))
        if not basis.size:
            raise ValueError(
                f"no function of the first {basis.multiplicities.sum()} eigenfunctions of {levels.manifold!r} changes "
                f"with {self.group!r} as output={self.given!r} says, but 0: raise n_eigenfunctions, or change output"
            )
        if basis.size > numbers:
            raise ValueError(
                f"n_eigenfunctions={most} has {basis.size} equivariant functions, more than the {numbers} numbers in "
                "y; lower it"
            )
        return basis

    def made(self, basis: Basis) -> bool:
        """Whether the functions change with the group as told."""
        if self.representation is None or self.group is None or not isinstance(basis, EquivariantBasis):
            return self.representation is None and isinstance(basis, InvariantBasis)
        for own, other in (
            (self.representation.matrices(self.group), basis.representation.matrices(basis.group)),
            (self.representation.derived(self.group), basis.representation.derived(basis.group)),
        ):
            if own.shape != other.shape or not np.allclose(own, other, rtol=0, atol=1e-12):
                return False
        return True
