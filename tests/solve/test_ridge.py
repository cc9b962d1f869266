"""Ridge regression from moments against explicit hat matrices, refits without a row, and dual solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.solve.ridge import CUTS, Observed, RidgeFit, solve_ridge

Array = NDArray[Any]


def gaussian(x: Array, y: Array, scale: float) -> Array:
    return np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2) / (2 * scale**2))


def observed(features: Array, z: Array, n: int) -> list[Observed]:
    """Moments of features (N, p) and targets (N, m) as means over n rows; the first of N / n a row is its value."""
    first = np.arange(len(features)) % (len(features) // n) == 0
    kinds = [first] if first.all() else [first, ~first]
    return [
        Observed(f.T @ f / n, f.T @ t / n, np.sum(t**2, axis=0) / n, len(f))
        for f, t in ((features[kind], z[kind]) for kind in kinds)
    ]


def solve(features: Array, z: Array, penalty: Array, n: int | None = None, **options: Any) -> RidgeFit:
    """From explicit features (N, p) and targets (N, m), as means over n rows."""
    return solve_ridge(observed(features, z, n or len(features)), penalty, **options)


def hat(features: Array, penalty: Array, alpha: float, n: int) -> Array:
    return features @ np.linalg.solve(features.T @ features / n + alpha * penalty, features.T) / n


def robustness(h: Array) -> float:
    """What raises the score of hat matrices, or some of their rows: the variance of the fit over that of the noise."""
    return float(1 + 2 * np.mean(np.sum(h**2, axis=1)) ** 2)


def explicit_score(features: Array, z: Array, penalty: Array, alpha: float, n: int) -> float:
    """Values and gradients with the mean leverage of their own."""
    h = hat(features, penalty, alpha, n)
    squares = np.sum((z - h @ z) ** 2, axis=1).reshape(n, -1)
    leverages, rows, total = np.diag(h).reshape(n, -1), np.arange(len(h)).reshape(n, -1), 0.0
    for kind in (slice(1), slice(1, None)) if squares.shape[1] > 1 else (slice(1),):
        corrected = np.sum(squares[:, kind]) / n / (1 - np.mean(leverages[:, kind])) ** 2
        total += corrected * robustness(h[rows[:, kind].ravel()])
    return float(total)


def problem(seed: int, n: int, p: int, d: int, m: int, scale: float, gradients: bool) -> tuple[Array, Array, Array]:
    """Features, noisy targets and the penalty of a Gaussian; with gradients d + 1 rows of features a point."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((p, d))
    features = gaussian(x, y, scale)
    if gradients:
        slopes = -features[:, :, None] * (x[:, None] - y[None]) / scale**2
        features = np.concatenate([features[:, None], slopes.transpose(0, 2, 1)], axis=1).reshape(-1, p)
    z = features @ rng.standard_normal((p, m)) + 0.3 * rng.standard_normal((len(features), m))
    return features, z, gaussian(y, y, scale)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 0.1])
def test_score_and_freedom_of_the_hat_matrix(alpha: float, gradients: bool) -> None:
    n, p = 40, 15
    features, z, penalty = problem(0, n, p, 3, 2, 0.8, gradients)
    fit = solve(features, z, penalty, n, alpha=alpha)
    h = hat(features, penalty, alpha, n)
    assert (fit.rank, fit.alpha) == (p, alpha)
    np.testing.assert_allclose(fit.freedom, np.trace(h), rtol=1e-10)
    np.testing.assert_allclose(fit.score, explicit_score(features, z, penalty, alpha, n), rtol=1e-10)
    np.testing.assert_allclose(features @ fit.coefficients, h @ z, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal([fit.alphas, fit.scores], [[alpha], [fit.score]])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 3), gradients=st.booleans(), scale=st.floats(0.3, 2))
