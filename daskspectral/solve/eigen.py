"""The non-symmetric eigenproblem L v = lambda Phi v, on the directions that Phi sees: complex values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.penalised import leading_functions, leading_pairs, orthonormal
from daskspectral.solve.solver import Problem, Solver, Spectrum, described
from daskspectral.solve.whiten import Whitening, whiten

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complex128]


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

    def solve(self, problem: Problem) -> Spectrum:
        form = problem.form
        whitening = _span(problem)
        w = whitening.matrix
        reduced = w.T @ form @ w
        found: Any = scipy.linalg.eig(reduced, left=True, right=True)
        values, left, right = (np.asarray(part, dtype=np.complex128) for part in found)
        first = _ranked(values, problem.ranking)[: problem.count]
        values = values[first]
        b = fix_phases(right[:, first], whitening)
        a = _biorthonormal(left[:, first], b, values)
        residuals = np.linalg.norm(reduced @ b - b * values, axis=0)
        rank = whitening.rank
        return Spectrum(values, w @ a, w @ b, rank, residuals, described(problem, rank, residuals))


def _span(problem: Problem) -> Whitening:
    """The functions among which the solution is sought.

    Leading ones by the penalty's energy, or where there is none the leading left and right singular functions
    together; without a penalty all above the cut.
    """
    form, gram, penalty, null = problem.form, problem.gram, problem.penalty, (problem.form == 0).all(axis=0)
    if penalty is None:
        return whiten(gram, problem.cut, null)
    if penalty.energy is not None:
        return leading_functions(penalty.energy, gram, penalty, problem.count, problem.cut)
    left, right = leading_pairs(form, gram, gram, penalty, problem.count, problem.cut)
    both = orthonormal(np.hstack([right.matrix, left.matrix]), gram)
    return Whitening(both, np.zeros(0), right.rank, whiten(gram, problem.cut, null).matrix.T @ gram @ both)


def _ranked(values: Complex, ranking: str) -> NDArray[np.intp]:
    """Positions by descending real part, or modulus and real part, then imaginary part, to nine digits each."""
    parts = [values.imag, values.real] if ranking == "real" else [values.imag, values.real, np.abs(values)]
    step = max(1e-9 * float(np.abs(values).max()), np.finfo(float).tiny)
    return np.lexsort([-np.rint(part / step) for part in parts])


def fix_phases(vectors: Complex, span: Whitening | None = None) -> Complex:
    """Unit columns whose largest entry (the first of several that are equal to rounding) is real and positive.

    The entries are coefficients of the functions of a `span`, and its whitened basis decides.
    """
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    whitened = vectors if span is None else span.whitened(vectors)
    magnitude = np.abs(whitened)
    ties = magnitude >= magnitude.max(axis=0) * (1 - 1e-6)
    largest = np.take_along_axis(whitened, ties.argmax(axis=0)[None], axis=0)[0]
    return np.asarray(vectors * (largest.conj() / np.abs(largest)))


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
