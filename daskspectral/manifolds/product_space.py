"""Eigenspaces of products: products of the factors' eigenfunctions, which exchanges of equal factors permute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Action, Array, Eigenspace, Matrix, dense
from daskspectral.manifolds.invariants import fixed_by_products, invariant_coefficients, null_space
from daskspectral.manifolds.isometry import Isometry
from daskspectral.manifolds.killing import KillingField

Levels = tuple[int, ...]
"""A level of each factor."""

_ZERO = 1e-11  # an entry between two factors up to this does not mix them


@final
@dataclass(frozen=True, eq=False)
class FactorMove:
    """An isometry of a product, factor by factor: it takes x to x' with x'_i = parts[i](x_order[i])."""

    order: tuple[int, ...]
    parts: tuple[Isometry, ...]

    @classmethod
    def of(cls, g: Isometry, widths: Sequence[int]) -> FactorMove:
        """The moves of factors with so many coordinates. Raises ValueError where g mixes the coordinates of several."""
        cuts = [slice(a, b) for a, b in pairwise(accumulate(widths, initial=0))]
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
class ProductSpace(Eigenspace):
    """φ_i(x_1) ψ_j(x_2) ..., the last index fastest, over the tuples of levels with one sum of eigenvalues.

    D of isometries of the factors is a Kronecker product; an exchange of equal factors takes functions of levels (l, m)
    to functions of levels (m, l).
    """

    terms: Mapping[Levels, tuple[Eigenspace, ...]]
    value: float

    @property
    def ambient(self) -> int:
        return sum(self.widths)

    @property
    def eigenvalue(self) -> float:
        return self.value

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    @property
    def transform(self) -> None:
        return None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of coordinates of each factor."""
        return tuple(space.ambient for space in next(iter(self.terms.values())))

    @cached_property
    def sizes(self) -> dict[Levels, int]:
        """The number of functions of each tuple of levels."""
        return {levels: prod(space.size for space in spaces) for levels, spaces in self.terms.items()}

    @cached_property
    def rows(self) -> dict[Levels, slice]:
        """Where the functions of each tuple of levels are."""
        cuts = pairwise(accumulate(self.sizes.values(), initial=0))
        return {levels: slice(a, b) for levels, (a, b) in zip(self.terms, cuts, strict=True)}

    def raw(self, x: Array) -> Array:
        parts = self._cut(x)
        values = {key: space.values(parts[key[0]]).T for key, space in self._leaves.items()}
        return np.concatenate([_products([values[key] for key in enumerate(levels)]) for levels in self.terms])

    def raw_along(self, x: Array, direction: Array) -> Array:
        parts, along = self._cut(x), self._cut(direction)
        values = {key: space.values(parts[key[0]]).T for key, space in self._leaves.items()}
        slopes = {key: space.derivatives(parts[key[0]], along[key[0]]).T for key, space in self._leaves.items()}
        found = np.zeros((self.size, len(x)))
        for levels, rows in self.rows.items():
            for moving in range(len(levels)):
                found[rows] += _products([(slopes if key[0] == moving else values)[key] for key in enumerate(levels)])
        return found

    def action(self, g: Isometry) -> Action:
        move = FactorMove.of(g, self.widths)
        actions = {key: space.action(move.parts[key[0]]) for key, space in self._leaves.items()}
        tensors = [_Tensor([actions[key] for key in enumerate(levels)], move.order) for levels in self.terms]
        columns = [self.rows[move.image(levels)] for levels in self.terms]
        if self.size > DENSE_LIMIT and not all(isinstance(action, csr_array) for action in actions.values()):
            return _Rows(tensors, columns)
        pieces = [tensor.matrix() for tensor in tensors]
        return _assembled([*self.rows.values()], columns, pieces, (self.size, self.size))

    def derived_action(self, field: KillingField) -> Matrix:
        parts = [field.block(part) for part in _cuts(self.widths)]
        actions = {key: space.derived_action(parts[key[0]]) for key, space in self._leaves.items()}
        pieces = []
        for levels, spaces in self.terms.items():
            ones = [sparse.eye_array(space.size, format="csr") for space in spaces]
            alone = [
                _kronecker([*ones[:i], csr_array(actions[i, level]), *ones[i + 1 :]]) for i, level in enumerate(levels)
            ]
            pieces.append(sum(alone[1:], alone[0]))
        if not all(isinstance(action, csr_array) for action in actions.values()):
            pieces = [dense(piece) for piece in pieces]
        rows = [*self.rows.values()]
        return _assembled(rows, rows, pieces, (self.size, self.size))

    def closed_form(self, isometries: Sequence[Isometry], algebra: Sequence[KillingField]) -> Matrix:
        """Products of invariant functions of blocks of factors, where no generator moves factors of several blocks.

        Within a block, functions of tuples of levels that exchanges permute are solved for together.
        """
        blocks = _blocks(self.widths, isometries, algebra)
        groups: dict[tuple[tuple[Levels, ...], ...], list[Levels]] = {}
        for levels in self.terms:
            groups.setdefault(tuple(block.orbit(levels) for block in blocks), []).append(levels)
        solved: dict[tuple[int, tuple[Levels, ...]], tuple[ProductSpace, Matrix]] = {}
        rows, columns, pieces, width = [], [], [], 0
        for orbits, members in groups.items():
            for key in enumerate(orbits):
                if key not in solved:
                    solved[key] = blocks[key[0]].solved(self, key[1])
            found = [solved[key] for key in enumerate(orbits)]
            here = slice(width, width := width + prod(u.shape[1] for _, u in found))
            for levels in members:
                parts = [u[space.rows[block.of(levels)]] for block, (space, u) in zip(blocks, found, strict=True)]
                factors = [i for block in blocks for i in block.factors]
                where = _reordered([self._leaves[i, levels[i]].size for i in factors], np.argsort(factors))
                rows.append(self.rows[levels])
                columns.append(here)
                pieces.append(_kronecker(parts)[where])
        return _assembled(rows, columns, pieces, (self.size, width))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(array for spaces in self.terms.values() for space in spaces for array in space.points())

    def part(self, factors: Sequence[int], terms: Sequence[Levels]) -> ProductSpace:
        """The products of functions of some factors, of tuples of their levels."""
        spaces = {levels: tuple(self._leaves[key] for key in zip(factors, levels, strict=True)) for levels in terms}
        return ProductSpace(spaces, sum(space.eigenvalue for space in spaces[terms[0]]))

    @cached_property
    def _leaves(self) -> dict[tuple[int, int], Eigenspace]:
        """The eigenspaces of the factors, by factor and level."""
        return {
            key: space
            for levels, spaces in self.terms.items()
            for key, space in zip(enumerate(levels), spaces, strict=True)
        }

    def _cut(self, x: Array) -> list[Array]:
        return [x[:, part] for part in _cuts(self.widths)]


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
    def moves(self) -> tuple[FactorMove, ...]:
        return tuple(FactorMove.of(g, self.widths) for g in self.isometries)

    def orbit(self, levels: Levels) -> tuple[Levels, ...]:
        """The tuples of levels of these factors that exchanges take the given ones to, in order."""
        found = [self.of(levels)]
        for each in found:
            found += {move.image(each) for move in self.moves}.difference(found)
        return tuple(sorted(found))

    def solved(self, space: ProductSpace, orbit: tuple[Levels, ...]) -> tuple[ProductSpace, Matrix]:
        """The products of functions of an orbit of levels, and the coefficients of the invariant ones."""
        part = space.part(self.factors, orbit)
        if len(self.factors) == 1:
            (alone,) = part.terms[orbit[0]]
            return part, invariant_coefficients(alone, self.isometries, self.algebra)
        if part.size > DENSE_LIMIT:
            rng = np.random.default_rng(0)
            return part, fixed_by_products(part, self.isometries, rng, algebra=self.algebra)
        each = [g for g, move in zip(self.isometries, self.moves, strict=True) if len(move.moved) < 2]
        turns = [x for x in self.algebra if len(_turned(x, self.widths)) < 2]
        start = dense(part.closed_form(each, turns)) if each or turns else None
        joint = [dense(part.action(g)) for g in self.isometries if g not in each]
        derived = [dense(part.derived_action(x)) for x in self.algebra if x not in turns]
        return part, null_space(joint, derived, start)


