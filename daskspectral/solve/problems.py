"""Spectral problems: symmetric and nonsymmetric eigenproblems, singular values, principal components."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from daskspectral.devices import HOST, Device
from daskspectral.registry import Named
from daskspectral.solve.pencil import CERTAIN, Pencil, leading_pairs
from daskspectral.solve.ritz import SMALL, energy_scores, explained, overfitted, ritz, ritz_singular
from daskspectral.solve.system import BySlopes, ByValues, GalerkinSystem, Penalty
from daskspectral.solve.whitening import (
    Whitening,
    eigh,
    fix_signs,
    inverse_root,
    orthonormal,
    symmetric_part,
    whiten,
)
from daskspectral.validation import check_flag, check_option

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]
Rank = int | tuple[int, int]
NEGLIGIBLE = 1e-3  # of the largest value: smaller differences are neglected
SMALL_SINGULAR = 0.25  # of the largest: errors of smaller singular values are relative to this
MISSING = 0.1  # share of the constant: cost of a missing singular function
FULL = 64  # size up to which computing all eigenvectors is faster than a few
COMPARED, MOST_COMPARED = 16, 24  # number of compared values, if at most 24 are requested
POSITIVE = 1e-6  # of the largest value: larger negative values are not rounding


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a Galerkin system.

    Attributes
    ----------
    values : array (k,)
        Eigenvalues or singular values, complex for `NonNormal`.
    left, right : array (p, k), (q, k)
        Coefficients of the functions.
    rank : int or tuple of int
        Rank of the Gram matrix, or of both.
    residuals : array (k,)
        Residual norms in the whitened basis.
    status : str
        The outcome in words.
    """

    values: Functions
    left: Functions
    right: Functions
    rank: Rank
    residuals: Array
    status: str = ""


