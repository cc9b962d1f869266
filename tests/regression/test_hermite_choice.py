"""What HermiteRegressor chooses by itself: against refits by another package, and against what should win."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern as OtherMatern
from sklearn.kernel_ridge import KernelRidge

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.estimators.summary import summary_of
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic
from tests.common import reloaded

Array = NDArray[Any]
RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (120, 2))
Y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(120)
T = np.column_stack([3 * np.cos(3 * X[:, 0]) * X[:, 1], np.sin(3 * X[:, 0])]) + 0.1 * RNG.standard_normal((120, 2))
AUTO = dsp.HermiteRegressor(random_state=0)


def other_errors(options: dict[str, Any], x: Array, y: Array, labels: Array, alpha: float, w: Array) -> Array:
    """Mean squared errors of scikit-learn's kernel ridge on folds that were left out, and of the other folds' mean."""
    missed = np.zeros(2)
    for label in np.unique(labels):
        here, rest = labels == label, labels != label
        mean = w[rest] @ y[rest] / w[rest].sum()
        model = KernelRidge(alpha=alpha * w[rest].sum(), **options).fit(x[rest], y[rest] - mean, sample_weight=w[rest])
        missed += [np.sum(w[here] @ (y[here] - found) ** 2) for found in (mean + model.predict(x[here]), mean)]
    return np.asarray(missed / w.sum())


@pytest.mark.parametrize(
    ("kernel", "options", "weighted"),
    [
        (Gaussian(1.0), {"kernel": "rbf", "gamma": 0.5}, True),
        (Matern(1.5, 1.0), {"kernel": OtherMatern(1.0, nu=1.5)}, False),
    ],
    ids=str,
)
def test_the_curve_is_that_of_refits_by_another_package(kernel: Kernel, options: Any, weighted: bool) -> None:
    """All rows are landmarks, also those that are left out: they change nothing; the intercept is the others' mean."""
    labels, w = np.arange(120) % 7, RNG.uniform(0.5, 2, 120) if weighted else np.ones(120)
    y = np.column_stack([Y, X[:, 0] ** 2])
    model = dsp.HermiteRegressor(Landmarks(kernel, points=X), folds=labels).fit(X, y, sample_weight=w)
    assert model.cv_curve_ is not None
    for alpha, error in model.cv_curve_[::6]:
        if alpha > 1e-4:  # below, directions under the square root of rounding count, which sums cannot hold
            np.testing.assert_allclose(error, other_errors(options, X, y, labels, alpha, w)[0], rtol=1e-4)
    missed, spread = other_errors(options, X, y, labels, model.alpha_, w)
    assert model.cv_ == pytest.approx(missed, rel=1e-2)
    assert model.cv_score_ == pytest.approx(1 - missed / spread, rel=1e-3)
    assert model.cv_ <= model.cv_curve_[:, 1].min() * 1.05


@pytest.mark.slow
def test_degenerate_data() -> None:
    x = np.linspace(0, 1, 6)[:, None]
    line = clone(AUTO).fit(x, 2 * x[:, 0] - 1)
    new = np.linspace(0, 1, 50)
    np.testing.assert_allclose(line.predict(new[:, None]), 2 * new - 1, atol=0.02)
    constant = clone(AUTO).fit(X, np.full(120, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0, rtol=1e-3)
    assert constant.cv_score_ == 0
    alike = clone(AUTO).fit(np.ones((50, 2)), np.arange(50.0))
    np.testing.assert_allclose(alike.predict(np.ones((1, 2))), np.arange(50).mean(), rtol=1e-2)
    assert clone(AUTO).fit(np.repeat(X[:10], 6, axis=0), np.repeat(Y[:10], 6)).basis_.size == 10


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "gcv": ({"basis": Landmarks(n_landmarks=17, method="uniform"), "alpha": "gcv"}, X),
    "standardized columns": ({"basis": Landmarks(n_landmarks=20, method="cholesky")}, dsp.Rows(X, standardize=True)),
    "periods": ({"basis": Landmarks(points=X[:30] + 0.01, periods={0: 2.0})}, X),
    "single": ({"basis": Landmarks(Gaussian(0.7)), "dtype": "float32"}, X),
}


@pytest.mark.parametrize(("case", "gradients"), [(case, bool(i % 2)) for i, case in enumerate(CASES)])
def test_parameters_reproduce_the_same_bits(case: str, gradients: bool) -> None:
    t, (options, rows) = T if gradients else None, CASES[case]
    model = dsp.HermiteRegressor(**options, random_state=3).fit(rows, Y, t)
    loaded = reloaded(model)
    again = dsp.HermiteRegressor(**loaded.search_results_.best_params).fit(rows, Y, t)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.alpha_ == model.alpha_
    assert isinstance(again.kernel_, Periodic) == (case == "periods")
    assert str(loaded.search_results_) == str(model.search_results_)
    assert (loaded.cv_, loaded.cv_score_) == (model.cv_, model.cv_score_)
    np.testing.assert_array_equal(loaded.cv_curve_, model.cv_curve_)
    assert summary_of(loaded).text() == summary_of(model).text()
