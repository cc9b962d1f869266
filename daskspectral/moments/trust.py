"""What is trusted (`trusted_`), and doubts as warnings that name their cause and a remedy; a good answer gets none.

Values that are known no better than to a fifth are the mildest doubt, and the consequence of most others. So only the
first of these is told: rows far out decide; columns are of unlike units; the basis decides, by its rank, because
functions of neighboring rows are slower, or by the number of its landmarks; singular values do not hold up on rows that
they were not fitted to; the values are uncertain. Rows that are alike in their order make the error bars themselves
wrong, and are told after any of the first two, and before the others. `errors.Rank` has this order for all doubts of a
fit, of which the first is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis, at_landmarks
from daskspectral.errors import ManifoldWarning, Rank, RankWarning, TrustWarning, column_name, warn_user
from daskspectral.kernels import Linear, Periodic, Polynomial, RadialKernel
from daskspectral.moments.counting import kurtosis_of, order_of, share_between_tasks, spreads_of, unlike_columns
from daskspectral.moments.intervals import NEGLIGIBLE, Errors, trusted_words
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import Posed
from daskspectral.moments.starts import Starts
from daskspectral.operators import Operator
from daskspectral.operators.laplacian import OFF
from daskspectral.solve import Solution, whiten
from daskspectral.solve.whitening import CUTS

Array = NDArray[np.floating[Any]]

ALIKE_ROWS = 5.0  # that count as one: random folds then give error bars too narrow by its root
ALIKE_TASKS = 0.1  # of the variance lies between whole tasks, which are dealt to folds
FAR_OUT = 10.0  # kurtosis: 3 of normal rows, 6 of exponential tails on both sides
UNEVEN = 3.0  # the largest share of a fold in a function's square over the median share
MOST_CLIPPED = 0.05  # of the eigenvalues by pairs of columns, that are negative
CHANGE = 0.1  # of a value, by which the basis must not decide it
LOW_RANK, FEW_DIRECTIONS = 0.25, 5  # below this share of p, and below so many times the number of values
LEFT = 0.75  # of the directions, which must give the same values
LEAST_REACH = 0.8  # of what landmarks represent of earlier rows, that they must of rows that are added
OVERFITTED = 1.1  # VAMP-2 of the fit over VAMP-2 of rows held out
UNCERTAIN, ROUGH = 0.2, 0.15  # half of an interval, of its value: in the median, and of the best third
ROUNDING = 1e-5  # of single precision, a hundredfold
SLOWER, SOMEWHAT = 2.1, 1.5  # of energies over those of the slowest functions of a graph; good fits have 1.2 to 1.7
SMALL_SINGULAR = 0.25  # of the largest: smaller singular values are judged relative to this


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved problem, with its error bars and how much half of the landmarks change its values, (k,).

    `certain` (k,) are values whose residuals let them be told from others, and `constants` so many come first. `starts`
    is the test of whether trajectories start in equilibrium, and a longer lag `contradicted` values (k,). `ratios` (q,)
    are the energies of functions beyond the constants over those of the slowest functions of a graph of neighboring
    rows, ascending.
    """

    posed: Posed
    moments: Moments
    spectrum: Solution
    errors: Errors
    approximation: Array
    certain: NDArray[np.bool_]
    constants: int = 0
    starts: Starts = field(default_factory=Starts)
    contradicted: NDArray[np.bool_] | bool = False
    ratios: Array = field(default_factory=lambda: np.empty(0))

    @property
    def change(self) -> Array:
        """How much of each value half of the landmarks, or of the frequencies, changes, (k,); NaN where unknown."""
        change = self.approximation / _sizes(self.spectrum.values, self.posed.operator.solver.two_sided)
        change[: self.posed.nulls] = np.nan  # 0 whatever the landmarks
        return change

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """The values that error bars and residuals call trusted, and the number of functions does not decide, (k,).

        None but constants where error bars take rows as independent that are not, or rows start out of equilibrium.
        """
        null = np.arange(len(self.spectrum.values)) < self.constants
        return np.asarray(self.errors.trusted & (self._agreed & ~self.slower | null))

    @property
    def _agreed(self) -> NDArray[np.bool_]:
        """Return the values that no test but that of the graph calls in question, (k,)."""
        sampled = not self.starts.out_of_equilibrium and not order_matters(self.moments)
        return np.asarray(~(self.change > CHANGE) & self.certain & ~np.asarray(self.contradicted) & sampled)

    @property
    def slower(self) -> NDArray[np.bool_]:
        """Return the values that slower functions of a graph of neighboring rows call in question, (k,).

        All values, if two functions of the graph are much slower; with one, only those that it exceeds somewhat.
        """
        far, nulls = int(np.count_nonzero(self.ratios > SLOWER)), max(1, self.constants)
        found = (np.arange(len(self.spectrum.values)) >= nulls) & (far > 1)
        if far == 1:
            known = self.ratios[: len(found) - nulls]
            found[nulls : nulls + len(known)] = known > SOMEWHAT
        return np.asarray(found)

    def advise(self, *, compared: bool) -> None:
        """Warn of the first doubt; a low rank is none where kernels were `compared` on rows held out."""
        if text := order_matters(self.moments):
            warn_user(text, TrustWarning, Rank.ORDER)
        if not len(self.spectrum.values):
            return
        folds = self.moments.folds
        far = "" if self.errors.reason else self.far_out()
        units = "" if far or folds is None else self.unlike()
        if text := far or units:  # the values may be right all the same
            warn_user(text, TrustWarning, Rank.DATA)
        if folds is not None and folds.rule == "labels" and (folds.weight[: folds.number] == 0).any():
            empty = folds.labels[int(np.argmin(folds.weight[: folds.number]))]
            warn_user(
                f"the fold {empty!r} has no row of positive weight, and error bars come from the other folds: give "
                "labels of which each has rows",
                TrustWarning,
            )
        if self.errors.reason and folds is not None:
            warn_user(
                f"{self.errors.reason}, and nothing tells how far the {len(self.spectrum.values)} values are off: take "
                "more rows, and folds and landmarks that leave rows to judge by",
                TrustWarning,
                Rank.UNCERTAINTY,
            )
        if self.starts.out_of_equilibrium:
            warn_user(_started(self.posed.operator, self.starts), TrustWarning, Rank.ORDER)
        if (wrong := self.contradicted & self.errors.trusted)[self.constants :].any():
            warn_user(
                f"a longer lag contradicts {np.count_nonzero(wrong)} of {len(wrong)} values, which are not trusted: "
                "the rows do not determine how they go on, or these functions do not. Give delays, rows beside earlier "
                "ones as in np.hstack([x[1:], x[:-1]]), columns that are missing, more functions or a longer lag",
                TrustWarning,
            )
        if self.errors.reason or far or units:
            return
        if rank := "" if compared else self.low_rank():
            warn_user(rank, RankWarning)
        elif text := self.missed() or self.few_landmarks() or self.overfitted():
            warn_user(text, TrustWarning)
        elif text := self.uncertain():
            warn_user(text, TrustWarning, Rank.UNCERTAINTY)

    def far_out(self) -> str:
        """Whether the columns have heavy tails, and a few rows decide some function."""
        kurtosis = kurtosis_of(self.moments)
        worst = max(kurtosis, key=lambda column: kurtosis[column], default=-1)
        folds = self.moments.folds
        if worst < 0 or kurtosis[worst] <= FAR_OUT or folds is None:
            return ""
        filled = np.flatnonzero(folds.weight[: folds.number] > 0)
        grams = np.stack([self.posed.restricted({"gram": gram})["gram"] for gram in folds.arrays["gram"][filled]])
        functions = self.spectrum.left if self.posed.operator.solver.two_sided else self.spectrum.right
        squares = np.einsum("pi,kpi->ki", functions.conj(), grams @ functions).real
        shares = squares / folds.weight[filled, None]
        if not (shares.max(axis=0) > UNEVEN * np.median(shares, axis=0)).any():
            return ""
        columns = self.moments.preparation.get("columns")
        return (
            f"{column_name(worst if columns is None else columns[worst])} has a few rows far out (kurtosis "
            f"{kurtosis[worst]:.3g}; of normal rows 3), and some functions rest on these rows alone: sums converge "
            "slowly, error bars come out too narrow, and values near 0 may stand for single rows. Transform the column "
            "(a logarithm, ranks) or leave out what is no data; "
            "standardize=True does not help"
        )

    def unlike(self) -> str:
        """Whether columns are of unlike units, where functions have one scale for all: no periods, and none linear.

        The columns of right functions of other variables are known at their landmarks.
        """
        prepared, right = self.moments.preparation, self.moments.right_basis
        sides = [("x", self.posed.left.basis, spreads_of(self.moments), prepared)]
        if self.posed.operator.own_right_basis and right is not None:
            spreads = {c: float(s) for b in at_landmarks(right) for c, s in enumerate(b.landmarks.std(axis=0)) if s > 0}
            sides.append((self.posed.operator.right_view, right, spreads, prepared["right"]))
        for view, basis, spreads, own in sides:
            scaled = basis.periodic or any(isinstance(b.kernel, (Periodic, Linear)) for b in at_landmarks(basis))
            if not scaled and (text := unlike_columns(spreads, own.get("columns"), view)):
                return text
        return ""

    def low_rank(self) -> str:
        """Whether a kernel of given scale has so few directions that the number of them decides the values."""
        posed, k = self.posed, len(self.spectrum.values)
        kernels = [b.kernel for b in at_landmarks(posed.left.basis)]
        inner = [kernel.inner for kernel in kernels]
        rank, size = self.spectrum.rank, int(np.count_nonzero(posed.left.kept))
        solver = posed.operator.solver
        if isinstance(rank, tuple) or not solver.needs_symmetry or solver.by_norm or not inner or k < posed.count:
            return ""  # fewer values than were wanted are told already
        if rank >= min(LOW_RANK * size, FEW_DIRECTIONS * k) or not all(isinstance(q, RadialKernel) for q in inner):
            return ""
        change = _change_by_rank(posed.energy(posed.means), posed.means["gram"], k, CUTS[self.moments.dtype])
        if not change > CHANGE:
            return ""
        return (
            f"the rank is {rank} of {size} functions, and it decides the values: without the last quarter of the "
            f"directions half of them change by {_percent(change)} or more. The kernel {kernels[0]} is too wide for "
            "these data, or there are too few rows: narrow it, or let kernel='auto' compare scales"
        )

    def missed(self) -> str:
        """Return that functions of neighboring rows are slower than fitted ones that would be trusted, if so."""
        if not (self.slower & self.errors.trusted & self._agreed).any():
            return ""
        return (
            f"functions of a graph of neighboring rows have up to {self.ratios.max():.2g} times less energy than the "
            "fitted ones, so that values may be missing below those found: the rows lie in clusters, or on a sheet "
            "whose turns come close to each other, and the functions do not tell these apart. Use more rows, and then "
            "more landmarks with a narrower kernel"
        )

    def few_landmarks(self) -> str:
        """Whether half of the landmarks, or of the frequencies, give other values."""
        change = self.change
        known = change[~np.isnan(change)]
        if not (known > CHANGE).any():
            return ""
        middle, certain = float(np.median(known)), np.flatnonzero(self.errors.trusted & (change > CHANGE))
        if middle <= CHANGE and not len(certain):
            return ""
        operator = self.posed.operator
        size = ", of 1 - value," if operator.lag and operator.symmetric else ""  # by which timescales go
        what = f"the values change by {_percent(middle)}{size} in the median"
        if middle <= CHANGE:
            what = f"value {certain[0]} changes by {_percent(float(change[certain[0]]))}{size.removesuffix(',')}"
        if not at_landmarks(self.moments.basis):  # leading functions of a lattice
            return (
                f"{what} as more frequencies are added, extrapolated from half and three quarters of them, beyond the "
                "error bars: use a larger m, or a larger margin"
            )
        return (
            f"{what} when the second half of the landmarks is left out, so that more of them would change it again, "
            "beyond the error bars: use more landmarks, or a wider or smoother kernel"
        )

    def overfitted(self) -> str:
        """Whether singular values are much larger than on rows that they were not fitted to."""
        if not self.posed.operator.solver.two_sided:
            return ""
        held_out = self.errors.held_out
        fitted, beyond = float(np.sum(self.spectrum.values**2)), float(np.nansum(held_out**2))
        if fitted <= OVERFITTED * beyond:
            return ""
        return (
            f"the squared singular values sum to {fitted:.4g}, and to {beyond:.4g} on rows that they were not fitted "
            "to (held_out_): the functions follow accidents of these rows. Use a larger penalty, a wider kernel, fewer "
            "landmarks or more rows"
        )

    def uncertain(self) -> str:
        """Whether half of the values are known no better than to a fifth, or two of three no better than to 15 %."""
        operator, solver = self.posed.operator, self.posed.operator.solver
        shown, ends = operator.presented(self.spectrum.values), np.sort(operator.presented(self.errors.intervals), 1)
        middle, best = (
            uncertainty(shown, ends, two_sided=solver.two_sided, constants=self.constants, share=share)
            for share in (1 / 2, 1 / 3)
        )
        if not (middle > UNCERTAIN or best > ROUGH) or self.trusted.all():
            return ""
        return (
            f"{trusted_words(self.trusted, self.constants, solver.values)}, and half of the values are known no "
            f"better than to {_percent(middle)} ({solver.errors}): {self.moments.count} rows are few for them. Use "
            "more rows, or ask for fewer values (n_components)"
        )


