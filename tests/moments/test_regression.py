"""From sums of values and gradients to ridge problems, at landmarks and on a lattice, against the rows themselves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import FourierLattice, LandmarkBasis, MonomialBasis
from daskspectral.basis.prior import prior_weights
from daskspectral.errors import FitWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments import Moments, lattice_regression
from daskspectral.moments.lattice_regression import merged_folds, regress
from daskspectral.moments.problem import checked_means
from daskspectral.moments.regression import RidgeProblem, advise_offset, cross_validate, observed_in
from daskspectral.operators.regression import Regression
from daskspectral.solve.ridge import CUTS
from tests.modes.common import waves
from tests.moments.common import moments_of

RNG = np.random.default_rng(5)
N, K = 300, 4
FOLD = RNG.integers(0, K, N)
ROWS = {
    "x": RNG.uniform(-1, 1, (N, 2)),
    "y": RNG.standard_normal((N, 2)) + [1.0, -2.0] + 0.3 * FOLD[:, None],
    "gradients": RNG.standard_normal((N, 2, 2)),
    "weight": RNG.uniform(0.5, 2, N),
}
W, WEIGHT = ROWS["weight"], ROWS["weight"].sum()
LINEAR = MonomialBasis(2, 1)  # 1 and both columns
PHI = np.column_stack([np.ones(N), ROWS["x"]])
SLOPES = np.concatenate([np.zeros((1, 2)), np.eye(2)])  # of the three functions, anywhere


def linear(gradients: bool = True, values: bool = True, **options: Any) -> Moments:
    rows = {k: v for k, v in ROWS.items() if gradients or k != "gradients"}
    return moments_of(LINEAR, rows, FOLD, Regression(gradients=gradients, targets=2, values=values), **options)


def left_out(y: Any, k: int) -> Any:
    """Squares of the values of a fold about their mean over the others."""
    rest = k != FOLD
    return np.sum(W[~rest, None] * (y[~rest] - W[rest] @ y[rest] / W[rest].sum()) ** 2)


def test_the_sums_of_a_problem() -> None:
    found = RidgeProblem.of(linear(), 0.3)
    values, slopes = found.observed
    y, t = ROWS["y"], ROWS["gradients"]
    np.testing.assert_allclose(values.form, (PHI * W[:, None]).T @ PHI / WEIGHT, rtol=1e-12)
    np.testing.assert_allclose(values.target, (PHI * W[:, None]).T @ y / WEIGHT, rtol=1e-12)
    np.testing.assert_allclose(values.squares, W @ y**2 / WEIGHT, rtol=1e-12)
    np.testing.assert_allclose(slopes.form, 0.3 * SLOPES @ SLOPES.T, atol=1e-12)
    np.testing.assert_allclose(slopes.target, 0.3 * np.einsum("n,id,njd->ij", W, SLOPES, t) / WEIGHT, atol=1e-12)
    np.testing.assert_allclose(slopes.squares, 0.3 * np.einsum("n,njd->j", W, t**2) / WEIGHT, rtol=1e-12)
    assert (values.count, slopes.count) == (N, 2 * N)
    for kind in (values, slopes):
        assert kind.folds is not None
        parts = [kind.folds.of(k) for k in range(K)]
        for part, whole in zip(zip(*parts, strict=True), (kind.form, kind.target, kind.squares), strict=True):
            np.testing.assert_allclose(sum(part), whole, atol=1e-12)
    assert found.shares is not None
    np.testing.assert_allclose(found.shares, np.bincount(FOLD, W) / WEIGHT)
    spread = sum(left_out(y, k) for k in range(K)) / WEIGHT + slopes.squares.sum()
    assert found.spread == pytest.approx(spread)
    assert found.explained(0.25 * spread) == pytest.approx(0.75)
    assert replace(found, spread=0.0).explained(1.0) == 0
    bare = RidgeProblem.of(replace(linear(gradients=False), folds=None), 0.3)
    assert bare.spread == pytest.approx(np.sum(W @ (y - W @ y / WEIGHT) ** 2) / WEIGHT)
    assert [kind.count for kind in RidgeProblem.of(linear(), 0.0).observed] == [N]


def test_folds_left_out() -> None:
    """Coefficients of the first two functions, by the rows; the standard error is that of a ratio."""
    moments = linear()
    observed, a = RidgeProblem.of(moments, 0.3).observed, RNG.standard_normal((2, 2))
    given: list[Any] = []

    def refit(fold: int, share: float) -> Any:
        given.append((fold, share))
        return a

    found = cross_validate(moments, observed, refit)
    assert given == [(k, pytest.approx(W[k == FOLD].sum() / WEIGHT)) for k in range(K)]
    misses = np.sum((ROWS["y"] - PHI[:, :2] @ a) ** 2, axis=1)
    misses += 0.3 * np.sum((ROWS["gradients"] - np.einsum("id,ij->jd", SLOPES[:2], a)) ** 2, axis=(1, 2))
    errors = np.bincount(FOLD, W * misses) / WEIGHT
    squares = np.bincount(FOLD, 0.3 * W * np.sum(ROWS["gradients"] ** 2, axis=(1, 2)))
    totals = (np.array([left_out(ROWS["y"], k) for k in range(K)]) + squares) / WEIGHT
    ratio = errors.sum() / totals.sum()
    assert found is not None
    assert found.error == pytest.approx(errors.sum())
    assert found.score == pytest.approx(1 - ratio)
    deviation = np.sqrt(K / (K - 1) * np.sum((errors - ratio * totals) ** 2)) / totals.sum()
    assert found.standard_error == pytest.approx(deviation)
    alone = linear(values=False)
    found = cross_validate(alone, of_slopes(alone), lambda fold, share: np.zeros((3, 2)))
    assert found is not None
    assert found.score == pytest.approx(0)
    assert cross_validate(replace(moments, folds=None), observed, refit) is None
    flat = moments_of(LINEAR, {"x": ROWS["x"], "y": np.ones((N, 2))}, FOLD, Regression(targets=2))
    assert cross_validate(flat, RidgeProblem.of(flat, 0.0).observed, refit) is None  # nothing is spread


def of_slopes(moments: Moments) -> Any:
    """Without values gradients have the weight 1."""
    found = observed_in(moments, checked_means(moments), 0.3, N, 2)
    np.testing.assert_allclose(found[0].form, SLOPES @ SLOPES.T, atol=1e-12)
    return found


@pytest.mark.parametrize(("basis", "most"), [(LandmarkBasis(Gaussian(1.0), np.eye(2)), 100.0), (LINEAR, 1e4)])
def test_a_mean_that_dwarfs_the_spread(basis: Any, most: float) -> None:
    for mean, far in ((0.99 * most, False), (1.01 * most, True), (-1.01 * most, True)):
        y = np.where(np.arange(N) % 2 == 0, 2.0, -2.0)[:, None] + [0.0, 2 * mean]
        moments = moments_of(basis, {"x": ROWS["x"], "y": y}, FOLD, Regression())
        if far:
            with pytest.warns(FitWarning, match="standard deviation 2: "):
                advise_offset(moments)
        else:
            advise_offset(moments)


LATTICE = FourierLattice((3, 2), box=[(-1.2, 1.2), (-1.5, 1.1)], method="matmul")
OPERATOR = Regression(gradients=True, targets=2)


def options(**changes: Any) -> dict[str, Any]:
    fixed: dict[str, Any] = {"kernel": Matern(2.5, 0.7), "orders": None, "alpha": 1e-3, "gradient_weight": 0.3}
    return fixed | {"cut": CUTS["float64"], "threads": lambda f, each: [f(one) for one in each]} | changes


def by_rows(lattice: FourierLattice, gradient_weight: float, alpha: float) -> Any:
    """The normal equations of all functions, the constant's prior ten times that of all others together."""
    phi, scale = waves(lattice, ROWS["x"]), np.sqrt(prior_weights(Matern(2.5, 0.7), lattice))
    scale[0] = 10.0
    form, target = phi * W @ phi.T / WEIGHT, phi * W @ ROWS["y"] / WEIGHT
    for axis, unit in enumerate(((1, 0), (0, 1))):
        slope = waves(lattice, ROWS["x"], unit)
        form += gradient_weight * (slope * W) @ slope.T / WEIGHT
        target += gradient_weight * (slope * W) @ ROWS["gradients"][:, :, axis] / WEIGHT
    return np.linalg.solve(form + alpha * np.diag(scale**-2.0), target)


