"""How a form spreads over the rows around its mean, from which error bars follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Block, Evaluation
from daskspectral.basis.evaluation import scalar_feature, scalar_pairs
from daskspectral.forms import Form
from daskspectral.moments.measure import Measure, evaluate, numbered
from daskspectral.solve.extremes import Largest

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class FormSpread:
    """A task over rows: how A_ij = w H(u_i, u_j, x) and its influence on eigenvalues spread around their means.

    `measure` has the forms `form` and `gram` of one basis; `span` (p, r) are the coefficients of the functions u,
    `functions` (p, k) the coefficients of eigenfunctions f with eigenvalues `values` (k,). The sums are

        second   sum A Aᵀ (r, r)
        squares  sum w² (H(f_i, f_i, x) - λ_i f_i(x)²)² (k,), of the first-order changes of λ_i
        peak     the largest Frobenius norm of A
        largest  the largest |A_ij|

    in O(c m r (p + r)) for a block of c rows and a form that is a sum of m products of scalars.
    """

    measure: Measure
    span: Array
    functions: Array
    values: Array

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        """The sums over the rows of these batches."""
        r, k = self.span.shape[1], self.functions.shape[1]
        both = np.hstack([self.span, self.functions])
        form, gram = self.measure.forms["form"], self.measure.forms["gram"]
        atoms = [atom for f in (form, gram) for p in f.products for atom in (p.left, p.right)]
        second, squares, peak, largest = np.zeros((r, r)), np.zeros(k), Largest(), Largest()
        arena = Arena()
        for batch in batches:
            for block in self.measure.blocks(batch, arena):
                with numbered(block.fields):
                    at = evaluate(self.measure.left, block, atoms)
                left, right = _factors(form, at, block, both)
                change = _diagonal(left[:, r:], right[:, r:])
                change -= self.values[:, None] * _diagonal(*_factors(gram, at, block, self.functions))
                squares += np.sum(change**2, axis=1)
                left, right = left[:, :r], right[:, :r]
                weighed = np.einsum("sic,cst->itc", left, _grams(right), optimize=True)
                second += weighed.reshape(r, -1) @ left.transpose(1, 0, 2).reshape(r, -1).T
                norm, entry = _sizes(left, right) if _of_squares(form) else _sizes_by_entries(left, right)
                peak, largest = peak + Largest(norm), largest + Largest(entry)
        return {"second": second, "squares": squares, "peak": peak, "largest": largest}


def _of_squares(form: Form) -> bool:
    """Whether the form is a sum of squares, all of one sign, so that no row's matrix is indefinite."""
    terms = form.expression.terms
    signs = {factor > 0 for factor, _ in terms}
    return len(signs) == 1 and all(p.left == p.right and p.weight is None for _, p in terms)


def _factors(form: Form, at: Mapping[str, Evaluation], block: Block, functions: Array) -> tuple[Array, Array]:
    """F and G (m, k, c) with H(f_i, f_j, x_c) = sum_t F_tic G_tjc, times the sample weights."""
    lefts, rights = [], []
    for factor, product in form.expression.terms:
        weight = factor if product.weight is None else factor * block.field(product.weight)
        for a, b in scalar_pairs(product, block, block.fields[product.left.views[0]].shape[1]):
            left = functions.T @ scalar_feature(at, a, block)
            right = left if a == b else functions.T @ scalar_feature(at, b, block)
            lefts.append(left)
            rights.append(right * weight)
    return np.stack(lefts), np.stack(rights)


def _diagonal(left: Array, right: Array) -> Array:
    """sum_t F_tic G_tic, (k, c)."""
    return np.asarray(np.einsum("tic,tic->ic", left, right))


def _grams(factors: Array) -> Array:
    """sum_i F_sic F_tic, (c, m, m)."""
    rows = np.ascontiguousarray(factors.transpose(2, 0, 1))  # what BLAS can take
    return np.asarray(rows @ rows.transpose(0, 2, 1))


def _sizes(left: Array, right: Array) -> tuple[float, float]:
    """The largest Frobenius norm and entry of semidefinite A: |A|^2 = tr(F^T F G^T G), |A_ij| <= max |A_ii|."""
    squares = np.sum(_grams(left) * _grams(right), axis=(1, 2))
    return float(np.sqrt(squares.max())), float(np.abs(_diagonal(left, right)).max())


def _sizes_by_entries(left: Array, right: Array) -> tuple[float, float]:
    """The same for any A, entry by entry, some rows at a time: cancellation would spoil the shorter formula."""
    norm, entry = 0.0, 0.0
    step = max(1, 2**20 // left.shape[1] ** 2)
    for start in range(0, left.shape[2], step):
        some = slice(start, start + step)
        a = left[:, :, some].transpose(2, 1, 0) @ right[:, :, some].transpose(2, 0, 1)
        norm = max(norm, float(np.sqrt(np.sum(a**2, axis=(1, 2)).max())))
        entry = max(entry, float(np.abs(a).max()))
    return norm, entry
