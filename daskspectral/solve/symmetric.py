"""The symmetric generalised eigenproblem L v = lambda Phi v, on the directions that Phi sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.signs import fix_signs
from daskspectral.solve.solver import Problem, Solver, Spectrum, described
from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]


@final
@dataclass(frozen=True, repr=False)
class Symmetric(Solver):
    """The `count` lowest eigenvalues of a form against a Gram matrix, (p, p), ascending; fewer when the rank is less.

    `descending` takes the largest, from the largest down: those of a generator, which is negative.

    `ridge` adds that multiple of the form's mean diagonal to its diagonal (footnote 6 of the Galerkin paper:
    (L + eps I, Phi), never the Gram alone). Functions have unit norm in the Gram's metric. The cut keeps those that
    the form kills (rows of exact zeros: the constant) whole, so that the eigenvalue 0 is exact.
    """

    name: ClassVar[str] = "symmetric"
    needs_symmetry: ClassVar[bool] = True

    def solve(self, problem: Problem) -> Spectrum:
        form = problem.form
        whitening = whiten(problem.gram, problem.cut, (form == 0).all(axis=0))
        w = whitening.matrix
        if problem.ridge:
            form = form + problem.ridge * np.trace(form) / len(form) * np.eye(len(form))
        reduced = w.T @ form @ w
        reduced = 0.5 * (reduced + reduced.T)
        rank = whitening.rank
        k = min(problem.count, rank)
        wanted = (rank - k, rank - 1) if problem.descending else (0, k - 1)
        values, vectors = scipy.linalg.eigh(reduced, subset_by_index=wanted)
        if problem.descending:
            values, vectors = values[::-1], vectors[:, ::-1].copy()
        fix_signs(vectors)
        residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
        coefficients = w @ vectors
        return Spectrum(values, coefficients, coefficients, rank, residuals, described(problem, rank, residuals))
