"""Products of manifolds: sums of eigenvalues, products of eigenfunctions, which exchanges of equal factors permute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from itertools import accumulate, pairwise
from math import prod
from typing import ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.manifolds.base import Array, Manifold
from daskspectral.manifolds.eigenspace import (
    DENSE_LIMIT,
    TOGETHER,
    Action,
    Combination,
    Eigenspace,
    Floats,
    Functions,
    IndexLevels,
    Integers,
    Matrix,
    along,
    by_products,
    dense,
    sums_within,
)
from daskspectral.manifolds.invariants import fixed_by_products, invariant_coefficients, null_space
from daskspectral.manifolds.isometry import Isometry, KillingField

Levels = tuple[int, ...]
"""A level of each factor."""

_ZERO = 1e-11  # an entry between two factors up to this does not mix them


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
        return self._sums(level)[1]

    def _normals(self, x: Array) -> Array:
        return _side_by_side(*(factor._normals(part) for factor, part in self._parts(x)))

    def _tangents(self, x: Array) -> Array | None:
        first, second = (factor._tangents(part) for factor, part in self._parts(x))
        return None if first is None or second is None else _side_by_side(first, second)

    def _distance(self, x: Array) -> Array | None:
        first, second = (factor._distance(part) for factor, part in self._parts(x))
        return None if first is None or second is None else np.hypot(first, second)

    def _departure(self, x: Array) -> Array | None:
        first, second = (factor._departure(part) for factor, part in self._parts(x))
        return None if first is None or second is None else np.hypot(first, second)

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
        return ProductSpace(terms, tuple(spaces), value)

    def _sums(self, level: int) -> tuple[float, tuple[Levels, ...]]:
        """The eigenvalue of a level, and the tuples of levels of the factors that make it."""
        tuples, value = _spectrum(self).level(level)
        return value, tuple(map(tuple, tuples.tolist()))

    def _fault(self, g: Isometry) -> str | None:
        factors = self.factors
        try:
            move = _FactorMove.of(g, [factor.ambient for factor in factors])
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


@lru_cache(maxsize=32)
def _spectrum(product: Product) -> IndexLevels:
    """The sums of eigenvalues of factors."""
    factors = product.factors

    def within(bound: float) -> tuple[Integers, Floats] | None:
        return sums_within([_up_to(factor, bound) for factor in factors], bound)

    return IndexLevels(product, within, max(factor.eigenvalue(1) for factor in factors))


def _up_to(manifold: Manifold, bound: float) -> Floats:
    found: list[float] = []
    while (value := manifold.eigenvalue(len(found))) <= bound * (1 + TOGETHER):
        found.append(value)
    return np.array(found)


@dataclass(frozen=True, eq=False)
class TensorFunctions(Functions):
    """u_i(x_1) v_j(x_2) ..., the last index fastest, for tuples of functions of the factors, one tuple after another.

    `levels` are the levels of the factors that each tuple is of. Functions of a factor that several tuples hold are
    evaluated once.
    """

    levels: tuple[Levels, ...]
    terms: tuple[tuple[Functions, ...], ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of coordinates of each factor."""
        return tuple(f.ambient for f in self.terms[0])

    @cached_property
    def rows(self) -> list[slice]:
        """Where the products of each tuple are."""
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
            """At x + t v, to first order in t."""
            return self._tensors(
                len(x), lambda f, part: (f.values(x[:, part]) + t * f.derivatives(x[:, part], direction[:, part])).T
            )

        return along(moved, np.zeros(1), np.ones(1))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for term in self.terms for f in term for array in f.points())

    def _tensors(self, count: int, evaluate: Callable[[Functions, slice], Array]) -> Array:
        """The products of what is evaluated of functions of the factors, by their coordinates, at so many points."""
        cuts = slices_of(self.widths)
        filled = [term for rows, term in zip(self.rows, self.terms, strict=True) if rows.start < rows.stop]
        needed = {(i, id(f)): f for term in filled for i, f in enumerate(term)}
        values = {key: evaluate(f, cuts[key[0]]) for key, f in needed.items()}
        parts = [reduce(_products, [values[i, id(f)] for i, f in enumerate(term)]) for term in filled]
        return np.concatenate([np.zeros((0, count)), *parts])


