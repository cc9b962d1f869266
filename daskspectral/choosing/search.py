"""Automatic choice of functions: candidates are compared on rows of a pilot sample to which they were not fitted.

A candidate is solved on half of the folds and scored on the other half. By min-max, validation Ritz values bound the
true ones from above, for any basis, so that scores compare across kernels, scales and metrics. For symmetric operators
the score is minus the mean of log(h_i + m) over the validation values h, increased by half of the overfit
(`Trial.judged`), with the weights 1 / i and one m for all candidates. For two-sided ones it is VAMP-E
(`solve.ritz.explained`), the part of the operator on the other half that is explained by the fitted singular functions,
as many of the first ones as explain most; VAMP-2 would let them adapt to noise of that half.

The search is over scales: for each kernel a line search with few functions on few rows, then the best scale of each
with all of them. If functions have gradients, a metric is learned from those of the best candidate, as long as it
improves. Subclasses of `CandidateFamily` register themselves, and are compared if basis="auto".
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
from daskspectral.basis.nystrom import jitter_noise, jittered, select_landmarks
from daskspectral.basis.recipe import Periods
from daskspectral.basis.role import Role
from daskspectral.choosing.candidates import (
    LARGEST_FACTOR,
    Hyperparameters,
    Search,
    TrialEvaluator,
    in_threads,
    ranked,
)
from daskspectral.choosing.landmarks import FitSample, advise_copies
from daskspectral.choosing.lattice import compares_modes, pilot_box, with_method
from daskspectral.choosing.pilot import FOLDS, ROWS, Pilot
from daskspectral.choosing.spaces import FunctionSpace, SearchSpace
from daskspectral.choosing.spectral_density import FAMILIES, PENALTY, kernel_of, spectral_density_search
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
FIRST_LANDMARKS, FIRST_ROWS = 100, 2000  # of the line search
START = 0.5  # first scale in median distances
NARROWER = 0.5**0.5  # relative to the best scale of few functions: more functions allow it
KERNELS = 2  # without a metric
BEHIND, MANY = 0.05, 1000  # largest difference of a finalist's score with few functions, for at least MANY rows
SPREAD = 0.3  # jitter J of functions whose gradients contribute
STEPS = 2  # iterations of learning a metric
FLAT = 0.05  # relative to the last value: smaller values have equal weights in a metric
STRETCH = 0.01  # least root of a metric relative to its largest
ROUND = 0.9  # least root relative to the largest above which a metric is not tried
DIGITS = 4  # of a metric
DIRECTIONS = 20  # of a metric: the leading ones, if there are more columns
DENSE_COLUMNS = 300  # above which leading directions are computed in a random subspace
POWERS, OVERSAMPLED = 4, 10  # power iterations, and additional directions
SAMPLE, SAMPLE_ENTRIES = 1000, 500_000  # rows at which gradients are evaluated, and their coordinates
LEAST_ROWS, LEAST_DISTINCT = 40, 20  # of a pilot, and of distinct ones: with fewer, candidates are not compared
SMALL_PENALTIES = (1e-6, 0.01)  # of linear functions
PLAIN = 0.5  # relative to the median distance, without a comparison
BLOCK_ROWS = 2048  # of buffers of basis functions

MOST_VARIABLES = 3  # of a lattice
COUNTS = (0.5, 0.75, 1.0, 1.5)  # numbers of centers, times the cube root of the number of rows
RATIOS = (0.7, 1.0, 1.5)  # of the width to the distance of neighboring centers
LEAST_CELLS, LEAST_CELL_ROWS = 5, 100
LEAST_COLUMNS, MOST_LINEAR = 10, 4  # least columns for linear functions, and least rows for each column
CELL_SAMPLE = 2000  # rows from which centers are computed


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """Kernel of open scale with the median distance in its metric and landmarks (p, d), possibly rows.

    `noise` is the displacement of landmarks by their number.
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
        """Return a kernel at the landmarks of a side, or at rows of the pilot: of a `pool`, or of all.

        The median distance is 0 if all rows are equal.
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
            self.noise[len(points)] = jitter_noise(points)
        return jittered(points, kernel, spread, self.noise.get(len(points)))

    def raw(
        self, kernel: Kernel, side: FunctionSpace, pilot: Pilot, rng: np.random.Generator, *, filled: bool = False
    ) -> Array:
        """Return the landmarks in the columns of the data, chosen by the kernel if the method requires it.

        `filled` adds other rows of the pilot, up to the requested number.
        """
        landmarks, rows = side.drawing, self.rows
        if rows is None:
            return FitSample(pilot.source, side.view).given(landmarks.points)
        count = min(side.drawn, pilot.rows)
        if landmarks.method in BY_KERNEL:
            rows = select_landmarks(landmarks.method, pilot.points(side.view), count, kernel, rng)
        others = np.setdiff1d(np.arange(pilot.rows), rows)[: count - len(rows)] if filled else rows[:0]
        return np.asarray(pilot.raw[side.view][np.concatenate([rows, others])])


@dataclass(frozen=True, eq=False)
class CandidateFunctions:
    """Functions of one side: fixed ones, or those of families."""

    side: FunctionSpace
    families: list[KernelFamily] = field(default_factory=list)

    def family(self, setting: Hyperparameters) -> KernelFamily:
        """Return the family of a candidate; a single one is that of all."""
        return self.families[min(setting.family, len(self.families) - 1)]

    def kernel(self, setting: Hyperparameters) -> Kernel:
        family = self.family(setting)
        return family.kernel.resolve(family.median).resolve(setting.factor * family.median, "auto")

    def table(self, search: Search, count: int | None = None, why: str = "") -> tuple[Candidate, ...]:
        """Return the candidates of a search for the table, with `count` values and the remark `why`."""
        scores, failed = search.scores, getattr(search.evaluator, "failed", {})
        return tuple(
            Candidate.of(
                str(self.kernel(s)), s.factor, s.penalty, scores[s], search.found[s][:, :count], failed.get(s, why)
            )
            for s in search.order
        )

    def of(self, setting: Hyperparameters, size: int, spread: float) -> Basis:
        """Return the basis of a candidate with the first `size` landmarks."""
        if isinstance(self.side.recipe, Basis):
            return self.side.completed(self.side.recipe)
        kernel = self.kernel(setting)
        points = self.family(setting).moved(kernel, size, spread)
        return self.side.completed(self.side.recipe.finished(LandmarkBasis(kernel, points, centered=True)))


@dataclass(frozen=True, eq=False)
class LandmarkSearch:
    """Search over kernels at landmarks, in the `space` of open parameters.

    `left` and `right` are the functions of both sides, `right` only if they differ. `landmark` (m,) marks the rows of
    the pilot from which landmarks are chosen, and `drawn` returns the family of a kernel on the left. `penalties` are
    the values of c that are tried. `size` is the number of functions at landmarks.
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
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def slopes(self) -> bool:
        """Return whether gradients of functions in the space of the data contribute."""
        landmarks, operator = self.space.left.landmarks, self.operator
        still = not any(derivative_orders(operator)) or self.right is not None
        still |= isinstance(operator, Laplacian) and operator.manifold is not None
        return landmarks is not None and landmarks.periods is None and not still

    @property
    def spread(self) -> float:
        """Jitter J of the landmarks, in scales of the kernel."""
        landmarks = self.space.left.landmarks
        if landmarks is not None and landmarks.jitter != "auto":
            return float(landmarks.jitter)
        return SPREAD if self.slopes else 0.0

    @property
    def metrics(self) -> bool:
        landmarks, first = self.space.left.landmarks, max(derivative_orders(self.operator)) == 1
        return self.slopes and first and landmarks is not None and landmarks.kernel == "auto"

    @property
    def leading(self) -> CandidateFunctions:
        return self.left if self.right is None or len(self.left.families) > 0 else self.right

    def evaluator(
        self,
        splits: Sequence[Split],
        trial: Callable[[Pilot, Hyperparameters], Trial] | None = None,
        penalties: Any = None,
    ) -> TrialEvaluator:
        """Return an evaluator of bases on the pilot in some splits: of candidates, or by `trial`."""
        part, halves = merged(splits, self.pilot.folds)
        pilot, components, kind = self.pilot.with_merged_folds(part), self.space.components, self.operator.solver
        measured = partial(trial or self._trial, pilot)
        return TrialEvaluator(measured, halves, penalties or self.penalties, kind, components)

    def _trial(self, pilot: Pilot, setting: Hyperparameters) -> Trial:
        basis = self.left.of(setting, self.size, self.spread)
        right = None if self.right is None else self.right.of(setting, self.size, 0.0)
        return pilot.trial(basis, right, self.landmark, self.space.dtype)

    def run(self, splits: Sequence[Split], rng: np.random.Generator) -> tuple[Search, Search, str]:
        """Return the finalists, all candidates with few functions, and the boundary of the scales.

        The best scale of each kernel, and the best metric, are compared in all splits. Raises LinAlgError if no
        candidate converges.
        """
        thinned = self._thinned(rng)
        first = Search(thinned.evaluator(splits[:2], penalties=self.penalties[:1]))
        for family in range(len(self.leading.families)):
            self._line_search(first, family, START)
        for _ in range(STEPS if self.metrics else 0):
            best, newest = first.order[0], len(self.left.families) - 1
            if (newest >= KERNELS and best.family != newest) or not thinned._learned(best):
                break
            self._line_search(first, newest + 1, min(best.factor, LARGEST_FACTOR / 2))
        leaders = self._leaders(first)
        final = Search(evaluator := self.evaluator(splits))
        final.judge(leaders.values())
        best = final.order[0]
        if self.leading.family(best).kernel.automatic:
            final.judge([replace(best, factor=NARROWER * best.factor)])
        if len(evaluator.failed) == len(final.found):
            failures = (f"{self.leading.kernel(s)}, penalty {s.penalty}: {why}" for s, why in evaluator.failed.items())
            raise np.linalg.LinAlgError("\n".join(["no candidate converged:", *failures]))
        return final, first, first.at_search_boundary(final.order[0])

    def _leaders(self, first: Search) -> dict[int, Hyperparameters]:
        """Return the best scale of each kernel and the best metric, without those far behind the best."""
        best = {min(s.family, KERNELS): s for s in reversed(first.order)}
        if self.operator.solver.two_sided or self.pilot.rows < MANY:
            return best
        scores = first.scores
        least = max(scores.values()) - BEHIND
        return {family: s for family, s in best.items() if scores[s] >= least}

    def _line_search(self, search: Search, family: int, start: float) -> None:
        """Evaluate scales next to `start`, and further ones while the last one is the best."""
        open_scale = self.leading.family(Hyperparameters(family, start)).kernel.automatic
        search.line_search(family, [start / 2, start, 2 * start] if open_scale else [start])

    def _learned(self, setting: Hyperparameters) -> bool:
        """Add a kernel in the metric of a candidate's first functions; return whether it was possible.

        The functions are of rows from which landmarks are chosen, which are not validation rows. The metric is the mean
        outer product of their gradients; slow functions have the largest weights, (λ + λ_k / 20)^-3 for the values λ_1
        to λ_k.
        """
        basis = self.left.of(setting, self.size, self.spread)
        core = basis.landmark_parts[-1]
        if basis.boundaries or core.dimension < 2 or not self.landmark.any():
            return False
        pilot = self.pilot.among(self.landmark)
        everywhere = pilot.with_merged_folds(np.zeros(pilot.folds, dtype=np.int64))
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
        size, rows = min(FIRST_LANDMARKS, self.size), FIRST_ROWS
        if self.pilot.rows <= rows:
            return replace(self, size=size)
        pilot, chosen = self.pilot.thinned(rows, self.landmark, rng)
        return replace(self, pilot=pilot, landmark=self.landmark[chosen], size=size)

    def finalist_gap(self, final: Search) -> Array | None:
        """Return the least values of other finalists relative to the best, (k,)."""
        best, *others = (final.found[s][:, : self.space.components] for s in final.order)
        return self.operator.solver.finalist_gap(best, others)


