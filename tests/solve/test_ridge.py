"""Ridge regression from moments: explicit hat matrices, dual solutions, and refits to the other folds, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve.folded import FoldSums, best_penalty
from daskspectral.solve.ridge import CUTS, Observed, RidgeFit, resolve_ridge_cut, ridge_curve, solve_ridge
from tests.solve.common import Array, gaussian


def solve(features: Array, z: Array, penalty: Array, n: int | None = None, **options: Any) -> RidgeFit:
    """From explicit features (N, p) and targets (N, m), as means over n rows; the first of N / n a row is its value."""
    n = n or len(features)
    first = np.arange(len(features)) % (len(features) // n) == 0
    kinds = [
        Observed(f.T @ f / n, f.T @ t / n, np.sum(t**2, axis=0) / n, len(f))
        for f, t in ((features[kind], z[kind]) for kind in ([first] if first.all() else [first, ~first]))
    ]
    return solve_ridge(kinds, penalty, **options)


def hat(features: Array, penalty: Array, alpha: float, n: int) -> Array:
    return features @ np.linalg.solve(features.T @ features / n + alpha * penalty, features.T) / n


def explicit_score(features: Array, z: Array, penalty: Array, alpha: float, n: int) -> float:
    """Values and gradients with the mean leverage of their own, and the variance of the fit over that of the noise."""
    h = hat(features, penalty, alpha, n)
    squares = np.sum((z - h @ z) ** 2, axis=1).reshape(n, -1)
    leverages, rows, total = np.diag(h).reshape(n, -1), np.arange(len(h)).reshape(n, -1), 0.0
    for kind in (slice(1), slice(1, None)) if squares.shape[1] > 1 else (slice(1),):
        robust = 1 + 2 * np.mean(np.sum(h[rows[:, kind].ravel()] ** 2, axis=1)) ** 2
        total += np.sum(squares[:, kind]) / n / (1 - np.mean(leverages[:, kind])) ** 2 * robust
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
@pytest.mark.parametrize("alpha", [1e-5, 0.1])
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
    assert (fit.errors, fit.error) == (None, None)
    assert np.isinf(solve(features[:p], z[:p], penalty, alpha=1e-12).score)  # nothing is left free


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 3), gradients=st.booleans(), scale=st.floats(0.3, 2))
def test_alpha_has_the_least_score(seed: int, m: int, gradients: bool, scale: float) -> None:
    """In any units of targets and penalty."""
    n = 60
    features, z, penalty = problem(seed, n, 12, 2, m, scale, gradients)
    fit = solve(features, z, penalty, n)
    scores = [explicit_score(features, z, penalty, alpha, n) for alpha in 10 ** np.arange(-8.0, 3.0, 0.25)]
    assert fit.score <= min(scores) * (1 + 1e-6)
    np.testing.assert_allclose(fit.score, explicit_score(features, z, penalty, fit.alpha, n), rtol=1e-6)
    np.testing.assert_allclose(np.diff(np.log10(fit.alphas)), 0.2)
    form = features.T @ features / n
    assert fit.alphas[0] == pytest.approx(1e-3 * 10**-7.5 * np.trace(form) / np.trace(penalty))
    largest = scipy.linalg.eigvalsh(form, penalty)[-1]
    assert 99 * largest < fit.alphas[-1] < 101 * 10**0.2 * largest
    assert fit.scores.min() >= fit.score * (1 - 1e-3)  # the curve's decomposition is less exact far from its anchor
    other = solve(features, 1e6 * z, 100 * penalty, n)
    np.testing.assert_allclose(other.score, 1e12 * fit.score, rtol=1e-6)


@pytest.mark.parametrize(("n", "p", "scale", "gradients"), [(400, 80, 1.0, False), (60, 120, 2.0, True)])
def test_singular_kernel_matrices(n: int, p: int, scale: float, gradients: bool) -> None:
    """A and K have condition numbers beyond 1e17; predictions are those of least squares on [f; sqrt(alpha K)]."""
    rng = np.random.default_rng(1)
    features, _, penalty = problem(1, n, p, 2, 1, scale, gradients)
    z = np.sin(features[:, :1]) + 0.1 * rng.standard_normal((len(features), 1))
    values, vectors = np.linalg.eigh(penalty)
    for alpha, tolerance in ((1e-5, 2e-2), (1e-2, 1e-3)):  # sums of squares cost half of the digits
        root = np.sqrt(n * alpha * np.maximum(values, 0))[:, None] * vectors.T
        above, below = np.vstack([features, root]), np.concatenate([z, np.zeros((p, 1))])
        exact = features @ np.linalg.lstsq(above, below, rcond=1e-10)[0]
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
        score = np.mean((z - h @ z) ** 2) / (1 - np.trace(h) / 30) ** 2 * (1 + 2 * np.mean(np.sum(h**2, axis=1)) ** 2)
        np.testing.assert_allclose(fit.score, score, rtol=1e-5)


def test_landmarks_given_twice_change_nothing() -> None:
    features, z, penalty = problem(2, 50, 10, 2, 2, 0.8, False)
    twice, both = np.concatenate([features, features], axis=1), np.tile(penalty, (2, 2))
    fit, other = solve(features, z, penalty), solve(twice, z, both)
    assert (fit.rank, other.rank) == (10, 10)
    np.testing.assert_allclose(other.alpha, fit.alpha, rtol=1e-3)
    other = solve(twice, z, both, alpha=fit.alpha)
    np.testing.assert_allclose(twice @ other.coefficients, features @ fit.coefficients, rtol=1e-8)


def test_no_penalty_interpolates_and_rows_among_the_landmarks_give_the_dual_solution() -> None:
    """With every row a landmark, f = sum_k c_k k(., x_k) (K + n alpha) c = y, whatever other landmarks there are."""
    rng = np.random.default_rng(4)
    y, z = rng.standard_normal((35, 3)), rng.standard_normal((20, 1))
    penalty = gaussian(y, y)
    for alpha in (1e-4, 1e-1):
        dual = penalty[:, :20] @ np.linalg.solve(penalty[:20, :20] + 20 * alpha * np.eye(20), z)
        fit = solve(penalty[:20], z, penalty, alpha=alpha)
        np.testing.assert_allclose(penalty @ fit.coefficients, dual, rtol=1e-6, atol=1e-8)
    k = gaussian(y[:12], y[:12], 0.8)
    errors = [np.abs(k @ solve(k, z[:12], k, alpha=a).coefficients - z[:12]).max() for a in (1e-2, 1e-7, 0)]
    assert errors[0] > 1e-2
    assert errors[1] < 1e-4
    assert errors[2] < 1e-10


def test_interpolation_is_not_chosen_by_chance() -> None:
    """As many functions as rows, of leverages that differ: plain cross-validation takes 198 degrees of freedom here."""
    rng = np.random.default_rng(100)
    x, new = rng.standard_normal((200, 5)), rng.standard_normal((400, 5))
    features, test = gaussian(x, x, 2.0), gaussian(new, x, 2.0)
    truth = [np.sin(3 * at[:, :1]) + np.abs(at[:, -1:]) for at in (x, new)]
    fit = solve(features, truth[0] + 0.3 * rng.standard_normal((200, 1)), features)
    assert np.std(test @ fit.coefficients - truth[1]) < np.std(truth[1])


def test_pure_noise_is_shrunk_and_exact_targets_are_not() -> None:
    features, _, penalty = problem(7, 200, 10, 2, 1, 0.8, False)
    assert solve(features, np.random.default_rng(0).standard_normal((200, 1)), penalty).freedom < 2
    exact = solve(features, features @ np.ones((10, 1)), penalty)
    np.testing.assert_allclose(exact.coefficients, 1, rtol=1e-4)
    assert not solve(features, np.zeros((200, 1)), penalty).coefficients.any()


def test_moments_in_single_precision() -> None:
    features, z, penalty = problem(9, 300, 60, 2, 1, 1.0, False)
    f, t = features.astype("float32"), z.astype("float32")
    means = (f.T @ f).astype(float) / 300, (f.T @ t).astype(float) / 300, np.sum(z**2, axis=0) / 300
    fit, other = solve(features, z, penalty), solve_ridge([Observed(*means, 300)], penalty, cut=CUTS["float32"])
    assert other.rank < fit.rank
    exact = features @ fit.coefficients
    np.testing.assert_allclose(features @ other.coefficients, exact, atol=0.05 * np.abs(exact).max())


def test_what_cannot_be_solved_is_refused() -> None:
    with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
        solve(np.zeros((5, 3)), np.ones((5, 1)), np.eye(3))
    assert [resolve_ridge_cut(rtol, "float32") for rtol in (None, 1e-4)] == [1e-6, 1e-4]
    with pytest.raises(ValueError, match=r"rtol must be positive: .* Leave it None for 1e-15"):
        resolve_ridge_cut(0.0, "float64")


# -- folds -------------------------------------------------------------------------------------------------------------


class Data:
    """Rows with several features each (values, and gradients in the second kind), their weights and their folds."""

    def __init__(self, seed: int, folds: int, m: int, kinds: int, n: int = 40, p: int = 12):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((n, 2)), rng.standard_normal((p, 2))
        values = gaussian(x, y)
        slopes = -values[:, :, None] * (x[:, None] - y)
        self.features = [values[:, None], slopes.transpose(0, 2, 1)][:kinds]
        truth = rng.standard_normal((p, m))
        self.targets = [f @ truth + 0.5 * rng.standard_normal((n, f.shape[1], m)) for f in self.features]
        self.weight, self.fold = rng.uniform(0.5, 2, n), rng.permutation(np.arange(n) % folds)
        self.penalty, self.folds = gaussian(y, y), folds

    def sums(self, kind: int, rows: Array) -> tuple[Array, Array, Array]:
        w, f, t = self.weight * rows, self.features[kind], self.targets[kind]
        return (
            np.einsum("n,nai,naj->ij", w, f, f),
            np.einsum("n,nai,nam->im", w, f, t),
            np.einsum("n,nam,nam->m", w, t, t),
        )

    def observed(self) -> list[Observed]:
        total, found = self.weight.sum(), []
        for kind in range(len(self.features)):
            parts = [self.sums(kind, self.fold == k) for k in range(self.folds)]
            folds = FoldSums(*(np.stack(part) for part in zip(*parts, strict=True)), unit=1 / total)
            whole = (s / total for s in self.sums(kind, self.fold >= 0))
            found.append(Observed(*whole, len(self.fold) * self.features[kind].shape[1], folds))
        return found

    @property
    def shares(self) -> Array:
        return np.array([self.weight[self.fold == k].sum() for k in range(self.folds)]) / self.weight.sum()

    def errors(self, alpha: float) -> Array:
        """Row by row: the squared errors of each kind of fits to all other folds; rows in no fold are always fitted."""
        found = np.zeros(len(self.features))
        for k in range(self.folds):
            others = self.fold != k
            parts = [self.sums(kind, others) for kind in range(len(self.features))]
            form, target = (sum(part[i] for part in parts) / self.weight[others].sum() for i in (0, 1))
            a = np.linalg.solve(form + alpha * self.penalty, target)
            for kind, (f, t) in enumerate(zip(self.features, self.targets, strict=True)):
                missed = t - np.einsum("nai,im->nam", f, a)
                found[kind] += np.sum(self.weight[~others] * (missed[~others] ** 2).sum(axis=(1, 2)))
        return found / self.weight[self.fold < self.folds].sum()


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    folds=st.sampled_from([2, 3, 10]),
    m=st.integers(1, 3),
    kinds=st.sampled_from([1, 2]),
    apart=st.booleans(),
)
def test_errors_are_those_of_fits_to_the_other_folds(seed: int, folds: int, m: int, kinds: int, apart: bool) -> None:
    data = Data(seed, folds + apart, m, kinds)
    data.folds = folds  # the rows of one fold more are in none
    curve = ridge_curve(data.observed(), data.penalty, shares=data.shares)
    assert curve.errors is not None
    assert curve.errors.shape == (len(curve.alphas), kinds)
    for i in np.linspace(0, len(curve.alphas) - 1, 6).astype(int):
        if curve.alphas[i] > 1e-6:  # below, the normal equations of the comparison are rounding
            np.testing.assert_allclose(curve.errors[i], data.errors(curve.alphas[i]), rtol=1e-6)
    skew, kinds_of = np.triu(data.penalty, 1) - np.tril(data.penalty, -1), data.observed()
    changed = [  # as rounding of sums changes them, and more: symmetric parts count
        replace(kind, form=kind.form + skew, folds=replace(kind.folds, forms=kind.folds.forms + skew))
        for kind in kinds_of
        if kind.folds is not None
    ]
    one, other = (
        solve_ridge(some, k, alpha=0.01, shares=data.shares)
        for some, k in ((kinds_of, data.penalty), (changed, data.penalty + skew))
    )
    np.testing.assert_allclose(other.errors, one.errors, rtol=1e-6)
    np.testing.assert_allclose(other.score, one.score, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1e-7, 1e-2, 1.0])
def test_one_penalty_alone(alpha: float) -> None:
    data = Data(1, 5, 2, 2)
    fit = solve_ridge(data.observed(), data.penalty, alpha=alpha, shares=data.shares)
    assert fit.errors is not None
    np.testing.assert_allclose(fit.errors, [data.errors(alpha)], rtol=1e-5 if alpha < 1e-6 else 1e-9)
    assert fit.error == fit.errors.sum()


def test_alpha_has_the_least_error_and_gives_the_same_bits_when_given_back() -> None:
    for seed, kinds in ((0, 2), (1, 2), (2, 1)):
        data = Data(seed, 10, 2, kinds)
        fit = solve_ridge(data.observed(), data.penalty, shares=data.shares)
        least = min(data.errors(alpha).sum() for alpha in 10 ** np.arange(-7.0, 3, 0.1))
        assert data.errors(fit.alpha).sum() <= least * (1 + 1e-4)
        assert fit.error == pytest.approx(data.errors(fit.alpha).sum(), rel=1e-2)
        for how in (fit, solve_ridge(data.observed(), data.penalty, alpha="gcv", shares=data.shares)):
            again = solve_ridge(data.observed(), data.penalty, alpha=how.alpha, shares=data.shares)
            np.testing.assert_array_equal(again.coefficients, how.coefficients)
            assert (again.score, again.rank, again.freedom) == (how.score, how.rank, how.freedom)
        assert solve_ridge(data.observed(), data.penalty).alpha == how.alpha != fit.alpha


def test_folds_that_cannot_be_left_out() -> None:
    assert [part.sum() for part in FoldSums(np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.ones((2, 1))).of(1)] == [1, 1, 1]
    data, two = Data(0, 3, 1, 1), Data(0, 3, 1, 1)
    data.fold[:] = 1
    assert ridge_curve(data.observed(), data.penalty, shares=data.shares).errors is None
    data.fold[:20] = 0
    two.fold[:], two.fold[:20], two.folds = 1, 0, 2
    curves = [ridge_curve(one.observed(), one.penalty, shares=one.shares).errors for one in (data, two)]
    np.testing.assert_allclose(*curves, rtol=1e-12)


def test_the_best_penalty_lies_between_those_tried() -> None:
    alphas = np.logspace(-4, 2, 31)
    errors = np.exp(0.3 * (np.log(alphas) - np.log(0.0123)) ** 2)
    assert best_penalty(alphas, errors) == pytest.approx(0.0123)
    assert best_penalty(alphas, np.linspace(1, 2, 31)) == alphas[0]
    assert best_penalty(alphas, np.linspace(2, 1, 31)) == alphas[-1]
    assert best_penalty(alphas, np.ones(31)) == alphas[-1]
    assert best_penalty(alphas, np.zeros(31)) == alphas[-1]
    assert best_penalty(alphas[:4], np.array([2.0, 1.0, 1.0, 2.0])) == pytest.approx(np.sqrt(alphas[1] * alphas[2]))
    assert best_penalty(alphas[:3], np.array([1.0, 0.0, 1.0])) == alphas[1]