class Problem(Named, ABC):
    """Kind of spectral problem, which solves Galerkin systems and holds no data.

    A subclass defines `name`, `solve`, and the flags below that differ from their defaults.

    Attributes
    ----------
    value : str
        Name of a value.
    measure : str
        Name of a value on other rows (`ritz`).
    sides : tuple of str
        Names of the distinct functions, "left" and "right", the main ones first.
    two_sided : bool
        Whether left and right functions have separate Gram matrices.
    needs_symmetry : bool
        Whether the form must be symmetric.
    by_norm : bool
        Whether values are relative to the squared norm of the function space, not the Gram matrix.
    descending : bool
        Whether the largest values are computed.
    worst : float
        Value in `scores` for a candidate without a solution.
    penalties : tuple of float
        Candidates for the strength c of the penalty, the default first.
    """

    value: ClassVar[str] = "eigenvalue"
    measure: ClassVar[str] = "Ritz value"
    sides: ClassVar[tuple[str, ...]] = ("right",)
    two_sided: ClassVar[bool] = False
    needs_symmetry: ClassVar[bool] = False
    by_norm: ClassVar[bool] = False
    descending: bool = False
    worst: ClassVar[float] = math.inf
    penalties: ClassVar[tuple[float, ...]] = (0.1, 1.0)

    @abstractmethod
    def solve(self, system: GalerkinSystem) -> Solution: ...

    def compares(self, order: int) -> bool:
        """Return whether a variational principle holds for derivatives up to `order`."""
        return (self.needs_symmetry or (self.two_sided and order == 0)) and not self.by_norm

    def energy(self, system: GalerkinSystem) -> Array | None:
        return system.energy

    def penalty(self, system: GalerkinSystem, by_values: ByValues, by_slopes: BySlopes) -> Penalty | None:
        """Return the penalty that defines the leading functions; None for all directions."""
        return None

    def pencil(self, system: GalerkinSystem) -> Pencil | None:
        """Return the pencil whose leading functions span solutions of parts, or None."""
        return None

    def nulls(self, system: GalerkinSystem) -> int:
        """Return the number of leading values that are exactly 0."""
        return 0

    def signed(self, values: Any) -> Any:
        """Return values or a form with the sign that makes requested values the least."""
        return -values if self.descending else values

    def ritz(self, left: Functions, right: Functions, system: GalerkinSystem) -> Functions:
        """Return the values (k,) of another system on spans (p, k), (q, k); NaN if undetermined."""
        found: Functions = self.signed(ritz(right, self.signed(system.form), system.gram, dtype=system.dtype))
        return found

    def score(self, values: Functions, wanted: int) -> float:
        """Return the score of values of `ritz`, -inf if fewer than `wanted`."""
        known = len(values) >= wanted and not np.isnan(values).any()
        return -float(np.sum(self.signed(values).real)) if known else -math.inf

    def maximizes(self, values: Functions) -> bool:
        """Return whether more functions do not lower the moduli of values."""
        return bool(self.descending and values.real.sum() > 0)

    def sizes(self, values: Functions) -> Array:
        """Return the sizes (k,) to which errors of values are relative."""
        sizes = np.abs(values)
        return np.asarray(sizes + NEGLIGIBLE * sizes.max(initial=0.0) + 1e-300)

    def compared(self, solution: Solution, left: Functions, right: Functions, system: GalerkinSystem) -> Array:
        """Return the validation values (count,) of a solution for `scores`, by a system of other rows.

        Signed Ritz values, infinite if missing; h > 0 above a fitted value l > 0 becomes h √(h / l), because a fit
        reports l. Raises LinAlgError if a positive form has values far below 0.
        """
        values = self.signed(self.ritz(left, right, system)).real
        values = np.where(np.isnan(values), np.inf, values)
        fitted = self.signed(solution.values.real[: len(values)])
        largest = np.max(values, initial=0.0, where=np.isfinite(values))
        if system.positive and min(values.min(initial=0.0), fitted.min(initial=0.0)) < -POSITIVE * largest:
            raise np.linalg.LinAlgError("a positive semidefinite form has negative values because of rounding")
        values[: len(fitted)] = overfitted(values[: len(fitted)], fitted)
        return np.append(values, np.full(system.count - len(values), np.inf))

    def scores(self, found: Mapping[Any, Array], wanted: int) -> dict[Any, float]:
        """Return the scores of candidates, larger is better, from values (n_splits, k)."""
        return energy_scores(found)

    def n_compared(self, wanted: int) -> int:
        return max(COMPARED, wanted) if wanted > MOST_COMPARED else COMPARED

    def finalist_gap(self, best: Array, others: Iterable[Array]) -> Array | None:
        """Return the least ratio (k,) of validation values (n_splits, k) of other candidates to the best ones.

        It is 1 unless another candidate is lower in every split: the best one has too few functions, or overfits.
        """
        known = np.isfinite(best) & (best > SMALL * best.max(initial=0.0, where=np.isfinite(best)))
        least = np.ones(best.shape[1])
        for values in others:
            usable = known & np.isfinite(values) & (values > 0)
            ratio = np.divide(values, best, out=np.ones_like(best), where=usable)
            least = np.minimum(least, np.where((ratio < 1).all(axis=0), np.exp(np.log(ratio).mean(axis=0)), 1.0))
        return least


def with_status(
    system: GalerkinSystem, values: Functions, left: Functions, right: Functions, rank: Rank, residuals: Array
) -> Solution:
    """Return a solution with a status: number of values, ranks, largest residual."""
    sizes = system.form.shape
    ranks = f"rank {rank} of {sizes[0]}"
    if isinstance(rank, tuple):
        ranks = f"ranks {rank[0]} of {sizes[0]} and {rank[1]} of {sizes[1]}"
    known = f"{len(residuals)} of {system.count} requested values"
    status = f"{known}; {ranks}; residuals up to {residuals.max(initial=0.0):.1g}"
    return Solution(values, left, right, rank, residuals, status)


# -- the kinds ---------------------------------------------------------------------------------------------------------


Complex = NDArray[np.complex128]
LANCZOS_SIZE, LANCZOS_SHARE = (
    400,
    0.05,
)  # least size of a matrix, and largest share of its eigenvalues, for Lanczos iteration
ORTHOGONAL = 1e-13  # cosines of functions below this are rounding
TOLD_SQUARE = 1e-10  # of the largest squared singular value, above which others follow from squares
NORM_CUT = 1e-12  # of the largest squared norm at unit diagonal, below which a combination of functions is 0


