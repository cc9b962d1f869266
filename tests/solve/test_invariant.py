"""Regression with a penalty for each function, by level: against hat matrices and fits to the other folds, by rows."""

from __future__ import annotations

import numpy as np
import pytest

from daskspectral.solve.diagonal import (
    _bounds,
    _without,
    best_generalised,
    best_on_folds,
    generalised,
    held_out,
    judges,
    leading,
    solve_diagonal,
)
from daskspectral.solve.folded import FoldSums
from daskspectral.solve.invariant import InvariantProblem, LeastSquares, Projection, _spread
from daskspectral.solve.ridge import Observed
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

    def error(self, size: int, alpha: float, judged: tuple[int, ...] = (0, 1, 2, 3)) -> float:
        total = 0.0
        for k in judged:
            rest = self.fold != k
            f, y = (np.concatenate([part[rest] for part in parts]) for parts in (self.f, self.y))
            a = np.linalg.solve(
                f[:, :size].T @ f[:, :size] / rest.sum() + alpha * np.diag(PENALTY[:size]),
                f[:, :size].T @ y / rest.sum(),
            )
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


@pytest.mark.parametrize("kinds", [1, 2])
def test_scores_are_those_of_rows(kinds: int) -> None:
    rows = Rows(kinds=kinds)
    observed = rows.observed()
    for alpha in (1e-4, 0.1):
        assert generalised(observed, PENALTY, alpha) == pytest.approx(rows.score(alpha), rel=1e-9)
        assert held_out(observed, SHARES, PENALTY, alpha) == pytest.approx(rows.error(9, alpha), rel=1e-9)
        few = [leading(kind, 4) for kind in observed]
        assert generalised(few, PENALTY[:4], alpha) == pytest.approx(rows.score(alpha, 4), rel=1e-9)
        assert held_out(few, SHARES, PENALTY[:4], alpha) == pytest.approx(rows.error(4, alpha), rel=1e-9)
    apart = np.array([0.25, 0.25, 0.0, 0.0])  # two folds that cannot be left out
    assert judges(apart) == [0, 1]
    assert held_out(observed, apart, PENALTY, 0.1) == pytest.approx(rows.error(9, 0.1, (0, 1)), rel=1e-9)
    assert judges(None) == judges(np.array([1.0, 0.0])) == judges(np.array([0.5, 0.0])) == []
    crowded = Observed(observed[0].form, observed[0].target, observed[0].squares, 9.0)
    assert np.isinf(generalised([crowded], PENALTY, 0.0))  # nothing is left free


@pytest.mark.parametrize("noise", [0.1, 0.5, 3.0])
def test_the_penalty_of_least_error_on_folds(noise: float) -> None:
    rows = Rows(1, noise)
    observed = rows.observed()
    least = min(rows.error(9, alpha) for alpha in ALPHAS)
    for start in (None, 1e-6, 10.0):
        found = best_on_folds(observed, SHARES, PENALTY, start)
        assert rows.error(9, found) <= least * (1 + 1e-2)
    scale = np.trace(observed[0].form + observed[1].form) / 9
    assert _bounds(observed, PENALTY) == pytest.approx((1e-15 * scale / 27, 1e2 * scale / 8), rel=1e-9)
    assert _bounds(observed, np.zeros(9)) == (1, 1)  # any is as good
    assert best_on_folds(observed, SHARES, np.zeros(9), None) == 1


def test_what_is_left_once_the_constant_has_done_all_it_can() -> None:
    rows, free = Rows(2), LEVELS < 2
    values, slopes = rows.observed()
    f, y = (part[0] - part[0].mean(axis=0) for part in (rows.f, rows.y))
    found = _without(values, free, ~free)
    np.testing.assert_allclose(found.form, f[:, 1:].T @ f[:, 1:] / 60, atol=1e-12)
    np.testing.assert_allclose(found.target, f[:, 1:].T @ y / 60, atol=1e-12)
    np.testing.assert_allclose(found.squares, np.sum(y**2, axis=0) / 60)
    assert found.count == 59
    np.testing.assert_array_equal(_without(slopes, free, ~free).form, slopes.form[1:, 1:])  # they see no constant
    assert _without(slopes, free, ~free).count == 60


def test_the_penalty_of_least_score() -> None:
    """Of what the constant leaves; at least 1e-9 over the penalty of the last function."""
    rows = Rows(2, kinds=1)
    found = best_generalised(rows.observed(), PENALTY)
    f, y = rows.f[0][:, 1:], rows.y[0]
    f, y = f - f.mean(axis=0), y - y.mean(axis=0)

    def score(alpha: float) -> float:
        h = f @ np.linalg.solve(f.T @ f / 60 + alpha * np.diag(PENALTY[1:]), f.T) / 60
        robust = 1 + 2 * (np.sum(h**2) / 59) ** 2
        return float(np.sum((y - h @ y) ** 2) / (1 - np.trace(h) / 59) ** 2 * robust)

    assert score(found) <= min(score(alpha) for alpha in ALPHAS) * (1 + 1e-6)
    exact = Rows(2, 0.0, kinds=1).observed()
    assert best_generalised(exact, PENALTY) >= 1e-9 * np.trace(exact[0].form) / 9 / 27 * (1 - 1e-12)
    assert best_generalised(exact, np.zeros(9)) == 0
    constant = Observed(np.diag([1.0] + [0.0] * 8), np.zeros((9, 1)), np.ones(1), 60.0)
    assert best_generalised([constant], PENALTY) == 0
    both = Rows(2)  # slopes see no constant, and it leaves them as they are
    paid = best_generalised(both.observed(), PENALTY)
    assert both.score(paid) <= min(both.score(alpha) for alpha in ALPHAS) * 1.02