def test_alpha_has_the_least_score(seed: int, m: int, gradients: bool, scale: float) -> None:
    n = 60
    features, z, penalty = problem(seed, n, 12, 2, m, scale, gradients)
    fit = solve(features, z, penalty, n)
    scores = [explicit_score(features, z, penalty, alpha, n) for alpha in 10 ** np.arange(-8.0, 3.0, 0.25)]
    assert fit.score <= min(scores) * (1 + 1e-6)
    np.testing.assert_allclose(fit.score, explicit_score(features, z, penalty, fit.alpha, n), rtol=1e-6)
    assert np.all(np.diff(fit.alphas) > 0)
    assert fit.scores.min() >= fit.score * (1 - 1e-3)  # the curve's decomposition is less exact far from its anchor


def refitted_residuals(features: Array, z: Array, penalty: Array, alpha: float) -> Array:
    """z_i minus the prediction of a fit without row i; the penalty keeps its weight against one row."""
    n = len(features)
    errors = []
    for i in range(n):
        kept = np.arange(n) != i
        fit = solve(features[kept], z[kept], penalty, alpha=alpha * n / (n - 1))
        errors.append(z[i] - features[i] @ fit.coefficients)
    return np.array(errors)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
def test_residuals_without_a_row(alpha: float) -> None:
    features, z, penalty = problem(3, 30, 10, 2, 1, 0.8, False)
    fit = solve(features, z, penalty, alpha=alpha)
    leverage = np.diag(hat(features, penalty, alpha, 30))[:, None]
    formula = (z - features @ fit.coefficients) / (1 - leverage)
    np.testing.assert_allclose(refitted_residuals(features, z, penalty, alpha), formula, rtol=1e-7)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_score_is_leave_one_out_where_rows_have_one_leverage(alpha: float) -> None:
    angle = 2 * np.pi * np.arange(30) / 30
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    features, penalty = gaussian(circle, circle[::3], 0.5), gaussian(circle[::3], circle[::3], 0.5)
    # rows at and between landmarks have other leverages: a third of them is one class
    features = features[1::3]
    z = np.sin(3 * angle[1::3, None]) + 0.3 * np.random.default_rng(0).standard_normal((10, 1))
    fit = solve(features, z, penalty, alpha=alpha)
    left_out = refitted_residuals(features, z, penalty, alpha)
    robust = robustness(hat(features, penalty, alpha, 10))
    np.testing.assert_allclose(fit.score, robust * np.mean(left_out**2), rtol=1e-9)


def test_score_is_near_leave_one_out_elsewhere() -> None:
    features, z, penalty = problem(5, 30, 10, 2, 1, 0.8, False)
    alphas = 10 ** np.arange(-6.0, 2.0, 0.5)
    left_out = [np.mean(refitted_residuals(features, z, penalty, a) ** 2) for a in alphas]
    at_the_best = np.mean(refitted_residuals(features, z, penalty, solve(features, z, penalty).alpha) ** 2)
    assert at_the_best <= 1.1 * min(left_out)


def points_left_out(features: Array, z: Array, penalty: Array, alpha: float, n: int) -> Array:
    """The residuals (n, d + 1) of the value and gradient of each point in a fit without both."""
    f, t = features.reshape(n, -1, features.shape[1]), z.reshape(n, -1)
    errors = []
    for i in range(n):
        rest, targets = np.delete(f, i, axis=0).reshape(-1, f.shape[2]), np.delete(t, i, axis=0).ravel()
        errors.append(t[i] - f[i] @ np.linalg.solve(rest.T @ rest + n * alpha * penalty, rest.T @ targets))
    return np.array(errors)