def uncertainty(
    values: NDArray[np.inexact[Any]], intervals: Array, *, two_sided: bool, constants: int = 0, share: float = 0.5
) -> float:
    """Half the width of the intervals (k, 2) relative to their values (k,): a `share` of the values has no more.

    The `constants`, which come first, and values of 0 do not count. NaN without intervals. Values near 0 count as
    larger, singular values as a quarter of the largest at least.
    """
    sizes = np.abs(values)
    counted = (sizes > 1e-12 * sizes.max(initial=0.0)) & (np.arange(len(sizes)) >= constants)
    if not counted.any():
        return math.nan
    half = np.maximum(intervals[:, 1] - values.real, values.real - intervals[:, 0])
    return float(np.quantile((half / _sizes(values, two_sided))[counted], share))


def _sizes(values: NDArray[np.inexact[Any]], two_sided: bool) -> Array:
    sizes = np.abs(values)
    largest = sizes.max(initial=0.0)
    return (
        np.asarray(np.maximum(sizes, SMALL_SINGULAR * largest) if two_sided else sizes + NEGLIGIBLE * largest) + 1e-300
    )


def maximised(operator: Operator, values: NDArray[np.inexact[Any]]) -> bool:
    """Whether the fit makes values as large as it can, singular values and variances: they are smaller held out."""
    by_size = operator.solver.two_sided or operator.ranking == "modulus"
    return by_size or bool(operator.descending and values.real.sum() > 0)


