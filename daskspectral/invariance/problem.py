"""Regression from moments of invariant functions, and its diagnostics: validation error and uniformity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.errors import FitWarning, ReliabilityWarning, warn_user
from daskspectral.invariance.levels import InvariantProblem, InvariantSolution, InvariantSolver
from daskspectral.moments.counting import advise_weights, counted_rows
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.moments.regression import CrossValidation, cross_validate, observed_in
from daskspectral.passes.support import FUNCTIONS, leading

Array = NDArray[np.floating[Any]]
CUT = 1e-10  # relative cutoff of the Gram matrix in the least squares that estimate a bias
MISJUDGED = 5.0  # validation error over its expectation
SLIGHT = 0.1  # explained share that may be due to chance
EXPLAINED = 0.98  # explained share above which errors are harmless


def problem_of(moments: Moments, *, gradient_weight: float, **objective: Any) -> InvariantProblem:
    """Return the regression problem of the moments; `gradient_weight` weighs a gradient against a value."""
    basis = cast(InvariantBasis | EquivariantBasis, moments.basis)
    dimension, numbers = basis.manifold.dimension, counted_rows(moments) * basis.components
    observed = observed_in(moments, checked_means(moments), gradient_weight, numbers, dimension)
    rows, folds = int(moments.arrays["observed"][0]), moments.folds
    shares = None if folds is None else folds.weight[: folds.number] / moments.weight
    return InvariantProblem(observed, basis.cumulative, rows, shares=shares, **objective)


def fit_invariant(
    moments: Moments, solver: InvariantSolver, **objective: Any
) -> tuple[InvariantSolution, CrossValidation | None]:
    """Return the solution and its cross-validation (None without folds), and warn if it is unreliable.

    Raises ValueError for moments that are not finite, or weights that are all zero.
    """
    problem = problem_of(moments, **objective)
    advise_weights(moments)
    solution = solver.solve(problem)
    found = cross_validate(moments, problem.observed, lambda fold, share: solver.refit(problem, solution, fold, share))
    _advise_unexplained(moments, solution, found, automatic=not solver.has_penalty and problem.most is None)
    if not solver.has_penalty and isinstance(moments.basis, InvariantBasis):
        _advise_uniformity(moments, solution.coefficients)
    return solution, found


def _advise_unexplained(
    moments: Moments, solution: InvariantSolution, found: CrossValidation | None, *, automatic: bool
) -> None:
    """Warn if validation rows are explained badly."""
    size = len(solution.coefficients)
    advice = "omit n_eigenfunctions and alpha, pass more rows, or change the group"
    if automatic:
        advice = 'use solver="least_squares", which chooses its functions, set n_eigenfunctions, or pass more rows'
    if not _targets_vary(moments):
        return
    if size == 1 and moments.basis.holds_constant:
        what = (
            f"only the constant is fitted, of the first {solution.most} eigenfunctions, so that predictions are "
            "the mean of y"
        )
    elif found is None:
        return
    elif found.score <= 0 or (found.score < min(SLIGHT, 2 * found.standard_error) and not automatic):
        what = (
            f"the {size} fitted invariant functions do not explain the validation rows (R^2 = "
            f"{found.score:.2g}, with a standard error of {found.standard_error:.2g})"
        )
    elif solution.score is not None and found.error > MISJUDGED * solution.score and found.score < EXPLAINED:
        what = (
            f"the mean squared error is {found.error:.2g} on validation rows (R^2 = {found.score:.2g}), and "
            f"{solution.score:.2g} estimated from the fit: some rows lie in sparse regions"
        )
        advice = "pass more rows there, transform the columns (a logarithm, ranks), or lower n_eigenfunctions"
    else:
        return
    warn_user(f"{what}: {advice}", FitWarning if automatic else ReliabilityWarning)


def _targets_vary(moments: Moments) -> bool:
    """Return whether targets differ by more than rounding."""
    if "value_squares" not in moments.arrays or "slope_squares" in moments.arrays:
        return True
    squares, means = moments.mean("value_squares"), moments.mean("value_sums")
    return bool(float((squares - means**2).sum()) > CUT * float(squares.sum()))


def _advise_uniformity(moments: Moments, coefficients: Array) -> None:
    """Warn if rows are not uniform, and the bias exceeds the noise."""
    rows = counted_rows(moments)
    found = Uniformity.of(moments, rows)
    if found.uniform:
        return
    size = len(coefficients)
    gram, target = moments.mean("gram")[:size, :size], moments.mean("values")[:size]
    norm = float(np.linalg.norm(target))
    solved = np.linalg.lstsq(gram, target, rcond=CUT)[0]
    off = float(np.linalg.norm(coefficients - solved)) / max(float(np.linalg.norm(solved)), np.finfo(float).tiny)
    chance = float(np.sqrt(size / rows))
    if not norm or off <= chance:
        return
    basis = cast(InvariantBasis, moments.basis)
    warn_user(
        f"the rows are not uniform on {basis.manifold!r}, as solver='projection' requires: the means of "
        f"{found.functions} functions of mean 0 have the norm {found.deviation:.2g} (by chance "
        f"{found.chance:.2g}), and the error of f is {100 * off:.2g} % (by chance {100 * chance:.2g} %). Use "
        "solver='least_squares'",
        FitWarning,
    )


CHANCE = 1e-6  # probability of such means for uniform rows


@dataclass(frozen=True)
class Uniformity:
    """Deviation of rows from uniform: root of the summed squared means of invariant functions.

    The means of the `functions` after the constant are 0 for the uniform probability; by `chance` the deviation is
    √(functions / n). `likelihood` is the probability of this deviation or more.
    """

    deviation: float
    chance: float
    functions: int
    likelihood: float

    @property
    def uniform(self) -> bool:
        return self.likelihood >= CHANCE

    @classmethod
    def of(cls, moments: Moments, rows: float) -> Uniformity:
        """Return the deviation, from whole levels of at most 100 functions."""
        basis = cast(InvariantBasis, moments.basis)
        means = moments.mean("gram")[0, 1 : leading(basis, FUNCTIONS)]  # the first function is the constant 1
        squares, count = float(means @ means), len(means)
        likelihood = float(scipy.special.gammaincc(count / 2, squares * rows / 2)) if count else 1.0
        return cls(float(np.sqrt(squares)), float(np.sqrt(count / rows)), count, likelihood)