@pytest.mark.parametrize("unit", [1, 10, 1000])
def test_units_of_the_gradients_do_not_spoil_the_choice(unit: float) -> None:
    """The choice is near the best of explicit leave-one-out, also where gradients are too small to weigh anything."""
    n, ratios = 50, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, 2))
        penalty = gaussian(x, x, 0.8)
        slopes = -penalty[:, :, None] * (x[:, None] - x) / 0.8**2
        features = np.concatenate([penalty[:, None], slopes.transpose(0, 2, 1) / unit], axis=1).reshape(-1, n)
        truth = np.column_stack([np.sin(x[:, 0]) + 0.5 * x[:, 1], np.cos(x[:, 0]) / unit, np.full(n, 0.5) / unit])
        z = (truth + 0.3 * rng.standard_normal((n, 3)) / [1, unit, unit]).reshape(-1, 1)

        def error(alpha: float, f: Array = features, z: Array = z, k: Array = penalty) -> float:
            return float(np.sum(points_left_out(f, z, k, alpha, n) ** 2))

        best = min(error(alpha) for alpha in 10 ** np.arange(-5.0, 1.0, 0.25))
        ratios.append(error(solve(features, z, penalty, n).alpha) / best)
    assert np.mean(ratios) < 1.1
    assert max(ratios) < 1.25


def test_interpolation_is_not_chosen_by_chance() -> None:
    """As many functions as rows, of leverages that differ: plain cross-validation takes 198 degrees of freedom here."""
    errors = []
    for seed in range(100, 106):
        rng = np.random.default_rng(seed)
        x, new = rng.standard_normal((200, 5)), rng.standard_normal((400, 5))
        features, penalty, test = gaussian(x, x, 2.0), gaussian(x, x, 2.0), gaussian(new, x, 2.0)
        truth = [np.sin(3 * at[:, :1]) + np.abs(at[:, -1:]) for at in (x, new)]
        fit = solve(features, truth[0] + 0.3 * rng.standard_normal((200, 1)), penalty)
        errors.append(np.std(test @ fit.coefficients - truth[1]) / np.std(truth[1]))
    assert max(errors) < 1


def augmented(features: Array, z: Array, penalty: Array, alpha: float, n: int) -> Array:
    """The coefficients by least squares on [features / sqrt(n); sqrt(alpha) K^(1/2)], without normal equations."""
    values, vectors = np.linalg.eigh(penalty)
    root = np.sqrt(alpha * np.maximum(values, 0))[:, None] * vectors.T
    above = np.vstack([features / np.sqrt(n), root])
    below = np.concatenate([z / np.sqrt(n), np.zeros((len(root), z.shape[1]))])
    return np.linalg.lstsq(above, below, rcond=1e-10)[0]


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(("n", "p", "scale"), [(400, 80, 1.0), (60, 120, 2.0)])
def test_singular_kernel_matrices(n: int, p: int, scale: float, gradients: bool) -> None:
    """A and K have condition numbers beyond 1e17; predictions are those of least squares."""
    rng = np.random.default_rng(1)
    features, _, penalty = problem(1, n, p, 2, 1, scale, gradients)
    z = np.sin(features[:, :1]) + 0.1 * rng.standard_normal((len(features), 1))
    values = np.linalg.eigvalsh(features.T @ features)
    assert values[0] < 1e-17 * values[-1]
    for alpha, tolerance in ((1e-5, 2e-2), (1e-2, 1e-3)):  # sums of squares cost half of the digits
        exact = features @ augmented(features, z, penalty, alpha, n)
        found = features @ solve(features, z, penalty, n, alpha=alpha).coefficients
        assert np.linalg.norm(found - exact) <= tolerance * np.linalg.norm(exact)
    fit = solve(features, z, penalty, n)
    assert fit.rank < p
    assert 0 < fit.freedom < fit.rank + 1e-9


def test_more_functions_than_rows() -> None:
    """Directions that no row sees count for nothing; the hat matrix is G (G + alpha)^(-1), G = Phi K^(-1) Phi^T / n."""
    features, z, penalty = problem(11, 30, 80, 5, 1, 1.5, False)
    inner = features @ np.linalg.solve(penalty, features.T) / 30
    for alpha in (None, 1e-4, 1e-2):
        fit = solve(features, z, penalty, alpha=alpha)
        h = np.linalg.solve(inner + fit.alpha * np.eye(30), inner)
        assert fit.rank == 30
        np.testing.assert_allclose(fit.freedom, np.trace(h), rtol=1e-6)
        score = np.mean((z - h @ z) ** 2) / (1 - np.trace(h) / 30) ** 2 * robustness(h)
        np.testing.assert_allclose(fit.score, score, rtol=1e-5)


