"""The automatic choice of kernel, scale, penalty and landmarks: candidates are compared on rows they did not see.

A candidate is solved on half of a pilot's folds and judged on the other half, in six half splits at most. By
min-max, held-out Ritz values bound the true ones from above, for any basis, so that scores compare across kernels,
scales and landmarks. For symmetric operators the score is minus the mean of log(h_i + m) over the held-out values h,
with one m for all candidates. For two-sided ones it is VAMP-E (`solve.ritz.explained`), what the fitted singular
functions explain of the operator on the other half; VAMP-2 would let them follow accidents of that half, most of all
functions that are large on few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.engine.memory import local_threads
from daskspectral.engine.threads import one_blas_thread
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from daskspectral.moments.trial import Split, energy_scores, merged, ranked
from daskspectral.operators import Operator
from daskspectral.passes.landmarks import moved
from daskspectral.passes.pilot import Pilot
from daskspectral.passes.selection import Candidate

Array = NDArray[np.floating[Any]]

TRIAL_LANDMARKS = 300
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0)
LEAST_FACTOR, LARGEST_FACTOR = 1 / 128, 4.0
PENALTIES = (1.0, 0.01, 100.0)
SPREADS = (0.3, 1.0)
FINALISTS = 4
LEADERS = 3  # kernels and scales of which all spreads and penalties are tried
FINER = 2  # steps between the scales of the grid
TIMES = 3  # permutations of the folds, two splits each
THINNED = 4000  # rows of the first comparisons
COUNT, MOST_COUNTED = 16, 24  # values that are compared; of symmetric operators the same up to 24 components


@dataclass(frozen=True)
class Setting:
    """One way to discretise: a kernel by its place in the families, its scale in median distances, J, c."""

    family: int
    factor: float
    spread: float = 0.0
    penalty: float | None = 1.0


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions of one side on trial: those of a `basis` that is given, or of kernels at `points` (p, d).

    `families` are kernels with the scale "auto", or one that is given; `median` is the median distance of the points.
    `laid` puts functions at landmarks into the basis that is used, `constant` adds the constant function.
    """

    families: tuple[Kernel, ...]
    points: Array
    median: float
    laid: Callable[[Basis], Basis]
    constant: bool
    basis: Basis | None = None

    @property
    def automatic(self) -> bool:
        """Whether settings tell these functions apart."""
        return self.basis is None and self.families[0].automatic

    def kernel(self, setting: Setting) -> Kernel:
        """The kernel of a setting; of one family there is the same kernel for all."""
        kernel = self.families[min(setting.family, len(self.families) - 1)]
        return kernel.resolve(self.median).resolve(setting.factor * self.median, "auto")

    def of(self, setting: Setting) -> Basis:
        """The basis of a setting."""
        if self.basis is not None:
            return self.basis
        kernel = self.kernel(setting)
        basis = self.laid(LandmarkBasis(kernel, moved(self.points, kernel, setting.spread)))
        return Concatenated((ConstantBasis(basis.dimension), basis)) if self.constant else basis


