"""The automatic choice of functions: candidates are compared on rows of a pilot that they did not see.

A candidate is solved on half of the folds and judged on the other half. By min-max, held-out Ritz values bound the true
ones from above, for any basis, so that scores compare across kernels, scales and metrics. For symmetric operators the
score is minus the mean of log(h_i + m) over the held-out values h, raised by half of the overfit (`Trial.judged`), with
the weights 1 / i and one m for all candidates. For two-sided ones it
is VAMP-E (`solve.ritz.explained`), what the fitted singular functions explain of the operator on the other half, of as
many of the first ones as explain most; VAMP-2 would let them follow accidents of that half, most of all functions that
are large on few rows.

The search is one of scales: for each kernel a climb with few functions on few rows, as far as scales become better;
then the best scale of each with all of them. Where functions have gradients, a metric is learned from those of the best
candidate, as often as it is better.

Functions of other kinds take part: a kind is one class, which registers itself by inheriting from `CandidateFamily`,
and is then compared wherever basis="auto" asks for it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import (
    Basis,
    BasisRecipe,
    Concatenated,
    ConstantBasis,
    FourierBasis,
    LandmarkBasis,
    NormalizedRBF,
)
from daskspectral.basis.nystrom import moved, noise_of, rows_by
from daskspectral.basis.recipe import Periods
from daskspectral.basis.role import Role
from daskspectral.choosing.candidates import (
    LARGEST_FACTOR,
    Search,
    Setting,
    TrialEvaluator,
    in_threads,
    ranked,
)
from daskspectral.choosing.landmarks import FitSample, advise_copies
from daskspectral.choosing.lattice import compares_modes, pilot_box, with_method
from daskspectral.choosing.pilot import FOLDS, ROWS, Pilot
from daskspectral.choosing.prior import FAMILIES, PENALTY, kernel_of, prior_search
from daskspectral.choosing.spaces import FunctionSpace, SearchSpace
from daskspectral.data.source import Source
from daskspectral.engine.memory import local_threads
from daskspectral.errors import Rank, ReliabilityWarning, warn_user
from daskspectral.kernels import Gaussian, Kernel, Linear, Mahalanobis, Matern, Periodic
from daskspectral.landmarks import BY_KERNEL, choose, median_of_distinct
from daskspectral.moments.lattice import UnresolvedError
from daskspectral.moments.problem import GalerkinProblem
from daskspectral.moments.trial import Split, Trial, half_splits, merged
from daskspectral.operators import Laplacian, Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.whitening import fix_signs
from daskspectral.solvers import Regularized

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")

TRIAL_LANDMARKS = 300
TIMES = 2  # permutations of the folds, two splits each
FIRST_LANDMARKS, FIRST_ROWS = 100, 2000  # of the climb
START = 0.5  # the first scale in median distances
NARROWER = 0.5**0.5  # than the best scale of few functions: more of them bear it
KERNELS = 2  # without a metric
SPREAD = 0.3  # J of functions whose gradients count
STEPS = 2  # of learning a metric
FLAT = 0.05  # of the last value, below which functions count alike in a metric
STRETCH = 0.01  # the least root of a metric over its largest one
DIGITS = 4  # of a metric
DIRECTIONS = 20  # of a metric: the leading ones, if there are more columns
DENSE_COLUMNS = 300  # above which leading directions are sought in a random subspace
POWERS, OVERSAMPLED = 4, 10  # iterations there, and directions beyond those that are kept
SAMPLE, SAMPLE_ENTRIES = 1000, 500_000  # rows at which gradients are taken, and their coordinates
LEAST_ROWS, LEAST_DISTINCT = 40, 20  # of a pilot, and of those that differ: with fewer there is nothing to compare by
SMALL_PENALTIES = (1e-6, 0.01)  # of linear functions
PLAIN = 0.5  # of the median distance, where nothing can be compared
BLOCK_ROWS = 2048  # of the basis functions' buffers

MOST_VARIABLES = 3  # of a lattice
COUNTS = (0.5, 0.75, 1.0, 1.5)  # of cells, times the cube root of the number of rows
RATIOS = (0.7, 1.0, 1.5)  # of the width to the distance of neighbouring centres
LEAST_CELLS, LEAST_CELL_ROWS = 5, 100
LEAST_COLUMNS, MOST_LINEAR = 10, 4  # of which linear functions are compared, if so many times the rows are there
CELL_SAMPLE = 2000  # rows among which centres are found


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """A kernel whose scale is open, the median distance as it measures, and landmarks (p, d) with their rows if any.

    `noise` by the number of landmarks is that by which they are moved.
    """

    kernel: Kernel
    median: float
    points: Array
    rows: NDArray[np.intp] | None = None
    noise: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        side: FunctionSpace,
        pilot: Pilot,
        rng: np.random.Generator,
        pool: NDArray[np.intp] | None = None,
    ) -> KernelFamily:
        """A kernel at the landmarks of a side, or at rows of the pilot: of a `pool` of them, or of all.

        The median distance is 0 where all rows are equal.
        """
        landmarks, points = side.drawing, pilot.points(side.view)
        embedded = kernel.embedded_about(points)
        median = median_of_distinct(embedded, rng)
        if landmarks.points is not None:
            sample = FitSample(pilot.source, side.view)
            return cls(kernel, median, sample.prepared(sample.given(landmarks.points)))
        method = "kmeans++" if landmarks.method in BY_KERNEL else landmarks.method
        pool = np.arange(len(points)) if pool is None else pool
        rows = pool[choose(method, embedded[pool], min(side.drawn, len(pool)), rng)]
        return cls(kernel, median, points[rows], rows)

    def moved(self, kernel: Kernel, size: int, spread: float) -> Array:
        """Return the first `size` landmarks moved off the data by `spread` scales of a kernel."""
        points = self.points[:size]
        if spread and len(points) not in self.noise:
            self.noise[len(points)] = noise_of(points)
        return moved(points, kernel, spread, self.noise.get(len(points)))

    def raw(
        self, kernel: Kernel, side: FunctionSpace, pilot: Pilot, rng: np.random.Generator, *, filled: bool = False
    ) -> Array:
        """The landmarks in the columns of the data, as a kernel chooses them where their method is by a kernel.

        `filled` takes other rows of the pilot, too, up to the number that is wanted.
        """
        landmarks, rows = side.drawing, self.rows
        if rows is None:
            return FitSample(pilot.source, side.view).given(landmarks.points)
        count = min(side.drawn, pilot.rows)
        if landmarks.method in BY_KERNEL:
            rows = rows_by(landmarks.method, pilot.points(side.view), count, kernel, rng)
        others = np.setdiff1d(np.arange(pilot.rows), rows)[: count - len(rows)] if filled else rows[:0]
        return np.asarray(pilot.raw[side.view][np.concatenate([rows, others])])


@dataclass(frozen=True, eq=False)
class CandidateFunctions:
    """The functions of one side: those that are given, or those of families."""

    side: FunctionSpace
    families: list[KernelFamily] = field(default_factory=list)

    def family(self, setting: Setting) -> KernelFamily:
        """The family of a setting; one stands for all."""
        return self.families[min(setting.family, len(self.families) - 1)]

    def kernel(self, setting: Setting) -> Kernel:
        """The kernel of a setting."""
        family = self.family(setting)
        return family.kernel.resolve(family.median).resolve(setting.factor * family.median, "auto")

    def table(self, search: Search, count: int | None = None, why: str = "") -> tuple[Candidate, ...]:
        """The candidates of a search as they are shown, with `count` values; `why` says of the others what they are."""
        scores, failed = search.scores, getattr(search.evaluator, "failed", {})
        return tuple(
            Candidate.of(
                str(self.kernel(s)), s.factor, s.penalty, scores[s], search.found[s][:, :count], failed.get(s, why)
            )
            for s in search.order
        )

    def of(self, setting: Setting, size: int, spread: float) -> Basis:
        """The basis of a setting with the first `size` landmarks."""
        if isinstance(self.side.recipe, Basis):
            return self.side.completed(self.side.recipe)
        kernel = self.kernel(setting)
        points = self.family(setting).moved(kernel, size, spread)
        return self.side.completed(self.side.recipe.finished(LandmarkBasis(kernel, points, centered=True)))


@dataclass(frozen=True, eq=False)
class LandmarkSearch:
    """Kernels at landmarks that are compared, in the `space` of what is left to the data.

    `left` and `right` are the functions of both sides, `right` is None where they are the same. `landmark` (m,) marks
    the rows of the pilot among which landmarks are chosen, and `drawn` makes a family of a kernel on the left.
    `penalties` are the values of c that may be tried. `size` is the number of functions at landmarks.
    """

    pilot: Pilot
    space: SearchSpace
    left: CandidateFunctions
    right: CandidateFunctions | None
    landmark: NDArray[np.bool_]
    drawn: Callable[[Kernel], KernelFamily]
    penalties: tuple[float | None, ...]
    size: int = TRIAL_LANDMARKS

    @property
    def operator(self) -> Operator:
        return self.pilot.operator

    @property
    def sides(self) -> tuple[CandidateFunctions, ...]:
        """The functions of the left, and of the right where they differ."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def slopes(self) -> bool:
        """Whether gradients of functions in the space of the data count."""
        own, operator = self.space.left.landmarks, self.operator
        still = not any(derivative_orders(operator)) or self.right is not None
        still |= isinstance(operator, Laplacian) and operator.manifold is not None
        return own is not None and own.periods is None and not still

    @property
    def spread(self) -> float:
        """J."""
        own = self.space.left.landmarks
        if own is not None and own.jitter != "auto":
            return float(own.jitter)
        return SPREAD if self.slopes else 0.0

    @property
    def metrics(self) -> bool:
        """Whether metrics may be learned."""
        own = self.space.left.landmarks
        return self.slopes and max(derivative_orders(self.operator)) == 1 and own is not None and own.kernel == "auto"

    @property
    def leading(self) -> CandidateFunctions:
        """The functions whose kernel stands for a candidate."""
        return self.left if self.right is None or len(self.left.families) > 0 else self.right

    def evaluator(
        self, splits: Sequence[Split], trial: Callable[[Pilot, Setting], Trial] | None = None, penalties: Any = None
    ) -> TrialEvaluator:
        """Return what compares bases on the pilot in some splits: those of settings, or any that `trial` measures."""
        part, halves = merged(splits, self.pilot.folds)
        pilot, components, kind = self.pilot.parted(part), self.space.components, self.operator.solver
        measured = partial(trial or self._trial, pilot)
        return TrialEvaluator(measured, halves, penalties or self.penalties, kind, components)

    def _trial(self, pilot: Pilot, setting: Setting) -> Trial:
        basis = self.left.of(setting, self.size, self.spread)
        right = None if self.right is None else self.right.of(setting, self.size, 0.0)
        return pilot.trial(basis, right, self.landmark, self.space.dtype)

    def run(self, splits: Sequence[Split], rng: np.random.Generator) -> tuple[Search, Search, str]:
        """Return the finalists, all that were tried with few functions, and the edge of the scales.

        The best scale of each kernel, and the best metric, are compared in all splits. Raises LinAlgError where no
        candidate converges.
        """
        thinned = self._thinned(rng)
        first = Search(thinned.evaluator(splits[:2], penalties=self.penalties[:1]))
        for family in range(len(self.leading.families)):
            self._climb(first, family, START)
        for _ in range(STEPS if self.metrics else 0):
            best, newest = first.order[0], len(self.left.families) - 1
            if (newest >= KERNELS and best.family != newest) or not thinned._learned(best):
                break
            self._climb(first, newest + 1, min(best.factor, LARGEST_FACTOR / 2))
        leaders = {min(s.family, KERNELS): s for s in reversed(first.order)}
        final = Search(evaluator := self.evaluator(splits))
        final.judge(leaders.values())
        best = final.order[0]
        if self.leading.family(best).kernel.automatic:
            final.judge([replace(best, factor=NARROWER * best.factor)])
        if len(evaluator.failed) == len(final.found):
            failures = (f"{self.leading.kernel(s)}, penalty {s.penalty}: {why}" for s, why in evaluator.failed.items())
            raise np.linalg.LinAlgError("\n".join(["no candidate of the choice converged:", *failures]))
        return final, first, first.edge(final.order[0])

    def _climb(self, search: Search, family: int, start: float) -> None:
        """The scales beside `start`, and further ones while the best is the last that was tried."""
        open_scale = self.leading.family(Setting(family, start)).kernel.automatic
        search.climb(family, [start / 2, start, 2 * start] if open_scale else [start])

    def _learned(self, setting: Setting) -> bool:
        """Whether a kernel in the metric of a setting's first functions could be added to the families.

        The functions are of rows among which landmarks are chosen, which judge nothing.

        The metric is the mean outer product of their gradients; slow functions count most, as (λ + λ_k / 20)^-3 of
        the values λ_1 to λ_k.
        """
        basis = self.left.of(setting, self.size, self.spread)
        core = basis.landmark_parts[-1]
        if basis.boundaries or core.dimension < 2 or not self.landmark.any():
            return False
        pilot = self.pilot.among(self.landmark)
        everywhere = pilot.parted(np.zeros(pilot.folds, dtype=np.int64))
        moments = everywhere.trial(basis, None, np.ones(pilot.rows, dtype=bool), self.space.dtype).moments
        try:
            problem = GalerkinProblem(moments, self.space.components, setting.penalty)
            spectrum = problem.solve(problem.means, problem.rows)
        except np.linalg.LinAlgError:
            return False
        rising = np.flatnonzero(spectrum.values.real > 0)
        if not len(rising):
            return False
        values = spectrum.values.real[rising]
        weights = (values + FLAT * values[-1]) ** -1.5
        functions = problem.right.spread(spectrum.right)[-core.size :, rising] * weights
        rows = min(SAMPLE, max(LEAST_ROWS, SAMPLE_ENTRIES // core.dimension))
        metric = metric_of(core.span_gradient(functions)(pilot.points("x")[:rows]))
        if metric is None:
            return False
        kernel = self.leading.families[setting.family].kernel.inner
        self.left.families.append(self.drawn(Mahalanobis(kernel, metric)))
        return True

    def _thinned(self, rng: np.random.Generator) -> LandmarkSearch:
        """The same search with fewer functions, on fewer rows of the pilot."""
        size, rows = min(FIRST_LANDMARKS, self.size), FIRST_ROWS
        if self.pilot.rows <= rows:
            return replace(self, size=size)
        pilot, chosen = self.pilot.thinned(rows, self.landmark, rng)
        return replace(self, pilot=pilot, landmark=self.landmark[chosen], size=size)

    def undercut(self, final: Search) -> Array | None:
        """Return the least values of other finalists over those of the best one, (k,) (`Problem.undercut`)."""
        best, *others = (final.found[s][:, : self.space.components] for s in final.order)
        return self.operator.solver.undercut(best, others)


def metric_of(slopes: Array) -> Array | None:
    """Return the root A of the metric of gradients (c, k, d): A Aᵀ is their mean outer product, up to a factor.

    A is (d, d), with roots of at least `STRETCH` of the largest one, or (d, e) for the e leading of many directions.
    None if all gradients vanish. Entries have few digits, so that no last bits decide.
    """
    if slopes.shape[-1] <= DIRECTIONS:
        values, vectors = np.linalg.eigh(np.einsum("cka,ckb->ab", slopes, slopes))
    else:
        values, vectors = leading_directions(slopes.reshape(-1, slopes.shape[-1]), DIRECTIONS)
    if not values[-1] > 0:
        return None
    if slopes.shape[-1] <= DIRECTIONS:
        found = (vectors * np.sqrt(np.maximum(values / values[-1], STRETCH**2))) @ vectors.T
    else:
        kept = values > STRETCH**2 * values[-1]
        found = vectors[:, kept] * np.sqrt(values[kept] / values[-1])
    return np.asarray(np.round(found, DIGITS))


def leading_directions(rows: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of rowsᵀ rows (d, d), ascending, and their vectors (d, count), of fixed signs."""
    if rows.shape[1] <= DENSE_COLUMNS:
        values, vectors = np.linalg.eigh(rows.T @ rows)
    else:
        span = np.random.default_rng(0).standard_normal((rows.shape[1], count + OVERSAMPLED))
        for _ in range(POWERS):
            span = np.linalg.qr(rows.T @ (rows @ span))[0]
        seen = rows @ span
        values, turn = np.linalg.eigh(seen.T @ seen)
        vectors = span @ turn
    vectors = vectors[:, -count:]
    fix_signs(vectors)
    return values[-count:], vectors


def families_of(kernel: Kernel | str, order: int, periods: tuple[float | None, ...] | None) -> tuple[Kernel, ...]:
    """The kernels to compare, of open scales: the given one, or a rough and a smooth one with enough derivatives."""
    if kernel == "auto":
        rough = next(Matern(nu, "auto") for nu in (1.5, 2.5, 3.5, 4.5, 5.5) if Matern(nu, 1.0).order >= order + 1)
        found: tuple[Any, ...] = (rough, Gaussian("auto"))
    else:
        found = (kernel,)
    return found if periods is None else tuple(Periodic(k, periods) if k.flat is k else k for k in found)


# -- functions of other kinds ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CandidateBasis:
    """The best functions of a kind, with their held-out `values` (splits, k).

    In the table of the choice it is `shown` with a `factor` and a `penalty`, None for the usual one.
    """

    basis: BasisRecipe
    values: Array
    shown: str
    factor: float = 1.0
    penalty: float | None = None

    @classmethod
    def of(
        cls,
        basis: Basis,
        search: LandmarkSearch,
        splits: Sequence[Split],
        shown: str,
        penalties: Sequence[float] = (1.0,),
    ) -> CandidateBasis:
        """A basis that is fitted and judged as it is, at the best of some penalties."""

        def trial(pilot: Pilot, _: Setting) -> Trial:
            return pilot.trial(basis, None, search.landmark, "float64")

        evaluator = search.evaluator(splits, trial, penalties)
        found = evaluator.scores(Setting(0, 1.0))
        best = ranked(evaluator.totals(found))[0]
        return cls(basis, found[best], shown, penalty=best.penalty if len(penalties) > 1 else None)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of an estimator that give it."""
        return {"basis": self.basis, **({} if self.penalty is None else {"solver": Regularized(self.penalty)})}


class CandidateFamily(ABC):
    """Functions of another kind, as candidates besides kernels at landmarks.

    `ahead` is added to its scores in the comparison with others, as by a hundredth where its pass over all rows is so
    much faster. It is taken whatever the scores if its first value is so many times larger than all others, `leads`.
    """

    name: ClassVar[str]
    ahead: ClassVar[float] = 0.0
    leads: ClassVar[float] = np.inf

    @classmethod
    def family(cls) -> list[CandidateFamily]:
        """One of each kind, in the order of their definition."""
        return [kind() for kind in cls.__subclasses__()]

    def takes(self, wanted: SearchSpace, dimension: int, periods: Periods | None) -> bool:
        """Whether it is compared for what is left open, on so many columns."""
        return wanted.compares_bases and periods is None

    @abstractmethod
    def best(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> CandidateBasis | None:
        """The best of its functions; None where none suits the rows of the pilot."""


class Cells(CandidateFamily):
    """Few soft cells, which short trajectories bear.

    Of m rows p cells leave a variance in proportion to p / m, and an error of their size: the best p grows slowly.
    """

    name = "cells"

    def takes(self, wanted: SearchSpace, dimension: int, periods: Periods | None) -> bool:
        judge = wanted.operator.validation_operator
        return periods is None and judge is not None and judge.solver.two_sided

    def best(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> CandidateBasis | None:
        points = np.asarray(search.pilot.points("x"), dtype=float)
        if len(points) < LEAST_CELL_ROWS or not search.landmark.any():
            return None
        own = points[search.landmark]  # centers, too, judge nothing
        sample = own[rng.permutation(len(own))[:CELL_SAMPLE]]
        counts = sorted({max(LEAST_CELLS, round(share * np.cbrt(len(points)))) for share in COUNTS})
        drawn = [NormalizedRBF.draw(sample, p, 1.0, rng) for p in counts]

        def judged(asked: tuple[NormalizedRBF, float]) -> CandidateBasis:
            own, ratio = asked
            cells = NormalizedRBF(own.centers, ratio * own.width)
            return replace(CandidateBasis.of(cells, search, splits, f"{cells.size} soft cells"), factor=ratio)

        found = in_threads(judged, [(cells, ratio) for cells in drawn for ratio in RATIOS])
        scores = search.evaluator(splits).totals({i: own.values for i, own in enumerate(found)})
        best: CandidateBasis = found[ranked(scores)[0]]
        return best


class LinearFunctions(CandidateFamily):
    """All linear functions, of many columns: a penalty on each would hide a slow one among them."""

    name, leads = "linear functions", 1.1

    def takes(self, wanted: SearchSpace, dimension: int, periods: Periods | None) -> bool:
        lagged = periods is None and of_trajectories(wanted.operator)
        return lagged and dimension >= LEAST_COLUMNS and wanted.solver.penalty == "auto"

    def best(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> CandidateBasis | None:
        d = search.pilot.points("x").shape[1]
        if MOST_LINEAR * d > search.pilot.rows:
            return None
        basis, folds = Concatenated((ConstantBasis(d), LandmarkBasis(Linear(), np.eye(d)))), range(search.pilot.folds)
        splits = [(np.delete(folds, k), np.array([k])) for k in folds]  # half of the rows would be too few for them
        own = replace(search, landmark=np.zeros_like(search.landmark))
        with suppress(np.linalg.LinAlgError):
            return CandidateBasis.of(basis, own, splits, f"{d} linear functions", SMALL_PENALTIES)
        return None


class Lattice(CandidateFamily):
    """A Fourier lattice of the usual frequencies in the box of the pilot's rows, without the box, with its best prior.

    None where some column is constant, and where the rows fill a small part of the box.
    """

    name, ahead = "lattice", 0.01

    def takes(self, wanted: SearchSpace, dimension: int, periods: Periods | None) -> bool:
        judge = wanted.operator.validation_operator
        return wanted.compares_bases and dimension <= MOST_VARIABLES and compares_modes(judge)

    def best(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> CandidateBasis | None:
        pilot = search.pilot
        boxed = pilot_box(np.asarray(pilot.points("x"), dtype=float), periods, pilot.source.n)
        if boxed is None:
            return None
        lattice = with_method(boxed, pilot.operator)
        kept = np.flatnonzero(~lattice.domain(np.asarray(pilot.points("x"), float)))
        part, halves = merged(splits, pilot.folds)
        trial = pilot.among(kept).parted(part).trial(lattice, None, search.landmark[kept], "float64")
        penalties = (PENALTY * pilot.repeats,)
        try:
            found = prior_search(trial, halves, FAMILIES, penalties, search.space.components)
        except (UnresolvedError, np.linalg.LinAlgError):
            return None
        best = found.order[0]
        kernel = kernel_of(FAMILIES[best.family], best.factor, trial.moments)
        return CandidateBasis(
            FourierBasis(lattice.orders), found.found[best], f"lattice, {kernel}", best.factor, best.penalty
        )


# -- what is decided ---------------------------------------------------------------------------------------------------


def decide(source: Source, wanted: SearchSpace, rng: np.random.Generator) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel, landmarks, spread, penalty.

    Functions of other kinds take part where nothing of the left ones is given. Raises InvalidRowError for an invalid
    row (on_invalid="raise"), ValueError where no row is valid, or all are equal, LinAlgError where no candidate
    converges.
    """
    operator = wanted.operator
    periods = wanted.left.periods_in(source, operator) if wanted.alone else None
    pilot = Pilot.draw(source, operator.validation_operator or operator, rng, blocks=source.lagged is not None)
    advise_copies(pilot.raw["x"], source)
    if pilot.repeated is not None:
        warn_user(
            f"of {pilot.rows} rows only {pilot.distinct} differ, and equal rows tell nothing of slopes: kernels are "
            "compared at points that they did not see, so that the values are those of a smooth distribution of "
            "which the rows are rounded. Leave out columns of categories; give copies of rows once, with sample_weight",
            ReliabilityWarning,
            Rank.DATA,
        )
    search = _search(pilot, wanted, rng)
    candidates: tuple[Candidate, ...] = ()
    median, edge, undercut = search.leading.families[0].median, "", None
    why = "" if operator.validation_operator is not None else f"{operator.name} has no score"
    if not why and (pilot.rows < LEAST_ROWS or pilot.distinct < LEAST_DISTINCT or pilot.folds < 2):
        what, least = ("rows", LEAST_ROWS) if pilot.repeated is None else ("distinct rows", LEAST_DISTINCT)
        why = f"{pilot.distinct} {what} are too few, {least} at least are needed"
    if why:
        setting = Setting(0, PLAIN, search.penalties[0])
        logger.info("nothing was compared (%s): %s", why, search.leading.kernel(setting))
    else:
        splits = half_splits(pilot.folds, TIMES, rng)
        final, first, edge = search.run(splits, rng)
        setting, undercut = final.order[0], search.undercut(final)
        kinds = [
            kind for kind in CandidateFamily.family() if wanted.alone and kind.takes(wanted, source.dimension, periods)
        ]
        found = {kind: kind.best(search, splits, periods, rng) for kind in kinds}
        better, candidates = _best(search, final, {kind: own for kind, own in found.items() if own is not None})
        others = zip(first.order, search.leading.table(first, wanted.components), strict=True)
        candidates += tuple(candidate for s, candidate in others if s not in final.found)
        logger.info("chosen among %d candidates: %s", len(candidates), candidates[0].kernel)
        if better is not None:
            return Selection(candidates, better.parameters, pilot.rows, median)
    parameters: dict[str, Any] = {} if setting.penalty is None else {"solver": Regularized(setting.penalty)}
    for functions in search.sides:
        side = functions.side
        if side.landmarks is not None:
            kernel = functions.kernel(setting)
            raw = functions.family(setting).raw(kernel, side, pilot, rng, filled=pilot.repeated is None)
            spread = search.spread if side.role == Role.TRIAL else 0.0
            parameters[side.role.named("basis")] = side.given_at(raw, kernel, spread)
    return Selection(candidates, parameters, pilot.rows, median, edge, why, undercut)


def _best(
    search: LandmarkSearch, final: Search, further: Mapping[CandidateFamily, CandidateBasis]
) -> tuple[CandidateBasis | None, tuple[Candidate, ...]]:
    """Return the basis that is better than the best kernel at landmarks, if one is, and the table with all of them."""
    best, *others = search.leading.table(final, search.space.components, "compared in all splits")
    values: dict[CandidateFamily | None, Array] = {None: final.found[final.order[0]]}
    values |= {kind: own.values for kind, own in further.items()}
    scores = final.evaluator.totals(values)
    shown: dict[CandidateFamily | None, Candidate] = {None: best}
    for kind, own in further.items():
        why = f"the best {kind.name}"
        shown[kind] = Candidate.of(own.shown, own.factor, own.penalty, scores[kind], own.values, why)
    order = sorted(shown, key=lambda kind: -scores[kind] - (0.0 if kind is None else kind.ahead))
    largest = values[order[0]].mean(axis=0).max()
    order.sort(key=lambda kind: kind is None or not values[kind].mean(axis=0)[0] > kind.leads * largest)
    shown[order[0]] = replace(shown[order[0]], why="best")
    better = None if order[0] is None else further[order[0]]
    return better, (*(shown[kind] for kind in order), *others)


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """The memory of a choice for bases of `size` functions: the pilot's rows, and a trial's sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


def _half_blocks(m: int, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the numbers of half of m rows: the first or the last half of each of so many successive blocks."""
    halves = np.arange(m) * 2 * folds // m
    return np.flatnonzero(halves % 2 == rng.integers(0, 2, folds)[halves // 2])


def _search(pilot: Pilot, wanted: SearchSpace, rng: np.random.Generator) -> LandmarkSearch:
    """What is compared. Landmarks are rows of one half of the pilot: the other half judges.

    Methods that spread landmarks leave rows close to some landmark, where functions are flat: on these a basis would
    seem better than it is. Raises ValueError where all rows are equal.
    """
    operator = pilot.operator
    if pilot.source.lagged is not None:  # rows next to landmarks in time know them
        pool = _half_blocks(pilot.rows, pilot.folds, rng)
    else:
        chosen = rng.permutation(pilot.distinct)[: (pilot.distinct + 1) // 2]
        pool = np.sort(chosen) if pilot.repeated is None else np.flatnonzero(np.isin(pilot.repeated, chosen))

    def drawn(side: FunctionSpace, kernel: Kernel) -> KernelFamily:
        found = KernelFamily.of(kernel, side, pilot, rng, pool)
        if found.median == 0:
            points = pilot.points(side.view)
            raise ValueError(
                f"expected rows that differ, received {len(points)} that are all {points[0].tolist()}: a constant has "
                "no spectrum; choose other columns or rows"
            )
        return found

    def functions(side: FunctionSpace) -> CandidateFunctions:
        own, periods = side.landmarks, None if side.landmarks is None else side.periods_in(pilot.source, operator)
        kernels = () if own is None else families_of(own.kernel, max(derivative_orders(operator)), periods)
        return CandidateFunctions(side, [drawn(side, kernel) for kernel in kernels])

    left, right = functions(wanted.left), None if wanted.right is None else functions(wanted.right)
    given = wanted.solver.penalty
    penalties: Any = tuple(c * pilot.repeats for c in operator.solver.penalties) if given == "auto" else (given,)
    landmark = np.zeros(pilot.rows, dtype=bool)
    landmark[pool] = any(side.drawn for side in wanted.sides)
    return LandmarkSearch(pilot, wanted, left, right, landmark, partial(drawn, wanted.left), penalties)