def test_landmarks_given_twice_change_nothing() -> None:
    features, z, penalty = problem(2, 50, 10, 2, 2, 0.8, False)
    twice = np.concatenate([features, features], axis=1)
    fit, other = solve(features, z, penalty), solve(twice, z, np.tile(penalty, (2, 2)))
    assert (fit.rank, other.rank) == (10, 10)
    np.testing.assert_allclose(other.alpha, fit.alpha, rtol=1e-3)
    other = solve(twice, z, np.tile(penalty, (2, 2)), alpha=fit.alpha)
    np.testing.assert_allclose(twice @ other.coefficients, features @ fit.coefficients, rtol=1e-8)


@pytest.mark.parametrize("p", [20, 35])
def test_rows_among_the_landmarks_give_the_dual_solution(p: int) -> None:
    """With every row a landmark, f = sum_k c_k k(., x_k) (K + n alpha) c = y, whatever other landmarks there are."""
    rng = np.random.default_rng(4)
    y = rng.standard_normal((p, 3))
    penalty = gaussian(y, y, 1.0)
    features, z = penalty[:20], rng.standard_normal((20, 1))
    for alpha in (1e-4, 1e-1):
        dual = features.T @ np.linalg.solve(penalty[:20, :20] + 20 * alpha * np.eye(20), z)
        fit = solve(features, z, penalty, alpha=alpha)
        np.testing.assert_allclose(penalty @ fit.coefficients, dual, rtol=1e-6, atol=1e-8)


def test_no_penalty_interpolates() -> None:
    rng = np.random.default_rng(6)
    y, z = rng.standard_normal((12, 3)), rng.standard_normal((12, 1))
    k = gaussian(y, y, 0.8)
    errors = [np.abs(k @ solve(k, z, k, alpha=a).coefficients - z).max() for a in (1e-2, 1e-7, 0)]
    assert errors[0] > 1e-2
    assert errors[1] < 1e-4
    assert errors[2] < 1e-10


def test_pure_noise_is_shrunk_and_exact_targets_are_not() -> None:
    features, _, penalty = problem(7, 200, 10, 2, 1, 0.8, False)
    noise = np.random.default_rng(0).standard_normal((200, 1))
    assert solve(features, noise, penalty).freedom < 2
    exact = solve(features, features @ np.ones((10, 1)), penalty)
    np.testing.assert_allclose(exact.coefficients, 1, rtol=1e-4)
    zero = solve(features, np.zeros((200, 1)), penalty)
    assert not zero.coefficients.any()


def test_units_of_the_targets_do_not_matter() -> None:
    features, z, penalty = problem(8, 50, 10, 2, 2, 0.8, False)
    fit, other = solve(features, z, penalty), solve(features, 1e6 * z, penalty)
    np.testing.assert_allclose(other.alpha, fit.alpha, rtol=1e-3)
    np.testing.assert_allclose(other.score, 1e12 * fit.score, rtol=1e-6)
    scaled = solve(features, z, 100 * penalty)
    np.testing.assert_allclose(scaled.alpha, fit.alpha / 100, rtol=1e-3)


def test_moments_in_single_precision() -> None:
    features, z, penalty = problem(9, 300, 60, 2, 1, 1.0, False)
    f, t = features.astype("float32"), z.astype("float32")
    means = (f.T @ f).astype(float) / 300, (f.T @ t).astype(float) / 300, np.sum(z**2, axis=0) / 300
    fit, other = solve(features, z, penalty), solve_ridge([Observed(*means, 300)], penalty, cut=CUTS["float32"])
    assert other.rank < fit.rank
    np.testing.assert_allclose(other.score, fit.score, rtol=0.05)
    exact = features @ fit.coefficients
    np.testing.assert_allclose(features @ other.coefficients, exact, atol=0.05 * np.abs(exact).max())


def test_functions_that_vanish() -> None:
    with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
        solve(np.zeros((5, 3)), np.ones((5, 1)), np.eye(3))