@final
@dataclass(frozen=True, repr=False)
class NonNormal(Problem):
    """Non-self-adjoint eigenproblem of a form <f, L g> against a Gram matrix, (p, p).

    Right functions: form b = λ gram b, of unit norm; left functions: a^H form = λ a^H gram, a^H gram b = I. The
    largest whitened coefficient is real and positive, so that conjugate values have conjugate functions. Functions
    whose column of the form is exactly zero are exempt from the cutoff. Raises LinAlgError for a Jordan block.

    Parameters
    ----------
    ranking : {"real", "modulus"}
        Whether values descend by real part (generators), or by modulus and then real part (transfer operators).
    """

    name: ClassVar[str] = "eigen"
    sides: ClassVar[tuple[str, ...]] = ("right", "left")
    descending = True

    ranking: str = "real"

    def __post_init__(self) -> None:
        check_option("ranking", self.ranking, ("real", "modulus"))

    def penalty(self, system: GalerkinSystem, by_values: ByValues, by_slopes: BySlopes) -> Penalty | None:
        if system.energy is not None:
            return by_slopes(system.energy)
        return by_values(False) if system.bounded else None

    def ritz(self, left: Functions, right: Functions, system: GalerkinSystem) -> Functions:
        return ritz(right, system.form, system.gram, symmetric=False, dtype=system.dtype)

    def maximizes(self, values: Functions) -> bool:
        return True

    def solve(self, system: GalerkinSystem) -> Solution:
        white = self._span(system)
        w = white.matrix
        reduced = w.T @ system.form @ w
        spectrum: Any = scipy.linalg.eig(reduced, left=True, right=True)
        values, left, right = (np.asarray(part, dtype=np.complex128) for part in spectrum)
        first = _ranked(values, self.ranking)[: system.count]
        values = values[first]
        b = right[:, first] / np.linalg.norm(right[:, first], axis=0)
        fix_signs(white.whitened(b), b)
        a = _biorthonormal(left[:, first], b, values)
        residuals = np.linalg.norm(reduced @ b - b * values, axis=0)
        return with_status(system, values, w @ a, w @ b, white.rank, residuals)

    @staticmethod
    def _span(system: GalerkinSystem) -> Whitening:
        """Return the leading functions by energy, or by singular values."""
        form, gram, within = system.form, system.gram, system.within
        if not isinstance(within, Penalty):
            return _ranked_span(system, form)
        if within.energy is not None:
            return _ranked_span(system, within.energy)
        left, right = leading_pairs(GalerkinSystem(form, gram, device=system.device), within, system.count, system.cut)
        both = np.hstack([right.matrix, left.matrix])
        both = orthonormal(both, both.T @ gram @ both)
        seen = whiten(gram, system.cut, (form == 0).all(axis=0), device=system.device).matrix.T @ gram @ both
        return Whitening(both, np.zeros(0), right.rank, seen)


@final
@dataclass(frozen=True, repr=False)
class NormConstrained(Problem):
    """Principal components: the largest values of vᵀ (F - F_1) v / vᵀ K v, descending.

    F (p, p) is the form and K, the system's `gram`, the squared norm of the function space. F_1 is the projection on
    functions of norm 0, so that F - F_1 is the covariance. Functions have variance 1. Raises ValueError if all norms
    are 0.
    """

    name: ClassVar[str] = "principal"
    needs_symmetry: ClassVar[bool] = True
    by_norm: ClassVar[bool] = True
    descending = True

    def solve(self, system: GalerkinSystem) -> Solution:
        norm, form = system.gram, system.form
        root = norm_root(norm, system.device) if system.root is None else system.root
        null = np.diag(norm) == 0
        shift = np.linalg.pinv(form[np.ix_(null, null)], hermitian=True) @ form[np.ix_(null, ~null)]
        reduced = form[np.ix_(~null, ~null)]
        reduced -= form[np.ix_(~null, null)] @ shift
        if root.ndim == 2:
            reduced = symmetric_part(root.T @ reduced @ root)
        else:
            reduced *= root
            reduced *= root[:, None]
        values, vectors = _largest(reduced, system.count)
        least = system.cut * max(values[0], 0.0)
        k = int(np.count_nonzero(values > least))
        rank = k if system.part else _number_above(reduced, least)
        values, vectors = values[:k], vectors[:, :k].copy()
        residuals = np.hypot.reduce(reduced @ vectors - vectors * values, axis=0)
        functions = root @ vectors if root.ndim == 2 else root[:, None] * vectors
        fix_signs(functions, vectors)
        coefficients = np.zeros((len(form), k))
        coefficients[~null] = functions / np.sqrt(values)
        coefficients[null] = -shift @ coefficients[~null]
        return with_status(system, values, coefficients, coefficients, rank, residuals)


