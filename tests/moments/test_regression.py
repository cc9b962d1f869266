"""From sums of values and gradients to ridge problems, at landmarks and on a lattice, against the rows themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import FourierLattice, MonomialBasis
from daskspectral.moments import Moments
from daskspectral.moments.regression import cross_validate, ridge_problem, with_origin
from daskspectral.operators.regression import Regression
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


def linear(rows: Any = "x y gradients weight", values: bool = True, **options: Any) -> Moments:
    own = {k: ROWS[k] for k in rows.split()}
    return moments_of(LINEAR, own, FOLD, Regression(gradients="gradients" in own, targets=2, values=values), **options)


def left_out(y: Any, k: int) -> Any:
    """Squares of the values of a fold about their mean over the others."""
    rest = k != FOLD
    return np.sum(W[~rest, None] * (y[~rest] - W[rest] @ y[rest] / W[rest].sum()) ** 2)


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
    assert cross_validate(replace(moments, folds=None), observed, refit) is None
    flat = moments_of(LINEAR, {"x": ROWS["x"], "y": np.ones((N, 2))}, FOLD, Regression(targets=2))
    for there in (flat, replace(flat, folds=None)):
        assert ridge_problem(there, 0.0).spread == pytest.approx(0, abs=1e-12)
    assert cross_validate(flat, ridge_problem(flat, 0.0).observed, refit) is None  # nothing is spread


@pytest.mark.parametrize("basis", [LINEAR, FourierLattice((2, 2), box=[(-1, 1)] * 2)], ids=["functions", "modes"])
def test_another_origin_is_another_number_that_values_lack(basis: Any) -> None:
    """The sums of each fold about it are those of values from which it is subtracted."""

    def measured(origin: tuple[float, ...]) -> Moments:
        operator = Regression(targets=2, origin=origin, unit=2.0)
        return moments_of(basis, {k: ROWS[k] for k in ("x", "y", "weight")}, FOLD, operator)

    moved, wanted = with_origin(measured((1.0, -2.0)), (-4.0, 3.0)), measured((-4.0, 3.0))
    assert moved.operator == wanted.operator
    assert wanted.folds is not None
    for found, expected in ((moved, wanted), (moved.folds, wanted.folds)):
        for name, values in expected.arrays.items():
            np.testing.assert_allclose(found.arrays[name], values, rtol=1e-11, atol=1e-9, err_msg=name)
