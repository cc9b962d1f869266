"""Operators between two sets of functions: transfer operators of trajectories, their forecasts, and pairs of views."""

import math
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import xarray as xr
from numpy.polynomial.hermite_e import hermeval
from numpy.typing import NDArray
from scipy.signal import lfilter

import daskspectral as dsp
from daskspectral.basis import Landmarks, MonomialBasis
from daskspectral.kernels import Gaussian
from daskspectral.moments.intervals import WIDENED
from daskspectral.operators import Cross, Transfer
from tests.common import assert_close, koopman, unreliable

Array = NDArray[Any]
STEP = 0.5


def ornstein_uhlenbeck(n: int, d: int, seed: int, turn: float = 0.0) -> Array:
    """n rows of dX = (-1 + i turn) X dt + sqrt(2) dW, exact at any step, from the stationary law N(0, I)."""
    rng = np.random.default_rng(seed)
    decay = np.exp((-1 + 1j * turn) * STEP)
    kicks = math.sqrt(1 - abs(decay) ** 2) * rng.standard_normal((n, d))
    kicks[0] = rng.standard_normal(d)
    if not turn:
        return np.asarray(lfilter([1.0], [1.0, -decay.real], kicks, axis=0))
    path = lfilter([1.0], [1.0, -decay], kicks[:, 0] + 1j * kicks[:, 1])
    return np.column_stack([path.real, path.imag])


def shift_and_scatter(means: Any) -> tuple[complex, float]:
    """Of the mean over independent trajectories: itself, and the standard deviation by the scatter of their means."""
    return np.mean(means), float(np.std(means, ddof=1) / math.sqrt(len(means)))


@pytest.mark.parametrize("lag", [1, 2])
def test_ornstein_uhlenbeck(lag: int) -> None:
    """A basis that spans the exact functions leaves the error of these data, known to first order.

    A singular value moves by the mean over the pairs of u v - sigma (u^2 + v^2) / 2, with u and v the exact function
    at both ends; a multiple one on average over its functions.
    """
    paths, basis, start = [ornstein_uhlenbeck(2000, 2, seed) for seed in range(20)], MonomialBasis(2, 2), 0
    model = koopman(Transfer(lag), basis, n_components=basis.size).fit(paths)
    assert model.rank_ == (basis.size, basis.size)
    for degree in range(3):
        axes = list(combinations_with_replacement(range(2), degree))
        sigma, means = math.exp(-degree * lag * STEP), np.zeros(len(paths))
        for powers in ([a.count(0), a.count(1)] for a in axes):
            for i, x in enumerate(paths):
                parts = [hermeval(x[:, k], np.eye(3)[m]) / math.sqrt(math.factorial(m)) for k, m in enumerate(powers)]
                u, v = np.prod(parts, axis=0)[:-lag], np.prod(parts, axis=0)[lag:]
                means[i] += np.mean(u * v - sigma * (u**2 + v**2) / 2) / len(axes)
        shift, deviation = shift_and_scatter(means)
        found = model.singular_values_[start : start + len(axes)].mean()
        assert deviation < 0.02  # or the test would tell nothing
        assert found - sigma == pytest.approx(shift, abs=3e-3)  # to second order in that
        start += len(axes)


