"""Validation of a candidate basis: sums by fold over a few rows, fitted to half of the folds, scored on the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import NUMBER
from daskspectral.moments.counting import ORDER, RowRuns
from daskspectral.moments.folds import FOLD, Folds, Groups, LabeledFolds, gathered
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import GalerkinProblem, Sums, galerkin_system
from daskspectral.moments.summing import SumTask

Array = NDArray[np.floating[Any]]
Split = tuple[NDArray[np.int64], NDArray[np.int64]]


def half_splits(folds: int, times: int, rng: np.random.Generator) -> list[Split]:
    """Return random splits of the folds into halves (fitted, judged), each both ways."""
    found = []
    for _ in range(times):
        order = rng.permutation(folds)
        first, second = np.sort(order[: folds // 2]), np.sort(order[folds // 2 :])
        found += [(first, second), (second, first)]
    return found


def merged(splits: Sequence[Split], folds: int) -> tuple[NDArray[np.int64], list[Split]]:
    """Merge folds that no split separates; return the part of each and the splits."""
    inside = np.stack([np.isin(np.arange(folds), fitted) for fitted, _ in splits])
    part = np.unique(inside, axis=1, return_inverse=True)[1].ravel()
    return part, [(np.unique(part[fitted]), np.unique(part[judged])) for fitted, judged in splits]


@dataclass(frozen=True, eq=False)
class Trial:
    """Moments of a candidate basis by fold, of groups k and, if they exist, K + k.

    The second K groups contain landmarks, or rows among which these were selected. They are for fitting only: in
    validation they would favor functions that are flat at their landmarks.
    """

    moments: Moments
    folds: int

    @classmethod
    def measure(
        cls,
        task: SumTask,
        rows: Mapping[str, Array],
        fold: NDArray[np.int64],
        landmark: NDArray[np.bool_],
        folds: int,
    ) -> Trial:
        """Return the trial of rows (fields (m, ...)) by fold (m,); rows with `landmark` (m,) are for fitting."""
        group, number, measure = fold + folds * landmark, folds * (1 + bool(landmark.any())), task.measure
        by_group = replace(
            task, groups=Groups(LabeledFolds(np.arange(number), ())), runs=RowRuns.of(measure.left, len(fold))
        )
        sums = by_group([{**rows, FOLD: group, NUMBER: np.arange(len(fold))}])
        order = sums.pop(ORDER)
        groups, whole = gathered(sums, number)
        right = None if measure.right is measure.left else measure.right
        moments = Moments(
            whole,
            float(groups.weight.sum()),
            len(fold),
            measure.left,
            task.operator,
            measure.dtype,
            right_basis=right,
            folds=groups,
            order=order,
        )
        return cls(moments, folds)

    def merged(self, splits: Sequence[Split]) -> tuple[Trial, list[Split]]:
        part, halves = merged(splits, self.folds)
        both = np.concatenate([part, part + part.max() + 1])[: len(self.groups.weight)]
        return Trial(replace(self.moments, folds=self.groups.merged(both)), int(part.max()) + 1), halves

    @property
    def groups(self) -> Folds:
        assert self.moments.folds is not None
        return self.moments.folds

    def judged(self, splits: Sequence[Split], count: int, penalties: Iterable[float | None]) -> list[Array]:
        """Return the validation values (splits, count) for each penalty c, None by truncation.

        The kind of problem defines the values (`Problem.compared`). Raises LinAlgError if the mean of squared slopes
        has values far below 0.
        """
        first, *_ = penalties = list(penalties)
        problem = GalerkinProblem(self.moments, count, first, parts_alone=True)
        reduced = problem.reduced(self.groups)
        means = [(self._means(reduced, self._fitted(split)), self._means(self.groups, split[1])) for split in splits]
        found = []
        for c in penalties:
            counted = problem.rows if c is None or c == first else problem.rows * (first or 0.0) / c
            pairs = zip(splits, means, strict=True)
            found.append(np.stack([self._judged(problem, counted, split, *halves, count) for split, halves in pairs]))
        return found

    def _fitted(self, split: Split) -> NDArray[np.int64]:
        found = np.concatenate([split[0], split[0] + self.folds])
        return found[found < len(self.groups.weight)]

    def _means(self, sums: Folds, groups: NDArray[np.int64]) -> dict[str, Array]:
        return sums.means(groups, sums.weight[groups].sum(), self.moments.operator.counts)

    def _judged(
        self, problem: GalerkinProblem, rows: float, split: Split, means: Sums, seen: Sums, count: int
    ) -> Array:
        moments, operator = self.moments, self.moments.operator
        share = self.groups.weight[self._fitted(split)].sum() / moments.weight
        solution = problem.solve_part(means, rows * share)
        left, right = problem.among_all(solution)  # rounding is only detected in the sums of all functions
        positive = operator.annihilates_constants and bool(operator.slopes_squared(moments.basis.dimension))
        system = replace(galerkin_system(operator, seen, None, moments.dtype), count=count, positive=positive)
        return operator.solver.compared(solution, left, right, system)
