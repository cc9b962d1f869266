"""Fitted functions of a transfer operator at several lags: residuals, timescales, the Chapman-Kolmogorov test.

The forms at all lags are restricted to the k fitted functions, over all rows and without each fold; results are
computed from k × k matrices, with errors by a jackknife.

Whether trajectories start in equilibrium is tested from the sums of a transfer operator at both ends of its pairs.
Reversible and singular fits weight rows by their sampling density. If this is not the equilibrium, their values are
biased, and timescales are too short or too long; eigenvalues of C00^-1 C01 do not depend on the weights. The values are
not reliable in two cases: they differ from these eigenvalues, in the same functions, by half of an interval and
significantly; or the equilibrium weights vary by half of their mean, and slow functions differ between starts and ends.

Eigenvalues are not reliable only if the equilibrium weights vary by more than their mean with a large error: the
trajectories leave their starts and hardly return, so that few of them determine the slowest values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from daskspectral.moments.intervals import jackknife_ends, jackknife_errors, jackknife_factor
from daskspectral.moments.moments import Moments
from daskspectral.operators.paired import LATER, of_trajectories
from daskspectral.solve import NonNormal

Array = NDArray[np.floating[Any]]
Matrices = NDArray[np.inexact[Any]]
CERTAIN = 2.5  # errors from folds from which a longer lag contradicts
OFF, SLOWER = 0.3, 0.08  # share of 1 - |value| from which it does, and for a slower decay
ROUNDING = 1e-6
UNSEEN = 1e-12  # of the mean square of functions, added to each
CONSTANT = 0.5  # least squared mean, relative to the mean square, of the function that represents the constant


@dataclass(frozen=True, eq=False, repr=False)
class ChapmanKolmogorov:
    """Chapman-Kolmogorov test: predictions from the first lag, and measurements, at each longer lag.

    Attributes
    ----------
    lags : ndarray of int of shape (L,)
        Lags beyond the first, in rows.
    predicted, measured : ndarray of shape (L, k, k)
        Matrices of the operator in the functions, or between metastable sets, entry i, j from i to j; the real parts
        of complex ones.
    predicted_errors, measured_errors : ndarray of shape (L, k, k, 2)
        Ends of 95 % intervals by a jackknife over folds.
    """

    lags: NDArray[np.int64]
    predicted: Array
    measured: Array
    predicted_errors: Array
    measured_errors: Array

    def __repr__(self) -> str:
        lines = [
            "Chapman-Kolmogorov test of the diagonal entries",
            "   lag entry  predicted (95 %)       measured (95 %)",
        ]
        for j, lag in enumerate(self.lags):
            for i in range(self.predicted.shape[1]):
                parts = (getattr(self, name)[j, i, i] for name in ("predicted", "measured"))
                ends = (getattr(self, f"{name}_errors")[j, i, i] for name in ("predicted", "measured"))
                words = [f"{v:.3f} ({low:.3f} to {high:.3f})" for v, (low, high) in zip(parts, ends, strict=True)]
                lines.append(f"{lag:6}{i:6}  " + "  ".join(f"{word:21}" for word in words).rstrip())
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class LagMatrices:
    """Operator between k fitted functions at several `lags` (L,), the first that of the fit.

    `forms` (S, L, k, k) are <f_i, K g_j>, `grams` and `right_grams` (S, k, k) inner products of the left and right
    functions, `futures` (S, k, k) those at the ends of pairs, if measured, and `later` (S, k, k) forms at `LATER` times
    a single lag, if measured: means over all rows and without each of S - 1 folds, with the `factor` of the jackknife
    variance.
    `constant` is the index of the function that represents the constant, or None. `kind` of values is "symmetric"
    (real), "singular", or "eigen".
    """

    lags: NDArray[Any]
    forms: Matrices
    grams: Matrices
    right_grams: Matrices
    futures: Matrices | None
    constant: int | None
    kind: str
    factor: float
    later: Matrices | None = None

    @classmethod
    def of(cls, moments: Moments, left: Matrices, right: Matrices | None = None) -> LagMatrices:
        """Return the matrices of left and right functions (p, k) and (q, k).

        The right functions are the left ones by default.
        """
        operator: Any = moments.operator
        two_sided = right is not None and "right_gram" in moments.arrays
        v = left if right is None else right
        reduced = Reduced(moments)
        names = ("form", *(f"form_{m}" for m in operator.multiples[1:]))
        forms = np.stack([reduced(name, left, v) for name in names], axis=1)
        grams = reduced("gram", left, left)
        right_grams = reduced("right_gram", v, v) if two_sided else grams
        futures = reduced("future_gram", left, left) if "future_gram" in moments.arrays else None
        if operator.reversible:
            forms = grams[:, None] - forms
        means = reduced("first", left)
        if operator.center:
            ends = reduced("right_first", v)
            forms, grams = forms - _outer(means, ends)[:, None], grams - _outer(means, means)
            right_grams = right_grams - _outer(ends, ends) if two_sided else grams
        constant = None if operator.center else constant_of(means[0], grams[0])
        kind = "singular" if two_sided else "symmetric" if operator.reversible else "eigen"
        lags = np.array(operator.lags)
        later = None
        if "later" in moments.arrays and (share := reduced.share("follows")).all():
            later = reduced("later", left, v) / share[:, None, None]
        return cls(lags, forms, grams, right_grams, futures, constant, kind, reduced.factor, later)

    @classmethod
    def of_generator(cls, moments: Moments, functions: Array) -> LagMatrices:
        """Return exp(t L) of a reversible generator L, t the timescale of the fastest function."""
        reduced = Reduced(moments)
        grams, means = reduced("gram", functions, functions), reduced("first", functions)
        rates = np.linalg.solve(grams, reduced("form", functions, functions))
        rates = -np.sign(np.trace(rates[0])) * rates  # the form is of L or -L
        time = 1 / np.abs(np.linalg.eigvals(rates[0])).max()
        forms = grams @ scipy.linalg.expm(time * rates)
        constant = constant_of(means[0], grams[0])
        lags = np.array([time])
        return cls(lags, forms[:, None], grams, grams, None, constant, "symmetric", reduced.factor)

    @property
    def processes(self) -> NDArray[np.intp]:
        """Indices of the nonconstant functions."""
        return np.delete(np.arange(self.grams.shape[1]), [] if self.constant is None else self.constant)

    @property
    def operator(self) -> Matrices:
        """Matrix (k, k) of the operator at the first lag in the functions, K f_j = Σ_i f_i operator_ij."""
        return np.asarray(np.linalg.solve(self.grams[0], self.forms[0, 0]))

    @cached_property
    def values(self) -> Matrices:
        """Values (S, L, k) at each lag of the modes that overlap most with each function."""
        parts = zip(self.forms, self.grams, self.right_grams, strict=True)
        return np.stack([[self._followed(form, gram, right) for form in forms] for forms, gram, right in parts])

    def timescales(self, known: Array | None = None) -> tuple[Array, Array]:
        """Return timescales -lag / ln |value|, (L, k'), and 95 % intervals, (L, k', 2).

        Infinite for values of modulus 1 or more. Intervals at the first lag contain those of the `known` ends (k, 2) of
        intervals of the values, and the value between one lag and two (`_rising`).
        """
        sizes = np.abs(self.values[..., self.processes])
        ends = np.maximum(jackknife_ends(sizes, self.factor), 0)
        if known is not None:
            known = np.abs(known[self.processes])
            ends[0] = np.column_stack([np.fmin(ends[0, :, 0], known.min(1)), np.fmax(ends[0, :, 1], known.max(1))])
        ends[0, :, 1] = np.fmax(ends[0, :, 1], self._rising[self.processes])
        return _implied(sizes[0], self.lags[:, None]), _implied(ends, self.lags[:, None, None])

    @property
    def _rising(self) -> Array:
        """Upper ends (k,) of <f, K_2t f> / <f, K_t f> of reversible processes, 0 unless it exceeds the value.

        An approximate eigenfunction decays faster at first. This ratio is less affected by the part of it that is not
        resolved, and is not above the value of the slowest process.
        """
        if self.kind != "symmetric" or len(self.lags) < 2 or len(self.grams) < 3:
            return np.zeros(self.grams.shape[1])
        matrices = self.grams, self.forms[:, 0], self.forms[:, 1]
        norms, once, twice = (np.diagonal(m, axis1=1, axis2=2) for m in matrices)
        ratios = np.divide(twice, once, out=np.zeros_like(once), where=once > 0)
        rises = ratios - once / norms
        sure = rises[0] > CERTAIN * jackknife_errors(rises[1:], self.factor)
        return np.where(sure, jackknife_ends(ratios, self.factor)[:, 1], 0.0)

    def residuals(self, values: Matrices) -> Array:
        """Return 95 % intervals (k, 2) of |K f - l f| for values l (k,).

        The square is <f, K_2t f> - 2 l <f, K_t f> + l² for reversible processes, and otherwise E |f(y) - l f(x)|², an
        upper bound that includes the noise (residual DMD: Colbrook, Li, Raut and Townsend 2023). Its ends are clipped
        at 0.
        """
        norms = np.diagonal(self.grams, axis1=-2, axis2=-1).real
        once = np.diagonal(self.forms[:, 0], axis1=-2, axis2=-1)
        after = self.forms[:, 1] if self.futures is None else self.futures
        twice = np.diagonal(after, axis1=-2, axis2=-1).real
        squares = (twice - 2 * (np.conj(values) * once).real) / norms + np.abs(values) ** 2
        return np.sqrt(np.maximum(jackknife_ends(squares, self.factor), 0))

    @property
    def contradicted(self) -> NDArray[np.bool_]:
        """Functions (k,) whose values at a longer lag contradict the prediction from the first.

        They differ significantly, and by a third of the decay of the modulus of the predicted value, or by a twelfth if
        they decay more slowly: the process is not Markovian in the rows, or in the functions.
        """
        found = np.zeros(self.grams.shape[1], bool)
        if len(self.grams) < 3:
            return found
        powers = (self.lags[1:] // self.lags[0]).tolist()
        longer = dict(zip(powers, np.moveaxis(self.forms[:, 1:], 1, 0), strict=True))
        if self.later is not None:
            longer[LATER] = self.later
        one = np.linalg.solve(self.grams, self.forms[:, 0])
        for power, forms in longer.items():
            matrices = np.linalg.matrix_power(one, power), np.linalg.solve(self.grams, forms)
            predicted, measured = (np.diagonal(m, axis1=1, axis2=2) for m in matrices)
            off = measured - predicted
            share = np.where((off[0] * predicted[0].conj()).real > 0, SLOWER, OFF)
            least = np.maximum(share * (1 - np.abs(predicted[0])), ROUNDING)
            found |= np.abs(off[0]) > np.maximum(CERTAIN * jackknife_errors(off[1:], self.factor), least)
        return found

    def propagators(self, functions: NDArray[np.intp]) -> Matrices:
        """Return the matrices (S, L, m, m) of the operator at each lag in some nonconstant functions."""
        constant = [] if self.constant is None else [self.constant]
        some = np.array([*constant, *functions])
        grams, forms = (matrices[..., some[:, None], some] for matrices in (self.grams[:, None], self.forms))
        beyond = slice(len(constant), None)
        return np.asarray(np.linalg.solve(grams, forms)[..., beyond, beyond])

    def chapman_kolmogorov(self, weights: Array | None = None, functions: Any = None) -> ChapmanKolmogorov:
        """Return the test for processes, or sets of memberships (1, `functions`) @ `weights`."""
        found = self.propagators(self.processes if functions is None else functions)
        if weights is not None:
            found = np.linalg.inv(weights) @ with_constant(found) @ weights
        powers = self.lags[1:] // self.lags[0]
        predicted = np.stack([np.linalg.matrix_power(found[:, 0], int(m)) for m in powers], axis=1).real
        measured = found[:, 1:].real
        bands = (jackknife_ends(matrices, self.factor) for matrices in (predicted, measured))
        return ChapmanKolmogorov(self.lags[1:], predicted[0], measured[0], *bands)

    def _followed(self, form: Matrices, gram: Matrices, right_gram: Matrices) -> Matrices:
        """Return the value of the mode that overlaps most with each function, each mode once."""
        modes: Any
        unseen = (
            UNSEEN * np.trace(gram).real / len(gram) * np.eye(len(gram))
        )  # functions may vanish if a fold is left out
        gram, right_gram = gram + unseen, right_gram + unseen
        if self.kind == "singular":
            c, z = np.linalg.cholesky(gram), np.linalg.cholesky(right_gram)
            u, values, _ = np.linalg.svd(np.linalg.solve(z, np.linalg.solve(c, form).conj().T).conj().T)
            modes = np.linalg.solve(c.conj().T, u)
        elif self.kind == "symmetric":
            values, modes = scipy.linalg.eigh((form + form.conj().T) / 2, gram)
        else:
            values, modes = scipy.linalg.eig(form, gram)
        norms = np.einsum("ij,ik,kj->j", modes.conj(), gram, modes).real * np.diag(gram).real[:, None]
        overlaps = np.abs(gram @ modes) ** 2 / norms
        return np.asarray(values[linear_sum_assignment(-overlaps)[1]])


def constant_of(means: Matrices, gram: Matrices) -> int | None:
    """Return the index of the constant, by means (k,) and inner products (k, k)."""
    shares = np.abs(means) ** 2 / np.diagonal(gram).real
    return int(shares.argmax()) if shares.max() > CONSTANT else None


class Reduced:
    """Moments between fitted functions: means over all rows, and without each nonempty fold."""

    def __init__(self, moments: Moments):
        folds = moments.folds
        self.arrays, self.parts = moments.arrays, {} if folds is None else folds.arrays
        self.filled = [] if folds is None else folds.filled
        left_out = np.zeros(0) if folds is None else folds.weight[self.filled]
        self.factor = jackknife_factor(folds, len(self.filled)) if folds is not None and self.filled else 0.0
        self.weights = moments.weight - np.concatenate([[0.0], left_out])

    def share(self, name: str) -> Array:
        """Return the mean of a scalar statistic over all rows and without each fold, (S,)."""
        parts = [self.parts[name][fold] for fold in self.filled]
        return np.asarray((self.arrays[name] - np.stack([0.0 * self.arrays[name], *parts]))[:, 0] / self.weights)

    def __call__(self, name: str, left: Matrices, right: Matrices | None = None) -> Matrices:
        """Return means of a form (p, q) between functions (p, k)* and (q, k), or of a functional (p,)."""

        def small(sums: Array) -> Matrices:
            return np.asarray(left.T @ sums if right is None else left.conj().T @ sums @ right)

        whole = small(self.arrays[name])
        found = np.stack([whole, *(whole - small(self.parts[name][fold]) for fold in self.filled)])
        return np.asarray(found / self.weights.reshape(-1, *[1] * whole.ndim))


def is_lagged(moments: Moments) -> bool:
    """Return whether these are moments of a transfer operator with eigenvalues and measured residuals."""
    return (
        of_trajectories(moments.operator)
        and "right_gram" not in moments.arrays
        and ("future_gram" in moments.arrays or "form_2" in moments.arrays)
    )


def resolved(residuals: Array, values: Matrices) -> NDArray[np.bool_]:
    """Return which values (k,) have a lower end of residuals within the gap to the nearest value."""
    gaps = np.abs(values[:, None] - values)
    np.fill_diagonal(gaps, np.inf)
    return np.asarray(~(residuals[:, 0] > gaps.min(axis=1)))


def _outer(one: Matrices, other: Matrices) -> Matrices:
    return np.asarray(one.conj()[:, :, None] * other[:, None, :])


def with_constant(matrices: Matrices) -> Matrices:
    """Return matrices (..., m + 1, m + 1), extended by a leading constant function of value 1."""
    found = np.zeros((*matrices.shape[:-2], *(n + 1 for n in matrices.shape[-2:])), matrices.dtype)
    found[..., 0, 0], found[..., 1:, 1:] = 1, matrices
    return found


def _implied(sizes: Array, lags: Any) -> Array:
    """Return -lag / ln |value| of moduli (...), infinite from 1 on, 0 at 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sizes >= 1, np.inf, -lags / np.log(np.minimum(sizes, 1))))


