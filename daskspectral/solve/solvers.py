"""The spectral solvers: a form against a Gram matrix, symmetric or not, between two of them, or against a norm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from daskspectral.registry import Named
from daskspectral.solve.pencil import CERTAIN, Penalty, Pencil, leading_pairs
from daskspectral.solve.ritz import Relation
from daskspectral.solve.whitening import Whitening, fix_signs, inverse_root, orthonormal, symmetric_part, whiten

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class SpectralProblem(Relation):
    """A form <f, L g> of which `count` values are wanted, on directions of the Gram matrices above the relative `cut`.

    `gram` (p, p) is the squared norm of the function space for solvers that hold values against it. `ridge` times the
    mean of a symmetric form's diagonal is added to the diagonal. The solution is sought `within` the leading functions
    of a penalised problem, or for a symmetric form in a span of orthonormal functions; where neither is given, among
    all directions above the cut. By `order` the largest real eigenvalues come first, "descending", else the least;
    complex ones descend by "real" part or by "modulus". `root` is `norm_root` of a squared norm, where it is known. Of
    a `part` of the data the rank counts no more than the values that are found. Entries have a relative `precision`.
    """

    count: int
    cut: float
    ridge: float = 0.0
    within: Penalty | Whitening | None = None
    order: str = "real"
    root: Array | None = None
    part: bool = False
    precision: float = 2e-16

    @property
    def descending(self) -> bool:
        """Whether the largest real values come first."""
        return self.order == "descending"


@dataclass(frozen=True, eq=False)
class Solution:
    """Values (k,), coefficients of the left and right functions (p, k) and (q, k), ranks, residuals (k,).

    Values and coefficients are complex from the non-symmetric solver, real from the others. `status` describes the
    outcome in words.
    """

    values: NDArray[np.inexact[Any]]
    left: NDArray[np.inexact[Any]]
    right: NDArray[np.inexact[Any]]
    rank: int | tuple[int, int]
    residuals: Array
    status: str = ""


class Solver(Named, ABC):
    """SpectralProblem -> Solution, and the attributes by which an estimator shows it.

    `values` names the estimator's attribute for the values; `functions` maps its
    attributes for coefficients to the side of the spectrum, "left" or "right", that each one holds.
    """

    values: ClassVar[str] = "eigenvalues_"
    functions: ClassVar[Mapping[str, str]] = {"coefficients_": "right"}
    two_sided: ClassVar[bool] = False
    """Whether left and right functions have a Gram matrix each; the estimator then shows both sides."""
    needs_symmetry: ClassVar[bool] = False
    """Whether the form must be symmetric."""
    by_norm: ClassVar[bool] = False
    """Whether values are held against the squared norm of the function space, in place of the Gram matrix."""
    largest_first: ClassVar[bool] = False
    """Whether values descend, whatever the operator says."""

    @abstractmethod
    def solve(self, problem: SpectralProblem) -> Solution:
        """The values and functions of a problem."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of all attributes that an estimator has from this solver."""
        support = ("support_", "right_support_") if self.two_sided else ("support_",)
        errors = (self.errors, "standard_errors_", "held_out_", "groups_", "function_errors_", "approximation_")
        known = (*errors, "trusted_", "constants_")
        return (self.values, *self.functions, "rank_", "residuals_", "status_", *support, *known)

    @property
    def errors(self) -> str:
        """The estimator's attribute for the ends of the values' intervals."""
        return f"{self.values.removesuffix('s_')}_errors_"


def described(
    problem: SpectralProblem,
    values: NDArray[np.inexact[Any]],
    left: NDArray[np.inexact[Any]],
    right: NDArray[np.inexact[Any]],
    rank: int | tuple[int, int],
    residuals: Array,
) -> Solution:
    """A spectrum whose status says how many values of how many wanted there are, the ranks and the largest residual."""
    sizes = problem.form.shape
    ranks = f"rank {rank} of {sizes[0]}"
    if isinstance(rank, tuple):
        ranks = f"ranks {rank[0]} of {sizes[0]} and {rank[1]} of {sizes[1]}"
    known = f"{len(residuals)} of the {problem.count} values wanted"
    status = f"{known}; {ranks}; residuals up to {residuals.max(initial=0.0):.1g}"
    return Solution(values, left, right, rank, residuals, status)