def norm_root(norm: Array, device: Device = HOST) -> Array:
    """Return R (r, s) with Rᵀ K R = I for the r functions of nonzero norm, (r,) if K is diagonal.

    Raises ValueError without such functions.
    """
    null = np.diag(norm) == 0
    if null.all():
        raise ValueError(
            "the norm of every function is 0, so that variances cannot be relative to it. Use nonconstant functions"
        )
    inner = norm[np.ix_(~null, ~null)]
    size = np.sqrt(np.diag(inner))
    inner = inner / np.outer(size, size)
    if np.allclose(inner, np.eye(len(inner)), rtol=0, atol=ORTHOGONAL):
        return np.asarray(1 / size)
    return inverse_root(inner, NORM_CUT, device=device) / size[:, None]


def norm_span(norm: Array, cut: float, device: Device = HOST) -> Whitening:
    """Return functions of squared norm 1: all, scaled, if they are orthogonal."""
    if np.diag(norm).all() and (root := norm_root(norm, device)).ndim == 1:
        return Whitening(root, np.ones(len(root)))
    return whiten(norm, cut, device=device)


def _number_above(matrix: Array, least: float) -> int:
    """Return the number of eigenvalues above `least`."""
    try:
        np.linalg.cholesky(matrix - least * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return int(np.count_nonzero(scipy.linalg.eigvalsh(matrix) > least))
    return len(matrix)


def _largest(matrix: Array, count: int) -> tuple[Array, Array]:
    """Return the `count` largest eigenvalues, descending, and eigenvectors."""
    size = len(matrix)
    if size >= LANCZOS_SIZE and count <= LANCZOS_SHARE * size:
        with suppress(ArpackError):
            values, vectors = eigsh(matrix, count, which="LA", v0=np.random.default_rng(0).standard_normal(size))
            order = np.argsort(values)[::-1]
            return values[order], vectors[:, order]
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(max(0, size - count), size - 1))
    return values[::-1], vectors[:, ::-1]


