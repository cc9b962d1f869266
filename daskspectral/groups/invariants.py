"""Invariant functions on a manifold, level by level, each computed by the cheapest method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, cast, final

import numpy as np
from scipy.sparse import csr_array

from daskspectral.groups.averaging import average_over
from daskspectral.groups.base import Group
from daskspectral.manifolds import Isometry, KillingField, Manifold, Product, Sphere, invariant_coefficients
from daskspectral.manifolds.averages import PermutationAverage
from daskspectral.manifolds.eigenspace import Combination, Functions, Matrix
from daskspectral.manifolds.invariants import check_dense
from daskspectral.manifolds.product import TensorFunctions, factor_moves

BUILT = 250
"""Larger eigenspaces are not built if an average over the group is available."""

Saved = Mapping[str, Any]


@final
@dataclass(frozen=True, eq=False)
class Invariants:
    """Invariant functions of each level of a manifold under a group.

    Null spaces of small eigenspaces; averages of zonal kernels (`average`) of large ones on spheres; products of
    invariant functions of the factors if each generator moves one factor.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> found = Invariants.of(Sphere(20), Permutations(20))
    >>> found.dimension(8), Sphere(20).multiplicity(8)
    (11, 2042975)
    >>> found.functions(8).values(Sphere(20).sample(3, np.random.default_rng(0))).shape
    (3, 11)
    """

    manifold: Manifold
    isometries: tuple[Isometry, ...]
    algebra: tuple[KillingField, ...]
    _found: dict[int, Functions] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, manifold: Manifold, group: Group) -> Invariants:
        """Return the invariants, or raise ValueError unless the group acts by isometries."""
        group.check(manifold)
        isometries = tuple(g for g in group.generators if not g.trivial)
        return cls(manifold, isometries, tuple(x for x in group.algebra if not x.trivial))

    def dimension(self, level: int) -> int:
        """Return the number of invariant functions, by characters if possible."""
        if self.average is not None:
            return self.average.dimension(level)
        if self.factors:
            return sum(prod(factor.dimension(i) for factor, i in term) for term in self._terms(level))
        return self.functions(level).size

    def cost(self, level: int) -> float:
        """Return the estimated cost to compute the functions of a level; 1e8 means a few seconds.

        The cube of the size of the eigenspace, less for orbits of waves, 0 for averages.
        """
        if self.factors:
            return max(factor.cost(i) for term in self._terms(level) for factor, i in term)
        size = float(self.manifold.multiplicity(level))
        if self._average(level) is not None:
            return 0
        waves = not isinstance(self.manifold, (Sphere, Product)) or self.manifold == Sphere(2)
        return 1e3 * size if waves else size**3

    def terms(self, level: int) -> int:
        """Return the number of harmonics of the same cost per row."""
        if self.factors:
            return self.dimension(level)
        average = self._average(level)
        return self.manifold.multiplicity(level) if average is None else average.terms(level)

    def functions(self, level: int) -> Functions:
        if level not in self._found:
            self._found[level] = self._made(level)
        return self._found[level]

    def state(self, levels: int) -> Saved:
        if self.factors:
            pairs = [pair for level in range(levels) for term in self._terms(level) for pair in term]
            return {"factors": [f.state(max(i for factor, i in pairs if factor is f) + 1) for f in self.factors]}
        return {"levels": [_saved(self.functions(level)) for level in range(levels)]}

    def restore(self, state: Saved) -> Invariants:
        if "factors" in state:
            for factor, saved in zip(self.factors, state["factors"], strict=True):
                factor.restore(saved)
        for level, saved in enumerate(state.get("levels", ())):
            self._found[level] = self._restored(level, saved)
        return self

    @cached_property
    def average(self) -> PermutationAverage | None:
        """Average over the group on a sphere, or None."""
        known = isinstance(self.manifold, Sphere) and not self.algebra
        return average_over([g.matrix for g in self.isometries]) if known else None

    @cached_property
    def factors(self) -> tuple[Invariants, ...]:
        """Invariants of the factors, if each generator moves only one."""
        if not isinstance(self.manifold, Product):
            return ()
        moves = factor_moves(self.manifold, self.isometries, self.algebra) or []
        return tuple(Invariants(factor, *move) for factor, move in zip(self.manifold.factors, moves, strict=False))

    def _terms(self, level: int) -> list[list[tuple[Invariants, int]]]:
        """Return the factors with their levels, for each tuple of levels."""
        manifold = cast(Product, self.manifold)
        return [list(zip(self.factors, levels, strict=True)) for levels in manifold.terms(level)]

    def _average(self, level: int) -> PermutationAverage | None:
        if self.manifold.multiplicity(level) <= BUILT:
            return None
        return self.average if self.average is not None and self.average.reaches(level) else None

    def _made(self, level: int) -> Functions:
        if self.factors:
            return TensorFunctions(tuple(tuple(f.functions(i) for f, i in term) for term in self._terms(level)))
        average = self._average(level)
        if average is not None:
            return average.functions(level)
        if isinstance(self.manifold, Sphere):
            check_dense(self.manifold.multiplicity(level))
        space = self.manifold.eigenfunctions(level)
        return Combination(space, invariant_coefficients(space, self.isometries, self.algebra))

    def _restored(self, level: int, saved: Saved) -> Functions:
        if "vectors" in saved:
            return Combination(self.manifold.eigenfunctions(level, saved["points"]), saved_matrix(saved["vectors"]))
        assert self.average is not None  # unless the file was altered
        return self.average.functions(level, iter(saved["points"]))


def _saved(functions: Functions) -> Saved:
    state: dict[str, Any] = {"points": functions.points()}
    return state | {"vectors": plain_matrix(functions.vectors)} if isinstance(functions, Combination) else state


def plain_matrix(u: Matrix) -> dict[str, Any]:
    """Return a dense or sparse matrix as plain arrays for a file."""
    if isinstance(u, csr_array):
        return {"shape": u.shape, "data": u.data, "indices": u.indices, "indptr": u.indptr}
    return {"dense": u}


def saved_matrix(state: Saved) -> Matrix:
    """Return the matrix of `plain_matrix`."""
    if "dense" in state:
        return np.asarray(state["dense"])
    return csr_array((state["data"], state["indices"], state["indptr"]), shape=state["shape"])