def _blocks(
    widths: Sequence[int], isometries: Sequence[Isometry], algebra: Sequence[KillingField]
) -> tuple[_Block, ...]:
    """The finest blocks of factors of which each generator moves one."""
    moved = [FactorMove.of(g, widths).moved for g in isometries]
    turned = [_turned(field, widths) for field in algebra]
    label = [*range(len(widths))]
    for together in [*moved, *turned]:
        joined = {label[i] for i in together}
        label = [min(joined) if each in joined else each for each in label]
    cuts, found = _cuts(widths), []
    for block in sorted(set(label)):
        factors = tuple(i for i, each in enumerate(label) if each == block)
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


def _turned(field: KillingField, widths: Sequence[int]) -> list[int]:
    """The factors that a field moves."""
    return [i for i, part in enumerate(_cuts(widths)) if not field.block(part).trivial]


def _cuts(widths: Sequence[int]) -> list[NDArray[np.int64]]:
    """The coordinates of each factor."""
    return np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])


@dataclass(frozen=True, eq=False)
class _Tensor:
    """D_1 kron D_2 kron ... with columns for exchanged factors: index i of a row meets index order[i] of a column."""

    parts: Sequence[Action]
    order: tuple[int, ...]

    def matrix(self) -> Matrix:
        plain = all(isinstance(part, csr_array) for part in self.parts)
        matrices = [part if isinstance(part, csr_array) and plain else dense(part) for part in self.parts]
        return _kronecker(matrices)[:, _reordered([part.shape[0] for part in matrices], np.argsort(self.order))]

    def __matmul__(self, x: Array) -> Array:
        sizes = [_rows(part) for part in self.parts]
        k = x.shape[1]
        values = x.reshape([*(sizes[i] for i in np.argsort(self.order)), k]).transpose(*self.order, len(sizes))
        for axis, part in enumerate(self.parts):
            front = np.moveaxis(values, axis, 0)
            turned = np.asarray(part @ front.reshape(len(front), -1))
            values = np.moveaxis(turned.reshape(front.shape), 0, axis)
        return values.reshape(len(x), k)


@dataclass(frozen=True, eq=False)
class _Rows:
    """A square matrix by products: the rows of each block are a product with one part of a vector."""

    blocks: Sequence[_Tensor]
    columns: Sequence[slice]

    @property
    def size(self) -> int:
        return sum(part.stop - part.start for part in self.columns)

    def __matmul__(self, x: Array) -> Array:
        return np.concatenate([block @ x[part] for block, part in zip(self.blocks, self.columns, strict=True)])


def _rows(action: Action) -> int:
    return action.shape[0] if isinstance(action, (np.ndarray, csr_array)) else action.size


def _products(values: Sequence[Array]) -> Array:
    """All products of values (m, c), (n, c), ... at the same points, (m n ..., c), the last index fastest."""
    found = values[0]
    for each in values[1:]:
        found = (found[:, None] * each[None]).reshape(-1, found.shape[1])
    return found


def _kronecker(parts: Sequence[Matrix]) -> Matrix:
    found = parts[0]
    for part in parts[1:]:
        if isinstance(found, csr_array) or isinstance(part, csr_array):
            found = csr_array(sparse.kron(found, part))
        else:
            found = np.asarray(np.kron(found, part))
    return found


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
