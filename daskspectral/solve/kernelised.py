"""The kernelised problem reg-kVP-n of Fanuel et al. 2022, equation (1.9), in the range of a Mercer kernel's matrix.

With K = k(X, X) = Phi^T Phi, Phi (q, n) from the eigenvectors of K with eigenvalues above a cut, and K_bar = K - u u^T,

    maximise Tr(C B) over B psd (q, q) with Phi_i^T B Phi_i = d_i,   C = Phi K_bar Phi^T / n^2 - lambda I.

The objective is Tr((K_bar - lambda n^2 K^+) B') / n^2 for B' = Phi^T B Phi, a matrix (n, n) in the range of K with
diagonal d. The dual minimises d.y over y (n,), of any sign, with Z = Phi diag(y) Phi^T - C psd. Both are solved by a
primal-dual interior-point method (Helmberg, Rendl, Vanderbei and Wolkowicz 1996), so that both bounds come with the
answer. A singular K, where the rows of a factor of B' are not free, needs no special care.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.kernels import Kernel
from daskspectral.kernels.base import MultiIndex, ParameterKernel
from daskspectral.solve.signs import fix_signs

Array = NDArray[np.floating[Any]]

RANGE_CUT = 1e-10  # share of the largest eigenvalue of K below which a direction is outside its numerical range
RANK_CUT = 1e-9  # share of the largest eigenvalue of B' below which a direction is a remnant of the interior point
_SYSTEM_CUT = 1e-15
_PATIENCE = 6  # steps without progress: rounding
_STEP = 0.98  # of the way to the border of the cone


@dataclass(frozen=True, eq=False)
class KernelisedProblem:
    """(1.9) in the range of K: `roots` (q,) of its eigenvalues, descending, `vectors` (n, q); `u`, `d` (n,); lambda."""

    vectors: Array
    roots: Array
    u: Array
    d: Array
    regularization: float

    @classmethod
    def of(cls, gram: Array, u: Array, d: Array, regularization: float, cut: float = RANGE_CUT) -> KernelisedProblem:
        """The problem for K = `gram` (n, n). Raises ValueError where K is not positive semi-definite."""
        values, vectors = scipy.linalg.eigh(0.5 * (gram + gram.T))
        if values[0] < -1e-8 * max(values[-1], 0.0) or not values[-1] > 0:
            raise ValueError(
                f"expected a positive semi-definite kernel, received eigenvalues from {values[0]:.3g} to "
                f"{values[-1]:.3g} on these points; correct the kernel"
            )
        kept = values > cut * values[-1]
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1].copy()
        fix_signs(vectors)
        return cls(vectors, np.sqrt(values), u, d, regularization)

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.vectors)

    @property
    def rank(self) -> int:
        """The numerical rank q of K."""
        return len(self.roots)

    @property
    def features(self) -> Array:
        """Phi^T (n, q)."""
        return self.vectors * self.roots

    @property
    def cost(self) -> Array:
        """C (q, q)."""
        at = self.roots * (self.vectors.T @ self.u)
        part = np.diag(self.roots**4) - np.outer(at, at)
        return np.asarray(part / self.n**2 - self.regularization * np.eye(self.rank))

    def slack(self, y: Array) -> Array:
        """Z = Phi diag(y) Phi^T - C (q, q)."""
        phi = self.features
        return np.asarray((phi.T * y) @ phi - self.cost)


@dataclass(frozen=True, eq=False)
class KernelisedSolution:
    """An answer with its proof.

    `inner` is B (q, q), `dual` y (n,), `objective` Tr(C B), `least_eigenvalue` the least one of
    diag(y) - (K_bar / n^2 - lambda K^+) in the range of K. The optimum is above the objective by no more than `gap` =
    Tr(Z B) + |(d - diag B').y| + max(0, -least_eigenvalue) sum(d); `relative_gap` is gap / max(|Tr(C B)|, |d.y|).
    `error` is the largest |diag(B') - d| / d, `passes` the number of steps taken.
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
        """The worse of the relative gap and the error."""
        return max(self.relative_gap, self.error)


def solve_kernelised(
    problem: KernelisedProblem, *, tolerance: float = 1e-9, max_passes: int = 100
) -> KernelisedSolution:
    """The answer with relative gap and error below the tolerance, or the best that rounding or `max_passes` allow.

    A step solves (P o Q) dy = mu diag(P) - d with P = Phi^T Z^-1 Phi, Q = Phi^T B Phi, (n, n): O(n^3).
    """
    phi, d = problem.features, problem.d
    n, q = phi.shape
    y = np.full(n, 1.1 * float(problem.roots[0]) ** 2 / n**2)
    z = problem.slack(y)
    inverse = _inverse(z)
    assert inverse is not None  # lambda I and more
    b = inverse * (d.sum() / np.einsum("nq,nq->", phi @ inverse, phi))
    best: KernelisedSolution | None = None
    for step in range(max_passes + 1):
        now = _judged(problem, b, y, step)
        best = now if best is None or now.merit < best.merit else best
        if best.merit <= tolerance or best.passes < step - _PATIENCE:
            break
        inverse = _inverse(z)
        if inverse is None:
            break
        p, diagonals = phi @ inverse @ phi.T, phi @ b @ phi.T
        mu = float(np.vdot(z, b)) / q
        system = _System.of(p * diagonals)
        shift, change = _direction(phi, inverse, b, system.solve(-d), -b)
        affine = _length(b, change), _length(z, shift)
        after = float(np.vdot(z + affine[1] * shift, b + affine[0] * change)) / q
        target = mu * min(1.0, max(after / mu, 1e-9) ** max(1.0, 3 * min(affine) ** 2))
        corrected = target * inverse - _symmetric(inverse @ shift @ change)
        dy = system.solve(np.einsum("nq,nq->n", phi @ corrected, phi) - d)
        shift, change = _direction(phi, inverse, b, dy, corrected - b)
        primal, dual = _length(b, change), _length(z, shift)
        b = b + primal * change
        y = y + dual * dy
        z = problem.slack(y)
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class _System:
    """A psd matrix (n, n) scaled to unit diagonal, in its Cholesky factor, or where it is numerically singular in
    scaled eigenvectors without its null space.
    """

    scale: Array
    lower: Array | None
    roots: Array

    @classmethod
    def of(cls, matrix: Array) -> _System:
        scale = 1 / np.sqrt(np.diag(matrix))
        scaled = scale[:, None] * matrix * scale
        try:
            return cls(scale, scipy.linalg.cholesky(scaled, lower=True), np.empty((0, 0)))
        except np.linalg.LinAlgError:
            values, vectors = scipy.linalg.eigh(scaled)
            kept = values > _SYSTEM_CUT * values[-1]
            return cls(scale, None, vectors[:, kept] / np.sqrt(values[kept]))

    def solve(self, right: Array) -> Array:
        """The solution of least scaled norm."""
        right = self.scale * right
        if self.lower is None:
            return np.asarray(self.scale * (self.roots @ (self.roots.T @ right)))
        return np.asarray(self.scale * scipy.linalg.cho_solve((self.lower, True), right))


def _direction(phi: Array, inverse: Array, b: Array, dy: Array, rest: Array) -> tuple[Array, Array]:
    """The changes of Z and of B: Phi diag(dy) Phi^T, and the rest less the symmetric part of Z^-1 dZ B."""
    shift = (phi.T * dy) @ phi
    return shift, rest - _symmetric(inverse @ shift @ b)


def _symmetric(matrix: Array) -> Array:
    return np.asarray(0.5 * (matrix + matrix.T))


def _inverse(z: Array) -> Array | None:
    """Z^-1, None where Z is not positive definite."""
    try:
        factor = scipy.linalg.cho_factor(z)
    except np.linalg.LinAlgError:
        return None
    inverse = scipy.linalg.cho_solve(factor, np.eye(len(z)))
    return _symmetric(inverse)


def _length(matrix: Array, change: Array) -> float:
    """The step, 1 at most, that leaves the matrix positive definite."""
    try:
        lower = scipy.linalg.cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        return 0.0
    half = scipy.linalg.solve_triangular(lower, change, lower=True)
    inside = scipy.linalg.solve_triangular(lower, half.T, lower=True)
    least = float(scipy.linalg.eigvalsh(0.5 * (inside + inside.T), subset_by_index=(0, 0))[0])
    return 1.0 if least > -_STEP else _STEP / -least


def _judged(problem: KernelisedProblem, b: Array, y: Array, step: int) -> KernelisedSolution:
    d, objective = problem.d, float(np.vdot(problem.cost, b))
    diagonal = np.einsum("nq,nq->n", problem.features @ b, problem.features)
    least = least_eigenvalue(problem, y)
    off = abs(float((d - diagonal) @ y)) + max(0.0, -least) * float(d.sum())
    gap = max(0.0, float(diagonal @ y) - objective) + off
    scale = max(abs(objective), abs(float(d @ y)), np.finfo(float).tiny)
    return KernelisedSolution(b, y, objective, least, gap, gap / scale, float(np.max(np.abs(diagonal / d - 1))), step)


def least_eigenvalue(problem: KernelisedProblem, y: Array) -> float:
    """The least eigenvalue nu of diag(y) - (K_bar / n^2 - lambda K^+) in the range of K.

    There the matrix is S^-1/2 Z S^-1/2 with S = Phi Phi^T. To keep the condition of K out of the result, nu is read off
    1 / (nu + tau), the largest eigenvalue of S^1/2 (Z + tau S)^-1 S^1/2, for any tau that makes Z + tau S positive
    definite.
    """
    z, s = problem.slack(y), problem.roots**2
    tau = float(np.abs(y).max())
    while True:
        try:
            lower = scipy.linalg.cholesky(z + tau * np.diag(s), lower=True)
            break
        except np.linalg.LinAlgError:
            tau *= 2
    half = scipy.linalg.solve_triangular(lower, np.diag(problem.roots), lower=True)
    return 1 / float(scipy.linalg.svdvals(half)[0]) ** 2 - tau


@dataclass(eq=False)
class LearnedKernel(ParameterKernel):
    """The Mercer kernel b(x, y) = e(x).e(y) of a solution, with e(x) = F^T Phi(x) and Phi(x) = S^-1/2 V^T k(X, x).

    This is k_x^T K^+ B' K^+ k_y; `points` X (n, d), `whitening` V S^-1/2 (n, q), `factor` F (q, r). Called with points
    (a, d) and (b, d) it returns the Gram matrix (a, b), with two single points a number. It is as smooth as k.
    """

    expects: ClassVar = {"kernel": Kernel}

    kernel: Kernel
    points: Array = field(repr=False)
    whitening: Array = field(repr=False)
    factor: Array = field(repr=False)

    __eq__ = object.__eq__  # by identity: arrays have no truth value
    __hash__ = object.__hash__  # scikit-learn's pairwise functions look it up

    def check(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"a learned kernel is made of a kernel, such as Matern(1.5); it got {self.kernel!r}")
        shapes = [np.shape(array) for array in (self.points, self.whitening, self.factor)]
        (n, *_), (_, q, *_), _ = ((*shape, 0, 0) for shape in shapes)
        if [len(shape) for shape in shapes] != [2, 2, 2] or shapes[1][0] != n or shapes[2][0] != q:
            raise ValueError(
                "a learned kernel takes points (n, d), whitening (n, q) and a factor (q, r); their shapes are "
                f"{', '.join(map(str, shapes))}"
            )

    @classmethod
    def of(
        cls, kernel: Kernel, points: Array, problem: KernelisedProblem, solution: KernelisedSolution
    ) -> tuple[Array, LearnedKernel]:
        """The eigenvalues of B' (r,), descending, and the kernel of the solution."""
        outer = problem.roots[:, None] * solution.inner * problem.roots
        values, vectors = scipy.linalg.eigh(0.5 * (outer + outer.T))
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int(np.count_nonzero(values > RANK_CUT * values[0]))
        coordinates = problem.vectors @ vectors[:, :rank]
        factor = vectors[:, :rank] * np.sqrt(values[:rank]) / problem.roots[:, None]
        fix_signs(coordinates, factor)
        return values[:rank].copy(), cls(kernel, points, problem.vectors / problem.roots, factor)

    @property
    def order(self) -> float:
        return self.kernel.order

    @property
    def width(self) -> int:
        """The number of features r."""
        return int(self.factor.shape[1])

    def features(self, x: Array) -> Array:
        """e(x) (c, r) at points x (c, d); NaN for points that are not finite."""
        result = np.empty((len(x), self.width))
        step = max(1, min(2048, (1 << 21) // len(self.points)))
        for start in range(0, len(x), step):
            block = x[start : start + step]
            finite: NDArray[np.bool_] = np.asarray(np.isfinite(block).all(axis=1))
            k = self.kernel.values(np.where(finite[:, None], block, 0.0), self.points)
            result[start : start + step] = np.where(finite[:, None], k.T @ self.whitening @ self.factor, np.nan)
        return result

    def values(self, x: Array, y: Array) -> Array:
        return np.asarray(self.features(y) @ self.features(x).T)

    def diagonal(self, x: Array) -> Array:
        return np.asarray((self.features(x) ** 2).sum(axis=1))

    def __call__(self, a: Array, b: Array) -> Array:
        single = np.ndim(a) == np.ndim(b) == 1  # as scikit-learn's pairwise functions call it
        gram = self.values(np.atleast_2d(np.asarray(b, dtype=float)), np.atleast_2d(np.asarray(a, dtype=float)))
        return np.asarray(gram[0, 0]) if single else gram

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        change = self.kernel.partial(x, self.points, alpha).T @ self.whitening @ self.factor
        return np.asarray(self.features(y) @ change.T)
