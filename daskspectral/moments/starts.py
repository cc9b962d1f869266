"""Test whether trajectories start in equilibrium, from the sums of a transfer operator at both ends of its pairs.

Reversible and singular fits weigh rows as they were drawn. If these are not of equilibrium, so are their values, and
timescales come out too short or too long; eigenvalues of C00^-1 C01 do not depend on the weights. Two findings withdraw
the values: they differ from those eigenvalues, within the same functions, by half of an interval and by more than the
error of the difference allows; or the weights of equilibrium vary by half of their mean, and slow functions differ
between starts and ends.

Eigenvalues are withdrawn only if the weights of equilibrium vary by more than their mean and are not known: the
trajectories leave their starts and hardly return, so that few of them decide the slowest values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from daskspectral.moments.intervals import jackknife_errors
from daskspectral.moments.lags import LagMatrices, Matrices, Reduced, constant_of
from daskspectral.moments.moments import Moments

Array = NDArray[np.floating[Any]]

SLOWEST = 3  # functions that are compared
UNEVEN = 0.5  # of their mean, by which weights of equilibrium vary
CERTAIN, LIKELY = 4.0, 3.0  # errors from folds: chance exceeds them in 1 of 300 samples, and in 1 of 70
UNKNOWN = 0.7  # error of ln(1 + imbalance²), from which weights of equilibrium are not known
NEGLIGIBLE = 0.02  # of 1 - value: a bias of a timescale that does not matter


@dataclass(frozen=True)
class Starts:
    """How far rows are from equilibrium.

    Attributes
    ----------
    imbalance : float
        Standard deviation of the weights of equilibrium over their mean; 0 without a constant function.
    drift : float
        Largest mean of f(y) - f(x) or f(y)² - f(x)² of a slow function over its error.
    out_of_equilibrium : bool
        Whether the values are those of the process as it was started, or depend on few trajectories that return.
    """

    imbalance: float = 0.0
    drift: float = 0.0
    out_of_equilibrium: bool = False


def starts_of(moments: Moments, functions: Matrices) -> Starts:
    """Test the starts of pairs in the span of fitted left functions, coefficients (p, k).

    Of `Transfer` with right functions in the same basis, reversible, or right functions of "eigen". Without folds
    nothing is out of equilibrium.
    """
    starts, pairs, ends, constant, factor = both_ends(moments, functions)
    imbalance = _imbalance(starts[0], pairs[0], constant)
    solver = moments.operator.solver
    slow = [i for i in range(starts.shape[1]) if i != constant][:SLOWEST]
    if len(starts) < 3 or not slow:
        return Starts(imbalance)

    def errors(samples: Matrices) -> Array:
        return jackknife_errors(samples[1:], factor)

    moved = (starts - ends)[:, slow]
    moved = np.hstack([moved[:, range(len(slow)), slow], *([] if constant is None else [moved[..., constant]])])
    drift = float(np.max(np.abs(moved[0]) / (errors(moved) + 1e-12)))
    if not (solver.two_sided or solver.needs_symmetry):
        sizes = np.array([[math.log1p(_imbalance(*means, constant) ** 2)] for means in zip(starts, pairs, strict=True)])
        unknown = imbalance > 1 and drift > LIKELY and errors(sizes)[0] > UNKNOWN
        return Starts(imbalance, drift, bool(unknown))
    if not solver.two_sided:  # by what reversed time changes beyond noise
        turned = (pairs - pairs.swapaxes(1, 2)) / 2
        kept = np.abs(turned[0]) > CERTAIN * errors(turned)
        if constant is not None:
            kept[constant] = kept[:, constant] = True
        pairs = pairs - np.where(kept, 0, turned)
    at_lag = LagMatrices(np.ones(1, int), pairs[:, None], starts, ends, None, constant, "eigen", factor)
    eigen = at_lag.values[:, 0, slow]
    if solver.two_sided:
        fitted, other = replace(at_lag, kind="singular").values[:, 0, slow], np.abs(eigen)
    else:
        mean = (starts + ends) / 2
        fitted, other = replace(at_lag, grams=mean, kind="symmetric").values[:, 0, slow], eigen.real
    off = np.abs(fitted - other)[0]
    half = float(scipy.special.stdtrit(len(starts) - 2, 0.975)) * errors(fitted) / 2
    biased = (off > half) & (off > LIKELY * errors(fitted - other))  # eigenvalues of short runs have larger errors
    biased &= off > NEGLIGIBLE * (1 - np.minimum(np.abs(other[0]), 1))
    # singular values of a process that is not reversible differ from eigenvalues in equilibrium, too
    expected = solver.two_sided and drift <= LIKELY
    uneven = imbalance > UNEVEN and drift > CERTAIN
    return Starts(imbalance, drift, uneven or bool(biased.any() and not expected))


def both_ends(moments: Moments, functions: Matrices) -> tuple[Matrices, Matrices, Matrices, int | None, float]:
    """Inner products (S, k, k) of starts, of starts and ends, of ends; the number of the constant; the factor.

    Of centered functions the constant comes first.
    """
    operator: Any = moments.operator
    reduced = Reduced(moments)
    form, gram = reduced("form", functions, functions), reduced("gram", functions, functions)
    means = reduced("first", functions)
    starts: Matrices
    ends: Matrices
    if operator.reversible:
        ends = reduced("end_gram", functions, functions)
        starts, constant = 2 * gram - ends, constant_of(means[0], gram[0])
        followed = reduced("followed", functions, functions) / reduced.share("tested")[:, None, None]
        turned = (followed - followed.swapaxes(1, 2)) / 2
        if constant is not None:  # known of all pairs
            turned[:, constant] = (ends - starts)[:, constant] / 2
            turned[:, :, constant] = -turned[:, constant]
        pairs = gram - form + turned
    else:
        name = "right_gram" if operator.solver.two_sided else "future_gram"
        starts, pairs, ends = gram, form, reduced(name, functions, functions)
    if not operator.center:
        return starts, pairs, ends, constant_of(means[0], starts[0]), reduced.factor
    after = reduced("right_first", functions)
    sides = (starts, means, means), (pairs, means, after), (ends, after, after)
    starts, pairs, ends = (_after_constant(*side) for side in sides)
    return starts, pairs, ends, 0, reduced.factor


def _after_constant(products: Matrices, left: Matrices, right: Matrices) -> Matrices:
    """Inner products (S, 1 + k, 1 + k) with the constant first, from those of functions and their means (S, k)."""
    found = np.ones((len(products), *(1 + n for n in products.shape[1:])), products.dtype)
    found[:, 1:, 1:], found[:, 1:, 0], found[:, 0, 1:] = products, left, right
    return found


def _imbalance(starts: Matrices, pairs: Matrices, constant: int | None) -> float:
    if constant is None:
        return 0.0
    u = stationary(pairs, starts)
    square, mean = (u.conj() @ starts @ u).real * starts[constant, constant].real, abs(starts[constant] @ u)
    return math.sqrt(max(0.0, square / max(mean**2, 1e-300) - 1))


def stationary(pairs: Matrices, starts: Matrices) -> Matrices:
    """The function u (k,), up to a factor, with <u, K f> = <u, f> for all f: how rows weigh in equilibrium."""
    values, functions = scipy.linalg.eig(pairs.conj().T, starts)
    return np.asarray(functions[:, np.abs(values - 1).argmin()])
