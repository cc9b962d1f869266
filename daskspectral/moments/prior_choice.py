"""The choice of a lattice's prior after the pass: kernels and scales at c = 1, or c of a given kernel, by the folds.

A candidate is solved on the modes of half of the folds and judged on the other half, as in `moments.trial`; no row is
read again, and the same moments may be solved anew with any other kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.lattice import shrunk_orders
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from daskspectral.moments.counting import repeats
from daskspectral.moments.lattice import Weighed, lattice_of, written_out
from daskspectral.moments.moments import Moments
from daskspectral.moments.trial import (
    Setting,
    Split,
    Threads,
    Trial,
    climb_families,
    compared,
    edge_of,
    energy_scores,
    half_splits,
    ranked,
)
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
    """What is compared: `families` of kernels with open scales, or one given, at `penalties`, by halves of the folds.

    `trial` has the modes by fold, those of its operator's solutions; `count` values are compared.
    """

    trial: Trial
    halves: list[Split]
    families: tuple[Kernel, ...]
    penalties: tuple[float, ...]
    count: int
    threads: Threads

    def run(self) -> Chosen:
        """The best prior, and the table of all candidates, best first."""
        _ = self._written_out  # once, before there are threads
        tried, found = climb_families(
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
            return np.full((len(self.halves), self.count), np.inf)

    def judged(self, prior: Setting) -> Array:
        """The held-out values (splits, k) of a prior."""
        assert prior.penalty is not None
        moments = self._written_out
        kernel = kernel_of(self.families[prior.family], prior.factor, moments)
        weighed = Weighed(moments, kernel, lattice_of(moments))
        small = weighed.reduced(weighed.leading(prior.penalty, ritz_size(self.count), SPAN)[0])
        return replace(self.trial, moments=small).judged(self.halves, self.count, [prior.penalty])[0]

    @cached_property
    def _written_out(self) -> Moments:
        """The moments of fewer frequencies, in which candidates are compared."""
        lattice = lattice_of(self.trial.moments)
        return written_out(self.trial.moments, lattice.truncated(shrunk_orders(lattice.orders, TRIED)))


def families_of(kernel: Kernel | None, usual: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """The kernels that are compared: the given one, which the lattice makes periodic by itself, or the usual ones."""
    return usual if kernel is None else (kernel.kernel if isinstance(kernel, Periodic) else kernel,)


def kernel_of(kernel: Kernel, factor: float, moments: Moments) -> Kernel:
    """The kernel with its scale, a factor of the longest period of the lattice, where it is open."""
    return kernel.resolve(factor * float(lattice_of(moments).period.max()), "auto")


def choose_prior(
    moments: Moments, *, kernel: Kernel | None, penalty: float | None, count: int, threads: Threads
) -> Chosen:
    """The prior of modes, by their folds, for a `kernel` or any (None), and a `penalty` or the usual ones.

    Without folds, and for operators whose solutions cannot be compared, Matern 3/2 with a tenth of the longest period
    and c = 10. A penalty that is left open is relative to the effective number of rows.
    """
    operator, folds = moments.operator.comparable, moments.folds
    families = families_of(kernel, FAMILIES)
    reason, unit = "", repeats(moments)
    if operator is None or not operator.solver.needs_symmetry:
        reason = f"solutions of {moments.operator} cannot be compared on rows held out"
    elif folds is None or np.count_nonzero(folds.weight[: folds.number]) < LEAST_FOLDS:
        reason = f"fewer than {LEAST_FOLDS} folds have rows"
    if reason or operator is None or folds is None:
        return Chosen(families, Setting(0, UNIT, UNCOMPARED * unit if penalty is None else penalty), reason=reason)
    usual = (PENALTY,) if families[0].automatic else PENALTIES
    penalties = tuple(c * unit for c in usual) if penalty is None else (penalty,)
    splits = half_splits(folds.number, TIMES, np.random.default_rng(0))
    compared_by = replace(moments, measured=replace(moments.measured, operator=operator))
    trial = Trial(compared_by, folds.number).merged(splits)
    return PriorSearch(*trial, families, penalties, compared(count), threads).run()