def _products(left: Array, right: Array) -> Array:
    """All products of values (m, c) and (n, c) at the same points, (m n, c)."""
    return np.asarray((left[:, None] * right[None]).reshape(-1, left.shape[1]))


def slices_of(sizes: Iterable[int]) -> list[slice]:
    """Consecutive slices of these lengths."""
    return [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]


@final
@dataclass(frozen=True, eq=False)
class _FactorMove:
    """An isometry of a product, factor by factor: it takes x to x' with x'_i = parts[i](x_order[i])."""

    order: tuple[int, ...]
    parts: tuple[Isometry, ...]

    @classmethod
    def of(cls, g: Isometry, widths: Sequence[int]) -> _FactorMove:
        """The moves of factors with so many coordinates. Raises ValueError where g mixes the coordinates of several."""
        cuts = slices_of(widths)
        filled = [[j for j, there in enumerate(cuts) if np.abs(g.matrix[here, there]).max() > _ZERO] for here in cuts]
        order = tuple(row[0] for row in filled if len(row) == 1)
        if sorted(order) != [*range(len(cuts))] or any(widths[i] != widths[j] for i, j in enumerate(order)):
            raise ValueError(
                f"it mixes coordinates of factors, {', '.join(map(str, widths))} coordinates wide; isometries of a "
                "product are isometries of its factors and exchanges of equal factors"
            )
        return cls(order, tuple(Isometry(g.matrix[i, cuts[j]], g.shift[i]) for i, j in zip(cuts, order, strict=True)))

    @property
    def moved(self) -> list[int]:
        """The factors that it does not leave as they are."""
        return [i for i, (j, part) in enumerate(zip(self.order, self.parts, strict=True)) if i != j or not part.trivial]

    def image(self, levels: Levels) -> Levels:
        """The levels m with m_order[i] = l_i: functions of levels l at moved points are functions of levels m."""
        return tuple(levels[i] for i in np.argsort(self.order))