def excess(values: NDArray[np.inexact[Any]], held_out: Array, *, maximised: bool) -> float:
    """The median of held-out over fitted values; of fitted over held-out ones where the fit maximised them.

    Singular values and variances are maximised. NaN where unknown.
    """
    fitted, other = np.abs(values), np.abs(held_out)
    known = np.isfinite(other) & (np.minimum(fitted, other) > 1e-3 * fitted.max(initial=0.0))
    if not known.any():
        return math.nan
    ratio = other[known] / fitted[known]
    return float(np.median(1 / ratio if maximised else ratio))


def advise_update(before: float, after: float) -> None:
    """Warn where the rows that were added fit the functions worse than the earlier ones, by their `excess`."""
    if after > OVERFITTED and after > OVERFITTED * before:
        warn_user(
            f"held-out values are {after:.3g} times the fitted ones after the update, {before:.3g} times before: the "
            "new rows are not like those for which kernel, scale and landmarks were chosen; fit all rows again",
            TrustWarning,
        )


def advise_reach(before: Moments, after: Moments) -> None:
    """Warn if landmarks of radial kernels lie farther from the rows that were added than from the earlier ones."""
    for basis, name in ((before.basis, "gram"), (before.right_basis, "right_gram")):
        own: Any = None if basis is None else basis.parts[-1]
        if not isinstance(own, LandmarkBasis) or not isinstance(own.kernel.inner, RadialKernel):
            continue
        if name not in before.arrays or before.count <= own.size:
            continue
        last, added = slice(-own.size, None), after.arrays[name] - before.arrays[name]
        then = own.reach(before.arrays[name][last, last] / before.weight)
        then = (then * before.count - own.size) / (before.count - own.size)  # landmarks reach themselves
        now = own.reach(added[last, last] / max(after.weight - before.weight, 1e-300))
        if now < LEAST_REACH * then:
            warn_user(
                f"the landmarks represent {100 * now:.3g} % of the kernel at the rows that were added, and "
                f"{100 * then:.3g} % at the earlier ones: functions are nearly 0 where no landmark is near. Fit all "
                "rows together",
                TrustWarning,
            )


