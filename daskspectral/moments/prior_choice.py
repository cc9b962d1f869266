"""The choice of a lattice's prior after the pass: kernels, scales, penalties and cutoffs, compared by the folds alone.

A candidate is solved on the modes of half of the folds and judged on the other half, as in `moments.trial`; no row is
read again, and the same moments may be solved anew with any other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.basis.prior import WeighedLattice
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from daskspectral.moments.counting import counted_rows, repeats
from daskspectral.moments.folds import Folds
from daskspectral.moments.lattice import Weighed, expanded, lattice_of, precision_of
from daskspectral.moments.lattice_large import shrunk_orders
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import Posed
from daskspectral.moments.trial import Split, Trial, energy_scores, half_splits, merged, ranked
from daskspectral.operators import Operator
from daskspectral.solve.penalised import ritz_size

Array = NDArray[np.floating[Any]]

FAMILIES: tuple[Kernel, ...] = (Matern(1.5, "auto"), Gaussian("auto"))
FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
LEAST_FACTOR, LARGEST_FACTOR = 1 / 128, 2.0
PENALTIES = (1.0, 10.0, 0.1, 100.0, 0.01)
MOST_PENALTIES = 8  # of a kernel: down to 1e-5
NEAR_ZERO = 0.1  # of the last value
GROUPS = 10  # of folds, by which it is told on how many rows a function rests
UNCOMPARED = 10.0  # the penalty where nothing can be compared: at 1 a few rows in the tails have values near 0
UNIT = 0.1  # of the longest period: the scale where nothing can be compared
TRIED = 750  # functions of the lattices that are compared
SPAN = 160  # leading functions in which candidates are compared
FINALISTS, MOST_FINALISTS = 3, 12
FAR_BEHIND = 5e-3  # of scores: where finalists are worse than others seemed, these are compared too
TIMES = 3  # permutations of the folds, two splits each
LEAST_FOLDS = 4
COUNT, MOST_COUNTED = 16, 24
LEAST_CUTOFF = 0.5
LEAST_GAP = 0.7  # of the frequencies that stand for all of them: fewer are another lattice
TIE = 1e-3  # of scores, below which fewer frequencies are no better


@dataclass(frozen=True)
class Prior:
    """A kernel by its place in the families, its scale in periods, c of the penalty, the share of the frequencies."""

    family: int
    factor: float
    penalty: float
    cutoff: float = 1.0


@dataclass(frozen=True, eq=False)
class Chosen:
    """The prior that was taken, the candidates with scores and held-out values (splits, k), and why none, if none."""

    families: tuple[Kernel, ...]
    prior: Prior
    table: tuple[tuple[Prior, float, Array], ...] = ()
    edge: bool = False
    reason: str = ""

    def kernel(self, prior: Prior, moments: Moments) -> Kernel:
        """The kernel of a candidate."""
        return kernel_of(self.families[prior.family], prior.factor, moments)


@dataclass(frozen=True, eq=False)
class PriorSearch:
    """What is compared: `families` of kernels with open scales, or one given, `penalties`, by the folds of moments.

    Rows `aside`, by fold, are fitted to and never judged on. The `splits` are half splits of the folds.
    """

    moments: Moments
    operator: Operator
    families: tuple[Kernel, ...]
    penalties: tuple[float, ...]
    count: int
    threads: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
    aside: Folds | None = None
    splits: Sequence[Split] | None = None
    known: dict[Any, Any] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)

    def run(self) -> Chosen:
        """The best prior; finalists come first in its table."""
        assert self.moments.folds is not None
        splits = self.splits or half_splits(self.moments.folds.number, TIMES, np.random.default_rng(0))
        found: dict[Prior, Array] = {}

        def compare(kernels: Iterable[tuple[int, float]]) -> None:
            for part in self.threads(lambda k: self.judged(k[0], k[1], 1.0, self.penalties, splits[:2]), kernels):
                found.update(part)

        open_scales = self.families[0].automatic
        compare((k, f) for k in range(len(self.families)) for f in (FACTORS if open_scales else (1.0,)))
        edge = False
        while open_scales:
            best = self.ranked(found)[0]
            tried = [s.factor for s in found if s.family == best.family]
            beyond = best.factor / 2 if best.factor == min(tried) else 2 * best.factor
            if best.factor not in (min(tried), max(tried)):
                break
            edge = not LEAST_FACTOR <= beyond <= LARGEST_FACTOR
            if edge:
                break
            compare([(best.family, beyond)])
        while len(self.penalties) > 1:
            best = self.ranked(found)[0]
            tried = [s.penalty for s in found if (s.family, s.factor) == (best.family, best.factor)]
            if best.penalty > min(tried) or len(tried) >= MOST_PENALTIES:
                break
            found.update(self.judged(best.family, best.factor, 1.0, (0.1 * best.penalty,), splits[:2]))
        order = self.ranked(found)
        finalists = self._resting(order, found, order[:FINALISTS])
        final: dict[Prior, Array] = {}
        kernels = list(dict.fromkeys((s.family, s.factor) for s in finalists))
        tasks = [(*k, 1.0) for k in kernels]
        if comparable_cutoff(lattice_of(self.moments).orders, LEAST_CUTOFF):
            tasks.append((*kernels[0], LEAST_CUTOFF))

        def judge(task: tuple[int, float, float]) -> dict[Prior, Array]:
            own = tuple(s.penalty for s in finalists if (s.family, s.factor) == task[:2])
            return self.judged(*task, own, splits)

        for part in self.threads(judge, tasks):
            final.update(part)
        for prior in [s for s in self.ranked(found) if s not in final]:
            known = energy_scores(
                {**found, **final}
            )  # by themselves large penalties may do worse than beside small ones
            if len(final) >= MOST_FINALISTS or known[prior] <= max(known[s] for s in final) + FAR_BEHIND:
                break
            if self._resting([prior], found, ()):
                final.update(self.judged(prior.family, prior.factor, prior.cutoff, (prior.penalty,), splits))
        order = self.ranked(final)
        order = _whole_first(order, energy_scores(final))
        scores, others = energy_scores(final), energy_scores(found)
        table = [(s, scores[s], final[s]) for s in order]
        table += [(s, others[s], found[s]) for s in self.ranked(found) if s not in final]
        return Chosen(self.families, order[0], tuple(table), edge)

    def _resting(self, order: list[Prior], found: dict[Prior, Array], others: Sequence[Prior]) -> list[Prior]:
        """The first candidates of which no value near 0 stands for few rows; the `others` where all are such.

        Beyond a gap in the tails a few rows make a function that is flat at all rows, and costs nothing on those held
        out either. It is told by the shares of the folds in its square, which differ as counts of few rows do.
        """
        assert self.moments.folds is not None
        if self.moments.folds.rule not in ("hash", "tasks"):
            return order[:FINALISTS]
        last = min(float(np.mean(h[:, -1])) for h in found.values())
        kept: list[Prior] = []
        for prior in order:
            if len(kept) < FINALISTS and not self._rests_on_few(prior, NEAR_ZERO * last):
                kept.append(prior)
        return kept or list(others)

    def _rests_on_few(self, prior: Prior, least: float) -> bool:
        """Whether some function of a value below `least`, but the constant, rests on fewer than ten rows or so."""
        assert self.moments.folds is not None
        folds = np.arange(self.moments.folds.number)
        groups = [folds[k::GROUPS] for k in range(min(GROUPS, len(folds)))]
        single = [(group, np.setdiff1d(folds, group)) for group in groups]
        trial, _ = self.trial(prior.family, prior.factor, prior.cutoff, prior.penalty, single)
        options: dict[str, Any] = {"rtol": None, "ridge": 0.0, "min_support": 0.0, "penalty": prior.penalty}
        posed = Posed(trial.moments, count=self.counted, **options)
        spectrum = posed.solve(posed.means, posed.rows)
        low = np.flatnonzero(np.abs(spectrum.values) < least)[posed.nulls :]
        own = spectrum.right[:, low].real
        grams = trial.sums["gram"][: trial.folds] + trial.sums["gram"][trial.folds :]
        weight = trial.weight[: trial.folds] + trial.weight[trial.folds :]
        filled = weight > 0
        shares = np.einsum("pi,kpi->ki", own, grams[filled] @ own) / weight[filled, None]
        return bool((shares.std(axis=0) > shares.mean(axis=0)).any())

    def ranked(self, found: dict[Prior, Array]) -> list[Prior]:
        """The candidates, best first."""
        return ranked(energy_scores(found))

    def judged(
        self, family: int, factor: float, cutoff: float, penalties: Sequence[float], splits: Sequence[Split]
    ) -> dict[Prior, Array]:
        """The held-out values (splits, k) of a kernel with each penalty."""
        trial, halves = self.trial(family, factor, cutoff, min(penalties), splits)
        found = trial.judged(halves, self.counted, penalties)
        return {Prior(family, factor, c, cutoff): h for c, h in zip(penalties, found, strict=True)}

    def trial(
        self, family: int, factor: float, cutoff: float, penalty: float, splits: Sequence[Split]
    ) -> tuple[Trial, list[Split]]:
        """The moments of the leading functions of all rows, by the parts into which the splits cut the folds."""
        moments = self.moments
        known = self._parts(cutoff, splits)
        folds, number = known.folds, known.number
        whole = {name: sum(part[name] for part in known.arrays) for name in known.arrays[0]}
        weighed = Weighed(
            self.operator,
            WeighedLattice(known.lattice, kernel_of(self.families[family], factor, moments)),
            expanded(known.lattice, self.operator, whole),
            float(folds.weight.sum()),
            counted_rows(moments),
            precision_of(moments),
        )
        span, _ = weighed.leading(penalty, ritz_size(self.counted), SPAN)
        parts = (expanded(known.lattice, self.operator, part) for part in known.arrays)
        small = weighed.reduced(replace(moments, weight=weighed.weight), span, folds, parts)
        assert small.folds is not None
        return Trial(small, small.folds.arrays, folds.weight, number), known.halves

    def _parts(self, cutoff: float, splits: Sequence[Split]) -> _Parts:
        """The modes of the parts into which splits cut the folds, added once for all kernels."""
        key = cutoff, len(splits)
        with self.lock:
            if key not in self.known:
                for other in [k for k in self.known if k[1] != len(splits)]:
                    del self.known[other]  # of comparisons that are over
                lattice = lattice_of(self.moments)
                lower = lattice.truncated(tried_orders(lattice.orders, cutoff))
                self.known[key] = _Parts.of(self, lower, splits)
            found: _Parts = self.known[key]
            return found

    @property
    def counted(self) -> int:
        """How many values are compared."""
        return max(COUNT, self.count) if self.count > MOST_COUNTED else COUNT


def _whole_first(order: list[Prior], scores: dict[Prior, float]) -> list[Prior]:
    """The candidates with the best one of all frequencies first, where fewer are hardly better."""
    whole = next(s for s in order if s.cutoff == 1)
    if scores[order[0]] - scores[whole] > TIE:
        return order
    return [whole, *(s for s in order if s != whole)]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Modes of parts of the folds, for a lattice: first of rows that are judged on, then of those set aside.

    `folds` has the weights of these, `halves` are the splits of the parts, `number` is that of the parts. Matrices
    follow from modes in less time than eigenvectors take, and in far less memory than is held for all parts.
    """

    lattice: FourierLattice
    folds: Folds
    arrays: list[dict[str, Any]]
    halves: list[Split]
    number: int

    @classmethod
    def of(cls, search: PriorSearch, lattice: FourierLattice, splits: Sequence[Split]) -> _Parts:
        folds = search.moments.folds
        assert folds is not None
        part, halves = merged(splits, folds.number)
        number = int(part.max()) + 1
        arrays: list[dict[str, Any]] = []
        weight, count = np.zeros(2 * number), np.zeros(2 * number, dtype=np.int64)
        for side, own in enumerate((folds, search.aside)):
            for k in range(number):
                if own is None:
                    arrays.append({name: np.zeros_like(values) for name, values in arrays[k].items()})
                    continue
                chosen = np.flatnonzero(part == k)
                arrays.append({name: values[chosen].sum(axis=0) for name, values in own.arrays.items()})
                weight[side * number + k] = own.weight[chosen].sum()
                count[side * number + k] = own.count[chosen].sum()
        together = replace(folds, arrays={}, weight=weight, count=count, landmarks=False)
        return cls(lattice, together, arrays, halves, number)


