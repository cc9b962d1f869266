"""Reliability of results (`reliable_`), and warnings of unreliable ones with their cause and a remedy.

Errors of values above a fifth are the mildest warning, and the consequence of most others. So only the first of these
is issued: columns have unequal units; functions of neighboring rows are slower; half of the landmarks change the
values; the values are uncertain. Correlated rows invalidate the error bars, with an additional warning.
`errors.Rank` orders all warnings of a fit; the first one is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.errors import ManifoldWarning, Rank, RankWarning, ReliabilityWarning, column_name, warn_user
from daskspectral.kernels import Linear, of_distances
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.counting import order_of, spreads_of, unequal_units
from daskspectral.moments.field_modes import Significance
from daskspectral.moments.folds import FoldKind, copies_words
from daskspectral.moments.intervals import Errors, reliable_words
from daskspectral.moments.lags import Starts
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import GalerkinProblem
from daskspectral.operators import Operator
from daskspectral.operators.laplacian import OFF
from daskspectral.solve import NonNormal, Solution

Array = NDArray[np.floating[Any]]

CORRELATED_ROWS = 5.0  # autocorrelation time from which random folds are invalid: error bars are too narrow by its root
MOST_CLIPPED = 0.05  # share of negative eigenvalues of pairwise covariances
CHANGE = 0.1  # relative change of a value by the basis that makes it unreliable
LEAST_REACH = 0.8  # least share of the kernel that landmarks represent at added rows, relative to earlier rows
UNCERTAIN, ROUGH = 0.2, 0.15  # relative half width of an interval: in the median, and of the best third
ROUNDING = 1e-5  # a hundred times that of single precision
SLOWER, SOMEWHAT = 2.1, 1.5  # ratios of energies to those of a graph; good fits have 1.2 to 1.7


@dataclass(frozen=True, eq=False)
class Reliability:
    """Reliability of a solution, by its error bars and the change of values by the basis.

    `approximation` (k,) is that change.

    `certain` (k,) values have residuals below their gaps, the first `constants` values are constants, `starts` is the
    test of equilibrium, `contradicted` (k,) values differ at a longer lag, `ratios` (q,) are those of the energies of
    nonconstant functions to the slowest functions of a graph of neighboring rows, ascending, `names` returns the names
    of the columns of X, and `modes` is the significance of components of fields.
    """

    problem: GalerkinProblem
    moments: Moments
    spectrum: Solution
    errors: Errors
    approximation: Array
    certain: NDArray[np.bool_]
    constants: int = 0
    starts: Starts = field(default_factory=Starts)
    contradicted: NDArray[np.bool_] | bool = False
    ratios: Array = field(default_factory=lambda: np.empty(0))
    names: Callable[[], Sequence[str]] = tuple
    modes: Significance | None = None

    @property
    def change(self) -> Array:
        """Relative change of values by half of the landmarks, or of the frequencies, (k,).

        NaN if unknown.
        """
        change = self.approximation / self.problem.operator.solver.sizes(self.spectrum.values)
        change[: self.problem.nulls] = np.nan  # 0 for any landmarks
        return change

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Values that are reliable by error bars, residuals, and their change by the basis, (k,).

        Only constants if error bars assume independent rows but rows are correlated, or rows are not in equilibrium.
        """
        null = np.arange(len(self.spectrum.values)) < self.constants
        return np.asarray(self.errors.reliable & (self._agreed & ~self.slower | null))

    @property
    def _agreed(self) -> NDArray[np.bool_]:
        """Values that pass all tests except that of the graph, (k,)."""
        sampled = not (self.starts.out_of_equilibrium or rows_are_correlated(self.moments) or self.copies)
        return np.asarray(~(self.change > CHANGE) & self.certain & ~np.asarray(self.contradicted) & sampled)

    @cached_property
    def copies(self) -> str:
        """Warning of copies of rows in other folds, estimated from the sample; otherwise ""."""
        sample, folds = self.moments.sample, self.moments.folds
        if sample is None or folds is None or folds.rule not in (FoldKind.HASH, FoldKind.RANDOM):
            return ""
        return copies_words(sample.points, self.moments.rows)

    @property
    def slower(self) -> NDArray[np.bool_]:
        """Values that are unreliable because functions of a graph of neighboring rows are slower, (k,).

        All values, if two functions of the graph are much slower; if one is, those that exceed it by a smaller ratio.
        """
        far, nulls = int(np.count_nonzero(self.ratios > SLOWER)), max(1, self.constants)
        found = (np.arange(len(self.spectrum.values)) >= nulls) & (far > 1)
        if far == 1:
            known = self.ratios[: len(found) - nulls]
            found[nulls : nulls + len(known)] = known > SOMEWHAT
        return np.asarray(found)

    def advise(self) -> None:
        """Issue each warning that is not a consequence of another one."""
        if text := rows_are_correlated(self.moments):
            warn_user(text, ReliabilityWarning, Rank.ORDER)
        if not len(self.spectrum.values):
            return
        for text in (self.copies, units := self.unequal_units()):
            if text:
                warn_user(text, ReliabilityWarning, Rank.DATA)
        if self.errors.reason and self.moments.folds is not None:
            warn_user(
                f"{self.errors.reason}. Use more rows, and folds and landmarks that leave rows for validation",
                ReliabilityWarning,
                Rank.UNCERTAINTY,
            )
        if self.starts.out_of_equilibrium:
            warn_user(_started(self.problem.operator, self.starts), ReliabilityWarning, Rank.ORDER)
        if (wrong := self.contradicted & self.errors.reliable)[self.constants :].any():
            warn_user(
                f"a longer lag contradicts {np.count_nonzero(wrong)} of {len(wrong)} values: the process is not "
                "Markovian in these columns or functions. Add delays, as in np.hstack([x[1:], x[:-1]]), missing "
                "columns or more functions, or use a longer lag",
                ReliabilityWarning,
            )
        if self.errors.reason or self.copies or units:
            return
        if text := self.missed() or self.few_landmarks():
            warn_user(text, ReliabilityWarning)
        elif text := self.uncertain():
            warn_user(text, ReliabilityWarning, Rank.UNCERTAINTY)

    def unequal_units(self) -> str:
        """Return a warning if columns have unequal units but functions have one scale.

        Columns of right functions of other variables are compared at their landmarks.
        """
        if self.moments.folds is None:
            return ""
        prepared, right = self.moments.preparation, self.moments.right_basis
        sides = [("x", self.problem.left.basis, spreads_of(self.moments), prepared)]
        if self.problem.operator.own_right_basis and right is not None:
            spreads = {c: float(s) for b in right.landmark_parts for c, s in enumerate(b.landmarks.std(0)) if s > 0}
            sides.append((self.problem.operator.right_view, right, spreads, prepared["right"]))
        for view, basis, spreads, own in sides:
            scaled = basis.periodic or any(isinstance(b.kernel, Linear) for b in basis.landmark_parts)
            if not scaled and (text := unequal_units(spreads, partial(self._column, view, own))):
                return text
        return ""

    def _column(self, view: str, preparation: Mapping[str, Any], column: int) -> str:
        chosen = preparation.get("columns")
        number = column if chosen is None else chosen[column]
        number %= preparation["n_features_in"] // preparation.get("delays", 1)
        return column_name(number, self.names()) if view == "x" else f"column {number} of {view}"

    def missed(self) -> str:
        """Return a warning if functions of a neighbor graph are slower than reliable ones."""
        if not (self.slower & self.errors.reliable & self._agreed).any():
            return ""
        return (
            f"functions of a graph of neighboring rows have up to {self.ratios.max():.2g} times less energy than the "
            "fitted ones, which do not resolve clusters or folds of a manifold, so that values may be missing. Use "
            "more rows, and then more landmarks with a narrower kernel"
        )

    def few_landmarks(self) -> str:
        """Return a warning if half of the landmarks, or of the frequencies, change the values."""
        change = self.change
        known = change[~np.isnan(change)]
        if not (known > CHANGE).any():
            return ""
        middle, certain = float(np.median(known)), np.flatnonzero(self.errors.reliable & (change > CHANGE))
        if middle <= CHANGE and not len(certain):
            return ""
        what = f"the values change by {_percent(middle)} in the median"
        if middle <= CHANGE:
            what = f"value {certain[0]} changes by {_percent(float(change[certain[0]]))}"
        less, more = "half of the landmarks are", "Use more landmarks, or a wider or smoother kernel"
        if not self.moments.basis.landmark_parts:  # leading functions of a FourierBasis
            less, more = "high frequencies are", "Use a larger n_frequencies, or a larger margin"
        return f"{what} if {less} left out, beyond the error bars. {more}"

    def uncertain(self) -> str:
        """Return a warning if half of the values have errors above a fifth, or two of three above 15 %."""
        operator, solver = self.problem.operator, self.problem.operator.solver
        if self.modes is not None:  # wide intervals do not matter for patterns
            return "" if self.reliable.any() else f"{self.modes.verdict}. Use more rows, or fewer columns"
        shown, ends = (
            operator.reported_values(self.spectrum.values),
            np.sort(operator.reported_values(self.errors.intervals), 1),
        )
        middle, best = (
            uncertainty(shown, ends, operator, constants=self.constants, share=share) for share in (1 / 2, 1 / 3)
        )
        if not (middle > UNCERTAIN or best > ROUGH) or self.reliable.all():
            return ""
        return (
            f"{reliable_words(self.reliable, self.constants, solver.value)}, and half of the values have errors of "
            f"{_percent(middle)} or more ({Attributes(solver).errors}). Use more rows, or lower n_components"
        )


