"""Products of functions of several factors, at points side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from math import prod
from typing import final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.eigenspace import Array, Functions

Levels = tuple[int, ...]
"""A level of each factor."""


def slices_of(sizes: Iterable[int]) -> list[slice]:
    """Consecutive slices of these lengths."""
    return [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]


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

    @cached_property
    def rows(self) -> list[slice]:
        """Where those of each tuple are."""
        return slices_of(self.sizes)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of coordinates of each factor."""
        return tuple(f.ambient for f in self.terms[0])

    def raw(self, x: Array) -> Array:
        values = self._evaluated(lambda f, part: f.values(x[:, part]).T)
        found = np.empty((self.size, len(x)))
        for rows, term in self._filled():
            found[rows] = reduce(_products, [values[i, id(f)] for i, f in enumerate(term)])
        return found

    def raw_along(self, x: Array, direction: Array) -> Array:
        values = self._evaluated(lambda f, part: f.values(x[:, part]).T)
        slopes = self._evaluated(lambda f, part: f.derivatives(x[:, part], direction[:, part]).T)
        found = np.zeros((self.size, len(x)))
        for rows, term in self._filled():
            for moving in range(len(term)):
                parts = [(slopes if i == moving else values)[i, id(f)] for i, f in enumerate(term)]
                found[rows] += reduce(_products, parts)
        return found

    def _filled(self) -> list[tuple[slice, tuple[Functions, ...]]]:
        """The tuples that have products, with where these are."""
        return [(rows, term) for rows, term in zip(self.rows, self.terms, strict=True) if rows.start < rows.stop]

    def _evaluated(self, evaluate: Callable[[Functions, slice], Array]) -> dict[tuple[int, int], Array]:
        """By factor and identity of the functions."""
        cuts = slices_of(self.widths)
        needed = {(i, id(f)): f for _, term in self._filled() for i, f in enumerate(term)}
        return {key: evaluate(f, cuts[key[0]]) for key, f in needed.items()}


def _products(left: Array, right: Array) -> Array:
    """All products of values (m, c) and (n, c) at the same points, (m n, c)."""
    return np.asarray((left[:, None] * right[None]).reshape(-1, left.shape[1]))


@dataclass(frozen=True, eq=False)
class TensorFunctions(Functions):
    """The products of one level of a product of manifolds, from functions of levels of its factors."""

    levels: tuple[Levels, ...]
    tensors: Tensors
    value: float

    @property
    def ambient(self) -> int:
        return sum(self.tensors.widths)

    @property
    def eigenvalue(self) -> float:
        return self.value

    @property
    def size(self) -> int:
        return self.tensors.size

    def raw(self, x: Array) -> Array:
        return self.tensors.raw(x)

    def raw_along(self, x: Array, direction: Array) -> Array:
        return self.tensors.raw_along(x, direction)

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for term in self.tensors.terms for f in term for array in f.points())