# -- the solvers -------------------------------------------------------------------------------------------------------


Complex = NDArray[np.complex128]
LANCZOS_SIZE, LANCZOS_SHARE = 400, 0.05  # of a matrix, from which on it is quicker, and of its eigenvalues
ORTHOGONAL = 1e-13  # cosines of functions, that are rounding
NORM_CUT = 1e-12  # of the largest squared norm at unit diagonal, below which a combination of functions is no function


@final
@dataclass(frozen=True, repr=False)
class Eigen(Solver):
    """The first `count` eigenvalues of form <f, L g> against gram, (p, p), complex, with functions of both sides.

    Right functions g solve L g = λ g, form b = λ gram b; left functions f the adjoint problem,
    a^H form = λ a^H gram. They are biorthonormal, a^H gram b = I. The right functions have unit norm in the metric
    of the Gram matrix, and their largest whitened coefficient is real and positive, so that conjugate values have
    conjugate functions. Values descend by real part (`ranking="real"`, generators) or by modulus and then real part
    (`ranking="modulus"`, transfer operators); values that agree to nine digits descend by imaginary part. `count` may
    split a conjugate pair. Functions whose column of the form is exactly zero (the constant) are exempt from the cut:
    their eigenvalue 0 is exact.

    Raises numpy.linalg.LinAlgError where a left function is orthogonal to its right function (a Jordan block): no
    biorthonormal pair exists there.
    """

    name: ClassVar[str] = "eigen"
    functions: ClassVar[Mapping[str, str]] = {"coefficients_": "right", "left_coefficients_": "left"}
    largest_first: ClassVar[bool] = True

    def solve(self, problem: SpectralProblem) -> Solution:
        white = self._span(problem)
        w = white.matrix
        reduced = w.T @ problem.form @ w
        spectrum: Any = scipy.linalg.eig(reduced, left=True, right=True)
        values, left, right = (np.asarray(part, dtype=np.complex128) for part in spectrum)
        first = _ranked(values, problem.order)[: problem.count]
        values = values[first]
        b = right[:, first] / np.linalg.norm(right[:, first], axis=0)
        fix_signs(white.whitened(b), b)
        a = _biorthonormal(left[:, first], b, values)
        residuals = np.linalg.norm(reduced @ b - b * values, axis=0)
        return described(problem, values, w @ a, w @ b, white.rank, residuals)

    @staticmethod
    def _span(problem: SpectralProblem) -> Whitening:
        """Leading functions by the penalty's energy, or else the leading left and right singular functions together."""
        form, gram, within = problem.form, problem.gram, problem.within
        if not isinstance(within, Penalty):
            return _ranked_span(problem, form)
        if within.energy is not None:
            return _ranked_span(problem, within.energy)
        left, right = leading_pairs(Relation(form, gram), within, problem.count, problem.cut)
        both = np.hstack([right.matrix, left.matrix])
        both = orthonormal(both, both.T @ gram @ both)
        seen = whiten(gram, problem.cut, (form == 0).all(axis=0)).matrix.T @ gram @ both
        return Whitening(both, np.zeros(0), right.rank, seen)


@final
@dataclass(frozen=True, repr=False)
class Principal(Solver):
    """The `count` largest values of vᵀ (F - F_1) v / vᵀ K v, descending, for the form F (p, p) and `gram` = K.

    F_1 is what the functions share with those of norm 0, the constant: with the constant among the functions F - F_1 is
    the covariance, and the functions that are found have mean 0; without it nothing is subtracted. They have unit norm
    in the Gram matrix, that is variance 1, and a squared norm in the function space of 1 / value. Raises ValueError
    where the norm of every function is 0.
    """

    name: ClassVar[str] = "principal"
    needs_symmetry: ClassVar[bool] = True
    by_norm: ClassVar[bool] = True
    largest_first: ClassVar[bool] = True

    def solve(self, problem: SpectralProblem) -> Solution:
        norm, form = problem.gram, problem.form
        root = norm_root(norm) if problem.root is None else problem.root
        null = np.diag(norm) == 0
        shift = np.linalg.pinv(form[np.ix_(null, null)], hermitian=True) @ form[np.ix_(null, ~null)]
        reduced = form[np.ix_(~null, ~null)]
        reduced -= form[np.ix_(~null, null)] @ shift
        if root.ndim == 2:
            reduced = symmetric_part(root.T @ reduced @ root)
        else:
            reduced *= root
            reduced *= root[:, None]
        values, vectors = _largest(reduced, problem.count)
        least = problem.cut * max(values[0], 0.0)
        k = int(np.count_nonzero(values > least))
        rank = k if problem.part else _number_above(reduced, least)
        values, vectors = values[:k], vectors[:, :k].copy()
        residuals = np.hypot.reduce(reduced @ vectors - vectors * values, axis=0)
        functions = root @ vectors if root.ndim == 2 else root[:, None] * vectors
        fix_signs(functions, vectors)
        coefficients = np.zeros((len(form), k))
        coefficients[~null] = functions / np.sqrt(values)
        coefficients[null] = -shift @ coefficients[~null]
        return described(problem, values, coefficients, coefficients, rank, residuals)


