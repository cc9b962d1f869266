"""Monomials up to a total degree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from daskspectral.basis.base import Array, Basis, Translation
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.devices import largest
from daskspectral.forms import Atom
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.validation import POSITIVE, check_flag, check_integer, check_number, is_sequence

MOST_STEPS = 30  # powers of two by which the highest powers of columns may differ from 1


@dataclass(frozen=True)
class MonomialBasis(Basis):
    """Monomials (x / scale)^e of total degree up to `degree` in d variables, by ascending degree.

    There are p = C(d + degree, degree) functions, one fewer without the constant.

    Parameters
    ----------
    d : int
        Number of variables.
    degree : int
        Largest total degree.
    constant : bool
        True to include the constant.
    scale : float or tuple of float
        Length in the units of the data, or one for each column, near the largest coordinate, so that powers remain
        near 1; powers that overflow raise ValueError. Fits adapt it if powers of columns would overflow or underflow.

    See Also
    --------
    TrigonometricBasis : Trigonometric functions of periodic columns.
    Concatenated : Several bases together.

    Examples
    --------
    >>> basis = MonomialBasis(2, 2)
    >>> basis.exponents.tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    >>> basis.values(np.array([[2.0, 3.0]])).ravel()
    array([1., 2., 3., 4., 6., 9.])
    """

    order = math.inf
    portable = True

    d: int
    degree: int
    constant: bool = True
    scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        self._set(d=check_integer("d", self.d), degree=check_integer("degree", self.degree))
        check_flag("constant", self.constant)
        given: Any = self.scale
        if is_sequence(given):
            if len(given) != self.d:
                raise ValueError(f"scale must be a number or one for each of {self.d} columns, got {given!r}.")
            scale: Any = tuple(check_number("scale", one, POSITIVE) for one in given)
        else:
            scale = check_number("scale", given, POSITIVE)
        self._set(scale=scale)

    @property
    def lengths(self) -> Array:
        """Scale of each column, (d,)."""
        return np.array(np.broadcast_to(self.scale, self.d), dtype=float)

    def in_units(self, units: Array) -> MonomialBasis:
        lengths = self.lengths
        steps = np.where(units > 0, np.log2(np.where(units > 0, units, 1.0) / lengths), 0.0)
        if self.degree * np.abs(steps).max() <= MOST_STEPS:
            return self
        lengths = lengths * np.exp2(8 * np.rint(steps / 8))  # coarse, so that similar data have the same scale
        return replace(self, scale=tuple(lengths.tolist()))

    @property
    def size(self) -> int:
        return math.comb(self.d + self.degree, self.degree) - self.lead

    @property
    def holds_constant(self) -> bool:
        return self.constant

    @property
    def leads_with_constant(self) -> bool:
        return self.constant

    @property
    def lead(self) -> int:
        """Index of the first function among all monomials, which begin with the constant."""
        return 0 if self.constant else 1

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def description(self) -> str:
        return f"monomials up to degree {self.degree}"

    @property
    def exponents(self) -> Integers:
        """Multi-index of each function, (p, d)."""
        return _table(self.d, self.degree)[0][self.lead :]

    def translated(self, delta: Array) -> Translation:
        # ((x + delta) / scale)^e by the binomial theorem
        exponents, _, _ = _table(self.d, self.degree)
        powers = np.maximum(exponents[:, None] - exponents, 0)
        found: Array = np.prod(comb(exponents[:, None], powers) * (delta / self.lengths) ** powers, axis=2)
        found[(exponents[:, None] < exponents).any(axis=2)] = 0.0
        return Translation(self, found[self.lead :, self.lead :], found[self.lead :, : self.lead].sum(axis=1))

    def is_zero(self, atom: Atom) -> bool:
        return all(leaf.order > self.degree for leaf in atom.leaves)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _MonomialEvaluation(self, block)


class _MonomialEvaluation(Evaluation):
    """All monomials of one block, each degree from the previous one."""

    def __init__(self, basis: MonomialBasis, block: Block):
        self.basis, self.block = basis, block
        scale: Any = np.asarray(basis.scale, like=block.x) if isinstance(basis.scale, tuple) else basis.scale
        points = (block.x.astype(float, copy=False) / scale).T.copy()
        largest_coordinate = largest(np.abs(points))
        if largest_coordinate > (float(np.finfo(block.dtype).max) / 1e12) ** (0.5 / basis.degree):
            raise ValueError(
                f"powers {basis.degree} of coordinates up to {largest(np.abs(block.x)):.6g} overflow "
                f"{block.dtype}. Pass MonomialBasis a scale near that number, or standardize the columns."
            )
        points = points.astype(block.dtype, copy=False)
        exponents, steps, _ = _table(basis.d, basis.degree)
        self.table = block.buffer("monomials", (len(exponents), points.shape[1]))
        self.table[0] = 1 if block.scale is None else block.scale
        for axis, source, target in steps:
            np.multiply(self.table[source], points[axis], out=self.table[target])

    @property
    def value(self) -> Array:
        return self.table[self.basis.lead :]

    def along(self, direction: Array) -> Array:
        d, out = self.basis.d, np.zeros_like(self.table)
        for axis, v in enumerate(direction.T.astype(self.block.dtype, copy=False)):
            rows, part = self._partial(unit_index(axis, d))
            part *= v
            out[rows] += part
        return out[self.basis.lead :]

    def partial(self, alpha: MultiIndex) -> Array:
        out = np.zeros_like(self.table)
        rows, part = self._partial(alpha)
        out[rows] = part
        return out[self.basis.lead :]

    def _partial(self, alpha: MultiIndex) -> tuple[Integers, Array]:
        """Return the monomials with nonzero derivative (r,), and its values (r, c)."""
        rows, sources, factors = _derivative(self.basis.d, self.basis.degree, alpha)
        factors = factors / float(np.prod(self.basis.lengths ** np.array(alpha)))
        there, factors = np.asarray(sources, like=self.table), np.asarray(factors, like=self.table)
        return np.asarray(rows, like=self.table), self.table[there] * factors[:, None].astype(self.table.dtype)


Step = tuple[int, slice, slice]
Integers = NDArray[np.int64]


@lru_cache(maxsize=16)
def _table(d: int, degree: int) -> tuple[Integers, tuple[Step, ...], dict[bytes, int]]:
    """Return the exponents of all monomials (P, d), and the products and rows that compute them.

    A product is (axis, source rows, target rows). Within a degree, monomials are sorted by their first variable: those
    that start with variable a are x_a times the last rows of the previous degree, which start with a or a later
    variable.
    """
    blocks: list[Integers] = [np.zeros((1, d), dtype=np.int64)]
    steps: list[Step] = []
    begin, tails = 0, [0] * d  # first row of the previous degree; in it, the first row that starts with a or later
    for _ in range(degree):
        before = blocks[-1]
        end = target = begin + len(before)
        parts, starts = [], []
        for axis in range(d):
            rows = before[tails[axis] :].copy()
            rows[:, axis] += 1
            steps.append((axis, slice(begin + tails[axis], end), slice(target, target + len(rows))))
            starts.append(target - end)
            parts.append(rows)
            target += len(rows)
        blocks.append(np.concatenate(parts))
        begin, tails = end, starts
    exponents = np.concatenate(blocks)
    exponents.flags.writeable = False
    return exponents, tuple(steps), {row.tobytes(): i for i, row in enumerate(exponents)}


@lru_cache(maxsize=2048)
def _derivative(d: int, degree: int, alpha: MultiIndex) -> tuple[Integers, Integers, NDArray[np.float64]]:
    """Return d^alpha x^e as rows e, rows e - alpha and factors prod_a e_a! / (e_a - alpha_a)!, (r,)."""
    exponents, _, positions = _table(d, degree)
    rows = np.flatnonzero((exponents >= alpha).all(axis=1))
    sources = np.array([positions[e.tobytes()] for e in exponents[rows] - np.array(alpha)], dtype=np.int64)
    factors = np.ones(len(rows))
    for axis, order in enumerate(alpha):
        for k in range(order):
            factors *= exponents[rows, axis] - k
    return rows, sources, factors
