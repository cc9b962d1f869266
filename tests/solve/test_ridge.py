"""Ridge regression from moments: hat matrices, dual solutions, and refits to the other folds, from weighted rows."""

import numpy as np
import pytest

from daskspectral.solve.ridge import FoldSums, Observed, RidgeProblem, best_generalized, best_on_folds, best_penalty
from tests.solve.common import Array, gaussian


def test_directions_without_rows_do_not_count() -> None:
    """The hat matrix is G (G + alpha)^(-1), G = Phi K^(-1) Phi^T / n; rows among the landmarks: the dual solution."""
    rng = np.random.default_rng(11)
    y, z = rng.standard_normal((80, 5)), rng.standard_normal((30, 1))
    penalty = gaussian(y, y, 1.5)
    features = penalty[:30]
    one = [Observed(features.T @ features / 30, features.T @ z / 30, np.sum(z**2, axis=0) / 30, 30)]
    for alpha in (None, 1e-4, 1e-2):
        fit = RidgeProblem(one, penalty).solve(alpha)
        inner = penalty[:30, :30] / 30
        h = np.linalg.solve(inner + fit.alpha * np.eye(30), inner)
        assert fit.rank == 30
        assert fit.freedom == pytest.approx(np.trace(h), rel=1e-6)
        score = np.mean((z - h @ z) ** 2) / (1 - np.trace(h) / 30) ** 2 * (1 + 2 * np.mean(np.sum(h**2, axis=1)) ** 2)
        assert fit.score == pytest.approx(score, rel=1e-5)
        if alpha is None:
            near = [RidgeProblem(one, penalty).solve(fit.alpha * factor).score for factor in (0.97, 1.03)]
            assert fit.score < min(near)
        dual = penalty[:, :30] @ np.linalg.solve(penalty[:30, :30] + 30 * fit.alpha * np.eye(30), z)
        np.testing.assert_allclose(penalty @ fit.coefficients, dual, rtol=1e-5, atol=1e-6)


# -- folds -------------------------------------------------------------------------------------------------------------


def test_the_best_penalty_lies_between_those_tried() -> None:
    alphas = np.logspace(-4, 2, 31)
    errors = np.exp(0.3 * (np.log(alphas) - np.log(0.0123)) ** 2)
    assert best_penalty(alphas, errors) == pytest.approx(0.0123)
    for i, tried in ((0, np.linspace(1, 2, 31)), (-1, np.linspace(2, 1, 31)), (-1, np.ones(31)), (-1, np.zeros(31))):
        assert best_penalty(alphas, tried) == alphas[i]
    assert best_penalty(alphas[:4], np.array([2.0, 1.0, 1.0, 2.0])) == pytest.approx(np.sqrt(alphas[1] * alphas[2]))
    assert best_penalty(alphas[:3], np.array([1.0, 0.0, 1.0])) == alphas[1]
    nearly = np.array([1e-20, np.nextafter(1e-20, 0), 1e-20])  # whose logarithms are equal
    assert best_penalty(alphas[:3], nearly) == alphas[1]


@pytest.mark.parametrize("start", [None, 1e-6, 10.0])
def test_the_penalty_of_least_error_on_folds_that_are_left_out(start: float | None) -> None:
    """The minimum by refits to the rows of the other folds, with the intercepts of those rows."""
    rng = np.random.default_rng(3)
    degree, folds = np.arange(1, 13), np.arange(90) % 5
    x = rng.uniform(0, 3, 90)
    features, y = np.cos(np.outer(x, degree)), (np.sin(2 * x) + 5 + 0.5 * rng.standard_normal(90))[:, None]
    penalty = degree**4.0
    groups = [(features[folds == k], y[folds == k]) for k in range(5)]
    sums = FoldSums(
        np.array([f.T @ f for f, _ in groups]),
        np.array([f.T @ v for f, v in groups]),
        np.array([(v**2).sum(axis=0) for _, v in groups]),
        1 / 90,
        np.array([f.sum(axis=0) for f, _ in groups]),
        np.array([v.sum(axis=0) for _, v in groups]),
        np.array([len(v) for _, v in groups], dtype=float),
    )
    means = features.T @ features / 90, features.T @ y / 90, (y**2).mean(axis=0)
    observed = Observed(*means, 90, sums).about(features.mean(axis=0), y.mean(axis=0))

    def missed(log: float) -> float:
        found = 0.0
        for k in range(5):
            f, v = features[folds != k], y[folds != k]
            a = np.linalg.solve(f.T @ f / len(f) + 10**log * np.diag(penalty), f.T @ (v - v.mean()) / len(f))
            found += float(np.sum((y[folds == k] - v.mean() - features[folds == k] @ a) ** 2))
        return found / 90

    logs = np.linspace(-9, 1, 201)
    errors: Array = np.array([missed(log) for log in logs])
    assert 0 < errors.argmin() < 200
    chosen = best_on_folds([observed], np.full(5, 0.2), penalty, start)
    assert missed(np.log10(chosen)) < errors.min() * 1.01


def test_functions_without_a_penalty_leave_the_rest_to_the_others() -> None:
    """The penalty is that of functions and two targets after regression on those that cost nothing."""
    rng = np.random.default_rng(4)
    free, paid = rng.standard_normal((60, 3)), rng.standard_normal((60, 4)) / [1, 2, 4, 8]
    paid = paid + free @ rng.standard_normal((3, 4))
    targets = 3 * free[:, :2] + paid[:, :2] + [0.3, 0.6] * rng.standard_normal((60, 2))
    penalty = np.array([0, 0, 0, 1.0, 4, 16, 64])
    rest = np.eye(60) - free @ np.linalg.pinv(free)

    def kind(x: Array, y: Array, count: float) -> Observed:
        return Observed(x.T @ x / 60, x.T @ y / 60, np.sum(y**2, axis=0) / 60, count)

    found = best_generalized([kind(np.hstack([free, paid]), targets, 60)], penalty)
    left = kind(rest @ paid, rest @ targets, 57)
    assert found == pytest.approx(RidgeProblem([left], np.diag(penalty[3:])).solve().alpha, rel=1e-4)