@dataclass(frozen=True, repr=False)
class TwoMetricSVD(Problem):
    """Singular values of a form (p, q) between Gram matrices Φ (p, p) and Ψ (q, q), descending.

    U S Vᵀ = Φ^(-1/2) L Ψ^(-1/2); the functions A = Uᵀ Φ^(-1/2) and B = Vᵀ Ψ^(-1/2) (equation (7) of the Galerkin
    paper), of unit norm, are columns (p, k) and (q, k). Means are subtracted first. Raises ValueError if all functions
    are constant.
    """

    name: ClassVar[str] = "singular"
    value: ClassVar[str] = "singular value"
    sides: ClassVar[tuple[str, ...]] = ("left", "right")
    two_sided: ClassVar[bool] = True
    measure: ClassVar[str] = "singular value"
    worst: ClassVar[float] = -1.0
    penalties: ClassVar[tuple[float, ...]] = (0.1, 1.0, 0.01, 100.0)

    def penalty(self, system: GalerkinSystem, by_values: ByValues, by_slopes: BySlopes) -> Penalty | None:
        return by_values(True)

    def ritz(self, left: Functions, right: Functions, system: GalerkinSystem) -> Functions:
        return ritz_singular(left, right, system)

    def score(self, values: Functions, wanted: int) -> float:
        return float(np.sum(values**2))

    def maximizes(self, values: Functions) -> bool:
        return True

    def sizes(self, values: Functions) -> Array:
        sizes = np.abs(values)
        return np.asarray(np.maximum(sizes, SMALL_SINGULAR * sizes.max(initial=0.0)) + 1e-300)

    def compared(self, solution: Solution, left: Functions, right: Functions, system: GalerkinSystem) -> Array:
        """Return the signed roots (count,) of the shares explained on other rows."""
        shares = explained(solution.values.real, left, right, system)
        return np.append(
            np.sign(shares) * np.sqrt(np.abs(shares)), np.full(system.count - len(shares), -math.sqrt(MISSING))
        )

    def scores(self, found: Mapping[Any, Array], wanted: int) -> dict[Any, float]:
        shares = {s: np.mean(h * np.abs(h), axis=0)[:wanted] for s, h in found.items()}
        return {s: float(np.cumsum(share).max()) for s, share in shares.items()}

    def n_compared(self, wanted: int) -> int:
        return max(COMPARED, wanted)

    def finalist_gap(self, best: Array, others: Iterable[Array]) -> None:
        return None

    def solve(self, system: GalerkinSystem) -> Solution:
        covariances, squares = system.covariances, [np.diag(gram) for gram in system.grams]
        if system.means is not None:
            shares = [
                np.diag(g) > CERTAIN * system.precision * s for g, s in zip(covariances.grams, squares, strict=True)
            ]
            if not all(share.any() for share in shares) and all(s.any() for s in squares):
                raise ValueError(
                    "all functions of the basis are constant on these data, up to rounding. Fit columns that vary, "
                    "narrow the kernel, or use more functions"
                )
        if isinstance(system.within, Penalty):
            spans = leading_pairs(system, system.within, system.count, system.cut)
        elif isinstance(system.within, tuple):
            spans = system.within
        else:
            blurred = [None if system.means is None else CERTAIN * system.precision * s for s in squares]
            left_span, right_span = (
                whiten(g, system.cut, None, b, system.device) for g, b in zip(covariances.grams, blurred, strict=True)
            )
            spans = left_span, right_span
        left, right = spans
        reduced = right.applied(left.applied(covariances.form).T).T
        rank, k = (left.rank, right.rank), min(system.count, *reduced.shape)
        u, values, vt = _leading_triplets(reduced, k) if system.part else scipy.linalg.svd(reduced, full_matrices=False)
        if self.by_norm and not system.part:  # covariances of 0 are not pairs
            above = int(np.count_nonzero(values > system.cut * values[0]))
            rank, k = (min(rank[0], above), min(rank[1], above)), min(k, above)
        u, values, v = u[:, :k], values[:k], vt[:k].T.copy()
        fix_signs(left.whitened(u), u, v)
        residuals = np.hypot(
            np.linalg.norm(reduced @ v - u * values, axis=0), np.linalg.norm(reduced.T @ u - v * values, axis=0)
        )
        return with_status(system, values, left.functions(u), right.functions(v), rank, residuals)


def _leading_triplets(matrix: Array, count: int) -> tuple[Array, Array, Array]:
    """Return U (p, k), descending singular values (k,), and Vᵀ (k, q), from MᵀM unless rounding forbids."""
    if min(matrix.shape) >= LANCZOS_SIZE and count <= LANCZOS_SHARE * min(matrix.shape):
        squares, vectors = _largest(matrix.T @ matrix, count)
        if squares[-1] > TOLD_SQUARE * squares[0]:
            u = np.linalg.qr(matrix @ vectors)[0]
            turn, values, vt = np.linalg.svd(u.T @ matrix, full_matrices=False)
            return u @ turn, values, vt
    found: tuple[Array, Array, Array] = scipy.linalg.svd(matrix, full_matrices=False)
    return found


@final
@dataclass(frozen=True, repr=False)
class NormConstrainedSVD(TwoMetricSVD):
    """Singular values of a form (p, q) between functions of squared norm 1, `gram` and `right_gram`.

    The form is a covariance if the means are subtracted.
    """

    name: ClassVar[str] = "covariance"
    by_norm: ClassVar[bool] = True

    def penalty(self, system: GalerkinSystem, by_values: ByValues, by_slopes: BySlopes) -> None:
        return None