@dataclass(frozen=True, eq=False)
class Search:
    """What is compared, and what is given.

    `left` and `right` are the functions of both sides, `right` is None where they are the same. `landmark` (m,) marks
    the rows of the pilot that had part in the choice of landmarks. `penalties` and `spreads` are the values of c and J
    that may be tried, one of each where it is given.
    """

    pilot: Pilot
    left: Functions
    right: Functions | None
    landmark: NDArray[np.bool_]
    penalties: tuple[float | None, ...]
    spreads: tuple[float, ...]
    components: int
    dtype: str
    factors: tuple[float, ...] = FACTORS

    @property
    def operator(self) -> Operator:
        return self.pilot.operator

    @property
    def count(self) -> int:
        """How many values are compared."""
        several = self.components > MOST_COUNTED or self.operator.solver.two_sided
        return max(COUNT, self.components) if several else COUNT

    @property
    def families(self) -> int:
        """How many kernels are compared."""
        return max(len(side.families) for side in (self.left, self.right) if side is not None)

    @property
    def leading(self) -> Functions:
        """The functions whose kernel stands for a candidate."""
        return self.left if self.left.automatic or self.right is None else self.right

    def run(self, splits: Sequence[Split], rng: np.random.Generator) -> tuple[list[tuple[Setting, Array]], str]:
        """The settings with their held-out values, finalists first; and "scale" where the best is the last tried.

        Kernels, scales and spreads are compared on a part of the pilot, then penalties and finer scales of the best
        ones; the finalists are compared on the whole pilot in all splits.
        """
        part = self._thinned(rng)
        found: dict[Setting, Array] = {}

        def compare(settings: Iterable[Setting]) -> None:
            found.update(part.judge([s for s in settings if s not in found], splits[:2]))

        first, families = self.penalties[0], range(self.families)
        far = self.spreads[:1] + self.spreads[-1:]
        compare(Setting(i, f, j, first) for i in families for f in self.factors for j in dict.fromkeys(far))
        self._outwards(found, compare)
        for leader in self._distinct(found)[:LEADERS]:
            compare(replace(leader, spread=j, penalty=c) for j in self.spreads for c in self.penalties)
        self._finer(found, compare)
        finalists = self.ranked(found)[:FINALISTS]
        final = self.judge(finalists, splits)
        order = self.ranked(final)
        tried = [s.factor for s in found if s.family == order[0].family]
        edge = "scale" if len(self.factors) > 1 and order[0].factor in (min(tried), max(tried)) else ""
        return [(s, final[s]) for s in order] + [(s, found[s]) for s in self.ranked(found) if s not in final], edge

    def _outwards(self, found: dict[Setting, Array], compare: Callable[[Iterable[Setting]], None]) -> None:
        """Further scales while the best one is the last that was tried."""
        while len(self.factors) > 1:
            best = self.ranked(found)[0]
            tried = [s.factor for s in found if s.family == best.family and s.spread == best.spread]
            if best.factor not in (min(tried), max(tried)):
                return
            factor = best.factor / 2 if best.factor == min(tried) else 2 * best.factor
            if not LEAST_FACTOR <= factor <= LARGEST_FACTOR:
                return
            compare([replace(best, factor=factor)])

    def _finer(self, found: dict[Setting, Array], compare: Callable[[Iterable[Setting]], None]) -> None:
        """Scales between those of the grid, as long as they are better."""
        for _ in range(FINER if len(self.factors) > 1 else 0):
            best = self.ranked(found)[0]
            near = [
                f for f in (_step(best.factor, -0.5), _step(best.factor, 0.5)) if LEAST_FACTOR <= f <= LARGEST_FACTOR
            ]
            compare(replace(best, factor=f, penalty=c) for f in near for c in self.penalties)
            if self.ranked(found)[0].factor == best.factor:
                return

    def _distinct(self, found: dict[Setting, Array]) -> list[Setting]:
        """The best setting of each kernel, then of each kernel and scale, best first."""
        order = self.ranked(found)
        by_family = {s.family: s for s in reversed(order)}
        by_scale = {(s.family, s.factor): s for s in reversed(order)}
        both = sorted(by_family.values(), key=order.index) + sorted(by_scale.values(), key=order.index)
        return list(dict.fromkeys(both))

    def _thinned(self, rng: np.random.Generator) -> Search:
        """The same search on fewer rows of the pilot."""
        if self.pilot.rows <= THINNED:
            return self
        pilot, rows = self.pilot.thinned(THINNED, self.landmark, rng)
        return replace(self, pilot=pilot, landmark=self.landmark[rows])

    def judge(self, settings: Iterable[Setting], splits: Sequence[Split]) -> dict[Setting, Array]:
        """The held-out values (splits, k) of each setting; those of one basis are measured together."""
        groups: dict[Setting, list[Setting]] = {}
        for setting in dict.fromkeys(settings):
            groups.setdefault(replace(setting, penalty=None), []).append(setting)
        parts = in_threads(lambda group: self._judge(group, splits), groups.values())
        return {s: values for part in parts for s, values in part.items()}

    def _judge(self, settings: Sequence[Setting], splits: Sequence[Split]) -> dict[Setting, Array]:
        basis = self.left.of(settings[0])
        right = None if self.right is None else self.right.of(replace(settings[0], spread=0.0))
        part, halves = merged(splits, self.pilot.folds)
        trial = self.pilot.parted(part).trial(basis, right, self.landmark, self.dtype)
        found = trial.judged(halves, self.count, [s.penalty for s in settings])
        return dict(zip(settings, found, strict=True))

    def ranked(self, found: dict[Setting, Array]) -> list[Setting]:
        """The settings, best first."""
        return ranked(self.scores(found))

    def scores(self, found: Mapping[Any, Array]) -> dict[Any, float]:
        """The scores of held-out values (splits, k): larger is better."""
        if self.operator.solver.two_sided:
            shares = {s: h[:, : self.components] * np.abs(h[:, : self.components]) for s, h in found.items()}
            return {s: float(np.mean(np.sum(share, axis=1))) for s, share in shares.items()}
        return energy_scores(found)

    def table(self, judged: Sequence[tuple[Setting, Array]]) -> tuple[Candidate, ...]:
        """The candidates as they are shown."""
        scores = self.scores(dict(judged))
        rows = []
        for place, (s, values) in enumerate(judged):
            why = "best" if not place else "compared in all splits" if len(values) > 2 else ""
            shown = np.where(np.isfinite(values), values, np.nan)
            mean = np.array([np.nan if np.isnan(v).any() else v.mean() for v in shown.T])[: self.components]
            rows.append(
                Candidate(str(self.leading.kernel(s)), s.factor, s.spread, s.penalty, scores[s], mean, len(values), why)
            )
        return tuple(rows)


def families_of(
    kernel: Kernel | str | None, operator: Operator, periods: tuple[float | None, ...] | None
) -> tuple[Kernel, ...]:
    """The kernels to compare: the given one, or a rough and a smooth one of enough derivatives, their scales open."""
    if isinstance(kernel, Kernel):
        found: tuple[Kernel, ...] = (kernel,)
    else:
        order = operator.derivative_order
        rough = next(Matern(nu, "auto") for nu in (1.5, 2.5, 3.5, 4.5, 5.5) if Matern(nu, 1.0).order >= order + 1)
        found = (rough, Gaussian("auto"))
    if periods is None or isinstance(kernel, Periodic):
        return found
    return tuple(Periodic(k, periods) for k in found)


def _step(factor: float, octaves: float) -> float:
    """A scale so many octaves further, the same bits by whatever steps it is reached."""
    return float(np.exp2(np.round(2 * (np.log2(factor) + octaves)) / 2))


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The results in the order of the items, each item on a thread with one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(local_threads()) as pool:
        return list(pool.map(function, items))
