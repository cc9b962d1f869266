"""Regression among invariant functions by level: means of y u, or ridge least squares with the Sobolev penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Named
from daskspectral.solve.ridge import (
    Observed,
    best_generalized,
    best_on_folds,
    generalized,
    solve_diagonal,
    summed,
    validation_error,
    validation_folds,
    without_fold,
)

Array = NDArray[np.floating[Any]]
SMALL = 100  # functions up to which all penalties are tried: for more, only those near the best of fewer


@dataclass(frozen=True, eq=False)
class InvariantProblem:
    """Regression problem of the means over the rows, with functions ordered by level.

    Minimizes squared errors plus `alpha` times the Sobolev norm with the weights D_lambda^exponent; `most` is the
    largest D. The solver selects `most` and `alpha` unless given. `observed` are values, gradients or both, with forms
    (r, r), `cumulative` (r,) is D_lambda, `rows` the effective number of rows, `shares` (K,) the folds' shares of the
    weight or None.
    """

    observed: tuple[Observed, ...]
    cumulative: NDArray[np.int64]
    rows: int
    exponent: float
    most: int | None = None
    alpha: float | None = None
    shares: Array | None = None

    @property
    def penalty(self) -> Array:
        """Weights (r,) D_lambda^alpha of the Sobolev norm; 0 for constants."""
        weights = self.cumulative.astype(float) ** self.exponent
        return np.asarray(np.where(self.cumulative > 1, weights, 0.0))

    def leading(self, size: int) -> tuple[list[Observed], Array]:
        return [kind.leading(size) for kind in self.observed], self.penalty[:size]

    @property
    def ends(self) -> list[int]:
        """Numbers of functions of whole levels that the sums determine."""
        ends = [int(np.count_nonzero(self.cumulative <= total)) for total in np.unique(self.cumulative)]
        seen = [end for end in ends if any(np.trace(kind.form[:end, :end]) > 0 for kind in self.observed)]
        return seen or ends


@dataclass(frozen=True, eq=False)
class InvariantSolution:
    """Coefficients (k, m) of the levels with at most `most` eigenfunctions together.

    `alpha` is the penalty, `score` its generalized cross-validation. `curve` (g, 3) has the D, penalty and validation
    error, or score without folds, of each candidate.
    """

    coefficients: Array
    most: int
    alpha: float | None = None
    score: float | None = None
    curve: Array | None = None


class InvariantSolver(Named, ABC):
    """Base class of solvers of an `InvariantProblem`."""

    has_penalty: ClassVar[bool] = False
    """Whether it has the penalty alpha and accepts gradients."""

    @abstractmethod
    def solve(self, problem: InvariantProblem) -> InvariantSolution: ...

    @abstractmethod
    def refit(self, problem: InvariantProblem, solution: InvariantSolution, fold: int, share: float) -> Array:
        """Return the coefficients (k, m) without one fold."""

    def default(self, rows: int, exponent: float) -> int | None:
        """Return D for this number of rows; None if the data decide."""
        return None


@final
@dataclass(frozen=True, repr=False)
class LeastSquares(InvariantSolver):
    """Ridge least squares over the first levels; cross-validation chooses their number and the penalty.

    Validation folds contain rows of high leverage, of which generalized cross-validation sees the mean only.
    """

    name: ClassVar[str] = "least_squares"
    has_penalty: ClassVar[bool] = True

    def solve(self, problem: InvariantProblem) -> InvariantSolution:
        count = sum(kind.count for kind in problem.observed)
        ends = problem.ends
        if (most := problem.most) is not None:
            ends = [end for end in ends if problem.cumulative[end - 1] <= most][-1:] or ends[:1]
        ends = [ends[i] for i in _candidate_sizes(len(ends))]
        ends = [end for end in ends if end <= count] or ends[:1]  # more functions than observations are not determined
        found: list[tuple[int, float, float]] = []
        for end in ends:
            start = min(found, key=lambda one: one[2])[1] if found and end > SMALL else None
            found.append((end, *self._best_penalty(problem, end, start)))
        size, alpha, _ = min(found, key=lambda one: one[2])
        part, penalty = problem.leading(size)
        return InvariantSolution(
            solve_diagonal(*summed(part), alpha * penalty),
            int(problem.cumulative[size - 1]),
            alpha,
            generalized(part, penalty, alpha),
            np.array([(float(problem.cumulative[end - 1]), alpha, score) for end, alpha, score in found]),
        )

    def _best_penalty(self, problem: InvariantProblem, size: int, start: float | None) -> tuple[float, float]:
        """Return the best or fixed penalty for `size` functions, and its error."""
        part, penalty = problem.leading(size)
        alpha, shares = problem.alpha, problem.shares
        if shares is not None and validation_folds(shares):
            alpha = best_on_folds(part, shares, penalty, start) if alpha is None else alpha
            return alpha, validation_error(part, shares, penalty, alpha)
        alpha = best_generalized(part, penalty) if alpha is None else alpha
        return alpha, generalized(part, penalty, alpha)

    def refit(self, problem: InvariantProblem, solution: InvariantSolution, fold: int, share: float) -> Array:
        size, alpha = len(solution.coefficients), solution.alpha
        assert alpha is not None
        part, penalty = problem.leading(size)
        return solve_diagonal(*without_fold(part, fold, share), alpha * penalty)


@final
@dataclass(frozen=True, repr=False)
class Projection(InvariantSolver):
    """Means of (y - mean of y) u over the levels with D_lambda <= D (Algorithm 1, Soleymani and others 2025).

    The coefficient of the constant is the mean of y, so that an offset of y is added to f.
    """

    name: ClassVar[str] = "projection"

    def solve(self, problem: InvariantProblem) -> InvariantSolution:
        most = problem.most or self.default(problem.rows, problem.exponent)
        if most > problem.rows:
            raise ValueError(
                f"n_eigenfunctions={most} is more than the {problem.rows} rows of positive weight; lower it"
            )
        kept = int(np.count_nonzero(problem.cumulative <= most))
        values = problem.observed[0].leading(kept)
        return InvariantSolution(self._means(problem, values.form, values.target), most)

    def refit(self, problem: InvariantProblem, solution: InvariantSolution, fold: int, share: float) -> Array:
        return self._means(
            problem, *without_fold([problem.observed[0].leading(len(solution.coefficients))], fold, share)
        )

    def _means(self, problem: InvariantProblem, form: Array, target: Array) -> Array:
        constant = problem.cumulative[: len(target)] <= 1
        return np.asarray(np.where(constant[:, None], target, target - form[:, constant] @ target[constant]))

    def default(self, rows: int, exponent: float) -> int:
        """Return n^(1 / (1 + alpha)), rounded down."""
        return max(1, int(rows ** (1 / (1 + exponent)) + 1e-9))


def _candidate_sizes(count: int) -> Sequence[int]:
    """Return about 40 numbers up to `count`, dense at the start."""
    return sorted({min(count - 1, k) for k in range(16)} | set(np.geomspace(1, count, 30).astype(int) - 1))
