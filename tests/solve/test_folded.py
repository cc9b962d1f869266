"""Cross-validation from sums by fold against fits to the other folds, made one by one from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.solve.folded import FoldSums, best_penalty
from daskspectral.solve.ridge import Observed, RidgeFit, ridge_curve, solve_ridge

Array = NDArray[Any]
ALPHAS = (1e-7, 1e-4, 1e-2, 1.0)


def gaussian(x: Array, y: Array, scale: float = 1.0) -> Array:
    return np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2) / (2 * scale**2))


class Data:
    """Rows with several features each (values, and gradients in the second kind), their weights and their folds."""

    def __init__(self, seed: int, folds: int, m: int, kinds: int, n: int = 40, p: int = 12):
        rng = np.random.default_rng(seed)
        x, self.y = rng.standard_normal((n, 2)), rng.standard_normal((p, 2))
        values = gaussian(x, self.y)
        slopes = -values[:, :, None] * (x[:, None] - self.y)
        self.features = [values[:, None], slopes.transpose(0, 2, 1)][:kinds]
        truth = rng.standard_normal((p, m))
        self.targets = [f @ truth + 0.5 * rng.standard_normal((n, f.shape[1], m)) for f in self.features]
        self.weight, self.fold = rng.uniform(0.5, 2, n), rng.permutation(np.arange(n) % folds)
        self.penalty, self.folds = gaussian(self.y, self.y), folds

    def sums(self, kind: int, rows: Array) -> tuple[Array, Array, Array]:
        w = self.weight * rows
        f, t = self.features[kind], self.targets[kind]
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
        return np.bincount(self.fold, self.weight, minlength=self.folds) / self.weight.sum()

    def errors(self, alpha: float) -> Array:
        """Row by row: the squared errors of each kind of fits to all other folds."""
        found = np.zeros(len(self.features))
        for k in range(self.folds):
            others = self.fold != k
            parts = [self.sums(kind, others) for kind in range(len(self.features))]
            form, target = (sum(part[i] for part in parts) / self.weight[others].sum() for i in (0, 1))
            a = np.linalg.solve(form + alpha * self.penalty, target)
            for kind, (f, t) in enumerate(zip(self.features, self.targets, strict=True)):
                missed = t - np.einsum("nai,im->nam", f, a)
                found[kind] += np.sum(self.weight[~others] * (missed[~others] ** 2).sum(axis=(1, 2)))
        return found / self.weight.sum()


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    folds=st.sampled_from([2, 3, 10, 40]),
    m=st.integers(1, 3),
    kinds=st.sampled_from([1, 2]),
)
def test_errors_are_those_of_fits_to_the_other_folds(seed: int, folds: int, m: int, kinds: int) -> None:
    data = Data(seed, folds, m, kinds)
    curve = ridge_curve(data.observed(), data.penalty, shares=data.shares)
    assert curve.errors is not None
    assert curve.errors.shape == (len(curve.alphas), kinds)
    for i in np.linspace(0, len(curve.alphas) - 1, 6).astype(int):
        alpha = curve.alphas[i]
        if alpha > 1e-6:  # below, the normal equations of the comparison are rounding
            np.testing.assert_allclose(curve.errors[i], data.errors(alpha), rtol=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_penalty_alone(alpha: float) -> None:
    data = Data(1, 5, 2, 2)
    fit = solve_ridge(data.observed(), data.penalty, alpha=alpha, shares=data.shares)
    assert fit.errors is not None
    np.testing.assert_allclose(fit.errors, [data.errors(alpha)], rtol=1e-6)
    assert fit.error == fit.errors.sum()


def test_interpolation_has_errors_too() -> None:
    data = Data(1, 5, 1, 1)
    fit = solve_ridge(data.observed(), data.penalty, alpha=0.0, shares=data.shares)
    assert fit.errors is not None
    np.testing.assert_allclose(fit.errors, [data.errors(0.0)], rtol=1e-5)


def fits(data: Data, **options: Any) -> RidgeFit:
    return solve_ridge(data.observed(), data.penalty, **options)


def test_alpha_has_the_least_error() -> None:
    for seed in range(5):
        data = Data(seed, 10, 1, 2)
        fit = fits(data, shares=data.shares)
        least = min(data.errors(alpha).sum() for alpha in 10 ** np.arange(-7.0, 3, 0.1))
        assert data.errors(fit.alpha).sum() <= least * (1 + 1e-4)
        assert fit.error == pytest.approx(data.errors(fit.alpha).sum(), rel=1e-2)


@pytest.mark.parametrize("how", [None, "gcv"])
def test_an_alpha_that_is_given_back_gives_the_same_bits(how: str | None) -> None:
    data = Data(0, 10, 2, 2)
    found = fits(data, alpha=how, shares=data.shares)
    again = fits(data, alpha=found.alpha, shares=data.shares)
    np.testing.assert_array_equal(again.coefficients, found.coefficients)
    assert (again.score, again.rank, again.freedom) == (found.score, found.rank, found.freedom)
    plain = fits(data, alpha=how)
    assert (plain.alpha == found.alpha) == (how == "gcv")
    assert (plain.errors, plain.error) == (None, None)


def test_rows_in_no_fold_are_always_fitted_to() -> None:
    data = Data(2, 4, 1, 1)
    apart = Data(2, 4, 1, 1)
    apart.folds = 3
    curve = ridge_curve(apart.observed(), apart.penalty, shares=apart.shares[:3])
    assert curve.errors is not None
    i = len(curve.alphas) // 2
    judged, total = 0.0, 0.0
    for k in range(3):
        one = Data(2, 4, 1, 1)
        one.fold, one.folds = np.where(data.fold == k, 0, 1), 2
        others = one.fold == 1
        form, target, _ = one.sums(0, others)
        a = np.linalg.solve(
            form / one.weight[others].sum() + curve.alphas[i] * one.penalty, target / one.weight[others].sum()
        )
        missed = one.targets[0][:, 0] - one.features[0][:, 0] @ a
        judged += np.sum(one.weight[~others] * missed[~others, 0] ** 2)
        total += one.weight[~others].sum()
    np.testing.assert_allclose(curve.errors[i, 0], judged / total, rtol=1e-6)


def test_folds_that_cannot_be_left_out() -> None:
    data = Data(0, 3, 1, 1)
    data.fold[:] = 1
    assert ridge_curve(data.observed(), data.penalty, shares=data.shares).errors is None
    data.fold[:20] = 0
    curve = ridge_curve(data.observed(), data.penalty, shares=data.shares)
    two = Data(0, 3, 1, 1)
    two.fold[:], two.fold[:20], two.folds = 1, 0, 2
    np.testing.assert_allclose(
        curve.errors, ridge_curve(two.observed(), two.penalty, shares=two.shares).errors, rtol=1e-12
    )


def test_the_best_penalty_lies_between_those_tried() -> None:
    alphas = np.logspace(-4, 2, 31)
    errors = np.exp(0.3 * (np.log(alphas) - np.log(0.0123)) ** 2)
    assert best_penalty(alphas, errors) == pytest.approx(0.0123)
    assert best_penalty(alphas, np.linspace(1, 2, 31)) == alphas[0]
    assert best_penalty(alphas, np.linspace(2, 1, 31)) == alphas[-1]
    assert best_penalty(alphas, np.ones(31)) == alphas[-1]
    assert best_penalty(alphas, np.zeros(31)) == alphas[-1]