def _started(operator: Operator, starts: Starts) -> str:
    values = operator.solver.values.removesuffix("_").replace("_", " ")
    which = "" if operator.solver.two_sided else " (or the process is not reversible)"
    return (
        f"the trajectories do not start in equilibrium{which}: its weights vary by {_percent(starts.imbalance)}, and "
        f"{values}, with their timescales, are those of the process as it was started, so that none is trusted. Fit "
        "again with weights, sample_weight=est.equilibrium_weights(X), or take Transfer(lag, 'eigen')"
    )


def order_matters(moments: Moments) -> str:
    """Whether rows were dealt to folds as if their order meant nothing, and neighbours are alike."""
    if moments.order is None or moments.folds is None or moments.folds.rule not in ("hash", "tasks"):
        return ""
    alike, share = order_of(moments), share_between_tasks(moments)
    if moments.folds.rule == "hash" and alike > ALIKE_ROWS:
        alike = min(alike, float(moments.order[0, 0]))
        what = f"about {alike:.2g} rows that follow one another are as alike as one (their autocorrelation time)"
    elif moments.folds.rule == "tasks" and share > ALIKE_TASKS:
        rows, _, tasks = moments.order[:3, 0]
        what = f"{_percent(share)} of the variance of the rows lies between runs of {rows / tasks:.0f} rows"
    else:
        return ""
    return (
        f"the order of the rows matters: {what}, and error bars and held-out values take every row as independent, so "
        "that none is trusted. For rows that follow in time use folds='blocks'; for independent rows that are sorted, "
        "folds='random'"
    )


