"""The two-metric singular value decomposition of <f, L g>, each side on the directions that its Gram matrix sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.penalised import leading_pairs
from daskspectral.solve.signs import fix_signs
from daskspectral.solve.solver import Problem, Solver, Spectrum, described
from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]


@final
@dataclass(frozen=True, repr=False)
class Singular(Solver):
    """The `count` largest singular values of form (p, q) between gram (p, p) and right_gram (q, q), descending.

    U S Vᵀ = Φ^(-1/2) L Ψ^(-1/2); the left functions are the rows of A = Uᵀ Φ^(-1/2), the right ones the rows of
    B = Vᵀ Ψ^(-1/2) (equation (7) of the Galerkin paper), kept as columns (p, k) and (q, k). They have unit norm in
    the metric of their side. The largest whitened coefficient of a left function is positive, and the sign of the right
    function makes the singular value positive. The ranks of both sides come as a pair.

    With `means` = (E φ (p,), E ψ (q,)) the means of the functions are subtracted. This is done after the cut, where
    the size of rounding is known: Gram matrices centred before the cut hold directions of noise wherever the functions
    are almost constant. The constant itself drops out of the span. Raises ValueError where nothing is left.
    """

    name: ClassVar[str] = "singular"
    values: ClassVar[str] = "singular_values_"
    functions: ClassVar[Mapping[str, str]] = {"coefficients_": "left", "right_coefficients_": "right"}
    two_sided: ClassVar[bool] = True

    def solve(self, problem: Problem) -> Spectrum:
        form, cut, means = problem.form, problem.cut, problem.means
        right_gram = problem.gram if problem.right_gram is None else problem.right_gram
        if problem.penalty is None:
            spans = whiten(problem.gram, cut), whiten(right_gram, cut)
        else:
            spans = leading_pairs(form, problem.gram, right_gram, problem.penalty, problem.count, cut, means)
        left, right = (span.matrix for span in spans)
        seen = spans[0].coordinates
        beyond = spans[0].rank - left.shape[1], spans[1].rank - right.shape[1]  # what the span leaves out
        reduced = left.T @ form @ right
        if means is not None:
            mu, nu = left.T @ means[0], right.T @ means[1]
            u, v = _centred_root(mu, np.sqrt(cut)), _centred_root(nu, np.sqrt(cut))
            left, right, reduced = left @ u, right @ v, u.T @ (reduced - np.outer(mu, nu)) @ v
            seen = None if seen is None else seen @ u
        k = min(problem.count, left.shape[1], right.shape[1])
        if not k:
            raise ValueError(
                "nothing is left of the basis once the means are subtracted: its functions are all but constant on "
                "these data; narrow the kernel's scale, or use more functions"
            )
        rank = left.shape[1] + beyond[0], right.shape[1] + beyond[1]
        u, values, vt = scipy.linalg.svd(reduced, full_matrices=False)
        u, values, v = u[:, :k], values[:k], vt[:k].T.copy()
        fix_signs(u.copy() if seen is None else seen @ u, u, v)
        residuals = np.hypot(
            np.linalg.norm(reduced @ v - u * values, axis=0), np.linalg.norm(reduced.T @ u - v * values, axis=0)
        )
        return Spectrum(values, left @ u, right @ v, rank, residuals, described(problem, rank, residuals))


def _centred_root(mean: Array, least: float) -> Array:
    """R with R^T (I - mean mean^T) R = I: whitened functions (r,) stay white once their means are subtracted.

    R is (r, r - 1), without the direction of the mean, where no more than `least` of the second moment along it is
    variance: the whitened mean of a constant in the span has norm 1 up to r times the cut.
    """
    share = float(mean @ mean)
    if share == 0:
        return np.eye(len(mean))
    axis = mean / np.sqrt(share)
    if 1 - share > least:
        return np.asarray(np.eye(len(mean)) + (1 / np.sqrt(1 - share) - 1) * np.outer(axis, axis))
    # a reflection that takes the mean to one axis; the other axes span its complement
    pivot = int(np.abs(axis).argmax())
    axis[pivot] += np.copysign(1, axis[pivot])
    reflection = np.eye(len(mean)) - 2 / (axis @ axis) * np.outer(axis, axis)
    return np.delete(reflection, pivot, axis=1)
