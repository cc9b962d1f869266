"""Kernelized problem reg-kVP-n of Fanuel et al. 2022, equation (1.9), in the range of a kernel matrix.

With K = k(X, X) = Φᵀ Φ, Φ (q, n) from the eigenvectors of K with eigenvalues above a cut, and K_bar = K - u uᵀ,

    maximize Tr(C B) over B psd (q, q) with Φ_iᵀ B Φ_i = d_i,        C = Φ K_bar Φᵀ / n² - λ I.

The objective is Tr((K_bar - λ n² K^+) B') / n² for B' = Φᵀ B Φ, a matrix (n, n) in the range of K with
diagonal d. The dual minimizes d.y over y (n,), of any sign, with Z = Φ diag(y) Φᵀ - C psd. A point that occurs w
times is one column √(w) Φ_i of Φ, with w d_i, which leaves Φ diag(y) Φᵀ and C unchanged.

If K is regular at the distinct points, `maximize_factor` computes a factor E of B' = E Eᵀ, whose rows are constrained
by their lengths alone, and y. If K is singular, or that y is no certificate, both problems are solved by a primal-dual
interior-point method (Helmberg, Rendl, Vanderbei and Wolkowicz 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.embedding.diffusion_functions import point_blocks
from daskspectral.kernels import Kernel
from daskspectral.kernels.base import MultiIndex
from daskspectral.solve.whitening import eigh, fix_signs, symmetric_part

Array = NDArray[np.floating[Any]]

RANGE_CUT = 1e-10  # share of the largest eigenvalue of K below which a direction is outside its numerical range
RANK_CUT = 1e-9  # share of the largest eigenvalue of B' below which a direction is an artifact of the interior point
_NEAR = 1e-8  # a merit at which rounding may end an ascent, and another method would not be better
_DAMPING = 1e-13  # relative to a unit diagonal: above rounding errors of matrix products
_PATIENCE = 2  # successive steps without a gain, due to rounding
_GAIN = 0.9  # share of the best merit so far, below which a step is a gain


@dataclass(frozen=True, eq=False)
class KernelizedProblem:
    """Problem (1.9) in the range of K, at m distinct points.

    `roots` (q,) of its eigenvalues, descending, `vectors` (m, q); `u`, `d` (m,); λ. Rows are multiplied by the square
    roots of their multiplicities `counts` (m,); d by the counts.
    """

    vectors: Array
    roots: Array
    u: Array
    d: Array
    regularization: float
    counts: Array

    @classmethod
    def of(
        cls, gram: Array, u: Array, d: Array, regularization: float, counts: Array | None = None
    ) -> KernelizedProblem:
        """Return the problem for K = `gram` (m, m), `u` and `d` (m,) at distinct points of multiplicities `counts`.

        Raises ValueError if K is not positive semi-definite.
        """
        counts = np.ones(len(d)) if counts is None else np.asarray(counts, dtype=float)
        weights = np.sqrt(counts)
        values, vectors = eigh(symmetric_part(gram) * np.outer(weights, weights))
        if values[0] < -1e-8 * max(values[-1], 0.0) or not values[-1] > 0:
            raise ValueError(
                f"kernel must be positive semi-definite, got eigenvalues from {values[0]:.3g} to "
                f"{values[-1]:.3g} on these points. Correct the kernel."
            )
        kept = values > RANGE_CUT * values[-1]
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1].copy()
        fix_signs(vectors)
        return cls(vectors, np.sqrt(values), weights * u, counts * d, regularization, counts)

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def regular(self) -> bool:
        return self.rank == len(self.counts)

    @property
    def rank(self) -> int:
        return len(self.roots)

    @property
    def features(self) -> Array:
        """Matrix Phi^T (m, q)."""
        return self.vectors * self.roots

    @property
    def cost(self) -> Array:
        """Matrix C (q, q)."""
        at = self.roots * (self.vectors.T @ self.u)
        part = np.diag(self.roots**4) - np.outer(at, at)
        return np.asarray(part / self.n**2 - self.regularization * np.eye(self.rank))

    @property
    def outer_cost(self) -> Array:
        """Matrix K_bar / n^2 - lambda K^+ (m, m), u in the range of K."""
        values, u = self.roots**2, self.vectors @ (self.vectors.T @ self.u)
        part = values / self.n**2 - self.regularization / values
        return np.asarray((self.vectors * part) @ self.vectors.T - np.outer(u, u) / self.n**2)

    def slack(self, y: Array) -> Array:
        """Return Z = Phi diag(y) Phi^T - C (q, q)."""
        phi = self.features
        return np.asarray((phi.T * y) @ phi - self.cost)


@dataclass(frozen=True, eq=False)
class KernelizedSolution:
    """Solution with its certificate.

    `inner` is B (q, q), `dual` y (m,), `objective` Tr(C B), `least_eigenvalue` that of diag(y) - (K_bar / n² - λ K^+)
    in the range of K. The optimum exceeds the objective by at most `gap` = Tr(Z B) + |(d - diag B').y| + max(0,
    -least_eigenvalue) sum(d); `relative_gap` divides by max(|Tr(C B)|, |d.y|). `error` is the largest |diag(B') - d| /
    d.
    """

    inner: Array
    dual: Array
    objective: float
    least_eigenvalue: float
    gap: float
    relative_gap: float
    error: float
    passes: int

    @property
    def merit(self) -> float:
        return max(self.relative_gap, self.error)


def solve_kernelized(
    problem: KernelizedProblem, *, tolerance: float = 1e-9, max_passes: int = 100
) -> KernelizedSolution:
    """Return a solution with gap and error below the tolerance, or the best reached."""
    found = None
    if problem.regular:
        found = _by_factor(problem, tolerance, max_passes)
        if found.merit <= max(tolerance, _NEAR) or found.passes >= max_passes:
            return found
    other = _by_interior_point(problem, tolerance, max_passes)
    return other if found is None or other.merit < found.merit else found


def _by_factor(problem: KernelizedProblem, tolerance: float, max_passes: int) -> KernelizedSolution:
    """Return the solution with a factor E of B', from K's leading eigenvectors."""
    start = problem.features[:, :RANK]
    e, y, passes = maximize_factor(
        problem.outer_cost, problem.d, start, residual=0.1 * tolerance, max_passes=max_passes
    )
    inner = (problem.vectors / problem.roots).T @ e
    return _judged(problem, inner @ inner.T, y, passes)


def _by_interior_point(problem: KernelizedProblem, tolerance: float, max_passes: int) -> KernelizedSolution:
    """Solve by an interior-point method, in O(m^3) per step.

    A step solves (P o Q) dy = mu diag(P) - d with P = Phi^T Z^-1 Phi, Q = Phi^T B Phi, (m, m).
    """
    phi, d = problem.features, problem.d
    q = problem.rank
    y = np.full(len(d), 1.1 * float(problem.roots[0]) ** 2 / problem.n**2)
    z = problem.slack(y)
    first = PositiveDefinite.of(z)
    assert first is not None  # lambda I and more
    inverse = first.inverse()
    b = inverse * (d.sum() / np.einsum("nq,nq->", phi @ inverse, phi))
    best: KernelizedSolution | None = None
    since = 0
    for step in range(max_passes + 1):
        now = _judged(problem, b, y, step, least=0.0)  # Z has a Cholesky factor
        since = 0 if best is None or now.merit < _GAIN * best.merit else since + 1
        best = now if best is None or now.merit < best.merit else best
        inside, outside = PositiveDefinite.of(b), PositiveDefinite.of(z)
        if best.merit <= tolerance or since > _PATIENCE or inside is None or outside is None:
            break
        inverse = outside.inverse()
        half, lengths = outside.divided(phi.T), phi @ inside.lower
        solve = _damped_solver((half.T @ half) * (lengths @ lengths.T))
        mu = float(np.vdot(z, b)) / q
        shift = (phi.T * solve(-d)) @ phi
        turned = inverse @ shift
        change = -b - symmetric_part(turned @ b)
        affine = inside.length(change), outside.length(shift)
        after = float(np.vdot(z + affine[1] * shift, b + affine[0] * change)) / q
        target = mu * min(1.0, max(after / mu, 1e-9) ** max(1.0, 3 * min(affine) ** 2))
        corrected = target * inverse - symmetric_part(turned @ change)
        dy = solve(np.einsum("nq,nq->n", phi @ corrected, phi) - d)
        shift = (phi.T * dy) @ phi
        change = corrected - b - symmetric_part(inverse @ shift @ b)
        primal, dual = inside.length(change), outside.length(shift)
        b = b + primal * change
        y = y + dual * dy
        z = z + dual * shift
    assert best is not None
    return _judged(problem, best.inner, best.dual, best.passes)


def _damped_solver(matrix: Array) -> Callable[[Array], Array]:
    """Return a function that solves for right sides (n,), for a psd matrix (n, n).

    The matrix, scaled to unit diagonal, plus a small multiple of the identity: nearly dependent constraints leave
    directions in which the right side is rounding error, which are damped.
    """
    scale = 1 / np.sqrt(np.diag(matrix))
    scaled = scale[:, None] * matrix * scale
    damping = _DAMPING
    while True:
        scaled.flat[:: len(scaled) + 1] = 1 + damping
        try:
            factor = scipy.linalg.cholesky(scaled, lower=True, check_finite=False), True
            break
        except np.linalg.LinAlgError:
            damping *= 10
    return lambda right: np.asarray(scale * scipy.linalg.cho_solve(factor, scale * right, check_finite=False))


def _judged(
    problem: KernelizedProblem, b: Array, y: Array, step: int, *, least: float | None = None
) -> KernelizedSolution:
    d, objective = problem.d, float(np.vdot(problem.cost, b))
    diagonal = np.einsum("nq,nq->n", problem.features @ b, problem.features)
    least = least_eigenvalue(problem, y) if least is None else least
    off = abs(float((d - diagonal) @ y)) + max(0.0, -least) * float(d.sum())
    gap = max(0.0, float(diagonal @ y) - objective) + off
    scale = max(abs(objective), abs(float(d @ y)), np.finfo(float).tiny)
    return KernelizedSolution(b, y, objective, least, gap, gap / scale, float(np.max(np.abs(diagonal / d - 1))), step)


def least_eigenvalue(problem: KernelizedProblem, y: Array) -> float:
    """Return the least eigenvalue nu of diag(y) - (K_bar / n² - λ K^+) in the range of K.

    For independence of the condition of K, 1 / (nu + tau) is computed as the largest eigenvalue of S^1/2 (Z + tau S)⁻¹
    S^1/2, S = Φ Φᵀ, for any tau that makes Z + tau S positive definite.
    """
    z, s = problem.slack(y), problem.roots**2
    tau = float(np.abs(y).max())
    while (factored := PositiveDefinite.of(z + tau * np.diag(s))) is None:
        tau *= 2
    return 1 / float(scipy.linalg.svdvals(factored.divided(np.diag(problem.roots)))[0]) ** 2 - tau


@dataclass(eq=False)
class LearnedKernel(Kernel):
    """Mercer kernel b(x, y) = e(x).e(y) of a solution, e(x) = Fᵀ Φ(x) and Φ(x) = S^-1/2 Vᵀ k(X, x).

    `points` X (m, d), distinct, `whitening` V S^-1/2 (m, q), `factor` F (q, r). Called with points (a, d) and (b, d)
    it returns the Gram matrix (a, b), with two single points a number.
    """

    expects: ClassVar = {"kernel": Kernel}
    kernel: Kernel
    points: Array = field(repr=False)
    whitening: Array = field(repr=False)
    factor: Array = field(repr=False)

    __eq__ = object.__eq__  # compared by identity, because arrays have no truth value
    __hash__ = object.__hash__  # required by scikit-learn's pairwise functions

    @classmethod
    def of(
        cls, kernel: Kernel, points: Array, problem: KernelizedProblem, solution: KernelizedSolution
    ) -> tuple[Array, LearnedKernel]:
        """Return the eigenvalues of B' (r,), descending, and the kernel."""
        outer = problem.roots[:, None] * solution.inner * problem.roots
        values, vectors = eigh(symmetric_part(outer))
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.count_nonzero(values > RANK_CUT * values[0]))
        weights = np.sqrt(problem.counts)[:, None]
        coordinates = problem.vectors @ vectors[:, :rank] / weights
        factor = vectors[:, :rank] * np.sqrt(values[:rank]) / problem.roots[:, None]
        fix_signs(coordinates, factor)
        return values[:rank].copy(), cls(kernel, points, weights * problem.vectors / problem.roots, factor)

    @property
    def order(self) -> float:
        return self.kernel.order

    @property
    def width(self) -> int:
        return int(self.factor.shape[1])

    def features(self, x: Array) -> Array:
        """Return e(x) (c, r); NaN for points that are not finite."""
        result = np.empty((len(x), self.width))
        for rows, block, finite in point_blocks(x, len(self.points)):
            k = self.kernel.values(block, self.points)
            result[rows] = np.where(finite[:, None], k.T @ self.whitening @ self.factor, np.nan)
        return result

    def values(self, x: Array, y: Array) -> Array:
        return np.asarray(self.features(y) @ self.features(x).T)

    def diagonal(self, x: Array) -> Array:
        return np.asarray((self.features(x) ** 2).sum(axis=1))

    def __call__(self, a: Array, b: Array) -> Array:
        single = np.ndim(a) == np.ndim(b) == 1  # called by scikit-learn's pairwise functions
        gram = self.values(np.atleast_2d(np.asarray(b, dtype=float)), np.atleast_2d(np.asarray(a, dtype=float)))
        return np.asarray(gram[0, 0]) if single else gram

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        change = self.kernel.partial(x, self.points, alpha).T @ self.whitening @ self.factor
        return np.asarray(self.features(y) @ change.T)


