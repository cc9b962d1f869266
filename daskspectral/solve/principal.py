"""The functions of largest variance for their norm: principal components, of a kernel or of the columns themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.dense import symmetric_part
from daskspectral.solve.signs import fix_signs
from daskspectral.solve.solver import Problem, Solver, Spectrum, described

Array = NDArray[np.floating[Any]]
NORM_CUT = 1e-12  # of the largest squared norm at unit diagonal, below which a combination of functions is no function


@final
@dataclass(frozen=True, repr=False)
class Principal(Solver):
    """The `count` largest values of vᵀ (F - F_1) v / vᵀ K v, descending: F (p, p) is the form, K the squared norm.

    F_1 is what the functions share with those of norm 0, the constant: with the constant among the functions F - F_1 is
    the covariance, and the functions that are found have mean 0; without it nothing is subtracted. They have unit norm
    in the Gram matrix, that is variance 1, and a squared norm in the function space of 1 / value. Raises ValueError
    where the norm of every function is 0.
    """

    name: ClassVar[str] = "principal"
    needs_symmetry: ClassVar[bool] = True
    by_norm: ClassVar[bool] = True
    largest_first: ClassVar[bool] = True

    def solve(self, problem: Problem) -> Spectrum:
        norm, form = problem.norm, problem.form
        if norm is None or not norm.any():
            raise ValueError(
                "the norm of every function is 0, and no variance can be held against it: use functions besides the "
                "constant"
            )
        null = (norm == 0).all(axis=0)
        root = _root(norm[np.ix_(~null, ~null)])
        shift = np.linalg.pinv(form[np.ix_(null, null)], hermitian=True) @ form[np.ix_(null, ~null)]
        reduced = root.T @ (form[np.ix_(~null, ~null)] - form[np.ix_(~null, null)] @ shift) @ root
        reduced = symmetric_part(reduced)
        values, vectors = scipy.linalg.eigh(reduced)
        values, vectors = values[::-1], vectors[:, ::-1].copy()
        rank = int(np.count_nonzero(values > problem.cut * max(values[0], 0.0)))
        k = min(problem.count, rank)
        values, vectors = values[:k], vectors[:, :k]
        fix_signs(root @ vectors, vectors)
        residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
        coefficients = np.zeros((len(form), k))
        coefficients[~null] = root @ (vectors / np.sqrt(values))
        coefficients[null] = -shift @ coefficients[~null]
        return Spectrum(values, coefficients, coefficients, rank, residuals, described(problem, rank, residuals))


def _root(norm: Array) -> Array:
    """R (p, r) with R^T K R = I on the directions of K that are not rounding."""
    scale = np.sqrt(np.diag(norm))
    values, vectors = scipy.linalg.eigh(norm / np.outer(scale, scale))
    kept = values > NORM_CUT * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None])