# -- starts out of equilibrium -----------------------------------------------------------------------------------------


SLOWEST = 3  # number of functions that are compared
UNEVEN = 0.5  # variation of equilibrium weights, relative to their mean
SURE, LIKELY = 4.0, 3.0  # errors from folds: chance exceeds them in 1 of 300 samples, and in 1 of 70
UNKNOWN = 0.7  # error of ln(1 + imbalance²) from which equilibrium weights are unknown
NEGLIGIBLE = 0.02  # of 1 - value: a negligible bias of a timescale


@dataclass(frozen=True)
class Starts:
    """Deviation of the starts of trajectories from equilibrium.

    Attributes
    ----------
    imbalance : float
        Standard deviation of the equilibrium weights over their mean; 0 without a constant function.
    drift : float
        Largest mean of f(y) - f(x) or f(y)² - f(x)² of a slow function over its error.
    out_of_equilibrium : bool
        Whether values depend on the starts, or on few trajectories that return.
    """

    imbalance: float = 0.0
    drift: float = 0.0
    out_of_equilibrium: bool = False


def starts_of(moments: Moments, functions: Matrices) -> Starts:
    """Test whether pairs start in equilibrium, by fitted left functions (p, k).

    Requires `Transfer` with right functions in the same basis. Without folds, no deviation is significant.
    """
    starts, pairs, ends, constant, factor = both_ends(moments, functions)
    imbalance = _imbalance(starts[0], pairs[0], constant)
    solver, singular = moments.operator.solver, "right_gram" in moments.arrays
    slow = [i for i in range(starts.shape[1]) if i != constant][:SLOWEST]
    if len(starts) < 3 or not slow:
        return Starts(imbalance)

    def errors(samples: Matrices) -> Array:
        return jackknife_errors(samples[1:], factor)

    moved = (starts - ends)[:, slow]
    moved = np.hstack([moved[:, range(len(slow)), slow], *([] if constant is None else [moved[..., constant]])])
    drift = float(np.max(np.abs(moved[0]) / (errors(moved) + 1e-12)))
    if isinstance(solver, NonNormal):
        sizes = np.array([[math.log1p(_imbalance(*means, constant) ** 2)] for means in zip(starts, pairs, strict=True)])
        unknown = imbalance > 1 and drift > LIKELY and errors(sizes)[0] > UNKNOWN
        return Starts(imbalance, drift, bool(unknown))
    if not singular:  # remove the noise of the antisymmetric part
        turned = (pairs - pairs.swapaxes(1, 2)) / 2
        kept = np.abs(turned[0]) > SURE * errors(turned)
        if constant is not None:
            kept[constant] = kept[:, constant] = True
        pairs = pairs - np.where(kept, 0, turned)
    at_lag = LagMatrices(np.ones(1, int), pairs[:, None], starts, ends, None, constant, "eigen", factor)
    eigen = at_lag.values[:, 0, slow]
    if singular:
        fitted, other = replace(at_lag, kind="singular").values[:, 0, slow], np.abs(eigen)
    else:
        mean = (starts + ends) / 2
        fitted, other = replace(at_lag, grams=mean, kind="symmetric").values[:, 0, slow], eigen.real
    off = np.abs(fitted - other)[0]
    half = float(scipy.special.stdtrit(len(starts) - 2, 0.975)) * errors(fitted) / 2
    biased = (off > half) & (off > LIKELY * errors(fitted - other))  # eigenvalues of short runs have larger errors
    biased &= off > NEGLIGIBLE * (1 - np.minimum(np.abs(other[0]), 1))
    # singular values of a process that is not reversible differ from eigenvalues in equilibrium, too
    expected = singular and drift <= LIKELY
    uneven = imbalance > UNEVEN and drift > SURE
    return Starts(imbalance, drift, uneven or bool(biased.any() and not expected))