def uncertainty(
    values: NDArray[np.inexact[Any]], intervals: Array, operator: Operator, *, constants: int = 0, share: float = 0.5
) -> float:
    """Return the quantile `share` of the half widths of intervals (k, 2) relative to their values (k,).

    The leading `constants`, and values of 0, are excluded. NaN without intervals. Values near 0 count as larger,
    singular values as at least a quarter of the largest.
    """
    sizes = np.abs(values)
    counted = (sizes > 1e-12 * sizes.max(initial=0.0)) & (np.arange(len(sizes)) >= constants)
    if not counted.any():
        return math.nan
    half = np.maximum(intervals[:, 1] - values.real, values.real - intervals[:, 0])
    return float(np.quantile((half / (operator.solver.sizes(values) + operator.resolution))[counted], share))


def advise_reach(before: Moments, after: Moments) -> None:
    """Warn if landmarks of radial kernels represent added rows worse than earlier ones."""
    for basis, name in ((before.basis, "gram"), (before.right_basis, "right_gram")):
        own: Any = None if basis is None else basis.parts[-1]
        if not isinstance(own, LandmarkBasis) or not of_distances(own.kernel.inner):
            continue
        if name not in before.arrays or before.count <= own.size:
            continue
        last, added = slice(-own.size, None), after.arrays[name] - before.arrays[name]
        then = own.reach(before.arrays[name][last, last] / before.weight)
        then = (then * before.count - own.size) / (before.count - own.size)  # without the landmarks themselves
        now = own.reach(added[last, last] / max(after.weight - before.weight, 1e-300))
        if now < LEAST_REACH * then:
            warn_user(
                f"the landmarks represent {100 * now:.3g} % of the kernel at the added rows, but {100 * then:.3g} % at "
                "the earlier ones. Fit all rows together",
                ReliabilityWarning,
            )


