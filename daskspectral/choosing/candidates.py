"""Candidates of an automatic choice, compared by validation values, and the search over scales.

A candidate is a kernel, a factor of the unit of its scale and a penalty, scored on rows to which it was not fitted.
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
DIGITS = 6  # of scores, above rounding
LEAST_FACTOR, LARGEST_FACTOR = 1 / 128, 4.0
Key = TypeVar("Key")


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a candidate: number of its kernel, factor of the unit of its scale, penalty c.

    The unit is the median distance for landmarks, and the longest period for a lattice.
    """

    family: int
    factor: float
    penalty: float | None = None


@dataclass(frozen=True, eq=False)
class TrialEvaluator:
    """Evaluator that solves candidates on half of the folds and scores them on the other half.

    `trial` measures the basis of a candidate, which is solved at all `penalties`; values of `components` functions are
    compared as the `kind` of problem defines. `failed` maps candidates that did not converge to the reason.
    """

    trial: Callable[[Hyperparameters], Trial]
    halves: Sequence[Split]
    penalties: Sequence[float | None]
    kind: Problem
    components: int
    failed: dict[Hyperparameters, str] = field(default_factory=dict)

    def scores(self, candidate: Hyperparameters) -> dict[Hyperparameters, Array]:
        """Return the validation values (n_splits, k) of a candidate at each of its penalties."""
        settings = [replace(candidate, penalty=c) for c in self.penalties]
        count = self.kind.n_compared(self.components)
        try:
            found = self.trial(candidate).judged(self.halves, count, self.penalties)
        except np.linalg.LinAlgError as error:
            self.failed.update(dict.fromkeys(settings, str(error)))
            found = [np.full((len(self.halves), count), self.kind.worst)] * len(settings)
        return dict(zip(settings, found, strict=True))

    def totals(self, found: Mapping[Any, Array]) -> dict[Any, float]:
        """Return the score of each candidate, larger is better; it may be relative to the others."""
        return {s: round(score, DIGITS) for s, score in self.kind.scores(found, self.components).items()}


@dataclass(frozen=True, eq=False)
class RidgeEvaluator:
    """Evaluator of regressions at their best penalty, or at `alpha`, by the unexplained shares of variance.

    `problem` returns the ridge problem of a candidate. There is one split, and a share for values and for gradients.
    """

    problem: Callable[[Hyperparameters], RidgeProblem]
    alpha: float | None
    cut: float

    def scores(self, candidate: Hyperparameters) -> dict[Hyperparameters, Array]:
        """Return the unexplained shares (1, kinds) of a candidate at its penalty."""
        problem = self.problem(candidate)
        alphas, _, errors, _ = problem.curve(self.alpha, self.cut)
        assert errors is not None
        totals = errors.sum(axis=1)
        least = errors[[int(np.argmin(totals))]]
        unexplained = least / problem.spread if problem.spread > 0 else np.full_like(least, 1 / least.size)
        return {replace(candidate, penalty=best_penalty(alphas, totals)): unexplained}

    def totals(self, found: Mapping[Any, Array]) -> dict[Any, float]:
        return {s: 1 - float(values.sum()) for s, values in found.items()}


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return results in the order of the items, computed on threads with one BLAS thread each."""
    with one_blas_thread(), ThreadPoolExecutor(local_threads()) as pool:
        return list(pool.map(function, items))


@dataclass(frozen=True, eq=False)
class Search:
    """Evaluated candidates, `found`, with their validation values; `threads` maps over several in parallel."""

    evaluator: TrialEvaluator | RidgeEvaluator
    threads: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]] = in_threads
    found: dict[Hyperparameters, Array] = field(default_factory=dict)

    def judge(self, candidates: Iterable[Hyperparameters]) -> None:
        """Evaluate candidates at all of their penalties, unless they are known."""
        known = {(s.family, s.factor) for s in self.found}
        new = [s for s in candidates if (s.family, s.factor) not in known]
        for part in self.threads(self.evaluator.scores, new):
            self.found.update(part)

    def line_search(self, family: int, factors: Iterable[float], largest: float = LARGEST_FACTOR) -> None:
        """Evaluate a family at factors, then at twice or half the outermost while that is the best.

        A single factor means a fixed scale.
        """
        new = list(factors)
        while new:
            self.judge(Hyperparameters(family, factor) for factor in new)
            best, tried = next(s.factor for s in self.order if s.family == family), self.tried(family)
            beyond = {min(tried): best / 2, max(tried): 2 * best}.get(best, 0.0) if len(tried) > 1 else 0.0
            new = [beyond] if LEAST_FACTOR <= beyond <= largest else []

    def tried(self, family: int) -> set[float]:
        return {s.factor for s in self.found if s.family == family}

    @property
    def scores(self) -> dict[Hyperparameters, float]:
        return self.evaluator.totals(self.found)

    @property
    def order(self) -> list[Hyperparameters]:
        """Candidates, best first."""
        return ranked(self.scores)

    def at_search_boundary(self, best: Hyperparameters) -> str:
        """Return "smallest" or "largest" if `best` has the outermost factor tried, otherwise ""."""
        factors = self.tried(best.family)
        if len(factors) == 1 or min(factors) < best.factor < max(factors):
            return ""
        return "smallest" if best.factor <= min(factors) else "largest"


def ranked(scores: Mapping[Key, float]) -> list[Key]:
    """Return the candidates, best first; ties in the order of evaluation."""
    return sorted(scores, key=lambda candidate: -scores[candidate])
