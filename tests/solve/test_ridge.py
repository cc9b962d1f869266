"""Ridge regression from moments: hat matrices, dual solutions, and refits to the other folds, from weighted rows."""

import numpy as np
import pytest

from daskspectral.solve.ridge import (
    Observed,
    RidgeProblem,
    best_penalty,
)
from tests.solve.common import gaussian


def test_directions_that_no_row_sees_count_for_nothing() -> None:
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
