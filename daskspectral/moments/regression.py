"""From moments of a regression to a ridge problem, with the sums by fold by which its penalty is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import FitWarning, warn_user
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.solve.folded import FoldSums
from daskspectral.solve.ridge import Curve, Observed, RidgeFit, ridge_curve, solve_ridge

Array = NDArray[np.floating[Any]]
KINDS = {"values": ("gram", "values", "value_squares"), "gradients": ("dirichlet", "slopes", "slope_squares")}
OFFSET, LOST = 100.0, 1e4  # standard deviations


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """A regression on values, and on gradients where they have a weight, in the span of a basis with norm `penalty`.

    `shares` (K,) are the folds' shares of the weight, None without folds. `spread` is the mean square of what a fit has
    to explain: of values about their mean, and of gradients; on folds that were left out, where there are any.
    """

    observed: tuple[Observed, ...]
    penalty: Array
    shares: Array | None
    spread: float

    @classmethod
    def of(cls, moments: Moments, gradient_weight: float) -> RidgeProblem:
        """Raises ValueError for moments that are not finite, or weights that are all zero."""
        means = checked_means(moments)
        rows = int(moments.arrays["observed"][0])
        kinds = {"values": (1.0, rows)}
        if gradient_weight and "dirichlet" in moments.arrays:
            kinds["gradients"] = (gradient_weight, rows * moments.basis.dimension)
        folds = moments.folds
        observed = []
        for kind, (weight, count) in kinds.items():
            names = KINDS[kind]
            parts = None
            if folds is not None:
                form, target, squares = (folds.arrays[name][: folds.number] for name in names)
                parts = FoldSums(form, target, squares, weight / moments.weight)
            form, target, squares = (weight * means[name] for name in names)
            observed.append(Observed(form, target, squares, count, parts))
        shares = None if folds is None else folds.weight[: folds.number] / moments.weight
        spread = _spread(moments) + sum(float(kind.squares.sum()) for kind in observed[1:])
        return cls(tuple(observed), moments.basis.norm(means["gram"]), shares, spread)

    def curve(self, alpha: float | None, cut: float) -> Curve:
        """How all penalties do, or the one that is given."""
        return ridge_curve(self.observed, self.penalty, alpha=alpha, shares=self.shares, cut=cut)

    def solve(self, alpha: float | str | None, cut: float) -> RidgeFit:
        """The solution at one penalty, chosen on the folds (None) or by generalised cross-validation ("gcv")."""
        return solve_ridge(self.observed, self.penalty, alpha=alpha, shares=self.shares, cut=cut)

    def explained(self, error: float) -> float:
        """The share of the spread that a mean squared error leaves explained; 0 where nothing is spread."""
        return 1 - error / self.spread if self.spread > 0 else 0.0


def explained_by_means(moments: Moments, size: int) -> float | None:
    """The share of the values' spread that the means of y u of the first `size` functions u explain on other folds.

    None without two folds of rows, and for values without a spread.
    """
    folds, spread = moments.folds, _spread(moments)
    if folds is None or not spread > 0:
        return None
    gram, target, squares = (folds.arrays[name] for name in KINDS["values"])
    missed = judged = 0.0
    for k in range(folds.number):
        rest = moments.weight - folds.weight[k]
        if folds.weight[k] > 0 and rest > 0:
            a = (moments.arrays["values"][:size] - target[k, :size]) / rest
            image = gram[k, :size, :size] @ a
            missed += float(np.sum(squares[k]) - np.sum(a * (2 * target[k, :size] - image)))
            judged += folds.weight[k]
    return 1 - missed / judged / spread if judged else None


def _spread(moments: Moments) -> float:
    """The mean square of values about their mean over the rows of all other folds, or over all rows without folds."""
    weight, first, squares = moments.weight, moments.arrays["value_sums"], moments.arrays["value_squares"]
    folds = moments.folds
    if folds is None:
        return max(float(np.sum(squares - first**2 / weight)), 0.0) / weight
    total = judged = 0.0
    for k in range(folds.number):
        own, rest = folds.weight[k], weight - folds.weight[k]
        if own > 0 and rest > 0:
            here = folds.arrays["value_sums"][k]
            mean = (first - here) / rest
            total += max(float(np.sum(folds.arrays["value_squares"][k] - 2 * mean * here + mean**2 * own)), 0.0)
            judged += own
    return total / judged if judged else 0.0


def advise_offset(moments: Moments) -> None:
    """Warn where the values have a mean that dwarfs their spread: a regressor at landmarks has no intercept.

    One on a lattice has, but the sums of much larger values lose the digits of their spread.
    """
    most, why = OFFSET, "the regressor has no intercept, and its functions are spent on the mean"
    if moments.basis.holds_constant:
        most, why = LOST, "sums of such values keep few digits of what is to be explained"
    means = np.atleast_1d(moments.arrays["value_sums"]) / moments.weight
    spreads = np.sqrt(np.maximum(np.atleast_1d(moments.arrays["value_squares"]) / moments.weight - means**2, 0))
    far = np.flatnonzero((spreads > 0) & (np.abs(means) > most * spreads))
    if len(far):
        mean, spread = means[far[0]], spreads[far[0]]
        warn_user(
            f"the values of y have the mean {mean:.4g} and the standard deviation {spread:.4g}: {why}. Subtract it "
            "from y, and add it to predictions",
            FitWarning,
        )
