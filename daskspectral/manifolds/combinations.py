"""Invariant functions of a level as combinations of its harmonics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.manifolds.eigenspace import Array, Eigenspace, Functions, Matrix
from daskspectral.manifolds.product import ProductSpace, assembled, kronecker
from daskspectral.manifolds.tensors import TensorFunctions, Tensors


@final
@dataclass(frozen=True, eq=False)
class Combination(Functions):
    """U^T phi for the harmonics phi of an eigenspace, U (m, r) with orthonormal columns."""

    space: Eigenspace
    vectors: Matrix

    @property
    def ambient(self) -> int:
        return self.space.ambient

    @property
    def eigenvalue(self) -> float:
        return self.space.eigenvalue

    @property
    def size(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def transform(self) -> Matrix:
        """U^T T, in C order."""
        u, inner = self.vectors, self.space.transform
        if inner is not None:
            return np.ascontiguousarray(u.T @ inner)
        return csr_array(u.T) if isinstance(u, csr_array) else np.ascontiguousarray(u.T)

    def raw(self, x: Array) -> Array:
        return self.space.raw(x)

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self.space.raw_along(x, direction)

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return self.space.points()


def in_harmonics(functions: Functions) -> Combination | None:
    """The functions as combinations of the harmonics of their level, or None where these were not built."""
    if isinstance(functions, Combination):
        return functions
    if not isinstance(functions, TensorFunctions):
        return None
    tensors, spaces, vectors = functions.tensors, [], []
    for term in tensors.terms:
        parts = [f for f in term if isinstance(f, Combination)]
        if len(parts) < len(term):
            return None
        spaces.append(tuple(f.space for f in parts))
        vectors.append(kronecker([f.vectors for f in parts]))
    space = ProductSpace(functions.levels, Tensors(tuple(spaces)), functions.value)
    return Combination(space, assembled(space.tensors.rows, tensors.rows, vectors, (space.size, functions.size)))
