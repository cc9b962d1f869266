"""From moments to a solver's problem, on the functions that rest on enough data, and from spectrum to attributes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.moments.advice import advise_manifold, advise_rank, advise_support
from daskspectral.moments.moments import Moments
from daskspectral.operators.weights import effective_rows
from daskspectral.solve import Problem, resolve_cut

Array = NDArray[np.inexact[Any]]


def solve_moments(
    moments: Moments, *, count: int, rtol: float | None, ridge: float, min_support: float
) -> dict[str, Any]:
    """The attributes of an estimator from moments of its operator, under the names that the operator's solver gives.

    Raises ValueError where every function of a side vanishes, the sums are not finite, or the weights are all zero.
    """
    operator, means = moments.operator, checked_means(moments)
    solver = operator.solver
    left = right = _Side(moments, "", min_support)
    if solver.two_sided and "right_gram" in means:
        right = _Side(moments, "right_", min_support)
    centred = (means["first"][left.kept], means[f"{right.prefix}first"][right.kept]) if operator.center else None
    problem = Problem(
        left.among(means["form"], right),
        left.among(means["gram"], left),
        count,
        resolve_cut(rtol, moments.dtype),
        right_gram=right.among(means[f"{right.prefix}gram"], right) if solver.two_sided else None,
        means=centred,
        ridge=ridge,
        descending=operator.descending,
        ranking=operator.ranking,
    )
    spectrum = solver.solve(problem)
    advise_manifold(moments, stacklevel=5)
    advise_rank(spectrum, left.basis, count, right=right.basis, stacklevel=5)
    shown = {"left": left.spread(spectrum.left), "right": right.spread(spectrum.right)}
    return {
        solver.values: spectrum.values,
        **{name: shown[side] for name, side in solver.functions.items()},
        "rank_": spectrum.rank,
        "residuals_": spectrum.residuals,
        "status_": spectrum.status,
        "support_": left.support,
        **({"right_support_": right.support} if solver.two_sided else {}),
    }


def checked_means(moments: Moments) -> dict[str, NDArray[np.floating[Any]]]:
    """The means of all sums over the rows. Raises ValueError where they are not finite, or the weights sum to 0."""
    if moments.weight <= 0:
        raise ValueError(f"the total sample weight is {moments.weight:g}; some row needs a positive weight")
    if not math.isfinite(moments.weight):
        raise ValueError("the sample weights sum to infinity; give them in another unit")
    means = {name: moments.mean(name) for name in moments.arrays if name not in moments.operator.counts}
    if not all(np.isfinite(mean).all() for mean in means.values()):
        raise ValueError(
            "the moments are not finite: the kernel, its derivatives or the targets overflow on these data; scale the "
            "columns (standardize=True) or the targets, or change the kernel's scale or degree"
        )
    return means


class _Side:
    """The functions of one side, and which of them rest on enough points."""

    def __init__(self, moments: Moments, prefix: str, least: float):
        right = moments.right_basis if prefix else None
        self.prefix = prefix
        self.basis: Basis = moments.basis if right is None else right
        first, diagonal = moments.mean(f"{prefix}first"), np.diag(moments.mean(f"{prefix}gram"))
        share = np.divide(first, diagonal, out=np.zeros_like(first), where=diagonal > 0) * first
        self.support = share * _rows(moments)
        self.kept: NDArray[np.bool_] = ~self.basis.local | (self.support >= least)
        advise_support(self.kept, self.basis, least)

    def among(self, matrix: NDArray[np.floating[Any]], right: _Side) -> NDArray[np.floating[Any]]:
        """The rows and columns of the functions that are kept."""
        return np.asarray(matrix[np.ix_(self.kept, right.kept)])

    def spread(self, coefficients: Array) -> Array:
        """Coefficients of all functions, 0 for functions left out."""
        whole = np.zeros((len(self.kept), coefficients.shape[1]), coefficients.dtype)
        whole[self.kept] = coefficients
        return whole


def _rows(moments: Moments) -> float:
    """How many rows the data count as: the total weight, or Kish's effective number of rows where it is larger.

    For whole weights, the frequencies of rows, this is the total weight, also where some are 0; for weights that sum to
    1, or to 1e-300, it is the effective number of rows, sum(w)^2 / sum(w^2).
    """
    squares = moments.arrays.get("weight_squares")  # moments put together by hand may lack it
    return moments.weight if squares is None else max(moments.weight, effective_rows(moments.weight, squares))
