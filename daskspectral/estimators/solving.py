"""From moments to what an estimator shows: the solver that the operator names, on the functions that rest on data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.estimators.advice import advise_rank, advise_support
from daskspectral.estimators.weighing import effective_rows
from daskspectral.moments import Moments
from daskspectral.solve import Spectrum, resolve_cut, solve_eigen, solve_singular, solve_symmetric

Array = NDArray[np.inexact[Any]]

SOLUTION = {
    "symmetric": ("eigenvalues_", "coefficients_", "rank_", "residuals_", "support_"),
    "singular": (
        "singular_values_",
        "coefficients_",
        "right_coefficients_",
        "rank_",
        "residuals_",
        "support_",
        "right_support_",
    ),
    "eigen": ("eigenvalues_", "coefficients_", "left_coefficients_", "rank_", "residuals_", "support_"),
}
"""The attributes that each solver sets."""


def solve_moments(
    moments: Moments, *, count: int, rtol: float | None, ridge: float, min_support: float
) -> dict[str, Any]:
    """The attributes (`SOLUTION`) of an estimator whose operator has these moments.

    Raises ValueError where every function of a side vanishes, the sums are not finite, or the weights are all zero.
    """
    operator, cut = moments.operator, resolve_cut(rtol, moments.dtype)
    if moments.weight <= 0:
        raise ValueError(f"the total sample weight is {moments.weight:g}; some row needs a positive weight")
    if not math.isfinite(moments.weight):
        raise ValueError("the sample weights sum to infinity; give them in another unit")
    means = {name: moments.mean(name) for name in moments.arrays if name != "weight_squares"}
    if not all(np.isfinite(mean).all() for mean in means.values()):
        raise ValueError(
            "the moments are not finite: the kernel or its derivatives overflow on these data; scale the columns "
            "(standardize=True), or change the kernel's scale or degree"
        )
    left = right = _Side(moments, "", min_support)
    form, gram = means["form"], left.among(means["gram"], left)
    if operator.solver == "singular":
        right = _Side(moments, "right_", min_support) if "right_gram" in means else left
        spectrum = solve_singular(
            left.among(form, right),
            gram,
            right.among(means[f"{right.prefix}gram"], right),
            count=count,
            cut=cut,
            means=(means["first"][left.kept], means[f"{right.prefix}first"][right.kept]) if operator.center else None,
        )
    elif operator.solver == "eigen":
        order: Any = operator.ranking
        spectrum = solve_eigen(left.among(form, left), gram, count=count, cut=cut, order=order)
    else:
        spectrum = solve_symmetric(
            left.among(form, left), gram, count=count, cut=cut, ridge=ridge, descending=operator.descending
        )
    advise_rank(spectrum, left.basis, count, right=right.basis, stacklevel=5)
    return _attributes(operator.solver, spectrum, left, right)


def _attributes(solver: str, spectrum: Spectrum, left: _Side, right: _Side) -> dict[str, Any]:
    shared: dict[str, Any] = {"rank_": spectrum.rank, "residuals_": spectrum.residuals, "support_": left.support}
    if solver == "singular":
        return shared | {
            "singular_values_": spectrum.values,
            "coefficients_": left.spread(spectrum.left),
            "right_coefficients_": right.spread(spectrum.right),
            "right_support_": right.support,
        }
    shared |= {"eigenvalues_": spectrum.values, "coefficients_": left.spread(spectrum.right)}
    return shared | ({"left_coefficients_": left.spread(spectrum.left)} if solver == "eigen" else {})


class _Side:
    """The functions of one side, and those among them that rest on enough points."""

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
        """Coefficients of all functions, 0 for those left out."""
        whole = np.zeros((len(self.kept), coefficients.shape[1]), coefficients.dtype)
        whole[self.kept] = coefficients
        return whole


def _rows(moments: Moments) -> float:
    """How many rows the points count as: their total weight, or where it is more Kish's effective number of rows.

    It is the weight for whole weights, the frequencies of rows, also where some are 0; with weights that sum to 1, or
    to 1e-300, as many as there are effective rows, sum(w)^2 / sum(w^2).
    """
    squares = moments.arrays.get("weight_squares")  # moments put together by hand may lack it
    return moments.weight if squares is None else max(moments.weight, effective_rows(moments.weight, squares))
