"""Multinomial regression by a fixed bound of the Hessian: the bound, the descent, and where it ends."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from daskspectral.solve.multinomial import ClassMeans, Descent, FixedHessian, probabilities
from tests.solve.common import Array, inverse_hessian

Evaluate = Callable[[Array], tuple[float, Array]]


def problem(seed: int, n: int = 200, r: int = 6, classes: int = 3, spread: float = 2.0) -> tuple[ClassMeans, Evaluate]:
    """Random functions, the first of them 1, random labels, and the mean log loss with its gradient, row by row."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([np.ones((1, n)), rng.standard_normal((r - 1, n)) * rng.uniform(0.1, 1, (r - 1, 1))])
    p = scipy.special.softmax(spread * rng.standard_normal((r, classes)).T @ u, axis=0)
    y = np.array([rng.choice(classes, p=q) for q in p.T])
    y[:classes] = np.arange(classes)
    weights = np.concatenate([[0.0], np.arange(1, r) ** 1.5])

    def evaluate(c: Array) -> tuple[float, Array]:
        chances = probabilities(c.T @ u)
        right = np.arange(classes)[:, None] == y
        return float(-np.log(chances[right]).sum() / n), u @ (chances - right).T / n

    return ClassMeans(u @ u.T / n, np.bincount(y, minlength=classes) / n, 1.0, weights), evaluate


def test_probabilities_of_large_scores() -> None:
    scores = np.array([[1e4, -1e4, 0.0], [1e4 + 1, 1e4, 0.0], [-1e5, 0.0, 0.0]])
    np.testing.assert_allclose(probabilities(scores), scipy.special.softmax(scores, axis=0), rtol=1e-12)
    assert scores[0, 0] == 1e4  # they are left as they are


@pytest.mark.parametrize(("seed", "classes", "alpha"), [(0, 2, 1e-3), (1, 4, 0.1)])
def test_the_minimum_is_that_of_a_general_solver(seed: int, classes: int, alpha: float) -> None:
    """Every step is that of BFGS from the bound of the Hessian; the objective never rises."""
    means, evaluate = problem(seed, n=60, r=4, classes=classes)
    hessian = means.bound(alpha)
    bound = np.kron(0.5 * means.gram + np.diag(alpha * means.weights), np.eye(classes))
    descent, values, points, gradients = Descent(hessian, means.intercept, 1e-13), [], [], []

    def objective(flat: Array) -> tuple[float, Array]:
        c = flat.reshape(4, classes)
        loss, gradient = evaluate(c)
        paid = means.weights[:, None] * c
        return loss + 0.5 * alpha * float(np.sum(paid * c)), (gradient + alpha * paid).ravel()

    while not descent.done:
        descent.receive(*evaluate(descent.point))
        assert descent.best is not None
        values.append(descent.value)
        points.append(descent.best.ravel())
        gradients.append(objective(points[-1])[1])
        assert descent.value == pytest.approx(objective(points[-1])[0], rel=1e-12)
        assert descent.gap == pytest.approx(0.5 * gradients[-1] @ np.linalg.solve(bound, gradients[-1]), rel=1e-6)
        if len(points) in (1, 2, 4):
            first, y = np.linalg.inv(bound), np.diff(gradients, axis=0)
            pairs = list(zip(np.diff(points, axis=0), y, strict=True))
            if pairs:
                first *= pairs[-1][0] @ y[-1] / (y[-1] @ first @ y[-1])
            step = -inverse_hessian(pairs, first) @ gradients[-1]
            np.testing.assert_allclose(descent.point.ravel(), points[-1] + step, rtol=1e-6, atol=1e-9)
    assert np.all(np.diff(values) <= 0)
    assert len(values) < 40
    np.testing.assert_allclose(descent.best.sum(axis=1), 0, atol=1e-10)
    other = scipy.optimize.minimize(objective, np.zeros(4 * classes), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert values[-1] <= other.fun + 1e-10


def test_a_step_has_to_lower_the_objective_by_a_share_of_what_it_promises() -> None:
    for share, enough in ((0.9, False), (1.1, True)):
        descent = Descent(FixedHessian((np.eye(1), False), np.zeros(1)), np.ones((1, 1)), 1e-9)
        for loss in (1.0, 1.0 - share * 1e-4 * 4):  # of the gradient's square
            descent.receive(loss, np.full((1, 1), 2.0))
        assert descent.done is not enough


def test_intercept_bound_and_largest_penalty() -> None:
    means, evaluate = problem(4)
    assert probabilities(means.intercept.T @ np.eye(6)[:, :1])[:, 0] == pytest.approx(means.shares)
    assert abs(evaluate(means.intercept)[1][0]).max() < 1e-12
    scaled = means.gram[1:, 1:] / np.sqrt(np.outer(means.weights[1:], means.weights[1:]))
    assert means.largest == pytest.approx(np.linalg.eigvalsh(scaled)[-1] / 2)
    bound = 0.5 * 1.3 * means.gram + np.diag(0.02 * means.weights)
    np.testing.assert_allclose(bound @ means.bound(0.02, 1.3).solve(np.eye(6)), np.eye(6), atol=1e-9)