def _change_by_rank(form: Array, gram: Array, count: int, cut: float) -> float:
    """The median relative change of the first `count` values when the last quarter of the directions is left out.

    Directions are those of the Gram matrix above `cut`, the ones that the data see best first; a value that has none is
    inf. Functions that the form kills do not count.
    """
    null = (form == 0).all(axis=0) & (np.diag(gram) > 0)
    w = whiten(gram, cut, null).matrix
    nulls = int(np.count_nonzero(null))
    values = []
    for size in (w.shape[1], nulls + int(np.ceil(LEFT * (w.shape[1] - nulls)))):
        inner = w[:, :size].T @ form @ w[:, :size]
        found = scipy.linalg.eigvalsh(inner)[nulls:count]
        values.append(np.append(found, np.full(max(0, count - nulls - len(found)), np.inf)))
    whole, part = values
    known = np.isfinite(whole) & (whole > 0)
    return float(np.median(part[known] / whole[known] - 1)) if known.any() else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"a factor of {1 + share:.2g}"


def advise_clipped(moments: Moments) -> None:
    """Warn where covariances by pairs of columns are far from positive."""
    if moments.clipped > MOST_CLIPPED:
        warn_user(
            f"{100 * moments.clipped:.2g} % of the eigenvalues of the covariances were negative, and clipped: with "
            f"{100 * moments.missing:.2g} % of the entries missing, pairs of columns are known from different rows. "
            "Leave out columns with few values, or rows with few by on_invalid='skip'",
            TrustWarning,
        )


def advise_manifold(moments: Moments) -> None:
    """Warn where the rows lie off the operator's manifold by more than rounding, in the root mean square."""
    squares = moments.arrays.get(OFF)
    distance = 0.0 if squares is None else math.sqrt(float(squares[0]) / moments.weight)
    if distance <= ROUNDING:
        return
    warn_user(
        f"the rows lie {distance:.2g} off the manifold of {moments.operator} (root mean square), more than rounding. "
        "The tangential form does not see functions of this distance, and so it repeats its eigenvalues, from 0 on, "
        "once the kernel tells such functions apart: with noise of 0.01 off the sphere in R^3 they are 0, 0, 1.9, 1.9, "
        "2, 2, 2, 2.1 in place of 0, 2, 2, 2, 6. Project the rows onto the manifold, or leave the manifold out: the "
        "ambient form has no such functions",
        ManifoldWarning,
    )


def advise_rank(solution: Solution, basis: Basis, wanted: int, *, right: Basis | None = None) -> None:
    """Warn where there are fewer values than were wanted, and say what would give more.

    `right` is the basis of the right functions, where the solution has ranks of two sides.
    """
    if len(solution.values) >= wanted:
        return
    what, found = f"the basis has rank {solution.rank}", "eigenvalues"
    if isinstance(solution.rank, tuple):
        what = f"the bases of the two sides have ranks {solution.rank[0]} and {solution.rank[1]}"
        found = "singular values"
        basis = right if right is not None and solution.rank[1] < solution.rank[0] else basis
    advice = "use more landmarks or a narrower kernel, or ask for fewer values"
    kernels = [b.kernel for b in at_landmarks(basis)]
    if kernels and all(isinstance(kernel, Linear) for kernel in kernels):
        advice = "the rows vary in no more directions: ask for fewer values"
    if not kernels:
        advice = "use more rows or a basis of more functions, or ask for fewer values"
    degrees = [kernel.degree for kernel in kernels if isinstance(kernel, Polynomial)]
    if degrees:
        most = math.comb(basis.dimension + max(degrees), basis.dimension)
        advice = (
            f"polynomials of degree {max(degrees)} in {basis.dimension} variables have {most} dimensions; for more "
            "raise the degree or use more landmarks, and where directions were lost to rounding, standardize the "
            "columns or lower the degree"
        )
    warn_user(
        f"{what} on these data, fewer than n_components={wanted}: {len(solution.values)} {found} are "
        f"returned; {advice}",
        RankWarning,
    )
