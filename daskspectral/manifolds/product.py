"""Products of manifolds: sums of eigenvalues, products of eigenfunctions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Action, Eigenspace, Matrix, dense
from daskspectral.manifolds.invariants import invariant_coefficients
from daskspectral.manifolds.isometry import Isometry

_TOGETHER = 1e-9  # sums of eigenvalues that agree to this are one level


@final
@dataclass(frozen=True)
class Product(Manifold):
    """The product of two manifolds: rows hold the coordinates of a point of `first`, then of one of `second`.

    The eigenvalues are the sums l + m of an eigenvalue of each factor (sums that agree to a relative 1e-9 are one
    level), with eigenfunctions phi_i(x) psi_j(y). Isometries are pairs, block diagonal matrices; maps that exchange
    equal factors are refused. Three factors are Product(Product(a, b), c).

    Examples
    --------
    >>> from daskspectral.manifolds import Box, Sphere
    >>> Product(Sphere(3), Box([0], [2 * np.pi])).eigenvalues(6).round(9)
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

    def _level(self, level: int) -> tuple[float, int]:
        value, pairs = _pairs(self, level)
        return value, sum(self.first.multiplicity(i) * self.second.multiplicity(j) for i, j in pairs)

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.concatenate([self.first.sample(n, rng), self.second.sample(n, rng)], axis=1)

    def _eigenspace(self, level: int) -> Eigenspace:
        return self._together(level, None)

    def _restored(self, level: int, points: Iterator[NDArray[np.float64]]) -> Eigenspace:
        return self._together(level, points)

    def _together(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> Eigenspace:
        value, pairs = _pairs(self, level)
        spaces = [
            ProductSpace(self.first.eigenfunctions(i, points), self.second.eigenfunctions(j, points)) for i, j in pairs
        ]
        return SumSpace(tuple(spaces), value)

    def _fault(self, g: Isometry) -> str | None:
        cut = self.first.ambient
        if g.matrix[:cut, cut:].any() or g.matrix[cut:, :cut].any():
            return f"it mixes the first {cut} coordinates with the others; isometries of a product are pairs"
        for factor, part in ((self.first, slice(cut)), (self.second, slice(cut, None))):
            try:
                factor.check_isometry(g.block(part))
            except ValueError as error:
                return str(error)
        return None


def _side_by_side(first: Array, second: Array) -> Array:
    """Fields (a, c, d) and (b, c, e) as fields (a + b, c, d + e)."""
    a, c, d = first.shape
    frame = np.zeros((a + len(second), c, d + second.shape[2]), dtype=np.result_type(first, second))
    frame[:a, :, :d], frame[a:, :, d:] = first, second
    return frame


@lru_cache(maxsize=256)
def _pairs(product: Product, level: int) -> tuple[float, tuple[tuple[int, int], ...]]:
    """The eigenvalue of a level, and the pairs of levels of the factors that make it."""
    bound = max(product.first.eigenvalue(1), product.second.eigenvalue(1))
    while True:
        sums = [
            (a + b, i, j)
            for i, a in enumerate(_up_to(product.first, bound))
            for j, b in enumerate(_up_to(product.second, bound - a))
        ]
        sums.sort()
        values = np.array([s for s, _, _ in sums])
        starts = np.flatnonzero(np.diff(values, prepend=-1.0) > _TOGETHER * values)
        if len(starts) > level + 1:  # the last one may lack pairs beyond the bound
            group = sums[starts[level] : starts[level + 1]]
            return group[0][0], tuple(sorted((i, j) for _, i, j in group))
        bound *= 2


def _up_to(manifold: Manifold, bound: float) -> list[float]:
    found: list[float] = []
    while (value := manifold.eigenvalue(len(found))) <= bound * (1 + _TOGETHER):
        found.append(value)
    return found


@final
@dataclass(frozen=True, eq=False)
class ProductSpace(Eigenspace):
    """phi_i(x) psi_j(y) for two eigenspaces, j fastest; D((g, h)) is the Kronecker product of D(g) and D(h)."""

    first: Eigenspace
    second: Eigenspace

    @property
    def ambient(self) -> int:
        return self.first.ambient + self.second.ambient

    @property
    def eigenvalue(self) -> float:
        return self.first.eigenvalue + self.second.eigenvalue

    @property
    def size(self) -> int:
        return self.first.size * self.second.size

    @property
    def transform(self) -> None:
        return None

    def raw(self, x: Array) -> Array:
        left, right = x[:, : self.first.ambient], x[:, self.first.ambient :]
        return _products(self.first.values(left), self.second.values(right))

    def raw_along(self, x: Array, direction: Array) -> Array:
        cut = self.first.ambient
        (left, right), (u, v) = ((z[:, :cut], z[:, cut:]) for z in (x, direction))
        first = _products(self.first.derivatives(left, u), self.second.values(right))
        return first + _products(self.first.values(left), self.second.derivatives(right, v))

    def action(self, g: Isometry) -> Action:
        cut = self.first.ambient
        left, right = self.first.action(g.block(slice(cut))), self.second.action(g.block(slice(cut, None)))
        if isinstance(left, csr_array) and isinstance(right, csr_array):
            return csr_array(sparse.kron(left, right))
        if self.size > DENSE_LIMIT:
            return _KroneckerProducts(left, right, (self.first.size, self.second.size))
        return np.asarray(np.kron(dense(left), dense(right)))

    def closed_form(self, isometries: Sequence[Isometry]) -> Matrix | None:
        """Products of the factors' invariant functions where each generator moves one factor only, otherwise None."""
        cut = self.first.ambient
        lefts, rights = ([g.block(part) for g in isometries] for part in (slice(cut), slice(cut, None)))
        if any(not (a.trivial or b.trivial) for a, b in zip(lefts, rights, strict=True)):
            return None
        left = invariant_coefficients(self.first, [g for g in lefts if not g.trivial])
        right = invariant_coefficients(self.second, [g for g in rights if not g.trivial])
        if isinstance(left, csr_array) or isinstance(right, csr_array):
            return csr_array(sparse.kron(left, right))
        return np.asarray(np.kron(left, right))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return self.first.points() + self.second.points()


def _products(left: Array, right: Array) -> Array:
    """All products of values (c, m) and (c, n) at the same point, (m n, c)."""
    return np.asarray((left.T[:, None] * right.T[None]).reshape(-1, len(left)))


@dataclass(frozen=True, eq=False)
class _KroneckerProducts:
    """A kron B by products with A and B."""

    left: Action
    right: Action
    shape: tuple[int, int]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __matmul__(self, x: Array) -> Array:
        (m, n), k = self.shape, x.shape[1]
        half = np.asarray(self.left @ x.reshape(m, n * k))
        swapped = half.reshape(m, n, k).transpose(1, 0, 2).reshape(n, m * k)
        whole = np.asarray(self.right @ swapped)
        return whole.reshape(n, m, k).transpose(1, 0, 2).reshape(m * n, k)


def block_diagonal(parts: Sequence[Array]) -> Array:
    """Matrices (m_i, r_i), which may be empty, along a diagonal."""
    rows, columns = np.cumsum([0, *(len(p) for p in parts)]), np.cumsum([0, *(p.shape[1] for p in parts)])
    whole = np.zeros((rows[-1], columns[-1]))
    for i, part in enumerate(parts):
        whole[rows[i] : rows[i + 1], columns[i] : columns[i + 1]] = part
    return whole


@final
@dataclass(frozen=True, eq=False)
class SumSpace(Eigenspace):
    """Several eigenspaces of one eigenvalue side by side; isometries keep each."""

    spaces: tuple[Eigenspace, ...]
    value: float

    @property
    def ambient(self) -> int:
        return self.spaces[0].ambient

    @property
    def eigenvalue(self) -> float:
        return self.value

    @property
    def size(self) -> int:
        return sum(space.size for space in self.spaces)

    @property
    def transform(self) -> None:
        return None

    def raw(self, x: Array) -> Array:
        return np.concatenate([space.values(x).T for space in self.spaces])

    def raw_along(self, x: Array, direction: Array) -> Array:
        return np.concatenate([space.derivatives(x, direction).T for space in self.spaces])

    def action(self, g: Isometry) -> Action:
        parts = [space.action(g) for space in self.spaces]
        whole = [part for part in parts if isinstance(part, csr_array)]
        if len(whole) == len(parts):
            return csr_array(sparse.block_diag(whole))
        if self.size > DENSE_LIMIT:
            return _BlockProducts(parts, [space.size for space in self.spaces])
        return block_diagonal([dense(part) for part in parts])

    def closed_form(self, isometries: Sequence[Isometry]) -> Matrix:
        """The invariant functions of the parts."""
        parts = [invariant_coefficients(space, isometries) for space in self.spaces]
        if any(isinstance(part, csr_array) for part in parts):
            return csr_array(sparse.block_diag([csr_array(part) for part in parts]))
        return block_diagonal([dense(part) for part in parts])

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for space in self.spaces for array in space.points())


@dataclass(frozen=True, eq=False)
class _BlockProducts:
    """A block diagonal matrix by products with its blocks."""

    parts: Sequence[Action]
    sizes: Sequence[int]

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def __matmul__(self, x: Array) -> Array:
        pieces = np.split(x, np.cumsum(self.sizes)[:-1])
        return np.concatenate([np.asarray(p @ piece) for p, piece in zip(self.parts, pieces, strict=True)])
