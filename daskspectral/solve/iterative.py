"""The leading functions of a penalised pencil that is too large for its matrices: products and a coarse block only.

Knyazev's locally optimal block iteration (LOBPCG, 2001) on A v = θ (A + t (B + σ A)) v, whose right side is positive
definite with eigenvalues that a preconditioner brings together: the exact inverse on a coarse block of functions, and
an approximate one on the others. Both matrices come from one product, which scipy's own iteration would ask for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.pencil import leading_by_cholesky, raised, scale_of
from daskspectral.solve.solvers import Solution
from daskspectral.solve.whitening import fix_signs, orthonormal, symmetric_part, unit_root

Array = NDArray[np.floating[Any]]
Products = Callable[[Array], tuple[Array, ...]]
Inverse = Callable[[Array], Array]
GUARD = 8  # functions of the block beyond those that are wanted: the last ones converge by the gap to what follows
START = 1200  # functions of largest prior among which the iteration finds its start
DEPENDENT = 1e-12  # of the largest eigenvalue of a block's Gram matrix at unit diagonal
INDEFINITE = -1e-8


@dataclass(frozen=True, eq=False)
class Coarse:
    """Functions that hold most of a solution: their `places` (c,), and the Gram matrix and the form among them (c, c).

    They are ordered by falling prior, without a null one.
    """

    places: NDArray[np.integer[Any]]
    gram: Array
    energy: Array


@dataclass(frozen=True, eq=False)
class IterativeSpan:
    """The leading functions of a penalised pencil, and how well they solve it.

    `functions` (p, q) are coefficients, orthonormal in the Gram matrix, the constant first where the form kills it;
    `form` (q, q) is the form among them. `theta` are the values vᵀ A v / vᵀ (A + t (B + σ A)) v of the
    others, descending, and `residuals` the norms of A v - θ (A + t (B + σ A)) v relative to those of
    A v. `history` has the largest residual before each iteration, and at the end.
    """

    functions: Array
    form: Array
    theta: Array
    residuals: Array
    t: float
    sigma: float
    history: tuple[float, ...]
    tolerance: float

    @property
    def converged(self) -> bool:
        """Whether all residuals are as small as was asked for."""
        return bool(self.residuals.max(initial=0.0) <= self.tolerance)

    @property
    def status(self) -> str:
        """The outcome in words."""
        worst, steps = self.residuals.max(initial=0.0), f"after {len(self.history) - 1} iterations"
        words = f"a span of {self.functions.shape[1]} of {len(self.functions)} functions, residuals up to {worst:.1g}"
        return f"{words} {steps}" if self.converged else f"{words} {steps}, above the {self.tolerance:.1g} asked for"

    def spectrum(self, count: int) -> Solution:
        """The `count` lowest Ritz values of the form, without the penalty, on the span, ascending.

        Coefficients (p, count) are of unit norm, the largest of each one positive. `residuals` are those of the form
        and its values within the span; how far the span is solved is in `status`.
        """
        count = min(count, len(self.form))
        values, vectors = scipy.linalg.eigh(self.form, subset_by_index=(0, count - 1))
        residuals = np.linalg.norm(self.form @ vectors - vectors * values, axis=0)
        coefficients = self.functions @ vectors
        fix_signs(coefficients)
        return Solution(values, coefficients, coefficients, len(self.functions), residuals, self.status)


def leading_iterative(
    products: Products,
    scale: Array,
    mu: float,
    *,
    null: bool,
    count: int,
    coarse: Coarse,
    fine: Callable[[float, float], Inverse],
    tolerance: float = 1e-6,
    iterations: int = 200,
) -> IterativeSpan:
    """The functions S v of largest vᵀ A v / vᵀ (A + t (B + σ A)) v, A = S Φ S, B = S L S + mu I: the span of q.

    `products` gives Φ u and L u for a block u (p, k); `scale` (p,) is the diagonal of S, the root of the prior.
    `null` says that the form kills the first function, the constant: it comes first, the penalty leaves it out, and the
    others are orthogonal to it. `count` is q, with it. `coarse` has Φ and L among functions that hold most of the
    solution. `fine(t, sigma)` is given t and σ, and gives an approximate inverse of A + t (B + σ A) that maps residuals
    (p, k) to (p, k), symmetric, positive semidefinite, and positive beyond the coarse block. λ, of which t is, is the
    last value wanted on the coarse block.

    The iteration stops with all residuals below `tolerance`, or after `iterations`, which the status then says. Raises
    ValueError where the coarse block is too small for the functions wanted, or its matrices do not fit it.
    """
    wanted = count - null
    size = len(coarse.places)
    if wanted < 1 or size < wanted + GUARD:
        raise ValueError(
            f"a span of {count} functions, {count - wanted} of them null ones, needs count above these and a coarse "
            f"block of {wanted + GUARD} functions or more; got {size}"
        )
    block = _Subspace(_Deflated(products, scale, mu, null), wanted, coarse, fine)
    history = [block.worst]
    while history[-1] > tolerance and len(history) <= iterations:
        block.step(tolerance)
        history.append(block.worst)
    return block.span(tuple(history), tolerance)


class _Deflated:
    """A and B on functions without what they have of a null one, the first, and are 0 there.

    `first` times the null function has unit norm; `shift` (p,) is what the others have of it.
    """

    def __init__(self, products: Products, scale: Array, mu: float, null: bool):
        self.products, self.scale, self.mu, self.null = products, scale, mu, null
        self.first, self.shift = 0.0, np.zeros(len(scale))
        if null:
            gram = products(np.eye(len(scale), 1))[0][:, 0]
            self.first = float(1 / np.sqrt(gram[0]))
            self.shift = self.first * scale * gram
            self.shift[0] = 0

    def __call__(self, vectors: Array) -> tuple[Array, Array]:
        """A v and B v of vectors (p, k)."""
        scale = self.scale[:, None]
        gram, energy = self.products(scale * vectors)
        a, b = scale * gram, scale * energy + self.mu * vectors
        a[: self.null] = b[: self.null] = 0
        return a - np.outer(self.shift, self.shift @ vectors), b

    def among(self, some: Coarse) -> tuple[Array, Array]:
        """A and B among some functions."""
        scale, shift = self.scale[some.places], self.shift[some.places]
        a, b = (matrix * scale[:, None] * scale for matrix in (some.gram, some.energy))
        b[np.diag_indices_from(b)] += self.mu
        return a - np.outer(shift, shift), b

    def functions(self, vectors: Array) -> Array:
        """Coefficients (p, n' + k): the null function, and S v without what it has of them."""
        found = np.zeros((len(self.scale), self.null + vectors.shape[1]), order="F")
        found[:, self.null :] = self.scale[:, None] * vectors
        if self.null:
            found[0] = np.append(self.first, -self.first * (self.shift @ vectors))
        return found


class _Subspace:
    """A block of functions, the directions of its last change, and what A and B make of them."""

    def __init__(self, pencil: _Deflated, wanted: int, coarse: Coarse, fine: Callable[[float, float], Inverse]):
        self.pencil, self.wanted, self.size = pencil, wanted, wanted + GUARD
        self.coarse, self.fine_of = coarse.places, fine
        self.a, self.b = a, b = pencil.among(coarse)
        few = slice(max(START, self.size))
        traces = np.trace(b), np.trace(a)
        t = scale_of(0.0, *traces)
        theta, vectors, self.sigma = leading_by_cholesky(a[few, few], b[few, few], t, self.size)
        self.t = scale_of((1 / theta[wanted - 1] - 1) / t - self.sigma, *traces)
        self._factorise()
        # the block, the preconditioned residuals, the last change: with A and B of each
        p = len(pencil.scale)
        self.basis, self.a_basis, self.b_basis = (np.zeros((p, 3 * self.size), order="F") for _ in range(3))
        self.basis[self.coarse[few], : self.size] = vectors
        self.a_basis[:, : self.size], self.b_basis[:, : self.size] = pencil(self.basis[:, : self.size])
        self._solve(self.size)

    def _sum(self, a: Array, b: Array) -> Array:
        return np.asarray((1 + self.t * self.sigma) * a + self.t * b)

    def _factorise(self) -> None:
        """The inverses, exact and approximate, of A + t (B + sigma A)."""
        while True:
            try:
                self.factor = scipy.linalg.cho_factor(self._sum(self.a, self.b), overwrite_a=True, check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                self.sigma = raised(self.t, self.sigma)
        self.fine = self.fine_of(self.t, self.sigma)

    def _inverse(self, residuals: Array) -> Array:
        directions = self.fine(residuals)
        directions[: self.pencil.null] = 0
        directions[self.coarse] += scipy.linalg.cho_solve(self.factor, residuals[self.coarse], check_finite=False)
        return directions

    def _solve(self, used: int) -> None:
        """The leading functions among the first columns of the basis, and the directions in which they changed."""
        basis, a_basis, b_basis = (array[:, :used] for array in (self.basis, self.a_basis, self.b_basis))
        a, b = symmetric_part(basis.T @ a_basis), symmetric_part(basis.T @ b_basis)
        while True:
            gram = self._sum(a, b)
            white, values = unit_root(gram, DEPENDENT)
            if (np.diag(gram) > 0).all() and values[0] >= INDEFINITE * values[-1]:
                break
            self.sigma = raised(self.t, self.sigma)
            self._factorise()
        theta, vectors = scipy.linalg.eigh(white.T @ a @ white)
        chosen = white @ vectors[:, ::-1][:, : self.size]
        self.theta, change = theta[::-1][: self.size], chosen.copy()
        change[: self.size] = 0
        for array in (self.basis, self.a_basis, self.b_basis):
            block = array[:, :used] @ np.hstack([chosen, change])
            array[:, : self.size], array[:, 2 * self.size :] = block[:, : self.size], block[:, self.size :]
        a_block, b_block = self.a_basis[:, : self.size], self.b_basis[:, : self.size]
        self.defects = a_block - self._sum(a_block, b_block) * self.theta
        self.residuals = np.linalg.norm(self.defects, axis=0) / np.linalg.norm(a_block, axis=0)

    @property
    def worst(self) -> float:
        """The largest residual of the functions wanted."""
        return float(self.residuals[: self.wanted].max())

    def step(self, tolerance: float) -> None:
        """One iteration: functions that are solved stay in the block, and give no new directions."""
        k = self.size
        active = np.flatnonzero((self.residuals > tolerance) | (np.arange(k) >= self.wanted))
        directions = self._inverse(self.defects[:, active])
        sums = self._sum(self.a_basis[:, :k], self.b_basis[:, :k])
        directions -= self.basis[:, :k] @ (sums.T @ directions)
        directions /= np.linalg.norm(directions, axis=0)
        used = k + len(active)
        changed = 2 * k + active[self.basis[:, 2 * k + active].any(axis=0)]
        arrays = (self.basis, self.a_basis, self.b_basis)
        for array, new in zip(arrays, (directions, *self.pencil(directions)), strict=True):
            last = array[:, changed]
            array[:, k:used], array[:, used : used + len(changed)] = new, last
        self._solve(used + len(changed))

    def span(self, history: tuple[float, ...], tolerance: float) -> IterativeSpan:
        """The functions wanted, orthonormal in the Gram matrix, and the form among them."""
        part, n = slice(0, self.wanted), self.pencil.null
        vectors, a_block, b_block = self.basis[:, part], self.a_basis[:, part], self.b_basis[:, part]
        root = orthonormal(np.eye(self.wanted), vectors.T @ a_block)
        form = np.zeros((n + self.wanted,) * 2)
        form[n:, n:] = symmetric_part(root.T @ (vectors.T @ (b_block - self.pencil.mu * vectors)) @ root)
        functions, theta, residuals = self.pencil.functions(vectors @ root), self.theta[part], self.residuals[part]
        return IterativeSpan(functions, form, theta, residuals, self.t, self.sigma, history, tolerance)
