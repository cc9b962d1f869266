"""Regression with a penalty for each function, by level: against hat matrices and fits to the other folds, by rows."""

from dataclasses import replace

import numpy as np
import pytest

from daskspectral.invariance.levels import InvariantProblem, LeastSquares, Objective
from daskspectral.solve.ridge import (
    FoldSums,
    Observed,
)
from tests.solve.common import Array

LEVELS = np.repeat([1, 4, 9], [1, 3, 5])  # D of each of nine functions
PENALTY = np.where(LEVELS > 1, LEVELS**1.5, 0.0)
ALPHAS = 10 ** np.arange(-8.0, 2.0, 0.1)


class Rows:
    """Sixty rows in four folds: values of nine functions, of which the first is 1, and slopes of the others."""

    def __init__(self, seed: int = 0, noise: float = 0.5, kinds: int = 2, unit: float = 3.0):
        rng = np.random.default_rng(seed)
        self.f = [np.column_stack([np.ones(60), rng.standard_normal((60, 8))]), rng.standard_normal((60, 9))][:kinds]
        if kinds == 2:
            self.f[1][:, 0] = 0
        truth = rng.standard_normal((9, 2)) / LEVELS[:, None]
        self.y = [f @ truth + noise * rng.standard_normal((60, 2)) for f in self.f]
        self.fold, self.unit = np.arange(60) % 4, unit

    def sums(self, rows: Array) -> list[tuple[Array, Array, Array]]:
        at = [(f[rows], y[rows]) for f, y in zip(self.f, self.y, strict=True)]
        return [(f.T @ f / 60, f.T @ y / 60, np.sum(y**2, axis=0) / 60) for f, y in at]

    def observed(self) -> list[Observed]:
        parts = [self.sums(self.fold == k) for k in range(4)]
        return [
            Observed(
                *whole, 60.0, FoldSums(*(np.stack([p[i][j] for p in parts]) / self.unit for j in range(3)), self.unit)
            )
            for i, whole in enumerate(self.sums(self.fold >= 0))
        ]

    def solved(self, rest: Array, size: int, alpha: float) -> Array:
        """Coefficients (size, 2) of the first functions from some rows."""
        f, y = np.concatenate([f[rest, :size] for f in self.f]), np.concatenate([y[rest] for y in self.y])
        form = f.T @ f / rest.sum() + alpha * np.diag(PENALTY[:size])
        return np.asarray(np.linalg.solve(form, f.T @ y / rest.sum()))

    def error(self, size: int, alpha: float, judged: tuple[int, ...] = (0, 1, 2, 3)) -> float:
        total = 0.0
        for k in judged:
            rest = self.fold != k
            a = self.solved(rest, size, alpha)
            total += sum(np.sum((y[~rest] - f[~rest, :size] @ a) ** 2) for f, y in zip(self.f, self.y, strict=True))
        return float(total / np.isin(self.fold, judged).sum())

    def score(self, alpha: float, size: int = 9) -> float:
        stacked = np.concatenate(self.f)[:, :size]
        inverse = np.linalg.inv(stacked.T @ stacked / 60 + alpha * np.diag(PENALTY[:size]))
        h = stacked @ inverse @ stacked.T / 60
        missed, total = np.concatenate(self.y) - h @ np.concatenate(self.y), 0.0
        for i in range(len(self.f)):
            own = slice(60 * i, 60 * (i + 1))
            free, variance = 1 - np.trace(h[own, own]) / 60, np.sum(h[own] ** 2) / 60
            total += np.sum(missed[own] ** 2) / 60 / free**2 * (1 + 2 * variance**2)
        return float(total)


SHARES = np.full(4, 0.25)


def problem(rows: Rows, shares: Array | None = SHARES, **options: float) -> InvariantProblem:
    return InvariantProblem(tuple(rows.observed()), LEVELS, Objective(1.5, **options), 60, shares)  # type: ignore[arg-type]


@pytest.mark.parametrize("folds", [True, False])
def test_levels_and_penalty_of_least_error(folds: bool) -> None:
    rows = Rows(4, 1.0)
    one = problem(rows, shares=SHARES if folds else None)
    assert one.penalty.tolist() == PENALTY.tolist()
    found = LeastSquares().solve(one)
    assert found.curve is not None
    assert found.curve[:, 0].tolist() == [1, 4, 9]
    for size, (_, alpha, error) in zip((1, 4, 9), found.curve, strict=True):
        assert error == pytest.approx(rows.error(size, alpha) if folds else rows.score(alpha, size), rel=1e-9)
    best = found.curve[found.curve[:, 2].argmin()]
    assert (found.most, found.alpha) == (best[0], best[1])
    size = int(np.count_nonzero(found.most >= LEVELS))
    assert found.score == pytest.approx(rows.score(found.alpha, size), rel=1e-9)
    for fold, a in ((9, found.coefficients), (2, LeastSquares().refit(one, found, 2, 0.25))):  # all rows, and without
        np.testing.assert_allclose(a, rows.solved(rows.fold != fold, size, found.alpha), rtol=1e-9)


def test_what_is_given_is_kept() -> None:
    rows = Rows(4, 1.0)
    for most, size in ((3, 1), (4, 4), (8, 4), (9, 9), (0, 1)):
        found = LeastSquares().solve(problem(rows, most=most, alpha=0.3))
        assert (len(found.coefficients), found.alpha) == (size, 0.3)
    for count, sizes in ((2.0, [1, 4]), (1.9, [1]), (0.4, [1])):  # no more functions than observations, of two kinds
        few = tuple(replace(kind, count=count) for kind in rows.observed())
        found = LeastSquares().solve(InvariantProblem(few, LEVELS, Objective(1.5, None, 0.1), 60))
        assert found.curve is not None
        assert found.curve[:, 0].tolist() == sizes
    slopes = InvariantProblem(tuple(rows.observed()[1:]), LEVELS, Objective(1.5, None, 0.1), 60)
    assert (slopes.ends, problem(rows).ends) == ([4, 9], [1, 4, 9])  # they see no constant
    assert LeastSquares().default(60, 1.5) is None
