"""The leading functions of a penalised problem that is too large for its matrices: products and a coarse block only.

Knyazev's locally optimal block iteration (LOBPCG, 2001) on A v = θ (A + t B) v, whose right side is positive
definite with eigenvalues that a preconditioner brings together: the exact inverse on a coarse block of functions, and
an approximate one on the others. The null functions of the form are deflated exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.dense import symmetric_part
from daskspectral.solve.signs import fix_signs
from daskspectral.solve.solver import Spectrum
from daskspectral.solve.whiten import Whitening

Array = NDArray[np.floating[Any]]
Products = Callable[[Array], tuple[Array, ...]]
Inverse = Callable[[Array], Array]
GUARD = 8  # functions of the block beyond those that are wanted: the last ones converge by the gap to what follows
START = 1200  # functions of largest prior among which the iteration finds its start
DEPENDENT = 1e-12  # of the largest eigenvalue of a block's Gram matrix at unit diagonal


@dataclass(frozen=True, eq=False)
class IterativeSpan:
    """The leading functions of a penalised problem, and how well they solve it.

    `functions` (p, q) are coefficients, orthonormal in the Gram matrix, the n' null functions of the form first;
    `form` (q, q) is the form among them. `theta` (q - n',) are the values vᵀ A v / vᵀ (A + t (B + σ A)) v of the
    others, descending, and `residuals` (q - n',) the norms of A v - θ (A + t (B + σ A)) v relative to those of
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
    def iterations(self) -> int:
        """How many iterations were made."""
        return len(self.history) - 1

    @property
    def converged(self) -> bool:
        """Whether all residuals are as small as was asked for."""
        return bool(self.residuals.max(initial=0.0) <= self.tolerance)

    @property
    def status(self) -> str:
        """The outcome in words."""
        worst, steps = self.residuals.max(initial=0.0), f"after {self.iterations} iterations"
        words = f"a span of {self.functions.shape[1]} of {len(self.functions)} functions, residuals up to {worst:.1g}"
        return f"{words} {steps}" if self.converged else f"{words} {steps}, above the {self.tolerance:.1g} asked for"

    @property
    def whitening(self) -> Whitening:
        """The span as one that `Problem` takes."""
        return Whitening(self.functions, self.theta, len(self.functions))

    def spectrum(self, count: int) -> Spectrum:
        """The `count` lowest Ritz values of the form, without the penalty, on the span, ascending.

        Coefficients (p, count) are of unit norm, the largest of each one positive. `residuals` are those of the form
        and its values within the span; how far the span is solved is in `status`.
        """
        count = min(count, len(self.form))
        values, vectors = scipy.linalg.eigh(self.form, subset_by_index=(0, count - 1))
        residuals = np.linalg.norm(self.form @ vectors - vectors * values, axis=0)
        coefficients = self.functions @ vectors
        fix_signs(coefficients)
        return Spectrum(values, coefficients, coefficients, len(self.functions), residuals, self.status)


def leading_iterative(
    products: Products,
    scale: Array,
    mu: float,
    *,
    nulls: NDArray[np.bool_],
    count: int,
    coarse: NDArray[np.integer[Any]],
    coarse_gram: Array,
    coarse_energy: Array,
    fine: Callable[[float, float], Inverse],
    tolerance: float = 1e-6,
    iterations: int = 200,
    report: Callable[[int, float], None] | None = None,
) -> IterativeSpan:
    """The functions S v of largest vᵀ A v / vᵀ (A + t (B + σ A)) v, A = S Φ S, B = S L S + mu I: the span of q.

    `products` gives Φ u and L u for a block u (p, k); `scale` (p,) is the diagonal of S, the root of the prior.
    `nulls` (p,) marks functions that the form kills: they come first, the penalty leaves them out, and the others are
    orthogonal to them. `count` is q, with them. `coarse` (c,) are the places of functions that hold most of the
    solution, ordered by falling `scale`, without null ones; `coarse_gram` and `coarse_energy` are Φ and L among them.
    `fine(t, sigma)` is given t and σ, and gives an approximate inverse of A + t (B + σ A) that maps residuals
    (p, k) to (p, k), symmetric, positive semidefinite, and positive beyond the coarse block.
    t = 1 / max(λ, 1e-3 tr B / tr A), with λ the last value wanted on the coarse block; σ ≥ 0 is raised
    until the sum is positive definite (potential wells). `report` hears of each iteration and its largest residual.

    The iteration stops with all residuals below `tolerance`, or after `iterations`, which the status then says. Raises
    ValueError where the coarse block is too small for the functions wanted, or its matrices do not fit it.
    """
    wanted = count - int(nulls.sum())
    block = wanted + GUARD
    if coarse_gram.shape != (len(coarse),) * 2 or coarse_energy.shape != coarse_gram.shape:
        raise ValueError(
            f"the matrices of a coarse block of {len(coarse)} functions are square of that size; got shapes "
            f"{coarse_gram.shape} and {coarse_energy.shape}"
        )
    if wanted < 1 or len(coarse) < block:
        raise ValueError(
            f"a span of {count} functions, {count - wanted} of them null ones, needs count above these and a coarse "
            f"block of {block} functions or more; got {len(coarse)}"
        )
    if nulls[coarse].any():
        raise ValueError("null functions are deflated, and no part of the coarse block: leave them out of `coarse`")
    problem = _Deflated.of(products, scale, mu, nulls)
    iteration = _Iteration(problem, wanted, _Coarse(problem, coarse, coarse_gram, coarse_energy), fine)
    history = [iteration.residuals[:wanted].max()]
    while history[-1] > tolerance and len(history) <= iterations:
        iteration.step(tolerance)
        history.append(iteration.residuals[:wanted].max())
        if report is not None:
            report(len(history) - 1, float(history[-1]))
    return iteration.span(tuple(map(float, history)), tolerance)


@dataclass(frozen=True, eq=False)
class _Deflated:
    """A and B on functions without what they have of the null ones, which are 0 at these.

    `first` (n', n') makes the null functions orthonormal; `shift` (p, n') is what the others have of each.
    """

    products: Products
    scale: Array
    mu: float
    nulls: NDArray[np.bool_]
    first: Array
    shift: Array

    @classmethod
    def of(cls, products: Products, scale: Array, mu: float, nulls: NDArray[np.bool_]) -> _Deflated:
        places = np.flatnonzero(nulls)
        units = np.zeros((len(scale), len(places)))
        units[places, np.arange(len(places))] = 1
        gram = products(units)[0] if len(places) else units
        values, vectors = scipy.linalg.eigh(gram[places]) if len(places) else (np.ones(0), np.zeros((0, 0)))
        first = vectors / np.sqrt(values)
        return cls(products, scale, mu, nulls, first, np.where(nulls[:, None], 0.0, scale[:, None] * (gram @ first)))

    def __call__(self, vectors: Array) -> tuple[Array, Array]:
        """A v and B v of vectors (p, k) that are 0 at the null functions."""
        scale = self.scale[:, None]
        gram, energy = self.products(scale * vectors)
        a, b = scale * gram, scale * energy + self.mu * vectors
        a[self.nulls] = b[self.nulls] = 0
        return a - self.shift @ (self.shift.T @ vectors), b

    def functions(self, vectors: Array) -> Array:
        """Coefficients (p, n' + k): the null functions, and S v without what it has of them."""
        n = self.first.shape[1]
        found = np.empty((len(self.scale), n + vectors.shape[1]), order="F")
        found[:, :n] = 0
        found[self.nulls, :n] = self.first
        found[:, n:] = self.scale[:, None] * vectors
        found[self.nulls, n:] = -self.first @ (self.shift.T @ vectors)
        return found


@dataclass(frozen=True, eq=False)
class _Coarse:
    """A and B on a coarse block, from the Gram matrix and the form on it."""

    problem: _Deflated
    places: NDArray[np.integer[Any]]
    gram: Array
    energy: Array

    @property
    def ratio(self) -> float:
        """tr B / tr A."""
        squares, shift = self.problem.scale[self.places] ** 2, self.problem.shift[self.places]
        trace = squares @ np.diag(self.energy) + self.problem.mu * len(squares)
        return float(trace / (squares @ np.diag(self.gram) - (shift**2).sum()))

    def combined(self, alpha: float, beta: float, size: int | None = None) -> Array:
        """alpha A + beta B, of all functions of the block or the first ones."""
        part = slice(size)
        places, problem = self.places[part], self.problem
        scale, shift = problem.scale[places], problem.shift[places]
        total = alpha * self.gram[part, part]
        if beta:
            total += beta * self.energy[part, part]
        total *= scale[:, None]
        total *= scale
        total -= alpha * (shift @ shift.T)
        total[np.diag_indices_from(total)] += beta * problem.mu
        return total


class _Iteration:
    """A block of functions, the directions of its last change, and what A and B make of them."""

    def __init__(self, problem: _Deflated, wanted: int, coarse: _Coarse, fine: Callable[[float, float], Inverse]):
        self.problem, self.wanted, self.size = problem, wanted, wanted + GUARD
        self.coarse, self.fine_of = coarse, fine
        self.t, self.sigma, vectors = self._started()
        self._factorise()
        # the block, the preconditioned residuals, the last change: with A and B of each
        p = len(problem.scale)
        self.basis, self.a_basis, self.b_basis = (np.zeros((p, 3 * self.size), order="F") for _ in range(3))
        self.basis[coarse.places[: len(vectors)], : self.size] = vectors
        self.a_basis[:, : self.size], self.b_basis[:, : self.size] = problem(self.basis[:, : self.size])
        self._solve(self.size)

    def _started(self) -> tuple[float, float, Array]:
        """t, sigma, and the leading functions of a part of the coarse block."""
        size = min(len(self.coarse.places), START)
        a, b = self.coarse.combined(1, 0, size), self.coarse.combined(0, 1, size)
        last, least = (size - self.size, size - 1), 1e-3 * abs(self.coarse.ratio)
        t, sigma = 1 / least, 0.0
        while True:
            try:
                theta, vectors = scipy.linalg.eigh(a, (1 + t * sigma) * a + t * b, subset_by_index=last, driver="gvx")
                break
            except scipy.linalg.LinAlgError:
                sigma = self._raised(t, sigma)
        value = (1 / theta[GUARD] - 1) / t - sigma  # of the form, for the last function wanted
        return float(1 / max(value, least)), sigma, np.asarray(vectors[:, ::-1])

    def _factorise(self) -> None:
        """The inverses, exact and approximate, of A + t (B + sigma A)."""
        while True:
            try:
                sums = self.coarse.combined(1 + self.t * self.sigma, self.t)
                self.factor = scipy.linalg.cho_factor(sums.T, lower=True, overwrite_a=True, check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                self.sigma = self._raised(self.t, self.sigma)
        self.fine = self.fine_of(self.t, self.sigma)

    @staticmethod
    def _raised(t: float, sigma: float) -> float:
        if t * sigma > 1e12:
            raise ValueError(
                "the form has values too far below 0 for its leading functions to be told apart; are its modes and the "
                "Gram matrix's those of the same rows?"
            )
        return max(2 * sigma, 1 / t)

    def _sum(self, a: Array, b: Array) -> Array:
        return np.asarray((1 + self.t * self.sigma) * a + self.t * b)

    def _inverse(self, residuals: Array) -> Array:
        directions = self.fine(residuals)
        directions[self.problem.nulls] = 0
        places = self.coarse.places
        directions[places] += scipy.linalg.cho_solve(self.factor, residuals[places], check_finite=False)
        return np.asarray(directions)

    def _solve(self, used: int) -> None:
        """The leading functions among the first columns of the basis, and the directions in which they changed."""
        basis, a_basis, b_basis = (array[:, :used] for array in (self.basis, self.a_basis, self.b_basis))
        a, b = basis.T @ a_basis, basis.T @ b_basis
        a, b = symmetric_part(a), symmetric_part(b)
        while True:
            white = _white(self._sum(a, b))
            if white is not None:
                break
            self.sigma = self._raised(self.t, self.sigma)
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

    def step(self, tolerance: float) -> None:
        """One iteration: functions that are solved stay in the block, and give no new directions."""
        k = self.size
        active = np.flatnonzero((self.residuals > tolerance) | (np.arange(k) >= self.wanted))
        block = self.basis[:, :k]
        directions = self._inverse(self.defects[:, active])
        sums = self._sum(self.a_basis[:, :k], self.b_basis[:, :k])
        directions -= block @ (sums.T @ directions)
        directions /= np.linalg.norm(directions, axis=0)
        used = k + len(active)
        changed = [j for j in active if self.basis[:, 2 * k + j].any()]
        for array, new in zip(
            (self.basis, self.a_basis, self.b_basis), (directions, *self.problem(directions)), strict=True
        ):
            last = array[:, [2 * k + j for j in changed]]
            array[:, k:used], array[:, used : used + len(changed)] = new, last
        self._solve(used + len(changed))

    def span(self, history: tuple[float, ...], tolerance: float) -> IterativeSpan:
        """The functions wanted, orthonormal in the Gram matrix, and the form among them."""
        part = slice(0, self.wanted)
        vectors, a_block, b_block = self.basis[:, part], self.a_basis[:, part], self.b_basis[:, part]
        values, turns = scipy.linalg.eigh(vectors.T @ a_block)
        root = (turns / np.sqrt(values)) @ turns.T
        form = b_block - self.problem.mu * vectors
        n = self.problem.first.shape[1]
        reduced = np.zeros((n + self.wanted,) * 2)
        inner = root.T @ (vectors.T @ form) @ root
        reduced[n:, n:] = symmetric_part(inner)
        functions = self.problem.functions(vectors @ root)
        theta, residuals = self.theta[part].copy(), self.residuals[part].copy()
        return IterativeSpan(functions, reduced, theta, residuals, self.t, self.sigma, history, tolerance)


def _white(gram: Array) -> Array | None:
    """W with W^T gram W = I on its independent directions; None where the matrix is indefinite."""
    diagonal = np.diag(gram)
    if (diagonal <= 0).any():
        return None
    scale = 1 / np.sqrt(diagonal)
    values, vectors = scipy.linalg.eigh(gram * scale[:, None] * scale)
    if values[0] < -1e-8 * values[-1]:
        return None
    kept = values > DEPENDENT * values[-1]
    return np.asarray(scale[:, None] * (vectors[:, kept] / np.sqrt(values[kept])))
