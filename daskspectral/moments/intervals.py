"""Error bars of a spectrum from the folds of its moments: jackknife errors and validation values.

The solution without fold k is rotated to the solution of all rows (Procrustes), so that values and functions
correspond. Standard errors s are those of the delete-one-fold jackknife of the rotated values; validation values h are
those of the rotated functions on the folds that were left out. By the min-max principle h is beyond the fitted value l,
which is biased by overfitting. The interval extends from one to the other, widened by the jackknife: √(l h) exp(+-(1.15
t s / l + |ln(h / l)| / 2)). It is extended downwards to lower validation values of other functions in the search, and
by the change of values if half of the landmarks are removed (`moments.solution`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from daskspectral.moments.folds import Folds
from daskspectral.moments.pairwise import PRESENT, any_pair_alone
from daskspectral.moments.problem import GalerkinProblem, galerkin_system
from daskspectral.solve import GalerkinSystem, Solution
from daskspectral.solve.problems import NEGLIGIBLE

Array = NDArray[np.floating[Any]]
Sums = Mapping[str, Array]

LEVEL = 0.95
LEAST_ROWS = 100  # for intervals
WIDENED = 1.15  # factor of jackknife errors, for which intervals contained 0.90 to 0.92 of the values of 37 problems
RELIABLE_RATIO, RELIABLE_WIDTH = 1.1, 0.3


@dataclass(frozen=True, eq=False)
class Errors:
    """Sampling errors of k values.

    `intervals` (k, 2) are the ends of 95 % intervals, `standard` (k,) standard errors of `Operator.reported_values`,
    `held_out` (k,) validation values, `groups` (k,) the numbers of groups of values that the data cannot distinguish,
    and `angles` (k,) standard errors of the functions of a group, as the sine of an angle.

    Values are `reliable` (k,) if the ratio of validation to fitted value (its inverse for singular values) is below
    1.1, the interval is narrower than 30 % of the value plus the operator's `resolution`, and no other functions have a
    validation value lower by a tenth; or if they are constants, 0 by construction. For too few rows or folds, `reason`
    explains it, intervals are NaN, and no value is reliable.
    """

    intervals: Array
    standard: Array
    held_out: Array
    groups: NDArray[np.int64]
    angles: Array
    reliable: NDArray[np.bool_]
    reason: str = ""


def errors_of(
    problem: GalerkinProblem, folds: Folds | None, finalist_gap: Array | None = None, least: int = LEAST_ROWS
) -> Errors:
    """Return the error bars of the solution of a problem, from the folds of its moments.

    Intervals are extended to the values of other functions, lower by the factors `finalist_gap` (k,). Fewer than
    `least` rows have no error bars.
    """
    k, rows = len(problem.whole.values), problem.count_of_rows
    if not k:
        return _unknown(k, "no error bars: there are no values")
    if folds is None or folds.number < 2:
        return _unknown(k, "no error bars without folds")
    if rows < least:
        return _unknown(k, f"no error bars from {rows} rows: at least {least} are required")
    filled = folds.filled
    if len(filled) < 2:
        return _unknown(k, "no error bars: all weight is in one fold")
    if problem.pairs is not None and any_pair_alone(folds.arrays[PRESENT]):
        return _unknown(k, "no error bars: two columns have common rows in one fold only")
    folds = problem.reduced(folds)
    parts = [_LeftOut(problem, folds, fold) for fold in filled]
    values = np.stack([part.values for part in parts])
    number = len(parts)
    factor = jackknife_factor(folds, number)

    standard = jackknife_errors(values, factor)
    reported = jackknife_errors(np.stack([problem.operator.reported_values(v) for v in values]), factor)
    held_out = _held_out(
        problem, [part for fold, part in zip(filled, parts, strict=True) if fold in folds.validation_folds]
    )
    fitted = problem.whole.values
    groups = _groups(fitted, standard, problem.nulls)
    single = _intervals(fitted.real, held_out, standard, number)
    means, beyond = _mean_by(groups, fitted.real), _mean_by(groups, held_out)
    joint = _intervals(means, beyond, jackknife_errors(np.stack([_mean_by(groups, v) for v in values]), factor), number)
    several = np.bincount(groups)[groups] > 1
    both = np.stack([single, joint])
    widest = np.column_stack([both[..., 0].min(axis=0), both[..., 1].max(axis=0)])
    intervals = np.where(several[:, None], widest, single)
    lower = np.ones(k) if finalist_gap is None else np.append(finalist_gap, np.ones(k))[:k]
    lower[: problem.nulls] = 1.0
    intervals = lowered(intervals, lower)
    resolution = problem.operator.resolution
    reliable = reliable_by(fitted.real, held_out, intervals, problem.nulls, resolution) & (lower * RELIABLE_RATIO > 1)
    angles = np.sqrt(factor * np.sum([part.angles(groups) ** 2 for part in parts], axis=0))
    return Errors(intervals, reported, held_out, groups, np.minimum(angles, 1.0), reliable)


def lowered(intervals: Array, factors: Array) -> Array:
    """Return intervals (k, 2) with the end nearest to 0 times factors (k,), except across 0."""
    found, nearest = intervals.copy(), np.abs(intervals).argmin(axis=1)
    found[np.arange(len(found)), nearest] *= np.where(np.sign(intervals).prod(axis=1) > 0, factors, 1.0)
    return found


def jackknife_factor(folds: Folds, number: int) -> float:
    """Return the factor from a sum of squared deviations of `number` solutions to a jackknife variance."""
    # rows that coincide with landmarks are in no fold: the variance of other rows is increased for them
    share = 1.0 - (folds.weight[-1] / folds.weight.sum() if folds.landmarks else 0.0)
    return float((number - 1) / number / max(share, 1e-3))


def jackknife_errors(samples: NDArray[Any], factor: float) -> Array:
    """Return jackknife standard errors from samples (S, ...), each without one fold."""
    deviations = np.abs(samples - samples.mean(axis=0))
    return np.asarray(np.sqrt(factor) * np.hypot.reduce(deviations, axis=0))  # squares of variances would overflow


def jackknife_ends(samples: Array, factor: float) -> Array:
    """Return 95 % intervals (..., 2) around samples[0], by the jackknife of samples[1:]; NaN without two."""
    number = len(samples) - 1
    if number < 2:
        return np.full((*samples.shape[1:], 2), np.nan)
    half = _half_width(number) * jackknife_errors(samples[1:], factor)
    return np.stack([samples[0] - half, samples[0] + half], axis=-1)


def _half_width(number: int) -> float:
    """Return the half width of an interval from `number` folds, in standard errors."""
    return WIDENED * float(scipy.special.stdtrit(number - 1, 0.5 + LEVEL / 2))


def held_out_by_folds(problem: GalerkinProblem, folds: Folds) -> Array:
    """Return the validation values of a problem from the folds of its moments."""
    folds = problem.reduced(folds)
    return _held_out(problem, [_LeftOut(problem, folds, fold) for fold in folds.validation_folds])


def pattern_ends(problem: GalerkinProblem, folds: Folds, groups: NDArray[np.int64], landmarks: Array) -> Array:
    """Return the ends (k, d, 2) of 95 % jackknife intervals of the patterns of principal components.

    Components without a fold are rotated to those of all rows within their `groups` (k,). The last r functions are
    products with orthonormal `landmarks` (r, d), which span the rows.
    """
    q = slice(-len(landmarks), None)

    def turned(part: _LeftOut) -> Any:
        members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        return scipy.linalg.block_diag(*(_turn(part.overlap[np.ix_(some, some)], 0) for some in members))

    def pattern(means: Sums, functions: Any) -> Array:
        """Return Cov(q x, f), (r, k), of functions f of variance 1."""
        first = means["first"]
        return np.asarray((means["gram"][q] - np.outer(first[q], first)) @ functions)

    found = [pattern(problem.means, problem.whole.left)]
    for fold in folds.filled:
        part = _LeftOut(problem, folds, fold)
        found.append(pattern(problem.without(folds, fold)[0], part.left @ turned(part)))
    factor, samples = jackknife_factor(folds, len(folds.filled)), np.stack(found)
    return np.stack([jackknife_ends(samples[:, :, i] @ landmarks, factor) for i in range(samples.shape[2])])


class _LeftOut:
    """Solution without one fold, rotated to that of all rows, with its sums on that fold."""

    def __init__(self, problem: GalerkinProblem, folds: Folds, fold: int):
        self.weight, whole = float(folds.weight[fold]), problem.whole
        total, (means, seen) = float(folds.weight.sum()), problem.without(folds, fold)
        found = problem.solve_part(means, problem.rows * (total - self.weight) / total)
        left, right = problem.against_whole
        turned = self.overlap = found.right.conj().T @ right
        if problem.kind.two_sided:
            turned = found.left.conj().T @ left + self.overlap
        self.turn = _turn(turned, problem.nulls)
        if np.iscomplexobj(whole.values):
            order = np.abs(found.values[:, None] - whole.values).argmin(axis=0)
            self.values: Any = found.values[order]
        else:
            self.values = np.einsum("ji,j,ji->i", self.turn.conj(), found.values, self.turn).real
        self.left = found.left
        self.sums = self._sums(problem, means, seen, found)

    def _sums(self, problem: GalerkinProblem, means: Sums, seen: Sums, found: Solution) -> list[Any]:
        """Return the form and Gram matrices of rotated functions, about the fitted means."""
        left, first = found.left @ self.turn, problem.right.role.named("first")
        right = left if found.right is found.left else found.right @ self.turn
        norms = None if problem.norms is None else (self.weight * problem.norms[0], self.weight * problem.norms[1])
        sums = galerkin_system(problem.operator, seen, norms, about_means=False).between(left, right)
        if not problem.operator.center:
            return list(sums)
        a, b = ((u.T @ means[name], u.T @ seen[name]) for u, name in ((left, "first"), (right, first)))
        parts = [s - self._shared(*sides) for s, sides in zip(sums, ((a, b), (a, a), (b, b)), strict=True)]
        return parts if norms is None else [parts[0], *sums[1:]]

    def _shared(self, one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
        """Return the correction of sums over the fold for the fitted means of functions of two sides."""
        (mean, total), (other_mean, other_total) = one, other
        return np.outer(mean, other_total) + np.outer(total, other_mean) - self.weight * np.outer(mean, other_mean)

    def angles(self, groups: NDArray[np.int64]) -> Array:
        """Return the sine of the largest angle between each group and this solution."""
        result = np.zeros(len(groups))
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            u = self.turn[:, members]
            cosine = np.linalg.svd(u.conj().T @ self.overlap[:, members], compute_uv=False).min()
            result[members] = np.sqrt(max(0.0, 1 - min(1.0, float(cosine)) ** 2))
        return result


def _turn(overlap: Any, nulls: int) -> Any:
    """Return the rotation (k', k) of a part's functions to those of all rows, null functions apart."""
    turn = np.zeros(overlap.shape, overlap.dtype)
    null = min(nulls, *overlap.shape)
    for some in (slice(0, null), slice(null, None)):
        u, _, vt = np.linalg.svd(overlap[some, some], full_matrices=False)
        turn[some, some] = u @ vt
    return turn


def _held_out(problem: GalerkinProblem, parts: list[_LeftOut]) -> Array:
    """Return the validation values, from the total of sums over left-out folds."""
    every = np.eye(parts[0].turn.shape[1])
    if np.iscomplexobj(parts[0].values):
        return np.full(len(every), np.nan)
    weight = sum(part.weight for part in parts)
    form, gram, right_gram = (sum(sums) / weight for sums in zip(*(part.sums for part in parts), strict=True))
    return np.asarray(problem.kind.ritz(every, every, GalerkinSystem(form, gram, right_gram)).real)


def _intervals(fitted: Array, held_out: Array, standard: Array, number: int) -> Array:
    """Return the ends (k, 2) of intervals.

    The scale is logarithmic if both values have the same sign and exceed their errors, and otherwise linear; ends have
    the sign of the values if these agree.
    """
    t = _half_width(number)
    other = np.where(np.isnan(held_out), fitted, held_out)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = other / fitted
        middle = np.sqrt(fitted * other)
        factor = np.exp(t * standard / np.abs(fitted) + 0.5 * np.abs(np.log(ratio)))
        by_ratio = np.sign(fitted)[:, None] * np.column_stack([middle / factor, middle * factor])
    plain = np.column_stack([np.minimum(fitted, other) - t * standard, np.maximum(fitted, other) + t * standard])
    above, below = np.minimum(fitted, other) > 0, np.maximum(fitted, other) < 0
    plain[above], plain[below] = np.maximum(plain[above], 0), np.minimum(plain[below], 0)
    usable = (above | below) & np.isfinite(by_ratio).all(axis=1) & (t * standard < np.abs(fitted))
    ends = np.where(usable[:, None], by_ratio, plain)
    return np.sort(ends, axis=1)


def _groups(values: Any, standard: Array, nulls: int = 0) -> NDArray[np.int64]:
    """Return groups of consecutive values that differ by at most two standard errors, null values apart."""
    gaps = np.abs(np.diff(values))
    apart = gaps > 2 * np.hypot(standard[1:], standard[:-1])
    apart[max(0, nulls - 1) : nulls] = True
    return np.concatenate([[0], np.cumsum(apart)]).astype(np.int64)


def _mean_by(groups: NDArray[np.int64], values: Any) -> Any:
    sums = np.bincount(groups, values.real) / np.bincount(groups)
    return sums[groups]


def reliable_by(
    fitted: Array, held_out: Array, intervals: Array, nulls: int, resolution: float = 0.0
) -> NDArray[np.bool_]:
    """Return which values are reliable, (k,); the first `nulls` are always.

    Reliable values have narrow intervals, and validation values that differ by less than a tenth or are NaN.
    Differences below a thousandth of the last value, or below the `resolution`, do not count.
    """
    size = np.abs(fitted)
    floor = NEGLIGIBLE * size.max(initial=0.0) + resolution + 1e-300
    other = np.abs(np.where(np.isnan(held_out), fitted, held_out))
    ratio = (np.maximum(size, other) + floor) / (np.minimum(size, other) + floor)
    narrow = (intervals[:, 1] - intervals[:, 0]) / (size + floor) < RELIABLE_WIDTH
    return np.asarray((ratio < RELIABLE_RATIO) & narrow | (np.arange(len(size)) < nulls))


def beyond_constants(reliable: NDArray[np.bool_], constants: int) -> tuple[int, int]:
    """Return the numbers of reliable values and of all values beyond the constants."""
    others = reliable[constants:]
    return int(np.count_nonzero(others)), len(others)


def reliable_words(reliable: NDArray[np.bool_], constants: int, value: str) -> str:
    """Return a phrase such as "of 10 eigenvalues beyond the constant, 7 are reliable"."""
    found, count = beyond_constants(reliable, constants)
    beyond = f" beyond the constant{'s' if constants > 1 else ''}" if constants else ""
    if count > 1:
        which = {0: "none is", count: "all are", 1: "1 is"}.get(found, f"{found} are")
        return f"of {count} {value}s{beyond}, {which} reliable"
    one = f"{value}{beyond}"
    return f"the {one} is {'' if found else 'not '}reliable" if count else f"there is no {one}"


def _unknown(k: int, reason: str) -> Errors:
    none = np.full(k, np.nan)
    return Errors(np.full((k, 2), np.nan), none, none, np.arange(k), none, np.zeros(k, bool), reason)