@final
@dataclass(frozen=True, eq=False)
class ProductSpace(TensorFunctions, Eigenspace):
    """φ_i(x_1) ψ_j(x_2) ..., the last index fastest, over the tuples of levels with one sum of eigenvalues.

    D of isometries of the factors is a Kronecker product; an exchange of equal factors takes functions of levels (l, m)
    to functions of levels (m, l).
    """

    terms: tuple[tuple[Eigenspace, ...], ...]
    eigenvalue: float

    def action(self, g: Isometry) -> Action:
        move = _FactorMove.of(g, self.widths)
        actions = {key: space.action(move.parts[key[0]]) for key, space in self._leaves.items()}
        matrices = {key: action for key, action in actions.items() if isinstance(action, csr_array)}
        columns = [self._rows[move.image(levels)] for levels in self.levels]
        if len(matrices) < len(actions):
            terms = [[actions[key] for key in enumerate(levels)] for levels in self.levels]
            pairs = list(zip(terms, columns, strict=True))
            return by_products(
                self.size, lambda x: np.concatenate([_multiplied(parts, move.order, x[part]) for parts, part in pairs])
            )
        axes, pieces = np.argsort(move.order), []
        for levels in self.levels:
            parts = [matrices[key] for key in enumerate(levels)]
            pieces.append(_kronecker(parts)[:, _reordered([part.shape[0] for part in parts], axes)])
        return _assembled(self.rows, columns, pieces, (self.size, self.size))

    def derived_action(self, field: KillingField) -> Matrix:
        parts = [field.block(part) for part in _cuts(self.widths)]
        actions = {key: space.derived_action(parts[key[0]]) for key, space in self._leaves.items()}
        pieces = []
        for levels, spaces in zip(self.levels, self.terms, strict=True):
            ones = [sparse.eye_array(space.size, format="csr") for space in spaces]
            alone = [
                _kronecker([*ones[:i], csr_array(actions[i, level]), *ones[i + 1 :]]) for i, level in enumerate(levels)
            ]
            pieces.append(sum(alone[1:], alone[0]))
        if not all(isinstance(action, csr_array) for action in actions.values()):
            pieces = [dense(piece) for piece in pieces]
        rows = self.rows
        return _assembled(rows, rows, pieces, (self.size, self.size))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> Matrix:
        """Products of invariant functions of blocks of factors, where no generator moves factors of several blocks.

        Within a block, functions of tuples of levels that exchanges permute are solved for together.
        """
        blocks = blocks_of(self.widths, isometries, algebra)
        groups: dict[tuple[tuple[Levels, ...], ...], list[Levels]] = {}
        for levels in self.levels:
            groups.setdefault(tuple(block.orbit(levels) for block in blocks), []).append(levels)
        solved = cache(lambda i, orbit: blocks[i].solved(self, orbit))
        rows, columns, pieces, width = [], [], [], 0
        for orbits, members in groups.items():
            found = [solved(i, orbit) for i, orbit in enumerate(orbits)]
            here = slice(width, width := width + prod(u.shape[1] for _, u in found))
            for levels in members:
                parts = [u[space._rows[block.of(levels)]] for block, (space, u) in zip(blocks, found, strict=True)]
                factors = [i for block in blocks for i in block.factors]
                where = _reordered([self._leaves[i, levels[i]].size for i in factors], np.argsort(factors))
                rows.append(self._rows[levels])
                columns.append(here)
                pieces.append(_kronecker(parts)[where])
        return _assembled(rows, columns, pieces, (self.size, width))

    @cached_property
    def _rows(self) -> dict[Levels, slice]:
        """Where the functions of each tuple of levels are."""
        return dict(zip(self.levels, self.rows, strict=True))

    @cached_property
    def _leaves(self) -> dict[tuple[int, int], Eigenspace]:
        """The eigenspaces of the factors, by factor and level."""
        pairs = zip(self.levels, self.terms, strict=True)
        return {key: f for levels, term in pairs for key, f in zip(enumerate(levels), term, strict=True)}


@final
@dataclass(frozen=True, eq=False)
class _Block:
    """Factors that generators move together, and what these generators do to them."""

    factors: tuple[int, ...]
    widths: tuple[int, ...]
    isometries: tuple[Isometry, ...]
    algebra: tuple[KillingField, ...]

    def of(self, levels: Levels) -> Levels:
        """The levels of these factors."""
        return tuple(levels[i] for i in self.factors)

    @cached_property
    def moves(self) -> tuple[_FactorMove, ...]:
        return tuple(_FactorMove.of(g, self.widths) for g in self.isometries)

    def orbit(self, levels: Levels) -> tuple[Levels, ...]:
        """The tuples of levels of these factors that exchanges take the given ones to, in order."""
        found = [self.of(levels)]
        for each in found:
            found += {move.image(each) for move in self.moves}.difference(found)
        return tuple(sorted(found))

    def solved(self, space: ProductSpace, orbit: tuple[Levels, ...]) -> tuple[ProductSpace, Matrix]:
        """The products of functions of an orbit of levels, and the coefficients of the invariant ones."""
        terms = tuple(tuple(space._leaves[key] for key in zip(self.factors, each, strict=True)) for each in orbit)
        part = ProductSpace(orbit, terms, sum(f.eigenvalue for f in terms[0]))
        if len(self.factors) == 1:
            return part, invariant_coefficients(terms[0][0], self.isometries, self.algebra)
        if part.size > DENSE_LIMIT:
            return part, fixed_by_products(part.size, part.action, self.isometries, self.algebra)
        each = [g for g, move in zip(self.isometries, self.moves, strict=True) if len(move.moved) < 2]
        turns = [x for x in self.algebra if len(_turned(x, self.widths)) < 2]
        start = dense(part.closed_form(each, turns)) if each or turns else None
        joint = [dense(part.action(g)) for g in self.isometries if g not in each]
        derived = [dense(part.derived_action(x)) for x in self.algebra if x not in turns]
        return part, null_space(joint, derived, start)


