"""The intercept of HermiteRegressor: any origin and unit of y, in sums of any center."""

from typing import Any

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.kernels import Gaussian
from tests.common import reloaded

RNG = np.random.default_rng(1)
X = np.round(RNG.uniform(-1, 1, (500, 2)) * 2**20) / 2**20
Y = np.round(2**20 * (np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 0] + 0.1 * RNG.standard_normal(500))) / 2**20
T = np.column_stack([3 * np.cos(3 * X[:, 0]) * X[:, 1] + 1, np.sin(3 * X[:, 0])])
W = RNG.uniform(0.5, 2, 500)
NEW = RNG.uniform(-0.9, 0.9, (50, 2))
BASES = {"landmarks": Landmarks(Gaussian(0.7), points=X[:40]), "lattice": FourierBasis((5, 4), box=[(-1, 1)] * 2)}
FAR = 2.0**27  # 1.3e8


def make(basis: str = "landmarks", **options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(BASES[basis], random_state=0, **options)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": "gcv"}, {"alpha": 1e-3, "folds": None}, {"dtype": "float32"}, {"gradients": T}, {"targets": 2}],
    ids=lambda options: " ".join(options) or "default",
)
def test_another_origin_moves_predictions_by_as_much(basis: str, options: dict[str, Any]) -> None:
    options = dict(options)
    t, y = options.pop("gradients", None), Y
    if options.pop("targets", None):
        y = np.column_stack([Y, np.abs(Y)])
    plain, far = (make(basis, **options).fit(X, y + b, t, sample_weight=W) for b in (0.0, FAR))
    np.testing.assert_allclose(far.predict(NEW) - FAR, plain.predict(NEW), atol=3e-7)
    np.testing.assert_allclose(far.predict_gradient(NEW), plain.predict_gradient(NEW), atol=1e-4)
    for name in ("cv_score_", "cv_", "rank_", "degrees_of_freedom_"):
        if getattr(plain, name) is not None:
            assert getattr(far, name) == pytest.approx(getattr(plain, name), rel=1e-6), name
    assert far.score(X, y + FAR) == pytest.approx(plain.score(X, y), abs=1e-6)


def test_the_intercept_is_the_weighted_mean() -> None:
    model = make(alpha=1e-3).fit(X, Y + 5, sample_weight=W)
    mean = W @ (Y + 5) / W.sum()
    assert model.intercept_ == pytest.approx(mean)
    other = KernelRidge(alpha=1e-3 * W.sum(), kernel="rbf", gamma=0.5 / 0.7**2).fit(X, Y + 5 - mean, sample_weight=W)
    every = dsp.HermiteRegressor(Landmarks(Gaussian(0.7), points=X), 1e-3).fit(X, Y + 5, sample_weight=W)
    np.testing.assert_allclose(every.predict(NEW), mean + other.predict(NEW), atol=1e-6)
    assert make(alpha=1e12).fit(X, Y + 5).predict(NEW) == pytest.approx((Y + 5).mean())
    assert make("lattice").fit(X, Y + 5).intercept_ == 0  # the coefficient of the constant has it


@pytest.mark.one_in(2)
@pytest.mark.parametrize("basis", BASES)
def test_the_degrees_of_freedom_are_the_trace_of_the_hat_matrix(basis: str) -> None:
    x, y = X[:16], Y[:16]
    model = make(basis, alpha=1e-3, folds=None)
    hat = np.column_stack([model.fit(x, 100.0 * row).predict(x) / 100 for row in np.eye(16)])
    found = model.fit(x, y)
    assert found.degrees_of_freedom_ == pytest.approx(np.trace(hat), rel=1e-6)
    score = np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / 16) ** 2 * (1 + 2 * (np.sum(hat**2) / 16) ** 2)
    assert found.gcv_ == pytest.approx(score, rel=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("basis", BASES)
def test_sums_about_other_numbers_are_shifted_exactly(basis: str) -> None:
    """The first rows lie elsewhere than those that follow, so that each part is summed about a number of its own."""
    y = Y + np.where(np.arange(500) < 250, FAR, 2 * FAR)
    model = make(basis, alpha=1e-2)
    whole = make(basis, alpha=1e-2).fit(X, y)
    parts = [make(basis, alpha=1e-2).fit(X[part], y[part]) for part in (slice(250), slice(250, None))]
    assert parts[0].moments_.operator.origin != parts[1].moments_.operator.origin
    updated = reloaded(parts[0]).update(X, y)
    merged = [model.fit_moments(a.moments_ + b.moments_) for a, b in (parts, parts[::-1])]
    for found in (*merged, updated):
        np.testing.assert_allclose(found.predict(NEW), whole.predict(NEW), rtol=1e-8)
        assert found.cv_score_ == pytest.approx(whole.cv_score_, abs=0.02)  # of other folds


@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1e100, 1e140])
def test_the_unit_of_values(unit: float) -> None:
    plain, found = make().fit(X, Y, T), make().fit(X, unit * Y, unit * T)
    np.testing.assert_allclose(found.predict(NEW) / unit, plain.predict(NEW), atol=1e-6)
    assert found.cv_score_ == pytest.approx(plain.cv_score_)
    assert found.score(X, unit * Y) == pytest.approx(plain.score(X, Y))


def test_rows_without_weight_do_not_decide_the_origin() -> None:
    absent = np.where(np.arange(500) < 200, 0.0, 1.0)
    y = np.where(absent > 0, Y + FAR, 1e30)
    found = make(alpha=1e-3).fit(X, y, sample_weight=absent)
    wanted = make(alpha=1e-3).fit(X[200:], Y[200:])
    np.testing.assert_allclose(found.predict(NEW) - FAR, wanted.predict(NEW), atol=1e-6)


@pytest.mark.parametrize("origin", [0.0, 10.0, 2.0**20, 2.0**27])
@pytest.mark.parametrize("unit", [1.0, 2.0**-30, 2.0**30])
def test_linear_functions_have_no_origin(origin: float, unit: float) -> None:
    """As least squares with a column of ones, on folds that are left out too."""
    rng = np.random.default_rng(0)
    x = np.rint(rng.standard_normal((200, 2)) * 2**14) / 2**14
    y, labels = x @ [1.0, 2.0] + 0.1 * rng.standard_normal(200) + 5, np.arange(200) % 4
    design, errors = np.column_stack([np.ones(200), x]), np.zeros(200)
    for k in range(4):
        others = labels != k
        found = np.linalg.lstsq(design[others], y[others], rcond=None)[0]
        errors[~others] = (y - design @ found)[~others] ** 2
    points = (x + origin) * unit
    model = dsp.HermiteRegressor(Landmarks("linear"), folds=labels).fit(points, y)
    assert model.cv_ == pytest.approx(errors.mean(), rel=1e-6)
    np.testing.assert_allclose(model.predict(points), design @ np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-6)
    np.testing.assert_allclose(model.predict_gradient(points)[0] * unit, [1, 2], atol=0.05)
    first, second = (
        dsp.HermiteRegressor(Landmarks("linear"), folds="blocks").fit(points[part], y[part])
        for part in (slice(100), slice(100, None))
    )
    together = first.fit_moments(first.moments_ + second.moments_)
    np.testing.assert_allclose(together.predict(points), model.predict(points), atol=1e-6)