def norm_root(norm: Array) -> Array:
    """R (r, s) with Rᵀ K R = I for the squared norm K of the r functions whose norm is not 0; (r,) of a diagonal K.

    Raises ValueError where the norm of every function is 0.
    """
    null = np.diag(norm) == 0
    if null.all():
        raise ValueError(
            "the norm of every function is 0, and no variance can be held against it: use functions besides the "
            "constant"
        )
    inner = norm[np.ix_(~null, ~null)]
    size = np.sqrt(np.diag(inner))
    inner = inner / np.outer(size, size)
    if np.allclose(inner, np.eye(len(inner)), rtol=0, atol=ORTHOGONAL):
        return np.asarray(1 / size)
    return inverse_root(inner, NORM_CUT) / size[:, None]


def _number_above(matrix: Array, least: float) -> int:
    """How many eigenvalues of a symmetric matrix are larger than the least."""
    try:
        np.linalg.cholesky(matrix - least * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return int(np.count_nonzero(scipy.linalg.eigvalsh(matrix) > least))
    return len(matrix)


def _largest(matrix: Array, count: int) -> tuple[Array, Array]:
    """The `count` largest eigenvalues of a symmetric matrix, descending, and their vectors, or all where fewer.

    Few of many are found by Lanczos iteration, whose vector to start with is always the same.
    """
    size = len(matrix)
    if size >= LANCZOS_SIZE and count <= LANCZOS_SHARE * size:
        with suppress(ArpackError):
            values, vectors = eigsh(matrix, count, which="LA", v0=np.random.default_rng(0).standard_normal(size))
            order = np.argsort(values)[::-1]
            return values[order], vectors[:, order]
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(max(0, size - count), size - 1))
    return values[::-1], vectors[:, ::-1]


@final
@dataclass(frozen=True, repr=False)
class Singular(Solver):
    """The `count` largest singular values of form (p, q) between gram (p, p) and right_gram (q, q), descending.

    U S Vᵀ = Φ^(-1/2) L Ψ^(-1/2); the left functions are the rows of A = Uᵀ Φ^(-1/2), the right ones the rows of
    B = Vᵀ Ψ^(-1/2) (equation (7) of the Galerkin paper), kept as columns (p, k) and (q, k). They have unit norm in
    the metric of their side. The largest whitened coefficient of a left function is positive, and the sign of the right
    function makes the singular value positive. The ranks of both sides come as a pair.

    With `means` = (E φ (p,), E ψ (q,)) the means of the functions are subtracted first, so that ranks are decided on
    functions of variance 1. What rounding leaves of almost constant functions is known from their squares: constants
    drop out of the span. Raises ValueError if nothing is left.
    """

    name: ClassVar[str] = "singular"
    values: ClassVar[str] = "singular_values_"
    functions: ClassVar[Mapping[str, str]] = {"coefficients_": "left", "right_coefficients_": "right"}
    two_sided: ClassVar[bool] = True

    def solve(self, problem: SpectralProblem) -> Solution:
        relation, squares = problem.covariances, [np.diag(gram) for gram in problem.grams]
        if problem.means is not None:
            shares = [
                np.diag(g) > CERTAIN * problem.precision * s for g, s in zip(relation.grams, squares, strict=True)
            ]
            if not all(share.any() for share in shares) and all(s.any() for s in squares):
                raise ValueError(
                    "nothing is left of the basis once the means are subtracted: its functions are all but constant on "
                    "these data; narrow the kernel's scale, or use more functions"
                )
        if isinstance(problem.within, Penalty):
            spans = leading_pairs(problem, problem.within, problem.count, problem.cut)
        else:
            blurred = [None if problem.means is None else CERTAIN * problem.precision * s for s in squares]
            left_span, right_span = (
                whiten(g, problem.cut, None, b) for g, b in zip(relation.grams, blurred, strict=True)
            )
            spans = left_span, right_span
        left, right = (span.matrix for span in spans)
        rank, k = (spans[0].rank, spans[1].rank), min(problem.count, left.shape[1], right.shape[1])
        reduced = left.T @ relation.form @ right
        u, values, vt = scipy.linalg.svd(reduced, full_matrices=False)
        u, values, v = u[:, :k], values[:k], vt[:k].T.copy()
        fix_signs(spans[0].whitened(u), u, v)
        residuals = np.hypot(
            np.linalg.norm(reduced @ v - u * values, axis=0), np.linalg.norm(reduced.T @ u - v * values, axis=0)
        )
        return described(problem, values, left @ u, right @ v, rank, residuals)