def test_eigenvalues_of_a_rotation_are_complex() -> None:
    paths = [ornstein_uhlenbeck(3000, 2, seed, turn=2.0) for seed in range(20)]
    basis, a = MonomialBasis(2, 2), np.exp((-1 + 2j) * STEP)
    model = koopman(Transfer(1, solver="eigen"), basis, n_components=6).fit(paths)
    z = [x[:, 0] + 1j * x[:, 1] for x in paths]
    exact = {1: [np.ones(len(x)) for x in z], a: z, a.conj(): [x.conj() for x in z], a**2: [x**2 for x in z]}
    for value, functions in exact.items():
        # to first order an eigenvalue moves by the mean of (v - value u) conj(u), u and v at both ends of a pair
        means = [np.mean((u[1:] - value * u[:-1]) * u[:-1].conj()) / np.mean(np.abs(u) ** 2) for u in functions]
        shift, deviation = shift_and_scatter(means)
        found = model.eigenvalues_[np.abs(model.eigenvalues_ - value).argmin()]
        assert deviation < 0.02
        assert abs(found - value - shift) < 3e-3
    np.testing.assert_array_less(np.diff(np.abs(model.eigenvalues_)), 1e-9)
    right, left = ([model.transform(x[:-1], side=side) for x in paths] for side in ("right", "left"))
    overlap = np.mean([f.conj().T @ g / len(f) for f, g in zip(left, right, strict=True)], 0)
    np.testing.assert_allclose(overlap, np.eye(6), atol=1e-9)
    np.testing.assert_array_equal(model.transform(paths[0]), model.transform(paths[0], side="right"))
    for name in ("singular_values_", "right_coefficients_"):
        assert not hasattr(model, name)
    with pytest.raises(ValueError, match="side"):
        model.transform(paths[0], side="both")


# -- how the rows are read ---------------------------------------------------------------------------------------------


@unreliable
def test_landmarks_are_rows_that_begin_a_pair() -> None:
    short = [np.full((6, 1), 100.0 * i) + np.arange(6.0)[:, None] for i in range(30)]
    model = koopman(Transfer(4), Landmarks(Gaussian(1.0), 60), n_components=2)
    landmarks = model.fit(short).basis_.landmarks
    assert sorted(landmarks[:, 0].tolist()) == sorted(100.0 * i + t for i in range(30) for t in (0, 1))
    assert model.moments_.count == 60  # no derivative sees a landmark at itself


def test_the_constant_of_a_propagator_is_known_as_one() -> None:
    walk = np.cumsum(np.random.default_rng(0).normal(size=(2000, 1)), axis=0) % 10
    basis = dsp.basis.TrigonometricBasis((10.0,), 3)
    for operator, constants in ((Transfer(1), 1), (Transfer(1, "eigen"), 1), (Transfer(1, center=True), 0)):
        model = koopman(operator, basis=basis, n_components=3).fit(walk)
        assert model.n_constants_ == constants
        assert model.to_xarray()["constant"].to_numpy().tolist() == [constants == 1, False, False]
        assert len(model.timescales_[0]) == 3 - constants


# -- forecasts, against a linear regression ----------------------------------------------------------------------------


LINEAR = dsp.basis.MonomialBasis(2, 1)


@pytest.fixture(scope="module")
def series() -> Any:
    """A damped rotation with noise, (3000, 2)."""
    rng, x = np.random.default_rng(1), np.zeros((3000, 2))
    for t in range(1, len(x)):
        x[t] = x[t - 1] @ [[0.9, -0.3], [0.2, 0.85]] + rng.normal(size=2) + 0.1
    return x


@pytest.mark.parametrize("operator", [Transfer(2), Transfer(2, "eigen"), Transfer(2, center=True)])
def test_a_forecast_of_linear_functions_is_a_regression_to_a_power(series: Any, operator: Transfer) -> None:
    early, late = series[:2000], series[2000:]
    est = koopman(operator, basis=LINEAR, n_components=3 - operator.center, folds=None).fit(early)
    with_ones = [np.column_stack([np.ones(len(x)), x]) for x in (early[:-2], early[2:], late)]
    moved = np.linalg.lstsq(with_ones[0], with_ones[1], rcond=None)[0]
    expected = with_ones[2] @ np.linalg.matrix_power(moved, 3)[:, 1:]
    near = 0.02 if operator.center else 1e-8  # means of starts and ends differ by a few rows
    np.testing.assert_allclose(est.forecast(late, 3), expected, atol=near)
    spread = ((late[6:] - late[6:].mean(axis=0)) ** 2).sum(axis=0)
    score = np.mean(1 - ((late[6:] - expected[:-6]) ** 2).sum(axis=0) / spread)
    assert est.forecast_score(late, 3) == pytest.approx(score, abs=near)


