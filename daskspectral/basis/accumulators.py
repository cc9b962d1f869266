"""Sums over blocks of rows: matrices of forms, functionals, and Fourier modes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import (
    VALUE,
    Array,
    Block,
    ConcatenatedEvaluation,
    Evaluation,
    evaluated,
    numbered,
    pair_with_field,
    scalar_feature,
    scalar_pairs,
)
from daskspectral.forms import Atom, AtomProduct, Forms, Functionals, Pairing
from daskspectral.manifolds.product import slices_of
from daskspectral.modes.matrices import MODES, ModeWeight
from daskspectral.modes.sums import MatmulSum, NufftSum, mode_sum
from daskspectral.workspace import ProductSum, Workspace

if TYPE_CHECKING:
    from daskspectral.basis.base import Basis
    from daskspectral.basis.lattice import FourierLattice

Sides = tuple[str, str]
MODERATE = 30  # powers of two by which square-root weights may differ from 1 in float32 without rescaling


class GradientSum(Protocol):
    """Direct sum of sum_k <grad phi_i, grad phi_j>(x_k) for one basis, in an array (p, p)."""

    def add(self, evaluation: Any) -> None: ...

    def finish(self, gram: Array) -> None:
        """Complete the matrix, given the sum of phi phi^T."""


def contraction(
    left: Basis, right: Basis, out: Mapping[AtomProduct, Array], dtype: Any, workspace: Workspace
) -> PairContraction | BlockContraction:
    """Return empty sums of products between two bases, in uninitialized matrices `out`, part by part."""
    if left.parts == (left,) and right.parts == (right,):
        return PairContraction(left, right, out, dtype, workspace)
    return BlockContraction(left, right, out, dtype, workspace)


class PairContraction:
    """Sums of products of features, one matrix (p, q) each, by one GEMM or SYRK per block.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> basis, block = MonomialBasis(1, 1), Block({"x": np.array([[2.0], [3.0]])}, np.dtype(float), Workspace())
    >>> squares, seen = AtomProduct(VALUE, VALUE), {"x": basis.at(block, [VALUE])}
    >>> found = {squares: np.empty((2, 2))}
    >>> pair = PairContraction(basis, basis, found, float, block.workspace)
    >>> pair.add(seen, seen, block)
    >>> pair.finish()
    >>> found[squares].tolist()
    [[2.0, 5.0], [5.0, 13.0]]
    """

    def __init__(self, left: Basis, right: Basis, out: Mapping[AtomProduct, Array], dtype: Any, workspace: Workspace):
        self.dimension, device = left.dimension, workspace.device
        here = not device.accelerated or left.portable  # the direct sum reads buffers of this evaluation
        self.gradients: dict[AtomProduct, GradientSum] = {}
        self.sums: dict[AtomProduct, ProductSum] = {}
        for product, matrix in out.items():
            if left.is_zero(product.left) or right.is_zero(product.right):
                matrix[...] = 0
                continue
            can = here and left is right and _is_dirichlet(product)
            shortcut = left.gradient_sum(matrix, dtype, workspace) if can else None
            if shortcut is not None:
                self.gradients[product], product = shortcut, _gram_of(product)
                matrix = out[product] if product in out else device.empty(matrix.shape)
            if product not in self.sums:
                self.sums[product] = ProductSum(workspace, matrix, dtype)

    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        for product, total in self.sums.items():
            for a, b in scalar_pairs(product, block, self.dimension):
                left = scalar_feature(lefts, a, block)
                if product.weight is None and a == b and all(lefts[v] is rights[v] for v in a.views):
                    total.add_square(left)
                    continue
                right = scalar_feature(rights, b, block)
                if product.weight is not None:
                    weight = block.field(product.weight).astype(left.dtype, copy=False)
                    left, right = (left * weight, right) if block.host is not None else _weighted(left, right, weight)
                total.add(left, right)
        for product, shortcut in self.gradients.items():
            shortcut.add(lefts[product.left.view])

    def finish(self) -> None:
        """Complete the matrices after the last block."""
        totals = {product: products.total for product, products in self.sums.items()}
        for product, shortcut in self.gradients.items():
            shortcut.finish(totals[_gram_of(product)])


def _weighted(left: Array, right: Array, weight: Array) -> tuple[Array, Array]:
    """Return features (p, c) times weights, and (q, c), mostly without rows of weight 0."""
    kept = weight.nonzero()[0]
    if 2 * len(kept) < len(weight):
        left, right, weight = left[:, kept], right[:, kept], weight[kept]
    return left * weight, right


def _is_dirichlet(product: AtomProduct) -> bool:
    return product.left.kind == "gradient" and product.left == product.right and product.weight is None


def _gram_of(product: AtomProduct) -> AtomProduct:
    value = replace(VALUE, view=product.left.view)
    return AtomProduct(value, value)


class BlockContraction:
    """Contraction for each pair of parts; lower blocks of a symmetric matrix mirror upper ones."""

    def __init__(self, left: Basis, right: Basis, out: Mapping[AtomProduct, Array], dtype: Any, workspace: Workspace):
        self.mirrored: list[tuple[Array, Array]] = []
        self.pairs: dict[tuple[int, int], PairContraction | BlockContraction] = {}
        rows, columns = slices_of(b.size for b in left.parts), slices_of(b.size for b in right.parts)
        for i, j in np.ndindex(len(rows), len(columns)):
            lower = [p for p in out if i > j and left is right and p.left == p.right]
            self.mirrored += [(out[p][rows[i], columns[j]], out[p][rows[j], columns[i]]) for p in lower]
            wanted = {p: matrix[rows[i], columns[j]] for p, matrix in out.items() if p not in lower}
            if wanted:
                self.pairs[i, j] = contraction(left.parts[i], right.parts[j], wanted, dtype, workspace)

    def add(self, lefts: Mapping[str, Evaluation], rights: Mapping[str, Evaluation], block: Block) -> None:
        for (i, j), pair in self.pairs.items():
            left = {v: _parts(e)[i] for v, e in lefts.items()}
            right = {v: _parts(e)[j] for v, e in rights.items()}
            pair.add(left, right, block)

    def finish(self) -> None:
        """Complete the matrices after the last block."""
        for pair in self.pairs.values():
            pair.finish()
        for lower, upper in self.mirrored:
            lower[...] = upper.T


def _parts(evaluation: Evaluation) -> tuple[Evaluation, ...]:
    return evaluation.parts if isinstance(evaluation, ConcatenatedEvaluation) else (evaluation,)


class Accumulator(ABC):
    """Sums of forms and functionals over the rows of one group, block by block.

    Parameters
    ----------
    workspace : Workspace
        Buffers and device.

    See Also
    --------
    Basis.accumulator : Returns one; `Basis.matrices` converts its results to matrices of forms.
        Returns an accumulator.

    Examples
    --------
    >>> from daskspectral.basis import ConstantBasis
    >>> from daskspectral.forms import gram
    >>> from daskspectral.workspace import Workspace
    >>> basis = ConstantBasis(1)
    >>> sums = basis.accumulator(basis, {"gram": gram}, {}, dtype=float, workspace=Workspace())
    >>> sums.add(Block({"x": np.zeros((5, 1))}, np.dtype(float), Workspace()))
    >>> sums.result()["gram"]
    array([[5.]])
    """

    def __init__(self, workspace: Workspace):
        self._workspace = workspace

    @final
    def add(self, block: Block) -> None:
        # OpenBLAS flags invalid values for finite products too; sums are checked before solving
        with np.errstate(invalid="ignore"), numbered(block.fields):
            self._add(block)
        self._workspace.launched()

    @abstractmethod
    def _add(self, block: Block) -> None: ...

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """Return the sums by name, once, after the last block."""


class MatrixSums(Accumulator):
    """Sums of forms (p, q) between two bases, and of functionals (p,) or (p, m), by name."""

    def __init__(
        self, left: Basis, right: Basis, forms: Forms, functionals: Functionals, dtype: Any, workspace: Workspace
    ):
        super().__init__(workspace)
        bases, device = {"left": left} | ({} if right is left else {"right": right}), workspace.device
        self._bases: dict[str, Basis] = {  # moved once for all groups of rows
            side: workspace.cached(f"basis {id(b)}", partial(device.moved, b)) for side, b in bases.items()
        }
        self._forms, self._functionals = forms, functionals
        self._narrow = np.dtype(dtype) != np.float64
        self._exponent: int | None = None
        products: dict[Sides, dict[AtomProduct, None]] = {}
        self._atoms: dict[str, dict[Atom, None]] = {side: {} for side in self._bases}
        self._vectors: dict[tuple[str, Pairing], Array] = {}
        self._pairings: dict[tuple[str, Pairing], None] = {}
        for name, form in forms.items():
            sides = self._sides(name)
            products.setdefault(sides, {}).update(dict.fromkeys(form.products))
            for product in form.products:
                self._atoms[sides[0]][product.left] = self._atoms[sides[1]][product.right] = None
        for name, functional in functionals.items():
            for pairing in functional.pairings:
                self._pairings[self._side(name), pairing] = self._atoms[self._side(name)][pairing.atom] = None
        self._matrices: dict[Sides, dict[AtomProduct, Array]] = {}
        self._contractions: dict[Sides, PairContraction | BlockContraction] = {}
        for sides, wanted in products.items():
            one, two = (self._bases[side] for side in sides)
            self._matrices[sides] = {p: device.empty((one.size, two.size)) for p in wanted}
            self._contractions[sides] = contraction(one, two, self._matrices[sides], np.dtype(dtype), workspace)

    def _sides(self, name: str) -> Sides:
        if "right" not in self._bases:
            return "left", "left"
        return {"gram": ("left", "left"), "right_gram": ("right", "right")}.get(name, ("left", "right"))

    def _side(self, functional: str) -> str:
        return self._sides(functional)[1] if functional == "right_first" else "left"

    def _add(self, block: Block) -> None:
        block = self._in_range(block).on(self._workspace)
        at = {side: evaluate(b, block.part(side), list(self._atoms[side])) for side, b in self._bases.items()}
        for side, pairing in self._pairings:
            part = pair_with_field(at[side][pairing.atom.view], pairing, block)
            before = self._vectors.get((side, pairing))
            self._vectors[side, pairing] = part if before is None else before + part
        for (left, right), products in self._contractions.items():
            products.add(at[left], at[right], block)

    def _in_range(self, block: Block) -> Block:
        if not self._narrow or block.scale is None:
            return block
        if self._exponent is None and block.scale.any():  # set once: earlier sums are in this unit
            exponent = math.frexp(block.scale.max())[1]
            self._exponent = exponent if abs(exponent) > MODERATE else 0
        return replace(block, scale=np.ldexp(block.scale, -self._exponent)) if self._exponent else block

    def result(self) -> dict[str, Array]:
        for products in self._contractions.values():
            products.finish()
        get = self._workspace.device.get
        matrices = {sides: {p: get(m) for p, m in found.items()} for sides, found in self._matrices.items()}
        sums = {k: _combine(f.expression.terms, matrices[self._sides(k)]) for k, f in self._forms.items()}
        vectors = {key: get(v) for key, v in self._vectors.items()}
        for name, functional in self._functionals.items() if vectors else ():
            of_side = {pairing: v for (side, pairing), v in vectors.items() if side == self._side(name)}
            sums[name] = _combine(functional.expression.terms, of_side)
        return {k: np.ldexp(v, 2 * self._exponent) for k, v in sums.items()} if self._exponent else sums


class ModeSums(Accumulator):
    """Sums of Fourier modes exp(-i j.t), |j_a| <= 2 m_a, times `weights`, by form name."""

    def __init__(self, lattice: FourierLattice, weights: Sequence[ModeWeight], workspace: Workspace):
        super().__init__(workspace)
        self._lattice, self._mode_weights = lattice, weights
        self._sum: MatmulSum | NufftSum | None = None
        self._columns: list[tuple[str, tuple[int, ...], int]] = []

    def _add(self, block: Block) -> None:
        lattice, weights = self._lattice, self._weights(block)
        if self._sum is None:
            orders, count = tuple(2 * order for order in lattice.orders), 1 if weights is None else len(weights)
            method = lattice.method or "matmul"
            self._sum = mode_sum(orders, method, lattice.eps, self._workspace, weights=count)
        self._sum.add(lattice.angles(np.asarray(block.x, dtype=float)), weights)

    def _weights(self, block: Block) -> NDArray[Any] | None:
        """Return the weights (W, c) of modes; None if all are 1."""
        sample = None if block.scale is None else np.asarray(block.scale, dtype=float) ** 2
        columns, names = [], []
        for weight in self._mode_weights:
            found = weight.of(block.fields)
            own = np.ones(len(block.x)) if found is None else found
            rows = own[None] if own.ndim == 1 else own.T
            columns.append(rows if sample is None else rows * sample)
            names.append((MODES + weight.name, own.shape[1:], len(rows)))
        self._columns = names
        if len(columns) == 1 and sample is None and self._mode_weights[0] == ModeWeight():
            return None
        return np.concatenate(columns)

    def result(self) -> dict[str, NDArray[Any]]:
        """Return the modes (2 M_1 + 1, ...) by name, (m, 2 M_1 + 1, ...) for m columns."""
        if self._sum is None:
            return {}
        found, sums, start = {}, self._sum.result(), 0
        for name, shape, count in self._columns:
            part = sums[start : start + count]
            found[name] = part.reshape(*shape, *part.shape[1:])
            start += count
        return found


def evaluate(basis: Basis, block: Block, atoms: list[Atom]) -> dict[str, Evaluation]:
    """Return the `Evaluation` of a basis on a block for each view, by name."""
    leaves = list(dict.fromkeys(leaf for a in atoms for leaf in a.leaves))
    views = dict.fromkeys(a.view for a in leaves)
    rows = with_successors(block) if len(block.shifts) > 1 and all(leaf.kind == "value" for leaf in leaves) else None
    if rows is None:
        return {v: evaluated(basis, block.view(v), [a for a in leaves if a.view == v]) for v in views}
    found = evaluated(basis, replace(block, fields={"x": rows}, scale=None), [VALUE])
    return {v: found.mapped(_following(block, block.shifts.get(v, 0))) for v in views}


def with_successors(block: Block) -> Array | None:
    """Return the rows of x and their successors, (c + s, d), or None."""
    x, shifts = block.x, block.shifts
    last = max(shifts, key=lambda view: shifts[view])
    c, longest = len(x), shifts[last]
    if block.host is not None or longest >= c:
        return None
    rows = np.concatenate([x, block.fields[last][c - longest :]])
    same = (np.array_equal(block.fields[view], rows[shift : shift + c]) for view, shift in shifts.items())
    return rows if all(same) else None


def _following(block: Block, shift: int) -> Callable[[Array], Array]:
    """Return a function that computes weighted features at shifted rows."""
    return lambda feature: block.weighted(feature[:, shift : shift + len(block.x)])


def _combine(terms: tuple[tuple[float, Any], ...], sums: Mapping[Any, Array]) -> Array:
    factor, key = terms[0]
    if len(terms) == 1 and factor == 1:  # shared by forms: never modified in place
        return np.asarray(sums[key])
    total = factor * sums[key]
    for factor, key in terms[1:]:
        total += factor * sums[key]
    return np.asarray(total)