def both_ends(moments: Moments, functions: Matrices) -> tuple[Matrices, Matrices, Matrices, int | None, float]:
    """Return inner products (S, k, k) of starts, of starts and ends, and of ends.

    The index of the constant, and the factor of the jackknife variance, follow.

    For centered functions the constant is the first.
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
        if constant is not None:  # known for all pairs
            turned[:, constant] = (ends - starts)[:, constant] / 2
            turned[:, :, constant] = -turned[:, constant]
        pairs = gram - form + turned
    else:
        name = "right_gram" if "right_gram" in moments.arrays else "future_gram"
        starts, pairs, ends = gram, form, reduced(name, functions, functions)
    if not operator.center:
        return starts, pairs, ends, constant_of(means[0], starts[0]), reduced.factor
    after = reduced("right_first", functions)
    sides = (starts, means, means), (pairs, means, after), (ends, after, after)
    starts, pairs, ends = (_after_constant(*side) for side in sides)
    return starts, pairs, ends, 0, reduced.factor


def _after_constant(products: Matrices, left: Matrices, right: Matrices) -> Matrices:
    """Return inner products (S, 1 + k, 1 + k) with the constant first."""
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
    """Return the function u (k,) of equilibrium weights, up to a factor: <u, K f> = <u, f> for all f."""
    values, functions = scipy.linalg.eig(pairs.conj().T, starts)
    return np.asarray(functions[:, np.abs(values - 1).argmin()])
