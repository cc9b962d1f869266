"""Memberships of metastable sets by PCCA+, rates and passage times.

The memberships (n, m), with rows that sum to 1, are chi = F A for functions F = (1, f_1, ..., f_{m-1}). The initial A
is the inner simplex, whose vertices are outlying rows; A then maximizes crispness subject to no negative membership of
these rows (PCCA+, Röblitz and Weber 2013).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from daskspectral.moments.intervals import jackknife_ends
from daskspectral.moments.lags import with_constant

Array = NDArray[np.floating[Any]]
OPTIMIZER: Any = {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
NEGATIVE = 1e-9  # magnitude of a negative membership above rounding
MOST_SETS_BY_HULL = 5  # hulls in more dimensions have too many vertices
MOST_MOVED = 0.1  # of a transition, for any error
PRIOR, DRAWS = 0.5, 1000  # added jumps (Jeffreys prior), and number of samples of rates
UNKNOWN = 0.5  # half width of the interval of a transition above which it is undetermined


@dataclass(frozen=True, eq=False, repr=False)
class SetStatistics:
    """Statistics of m sets with memberships chi = (1, f) A; attributes as in `MetastableSets`.

    `weights` is A (m, m), and `functions` are the indices (m - 1,) of the functions f.
    """

    functions: NDArray[np.int64]
    weights: Array
    probabilities: Array
    transitions: Array
    rates: Array
    rate_errors: Array
    passage_times: Array
    passage_time_errors: Array
    gap: float
    suggested: int
    negative: float
    moved: float = 0.0
    supported: int = 0
    lag: float = 1.0

    @property
    def count(self) -> int:
        return len(self.weights)


def metastable_sets(
    values: Array,
    others: Array,
    functions: NDArray[np.int64],
    propagators: Array,
    timescales: Array,
    lag: float,
    factor: float = 0.0,
) -> SetStatistics:
    """Return the metastable sets of m - 1 `functions` with `values` (n, m - 1) at rows.

    `others` measure the share of negative memberships. `propagators` (S, m - 1, m - 1) are the operator in the span of
    the functions, over all rows and without each fold; `factor` is that of the jackknife variance, and `timescales` are
    those of all processes. Raises ValueError if the propagator has no generator.
    """
    m, propagator = len(functions) + 1, propagators[0]
    weights = crisp(np.column_stack([np.ones(len(values)), values]))
    found = np.linalg.eigvals(propagator)
    if (np.abs(found.imag) > 1e-9).any() or (found.real <= 0).any():
        raise ValueError(
            f"rates of {m} sets require positive eigenvalues, got {np.round(found, 3)}. Use fewer, or a shorter lag"
        )
    inverse = np.linalg.inv(weights)
    generators = [as_rates(inverse @ (_log(matrix) / lag) @ weights) for matrix in with_constant(propagators)]
    rates, times = generators[0], [passage_times(matrix) for matrix in generators]
    with np.errstate(divide="ignore", invalid="ignore"):
        time_ends = np.exp(jackknife_ends(np.log(times), factor))
    time_ends[np.diag_indices(m)] = 0
    samples = (inverse @ with_constant(propagators) @ weights).real
    transitions = as_probabilities(samples[0])
    moved = np.abs(transitions - samples[0])
    errors = np.nan_to_num(np.diff(jackknife_ends(samples, factor), axis=-1)[..., 0] / 2)
    unsound = (moved > np.minimum(errors, MOST_MOVED) + NEGATIVE) | (errors > UNKNOWN)
    ratios = gaps(np.maximum(timescales, lag))
    memberships = np.column_stack([np.ones(len(others)), others]) @ weights
    return SetStatistics(
        functions,
        weights,
        as_probabilities(weights[:1])[0],
        transitions,
        rates,
        _of_sign(jackknife_ends(np.stack(generators), factor)),
        times[0],
        time_ends,
        float(ratios[m - 2]) if m - 2 < len(ratios) else np.nan,
        int(np.argmax(ratios)) + 2 if len(ratios) else m,
        float((memberships < -NEGATIVE).any(axis=1).mean()),
        float(moved.max()),
        m - 1 if unsound.any() else m,
        lag,
    )


def as_probabilities(rows: Array) -> Array:
    """Return the projection of rows (n, m) on the probability simplex (Duchi and others 2008)."""
    rows = np.asarray(rows, dtype=float)
    if rows.min(initial=0.0) >= 0 and np.abs(rows.sum(axis=1) - 1).max(initial=0.0) < NEGATIVE:
        return rows
    ordered = -np.sort(-rows, axis=1)
    beyond = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = np.maximum((ordered > beyond).sum(axis=1), 1) - 1
    return np.asarray(np.maximum(rows - beyond[np.arange(len(rows)), last][:, None], 0))


def as_rates(found: Array) -> Array:
    """Return the generator (m, m) with negative rates set to 0."""
    jumps = np.maximum(found - np.diag(np.diag(found)), 0)
    valid = (jumps == found)[~np.eye(len(found), dtype=bool)].all()
    return found if valid else np.asarray(jumps - np.diag(jumps.sum(axis=1)))


def _log(propagator: Array) -> Array:
    """Return the real logarithm of a matrix; NaN unless all its eigenvalues are positive."""
    if (np.linalg.eigvals(propagator).real <= 0).any():
        return np.full(propagator.shape, np.nan)
    return np.asarray(scipy.linalg.logm(propagator).real)


def _of_sign(ends: Array) -> Array:
    """Return intervals (m, m, 2) of rates, clipped to the signs of rates."""
    diagonal = np.eye(len(ends), dtype=bool)[..., None]
    return np.where(diagonal, np.minimum(ends, 0), np.maximum(ends, 0))


def rate_ends(jumps: Array, rows: Array) -> Array:
    """Return 95 % intervals (m, m, 2) of rates, for Poisson numbers of jumps in `rows` (m,)."""
    counts = jumps + np.diag(jumps.sum(axis=1))
    ends = scipy.stats.chi2.ppf([0.025, 0.975], 2 * np.stack([counts, counts + 1], axis=-1)) / 2
    found = np.nan_to_num(ends) / rows[:, None, None]
    i = np.arange(len(rows))
    found[i, i] = -found[i, i, ::-1]
    return np.asarray(found)


def passage_time_ends(jumps: Array, rows: Array) -> Array:
    """Return 95 % intervals (m, m, 2) of `passage_times`, by sampling rates."""
    m, found = len(rows), np.zeros((*jumps.shape, 2))
    rates = np.random.default_rng(0).gamma(jumps + PRIOR, size=(DRAWS, m, m)) / rows[:, None]
    rates[:, range(m), range(m)] = 0
    rates[:, range(m), range(m)] = -rates.sum(axis=2)
    for target in range(m):
        others = np.delete(np.arange(m), target)
        times = np.linalg.solve(rates[:, others[:, None], others], -np.ones((DRAWS, m - 1, 1)))[..., 0]
        found[others, target] = np.quantile(times, [0.025, 0.975], axis=0).T
    return found


def gaps(timescales: Array) -> Array:
    """Return the ratios t_i / t_{i+1} of timescales, the first for two sets; 1 if t_i is infinite."""
    slow, fast = timescales[:-1], timescales[1:]
    return np.divide(slow, fast, out=np.ones_like(slow), where=np.isfinite(fast))


def crisp(functions: Array) -> Array:
    """Return the feasible A (m, m) that maximizes sum_ij A_ij² / A_0j, starting from the inner simplex.

    A is feasible if the memberships F A of the rows F (n, m), whose first column is 1, are nonnegative and sum to 1.
    """
    m = functions.shape[1]
    start = np.linalg.inv(functions[vertices(functions)])
    if 2 < m <= MOST_SETS_BY_HULL:  # the least membership is at a vertex
        with suppress(QhullError):
            functions = functions[np.sort(ConvexHull(functions[:, 1:]).vertices)]

    def softness(inner: Any) -> float:
        weights = feasible(inner.reshape(m - 1, m - 1), functions)
        return -float(np.sum(weights**2 / weights[0]))

    best: Any = scipy.optimize.minimize(softness, start[1:, 1:].ravel(), method="Nelder-Mead", options=OPTIMIZER)
    return feasible(best.x.reshape(m - 1, m - 1), functions)


def vertices(functions: Array) -> NDArray[np.int64]:
    """Return the indices (m,) of vertex rows of F (n, m) by the inner simplex algorithm.

    Raises ValueError if all rows lie in fewer dimensions.
    """
    found = [int(np.argmax(np.einsum("ni,ni->n", functions, functions)))]
    rest = functions - functions[found[0]]
    for _ in range(functions.shape[1] - 1):
        sizes = np.einsum("ni,ni->n", rest, rest)
        found.append(int(np.argmax(sizes)))
        if sizes[found[-1]] <= 1e-20 * max(1.0, float(np.abs(functions).max()) ** 2):
            raise ValueError(
                f"the functions of {functions.shape[1]} sets are linearly dependent at these rows. Use fewer sets"
            )
        axis = rest[found[-1]] / np.sqrt(sizes[found[-1]])
        rest = rest - np.outer(rest @ axis, axis)
    return np.array(found)


def feasible(inner: Array, functions: Array) -> Array:
    """Return A (m, m), completed so that memberships sum to 1 and the least of each set is 0.

    `inner` is A without its first row and column.
    """
    lower = np.hstack([-inner.sum(axis=1, keepdims=True), inner])
    first = -(functions[:, 1:] @ lower).min(axis=0)
    return np.asarray(np.vstack([first, lower]) / first.sum())


def passage_times(rates: Array) -> Array:
    """Return the mean first passage times (m, m) from set i to set j of jumps with rates (m, m).

    Infinite if jumps from i can reach a set from which j is not reached.
    """
    m = len(rates)
    found = np.zeros((m, m))
    for target in range(m):
        jumps = (rates > 0) | np.eye(m, dtype=bool)
        jumps[target] = False
        jumps[target, target] = True
        reached = np.linalg.matrix_power(jumps.astype(float), m) > 0
        sure = ~(reached & ~reached[:, target]).any(axis=1)
        others = np.setdiff1d(np.flatnonzero(sure), [target])
        found[:, target] = np.where(sure, 0, np.inf)
        times = np.linalg.solve(rates[np.ix_(others, others)], -np.ones(len(others)))
        found[others, target] = np.maximum(times, 0)
    return found
