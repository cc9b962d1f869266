"""HermiteRegressor against triple loops, hat matrices and independent reference arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial, Radial
from tests.common import assert_close, assert_same_arrays, reference_arrays, written
from tests.estimators.common import CONTAINERS, as_path

Array = NDArray[Any]
N = 300
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3)) * [1.0, 0.7, 0.4] + [0.0, 1.0, -2.0]
DIRECTION = np.array([1.0, -0.5, 2.0])
Y = np.sin(X @ DIRECTION) + 0.01 * RNG.standard_normal(N)
T = np.cos(X @ DIRECTION)[:, None] * DIRECTION + 0.01 * RNG.standard_normal((N, 3))
PAIR, PAIR_T = np.stack([Y, X[:, 1] ** 2], axis=1), np.stack([T, 2 * X[:, 1:2] * [0, 1, 0]], axis=1)


def make(**changes: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(**({"kernel": Gaussian(1.0), "n_landmarks": 40, "random_state": 0} | changes))


@pytest.fixture(scope="module")
def fitted() -> dsp.HermiteRegressor:
    return make().fit(X, Y, T)


def sums(model: dsp.HermiteRegressor) -> tuple[Array, Array]:
    """A (p, p) and b (p, m)."""
    arrays = model.moments_.arrays
    return arrays["gram"] + arrays["dirichlet"], arrays["values"] + arrays["slopes"]


# -- algorithms 4 and 5 ------------------------------------------------------------------------------------------------


KERNELS: dict[str, Kernel] = {
    "Exponential": Exponential(1.5),
    "sum": Gaussian(1.0) + Polynomial(3, 1.0, 2.0),
    "product": Matern(2.5, 2.0) * Polynomial(1),
}


@pytest.mark.parametrize(("name", "weighted"), [("Exponential", True), ("sum", False), ("product", True)])
def test_sums_equal_a_triple_loop(name: str, weighted: bool) -> None:
    kernel, n, p = KERNELS[name], 25, 6
    x, y, t, landmarks = X[:n], PAIR[:n], PAIR_T[:n], X[n : n + p]
    w = np.linspace(0, 2, n) if weighted else np.ones(n)
    a, b = np.zeros((p, p)), np.zeros((p, 2))
    values = kernel.values(x, landmarks)
    slopes = np.stack([kernel.partial(x, landmarks, alpha) for alpha in ((1, 0, 0), (0, 1, 0), (0, 0, 1))], axis=2)
    for i in range(p):
        for k in range(n):
            for j in range(p):
                a[i, j] += w[k] * (values[i, k] * values[j, k] + slopes[i, k] @ slopes[j, k])
            b[i] += w[k] * (values[i, k] * y[k] + t[k] @ slopes[i, k])
    model = make(kernel=kernel, landmarks=landmarks, alpha=1.0).fit(x, y, t, sample_weight=w if weighted else None)
    found = sums(model)
    assert_close(found[0], a)
    assert_close(found[1], b)
    squares = model.moments_.arrays["value_squares"], model.moments_.arrays["slope_squares"]
    np.testing.assert_allclose(squares, [w @ y**2, np.einsum("k,kjd,kjd->j", w, t, t)], rtol=1e-12)
    assert model.moments_.arrays["observed"] == [n - weighted]


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Array]:
    """A, b and predictions at (i / 99.9, 1/2) of independent code: exp(-r^2), the first 100 of 1000 points."""
    return reference_arrays("hermite_small")


def cosine(x: Array) -> Array:
    return np.asarray(np.cos(3 * np.pi * x[:, 0]))


CASES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array], float]] = {
    "const": (lambda x: np.ones(len(x)), np.zeros_like, 5e-4),
    "cos3pi": (cosine, lambda x: -3 * np.pi * np.sin(3 * np.pi * x[:, :1]) * [1, 0], 0.2),
}


@pytest.mark.parametrize("case", CASES)
def test_reference_cases(case: str, reference: Mapping[str, Array]) -> None:
    function, gradient, tolerance = CASES[case]
    x = np.random.RandomState(0).rand(1000, 2)
    model = make(kernel=Gaussian(np.sqrt(0.5)), landmarks=x[:100], folds=None).fit(x, function(x), gradient(x))
    a, b = sums(model)
    np.testing.assert_allclose(a, reference["A"], rtol=1e-11)
    np.testing.assert_allclose(b[:, 0], reference[f"{case}_b"], rtol=1e-9, atol=1e-9)
    line = np.column_stack([np.linspace(0, 1, 1000)[::10], np.full(100, 0.5)])
    # A has condition 3e18, and the second coordinate of the reference's line is not known
    np.testing.assert_allclose(model.predict(line), reference[f"{case}_prediction"], atol=tolerance)


# -- what the method does ----------------------------------------------------------------------------------------------


def test_cross_validation_equals_the_hat_matrix() -> None:
    """The score of values and of gradients, each by its own leverage, from features written out; weights scale rows."""
    x, y, t, w = X[:50], Y[:50], T[:50], RNG.uniform(0.5, 2, 50)
    model = make(landmarks=X[100:112], gradient_weight=0.7, alpha="gcv")
    model.fit(x, y, t, sample_weight=w)
    difference = x[:, None] - X[100:112]
    k, root = np.exp(-np.sum(difference**2, axis=2) / 2), np.sqrt(0.7)
    features = np.concatenate([k[:, None], root * (-difference * k[:, :, None]).transpose(0, 2, 1)], axis=1)
    features = (features * np.sqrt(w)[:, None, None]).reshape(-1, 12)
    z = (np.column_stack([y, root * t]) * np.sqrt(w)[:, None]).ravel()
    penalty = np.exp(-np.sum((X[100:112, None] - X[100:112]) ** 2, axis=2) / 2)
    hat = features @ np.linalg.solve(features.T @ features + w.sum() * model.alpha_ * penalty, features.T)
    rows, score = np.arange(len(z)).reshape(50, -1), 0.0
    for kind in (rows[:, :1].ravel(), rows[:, 1:].ravel()):
        variance = np.sum(hat[kind] ** 2) / len(kind)
        free = 1 - np.sum(np.diag(hat)[kind]) / len(kind)
        score += np.sum((z - hat @ z)[kind] ** 2) / w.sum() / free**2 * (1 + 2 * variance**2)
    np.testing.assert_allclose(model.gcv_, score, rtol=1e-7)
    np.testing.assert_allclose(model.degrees_of_freedom_, np.trace(hat), rtol=1e-7)
    assert model.gcv_ <= model.gcv_curve_[:, 1].min() * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"standardize": True}], ids=str)
def test_a_polynomial_and_its_gradient_are_found_exactly(options: dict[str, Any]) -> None:
    """Values and gradients of a quadratic in the span of a polynomial kernel, also through standardized columns."""
    y, t = 1 + X @ DIRECTION + X[:, 0] * X[:, 1], np.tile(DIRECTION, (N, 1))
    t[:, 0], t[:, 1] = t[:, 0] + X[:, 1], t[:, 1] + X[:, 0]
    model = make(kernel=Polynomial(2), **options).fit(X, y, t)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)
    np.testing.assert_allclose(model.predict_gradient(X), t, atol=1e-5)


def test_gradient_weight_and_alpha_without_the_data(fitted: dsp.HermiteRegressor) -> None:
    for options in ({"gradient_weight": 0.01}, {"gradient_weight": 0, "alpha": 0.1}, {"alpha": 1e-3}):
        again = make(**options).fit_moments(fitted.moments_)
        np.testing.assert_array_equal(again.coef_, make(**options).fit(X, Y, T).coef_)
        assert not np.allclose(again.coef_, fitted.coef_)
    plain = make(landmarks=fitted.basis_.landmarks, alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(make(gradient_weight=0, alpha=0.1).fit_moments(fitted.moments_).coef_, plain.coef_)


def test_standardized_columns_follow_the_chain_rule() -> None:
    mean, scale = X[:, [2, 0]].mean(axis=0), X[:, [2, 0]].std(axis=0)
    x = (X[:, [2, 0]] - mean) / scale
    model = make(landmarks=X[:30], columns=[2, 0], standardize=True, alpha=1e-3).fit(X, PAIR, PAIR_T)
    by_hand = make(landmarks=x[:30], alpha=1e-3).fit(x, PAIR, PAIR_T[:, :, [2, 0]] * scale)
    assert_close(model.coef_, by_hand.coef_, 1e-6)
    np.testing.assert_allclose(model.predict(X), by_hand.predict(x), rtol=1e-6, atol=1e-6)
    gradient = model.predict_gradient(X)
    np.testing.assert_allclose(gradient[:, :, [2, 0]], by_hand.predict_gradient(x) / scale, rtol=1e-6, atol=1e-6)
    assert not gradient[:, :, 1].any()


# -- containers, and what is kept --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONTAINERS)
def test_several_targets_from_every_container(kind: str, tmp_path: Path) -> None:
    convert, out = CONTAINERS[kind]
    x, y, t = (convert(tmp_path, name, a) for name, a in (("x", X), ("y", PAIR), ("t", PAIR_T)))
    model, plain = (make(alpha=1e-3, folds=None).fit(*data) for data in ((x, y, t), (X, PAIR, PAIR_T)))
    assert_same_arrays(model.moments_.arrays, plain.moments_.arrays)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    for find in (model.predict, model.predict_gradient):
        assert isinstance(find(x), out)
        assert_close(np.asarray(find(x)), find(X), 1e-9)
        find(x, out=tmp_path / f"{find.__name__}.zarr")
        assert_close(written(tmp_path / f"{find.__name__}.zarr"), find(X), 1e-9)
    for j in range(2):
        one = make(alpha=1e-3, folds=None).fit(X, PAIR[:, j], PAIR_T[:, j])
        np.testing.assert_allclose(model.predict_gradient(X)[:, j], one.predict_gradient(X), atol=1e-5)


def test_saved_and_loaded_bit_for_bit(tmp_path: Path) -> None:
    model = make(columns=[2, 0], standardize=True, landmarks=X[:9], alpha=0.1).fit(X, PAIR, PAIR_T)
    model.save(tmp_path / "m.zarr")
    again = dsp.HermiteRegressor.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict_gradient(X), model.predict_gradient(X))
    dsp.save(model.moments_, tmp_path / "moments.zarr")
    np.testing.assert_array_equal(again.fit_moments(dsp.load(tmp_path / "moments.zarr")).coef_, model.coef_)
    with pytest.raises(ValueError, match=r"m.zarr holds HermiteRegressor, not SpectralDecomposition"):
        dsp.SpectralDecomposition.load(tmp_path / "m.zarr")


def test_moments_add_and_appended_rows_are_folded_in(fitted: dsp.HermiteRegressor) -> None:
    model = make(landmarks=fitted.basis_.landmarks, alpha=fitted.alpha_)  # the folds of the parts are others
    half, rest = (clone(model).fit(X[part], Y[part], T[part]) for part in (slice(200), slice(200, None)))
    both = clone(model).fit_moments(half.moments_ + rest.moments_)
    half.update(X, Y, T)
    for found in (both, half):
        np.testing.assert_allclose(found.moments_.arrays["slopes"], fitted.moments_.arrays["slopes"], rtol=1e-9)
        np.testing.assert_allclose(found.predict(X), fitted.predict(X), atol=1e-5)
        assert found.moments_.rows == N


# -- bad input ---------------------------------------------------------------------------------------------------------


DATA = (X, Y, T)
BAD: list[tuple[dict[str, Any], tuple[Any, ...], type[Exception], str]] = [
    ({}, (X, None), ValueError, r"the target y is None: give the values to fit, \(n,\), or \(n, m\) for m targets"),
    ({}, (X, Y, Y), ValueError, r"gradients must have shape \(300, 3\), .* have shape \(300,\)"),
    ({}, (X, PAIR, T), ValueError, r"gradients must have shape \(300, 2, 3\)"),
    ({}, (X, Y.astype(str)), TypeError, r"y has dtype .*, and real numbers are wanted"),
    ({}, (X[:20], Y[:20]), ValueError, r"X has 20 rows, fewer than n_landmarks=40; lower n_landmarks or give"),
    ({"kernel": "gaussian"}, DATA, TypeError, "kernel must be one of"),
    ({"alpha": "cv"}, DATA, ValueError, "alpha must be 'gcv'; it is 'cv'"),
    ({"landmarks": X[:5, :2]}, DATA, ValueError, r"array \(p, 3\), one column for each of X; they have shape \(5, 2\)"),
    ({"landmark_sample": 5, "landmarks": "leverage"}, DATA, ValueError, "landmark_sample must be a whole number of 40"),
    ({"rtol": 0}, DATA, ValueError, "rtol must be positive: .*; it is 0. Leave it None for 1e-15"),
    ({"rtol": 0.0, "alpha": 1e-3, "dtype": "float32"}, DATA, ValueError, "Leave it None for 1e-06"),
    ({"kernel": Radial(lambda s: np.exp(-s))}, DATA, dsp.SmoothnessError, "regression on gradients takes"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "data", "error", "message"), BAD, ids=[b[3][:40] for b in BAD])
def test_refused_before_any_task(changes: dict[str, Any], data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**({"standardize": True} | changes)).fit(*data)


def test_invalid_rows(tmp_path: Path) -> None:
    broken = np.isin(np.arange(N), [217, 252])
    x, t = as_path(tmp_path, "x", np.where(broken[:, None], np.nan, X)), np.where(broken[:, None], np.nan, T)
    for data, what in (((x, Y, T), "X holds NaN in column 0"), ((X, Y, t), "gradients holds NaN")):
        for options in ({}, {"standardize": True, "kernel": Gaussian("median")}):
            with pytest.raises(dsp.InvalidRowError, match=rf"row 217 is the first .*{what}"):
                make(**options).fit(*data)
        skipped = make(landmarks=X[:30]).fit(*data, on_invalid="skip")
        without = make(landmarks=X[:30]).fit(X[~broken], Y[~broken], T[~broken])
        assert (skipped.moments_.skipped, skipped.moments_.count) == (2, N - 2)
        assert_close(skipped.moments_.arrays["slopes"], without.moments_.arrays["slopes"], 1e-9)
    for find in (skipped.predict, skipped.predict_gradient):
        found = np.isnan(np.asarray(find(x, on_invalid="skip"))).reshape(N, -1)
        np.testing.assert_array_equal(found, np.broadcast_to(broken[:, None], found.shape))


def test_moments_of_something_else(fitted: dsp.HermiteRegressor) -> None:
    moments = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20, n_components=3).fit(X).moments_
    with pytest.raises(ValueError, match=r"these are moments of Laplacian\(.*measure them with HermiteRegressor.fit"):
        make().fit_moments(moments)
    with pytest.raises(ValueError, match="moments of different operators do not add"):
        fitted.moments_ + make().fit(X, Y).moments_
    with pytest.raises(ValueError, match="the total sample weight is 0; some row needs a weight above zero"):
        make().fit(X, Y, T, sample_weight=np.zeros(N))
