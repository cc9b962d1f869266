"""The symmetric generalised eigenproblem L v = lambda Phi v, on the directions that Phi sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.dense import symmetric_part
from daskspectral.solve.penalised import leading_functions
from daskspectral.solve.signs import fix_signs
from daskspectral.solve.solver import Problem, Solver, Spectrum, described
from daskspectral.solve.whiten import Whitening, whiten

Array = NDArray[np.floating[Any]]


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

    def solve(self, problem: Problem) -> Spectrum:
        form = problem.form
        whitening = _span(problem)
        w = whitening.matrix
        if problem.ridge:
            form = form + problem.ridge * np.trace(form) / len(form) * np.eye(len(form))
        reduced = w.T @ form @ w
        reduced = symmetric_part(reduced)
        rank, size = whitening.rank, len(reduced)
        k = min(problem.count, size)
        wanted = (size - k, size - 1) if problem.descending else (0, k - 1)
        values, vectors = scipy.linalg.eigh(reduced, subset_by_index=wanted)
        if problem.descending:
            values, vectors = values[::-1], vectors[:, ::-1].copy()
        fix_signs(whitening.whitened(vectors), vectors)
        residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
        coefficients = w @ vectors
        return Spectrum(values, coefficients, coefficients, rank, residuals, described(problem, rank, residuals))


def _span(problem: Problem) -> Whitening:
    """The functions among which the solution is sought: leading penalised ones, or all above the cut."""
    if problem.span is not None:
        return problem.span
    form, penalty = problem.form, problem.penalty
    if penalty is None:
        return whiten(problem.gram, problem.cut, (form == 0).all(axis=0))
    energy = -form if problem.descending else form
    return leading_functions(energy, problem.gram, penalty, problem.count, problem.cut)
