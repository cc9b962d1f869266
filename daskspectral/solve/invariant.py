"""Regression among invariant functions by level: means of y u, or ridge least squares with the Sobolev penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.registry import Named
from daskspectral.solve.ridge import Observed, solve_ridge

Array = NDArray[np.floating[Any]]
MOST = 1000  # eigenfunctions of "least_squares", unless told
CUT = 1e-13  # of directions of the Gram matrix: harmonics of n points are well conditioned, or not determined at all


@dataclass(frozen=True, eq=False)
class InvariantProblem:
    """Means over `count` observed rows: `gram` (r, r), `target` (r, m), `squares` (m,); functions ordered by level.

    `cumulative` (r,) is D_lambda of each function, `exponent` the power alpha of the weights D_lambda^alpha. `most` is
    D and `alpha` the penalty, each None where the solver chooses.
    """

    gram: Array
    target: Array
    squares: Array
    count: int
    cumulative: NDArray[np.int64]
    exponent: float
    most: int | None
    alpha: float | None


@dataclass(frozen=True, eq=False)
class InvariantSolution:
    """Coefficients (k, m) of the leading functions: the levels with at most `most` harmonics together.

    `alpha` is the penalty, `score` its cross-validation, `curve` (g, 3) the D, penalty and score of each candidate;
    None for a solver without cross-validation.
    """

    coefficients: Array
    most: int
    alpha: float | None = None
    score: float | None = None
    curve: Array | None = None


class InvariantSolver(Named, ABC):
    """InvariantProblem -> InvariantSolution."""

    penalised: ClassVar[bool] = False
    """Whether it has the penalty alpha."""

    @abstractmethod
    def solve(self, problem: InvariantProblem) -> InvariantSolution:
        """The coefficients."""

    @abstractmethod
    def default(self, count: int, exponent: float, grouped: bool) -> int:
        """The D up to which functions are measured for `count` rows, unless it is given."""


@final
@dataclass(frozen=True, repr=False)
class Projection(InvariantSolver):
    """The means of y u over the levels with D_lambda <= D (Algorithm 1, Soleymani and others 2025)."""

    name: ClassVar[str] = "projection"

    def solve(self, problem: InvariantProblem) -> InvariantSolution:
        most = problem.most or self.default(problem.count, problem.exponent, False)
        if most > problem.count:
            raise ValueError(
                f"n_eigenfunctions={most} is more than the {problem.count} rows of positive weight; lower it"
            )
        kept = int(np.count_nonzero(problem.cumulative <= most))
        return InvariantSolution(problem.target[:kept], most)

    def default(self, count: int, exponent: float, grouped: bool) -> int:
        """n^(1 / (1 + alpha)), rounded down but for rounding."""
        return max(1, int(count ** (1 / (1 + exponent)) + 1e-9))


@final
@dataclass(frozen=True, repr=False)
class LeastSquares(InvariantSolver):
    """Ridge least squares over the first levels; cross-validation chooses their number and the penalty."""

    name: ClassVar[str] = "least_squares"
    penalised: ClassVar[bool] = True

    def solve(self, problem: InvariantProblem) -> InvariantSolution:
        cumulative = problem.cumulative
        penalty = cumulative.astype(float) ** problem.exponent
        ends = [int(np.count_nonzero(cumulative <= total)) for total in np.unique(cumulative)]
        free = problem.most is None and problem.alpha is None
        curve, best = [], None
        for end in [ends[i] for i in _spread(len(ends))] if free else ends[-1:]:
            if best is not None and end > problem.count:
                break  # more functions than observations say nothing that fewer do not
            part = Observed(problem.gram[:end, :end], problem.target[:end], problem.squares, problem.count)
            fit = solve_ridge([part], np.diag(penalty[:end]), alpha=problem.alpha, cut=CUT)
            curve.append((float(cumulative[end - 1]), fit.alpha, fit.score))
            if best is None or fit.score < best.score:
                best = fit
        assert best is not None
        size = len(best.coefficients)
        return InvariantSolution(best.coefficients, int(cumulative[size - 1]), best.alpha, best.score, np.array(curve))

    def default(self, count: int, exponent: float, grouped: bool) -> int:
        """1000, of which a group leaves few functions; without a group at most n / 2."""
        return MOST if grouped else max(1, min(count // 2, MOST))


def _spread(count: int) -> list[int]:
    """Numbers below `count`: the first ones, then ever sparser, and the last one; not many more than 40."""
    return sorted({min(count - 1, k) for k in range(16)} | set(np.geomspace(1, count, 30).astype(int) - 1))