def test_a_forecast_has_the_labels_and_units_of_its_field(series: Any) -> None:
    field = xr.DataArray(1000 + 50 * series, {"lat": [0.0, 30.0]}, ("time", "lat"), name="height")
    rows = dsp.Rows(field, sample_dims=("time",), standardize=True)
    est = koopman(Transfer(1), basis=LINEAR, n_components=3).fit(rows)
    found = est.forecast(field[:10], 2)
    assert found.dims == ("time", "lat")
    np.testing.assert_allclose(found.lat, [0, 30])
    again = koopman(Transfer(1), basis=LINEAR, n_components=3).fit(series).forecast(series[:10], 2)
    np.testing.assert_allclose(found, 1000 + 50 * again, atol=1e-6)
    assert est.forecast_score(field, 2) > 0.5


@pytest.mark.parametrize("center", [False, True])
def test_intervals_of_a_forecast_are_those_of_fits_without_a_block(series: Any, center: bool) -> None:
    labels = np.arange(len(series)) * 5 // len(series)
    given = {"basis": LINEAR, "n_components": 3 - center}
    est = koopman(Transfer(1, center=center), **given, folds=labels).fit(series)
    found = est.forecast(series[:4], 3, interval=True)
    assert_close(found[..., 0], est.forecast(series[:4], 3), 1e-12)
    samples = []
    for fold in range(5):
        weight = (labels != fold).astype(float)
        part = koopman(Transfer(1, center=center), **given, folds=None).fit(series, sample_weight=weight)
        samples.append(part.forecast(series[:4], 3))
    half = (
        WIDENED
        * scipy.stats.t.ppf(0.975, 4)
        * np.sqrt(4 / 5 * np.sum((samples - np.mean(samples, axis=0)) ** 2, axis=0))
    )
    assert_close(found[..., 1:], np.stack([found[..., 0] - half, found[..., 0] + half], axis=-1), 1e-6)
    assert np.isnan(
        koopman(Transfer(1), **given, folds=None).fit(series).forecast(series[:4], 1, interval=True)[..., 1:]
    ).all()


# -- between two views -------------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
X = RNG.normal([2.0, 0.0, -1.0], 1.0, (1000, 3))
Y = np.tanh(X @ RNG.standard_normal((3, 4))) + 0.3 * RNG.standard_normal((1000, 4)) - 2
WEIGHT = RNG.integers(0, 3, 1000)
GAUSSIAN = Gaussian(1.5)
UNIFORM = Landmarks(GAUSSIAN, 15, method="uniform")


def make(operator: Any = None, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"basis": UNIFORM, "n_components": 4, "random_state": 0}
    return dsp.SpectralDecomposition(Cross() if operator is None else operator, **(defaults | changes))


def vamp(f: Array, g: Array, weight: Array) -> tuple[Array, Array, Array]:
    """VAMP of features (n, p) and (n, q), row by row: singular values, and left and right functions at the rows."""
    root = np.sqrt(weight / weight.sum())[:, None]
    f, g = (root * (a - np.average(a, axis=0, weights=weight)) for a in (f, g))
    (q, _), (r, _) = (scipy.linalg.qr(a, mode="economic") for a in (f, g))
    u, values, vt = np.linalg.svd(q.T @ r, full_matrices=False)
    return values, q @ u / root, r @ vt.T / root


def test_canonical_correlations_are_those_of_vamp() -> None:
    weight, at, right_at = WEIGHT + 1.0, X[::99], Y[::90]
    f, g = (np.exp(-((a[:, None] - b) ** 2).sum(axis=-1) / 2 / 1.5**2) for a, b in ((X, at), (Y, right_at)))
    ours, theirs = (Landmarks(GAUSSIAN, points=points) for points in (at, right_at))
    model = make(Cross(center=True), n_components=3, basis=ours, right_basis=theirs)
    model.fit((X, Y), sample_weight=weight)
    values, left, right = vamp(f, g, weight)
    assert_close(model.singular_values_, values[:3], 1e-8)
    found, followed = model.transform(X), model.transform(Y, side="right")  # centered like VAMP's
    signs = np.sign(np.sum(found * left[:, :3], axis=0))
    assert_close(found * signs, left[:, :3], 1e-6)
    assert_close(followed * signs, right[:, :3], 1e-6)