@pytest.mark.parametrize("way", ["by the problem", "directly", "by iteration"])
@pytest.mark.parametrize("gradient_weight", [0.3, 0.0])
def test_a_regression_on_a_lattice(way: str, gradient_weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "by the problem":
        monkeypatch.setattr(lattice_regression, "EXACT", 9)
    if way == "by iteration":
        monkeypatch.setattr(lattice_regression, "DENSE", 9)
        monkeypatch.setattr(lattice_regression, "coarse_orders", lambda orders: (1, 1))
        monkeypatch.setattr(lattice_regression, "TOLERANCE", 1e-12)
    moments = moments_of(LATTICE, ROWS, FOLD, OPERATOR)
    found = regress(moments, **options(gradient_weight=gradient_weight))
    np.testing.assert_allclose(found.coefficients, by_rows(LATTICE, gradient_weight, 1e-3), atol=1e-7)
    lower = regress(moments, **options(gradient_weight=gradient_weight, orders=(2, 2)))
    places = LATTICE.places(LATTICE.truncated((2, 2)))
    wanted = by_rows(LATTICE.truncated((2, 2)), gradient_weight, 1e-3)
    np.testing.assert_allclose(lower.coefficients[places], wanted, atol=1e-7)
    assert not np.delete(lower.coefficients, places, axis=0).any()


def test_iterations_that_do_not_converge_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EXACT", 9), ("DENSE", 9), ("ITERATIONS", 1)):
        monkeypatch.setattr(lattice_regression, name, value)
    monkeypatch.setattr(lattice_regression, "coarse_orders", lambda orders: (1, 1))
    with pytest.warns(FitWarning, match=r"of 35 functions have a relative residual of .* after 1 iterations, above"):
        regress(moments_of(LATTICE, ROWS, FOLD, OPERATOR), **options())


def test_folds_are_merged_in_turn() -> None:
    moments = linear(landmarks=True)  # the last group is that of landmarks
    assert moments.folds is not None
    found = merged_folds(moments.folds, 2)
    weight = np.bincount(FOLD, W)
    np.testing.assert_allclose(found.weight, [weight[0] + weight[2], weight[1]])
    assert found.count.tolist() == [np.isin(FOLD, (0, 2)).sum(), (FOLD == 1).sum()]
    np.testing.assert_allclose(found.arrays["gram"][0], moments.folds.arrays["gram"][[0, 2]].sum(axis=0))
    assert (found.number, merged_folds(moments.folds, 9).number) == (2, 3)


@pytest.mark.parametrize(
    ("best", "tried", "edge"),
    [
        (1 / 4, [1 / 16, 1 / 8, 1 / 4, 1 / 2], False),
        (1 / 32, [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 32, 1 / 64], False),
        (1 / 1000, [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 / 32, 1 / 64, 1 / 128], True),
        (1.0, [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0], False),
        (50.0, [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0], True),
    ],
)
def test_scales_are_tried_until_the_best_is_inside(
    best: float, tried: list[float], edge: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores by how near the scale is to the best one; of Matern kernels, which are better than Gaussians here."""
    moments, period = moments_of(LATTICE, ROWS, FOLD, OPERATOR), LATTICE.period.max()
    judged: list[float] = []

    def problem_of(moments: Any, basis: Any, folds: Any, gradient_weight: float) -> Any:
        assert basis.lattice == LATTICE
        error = abs(np.log(basis.kernel.scale / period / best))
        if isinstance(basis.kernel, Matern):
            judged.append(basis.kernel.scale / period)
        errors = np.array([[error + 1, 1.0], [error, 0.3 - 0.1 * isinstance(basis.kernel, Matern)]])
        curve = SimpleNamespace(alphas=np.array([1.0, 2.0]), errors=errors)
        return SimpleNamespace(curve=lambda alpha, cut: curve, explained=lambda e: 1 - e)

    monkeypatch.setattr(lattice_regression, "problem_of", problem_of)
    arguments = (None, LATTICE.orders, None, 0.3, CUTS["float64"], lambda f, each: [f(one) for one in each])
    kernel, table, found_edge = lattice_regression._compared(moments, *arguments)
    assert (judged, found_edge) == (pytest.approx(tried), edge)
    nearest = min(tried, key=lambda t: abs(np.log(t / best)))
    assert kernel == Matern(2.5, nearest * period)
    assert table[0][:3] == (str(kernel), pytest.approx(nearest), 2.0)
    assert table[0][3] == pytest.approx(0.8 - abs(np.log(nearest / best)))
    scores = [row[3] for row in table]
    assert scores == sorted(scores, reverse=True)


def test_without_folds_a_scale_is_taken() -> None:
    moments = replace(moments_of(LATTICE, {k: ROWS[k] for k in "xy"}, FOLD, Regression(targets=2)), folds=None)
    found = regress(moments, **options(kernel=None))
    assert found.kernel == Matern(1.5, 0.25 * LATTICE.period.max())
    assert regress(moments, **options(kernel=Gaussian("auto"))).kernel == Gaussian(0.25 * LATTICE.period.max())
