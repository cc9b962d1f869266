"""Candidates of an automatic choice, compared by held-out values, and the search for scales that all choices share.

A candidate is a kernel, a factor of the unit of its scale and a penalty. An evaluator measures it on rows that it was
not fitted to: by halves of the folds (`TrialEvaluator`), or by ridge problems without each fold (`RidgeEvaluator`). A
`Search` tries scales from a few factors outward, as far as they become better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine.memory import local_threads
from daskspectral.engine.threads import one_blas_thread
from daskspectral.moments.trial import Split, Trial
from daskspectral.solve import Problem
from daskspectral.solve.ridge import RidgeProblem, best_penalty

Array = NDArray[np.floating[Any]]
DIGITS = 6  # of scores that are no rounding
LEAST_FACTOR, LARGEST_FACTOR = 1 / 128, 4.0
Key = TypeVar("Key")


@dataclass(frozen=True)
class Setting:
    """A candidate: a kernel by its place among several, a factor of the unit of its scale, c of the penalty.

    The unit is the median distance at landmarks, the longest period on a lattice.
    """

    family: int
    factor: float
    penalty: float | None = None


@dataclass(frozen=True, eq=False)
class TrialEvaluator:
    """Candidates solved on half of the folds and judged on the other half, at all `penalties`.

    `trial` measures the basis of a candidate; values are compared as the `kind` of problem does, of which `components`
    are wanted. `failed` are candidates that did not converge, and why.
    """

    trial: Callable[[Setting], Trial]
    halves: Sequence[Split]
    penalties: Sequence[float | None]
    kind: Problem
    components: int
    failed: dict[Setting, str] = field(default_factory=dict)

    def scores(self, candidate: Setting) -> dict[Setting, Array]:
        """Return the held-out values (n_splits, k) of a candidate at each of its penalties."""
        settings = [replace(candidate, penalty=c) for c in self.penalties]
        count = self.kind.n_compared(self.components)
        try:
            found = self.trial(candidate).judged(self.halves, count, self.penalties)
        except np.linalg.LinAlgError as error:
            self.failed.update(dict.fromkeys(settings, str(error)))
            found = [np.full((len(self.halves), count), self.kind.worst)] * len(settings)
        return dict(zip(settings, found, strict=True))

    def totals(self, found: Mapping[Any, Array]) -> dict[Any, float]:
        """Return a number for each candidate, larger is better; it may be relative to all of them."""
        return {s: round(score, DIGITS) for s, score in self.kind.scores(found, self.components).items()}


@dataclass(frozen=True, eq=False)
class RidgeEvaluator:
    """Regressions at their best penalty, or a given `alpha`: values are the shares of the spread left unexplained.

    `problem` makes the ridge problem of a candidate. There is one split, and a share for values and for gradients.
    """

    problem: Callable[[Setting], RidgeProblem]
    alpha: float | None
    cut: float

    def scores(self, candidate: Setting) -> dict[Setting, Array]:
        """Return the shares (1, kinds) of a candidate at its penalty."""
        problem = self.problem(candidate)
        alphas, _, errors, _ = problem.curve(self.alpha, self.cut)
        assert errors is not None
        totals = errors.sum(axis=1)
        least = errors[[int(np.argmin(totals))]]
        unexplained = least / problem.spread if problem.spread > 0 else np.full_like(least, 1 / least.size)
        return {replace(candidate, penalty=best_penalty(alphas, totals)): unexplained}

    def totals(self, found: Mapping[Any, Array]) -> dict[Any, float]:
        """Return the share of the spread that each candidate explains."""
        return {s: 1 - float(values.sum()) for s, values in found.items()}


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the results in the order of the items, each item on a thread with one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(local_threads()) as pool:
        return list(pool.map(function, items))


@dataclass(frozen=True, eq=False)
class Search:
    """The candidates evaluated so far, `found`, with their held-out values; `threads` maps over several at once."""

    evaluator: TrialEvaluator | RidgeEvaluator
    threads: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = in_threads
    found: dict[Setting, Array] = field(default_factory=dict)

    def judge(self, candidates: Iterable[Setting]) -> None:
        """Evaluate candidates at all of their penalties, unless they are known."""
        known = {(s.family, s.factor) for s in self.found}
        new = [s for s in candidates if (s.family, s.factor) not in known]
        for part in self.threads(self.evaluator.scores, new):
            self.found.update(part)

    def climb(self, family: int, factors: Iterable[float], largest: float = LARGEST_FACTOR) -> None:
        """Evaluate a family at some factors, and at twice or half the outermost one while that is the best.

        A single factor is that of a given scale.
        """
        new = list(factors)
        while new:
            self.judge(Setting(family, factor) for factor in new)
            best, tried = next(s.factor for s in self.order if s.family == family), self.tried(family)
            beyond = {min(tried): best / 2, max(tried): 2 * best}.get(best, 0.0) if len(tried) > 1 else 0.0
            new = [beyond] if LEAST_FACTOR <= beyond <= largest else []

    def tried(self, family: int) -> set[float]:
        """Return the factors of a family that were evaluated."""
        return {s.factor for s in self.found if s.family == family}

    @property
    def scores(self) -> dict[Setting, float]:
        """The scores of all candidates; larger is better."""
        return self.evaluator.totals(self.found)

    @property
    def order(self) -> list[Setting]:
        """The candidates, best first."""
        return ranked(self.scores)

    def edge(self, best: Setting) -> str:
        """Return "smallest" or "largest" if the factor of `best` is at that end of those tried, otherwise ""."""
        factors = self.tried(best.family)
        if len(factors) == 1 or min(factors) < best.factor < max(factors):
            return ""
        return "smallest" if best.factor <= min(factors) else "largest"


def ranked(scores: Mapping[Key, float]) -> list[Key]:
    """Return the candidates, best first; of those with equal scores the first that was tried."""
    return sorted(scores, key=lambda candidate: -scores[candidate])
