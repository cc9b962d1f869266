"""Ridge problem from moments of a regression, with sums by fold for the choice of its penalty."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.modes.matrices import MODES
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.operators.regression import Regression
from daskspectral.solve.ridge import FoldSums, Observed, RidgeProblem, squared_residual, validation_folds

Array = NDArray[np.floating[Any]]
KINDS = {"values": ("gram", "values", "value_squares"), "gradients": ("dirichlet", "slopes", "slope_squares")}


def ridge_problem(moments: Moments, gradient_weight: float) -> RidgeProblem:
    """Return the ridge problem of a regression on values, and on gradients if they have a weight.

    The intercept requires the functional "first". Raises ValueError if moments are not finite, or all weights are zero.
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
    """Return values, and gradients if they have a weight, that count as `rows` rows, with sums by fold.

    A gradient has `dimension` entries. Without values, gradients have the weight 1.
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
        one = Observed(form, target, squares, count, parts)
        if kind == "values" and "first" in means:
            if folds is not None and parts is not None:
                functions, values = folds.arrays["first"], folds.arrays["value_sums"]
                one = replace(one, folds=replace(parts, functions=functions, values=values, weights=folds.weight))
            one = one.about(means["first"], means["value_sums"])
        observed.append(one)
    return tuple(observed)


@dataclass(frozen=True)
class CrossValidation:
    """Mean squared validation `error`, `score` 1 - error / variance, and its standard error."""

    error: float
    score: float
    standard_error: float


def cross_validate(
    moments: Moments, observed: Sequence[Observed], refit: Callable[[int, float], Array]
) -> CrossValidation | None:
    """Return the cross-validation of coefficients (k, m) of the first functions, or None.

    `refit(fold, share)` returns coefficients fitted without a fold, for its share of the weight. None if fewer than two
    folds have rows, or the targets are constant.
    """
    folds = moments.folds
    if folds is None:
        return None
    shares = folds.weight[: folds.number] / moments.weight
    judged = validation_folds(shares)
    if not judged:
        return None
    spreads = _spreads_by_fold(moments)
    errors, total = np.zeros(len(judged)), np.zeros(len(judged))
    for i, k in enumerate(judged):
        a, total[i] = refit(k, float(shares[k])), spreads[k] / moments.weight
        for kind in observed:
            part = kind.leading(len(a)).part(k).left_out(float(shares[k]))
            norm = float(part.squares.sum())
            errors[i] += squared_residual(part.form, part.target, norm, a, 0.0)
            total[i] += norm if kind is not observed[0] or "values" not in moments.arrays else 0.0
    if not total.sum() > 0:
        return None
    ratio, count = errors.sum() / total.sum(), len(judged)
    deviation = np.sqrt(count / (count - 1) * np.sum((errors - ratio * total) ** 2)) / total.sum()
    return CrossValidation(float(errors.sum() / shares[judged].sum()), float(1 - ratio), float(deviation))


def _spread(moments: Moments) -> float:
    """Return the mean square of values about their mean over other folds, or all rows."""
    weight, folds = moments.weight, moments.folds
    if folds is None:
        return max(float(np.sum(moments.mean("value_squares") - moments.mean("value_sums") ** 2)), 0.0)
    own = folds.weight[: folds.number]
    judged = float(own[(own > 0) & (weight - own > 0)].sum())
    return float(_spreads_by_fold(moments).sum()) / judged if judged else 0.0


def _spreads_by_fold(moments: Moments) -> Array:
    """Return the sum of squares of each fold about the mean over all others, 0 without rows."""
    folds = moments.folds
    assert folds is not None
    own = folds.weight[: folds.number]
    if "value_sums" not in moments.arrays:
        return np.zeros(len(own))
    here, squares = (folds.arrays[name][: folds.number] for name in ("value_sums", "value_squares"))
    judged = (own > 0) & (moments.weight - own > 0)
    rest = np.where(judged, moments.weight - own, 1.0)
    mean = (moments.arrays["value_sums"] - here) / rest[:, None]
    found = np.sum(squares - 2 * mean * here + mean**2 * own[:, None], axis=1)
    return np.where(judged, np.maximum(found, 0.0), 0.0)


def with_origin(moments: Moments, origin: tuple[float, ...]) -> Moments:
    """Return the moments of the same rows with another origin subtracted from the values.

    With y' = y + delta: sum w f y' = sum w f y + delta sum w f, and so on, in each fold.
    """
    operator = cast(Regression, moments.operator)
    delta = (np.asarray(operator.origin or 0.0) - np.asarray(origin or 0.0)) / operator.unit
    delta = np.broadcast_to(delta, np.shape(moments.arrays["value_sums"]))

    def moved(sums: Mapping[str, Array], weight: float) -> dict[str, Array]:
        found = dict(sums)
        if MODES + "y" in sums:
            found[MODES + "y"] = sums[MODES + "y"] + np.multiply.outer(delta, sums[MODES + "1"])
        else:  # the first harmonic is the constant
            first = sums["first"] if "first" in sums else sums["gram"][:, 0]
            found["values"] = sums["values"] + np.outer(first, delta)
        found["value_sums"] = sums["value_sums"] + weight * delta
        found["value_squares"] = sums["value_squares"] + 2 * delta * sums["value_sums"] + weight * delta**2
        return found

    return moments.mapped(moved, operator=replace(operator, origin=origin))
