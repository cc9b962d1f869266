"""From sums of values and gradients to ridge problems, at landmarks and on a lattice, against the rows themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import FourierLattice, MonomialBasis
from daskspectral.basis.lattice import prior_weights
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments import Moments, lattice_regression
from daskspectral.moments.lattice_regression import regress
from daskspectral.moments.problem import checked_means
from daskspectral.moments.regression import cross_validate, observed_in, ridge_problem
from daskspectral.operators.regression import Regression
from daskspectral.solve.ridge import CUTS
from tests.modes.common import waves
from tests.moments.common import folds_of, moments_of

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


def linear(rows: Any = "x y gradients weight", values: bool = True, **options: Any) -> Moments:
    own = {k: ROWS[k] for k in rows.split()}
    return moments_of(LINEAR, own, FOLD, Regression(gradients="gradients" in own, targets=2, values=values), **options)


def left_out(y: Any, k: int) -> Any:
    """Squares of the values of a fold about their mean over the others."""
    rest = k != FOLD
    return np.sum(W[~rest, None] * (y[~rest] - W[rest] @ y[rest] / W[rest].sum()) ** 2)


def test_the_sums_of_a_problem() -> None:
    found = ridge_problem(linear(), 0.3)
    y, t = ROWS["y"], ROWS["gradients"]
    wanted = [
        [(PHI * W[:, None]).T @ PHI, (PHI * W[:, None]).T @ y, W @ y**2],
        [
            *(0.3 * WEIGHT * SLOPES @ SLOPES.T, 0.3 * np.einsum("n,id,njd->ij", W, SLOPES, t)),
            0.3 * np.einsum("n,njd->j", W, t**2),
        ],
    ]
    for kind, sums, count in zip(found.observed, wanted, (N, 2 * N), strict=True):
        assert (kind.count, kind.folds is None) == (count, False)
        parts = zip(*(kind.folds.of(k) for k in range(K)), strict=True)  # type: ignore[union-attr]
        for own, part, values in zip((kind.form, kind.target, kind.squares), parts, sums, strict=True):
            np.testing.assert_allclose(own, values / WEIGHT, atol=1e-12)
            np.testing.assert_allclose(sum(part), values / WEIGHT, atol=1e-12)
    np.testing.assert_allclose(found.shares, np.bincount(FOLD, W) / WEIGHT)  # type: ignore[arg-type]
    spread = sum(left_out(y, k) for k in range(K)) / WEIGHT + wanted[1][2].sum() / WEIGHT
    assert (found.spread, found.explained(0.25 * spread)) == (pytest.approx(spread), pytest.approx(0.75))
    assert replace(found, spread=0.0).explained(1.0) == 0
    bare = ridge_problem(replace(linear("x y weight"), folds=None), 0.3)
    assert bare.spread == pytest.approx(np.sum(W @ (y - W @ y / WEIGHT) ** 2) / WEIGHT)
    assert [kind.count for kind in ridge_problem(linear(), 0.0).observed] == [N]


def test_folds_left_out() -> None:
    """Coefficients of the first two functions, by the rows; the standard error is that of a ratio."""
    moments = linear()
    observed, a = ridge_problem(moments, 0.3).observed, RNG.standard_normal((2, 2))
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
    few, pairs = FOLD < 2, []
    for own, fold in (({k: v[few] for k, v in ROWS.items()}, FOLD[few]), ({**ROWS, "weight": W * few}, FOLD)):
        two = moments_of(LINEAR, own, fold, OPERATOR)  # two folds; two more of no weight
        pairs.append(vars(cross_validate(two, ridge_problem(two, 0.3).observed, lambda fold, share: a)))
    assert pairs[0] == pytest.approx(pairs[1])
    alone = linear(values=False)
    slopes = observed_in(alone, checked_means(alone), 0.3, N, 2)
    np.testing.assert_allclose(slopes[0].form, SLOPES @ SLOPES.T, atol=1e-12)  # of weight 1 without values
    found = cross_validate(alone, slopes, lambda fold, share: np.zeros((3, 2)))
    assert found is not None
    assert found.score == pytest.approx(0)
    assert cross_validate(replace(moments, folds=None), observed, refit) is None
    flat = moments_of(LINEAR, {"x": ROWS["x"], "y": np.ones((N, 2))}, FOLD, Regression(targets=2))
    for there in (flat, replace(flat, folds=None)):
        assert ridge_problem(there, 0.0).spread == pytest.approx(0, abs=1e-12)
    assert cross_validate(flat, ridge_problem(flat, 0.0).observed, refit) is None  # nothing is spread


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


@pytest.mark.parametrize(("way", "gradient_weight"), [("by the problem", 0.3), ("directly", 0.0), ("directly", 0.3)])
def test_a_regression_on_a_lattice(way: str, gradient_weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "directly":
        monkeypatch.setattr(lattice_regression, "EXACT", 9)
    moments = moments_of(LATTICE, ROWS, FOLD, OPERATOR)
    for orders in ((3, 2), (2, 2)):
        found = regress(moments, **options(gradient_weight=gradient_weight, orders=orders))
        places = LATTICE.places(LATTICE.truncated(orders))
        wanted = by_rows(LATTICE.truncated(orders), gradient_weight, 1e-3)
        np.testing.assert_allclose(found.coefficients[places], wanted, atol=1e-7)
        assert not np.delete(found.coefficients, places, axis=0).any()


def test_folds_are_merged_in_turn() -> None:
    folds, weight = folds_of(linear(landmarks=True)), np.bincount(FOLD, W)  # the last group is that of landmarks
    found = folds.merged(np.arange(3) % 2)
    np.testing.assert_allclose(found.weight, [weight[0] + weight[2], weight[1]])
    assert found.count.tolist() == [np.isin(FOLD, (0, 2)).sum(), (FOLD == 1).sum()]
    np.testing.assert_allclose(found.arrays["gram"][0], folds.arrays["gram"][[0, 2]].sum(axis=0))
    assert found.number == 2


def test_without_folds_a_scale_is_taken() -> None:
    moments = replace(moments_of(LATTICE, {k: ROWS[k] for k in "xy"}, FOLD, Regression(targets=2)), folds=None)
    for kernel, wanted in ((None, Matern(1.5, 1.0)), (Gaussian("auto"), Gaussian(1.0))):
        found = regress(moments, **options(kernel=kernel)).chosen.kernel
        assert found == replace(wanted, scale=0.25 * LATTICE.period.max())
