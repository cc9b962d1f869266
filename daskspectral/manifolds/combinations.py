"""Invariant functions of a level: combinations of its harmonics, or products of functions of the factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from math import prod
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.manifolds.eigenspace import Array, Eigenspace, Functions, Matrix, dense
from daskspectral.manifolds.product_space import Levels, ProductSpace


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


@final
@dataclass(frozen=True, eq=False)
class Tensors:
    """u_i(x_1) v_j(x_2) ..., the last index fastest, for tuples of functions of the factors, one tuple after another.

    Functions of a factor that several tuples hold are evaluated once.
    """

    terms: tuple[tuple[Functions, ...], ...]

    @property
    def size(self) -> int:
        """How many products there are."""
        return sum(self.sizes)

    @property
    def transform(self) -> None:
        """The products as they are."""
        return None

    @cached_property
    def sizes(self) -> list[int]:
        """How many there are of each tuple."""
        return [prod(f.size for f in term) for term in self.terms]

    def raw(self, x: Array) -> Array:
        values = self._evaluated(lambda f, part: f.values(x[:, part]).T)
        found = np.empty((self.size, len(x)))
        for rows, term in self._rows():
            found[rows] = reduce(_products, [values[i, id(f)] for i, f in enumerate(term)])
        return found

    def raw_along(self, x: Array, direction: Array) -> Array:
        values = self._evaluated(lambda f, part: f.values(x[:, part]).T)
        slopes = self._evaluated(lambda f, part: f.derivatives(x[:, part], direction[:, part]).T)
        found = np.zeros((self.size, len(x)))
        for rows, term in self._rows():
            for moving in range(len(term)):
                parts = [(slopes if i == moving else values)[i, id(f)] for i, f in enumerate(term)]
                found[rows] += reduce(_products, parts)
        return found

    def _rows(self) -> list[tuple[slice, tuple[Functions, ...]]]:
        cuts = pairwise(accumulate(self.sizes, initial=0))
        return [(slice(a, b), term) for (a, b), term in zip(cuts, self.terms, strict=True) if a < b]

    def _evaluated(self, evaluate: Callable[[Functions, slice], Array]) -> dict[tuple[int, int], Array]:
        """By factor and identity of the functions."""
        cuts = [slice(a, b) for a, b in pairwise(accumulate((f.ambient for f in self.terms[0]), initial=0))]
        needed = {(i, id(f)): f for _, term in self._rows() for i, f in enumerate(term)}
        return {key: evaluate(f, cuts[key[0]]) for key, f in needed.items()}


@final
@dataclass(frozen=True, eq=False)
class TensorFunctions(Functions):
    """The products of one level of a product of manifolds, from functions of levels of its factors."""

    levels: tuple[Levels, ...]
    tensors: Tensors
    value: float

    @property
    def ambient(self) -> int:
        return sum(f.ambient for f in self.tensors.terms[0])

    @property
    def eigenvalue(self) -> float:
        return self.value

    @property
    def size(self) -> int:
        return self.tensors.size

    @property
    def transform(self) -> None:
        return None

    def raw(self, x: Array) -> Array:
        return self.tensors.raw(x)

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self.tensors.raw_along(x, direction)

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for term in self.tensors.terms for f in term for array in f.points())


def in_harmonics(functions: Functions) -> Combination | None:
    """The functions as combinations of the harmonics of their level, or None where these were not built."""
    if isinstance(functions, Combination):
        return functions
    if not isinstance(functions, TensorFunctions):
        return None
    spaces, vectors = {}, []
    for levels, term in zip(functions.levels, functions.tensors.terms, strict=True):
        parts = [f for f in term if isinstance(f, Combination)]
        if len(parts) < len(term):
            return None
        spaces[levels] = tuple(f.space for f in parts)
        vectors.append(reduce(_kronecker, [f.vectors for f in parts]))
    return Combination(ProductSpace(spaces, functions.value), _diagonal(vectors))


def _products(left: Array, right: Array) -> Array:
    """All products of values (m, c) and (n, c) at the same points, (m n, c)."""
    return np.asarray((left[:, None] * right[None]).reshape(-1, left.shape[1]))


def _kronecker(left: Matrix, right: Matrix) -> Matrix:
    if isinstance(left, csr_array) or isinstance(right, csr_array):
        return csr_array(sparse.kron(left, right))
    return np.asarray(np.kron(left, right))


def _diagonal(parts: Sequence[Matrix]) -> Matrix:
    """Matrices, which may be empty, along a diagonal; sparse where one is."""
    if any(isinstance(part, csr_array) for part in parts):
        return csr_array(sparse.block_diag([csr_array(part) for part in parts]))
    rows, columns = ([*accumulate((part.shape[axis] for part in parts), initial=0)] for axis in (0, 1))
    whole = np.zeros((rows[-1], columns[-1]))
    for i, part in enumerate(parts):
        whole[rows[i] : rows[i + 1], columns[i] : columns[i + 1]] = dense(part)
    return whole