def test_solutions_of_singular_sums_leave_out_what_is_rounding() -> None:
    rng = np.random.default_rng(3)
    form, target, penalty = rng.standard_normal((5, 20)), rng.standard_normal((5, 2)), rng.uniform(1, 2, 5)
    form = form @ form.T
    found = solve_diagonal(form, target, penalty)
    np.testing.assert_allclose(found, np.linalg.solve(form + np.diag(penalty), target), rtol=1e-9)
    skew = np.triu(form, 1) - np.tril(form, -1)
    np.testing.assert_allclose(solve_diagonal(form + skew, target, penalty), found, rtol=1e-9)
    units = np.array([1.0, 1e-3, 1e3])
    twice = np.outer(units, units) * np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1.0]])
    found = solve_diagonal(twice, twice @ np.array([[1.0], [0.0], [2.0]]), np.zeros(3))
    np.testing.assert_allclose(twice @ found, twice @ np.array([[1.0], [0.0], [2.0]]), rtol=1e-9)
    assert np.abs(found[:2] * units[:2, None] - 0.5).max() < 1e-6  # the least of all solutions, at unit diagonal
    assert not solve_diagonal(np.diag([1.0, 0.0]), np.ones((2, 1)), np.zeros(2))[1].any()


def problem(rows: Rows, **options: object) -> InvariantProblem:
    given = {"most": None, "alpha": None, "rows": 60, "shares": SHARES, **options}
    return InvariantProblem(tuple(rows.observed()), LEVELS, 1.5, **given)  # type: ignore[arg-type]


def test_levels_and_penalty_of_least_error() -> None:
    rows = Rows(4, 1.0)
    assert problem(rows).penalty.tolist() == PENALTY.tolist()
    assert problem(rows).ends == [1, 4, 9]
    found = LeastSquares().solve(problem(rows))
    assert found.curve is not None
    assert found.curve[:, 0].tolist() == [1, 4, 9]
    for size, (_, alpha, error) in zip((1, 4, 9), found.curve, strict=True):
        assert error == pytest.approx(rows.error(size, alpha), rel=1e-9)
    best = found.curve[found.curve[:, 2].argmin()]
    assert (found.most, found.alpha) == (best[0], best[1])
    size = int(np.count_nonzero(found.most >= LEVELS))
    form, target = (sum(getattr(kind, name) for kind in rows.observed()) for name in ("form", "target"))
    a = np.linalg.solve(form[:size, :size] + found.alpha * np.diag(PENALTY[:size]), target[:size])
    np.testing.assert_allclose(found.coefficients, a, rtol=1e-9)
    assert found.score == pytest.approx(rows.score(found.alpha, size), rel=1e-9)
    # without a fold
    rest = rows.fold != 2
    f, y = (np.concatenate([part[rest] for part in parts]) for parts in (rows.f, rows.y))
    a = np.linalg.solve(
        f[:, :size].T @ f[:, :size] / 45 + found.alpha * np.diag(PENALTY[:size]), f[:, :size].T @ y / 45
    )
    np.testing.assert_allclose(LeastSquares().refit(problem(rows), found, 2, 0.25), a, rtol=1e-9)


def test_what_is_given_is_kept() -> None:
    rows = Rows(4, 1.0)
    for most, size in ((3, 1), (4, 4), (8, 4), (9, 9)):
        found = LeastSquares().solve(problem(rows, most=most, alpha=0.3))
        assert (len(found.coefficients), found.alpha) == (size, 0.3)
    plain = LeastSquares().solve(problem(rows, shares=None))
    assert plain.curve is not None
    for size, (_, alpha, score) in zip((1, 4, 9), plain.curve, strict=True):
        assert score == pytest.approx(rows.score(alpha, size), rel=1e-9)
    few = problem(rows)
    few = InvariantProblem(
        tuple(Observed(k.form, k.target, k.squares, 2.0, k.folds) for k in few.observed), LEVELS, 1.5, None, 0.1, 60
    )
    assert [c.size for c in LeastSquares().candidates(few, [1, 4])] == [1, 4]
    assert LeastSquares().solve(few).curve[:, 0].tolist() == [1, 4]  # no more functions than observations
    slopes = InvariantProblem(tuple(rows.observed()[1:]), LEVELS, 1.5, None, 0.1, 60)
    assert slopes.ends == [4, 9]  # they see no constant
    assert LeastSquares().default(60, 1.5) is None


def test_of_many_levels_the_first_the_last_and_some_between_are_tried() -> None:
    assert list(_spread(3)) == [0, 1, 2]
    many = list(_spread(1000))
    assert many[:16] == list(range(16))
    assert many[-1] == 999
    assert 25 < len(many) <= 46
    assert max(np.diff(np.log(many[15:]))) < 0.28


def test_projection_takes_means() -> None:
    """Algorithm 1 of Soleymani and others: D = n^(1 / (1 + alpha)), 60^0.4 = 5.1 here."""
    rows = Rows(kinds=1)
    one = problem(rows)
    found = Projection().solve(one)
    np.testing.assert_array_equal(found.coefficients, one.observed[0].target[:4])
    assert (found.most, Projection().default(32, 1.5), Projection().default(1000, 2.0)) == (5, 4, 10)
    rest = rows.fold != 1
    np.testing.assert_allclose(
        Projection().refit(one, found, 1, 0.25), rows.f[0][rest, :4].T @ rows.y[0][rest] / 45, rtol=1e-9
    )
    assert [len(Projection().solve(problem(rows, most=most)).coefficients) for most in (3, 4, 60)] == [1, 4, 9]
    with pytest.raises(ValueError, match="n_eigenfunctions=61 is more than the 60 rows"):
        Projection().solve(problem(rows, most=61))
