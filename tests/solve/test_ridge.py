"""Ridge regression from moments: hat matrices, dual solutions, and refits to the other folds, from weighted rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve.ridge import (
    FoldSums,
    Observed,
    RidgeFit,
    RidgeProblem,
    best_penalty,
)
from tests.solve.common import Array, gaussian, skew


class Data:
    """Rows with several features each (values, and gradients in the second kind), their weights and their folds."""

    def __init__(self, kinds: int = 2, folds: int = 3, noise: float = 0.5, n: int = 40, p: int = 12):
        rng = np.random.default_rng(kinds)
        x, y = rng.standard_normal((n, 2)), rng.standard_normal((p, 2))
        values = gaussian(x, y)
        slopes = -values[:, :, None] * (x[:, None] - y)
        self.features = [values[:, None], slopes.transpose(0, 2, 1)][:kinds]
        truth = rng.standard_normal((p, 2))
        self.targets = [f @ truth + noise * rng.standard_normal((n, f.shape[1], 2)) for f in self.features]
        self.weight, self.fold = rng.uniform(0.5, 2, n), rng.permutation(np.arange(n) % folds)
        self.weight /= self.weight.sum()
        self.penalty, self.folds = gaussian(y, y), folds

    def sums(self, kind: int, rows: Array) -> tuple[Array, Array, Array]:
        f, t = (part[kind].reshape(-1, part[kind].shape[-1]) for part in (self.features, self.targets))
        w = np.repeat(self.weight * rows, len(f) // len(rows))[:, None]
        return f.T @ (w * f), f.T @ (w * t), np.sum(w * t**2, axis=0)

    def observed(self) -> list[Observed]:
        """With sums that are not symmetric, as rounding makes them, and more: symmetric parts count."""
        found = []
        for kind in range(len(self.features)):
            parts = [self.sums(kind, self.fold == k) for k in range(self.folds)]
            forms, targets, squares = (7 * np.stack(part) for part in zip(*parts, strict=True))
            form, target, norm = self.sums(kind, self.fold >= 0)
            folds = FoldSums(forms + skew(self.penalty), targets, squares, unit=1 / 7)
            found.append(Observed(form + skew(form), target, norm, self.features[kind].size / 12, folds))
        return found

    def solved(self, alpha: Any = None, shares: Any = None) -> RidgeFit:
        return RidgeProblem(self.observed(), self.penalty + skew(self.penalty), shares).solve(alpha)

    @property
    def shares(self) -> Array:
        return np.array([self.weight[self.fold == k].sum() for k in range(self.folds)])

    @property
    def means(self) -> tuple[Array, Array]:
        parts = [self.sums(kind, self.fold >= 0) for kind in range(len(self.features))]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    def score(self, alpha: float) -> float:
        """Values and gradients with the mean leverage of their own, and the variance of the fit over the noise's."""
        form, target = self.means
        r, total = np.linalg.inv(form + alpha * self.penalty), 0.0
        for kind, (f, t) in enumerate(zip(self.features, self.targets, strict=True)):
            own, missed, count = self.sums(kind, self.fold >= 0)[0], t - f @ (r @ target), f.size / 12
            free, variance = 1 - np.trace(own @ r) / count, np.trace(own @ r @ form @ r) / count
            total += self.weight @ (missed**2).sum(axis=(1, 2)) / free**2 * (1 + 2 * variance**2)
        return float(total)

    def errors(self, alpha: float) -> Array:
        """Row by row: the squared errors of each kind of fits to all other folds; rows in no fold are always fitted."""
        found = np.zeros(len(self.features))
        for k in range(self.folds):
            others = self.fold != k
            parts = [self.sums(kind, others) for kind in range(len(self.features))]
            form, target = (sum(part[i] for part in parts) / self.weight[others].sum() for i in (0, 1))
            a = np.linalg.solve(form + alpha * self.penalty, target)
            for kind, (f, t) in enumerate(zip(self.features, self.targets, strict=True)):
                found[kind] += self.weight[~others] @ ((t - f @ a)[~others] ** 2).sum(axis=(1, 2))
        return found / self.weight[self.fold < self.folds].sum()


