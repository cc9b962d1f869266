"""A basis on trial: its sums over a few rows by fold, solved on half of the folds and judged on the other half."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import NUMBER
from daskspectral.moments.counting import ORDER, Runs
from daskspectral.moments.folds import FOLD, Folds, Groups, LabelledFolds, gathered
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import Posed, relation_of
from daskspectral.moments.summing import SumTask
from daskspectral.solve.ritz import explained, ritz

Array = NDArray[np.floating[Any]]
NEGLIGIBLE = 1e-9  # of the largest value
SMALL = 0.003  # of the last value: what eigenvalues below it differ by counts little
POSITIVE = 1e-6  # of the largest value, by which one below 0 is no rounding
MISSING = 0.1  # of what the constant explains: the cost of a singular function that a basis does not have
Split = tuple[NDArray[np.int64], NDArray[np.int64]]


def half_splits(folds: int, times: int, rng: np.random.Generator) -> list[Split]:
    """Halves of the folds from `times` random permutations, each both ways: (fitted to, judged on)."""
    found = []
    for _ in range(times):
        order = rng.permutation(folds)
        first, second = np.sort(order[: folds // 2]), np.sort(order[folds // 2 :])
        found += [(first, second), (second, first)]
    return found


def merged(splits: Sequence[Split], folds: int) -> tuple[NDArray[np.int64], list[Split]]:
    """For each fold (folds,) the part in which it stands with the folds that no split parts; the splits of the parts.

    Sums of few parts cost less than sums of all folds, and every half has the same rows.
    """
    inside = np.stack([np.isin(np.arange(folds), fitted) for fitted, _ in splits])
    part = np.unique(inside, axis=1, return_inverse=True)[1].ravel()
    return part, [(np.unique(part[fitted]), np.unique(part[judged])) for fitted, judged in splits]


@dataclass(frozen=True, eq=False)
class Trial:
    """Moments of a basis over some rows, of as many `folds`: fold k has the groups k and, where there are such, K + k.

    The second K groups hold rows that are landmarks, or among which landmarks were chosen. They are fitted to, and
    never judged on: a function that is flat at its own landmark would be chosen for it.
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
        """The sums of rows (fields (m, ...)) by fold (m,) and by whether they are never judged on, `landmark` (m,)."""
        group, number, measure = fold + folds * landmark, folds * (1 + bool(landmark.any())), task.measure
        by_group = replace(
            task, groups=Groups(LabelledFolds(np.arange(number), ())), runs=Runs.of(measure.left, len(fold))
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
        """The same with folds that no split parts as one, and the splits of these."""
        part, halves = merged(splits, self.folds)
        both = np.concatenate([part, part + part.max() + 1])[: len(self.groups.weight)]
        return Trial(replace(self.moments, folds=self.groups.merged(both)), int(part.max()) + 1), halves

    @property
    def groups(self) -> Folds:
        """The sums by group."""
        assert self.moments.folds is not None
        return self.moments.folds

    def judged(self, splits: Sequence[Split], count: int, penalties: Iterable[float | None]) -> list[Array]:
        """What functions fitted to one half give on the other, (splits, count), for each c of the penalised solution.

        A solution by rank cut has one c, None. Ritz values come in ascending order, those of a descending operator
        negated, infinite where the fit has no function or the rows do not determine its value. Held-out values h > 0
        that exceed fitted ones l > 0 become h √(h / l): a fit reports l, and is the further off the more it follows
        its own rows. Of a two-sided operator they are the roots of what its singular functions explain on these rows
        (`explained`), negative where they add to the error, and where there is none.

        Raises LinAlgError where the mean of squared slopes has values far below 0.
        """
        first, *_ = penalties = list(penalties)
        posed = Posed(self.moments, count, first)
        reduced = posed.reduced(self.groups)
        means = [(self._means(reduced, self._fitted(split)), self._means(self.groups, split[1])) for split in splits]
        found = []
        for c in penalties:
            counted = posed.rows if c is None or c == first else posed.rows * (first or 0.0) / c
            pairs = zip(splits, means, strict=True)
            found.append(np.stack([self._judged(posed, counted, split, *halves, count) for split, halves in pairs]))
        return found

    def _fitted(self, split: Split) -> NDArray[np.int64]:
        """The groups to which the functions are fitted: landmarks' rows of these folds too."""
        found = np.concatenate([split[0], split[0] + self.folds])
        return found[found < len(self.groups.weight)]

    def _means(self, sums: Folds, groups: NDArray[np.int64]) -> dict[str, Array]:
        return sums.means(groups, sums.weight[groups].sum(), self.moments.operator.counts)

    def _judged(
        self, posed: Posed, rows: float, split: Split, means: Mapping[str, Array], seen: Mapping[str, Array], count: int
    ) -> Array:
        operator, dtype = self.moments.operator, self.moments.dtype
        share = self.groups.weight[self._fitted(split)].sum() / self.moments.weight
        spectrum = posed.solve_part(means, rows * share)
        left, right = posed.among_all(spectrum)  # what is rounding shows in the sums of all functions alone
        if operator.solver.two_sided:
            shares = explained(spectrum.values.real, left, right, relation_of(operator, seen))
            return np.append(np.sign(shares) * np.sqrt(np.abs(shares)), np.full(count - len(shares), -np.sqrt(MISSING)))
        values = ritz(right, seen["form"], seen["gram"], dtype=dtype).real
        if operator.descending:
            values = np.append(-values[~np.isnan(values)][::-1], values[np.isnan(values)])
        values = np.where(np.isnan(values), np.inf, values)
        fitted = spectrum.values.real[: len(values)] * (-1 if operator.descending else 1)
        largest = np.max(values, initial=0.0, where=np.isfinite(values))
        squares = operator.kills_constants and operator.slopes_squared(self.moments.basis.dimension)
        if squares and min(values.min(initial=0.0), fitted.min(initial=0.0)) < -POSITIVE * largest:
            raise np.linalg.LinAlgError("values of a form without negative ones came out below 0, by rounding")
        values[: len(fitted)] = _raised(values[: len(fitted)], fitted)
        return np.append(values, np.full(count - len(values), np.inf))


def _raised(held_out: Array, fitted: Array) -> Array:
    """h √(h / l) for held-out values h beyond fitted ones l > 0, h for the others."""
    known = np.isfinite(held_out) & (held_out > fitted) & (fitted > NEGLIGIBLE * np.abs(fitted).max(initial=0.0))
    return np.asarray(held_out * np.sqrt(np.divide(held_out, fitted, out=np.ones_like(fitted), where=known)))


def energy_scores(found: Mapping[Any, Array]) -> dict[Any, float]:
    """Return the scores of held-out values (splits, k) of a symmetric form: larger is better.

    Minus the mean of log(h_i + m), with one m for all candidates; value i has the weight 1 / i, for the first values
    are what is asked for.
    """
    least = min(0.0, *(float(np.mean(h[:, 0])) for h in found.values()))
    shifted = {s: np.maximum(h - least, 0) for s, h in found.items()}
    middle = SMALL * _last(shifted.values())
    most = max(float(h[np.isfinite(h)].max(initial=0)) for h in shifted.values()) + middle
    sizes = {s: np.log(np.minimum(h, 10 * most) + middle).mean(axis=0) for s, h in shifted.items()}
    return {s: -float(np.average(size, weights=1 / np.arange(1.0, 1 + len(size)))) for s, size in sizes.items()}


def _last(values: Iterable[Array]) -> float:
    """Return the smallest mean of the last value that some candidate has; of the last positive one if values vanish."""
    means = np.stack([np.mean(h, axis=0) for h in values])
    best = np.min(np.where(np.isfinite(means) & (means > 0), means, np.inf), axis=0)
    known = best[np.isfinite(best)]
    return float(known[-1]) if len(known) else 1.0