def _started(operator: Operator, starts: Starts) -> str:
    if isinstance(operator.solver, NonNormal):
        return (
            "the trajectories hardly return to the states in which they start: equilibrium weights vary by "
            f"{_percent(starts.imbalance)} with an error as large, and no value is reliable. Use longer trajectories"
        )
    which = "" if operator.right_gram is not None else " (or the process is not reversible)"
    return (
        f"the trajectories do not start in equilibrium{which}: equilibrium weights vary by "
        f"{_percent(starts.imbalance)}, and no value is reliable. "
        "Fit with sample_weight=Koopman.equilibrium_weights(X), or with method='eigen'"
    )


def rows_are_correlated(moments: Moments) -> str:
    """Return a warning if rows are correlated but folds assume independent rows; otherwise ""."""
    if moments.order is None or moments.folds is None or moments.folds.rule != FoldKind.HASH:
        return ""
    time = order_of(moments)
    if not time > CORRELATED_ROWS:
        return ""
    time = min(time, float(moments.order[0, 0]))
    return (
        f"the order of the rows matters: their integrated autocorrelation time is about {time:.2g} rows, but error "
        "bars assume independent rows. For rows in time use folds='blocks'; for sorted independent rows, folds='random'"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"a factor of {1 + share:.2g}"


def advise_clipped(moments: Moments) -> None:
    """Warn if pairwise covariances are far from positive semidefinite."""
    if moments.clipped > MOST_CLIPPED:
        warn_user(
            f"{100 * moments.clipped:.2g} % of the eigenvalues of the covariances were negative, and clipped, with "
            f"{100 * moments.missing:.2g} % of the entries missing. Exclude columns or rows with few values",
            ReliabilityWarning,
        )


def advise_manifold(moments: Moments) -> None:
    """Warn if the distance of the rows to the manifold of the operator exceeds rounding."""
    squares = moments.arrays.get(OFF)
    distance = 0.0 if squares is None else math.sqrt(float(squares[0]) / moments.weight)
    if distance <= ROUNDING:
        return
    warn_user(
        f"the root mean square distance of the rows to the manifold of {moments.operator} is {distance:.2g}, more than "
        "rounding. Project the rows onto it, or omit the manifold",
        ManifoldWarning,
    )


def advise_rank(solution: Solution, basis: Basis, wanted: int, *, right: Basis | None = None) -> None:
    """Warn if there are fewer values than requested.

    `right` is the basis of the right functions if the solution has ranks of two sides.
    """
    if len(solution.values) >= wanted:
        return
    what, found = f"the basis has rank {solution.rank}", "eigenvalues"
    if isinstance(solution.rank, tuple):
        what = f"the bases of the two sides have ranks {solution.rank[0]} and {solution.rank[1]}"
        found = "singular values"
        basis = right if right is not None and solution.rank[1] < solution.rank[0] else basis
    warn_user(
        f"{what} on these data, fewer than n_components={wanted}: {len(solution.values)} {found} are returned. Lower "
        "n_components, or use more functions, unless they are linear",
        RankWarning,
    )
