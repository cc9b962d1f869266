"""Products of manifolds: sums of eigenvalues, products of eigenfunctions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import Eigenspace
from daskspectral.manifolds.isometry import Isometry
from daskspectral.manifolds.product_space import FactorMove, Levels, ProductSpace

_TOGETHER = 1e-9  # sums of eigenvalues that agree to this are one level
_MARGIN = 1 + _TOGETHER


@final
@dataclass(frozen=True)
class Product(Manifold):
    """The product of two manifolds: rows hold the coordinates of a point of `first`, then of one of `second`.

    The eigenvalues are the sums l + m of an eigenvalue of each factor (sums that agree to a relative 1e-9 are one
    level), with eigenfunctions φ_i(x) ψ_j(y). Three factors are Product(Product(a, b), c). Isometries are those of
    the factors side by side, block diagonal matrices, and exchanges of equal factors (`groups.Exchange`).

    Examples
    --------
    >>> from daskspectral.manifolds import PeriodicBox, Sphere
    >>> Product(Sphere(3), PeriodicBox([0], [2 * np.pi])).eigenvalues(6).round(9)
    array([0., 1., 1., 2., 2., 2.])
    """

    expects: ClassVar = {"first": Manifold, "second": Manifold}

    first: Manifold
    second: Manifold

    def __post_init__(self) -> None:
        for factor in (self.first, self.second):
            if not isinstance(factor, Manifold):
                raise TypeError(f"expected two manifolds such as Sphere(3), received {factor!r}")

    @property
    def ambient(self) -> int:
        return self.first.ambient + self.second.ambient

    @property
    def dimension(self) -> int:
        return self.first.dimension + self.second.dimension

    @property
    def periods(self) -> tuple[float | None, ...]:
        return self.first.periods + self.second.periods

    @property
    def lattice(self) -> NDArray[np.float64]:
        return scipy.linalg.block_diag(self.first.lattice, self.second.lattice)

    @property
    def ends(self) -> NDArray[np.float64]:
        return np.concatenate([self.first.ends, self.second.ends], axis=1)

    @property
    def factors(self) -> tuple[Manifold, ...]:
        """The manifolds that are multiplied, none of them a product, in the order of their coordinates."""
        return tuple(
            leaf
            for factor in (self.first, self.second)
            for leaf in (factor.factors if isinstance(factor, Product) else (factor,))
        )

    def terms(self, level: int) -> tuple[Levels, ...]:
        """The tuples of levels of the factors whose eigenvalues sum to that of a level, in lexicographic order."""
        return _terms(self.factors, level)[1]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"first": self.first, "second": self.second}

    def _normals(self, x: Array) -> Array:
        cut = self.first.ambient
        return _side_by_side(self.first.normals(x[:, :cut]), self.second.normals(x[:, cut:]))

    def _tangents(self, x: Array) -> Array | None:
        cut = self.first.ambient
        first, second = self.first.tangents(x[:, :cut]), self.second.tangents(x[:, cut:])
        return None if first is None or second is None else _side_by_side(first, second)

    def _distance(self, x: Array) -> Array | None:
        cut = self.first.ambient
        first, second = self.first.known_distance(x[:, :cut]), self.second.known_distance(x[:, cut:])
        return None if first is None or second is None else np.hypot(first, second)

    def _departure(self, x: Array) -> Array | None:
        cut = self.first.ambient
        first, second = self.first._departure(x[:, :cut]), self.second._departure(x[:, cut:])
        return None if first is None or second is None else np.hypot(first, second)

    def _level(self, level: int) -> tuple[float, int]:
        value, terms = _terms(self.factors, level)
        return value, sum(
            prod(factor.multiplicity(i) for factor, i in zip(self.factors, levels, strict=True)) for levels in terms
        )

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.concatenate([self.first.sample(n, rng), self.second.sample(n, rng)], axis=1)

    def _eigenspace(self, level: int) -> Eigenspace:
        return self._together(level, None)

    def _restored(self, level: int, points: Iterator[NDArray[np.float64]]) -> Eigenspace:
        return self._together(level, points)

    def _together(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> Eigenspace:
        value, terms = _terms(self.factors, level)
        return ProductSpace(
            {
                levels: tuple(factor.eigenfunctions(i, points) for factor, i in zip(self.factors, levels, strict=True))
                for levels in terms
            },
            value,
        )

    def _fault(self, g: Isometry) -> str | None:
        factors = self.factors
        try:
            move = FactorMove.of(g, [factor.ambient for factor in factors])
            for i, (factor, j, part) in enumerate(zip(factors, move.order, move.parts, strict=True)):
                if factor != factors[j]:
                    return f"it takes factor {j}, {factors[j]!r}, to factor {i}, {factor!r}; only equal ones exchange"
                factor.check_isometry(part)
        except ValueError as error:
            return str(error)
        return None


def _side_by_side(first: Array, second: Array) -> Array:
    """Fields (a, c, d) and (b, c, e) as fields (a + b, c, d + e)."""
    a, c, d = first.shape
    frame = np.zeros((a + len(second), c, d + second.shape[2]), dtype=np.result_type(first, second))
    frame[:a, :, :d], frame[a:, :, d:] = first, second
    return frame


def _terms(factors: tuple[Manifold, ...], level: int) -> tuple[float, tuple[Levels, ...]]:
    """The eigenvalue of a level, and the tuples of levels of the factors that make it, in lexicographic order."""
    doublings = 0
    while level + 1 >= len(_sums(factors, doublings)):  # the last one may lack terms beyond the bound
        doublings += 1
    return _sums(factors, doublings)[level]


@lru_cache(maxsize=32)
def _sums(factors: tuple[Manifold, ...], doublings: int) -> list[tuple[float, tuple[Levels, ...]]]:
    """What `_terms` gives for all levels up to a bound that is doubled so many times."""
    bound = max(factor.eigenvalue(1) for factor in factors) * 2.0**doublings
    sums: list[tuple[float, Levels]] = [(0.0, ())]
    for factor in factors:
        own = _up_to(factor, bound)
        sums = [(s + a, (*levels, i)) for s, levels in sums for i, a in enumerate(own) if s + a <= bound * _MARGIN]
    sums.sort()
    values = np.array([s for s, _ in sums])
    starts = [*np.flatnonzero(np.diff(values, prepend=-1.0) > _TOGETHER * values).tolist(), len(sums)]
    return [(sums[a][0], tuple(sorted(levels for _, levels in sums[a:b]))) for a, b in pairwise(starts)]


def _up_to(manifold: Manifold, bound: float) -> list[float]:
    found: list[float] = []
    while (value := manifold.eigenvalue(len(found))) <= bound * _MARGIN:
        found.append(value)
    return found
