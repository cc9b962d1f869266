"""Products of manifolds: sums of eigenvalues and products of eigenfunctions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, pairwise
from math import prod
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import (
    TOGETHER,
    Eigenspace,
    Floats,
    Functions,
    IndexLevels,
    Integers,
    Matrix,
    along,
    dense,
    sums_within,
)
from daskspectral.manifolds.isometry import Isometry, KillingField
from daskspectral.validation import check_type

Levels = tuple[int, ...]
"""Level of each factor."""

_ZERO = 1e-11  # an entry between two factors up to this does not mix them


@final
@dataclass(frozen=True)
class Product(Manifold):
    """Product of two manifolds; rows hold the coordinates of a point of `first`, then of one of `second`.

    The eigenvalues are the sums of an eigenvalue of each factor (those that agree to a relative 1e-9 are one level),
    with eigenfunctions φ_i(x) ψ_j(y). Three factors are Product(Product(a, b), c). Isometries are those of the
    factors, as block diagonal matrices, and exchanges of equal factors (`groups.Exchange`).

    Parameters
    ----------
    first : Manifold
        First factor.
    second : Manifold
        Second factor.

    See Also
    --------
    FlatTorus : Products of circles.

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
        for name in ("first", "second"):
            check_type(name, getattr(self, name), Manifold, "a manifold, such as Sphere(3)")

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
    def ends(self) -> NDArray[np.float64]:
        return np.concatenate([self.first.ends, self.second.ends], axis=1)

    @property
    def factors(self) -> tuple[Manifold, ...]:
        """Factors, none of them a product, in the order of their coordinates."""
        return tuple(
            leaf
            for factor in (self.first, self.second)
            for leaf in (factor.factors if isinstance(factor, Product) else (factor,))
        )

    def terms(self, level: int) -> tuple[Levels, ...]:
        """Return the tuples of the factors' levels whose eigenvalues sum to this level, sorted."""
        return self._sums(level)[1]

    def _normals(self, x: Array) -> Array:
        return _side_by_side(*(factor._normals(part) for factor, part in self._parts(x)))

    def _tangents(self, x: Array) -> Array | None:
        first, second = (factor._tangents(part) for factor, part in self._parts(x))
        return None if first is None or second is None else _side_by_side(first, second)

    def _distance(self, x: Array) -> Array | None:
        return _both(*(factor._distance(part) for factor, part in self._parts(x)))

    def _departure(self, x: Array) -> Array | None:
        return _both(*(factor._departure(part) for factor, part in self._parts(x)))

    def _parts(self, x: Array) -> list[tuple[Manifold, Array]]:
        cut = self.first.ambient
        return [(self.first, x[:, :cut]), (self.second, x[:, cut:])]

    def _level(self, level: int) -> tuple[float, int]:
        value, terms = self._sums(level)
        return value, sum(
            prod(factor.multiplicity(i) for factor, i in zip(self.factors, levels, strict=True)) for levels in terms
        )

    def _sample(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.concatenate([self.first.sample(n, rng), self.second.sample(n, rng)], axis=1)

    def _eigenspace(self, level: int, points: Iterator[NDArray[np.float64]] | None) -> ProductSpace:
        value, terms = self._sums(level)
        spaces = (
            tuple(factor.eigenfunctions(i, points) for factor, i in zip(self.factors, levels, strict=True))
            for levels in terms
        )
        return ProductSpace(tuple(spaces), terms, value)

    def _sums(self, level: int) -> tuple[float, tuple[Levels, ...]]:
        tuples, value = _spectrum(self).level(level)
        return value, tuple(map(tuple, tuples.tolist()))

    def _fault(self, g: Isometry) -> str | None:
        factors = self.factors
        try:
            move = _FactorMove.of(g, [factor.ambient for factor in factors])
            for i, (factor, j, part) in enumerate(zip(factors, move.order, move.parts, strict=True)):
                if factor != factors[j]:
                    return f"it maps factor {j}, {factors[j]!r}, to factor {i}, {factor!r}; only equal ones exchange"
                factor.check_isometry(part)
        except ValueError as error:
            return str(error)
        return None


def _both(first: Array | None, second: Array | None) -> Array | None:
    return None if first is None or second is None else np.hypot(first, second)


def _side_by_side(first: Array, second: Array) -> Array:
    """Return fields of the factors as fields (a + b, c, d + e) of the product."""
    a, c, d = first.shape
    frame = np.zeros((a + len(second), c, d + second.shape[2]), dtype=np.result_type(first, second))
    frame[:a, :, :d], frame[a:, :, d:] = first, second
    return frame


@lru_cache(maxsize=32)
def _spectrum(product: Product) -> IndexLevels:
    factors = product.factors

    def within(bound: float) -> tuple[Integers, Floats]:
        return sums_within([_up_to(factor, bound) for factor in factors], bound)

    return IndexLevels(within, max(factor.eigenvalue(1) for factor in factors))


def _up_to(manifold: Manifold, bound: float) -> Floats:
    found: list[float] = []
    while (value := manifold.eigenvalue(len(found))) <= bound * (1 + TOGETHER):
        found.append(value)
    return np.array(found)


@dataclass(frozen=True, eq=False)
class TensorFunctions(Functions):
    """Products u_i(x_1) v_j(x_2) ... of functions of the factors, by tuples of these, last index fastest."""

    terms: tuple[tuple[Functions, ...], ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return tuple(f.ambient for f in self.terms[0])

    @cached_property
    def rows(self) -> list[slice]:
        return slices_of(prod(f.size for f in term) for term in self.terms)

    @property
    def ambient(self) -> int:
        return sum(self.widths)

    @property
    def size(self) -> int:
        return int(self.rows[-1].stop)

    def raw(self, x: Array) -> Array:
        return self._tensors(len(x), lambda f, part: f.values(x[:, part]).T)

    def raw_along(self, x: Array, direction: Array) -> Array:
        def moved(t: Array) -> Array:
            """Return the products at x + t v, to first order in t."""
            return self._tensors(
                len(x), lambda f, part: (f.values(x[:, part]) + t * f.derivatives(x[:, part], direction[:, part])).T
            )

        return along(moved, np.zeros(1), np.ones(1))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for term in self.terms for f in term for array in f.points())

    def _tensors(self, count: int, evaluate: Callable[[Functions, slice], Array]) -> Array:
        cuts = slices_of(self.widths)
        filled = [term for rows, term in zip(self.rows, self.terms, strict=True) if rows.start < rows.stop]
        needed = {(i, id(f)): f for term in filled for i, f in enumerate(term)}
        values = {key: evaluate(f, cuts[key[0]]) for key, f in needed.items()}
        parts = [reduce(_products, [values[i, id(f)] for i, f in enumerate(term)]) for term in filled]
        return np.concatenate([np.zeros((0, count)), *parts])


def _products(left: Array, right: Array) -> Array:
    """Return all products of values (m, c) and (n, c), (m n, c)."""
    return np.asarray((left[:, None] * right[None]).reshape(-1, left.shape[1]))


def slices_of(sizes: Iterable[int]) -> list[slice]:
    """Return consecutive slices of these lengths."""
    return [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]


@final
@dataclass(frozen=True, eq=False)
class _FactorMove:
    """Isometry of a product by factors: it maps x to x' with x'_i = parts[i](x_order[i])."""

    order: tuple[int, ...]
    parts: tuple[Isometry, ...]

    @classmethod
    def of(cls, g: Isometry, widths: Sequence[int]) -> _FactorMove:
        """Return the moves of factors, or raise ValueError if g mixes their coordinates."""
        cuts = slices_of(widths)
        filled = [[j for j, there in enumerate(cuts) if np.abs(g.matrix[here, there]).max() > _ZERO] for here in cuts]
        order = tuple(row[0] for row in filled if len(row) == 1)
        if sorted(order) != [*range(len(cuts))] or any(widths[i] != widths[j] for i, j in enumerate(order)):
            raise ValueError(
                f"it mixes coordinates of factors, {', '.join(map(str, widths))} coordinates wide; isometries "
                "of a product are those of its factors and exchanges of equal factors"
            )
        return cls(order, tuple(Isometry(g.matrix[i, cuts[j]], g.shift[i]) for i, j in zip(cuts, order, strict=True)))

    @property
    def moved(self) -> list[int]:
        return [i for i, (j, part) in enumerate(zip(self.order, self.parts, strict=True)) if i != j or not part.trivial]

    def image(self, levels: Levels) -> Levels:
        """Return the levels m, m_order[i] = l_i, of moved functions."""
        return tuple(levels[i] for i in np.argsort(self.order))


@final
@dataclass(frozen=True, eq=False)
class ProductSpace(TensorFunctions, Eigenspace):
    """Products φ_i(x_1) ψ_j(x_2) ... of all levels with one sum of eigenvalues, last index fastest.

    D of isometries of the factors is a Kronecker product; an exchange of equal factors maps levels (l, m) to (m, l).
    """

    terms: tuple[tuple[Eigenspace, ...], ...]
    levels: tuple[Levels, ...]
    eigenvalue: float

    def action(self, g: Isometry) -> Matrix:
        move = _FactorMove.of(g, self.widths)
        columns = [self._rows[move.image(levels)] for levels in self.levels]
        axes, pieces = np.argsort(move.order), []
        for spaces in self.terms:
            parts = [space.action(part) for space, part in zip(spaces, move.parts, strict=True)]
            pieces.append(_kronecker(parts)[:, _reordered([space.size for space in spaces], axes)])
        return _assembled(self.rows, columns, pieces, (self.size, self.size))

    def derived_action(self, field: KillingField) -> Matrix:
        parts, pieces = [field.block(part) for part in slices_of(self.widths)], []
        for spaces in self.terms:
            ones = [sparse.eye_array(space.size, format="csr") for space in spaces]
            moved = [csr_array(space.derived_action(part)) for space, part in zip(spaces, parts, strict=True)]
            alone = [_kronecker([*ones[:i], each, *ones[i + 1 :]]) for i, each in enumerate(moved)]
            pieces.append(sum(alone[1:], alone[0]))
        return _assembled(self.rows, self.rows, pieces, (self.size, self.size))

    @cached_property
    def _rows(self) -> dict[Levels, slice]:
        return dict(zip(self.levels, self.rows, strict=True))


def factor_moves(
    product: Product, isometries: Sequence[Isometry], algebra: Sequence[KillingField]
) -> list[tuple[tuple[Isometry, ...], tuple[KillingField, ...]]] | None:
    """Return the generators that move each factor, in its coordinates; None if one moves several factors."""
    widths = [factor.ambient for factor in product.factors]
    if any(len(_FactorMove.of(g, widths).moved) > 1 for g in isometries):
        return None
    found = []
    for part in slices_of(widths):
        moves, fields = [g.block(part) for g in isometries], [x.block(part) for x in algebra]
        found.append((tuple(g for g in moves if not g.trivial), tuple(x for x in fields if not x.trivial)))
    return found if sum(len(fields) for _, fields in found) == len(algebra) else None


def _kronecker(parts: Sequence[Matrix]) -> Matrix:
    """Return D_1 kron D_2 kron ..., sparse if one is."""
    if any(isinstance(part, csr_array) for part in parts):
        return reduce(lambda left, right: csr_array(sparse.kron(left, right)), parts)
    return reduce(np.kron, map(dense, parts))


def _reordered(sizes: Sequence[int], axes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the entries of an array of these sizes after its axes are transposed."""
    return np.arange(prod(sizes)).reshape(sizes).transpose(axes).ravel()


def _assembled(
    rows: Sequence[slice], columns: Sequence[slice], pieces: Sequence[Matrix], shape: tuple[int, int]
) -> Matrix:
    """Return a matrix of pieces, sparse if all are."""
    plain = [piece.tocoo() for piece in pieces if isinstance(piece, csr_array)]
    if len(plain) == len(pieces):
        entries = np.concatenate([piece.data for piece in plain])
        i = np.concatenate([piece.row + part.start for piece, part in zip(plain, rows, strict=True)])
        j = np.concatenate([piece.col + part.start for piece, part in zip(plain, columns, strict=True)])
        return csr_array((entries, (i, j)), shape=shape)
    whole = np.zeros(shape)
    for here, there, piece in zip(rows, columns, pieces, strict=True):
        whole[here, there] = dense(piece)
    return whole