# -- maximize Tr(C E Eᵀ) over rows of given lengths, by a damped Newton method on the factor E -------------------------


RANK = 6  # columns at the start
_SMALL = 1e-3  # singular values of E below this share of the largest are dropped
_SETTLED = 1e-4  # residual below which small columns are dropped
_STALLED = 4  # steps that improve neither the objective nor the residual, due to rounding
_ROUNDING = 1e-12  # relative rounding error of the objective
_SLIGHT = 1e-9  # decrease of the objective that may be rounding if the residual decreases
_MOST = 1e3  # of the largest |y|: a larger shift is a gradient step without a gain

STEP = 0.98  # of the way to the boundary of the cone of positive definite matrices


@dataclass(frozen=True, eq=False)
class PositiveDefinite:
    """Positive definite matrix (q, q), by its lower Cholesky factor."""

    lower: Array

    @classmethod
    def of(cls, matrix: Array) -> PositiveDefinite | None:
        """Return the factored matrix, or None unless it is positive definite."""
        try:
            return cls(scipy.linalg.cholesky(matrix, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            return None

    def inverse(self) -> Array:
        """Inverse of the matrix (q, q), from its Cholesky factor."""
        below = np.tril(scipy.linalg.lapack.dpotri(self.lower, lower=1)[0])
        return np.asarray(below + np.tril(below, -1).T)

    def divided(self, right: Array) -> Array:
        """Return L^-1 R, whose squared columns are r.M^-1 r."""
        return np.asarray(scipy.linalg.solve_triangular(self.lower, right, lower=True, check_finite=False))

    def length(self, change: Array) -> float:
        """Return the step length, at most 1, along a change that keeps the matrix positive definite."""
        moved = scipy.linalg.lapack.dsygst(change, self.lower, itype=1, lower=1)[0]
        least = float(scipy.linalg.eigvalsh(moved, lower=True, subset_by_index=(0, 0), check_finite=False)[0])
        return 1.0 if least > -STEP else STEP / -least


def maximize_factor(
    cost: Array, d: Array, start: Array, *, residual: float, max_passes: int
) -> tuple[Array, Array, int]:
    """Return E (n, r), y (n,) and the number of steps, from initial directions (n, r) of rows.

    Ends if |Z E| is at most `residual` |C E|, at rounding, or after `max_passes`, with the step of least residual.
    """
    e = _lengthened(start, d)
    now = _evaluated(cost, d, e)
    best, since = (now, e), 0
    shift = float(np.abs(now[1]).max())
    passes = 0
    while passes < max_passes and best[0][2] > residual and since < _STALLED:
        passes += 1
        objective, y, size, slope = now
        most, found = _MOST * max(shift, float(np.abs(y).max())), None
        while shift < most:
            step = _step(cost, e, y, slope, shift)
            if step is not None:
                moved = _lengthened(e + step, d)
                found = _evaluated(cost, d, moved)
                rise = (found[0] - objective) / abs(objective)
                if rise > _ROUNDING or (rise > -_SLIGHT and found[2] < size):
                    break
                found = None
            shift *= 4
        if found is None:
            break
        shift *= min(0.25, found[2] / size)
        e, now = moved, found
        if now[2] <= _SETTLED:
            e, now = _without_small(cost, d, e, now)
        best = (now, e) if now[2] < best[0][2] else best
        since = 0 if best[1] is e or rise > _SLIGHT else since + 1
    return best[1], best[0][1], passes


def _lengthened(e: Array, d: Array) -> Array:
    return np.asarray(e * (np.sqrt(d) / np.linalg.norm(e, axis=1))[:, None])


def _evaluated(cost: Array, d: Array, e: Array) -> tuple[float, Array, float, Array]:
    """Return Tr(C E E^T), y, the residual, and C E - diag(y) E."""
    pulled = cost @ e
    y = np.einsum("nr,nr->n", pulled, e) / d
    slope = pulled - y[:, None] * e
    return float(y @ d), y, float(np.linalg.norm(slope) / np.linalg.norm(pulled)), slope


def _step(cost: Array, e: Array, y: Array, slope: Array, shift: float) -> Array | None:
    """Return X, or None unless Z + shift I is positive definite."""
    z = -cost
    z.flat[:: len(z) + 1] += y + shift
    inside = PositiveDefinite.of(z)
    if inside is None:
        return None
    inverse = inside.inverse()
    try:
        factor = scipy.linalg.cho_factor(inverse * (e @ e.T), lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    v = scipy.linalg.cho_solve(factor, np.einsum("nr,nr->n", inverse @ slope, e))
    return np.asarray(inverse @ (slope - v[:, None] * e))


def _without_small(
    cost: Array, d: Array, e: Array, now: tuple[float, Array, float, Array]
) -> tuple[Array, tuple[float, Array, float, Array]]:
    """Return the factor without columns that vanish at the maximum."""
    values, turn = np.linalg.eigh(e.T @ e)
    kept = values > _SMALL**2 * values[-1]
    if kept.all():
        return e, now
    e = _lengthened(e @ turn[:, kept], d)
    return e, _evaluated(cost, d, e)
