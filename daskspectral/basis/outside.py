"""Functions outside of sets: 0 in all of them, and a guess of the committor, 0 in the first and 1 in the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Basis
from daskspectral.basis.boundary import Boundary
from daskspectral.basis.concatenated import Concatenated, ConstantBasis
from daskspectral.basis.dirichlet import DirichletFunctions

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class _Sets(Boundary):
    """A function of the depths of points outside of sets (s,), each the domain in which a boundary is positive."""

    sets: tuple[Boundary, ...]
    expects: ClassVar = {"sets": Boundary}

    @property
    def dimension(self) -> int | None:
        return next((boundary.dimension for boundary in self.sets if boundary.dimension is not None), None)

    @property
    def order(self) -> int:
        return min(boundary.order for boundary in self.sets)

    def outside(self, x: Array) -> NDArray[np.bool_]:
        return np.zeros(len(x), bool)

    def _depths(self, x: Array) -> Array:
        """How far points are outside of each set, (c, s), 0 within."""
        return np.maximum(-np.stack([boundary.values(x) for boundary in self.sets], axis=1), 0)

    def _slopes(self, x: Array) -> Array:
        """The gradients of the depths (c, s, d), 0 in either set."""
        return self._beyond(x, [boundary.gradient(x) for boundary in self.sets])

    def _bends(self, x: Array) -> Array:
        """The second derivatives of the depths (c, s, d, d), 0 in either set."""
        return self._beyond(x, [boundary.hessian(x) for boundary in self.sets])

    def _beyond(self, x: Array, derivatives: list[Array]) -> Array:
        out = (self._depths(x) > 0).all(axis=1)
        return np.stack([-found * out.reshape(-1, *[1] * (found.ndim - 1)) for found in derivatives], axis=1)


class _Product(_Sets):
    """The product of the depths: 0 in every set."""

    def values(self, x: Array) -> Array:
        return np.asarray(self._depths(x).prod(axis=1))

    def gradient(self, x: Array) -> Array:
        return np.asarray(np.einsum("cs,csd->cd", self._others(x), self._slopes(x)))

    def hessian(self, x: Array) -> Array:
        found: Array = np.einsum("cs,csij->cij", self._others(x), self._bends(x))
        slopes = self._slopes(x)
        if len(self.sets) > 1:
            cross = np.einsum("ci,cj->cij", slopes[:, 0], slopes[:, 1])
            found += cross + cross.swapaxes(1, 2)
        return found

    def _others(self, x: Array) -> Array:
        """The product of the depths in the other sets, (c, s)."""
        depths = self._depths(x)
        return depths[:, ::-1] if len(self.sets) > 1 else np.ones_like(depths)


class _Guess(_Sets):
    """a / (a + b) of the depths a and b outside of two sets: 0 in the first one, 1 in the second."""

    def values(self, x: Array) -> Array:
        a, b = self._depths(x).T
        if not (a + b > 0).all():
            raise ValueError(f"the sets a and b share points, such as {x[np.argmin(a + b)]}: give sets apart")
        return np.asarray(a / (a + b))

    def gradient(self, x: Array) -> Array:
        slopes, u = self._slopes(x), self.values(x)[:, None]
        return np.asarray((slopes[:, 0] - u * slopes.sum(axis=1)) / self._depths(x).sum(axis=1)[:, None])

    def hessian(self, x: Array) -> Array:
        bends, u = self._bends(x), self.values(x)[:, None, None]
        cross = np.einsum("ci,cj->cij", self.gradient(x), self._slopes(x).sum(axis=1))
        above = bends[:, 0] - u * bends.sum(axis=1) - cross - cross.swapaxes(1, 2)
        return np.asarray(above / self._depths(x).sum(axis=1)[:, None, None])


def outside_of(sets: tuple[Boundary, ...], basis: Basis) -> Basis:
    """The functions of a basis times a product that vanishes in the sets, and behind them, for two sets, the guess."""
    vanishing = DirichletFunctions(basis, _Product(sets))
    if len(sets) == 1:
        return vanishing
    return Concatenated((vanishing, DirichletFunctions(ConstantBasis(basis.dimension), _Guess(sets))))
