"""Significance of the leading components of a field: rule N, North's rule, and errors of patterns.

Rule N (Preisendorfer 1988) compares variances with those of independent AR(1) columns with the sums of squares and the
lag-one autocorrelations of the columns, after the preceding components are removed; the threshold is computed from the
edge of the spectrum of such a matrix (`solve.red_noise`). Spatially correlated noise has closely spaced components
above this threshold, so modes count up to the last that is not mixed with the next.

North's rule (1982) compares the distance of two variances with the error of the covariance of both scores,
v = λ_i λ_j / n (1 + a_i a_j) / (1 - a_i a_j) for autocorrelations a, or its error between folds if that is larger:
r = |λ_i - λ_j| / (2 √v). r determines the expected rotation within the pair, and so the error of each pattern, the root
of 1 minus its squared correlation with the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from daskspectral.moments.autocovariance import directions_of
from daskspectral.moments.counting import effective_count
from daskspectral.moments.folds import Folds
from daskspectral.moments.intervals import LEVEL, Errors
from daskspectral.moments.moments import Moments
from daskspectral.moments.pairwise import PAIR_SUMS, PRESENT, SQUARES, SUMS
from daskspectral.moments.patterns import patterns_of
from daskspectral.solve.red_noise import lag_one, threshold

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]

LEAST_ROWS = 30  # required for autocorrelations
SEPARATE, MIXED = 2.5, 1.5  # r above which modes are separate, and below which they are mixed
KNOWN, CERTAIN = 0.35, 0.9  # maximum error of a known pattern; correlation below which it is uncertain
ROUNDING = 1e-9
NEAREST = 6  # neighboring modes that may mix with a mode
MOST_LAG_ONE = 0.98
ROTATED = np.array(  # r, and the expected share of a pattern along that of the other mode
    [
        [0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8],
        [0.50, 0.40, 0.302, 0.208, 0.130, 0.074, 0.042, 0.018, 0.011, 0.007, 0.004],
    ]
)


@dataclass(frozen=True, eq=False, repr=False)
class Significance:
    """Significance of the leading components of a field relative to red noise and to each other.

    Attributes
    ----------
    explained : ndarray of shape (k,)
        Shares of the total variance.
    thresholds : ndarray of shape (k,)
        Shares that a component of red noise exceeds with probability 1/20, after the preceding components are
        removed. An upper bound for components far above noise; NaN after the first that is not above it.
    count : int
        Number of leading components above red noise, up to the last that is not mixed with the next.
    lag_one : ndarray of shape (k,)
        Lag-one autocorrelations of the scores.
    effective_rows : ndarray of shape (k,)
        Number of independent rows that determine the variances equally well.
    separations : ndarray of shape (k,)
        Distance to the next variance over twice its error (North's rule): 2.5 or more for separate modes, below 1.5
        for mixed ones.
    groups : ndarray of int of shape (k,)
        Numbers of the groups of modes that are not separate.
    pattern_errors : ndarray of shape (k,)
        Root of 1 minus the expected squared correlation of each pattern with the true one, or of its group's span.
    known : ndarray of bool of shape (k,)
        True if a component is above noise and its pattern, or that of its group, is known.
    rows : float
        Number of rows.
    """

    explained: Array
    thresholds: Array
    count: int
    lag_one: Array
    effective_rows: Array
    separations: Array
    groups: NDArray[np.int64]
    pattern_errors: Array
    known: NDArray[np.bool_]
    rows: float

    def __repr__(self) -> str:
        lines = [self.verdict, " mode   share  red noise  separation  pattern known to  effective rows"]
        columns = (self.explained, self.thresholds, self.separations, self.pattern_correlations, self.effective_rows)
        for i, (share, limit, apart, correlation, rows) in enumerate(zip(*columns, strict=True)):
            known = f"{correlation:.2f}" if self.known[i] else "-"
            lines.append(f"{i + 1:5}{share:8.1%}{limit:11.1%}{apart:12.1f}{known:>18}{rows:16.0f}")
        return "\n".join(lines)

    @property
    def pattern_correlations(self) -> Array:
        """Expected correlations (k,) of patterns with the true ones."""
        return np.sqrt(1 - self.pattern_errors**2)

    @property
    def verdict(self) -> str:
        """Summary in one sentence; modes are numbered from 1."""
        k = len(self.explained)
        some = int(self.effective_rows[: max(1, self.count)].min())
        rows = f"{self.rows:.0f} rows count as {some}"
        if not self.count:
            return f"none of {k} modes is above red noise of independent columns; {rows}"
        parts = [f"{self.count} of {k} modes above red noise", self._separate(), self._patterns(), rows]
        return "; ".join(part for part in parts if part)

    def _separate(self) -> str:
        runs = [np.flatnonzero(self.groups == g) for g in np.unique(self.groups[: self.count])]
        single = [int(run[0]) + 1 for run in runs if len(run) == 1 and self.separations[run[0]] >= SEPARATE]
        words = [f"{_listed(single)} separate"] if single else []
        for run in runs:
            above, last = run[run < self.count], run[-1]
            name = f"{above[0] + 1}-{above[-1] + 1}" if len(above) > 1 else f"{above[0] + 1}"
            if len(above) < len(run) or self.separations[last] < SEPARATE:
                words.append(f"{name} mixed with {'noise' if len(above) < len(run) else 'further modes'}")
            elif len(run) > 1 and self.separations[run[:-1]].max() < MIXED:
                words.append(f"{name} mixed (read as a {'pair' if len(run) == 2 else 'group'})")
            elif len(run) > 1:
                words.append(f"{name} not separate")
        return ", ".join(words)

    def _patterns(self) -> str:
        if not self.known.any():
            return "no pattern known"
        known = np.flatnonzero(self.known)
        least = float(self.pattern_correlations[known].min())
        which = _listed([int(i) + 1 for i in known])
        words = f"pattern{'s' * (len(known) > 1)} {which} known to {least:.2f}".replace(" 0.", " .")
        return words if least >= CERTAIN else f"{words} (uncertain)"


def _listed(numbers: Sequence[int]) -> str:
    """Return a list in words, such as "1 and 2", or "1-3 and 5"."""
    places = np.asarray(numbers)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    parts = [part for run in runs for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def significance_of(moments: Moments, coefficients: Functions) -> Significance | None:
    """Return the significance of the components with these coefficients (p, k).

    None for components of a kernel and too few rows. With missing values, rows count by the mean share of pairs of
    columns that are present, and autocorrelations assume gaps at random: longer gaps raise them.
    """
    directions, found = directions_of(moments.basis), moments.autocovariance
    if found is None or directions is None or moments.count < LEAST_ROWS or not coefficients.size:
        return None
    present = _present(moments)
    n, patterns = effective_count(moments) * float(np.mean(present)), patterns_of(moments, coefficients)
    k, total = coefficients.shape[1], float(patterns.total.sum())
    if not found.weight or not total > 0 or not patterns.variances.all():
        return None
    system = _Scores.of(moments, directions, k + NEAREST)
    unit, own = power_of_two(total), moments.mean(SUMS)
    squares, parts = n * patterns.total / unit, np.abs(patterns.single) ** 2 * (patterns.variances[:, None] / unit)
    columns = found.columns - own * (2 * found.means - found.weight * own)
    lags = lag_one((n - 1) * (columns / unit) / found.weight / np.diag(present) ** 2, squares, n)
    above, thresholds = _above(n, lags, squares, n * parts, n * patterns.explained * (total / unit))
    r, effective = system.separations, system.effective
    m = len(system.values)
    after = np.array([r[i, i + 1] if i + 1 < m else np.inf for i in range(k)])
    last = np.flatnonzero(after[:above] >= MIXED)  # components of spatially correlated noise are above this threshold
    count = 1 + int(last[-1] if len(last) else np.argmax(after[:above])) if above else 0
    groups = np.concatenate([[0], np.cumsum(after[:-1] >= SEPARATE)]).astype(np.int64)
    errors = np.array([system.pattern_error(i, np.flatnonzero(groups == groups[i])) for i in range(k)])
    known = errors < KNOWN
    for group in np.unique(groups):
        members = groups == group
        known[members] = known[members].all() and after[np.flatnonzero(members)[-1]] >= SEPARATE
    return Significance(
        explained=patterns.explained,
        thresholds=thresholds / (n * (total / unit)),
        count=count,
        lag_one=system.lags[:k],
        effective_rows=effective[:k],
        separations=after,
        groups=groups,
        pattern_errors=np.minimum(errors, 1.0),
        known=known & (np.arange(k) < count),
        rows=effective_count(moments),
    )


def _present(moments: Moments) -> Array:
    """Return the shares of rows (d, d) in which pairs of columns are present, or (1, 1) without missing values."""
    return moments.arrays[PRESENT] / moments.weight if moments.pairs is not None else np.ones((1, 1))


def power_of_two(value: float) -> float:
    """Return the power of 2 nearest to a positive number; division by it is exact."""
    return float(2.0 ** np.clip(np.rint(np.log2(value)), -1000, 1000)) if value > 0 else 1.0


def _above(n: float, lags: Array, squares: Array, taken: Array, values: Array) -> tuple[int, Array]:
    """Return the number of leading sums of squares above red noise, and the thresholds (k,).

    After the removal of leading components the noise, and with it the threshold, is lower: a value above an earlier
    threshold is above the later one.
    """
    thresholds, count = np.full(len(values), np.nan), 0
    while count < len(values):
        left = np.maximum(squares - taken[:count].sum(axis=0), 0)
        limit = threshold(n, lags, left, count)
        above = int(np.argmin(np.append(values[count:] > limit, False)))
        thresholds[count : count + above + 1] = limit
        if not above:
            break
        count += above
    return count, thresholds


@dataclass(frozen=True, eq=False)
class _Scores:
    """Leading variances (m,), autocorrelations of the scores, and errors v (m, m).

    `rest` is the sum and `squares` the sum of squares of the variances of further components.
    """

    values: Array
    lags: Array
    errors: Array
    rows: float
    rest: float
    squares: float

    @classmethod
    def of(cls, moments: Moments, directions: Array, count: int) -> _Scores:
        r, found = len(directions), moments.autocovariance
        assert found is not None
        lengths, first = np.sqrt(np.einsum("rd,rd->r", directions, directions)), moments.mean("first")[-r:]

        def about_means(gram: Array, sums: Array, weight: float) -> Array:
            """Return the sums of products of orthonormal coordinates about the means."""
            crossed = np.outer(sums, first)
            found = gram - crossed - crossed.T + weight * np.outer(first, first)
            return np.asarray(found / np.outer(lengths, lengths))

        covariance = about_means(moments.mean("gram")[-r:, -r:], first, 1.0)
        m = min(count, r)
        unit = power_of_two(float(np.trace(covariance)))  # prevents overflow and underflow of products of variances
        covariance /= unit
        values, vectors = scipy.linalg.eigh(covariance, subset_by_index=(r - m, r - 1))
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        values, vectors = values[values > 1e-12 * values.max()], vectors[:, values > 1e-12 * values.max()]
        present, pairs = _present(moments), moments.pairs
        m, n = len(values), effective_count(moments) * float(np.mean(present))
        lagged = about_means(found.products, directions @ found.means, found.weight)
        if pairs is not None:  # missing values are at the means
            there = (directions / lengths[:, None]) ** 2 @ np.diag(present)
            lagged = lagged / np.outer(there, there)
            means = {name: moments.arrays[name] / moments.weight for name in (PRESENT, PAIR_SUMS)}
        scores = np.einsum("ri,ri->i", vectors, lagged @ vectors) / unit
        lags = np.clip(lag_one((n - 1) * scores / found.weight, n * values, n), 0, MOST_LAG_ONE)
        both = np.outer(lags, lags)
        errors = np.outer(values, values) / n * (1 + both) / (1 - both)
        folds = moments.folds
        if folds is not None and len(folds.filled) > 1:
            share, spread = folds.weight[folds.filled] / folds.weight.sum(), np.zeros((m, m))
            for fold, part in zip(folds.filled, share, strict=True):
                sums, weight = folds.of(fold), float(folds.weight[fold])
                sums = sums if pairs is None else pairs.of_fold(sums, means, present, weight)
                own = (
                    vectors.T
                    @ about_means(sums["gram"][-r:, -r:], sums["first"][-r:], weight)
                    @ vectors
                    / (weight * unit)
                )
                spread += part**2 * (own - np.diag(values)) ** 2
            errors = np.maximum(errors, spread * len(share) / (len(share) - 1))
        whole = float(np.sum(moments.mean(SQUARES) - moments.mean(SUMS) ** 2)) / unit
        inside = float(np.trace(covariance))
        squares = max(float(np.sum(covariance**2) - np.sum(values**2)), 0.0)
        squares += max(whole - inside, 0.0) * float(values[-1]) / 2  # for components outside the span
        return cls(values, lags, errors, n, max(whole - float(values.sum()), 0.0), squares)

    @property
    def effective(self) -> Array:
        """Effective numbers of independent rows for the variances, (m,)."""
        return np.asarray(self.rows * (1 - self.lags**2) / (1 + self.lags**2))

    @property
    def separations(self) -> Array:
        """Distances of variances over twice the errors of the covariances of their scores, (m, m)."""
        distance = np.abs(self.values[:, None] - self.values)
        return np.asarray(distance / (2 * np.sqrt(self.errors)))

    def pattern_error(self, i: int, group: NDArray[np.intp]) -> float:
        """Return the expected sine of the angle between pattern i and its true group."""
        distance = np.abs(self.values - self.values[i])
        others = np.setdiff1d(np.argsort(distance, kind="stable"), [i], assume_unique=True)
        near, far = (np.setdiff1d(some, group) for some in (others[:NEAREST], others[NEAREST:]))
        square = float(_rotated(self.separations[i, near]).sum())
        rows = self.effective[i]
        square += float(np.sum(self.values[i] * self.values[far] / (rows * distance[far] ** 2)))
        if self.rest > ROUNDING * float(self.values.sum()):
            mean = min(self.squares / self.rest, float(self.values[-1]))
            gap = float(self.values[i]) - mean
            if gap <= ROUNDING * mean:
                return 1.0
            square += float(self.values[i]) * self.rest / (rows * gap**2)
        return float(np.sqrt(square))


def _rotated(r: Array) -> Array:
    """Return the expected share of a pattern along that of another mode, for separations r."""
    inside = np.interp(r, *ROTATED)
    return np.where(r > ROTATED[0, -1], 0.25 / np.maximum(r, 1) ** 2, inside)


def with_modes(errors: Errors, found: Significance, values: Functions, folds: Folds) -> Errors:
    """Return error bars of variances for the effective number of rows.

    Modes of known patterns are reliable.
    """
    values = values.real
    t = float(scipy.special.stdtrit(max(len(folds.filled) - 1, 1), 0.5 + LEVEL / 2))
    normal = float(scipy.special.ndtri(0.5 + LEVEL / 2))
    other = np.where(errors.held_out > 0, errors.held_out, values)
    half = np.maximum(t * errors.standard / values, normal * np.sqrt(2 / found.effective_rows))
    half = half + np.abs(np.log(other / values)) / 2
    middle = np.sqrt(values) * np.sqrt(other)
    ends = np.column_stack([middle * np.exp(-half), middle * np.exp(half)])
    return Errors(ends, errors.standard, errors.held_out, found.groups, errors.angles, found.known, errors.reason)
