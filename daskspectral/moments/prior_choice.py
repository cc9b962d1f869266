"""The choice of a lattice's prior after the pass: kernels and scales at c = 1, or c of a given kernel, by the folds.

A candidate is solved on the modes of half of the folds and judged on the other half, as in `moments.trial`; no row is
read again, and the same moments may be solved anew with any other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.basis.lattice import WeighedLattice
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from daskspectral.moments.counting import counted_rows, repeats
from daskspectral.moments.folds import Folds
from daskspectral.moments.lattice import Weighed, expanded, lattice_of, precision_of, shrunk_orders
from daskspectral.moments.moments import Moments
from daskspectral.moments.trial import (
    Setting,
    Split,
    Trial,
    compared,
    edge_of,
    energy_scores,
    half_splits,
    merged,
    ranked,
    search,
)
from daskspectral.operators import Operator
from daskspectral.solve.pencil import ritz_size

Array = NDArray[np.floating[Any]]

FAMILIES: tuple[Kernel, ...] = (Matern(1.5, "auto"), Gaussian("auto"))
FACTORS, LARGEST_FACTOR = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 2.0
PENALTY = 1.0  # c, relative to the effective number of rows
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4)  # of a given kernel, whose scale may suit the rows less
UNCOMPARED = 10.0  # c where nothing can be compared: at 1 a few rows in the tails have values near 0
UNIT = 0.1  # of the longest period: the scale where nothing can be compared
TRIED = 750  # functions of the lattices that are compared
SPAN = 160  # leading functions in which candidates are compared
TIMES = 2  # permutations of the folds, two splits each
LEAST_FOLDS = 4


@dataclass(frozen=True, eq=False)
class Chosen:
    """The prior that was taken, the candidates with scores and held-out values (splits, k), and why none, if none."""

    families: tuple[Kernel, ...]
    prior: Setting
    table: tuple[tuple[Setting, float, Array], ...] = ()
    edge: str = ""
    reason: str = ""

    def kernel(self, prior: Setting, moments: Moments) -> Kernel:
        """The kernel of a candidate."""
        return kernel_of(self.families[prior.family], prior.factor, moments)


@dataclass(frozen=True, eq=False)
class PriorSearch:
    """What is compared: `families` of kernels with open scales, or one given, at `penalties`, by `parts` of the folds.

    `count` values are compared.
    """

    moments: Moments
    operator: Operator
    families: tuple[Kernel, ...]
    penalties: tuple[float, ...]
    count: int
    threads: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
    parts: Parts

    def run(self) -> Chosen:
        """The best prior, and the table of all candidates, best first."""
        tried, found = search(
            [FACTORS if kernel.automatic else (1.0,) for kernel in self.families],
            self.penalties,
            self._judged_or_lost,
            lambda judged: ranked(energy_scores(judged)),
            self.threads,
            LARGEST_FACTOR,
            rounds=2,  # scores are relative to all candidates
        )
        if not any(np.isfinite(values).any() for values in found.values()):
            self.judged(next(iter(found)))  # which tells why
        scores = energy_scores(found)
        order = ranked(scores)
        edge = edge_of(tried[order[0].family], order[0].factor)
        return Chosen(self.families, order[0], tuple((s, scores[s], found[s]) for s in order), edge)

    def _judged_or_lost(self, prior: Setting) -> Array:
        """The held-out values; infinite where the solution does not converge."""
        try:
            return self.judged(prior)
        except np.linalg.LinAlgError:
            return np.full((len(self.parts.halves), self.count), np.inf)

    def judged(self, prior: Setting) -> Array:
        """The held-out values (splits, k) of a prior."""
        assert prior.penalty is not None
        moments, parts = self.moments, self.parts
        lattice, operator = parts.lattice, self.operator
        whole = {name: sum(part[name] for part in parts.arrays) for name in parts.arrays[0]}
        weighed = Weighed(
            operator,
            WeighedLattice(lattice, kernel_of(self.families[prior.family], prior.factor, moments)),
            expanded(lattice, operator, whole),
            float(parts.folds.weight.sum()),
            counted_rows(moments),
            precision_of(moments),
        )
        span, _ = weighed.leading(prior.penalty, ritz_size(self.count), SPAN)
        own = (expanded(lattice, operator, part) for part in parts.arrays)
        small = weighed.reduced(replace(moments, weight=weighed.weight), span, parts.folds, own)
        assert small.folds is not None
        trial = Trial(small, small.folds.arrays, parts.folds.weight, len(parts.folds.weight) // 2)
        return trial.judged(parts.halves, self.count, [prior.penalty])[0]


@dataclass(frozen=True, eq=False)
class Parts:
    """Modes of parts of the folds, for few enough frequencies: first of rows that are judged on, then of those `aside`,
    which are fitted to alone. They are added once for all kernels.

    `folds` has the weights of these, `halves` are the splits of the parts. Matrices follow from modes in less time
    than eigenvectors take, and in far less memory than is held for all parts.
    """

    lattice: FourierLattice
    folds: Folds
    arrays: list[dict[str, Any]]
    halves: list[Split]

    @classmethod
    def of(cls, moments: Moments, splits: Sequence[Split], aside: Folds | None = None) -> Parts:
        """The parts into which half splits cut the folds."""
        folds, whole = moments.folds, lattice_of(moments)
        assert folds is not None
        part, halves = merged(splits, folds.number)
        judged = folds.merged(part)
        none = {name: np.zeros_like(values) for name, values in judged.arrays.items()}
        fitted = replace(judged, arrays=none, weight=0 * judged.weight, count=0 * judged.count)
        both = judged, fitted if aside is None else aside.merged(part)
        arrays = [own.of(k) for own in both for k in range(own.number)]
        weight, count = np.concatenate([own.weight for own in both]), np.concatenate([own.count for own in both])
        lattice = whole.truncated(shrunk_orders(whole.orders, TRIED))
        return cls(lattice, replace(judged, arrays={}, weight=weight, count=count), arrays, halves)


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
    """The prior of modes, by their folds, for a `kernel` or any (None), and a `penalty` or the usual ones.

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
    if reason or operator is None or folds is None:
        return Chosen(families, Setting(0, UNIT, UNCOMPARED * unit if penalty is None else penalty), reason=reason)
    usual = (PENALTY,) if families[0].automatic else PENALTIES
    penalties = tuple(c * unit for c in usual) if penalty is None else (penalty,)
    parts = Parts.of(moments, half_splits(folds.number, TIMES, np.random.default_rng(0)))
    return PriorSearch(moments, operator, families, penalties, compared(count), threads, parts).run()