def metric_of(slopes: Array) -> Array | None:
    """Return the root A of the metric of gradients (c, k, d): A Aᵀ is their mean outer product, up to a factor.

    A is (d, d), with roots of at least `STRETCH` of the largest one, or (d, e) for the e leading of many directions.
    None if all gradients vanish, or few directions have nearly equal roots. Entries are rounded to few digits, so that
    results do not depend on the last bits.
    """
    if slopes.shape[-1] <= DIRECTIONS:
        values, vectors = np.linalg.eigh(np.einsum("cka,ckb->ab", slopes, slopes))
    else:
        values, vectors = leading_directions(slopes.reshape(-1, slopes.shape[-1]), DIRECTIONS)
    if not values[-1] > 0:
        return None
    if slopes.shape[-1] <= DIRECTIONS:
        if values[0] > ROUND**2 * values[-1]:
            return None
        found = (vectors * np.sqrt(np.maximum(values / values[-1], STRETCH**2))) @ vectors.T
    else:
        kept = values > STRETCH**2 * values[-1]
        found = vectors[:, kept] * np.sqrt(values[kept] / values[-1])
    return np.asarray(np.round(found, DIGITS))


def leading_directions(rows: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of rowsᵀ rows, ascending, and vectors (d, count) of fixed signs."""
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
    """Return the kernels to compare: a fixed one, or a rough and a smooth one with enough derivatives."""
    if kernel == "auto":
        rough = next(Matern(nu, "auto") for nu in (1.5, 2.5, 3.5, 4.5, 5.5) if Matern(nu, 1.0).order >= order + 1)
        found: tuple[Any, ...] = (rough, Gaussian("auto"))
    else:
        found = (kernel,)
    return found if periods is None else tuple(Periodic(k, periods) if k.flat is k else k for k in found)


# -- other functions ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CandidateBasis:
    """Best functions of a family, with their validation `values` (splits, k).

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
        """Return a fixed basis, fitted and scored at the best of some penalties."""

        def trial(pilot: Pilot, _: Hyperparameters) -> Trial:
            return pilot.trial(basis, None, search.landmark, "float64")

        evaluator = search.evaluator(splits, trial, penalties)
        found = evaluator.scores(Hyperparameters(0, 1.0))
        best = ranked(evaluator.totals(found))[0]
        return cls(basis, found[best], shown, penalty=best.penalty if len(penalties) > 1 else None)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator that reproduce it."""
        return {"basis": self.basis, **({} if self.penalty is None else {"solver": Regularized(self.penalty)})}


class CandidateFamily(ABC):
    """Family of functions that are candidates in addition to kernels at landmarks.

    `ahead` is added to its scores, such as 0.01 if its pass over all rows is much faster. It is chosen independently of
    the scores if its first value is `leads` times that of the best scores.
    """

    name: ClassVar[str]
    ahead: ClassVar[float] = 0.0
    leads: ClassVar[float] = np.inf

    @classmethod
    def family(cls) -> list[CandidateFamily]:
        return [kind() for kind in cls.__subclasses__()]

    def takes(self, wanted: SearchSpace, dimension: int, periods: Periods | None) -> bool:
        """Return whether it is compared for these open parameters and number of columns."""
        return wanted.compares_bases and periods is None

    @abstractmethod
    def best(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> CandidateBasis | None:
        """Return the best of its functions; None if none is suitable for the rows of the pilot."""


class Cells(CandidateFamily):
    """Few normalized RBFs, for short trajectories.

    With m rows p functions have a variance proportional to p / m, and an error of their width: the best p increases
    slowly.
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
        pool = points[search.landmark]  # centers are not validation rows
        sample = pool[rng.permutation(len(pool))[:CELL_SAMPLE]]
        counts = sorted({max(LEAST_CELLS, round(share * np.cbrt(len(points)))) for share in COUNTS})
        drawn = [NormalizedRBF.draw(sample, p, 1.0, rng) for p in counts]

        def judged(asked: tuple[NormalizedRBF, float]) -> CandidateBasis:
            unscaled, ratio = asked
            cells = NormalizedRBF(unscaled.centers, ratio * unscaled.width)
            return replace(CandidateBasis.of(cells, search, splits, f"{cells.size} normalized RBFs"), factor=ratio)

        found = in_threads(judged, [(cells, ratio) for cells in drawn for ratio in RATIOS])
        scores = search.evaluator(splits).totals({i: candidate.values for i, candidate in enumerate(found)})
        best: CandidateBasis = found[ranked(scores)[0]]
        return best


class LinearFunctions(CandidateFamily):
    """All linear functions, for many columns, because a penalty on each would hide a slow one."""

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
        splits = [(np.delete(folds, k), np.array([k])) for k in folds]  # half of the rows would be too few
        everywhere = replace(search, landmark=np.zeros_like(search.landmark))
        with suppress(np.linalg.LinAlgError):
            return CandidateBasis.of(basis, everywhere, splits, f"{d} linear functions", SMALL_PENALTIES)
        return None


class Lattice(CandidateFamily):
    """Fourier lattice of the usual frequencies on the box of the pilot, with its best spectral density.

    None if a column is constant, or if the rows fill a small part of the box. The box is not part of the choice.
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
        trial = pilot.among(kept).with_merged_folds(part).trial(lattice, None, search.landmark[kept], "float64")
        penalties = (PENALTY * pilot.repeats,)
        try:
            found = spectral_density_search(trial, halves, FAMILIES, penalties, search.space.components)
        except (UnresolvedError, np.linalg.LinAlgError):
            return None
        best = found.order[0]
        kernel = kernel_of(FAMILIES[best.family], best.factor, trial.moments)
        return CandidateBasis(
            FourierBasis(lattice.orders), found.found[best], f"lattice, {kernel}", best.factor, best.penalty
        )


# -- decision ---------------------------------------------------------------------------------------------------


def decide(source: Source, wanted: SearchSpace, rng: np.random.Generator) -> Selection:
    """Return the table of candidates, and the chosen parameters: kernel, landmarks, jitter, penalty.

    Other families participate if the left functions are completely open. Raises InvalidRowError for an invalid row
    (on_invalid="raise"), ValueError if no row is valid, or all are equal, and LinAlgError if no candidate converges.
    """
    operator = wanted.operator.validation_operator or wanted.operator
    with Pilot.draw(source, operator, rng, blocks=source.lagged is not None).counted() as pilot:
        return _decided(pilot, source, wanted, rng)


def _decided(pilot: Pilot, source: Source, wanted: SearchSpace, rng: np.random.Generator) -> Selection:
    operator = wanted.operator
    periods = wanted.left.periods_in(source, operator) if wanted.is_open else None
    advise_copies(pilot.raw["x"], source)
    if pilot.repeated is not None:
        warn_user(
            f"of {pilot.rows} rows only {pilot.distinct} differ, and equal rows contain no information on slopes: "
            "kernels are compared at distinct points, so that the values are those of a smooth distribution from which "
            "the rows are rounded. Drop columns of categories; replace copies of rows by sample_weight",
            ReliabilityWarning,
            Rank.DATA,
        )
    search = _search(pilot, wanted, rng)
    candidates: tuple[Candidate, ...] = ()
    median, edge, finalist_gap = search.leading.families[0].median, "", None
    why = "" if operator.validation_operator is not None else f"{operator.name} has no score"
    if not why and (pilot.rows < LEAST_ROWS or pilot.distinct < LEAST_DISTINCT or pilot.folds < 2):
        what, least = ("rows", LEAST_ROWS) if pilot.repeated is None else ("distinct rows", LEAST_DISTINCT)
        why = f"at least {least} {what} are required, got {pilot.distinct}"
    if why:
        setting = Hyperparameters(0, PLAIN, search.penalties[0])
        logger.info("candidates were not compared (%s): %s", why, search.leading.kernel(setting))
    else:
        splits = half_splits(pilot.folds, TIMES, rng)
        final, first, edge = search.run(splits, rng)
        setting, finalist_gap = final.order[0], search.finalist_gap(final)
        kinds = [
            kind
            for kind in CandidateFamily.family()
            if wanted.is_open and kind.takes(wanted, source.dimension, periods)
        ]
        found = {kind: kind.best(search, splits, periods, rng) for kind in kinds}
        better, candidates = _best(search, final, {kind: basis for kind, basis in found.items() if basis is not None})
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
            parameters[side.role.named("basis")] = side.basis_argument(raw, kernel, spread)
    return Selection(candidates, parameters, pilot.rows, median, edge, why, finalist_gap)


def _best(
    search: LandmarkSearch, final: Search, further: Mapping[CandidateFamily, CandidateBasis]
) -> tuple[CandidateBasis | None, tuple[Candidate, ...]]:
    """Return the basis that is better than the best kernel at landmarks, or None, and the table of all."""
    best, *others = search.leading.table(final, search.space.components, "compared in all splits")
    values: dict[CandidateFamily | None, Array] = {None: final.found[final.order[0]]}
    values |= {kind: basis.values for kind, basis in further.items()}
    scores = final.evaluator.totals(values)
    shown: dict[CandidateFamily | None, Candidate] = {None: best}
    for kind, basis in further.items():
        why = f"the best {kind.name}"
        shown[kind] = Candidate.of(basis.shown, basis.factor, basis.penalty, scores[kind], basis.values, why)
    order = sorted(shown, key=lambda kind: -scores[kind] - (0.0 if kind is None else kind.ahead))
    slowest = {kind: found.mean(axis=0)[0] for kind, found in values.items()}
    first = slowest[order[0]]
    order.sort(key=lambda kind: kind is None or not slowest[kind] > kind.leads * first)
    shown[order[0]] = replace(shown[order[0]], why="best")
    better = None if order[0] is None else further[order[0]]
    return better, (*(shown[kind] for kind in order), *others)


def pilot_bytes(source: Source, operator: Operator, size: int) -> int:
    """Return the memory of a choice for `size` functions: rows of the pilot, and sums on each thread."""
    rows, p = min(ROWS, source.n), min(size, TRIAL_LANDMARKS + 1)
    sums = 2 if operator.right_gram is None else 3
    trial = 8 * p * p * sums * (2 * FOLDS + 4)
    return 3 * rows * source.row_bytes + local_threads() * (trial + 8 * p * BLOCK_ROWS * 6)


def _half_blocks(m: int, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the numbers of half of m rows: the first or last half of each of `folds` successive blocks."""
    folds = min(folds, max(m // 2, 1))  # a row in each half
    halves = np.arange(m) * 2 * folds // m
    return np.flatnonzero(halves % 2 == rng.integers(0, 2, folds)[halves // 2])


def _search(pilot: Pilot, wanted: SearchSpace, rng: np.random.Generator) -> LandmarkSearch:
    """Return the search, with landmarks in one half of the pilot and validation rows in the other.

    On rows close to a landmark, at which functions are flat, a basis would seem better than it is. Raises ValueError if
    all rows are equal.
    """
    operator = pilot.operator
    if pilot.source.lagged is not None:  # rows next to landmarks in time are correlated with them
        pool = _half_blocks(pilot.rows, pilot.folds, rng)
    else:
        chosen = rng.permutation(pilot.distinct)[: (pilot.distinct + 1) // 2]
        pool = np.sort(chosen) if pilot.repeated is None else np.flatnonzero(np.isin(pilot.repeated, chosen))

    def drawn(side: FunctionSpace, kernel: Kernel) -> KernelFamily:
        found = KernelFamily.of(kernel, side, pilot, rng, pool)
        if found.median == 0:
            points = pilot.points(side.view)
            raise ValueError(
                f"rows must differ, but all {len(points)} are {points[0].tolist()}. Select other columns or rows"
            )
        return found

    def functions(side: FunctionSpace) -> CandidateFunctions:
        landmarks, periods = side.landmarks, None if side.landmarks is None else side.periods_in(pilot.source, operator)
        kernels = () if landmarks is None else families_of(landmarks.kernel, max(derivative_orders(operator)), periods)
        return CandidateFunctions(side, [drawn(side, kernel) for kernel in kernels])

    left, right = functions(wanted.left), None if wanted.right is None else functions(wanted.right)
    given = wanted.solver.penalty
    penalties: Any = tuple(c * pilot.repeats for c in operator.solver.penalties) if given == "auto" else (given,)
    landmark = np.zeros(pilot.rows, dtype=bool)
    landmark[pool] = any(side.drawn for side in wanted.sides)
    return LandmarkSearch(pilot, wanted, left, right, landmark, partial(drawn, wanted.left), penalties)