@final
@dataclass(frozen=True, repr=False)
class Symmetric(Solver):
    """The `count` lowest eigenvalues of a form against a Gram matrix, (p, p), ascending; fewer when the rank is less.

    With `descending` the largest, from the largest down, as for a generator, whose spectrum is negative.

    `ridge` adds that multiple of the mean of the form's diagonal to the diagonal (footnote 6 of the Galerkin paper:
    (L + eps I, Φ), never the Gram matrix alone). Functions have unit norm in the metric of the Gram matrix. Functions
    that the form kills (rows of exact zeros, such as the constant's) are exempt from the cut, so that the eigenvalue 0
    is exact.
    """

    name: ClassVar[str] = "symmetric"
    needs_symmetry: ClassVar[bool] = True

    def solve(self, problem: SpectralProblem) -> Solution:
        form = problem.form
        white = _ranked_span(problem, -form if problem.descending else form)
        if problem.ridge:
            form = form + problem.ridge * np.trace(form) / len(form) * np.eye(len(form))
        reduced = symmetric_part(white.matrix.T @ form @ white.matrix)
        size = len(reduced)
        k = min(problem.count, size)
        wanted = (size - k, size - 1) if problem.descending else (0, k - 1)
        values, vectors = scipy.linalg.eigh(reduced, subset_by_index=wanted)
        if problem.descending:
            values, vectors = values[::-1], vectors[:, ::-1].copy()
        fix_signs(white.whitened(vectors), vectors)
        residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
        coefficients = white.matrix @ vectors
        return described(problem, values, coefficients, coefficients, white.rank, residuals)


def _ranked_span(problem: SpectralProblem, energy: Array) -> Whitening:
    """The span that is given, the leading penalised functions by an energy, or all directions above the cut."""
    within = problem.within
    if isinstance(within, Penalty):
        return Pencil(energy, problem.gram, within, problem.count, problem.cut).leading(problem.gram)
    return whiten(problem.gram, problem.cut, (problem.form == 0).all(axis=0)) if within is None else within


def _ranked(values: Complex, order: str) -> NDArray[np.intp]:
    """Positions by descending real part, or modulus and real part, then imaginary part, to nine digits each."""
    parts = [values.imag, values.real] + ([np.abs(values)] if order == "modulus" else [])
    step = max(1e-9 * float(np.abs(values).max()), np.finfo(float).tiny)
    return np.lexsort([-np.rint(part / step) for part in parts])


def _biorthonormal(left: Complex, right: Complex, values: Complex) -> Complex:
    """The left vectors recombined so that left^H right = I; only vectors of one eigenvalue mix."""
    overlap = left.conj().T @ right
    if np.linalg.svd(overlap, compute_uv=False).min(initial=1) < 4 * np.finfo(float).eps:
        worst = values[np.abs(np.diag(overlap)).argmin()]
        raise np.linalg.LinAlgError(
            f"the operator is defective on this basis: at the eigenvalue {worst:.6g} the left function is orthogonal "
            "to the right one, and the two cannot be paired; take the singular values instead"
        )
    return np.asarray(left @ np.linalg.inv(overlap).conj().T)