def tried_orders(orders: tuple[int, ...], cutoff: float) -> tuple[int, ...]:
    """The share of the frequencies, and in proportion no more than of `TRIED` functions."""
    return shrunk_orders(orders if cutoff == 1 else cut_orders(orders, cutoff), TRIED)


def comparable_cutoff(orders: tuple[int, ...], cutoff: float) -> bool:
    """Whether a share of the frequencies can be told from all of them, of which fewer are tried."""
    pairs = zip(cut_orders(orders, cutoff), tried_orders(orders, 1.0), strict=True)
    return all(few < LEAST_GAP * many for few, many in pairs)


def cut_orders(orders: tuple[int, ...], cutoff: float) -> tuple[int, ...]:
    """The share of the frequencies along each axis."""
    return tuple(max(1, round(cutoff * order)) for order in orders)


def kernel_of(kernel: Kernel, factor: float, moments: Moments) -> Kernel:
    """The kernel with its scale, a factor of the longest period of the lattice, where it is open."""
    return kernel.resolve(factor * float(lattice_of(moments).period.max()), "auto")


def choose_prior(
    moments: Moments,
    *,
    kernel: Kernel | None,
    penalty: float | None,
    count: int,
    threads: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]],
) -> Chosen:
    """The prior and the penalty of modes, by their folds, for a `kernel` or any (None) and a `penalty` or any.

    Without folds, and for operators whose solutions cannot be compared, Matern 3/2 with a tenth of the longest period
    and c = 10. A penalty that is left open is relative to the effective number of rows.
    """
    operator, folds = moments.operator.comparable, moments.folds
    families = FAMILIES if kernel is None else (kernel.kernel if isinstance(kernel, Periodic) else kernel,)
    reason, unit = "", repeats(moments)
    if operator is None or not operator.solver.needs_symmetry:
        reason = f"solutions of {moments.operator} cannot be compared on rows held out"
    elif folds is None or np.count_nonzero(folds.weight[: folds.number]) < LEAST_FOLDS:
        reason = f"fewer than {LEAST_FOLDS} folds have rows"
    if reason or operator is None:
        return Chosen(families, Prior(0, UNIT, UNCOMPARED * unit if penalty is None else penalty), reason=reason)
    penalties = tuple(c * unit for c in PENALTIES) if penalty is None else (penalty,)
    return PriorSearch(moments, operator, families, penalties, count, threads).run()