@pytest.mark.parametrize(("kinds", "alpha"), [(1, 0.0), (1, 1.0), (2, 0.1)])
def test_all_of_a_fit_is_that_of_the_hat_matrix(kinds: int, alpha: float) -> None:
    data = Data(kinds)
    fit, (form, target) = data.solved(alpha, shares=data.shares), data.means
    a = np.linalg.solve(form + alpha * data.penalty, np.hstack([target, form]))
    np.testing.assert_allclose(fit.coefficients, a[:, :2], rtol=1e-7, atol=1e-9)
    assert (fit.rank, fit.alpha, fit.alphas.tolist(), fit.scores.tolist()) == (12, alpha, [alpha], [fit.score])
    assert fit.freedom == pytest.approx(np.trace(a[:, 2:]))
    assert fit.score == pytest.approx(data.score(alpha))
    assert fit.errors is not None
    np.testing.assert_allclose(fit.errors, [data.errors(alpha)], rtol=1e-7)
    assert fit.error == fit.errors.sum()
    plain = data.solved(alpha)
    assert (plain.errors, plain.error) == (None, None)


@pytest.mark.parametrize(("kinds", "apart"), [(1, 0), (2, 0), (2, 1)])
def test_curves_of_all_penalties(kinds: int, apart: int) -> None:
    """From 1e-3 times where rounding is reached to where nothing is left of the fit; the least of them is taken."""
    data = Data(kinds, 4)
    data.folds -= apart  # the rows of one fold more are in none
    by_folds, by_score = data.solved(shares=data.shares), data.solved("gcv", shares=data.shares)
    (form, _), alphas = data.means, by_folds.alphas
    low = np.log10(1e-3 * 10**-7.5 * np.trace(form) / np.trace(data.penalty))
    high = np.log10(100 * scipy.linalg.eigvalsh(form, data.penalty)[-1])
    np.testing.assert_allclose(np.log10(alphas), low + np.arange(np.ceil(5 * (high - low)) + 1) / 5, atol=1e-6)
    assert by_folds.errors is not None
    for i in range(0, len(alphas), 5):
        if alphas[i] > 1e-6:  # below, the normal equations of the comparison are rounding
            np.testing.assert_allclose(by_folds.errors[i], data.errors(alphas[i]), rtol=1e-6)
            assert by_folds.scores[i] == pytest.approx(data.score(alphas[i]), rel=1e-4)
    total = by_folds.errors.sum(axis=1)
    assert by_folds.alpha == best_penalty(alphas, total)
    assert by_folds.error == pytest.approx(np.interp(np.log(by_folds.alpha), np.log(alphas), total))
    assert by_score.score <= min(data.score(alpha) for alpha in 10 ** np.arange(-7.0, 3, 0.05)) * (1 + 1e-6)
    assert data.solved().alpha == by_score.alpha != by_folds.alpha
    for fit in (by_folds, by_score):
        again = data.solved(fit.alpha, shares=data.shares)  # given back: the same bits
        np.testing.assert_array_equal(again.coefficients, fit.coefficients)
        assert (again.score, again.rank, again.freedom) == (fit.score, fit.rank, fit.freedom)
    units = [replace(kind, target=1e6 * kind.target, squares=1e12 * kind.squares) for kind in data.observed()]
    assert RidgeProblem(units, 100 * data.penalty).solve().score == pytest.approx(1e12 * by_score.score, rel=1e-6)


def test_what_a_fit_leaves_free_and_what_rounding_leaves_of_it() -> None:
    data = Data(1, noise=0)
    observed, freedom = data.observed()[0], data.solved(0.1).freedom
    for left, known in ((0.0011, True), (0.0009, False)):
        fit = RidgeProblem([replace(observed, count=freedom / (1 - left))], data.penalty).solve(0.1)
        assert np.isfinite(fit.score) == known
    fit = data.solved(1e-14, shares=data.shares)
    floor = 10 * 1e-15 * observed.squares.sum()
    assert fit.score == pytest.approx(floor / (1 - 12 / 40) ** 2 * (1 + 2 * (12 / 40) ** 2), rel=1e-3)
    assert fit.error == pytest.approx(floor, rel=1e-9)
    np.testing.assert_allclose(data.solved().coefficients, np.linalg.solve(*data.means), atol=1e-3)
    assert not RidgeProblem([replace(observed, target=0 * observed.target)], data.penalty).solve().coefficients.any()


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


def test_folds_that_cannot_be_left_out() -> None:
    data, two = Data(1), Data(1)
    data.fold[:] = 1
    assert RidgeProblem(data.observed(), data.penalty, data.shares).curve().errors is None
    data.fold[:20] = 0
    two.fold[:], two.fold[:20], two.folds = 1, 0, 2
    curves = [RidgeProblem(one.observed(), one.penalty, one.shares).curve().errors for one in (data, two)]
    np.testing.assert_allclose(*curves, rtol=1e-12)


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