def blocks_of(
    widths: Sequence[int], isometries: Sequence[Isometry], algebra: Sequence[KillingField]
) -> tuple[_Block, ...]:
    """The finest blocks of factors of which each generator moves one."""
    moved = [_FactorMove.of(g, widths).moved for g in isometries]
    turned = [_turned(field, widths) for field in algebra]
    cuts, found = _cuts(widths), []
    for factors in joined(len(widths), [*moved, *turned]):
        where = np.concatenate([cuts[i] for i in factors])
        found.append(
            _Block(
                factors,
                tuple(widths[i] for i in factors),
                tuple(g.block(where) for g, which in zip(isometries, moved, strict=True) if {*which} & {*factors}),
                tuple(x.block(where) for x, which in zip(algebra, turned, strict=True) if {*which} & {*factors}),
            )
        )
    return tuple(found)


def joined(count: int, sets: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """The finest partition of 0, 1, ..., count - 1 that parts none of the sets."""
    label = [*range(count)]
    for together in sets:
        found = {label[i] for i in together}
        label = [min(found) if each in found else each for each in label]
    return [tuple(i for i, each in enumerate(label) if each == part) for part in sorted(set(label))]


def _turned(field: KillingField, widths: Sequence[int]) -> list[int]:
    """The factors that a field moves."""
    return [i for i, part in enumerate(_cuts(widths)) if not field.block(part).trivial]


def _cuts(widths: Sequence[int]) -> list[NDArray[np.int64]]:
    """The coordinates of each factor."""
    return np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])


def _multiplied(parts: Sequence[Action], order: Sequence[int], x: Array) -> Array:
    """(D_1 kron D_2 kron ...) x with columns for exchanged factors: index i of a row meets order[i] of a column."""
    sizes, k = [part.shape[0] for part in parts], x.shape[1]
    values = x.reshape([*(sizes[i] for i in np.argsort(order)), k]).transpose(*order, len(sizes))
    for axis, part in enumerate(parts):
        front = np.moveaxis(values, axis, 0)
        turned = np.asarray(part @ front.reshape(len(front), -1))
        values = np.moveaxis(turned.reshape(front.shape), 0, axis)
    return values.reshape(len(x), k)


def _kronecker(parts: Sequence[Matrix]) -> Matrix:
    """D_1 kron D_2 kron ..., sparse where one is."""
    if any(isinstance(part, csr_array) for part in parts):
        return reduce(lambda left, right: csr_array(sparse.kron(left, right)), parts)
    return reduce(np.kron, map(dense, parts))


def _reordered(sizes: Sequence[int], axes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of an array of the given shape are once its axes are transposed."""
    return np.arange(prod(sizes)).reshape(sizes).transpose(axes).ravel()


def _assembled(
    rows: Sequence[slice], columns: Sequence[slice], pieces: Sequence[Matrix], shape: tuple[int, int]
) -> Matrix:
    """A matrix of pieces at rows and columns, zero elsewhere; sparse where all pieces are."""
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


def in_harmonics(functions: Functions) -> Combination | None:
    """The functions as combinations of the harmonics of their level, or None where these were not built."""
    if isinstance(functions, Combination):
        return functions
    if not isinstance(functions, TensorFunctions):
        return None
    spaces, vectors = [], []
    for term in functions.terms:
        parts = [f for f in term if isinstance(f, Combination)]
        if len(parts) < len(term):
            return None
        spaces.append(tuple(f.space for f in parts))
        vectors.append(_kronecker([f.vectors for f in parts]))
    space = ProductSpace(functions.levels, tuple(spaces), sum(f.eigenvalue for f in spaces[0]))
    return Combination(space, _assembled(space.rows, functions.rows, vectors, (space.size, functions.size)))
