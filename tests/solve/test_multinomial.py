"""Multinomial regression by a fixed bound of the Hessian: the bound, the descent, and where it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve.multinomial import ClassMeans, Descent, probabilities
from tests.solve.common import Array

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
        loss, gradient = 0.0, np.zeros((r, classes))
        scores = c.T @ u
        logs = scores - scipy.special.logsumexp(scores, axis=0)
        for i in range(n):
            loss -= logs[y[i], i] / n
            gradient += np.outer(u[:, i], np.exp(logs[:, i]) - (np.arange(classes) == y[i])) / n
        return float(loss), gradient

    return ClassMeans(u @ u.T / n, np.bincount(y, minlength=classes) / n, 1.0, weights), evaluate


def descended(
    means: ClassMeans, evaluate: Evaluate, alpha: float, tolerance: float = 1e-15
) -> tuple[Descent, list[float]]:
    descent, values = Descent(means.bound(alpha), means.intercept, tolerance), []
    for _ in range(2000):
        descent.receive(*evaluate(descent.point))
        values.append(descent.value)
        if descent.done:
            break
    return descent, values


def test_probabilities_of_large_scores() -> None:
    scores = np.array([[1e4, -1e4, 0.0], [1e4 + 1, 1e4, 0.0], [-1e5, 0.0, 0.0]])
    np.testing.assert_allclose(probabilities(scores), scipy.special.softmax(scores, axis=0), rtol=1e-12)
    assert scores[0, 0] == 1e4  # they are left as they are


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), classes=st.integers(2, 5), alpha=st.floats(1e-4, 1.0))
def test_the_minimum_is_that_of_a_general_solver(seed: int, classes: int, alpha: float) -> None:
    means, evaluate = problem(seed, n=60, r=4, classes=classes)
    descent, values = descended(means, evaluate, alpha)
    assert descent.best is not None
    assert np.all(np.diff(values) <= 0)  # the objective never rises
    np.testing.assert_allclose(descent.best.sum(axis=1), 0, atol=1e-10)

    def objective(flat: Array) -> tuple[float, Array]:
        value, gradient = means.bound(alpha).penalised(flat.reshape(4, classes), *evaluate(flat.reshape(4, classes)))
        return value, gradient.ravel()

    other = scipy.optimize.minimize(objective, np.zeros(4 * classes), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert values[-1] <= other.fun + 1e-10
    at = descent.best.ravel()
    at_best = objective(at)
    assert np.abs(at_best[1]).max() < 1e-6
    assert at_best[0] == pytest.approx(values[-1], rel=1e-12)
    paid = 0.5 * alpha * np.sum(means.weights[:, None] * descent.best**2)
    assert at_best[0] == pytest.approx(evaluate(descent.best)[0] + paid, rel=1e-12)
    numeric = scipy.optimize.approx_fprime(0.1 + at, lambda flat: objective(flat)[0], 1e-7)
    np.testing.assert_allclose(objective(0.1 + at)[1], numeric, atol=1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), classes=st.integers(2, 5))
def test_the_bound_exceeds_the_hessian(seed: int, classes: int) -> None:
    """v.H v at random coefficients, by finite differences, and B on vectors that add up to 0 over the classes."""
    means, evaluate = problem(seed, n=40, r=4, classes=classes)
    rng = np.random.default_rng(seed + 1)
    c, v = rng.standard_normal((2, 4, classes)) * 3
    v -= v.mean(axis=1, keepdims=True)
    hessian = means.bound(1e-3)
    h = 1e-4
    change = (evaluate(c + h * v)[1] - evaluate(c - h * v)[1]) / (2 * h)
    curvature = np.sum(v * change) + np.sum(hessian.weights[:, None] * v * v)
    bound = 0.5 * means.gram + np.diag(hessian.weights)
    assert curvature <= np.sum(v * (bound @ v)) * (1 + 1e-6)
    np.testing.assert_allclose(bound @ hessian.solve(v), v, atol=1e-9)


def test_a_safe_step_falls_by_what_the_bound_promises() -> None:
    means, evaluate = problem(3)
    hessian, c = means.bound(1e-2), means.intercept
    for _ in range(20):
        value, gradient = hessian.penalised(c, *evaluate(c))
        step = -hessian.solve(gradient)
        after, _ = hessian.penalised(c + step, *evaluate(c + step))
        assert after <= value + 0.5 * np.sum(step * gradient) + 1e-14
        c = c + step


def test_fewer_evaluations_than_safe_steps_alone() -> None:
    means, evaluate = problem(1)
    _, values = descended(means, evaluate, 1e-3, 1e-12)
    hessian, c, plain = means.bound(1e-3), means.intercept, 0
    while True:
        value, gradient = hessian.penalised(c, *evaluate(c))
        plain += 1
        if value <= values[-1] + 1e-12:
            break
        c = c - hessian.solve(gradient)
    assert 3 * len(values) < plain


def test_a_point_that_does_worse_is_not_kept() -> None:
    means, evaluate = problem(2)
    descent = Descent(means.bound(1e-2), means.intercept, 1e-12)
    for _ in range(4):
        descent.receive(*evaluate(descent.point))
    best, value = descent.best, descent.value
    loss, gradient = evaluate(descent.point)
    descent.receive(loss + 10, gradient)
    assert descent.best is best
    assert descent.value == value
    assert not descent.done
    np.testing.assert_allclose(descent.point, best - means.bound(1e-2).solve(_gradient(means, evaluate, best)))


def _gradient(means: ClassMeans, evaluate: Evaluate, c: Any) -> Array:
    return means.bound(1e-2).penalised(c, *evaluate(c))[1]


def test_intercept_and_largest_penalty() -> None:
    means, evaluate = problem(4)
    scores = means.intercept.T @ np.eye(6)[:, :1]
    np.testing.assert_allclose(probabilities(scores)[:, 0], means.shares, rtol=1e-12)
    assert abs(evaluate(means.intercept)[1][0]).max() < 1e-12
    scaled = means.gram[1:, 1:] / np.sqrt(np.outer(means.weights[1:], means.weights[1:]))
    assert means.largest == pytest.approx(np.linalg.eigvalsh(scaled)[-1] / 2)
