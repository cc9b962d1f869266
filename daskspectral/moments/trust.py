"""What is reliable (`reliable_`), and doubts as warnings that name their cause and a remedy; a good answer gets none.

Values that are known no better than to a fifth are the mildest doubt, and the consequence of most others. So only the
first of these is told: columns are of unlike units; functions of neighboring rows are slower; half of the landmarks
give other values; the values are uncertain. Rows that are alike in their order make the error bars themselves wrong,
and are told after the first of these. `errors.Rank` has this order for all doubts of a fit; the first one is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.errors import ManifoldWarning, Rank, RankWarning, ReliabilityWarning, column_name, warn_user
from daskspectral.kernels import Linear, of_distances
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.counting import order_of, spreads_of, unlike_columns
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

ALIKE_ROWS = 5.0  # that count as one: random folds then give error bars too narrow by its root
MOST_CLIPPED = 0.05  # of the eigenvalues by pairs of columns, that are negative
CHANGE = 0.1  # of a value, by which the basis must not decide it
LEAST_REACH = 0.8  # of what landmarks represent of earlier rows, that they must of rows that are added
UNCERTAIN, ROUGH = 0.2, 0.15  # half of an interval, of its value: in the median, and of the best third
ROUNDING = 1e-5  # of single precision, a hundredfold
SLOWER, SOMEWHAT = 2.1, 1.5  # of energies over those of the slowest functions of a graph; good fits have 1.2 to 1.7


@dataclass(frozen=True, eq=False)
class Reliability:
    """How far a solution can be relied on, by its error bars and what half of the landmarks change its values by, (k,).

    `certain` (k,) are values whose residuals let them be told from others, and `constants` so many come first. `starts`
    is the test of whether trajectories start in equilibrium, and a longer lag `contradicted` values (k,). `ratios` (q,)
    are the energies of functions beyond the constants over those of the slowest functions of a graph of neighboring
    rows, ascending. `names` returns the names of the columns of X. `modes` tell how far components of fields are known.
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
        """How much of each value half of the landmarks, or of the frequencies, changes, (k,); NaN where unknown."""
        change = self.approximation / self.problem.operator.solver.sizes(self.spectrum.values)
        change[: self.problem.nulls] = np.nan  # 0 whatever the landmarks
        return change

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """The values that error bars and residuals call reliable, and the number of functions does not decide, (k,).

        None but constants if error bars take rows as independent that are not, or rows start out of equilibrium.
        """
        null = np.arange(len(self.spectrum.values)) < self.constants
        return np.asarray(self.errors.reliable & (self._agreed & ~self.slower | null))

    @property
    def _agreed(self) -> NDArray[np.bool_]:
        """The values that no test but that of the graph calls in question, (k,)."""
        sampled = not (self.starts.out_of_equilibrium or rows_are_correlated(self.moments) or self.copies)
        return np.asarray(~(self.change > CHANGE) & self.certain & ~np.asarray(self.contradicted) & sampled)

    @cached_property
    def copies(self) -> str:
        """That rows are copies of rows in other folds, if sampled rows are."""
        sample, folds = self.moments.sample, self.moments.folds
        if sample is None or folds is None or folds.rule not in (FoldKind.HASH, FoldKind.RANDOM):
            return ""
        return copies_words(sample.points, self.moments.rows)

    @property
    def slower(self) -> NDArray[np.bool_]:
        """The values that slower functions of a graph of neighboring rows call in question, (k,).

        All values, if two functions of the graph are much slower; with one, only those that it exceeds somewhat.
        """
        far, nulls = int(np.count_nonzero(self.ratios > SLOWER)), max(1, self.constants)
        found = (np.arange(len(self.spectrum.values)) >= nulls) & (far > 1)
        if far == 1:
            known = self.ratios[: len(found) - nulls]
            found[nulls : nulls + len(known)] = known > SOMEWHAT
        return np.asarray(found)

    def advise(self) -> None:
        """Warn of each doubt that is not the consequence of another one."""
        if text := rows_are_correlated(self.moments):
            warn_user(text, ReliabilityWarning, Rank.ORDER)
        if not len(self.spectrum.values):
            return
        for text in (self.copies, units := self.unlike()):
            if text:
                warn_user(text, ReliabilityWarning, Rank.DATA)
        if self.errors.reason and self.moments.folds is not None:
            warn_user(
                f"{self.errors.reason}: use more rows, and folds and landmarks that leave rows to judge by",
                ReliabilityWarning,
                Rank.UNCERTAINTY,
            )
        if self.starts.out_of_equilibrium:
            warn_user(_started(self.problem.operator, self.starts), ReliabilityWarning, Rank.ORDER)
        if (wrong := self.contradicted & self.errors.reliable)[self.constants :].any():
            warn_user(
                f"a longer lag contradicts {np.count_nonzero(wrong)} of {len(wrong)} values: the rows do not determine "
                "how they continue, or these functions do not. Give delays, as in np.hstack([x[1:], x[:-1]]), columns "
                "that are missing, more functions or a longer lag",
                ReliabilityWarning,
            )
        if self.errors.reason or self.copies or units:
            return
        if text := self.missed() or self.few_landmarks():
            warn_user(text, ReliabilityWarning)
        elif text := self.uncertain():
            warn_user(text, ReliabilityWarning, Rank.UNCERTAINTY)

    def unlike(self) -> str:
        """Whether columns are of unlike units, where functions have one scale for all: no periods, and none linear.

        The columns of right functions of other variables are known at their landmarks.
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
            if not scaled and (text := unlike_columns(spreads, partial(self._column, view, own.get("columns")))):
                return text
        return ""

    def _column(self, view: str, chosen: Sequence[int] | None, column: int) -> str:
        """Return the name of a prepared column of a view."""
        number = column if chosen is None else chosen[column]
        return column_name(number, self.names()) if view == "x" else f"column {number} of {view}"

    def missed(self) -> str:
        """That functions of neighboring rows are slower than fitted ones that would be reliable, if so."""
        if not (self.slower & self.errors.reliable & self._agreed).any():
            return ""
        return (
            f"functions of a graph of neighboring rows have up to {self.ratios.max():.2g} times less energy than the "
            "fitted ones, which do not tell clusters or turns of a sheet apart, so that values may be missing: use "
            "more rows, and then more landmarks with a narrower kernel"
        )

    def few_landmarks(self) -> str:
        """Whether half of the landmarks, or of the frequencies, give other values."""
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
        less, more = "half of the landmarks are", "use more landmarks, or a wider or smoother kernel"
        if not self.moments.basis.landmark_parts:  # leading functions of a lattice
            less, more = "high frequencies are", "use a larger m, or a larger margin"
        return f"{what} when {less} left out, beyond the error bars: {more}"

    def uncertain(self) -> str:
        """Whether half of the values are known no better than to a fifth, or two of three no better than to 15 %."""
        operator, solver = self.problem.operator, self.problem.operator.solver
        if self.modes is not None:  # wide intervals condemn no pattern
            return "" if self.reliable.any() else f"{self.modes.verdict}: use more rows, or fewer columns"
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
            f"{reliable_words(self.reliable, self.constants, solver.value)}, and half of the values are known no "
            f"better than to {_percent(middle)} ({Attributes(solver).errors}): use more rows, or ask for fewer "
            "(n_components)"
        )


def uncertainty(
    values: NDArray[np.inexact[Any]], intervals: Array, operator: Operator, *, constants: int = 0, share: float = 0.5
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
    return float(np.quantile((half / (operator.solver.sizes(values) + operator.resolution))[counted], share))


def advise_reach(before: Moments, after: Moments) -> None:
    """Warn if landmarks of radial kernels lie farther from the rows that were added than from the earlier ones."""
    for basis, name in ((before.basis, "gram"), (before.right_basis, "right_gram")):
        own: Any = None if basis is None else basis.parts[-1]
        if not isinstance(own, LandmarkBasis) or not of_distances(own.kernel.inner):
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
                f"{100 * then:.3g} % at the earlier ones: fit all rows together",
                ReliabilityWarning,
            )


def _started(operator: Operator, starts: Starts) -> str:
    if isinstance(operator.solver, NonNormal):
        return (
            "the trajectories leave the states in which they start and hardly return: the weights of equilibrium vary "
            f"by {_percent(starts.imbalance)} with an error as large, and none is reliable. Use longer trajectories"
        )
    which = "" if operator.right_gram is not None else " (or the process is not reversible)"
    return (
        f"the trajectories do not start in equilibrium{which}: its weights vary by {_percent(starts.imbalance)}, and "
        "none is reliable. Fit with sample_weight=Koopman.equilibrium_weights(X), or with method='eigen'"
    )


def rows_are_correlated(moments: Moments) -> str:
    """Return that rows came to folds as if their order meant nothing, and neighbors are alike, if so."""
    if moments.order is None or moments.folds is None or moments.folds.rule != FoldKind.HASH:
        return ""
    alike = order_of(moments)
    if not alike > ALIKE_ROWS:
        return ""
    alike = min(alike, float(moments.order[0, 0]))
    return (
        f"the order of the rows matters: about {alike:.2g} that follow one another are as alike as one, and error bars "
        "take each as independent. For rows in time use folds='blocks'; for sorted independent rows, folds='random'"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"a factor of {1 + share:.2g}"


def advise_clipped(moments: Moments) -> None:
    """Warn where covariances by pairs of columns are far from positive."""
    if moments.clipped > MOST_CLIPPED:
        warn_user(
            f"{100 * moments.clipped:.2g} % of the eigenvalues of the covariances were negative, and clipped, with "
            f"{100 * moments.missing:.2g} % of the entries missing: leave out columns or rows with few values",
            ReliabilityWarning,
        )


def advise_manifold(moments: Moments) -> None:
    """Warn where the rows lie off the operator's manifold by more than rounding, in the root mean square."""
    squares = moments.arrays.get(OFF)
    distance = 0.0 if squares is None else math.sqrt(float(squares[0]) / moments.weight)
    if distance <= ROUNDING:
        return
    warn_user(
        f"the rows lie {distance:.2g} off the manifold of {moments.operator} (root mean square), more than rounding: "
        "project them onto it, or leave the manifold out",
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
    warn_user(
        f"{what} on these data, fewer than n_components={wanted}: {len(solution.values)} {found} are returned; ask for "
        "fewer values, or use more functions, unless they are linear",
        RankWarning,
    )