@final
@dataclass(frozen=True, repr=False)
class SymmetricPencil(Problem):
    """Symmetric-definite eigenproblem of a form against a Gram matrix, (p, p).

    The ridge of a system is added to the form, never to the Gram matrix (footnote 6 of the Galerkin paper: (L + eps I,
    Φ)). Functions have unit norm. Those that the form annihilates (rows of exact zeros) are exempt from the cutoff, so
    that the eigenvalue 0 is exact.

    Parameters
    ----------
    descending : bool
        Compute the largest values, as for a generator, whose spectrum is negative.
    """

    name: ClassVar[str] = "symmetric"
    needs_symmetry: ClassVar[bool] = True

    descending: bool = False

    def __post_init__(self) -> None:
        check_flag("descending", self.descending)

    def energy(self, system: GalerkinSystem) -> Array:
        return np.asarray(self.signed(system.form))

    def penalty(self, system: GalerkinSystem, by_values: ByValues, by_slopes: BySlopes) -> Penalty:
        return by_slopes(self.energy(system))

    def pencil(self, system: GalerkinSystem) -> Pencil | None:
        penalty = system.within
        if not isinstance(penalty, Penalty):
            return None
        whole = not system.part
        return Pencil(self.energy(system), system.gram, penalty, system.count, system.cut, system.device, whole)

    def nulls(self, system: GalerkinSystem) -> int:
        energy, gram = self.energy(system), system.gram
        null = (energy == 0).all(axis=0) & (np.diag(gram) > 0)
        if not null.any() or np.trace(energy) < 0:  # largest values of a positive form come first
            return 0
        return whiten(gram[np.ix_(null, null)], system.cut).rank  # equal constants count once

    def solve(self, system: GalerkinSystem) -> Solution:
        form = system.form
        white = _ranked_span(system, self.signed(form))
        if system.ridge:
            form = form + system.ridge * np.trace(form) / len(form) * np.eye(len(form))
        reduced = symmetric_part(white.matrix.T @ form @ white.matrix)
        size = len(reduced)
        k = min(system.count, size)
        wanted = (size - k, size - 1) if self.descending else (0, k - 1)
        if size <= FULL:
            values, vectors = eigh(reduced)
            values, vectors = values[wanted[0] : wanted[1] + 1], vectors[:, wanted[0] : wanted[1] + 1]
        else:
            values, vectors = scipy.linalg.eigh(reduced, subset_by_index=wanted)
        if self.descending:
            values, vectors = values[::-1], vectors[:, ::-1].copy()
        fix_signs(white.whitened(vectors), vectors)
        residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
        coefficients = white.matrix @ vectors
        return with_status(system, values, coefficients, coefficients, white.rank, residuals)


def _ranked_span(system: GalerkinSystem, energy: Array) -> Whitening:
    """Return the given span, the leading penalized functions, or all directions."""
    within = system.within
    if isinstance(within, Penalty):
        return Pencil(energy, system.gram, within, system.count, system.cut, system.device).leading(system.gram)
    if isinstance(within, Whitening):
        return within
    null = (system.form == 0).all(axis=0)
    return whiten(system.gram, system.cut, null, device=system.device)


def _ranked(values: Complex, order: str) -> NDArray[np.intp]:
    """Return positions by descending real part, or modulus and real part, then imaginary part."""
    parts = [values.imag, values.real] + ([np.abs(values)] if order == "modulus" else [])
    step = max(1e-9 * float(np.abs(values).max()), np.finfo(float).tiny)
    return np.lexsort([-np.rint(part / step) for part in parts])


def _biorthonormal(left: Complex, right: Complex, values: Complex) -> Complex:
    """Recombine left vectors within eigenspaces so that left^H right = I."""
    overlap = left.conj().T @ right
    if np.linalg.svd(overlap, compute_uv=False).min(initial=1) < 4 * np.finfo(float).eps:
        worst = values[np.abs(np.diag(overlap)).argmin()]
        raise np.linalg.LinAlgError(
            f"the operator is defective on this basis: left and right functions of the eigenvalue {worst:.6g} "
            "are orthogonal. Use singular values instead"
        )
    return np.asarray(left @ np.linalg.inv(overlap).conj().T)
