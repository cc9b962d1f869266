"""The choice of a lattice's prior after the pass: kernels and scales at c = 1, or c of a given kernel, by the folds.

A candidate is solved on the modes of half of the folds and judged on the other half, as in `moments.trial`; no row is
read again, and the same moments may be solved anew with any other kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.lattice import shrunk_orders
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from daskspectral.moments.counting import repeats
from daskspectral.moments.lattice import Weighed, lattice_of, written_out
from daskspectral.moments.moments import Moments
from daskspectral.moments.search import Evaluator, Search, Setting, Threads, TrialEvaluator, compared
from daskspectral.moments.trial import Split, Trial, half_splits
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
    """The kernel and the penalty that were taken, and the table of candidates, best first, with the edge of scales.

    The table has kernel, factor, penalty, score and held-out values (splits, k); without one, `reason` tells why.
    """

    kernel: Kernel
    penalty: float | None
    table: tuple[tuple[Kernel, float, float | None, float, Array], ...] = ()
    edge: str = ""
    reason: str = ""

    @classmethod
    def by(cls, evaluator: Evaluator, families: Sequence[Kernel], moments: Moments, threads: Threads) -> Chosen:
        """Search scales of all families whose scale is open."""
        search = Search(evaluator, threads)
        for family, kernel in enumerate(families):
            search.climb(family, FACTORS if kernel.automatic else (1.0,), LARGEST_FACTOR)
        scores, order = search.scores, search.order
        kernels = [kernel_of(families[s.family], s.factor, moments) for s in order]
        table = [(k, s.factor, s.penalty, scores[s], search.found[s]) for k, s in zip(kernels, order, strict=True)]
        return cls(kernels[0], order[0].penalty, tuple(table), search.edge(order[0]))


def families_of(kernel: Kernel | None, usual: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return the kernels to compare: the given one, which the lattice makes periodic by itself, or the usual ones."""
    return usual if kernel is None else (kernel.kernel if isinstance(kernel, Periodic) else kernel,)


def kernel_of(kernel: Kernel, factor: float, moments: Moments) -> Kernel:
    """Return the kernel with its scale, a factor of the longest period of the lattice, where it is open."""
    return kernel.resolve(factor * float(lattice_of(moments).period.max()), "auto")


def prior_evaluator(
    trial: Trial, halves: Sequence[Split], families: Sequence[Kernel], penalties: Sequence[float], count: int
) -> TrialEvaluator:
    """Compare priors of modes by halves of the folds; `trial` has the modes by fold, `count` values are compared."""
    whole = trial.moments
    lattice = lattice_of(whole).truncated(shrunk_orders(lattice_of(whole).orders, TRIED))
    moments = written_out(whole, lattice)

    def tried(prior: Setting) -> Trial:
        weighed = Weighed(moments, kernel_of(families[prior.family], prior.factor, whole), lattice)
        span, _ = weighed.leading(min(penalties), ritz_size(count), SPAN)
        return replace(trial, moments=weighed.reduced(span))

    return TrialEvaluator(tried, halves, count, penalties)


def choose_prior(
    moments: Moments, *, kernel: Kernel | None, penalty: float | None, count: int, threads: Threads
) -> Chosen:
    """Choose the prior of modes by their folds, for a `kernel` or any (None), and a `penalty` or the usual ones.

    Without folds, and for operators whose solutions cannot be compared, Matern 3/2 with a tenth of the longest period
    and c = 10. A penalty that is left open is relative to the effective number of rows. Raises LinAlgError if no
    candidate converges.
    """
    operator, folds = moments.operator.comparable, moments.folds
    families = families_of(kernel, FAMILIES)
    reason, unit = "", repeats(moments)
    if operator is None or not operator.solver.needs_symmetry:
        reason = f"solutions of {moments.operator} cannot be compared on rows held out"
    elif folds is None or np.count_nonzero(folds.weight[: folds.number]) < LEAST_FOLDS:
        reason = f"fewer than {LEAST_FOLDS} folds have rows"
    if reason or operator is None or folds is None:
        plain = kernel_of(families[0], UNIT, moments)
        return Chosen(plain, UNCOMPARED * unit if penalty is None else penalty, reason=reason)
    usual = (PENALTY,) if families[0].automatic else PENALTIES
    penalties = tuple(c * unit for c in usual) if penalty is None else (penalty,)
    compared_by = replace(moments, operator=operator)
    trial, halves = Trial(compared_by, folds.number).merged(half_splits(folds.number, TIMES, np.random.default_rng(0)))
    evaluator = prior_evaluator(trial, halves, families, penalties, compared(count))
    found = Chosen.by(evaluator, families, moments, threads)
    if len(evaluator.failed) == len(found.table):
        raise np.linalg.LinAlgError(next(iter(evaluator.failed.values())))
    return found
