"""From moments of a regression to a ridge problem, with the sums by fold by which its penalty is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import FitWarning, warn_user
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.solve.ridge import FoldSums, Observed, RidgeProblem, judges, missed

Array = NDArray[np.floating[Any]]
KINDS = {"values": ("gram", "values", "value_squares"), "gradients": ("dirichlet", "slopes", "slope_squares")}
OFFSET, LOST = 100.0, 3e3  # standard deviations


def ridge_problem(moments: Moments, gradient_weight: float) -> RidgeProblem:
    """A regression on values, and on gradients where they have a weight, in the span of a basis.

    Raises ValueError for moments that are not finite, or weights that are all zero.
    """
    means = checked_means(moments)
    rows = int(moments.arrays["observed"][0])
    observed = observed_in(moments, means, gradient_weight, rows, moments.basis.dimension)
    folds = moments.folds
    shares = None if folds is None else folds.weight[: folds.number] / moments.weight
    spread = _spread(moments) + sum(float(kind.squares.sum()) for kind in observed[1:])
    return RidgeProblem(observed, moments.basis.norm(means["gram"]), shares, spread)


def observed_in(
    moments: Moments, means: Mapping[str, Array], gradient_weight: float, rows: float, dimension: int
) -> tuple[Observed, ...]:
    """Values, and gradients where they have a weight, that count as so many `rows`, with their sums by fold.

    A gradient has `dimension` entries. Without values gradients have the weight 1: there is nothing to weigh against.
    """
    kinds = {"values": (1.0, rows)} if "values" in moments.arrays else {}
    if "dirichlet" in moments.arrays and (gradient_weight or not kinds):
        kinds["gradients"] = (gradient_weight if kinds else 1.0, rows * dimension)
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
    return tuple(observed)


@dataclass(frozen=True)
class CrossValidation:
    """The mean squared `error` on folds that were left out, the `score` 1 - error / spread, and its standard error."""

    error: float
    score: float
    standard_error: float


def cross_validate(
    moments: Moments, observed: Sequence[Observed], refit: Callable[[int, float], Array]
) -> CrossValidation | None:
    """How well coefficients (k, m) of the first functions do on each fold that they were fitted without.

    `refit` takes a fold and its share of the weight. The standard error is that of a ratio of sums over folds. None
    without two folds of rows, and where nothing is spread.
    """
    folds = moments.folds
    if folds is None:
        return None
    shares = folds.weight[: folds.number] / moments.weight
    judged = judges(shares)
    if not judged:
        return None
    spreads = _spreads_by_fold(moments)
    errors, total = np.zeros(len(judged)), np.zeros(len(judged))
    for i, k in enumerate(judged):
        a, total[i] = refit(k, float(shares[k])), spreads[k] / moments.weight
        for kind in observed:
            form, target, squares = kind.leading(len(a)).of(k)
            norm = float(squares.sum())
            errors[i] += missed(form, target, norm, a, 0.0)
            total[i] += norm if kind is not observed[0] or "values" not in moments.arrays else 0.0
    if not total.sum() > 0:
        return None
    ratio, count = errors.sum() / total.sum(), len(judged)
    deviation = np.sqrt(count / (count - 1) * np.sum((errors - ratio * total) ** 2)) / total.sum()
    return CrossValidation(float(errors.sum() / shares[judged].sum()), float(1 - ratio), float(deviation))


def _spread(moments: Moments) -> float:
    """The mean square of values about their mean over the rows of all other folds, or over all rows without folds."""
    weight, first, squares = moments.weight, moments.arrays["value_sums"], moments.arrays["value_squares"]
    folds = moments.folds
    if folds is None:
        return max(float(np.sum(squares - first**2 / weight)), 0.0) / weight
    own = folds.weight[: folds.number]
    judged = float(own[(own > 0) & (weight - own > 0)].sum())
    return float(sum(_spreads_by_fold(moments))) / judged if judged else 0.0


def _spreads_by_fold(moments: Moments) -> list[float]:
    """The sum of squares of the values of each fold about their mean over the rows of all other folds.

    0 for folds without rows or without others, and where there are no values.
    """
    folds = moments.folds
    assert folds is not None
    found = [0.0] * folds.number
    if "value_sums" not in moments.arrays:
        return found
    for k in range(folds.number):
        own, rest = folds.weight[k], moments.weight - folds.weight[k]
        if own > 0 and rest > 0:
            here = folds.arrays["value_sums"][k]
            mean = (moments.arrays["value_sums"] - here) / rest
            squares = folds.arrays["value_squares"][k] - 2 * mean * here + mean**2 * own
            found[k] = max(float(np.sum(squares)), 0.0)
    return found


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
