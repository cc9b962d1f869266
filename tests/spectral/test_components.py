"""Principal components rotated, and held against red noise."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.signal
import scipy.special
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.forms import gram
from daskspectral.kernels import Gaussian
from daskspectral.operators import BilinearForm, Covariance
from daskspectral.solve.red_noise import lag_one, threshold
from daskspectral.solve.rotation import varimax
from tests.common import assert_close, reloaded, unreliable

pytestmark = unreliable

RNG = np.random.default_rng(0)
N = 400
PARTS = np.zeros((3, 12))
PARTS[0, :4], PARTS[1, 4:8], PARTS[2, 8:] = [3, 2, 3, 2], [2, 2, 1, 2], [1, 1, 1, 0.5]
SOURCES = RNG.standard_normal((N, 3))
X = SOURCES @ PARTS + 0.05 * RNG.standard_normal((N, 12)) + 7
T = np.arange(N)


def kernel_components(count: Any) -> dsp.SpectralDecomposition:
    basis = Landmarks(Gaussian(5.0), 20)
    return dsp.SpectralDecomposition(Covariance(), basis, n_components=count, random_state=0)


def by_gradients(loadings: Any) -> Any:
    """Varimax by the polar factor of its gradient."""
    rotation = np.eye(loadings.shape[1])
    for _ in range(1000):
        turned = loadings @ rotation
        u, _, v = np.linalg.svd(loadings.T @ (turned**3 - turned * np.mean(turned**2, axis=0)))
        rotation = u @ v
    return rotation


def simplicity(loadings: Any) -> float:
    return float(np.var(loadings**2, axis=0).sum())


@pytest.mark.parametrize("solver", ["principal", "covariance"])
def test_values_by_norm_are_of_linear_functions(solver: str) -> None:
    model = dsp.SpectralDecomposition(BilinearForm(gram, solver, center=solver == "covariance"), n_components=3).fit(X)
    values = vars(model).get("eigenvalues_", vars(model).get("singular_values_"))
    squares = X.T @ X / N if solver == "principal" else np.cov(X.T, bias=True)
    assert_close(values, np.linalg.eigvalsh(squares)[:-4:-1], 1e-9)


@given(st.integers(0, 1000))
def test_no_rotation_has_a_larger_criterion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((15, 4)) * rng.exponential(size=(15, 4))
    found = varimax(loadings)
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-13)
    best = simplicity(loadings @ found)
    near = [np.linalg.qr(np.eye(4) + 0.1 * rng.standard_normal((4, 4)))[0] for _ in range(20)]
    assert best >= max(simplicity(loadings @ found @ turn) for turn in near)
    assert best >= 0.999 * simplicity(loadings @ by_gradients(loadings @ np.eye(4)))


def test_rotated_components_are_the_parts_that_made_the_data() -> None:
    model = dsp.EOF(3).fit(X)
    found = model.rotated(3)
    assert_close(found.eigenvalues_.sum(), model.eigenvalues_.sum(), 1e-12)
    assert_close(found.coefficients_, model.coefficients_ @ found.rotation_, 1e-14)
    scores = found.transform(X)
    np.testing.assert_allclose(np.cov(scores.T, ddof=0), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(found.patterns_.maps, PARTS, atol=0.3)
    np.testing.assert_allclose(
        found.patterns_.maps.T @ found.patterns_.maps, model.patterns_.maps.T @ model.patterns_.maps
    )
    own = model.patterns_.maps.T @ found.rotation_
    wanted = model.patterns_.maps.T @ by_gradients(model.patterns_.maps.T)
    assert simplicity(own) == pytest.approx(simplicity(wanted), rel=1e-9)
    assert_close(found.explained_variance_ratio_, np.sum(own**2, axis=0) / X.var(axis=0).sum(), 1e-9)
    assert_close(found.inverse_transform(scores), model.inverse_transform(model.transform(X)), 1e-10)
    assert np.isnan(found.eigenvalue_errors_).all()
    assert "3 components rotated" in found.message_
    assert model.rotated(2).search_results_.best_params["n_components"] == 2
    assert "No error bars after a rotation" in repr(found)
    assert model.eigenvalues_[0] > found.eigenvalues_[0]


def test_a_rotation_is_of_weighted_columns_and_is_saved() -> None:
    field = xr.DataArray(X.reshape(N, 4, 3), {"lat": [-60.0, -20, 20, 60]}, ("time", "lat", "lon"), name="t")
    model = dsp.EOF(3).fit(dsp.Rows(field, sample_dims="time", latitude="lat"))
    root = np.sqrt(np.cos(np.deg2rad(np.repeat([-60.0, -20, 20, 60], 3))))
    plain = dsp.EOF(3).fit(X * root)
    found, wanted = model.rotated(2), plain.rotated(2)
    assert_close(found.eigenvalues_, wanted.eigenvalues_, 1e-9)
    maps = found.to_xarray().components.transpose("mode", "lat", "lon").to_numpy().reshape(2, 12)
    assert_close(maps, wanted.patterns_.maps / root, 1e-9)
    loaded = reloaded(found)
    assert_close(loaded.transform(field), found.transform(field), 1e-14)
    assert loaded.message_ == found.message_
    assert (loaded.rotation_ == found.rotation_).all()


@pytest.mark.parametrize("standardize", [False, True])
def test_what_is_in_the_units_of_weighted_fields(standardize: bool) -> None:
    """Patterns with their intervals, and complex patterns: as of columns that were prepared by numpy."""
    root = np.sqrt(np.cos(np.deg2rad(np.repeat([-60.0, -20, 20, 60], 3))))
    x = X * np.geomspace(0.5, 20, 12) + 7
    coords = {"time": np.arange(N), "lat": [-60.0, -20, 20, 60]}
    field = xr.DataArray(x.reshape(N, 4, 3), coords, ("time", "lat", "lon"), name="t")
    model = dsp.EOF(3, folds="blocks").fit(dsp.Rows(field, latitude="lat", standardize=standardize))
    scale = x.std(axis=0) / root if standardize else 1 / root
    plain = dsp.EOF(3, folds="blocks").fit(x / scale)
    assert_close(model.patterns_.single, plain.patterns_.single * scale, 1e-9)
    assert_close(model.pattern_errors_, plain.pattern_errors_ * scale[:, None], 1e-8)
    shown, wanted = model.hilbert(field), plain.hilbert(x / scale)
    assert_close(shown.explained_variance.values, wanted.explained_variance.values, 1e-9)
    maps = wanted.components.values * scale
    assert_close(np.abs(shown.components.values.reshape(maps.shape)), np.abs(maps), 1e-8)
    assert_close(model.significance().explained, plain.explained_variance_ratio_, 1e-9)
    assert model.significance().verdict == plain.significance().verdict


WEIGHTS = RNG.uniform(0.2, 3, 12)
GRID = xr.DataArray(X.reshape(N, 3, 4), {"lat": [0, 1, 2], "lon": [0, 5, 6, 7]}, ("time", "lat", "lon"), name="t")
AREAS = xr.DataArray(WEIGHTS.reshape(3, 4), {"lat": [0, 1, 2], "lon": [0, 5, 6, 7]}, ("lat", "lon"))
NAMES = list("abcdefghijkl")
WEIGHTED = {
    "array": dsp.Rows(X, column_weights=WEIGHTS),
    "lazy": dsp.Rows(da.from_array(X, chunks=(70, 5)), column_weights=WEIGHTS.tolist()),
    "areas in another order": dsp.Rows(GRID, column_weights=AREAS[::-1, [2, 0, 1, 3]]),
    "a grid": dsp.Rows(GRID.chunk(time=90), column_weights=AREAS.values),
    "by name": dsp.Rows(pd.DataFrame(X, columns=NAMES), column_weights=dict(zip(NAMES, WEIGHTS, strict=True))),
    "a series": dsp.Rows(pd.DataFrame(X, columns=NAMES), column_weights=pd.Series(WEIGHTS[::-1], NAMES[::-1])),
    "by variable": dsp.Rows(
        xr.Dataset({name: ("time", column) for name, column in zip(NAMES, X.T, strict=True)}),
        column_weights=dict(zip(NAMES, WEIGHTS, strict=True)),
    ),
}


@pytest.mark.parametrize("kind", WEIGHTED)
@pytest.mark.parametrize("standardize", [False, True])
def test_weights_of_columns_are_those_of_columns_multiplied_by_hand(kind: str, standardize: bool) -> None:
    rows, root = replace(WEIGHTED[kind], standardize=standardize), np.sqrt(WEIGHTS)
    scale = root / X.std(axis=0) if standardize else root
    model, wanted = (dsp.EOF(3, random_state=0).fit(data) for data in (rows, X * scale))
    np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(model.eigenvalue_errors_, wanted.eigenvalue_errors_, rtol=1e-9)
    np.testing.assert_allclose(model.patterns_.single, wanted.patterns_.single / scale, atol=1e-9)
    for data in (rows, rows.data):
        np.testing.assert_allclose(model.transform(data), wanted.transform(X * scale), atol=1e-9)
    np.testing.assert_array_equal(reloaded(model).transform(rows.data), model.transform(rows))


def test_weights_of_the_columns_of_two_fields_and_of_fewer_rows_than_columns() -> None:
    own, other = np.sqrt(WEIGHTS), np.sqrt(WEIGHTS[:4])
    y = X[:, :4] + RNG.standard_normal((N, 4))
    found = dsp.MCA(2).fit(dsp.Rows(X, column_weights=own**2), dsp.Rows(y, column_weights=other**2))
    wanted = dsp.MCA(2).fit(X * own, y * other)
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-10)
    np.testing.assert_allclose(found.transform(y, side="right"), wanted.transform(y * other, side="right"), atol=1e-8)
    half = dsp.EOF(2).fit(dsp.Rows(X[:300], column_weights=own**2)).update(X)
    np.testing.assert_allclose(half.eigenvalues_, dsp.EOF(2).fit(X * own).eigenvalues_, rtol=1e-12)
    wide = RNG.standard_normal((40, 60)) + 100
    roots = np.sqrt(RNG.uniform(0.2, 3, 60))
    model, same = dsp.EOF(3).fit(dsp.Rows(wide, column_weights=roots**2)), dsp.EOF(3).fit(wide * roots)
    np.testing.assert_allclose(model.eigenvalues_, same.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.patterns_.single, same.patterns_.single / roots, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dsp.EOF(2).fit(dsp.Rows(X, column_weights=WEIGHTS[:3])),
        lambda: dsp.EOF(2).fit(dsp.Rows(X, column_weights=WEIGHTS - 1)),
        lambda: dsp.EOF(2).fit(dsp.Rows(X, column_weights={"a": 1})),
        lambda: dsp.EOF(2).fit(dsp.Rows(GRID, column_weights=AREAS.rename(lat="y"))),
        lambda: dsp.EOF(2).fit(dsp.Rows(GRID, column_weights=AREAS.assign_coords(lat=[0, 1, 3]))),
        lambda: dsp.EOF(2).fit(X).transform(dsp.Rows(X, column_weights=WEIGHTS)),
        lambda: dsp.EOF(2).fit(dsp.Rows(X, column_weights=WEIGHTS)).transform(dsp.Rows(X, column_weights=2 * WEIGHTS)),
        lambda: dsp.HermiteRegressor().fit(dsp.Rows(X, column_weights=WEIGHTS), X[:, 0]),
    ],
)
def test_weights_of_columns_that_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="column_weights"):
        call()


def test_shares_of_columns_with_gaps_are_of_the_variances_of_what_is_present() -> None:
    x = X[:30].copy()
    x[np.random.default_rng(0).uniform(size=x.shape) < 0.4] = np.nan
    model = dsp.EOF(3).fit(dsp.Rows(x, on_invalid="pairwise"))
    assert model.moments_.clipped > 0.05
    assert_close(model.explained_variance_ratio_, model.eigenvalues_ / np.nanvar(x, axis=0).sum(), 1e-9)


# -- significance ------------------------------------------------------------------------------------------------------


def red_noise(n: int, persistence: Any, rng: np.random.Generator) -> Any:
    """Independent columns of n values of stationary AR(1) processes of variance 1, about their means."""
    found = rng.standard_normal((n, len(persistence)))
    for t in range(1, n):
        found[t] = persistence * found[t - 1] + np.sqrt(1 - persistence**2) * found[t]
    return found - found.mean(axis=0)


def test_autocorrelations_have_no_bias() -> None:
    wanted, rng = np.array([-0.5, 0.0, 0.6, 0.95]), np.random.default_rng(1)
    noise = [red_noise(200, wanted, rng) for _ in range(400)]
    found = np.array([lag_one((x[1:] * x[:-1]).sum(axis=0), (x**2).sum(axis=0), 200) for x in noise])
    np.testing.assert_allclose(found.mean(axis=0), wanted, atol=0.01)


@pytest.mark.parametrize(("n", "removed"), [(60, 0), (200, 2)])
def test_a_twentieth_of_red_noise_exceeds_its_threshold(n: int, removed: int) -> None:
    """Also what is left of it without its leading components, which are far above noise."""
    rng, lags, trials = np.random.default_rng(0), np.linspace(0.2, 0.9, 50), 100
    above = 0
    for _ in range(trials):
        x = red_noise(n, lags, rng)
        own = lag_one((x[1:] * x[:-1]).sum(axis=0), (x**2).sum(axis=0), n)
        loadings = np.linalg.qr(rng.standard_normal((50, removed)))[0]
        x = x + 30 * rng.standard_normal((n, removed)) @ loadings.T
        x -= x.mean(axis=0)
        u, values, vt = np.linalg.svd(x, full_matrices=False)
        left = x - (u[:, :removed] * values[:removed]) @ vt[:removed]
        above += values[removed] ** 2 > threshold(n, own, (left**2).sum(axis=0), removed)
    assert 0.01 <= above / trials <= 0.1


@pytest.mark.parametrize(("kind", "off"), [("random", 0.06), ("late", 0.1), ("one", 1e-3)])
def test_modes_of_columns_with_missing_values_are_tested(kind: str, off: float) -> None:
    """As those of all values, of which rows count by the share of pairs that are present."""
    rng = np.random.default_rng(4)
    scores = red_noise(600, np.array([0.8, 0.5]), rng) * [8.0, 4.0]
    x = scores @ np.linalg.qr(rng.standard_normal((30, 2)))[0].T + red_noise(600, np.full(30, 0.4), rng) + 3
    gone = {"random": rng.random(x.shape) < 0.15, "late": np.zeros(x.shape, bool), "one": np.zeros(x.shape, bool)}
    gone["late"][:300, :9], gone["one"][7, 2] = True, True
    whole = dsp.EOF(4, folds="blocks").fit(x)
    model = dsp.EOF(4, folds="blocks").fit(dsp.Rows(np.where(gone[kind], np.nan, x), on_invalid="pairwise"))
    found, wanted = model.significance(), whole.significance()
    there = (~gone[kind]).astype(float)
    share = np.mean(there.T @ there) / 600
    np.testing.assert_allclose(found.lag_one[:2], wanted.lag_one[:2], atol=off)
    effective = 600 * share * (1 - found.lag_one**2) / (1 + found.lag_one**2)
    np.testing.assert_allclose(found.effective_rows, effective, rtol=1e-9)
    assert (found.count, found.rows, found.known.tolist()) == (2, 600, [True, True, False, False])
    np.testing.assert_allclose(found.separations[0], wanted.separations[0], rtol=5 * off)
    assert model.reliable_.tolist() == [True, True, False, False]
    noise = red_noise(600, rng.uniform(0, 0.9, 30), rng)
    noise[gone[kind]] = np.nan
    model = dsp.EOF(4, folds="blocks").fit(dsp.Rows(noise, on_invalid="pairwise"))
    assert model.significance().count == 0


def test_the_verdict_on_modes_above_red_noise() -> None:
    """Against the scores: two close modes and a separate one, of 300 months that count as fewer."""
    rng, lags = np.random.default_rng(3), np.array([0.8, 0.5, 0.5])
    scores = red_noise(300, lags, rng) * [8.0, 4.0, 3.8]
    x = scores @ np.linalg.qr(rng.standard_normal((40, 3)))[0].T + red_noise(300, np.full(40, 0.4), rng)
    model = dsp.EOF(5, folds="blocks").fit(dsp.Rows(x + 7))
    found, values = model.significance(), np.linalg.eigvalsh(np.cov(x.T, ddof=0))[::-1]
    assert_close(found.explained, values[:5] / values.sum(), 1e-9)
    first, _, *table = str(found).splitlines()
    assert (first, len(table)) == (found.verdict, 5)
    scores = model.transform(x + 7)
    own = np.array([lag_one((t[1:] * t[:-1]).sum(), (t**2).sum(), 300) for t in scores.T])
    assert_close(found.lag_one, own, 1e-6)
    assert_close(found.effective_rows, 300 * (1 - own**2) / (1 + own**2), 1e-6)
    for i in range(4):
        a = own[i] * own[i + 1]
        blocks = (scores[:, i] * scores[:, i + 1]).reshape(10, 30).mean(axis=1)
        error = max((1 + a) / (1 - a) / 300, blocks.var(ddof=1) / 10) * values[i] * values[i + 1]
        assert found.separations[i] == pytest.approx((values[i] - values[i + 1]) / 2 / np.sqrt(error), rel=1e-6)
    assert (found.count, found.groups[:3].tolist()) == (3, [0, 1, 1])
    assert found.known.tolist() == model.reliable_.tolist() == [True] * 3 + [False] * 2
    assert "3 of 5 modes above red noise; 1 separate, 2-3 mixed (read as a pair)" in repr(model)
    assert repr(reloaded(model)) == repr(model)
    with pytest.raises(ValueError, match="rotation"):
        model.rotated(3).significance()


@pytest.mark.parametrize("kind", [dsp.EOF, lambda k: dsp.SpectralDecomposition(Covariance(), n_components=k)])
def test_noise_has_no_known_modes(kind: Any) -> None:
    rng = np.random.default_rng(0)
    models = [kind(3).fit(red_noise(100, np.linspace(0.2, 0.9, 30), rng)) for _ in range(20)]
    assert sum("None of 3 modes" in repr(model) for model in models) >= 17


def center(moments: Any) -> Any:
    mean = moments.preparation.get("mean")
    return 0.0 if mean is None else mean


@pytest.mark.parametrize("n", [50, 30])
def test_modes_are_reported_for_any_rows(n: int) -> None:
    """Of more rows than columns and fewer, weighted, in chunks about another center, and as sums of halves."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((n, 40)).cumsum(axis=0), rng.uniform(0.5, 2, n)
    moments = dsp.EOF(2).fit(x, sample_weight=weight).moments_
    found, directions = moments.autocovariance, moments.basis.parts[-1].landmarks
    z = x - center(moments)
    roots = np.sqrt(weight[1:] * weight[:-1])
    np.testing.assert_allclose(found.columns, roots @ (z[1:] * z[:-1]), rtol=1e-10)
    np.testing.assert_allclose(found.means, roots @ (z[1:] + z[:-1]) / 2, atol=1e-10 * np.abs(z).sum())
    products = ((z[1:] * roots[:, None]).T @ z[:-1] + (z[:-1] * roots[:, None]).T @ z[1:]) / 2
    np.testing.assert_allclose(found.products, directions @ products @ directions.T, atol=1e-9 * np.abs(products).max())
    if n > 40:
        first, second = (dsp.EOF(2).fit(part).moments_ for part in (x[:25, :20], x[25:, :20] + 100))
        both = (first + second).autocovariance
        parts = [x[:25, :20], x[25:, :20] + 100]
        z = [part - center(first) for part in parts]
        assert_close(both.columns, sum((part[1:] * part[:-1]).sum(axis=0) for part in z), 1e-9)
        assert_close(np.diag(both.products), both.columns, 1e-9)


def test_intervals_of_patterns_are_a_jackknife_of_components() -> None:
    rng, labels = np.random.default_rng(5), np.arange(240) % 6
    x = rng.normal(size=(240, 5)) @ np.diag([3, 2, 1.3, 0.6, 0.4]) @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    rows = dsp.Rows(np.column_stack([x[:, :2], rng.normal(size=240), x[:, 2:]]), columns=[0, 1, 3, 4, 5])
    est = dsp.EOF(3, folds=labels).fit(rows)

    def patterns(some: Any) -> Any:
        values, vectors = np.linalg.eigh(np.cov(some, rowvar=False, bias=True))
        return (np.sqrt(values) * vectors)[:, :-4:-1].T

    samples = np.array([patterns(x[labels != k]) for k in range(6)])
    samples *= np.sign(np.einsum("skd,kd->sk", samples, patterns(x)))[..., None]
    errors = np.sqrt(5 / 6 * ((samples - samples.mean(axis=0)) ** 2).sum(axis=0))
    low, high = np.moveaxis(est.pattern_errors_, -1, 0)
    used = [0, 1, 3, 4, 5]
    np.testing.assert_allclose((high - low)[:, used] / 2, 1.15 * scipy.special.stdtrit(5, 0.975) * errors, rtol=1e-6)
    np.testing.assert_allclose((high + low) / 2, est.patterns_.single, atol=1e-10)
    found = est.to_xarray()
    np.testing.assert_allclose(found.components_error, (high - low) / 2, rtol=1e-12)
    assert np.isnan(est.rotated(2).pattern_errors_).all()


def test_complex_components_are_those_of_scipys_analytic_signal() -> None:
    rng, time, lon = np.random.default_rng(2), np.arange(301.0), np.arange(0, 360, 40.0)
    lat = np.array([-60.0, 0.0, 30.0])
    wave = np.cos(2 * np.pi * time[:, None, None] / 23 - np.deg2rad(2 * lon)) * np.cos(np.deg2rad(lat))[:, None]
    field = 3 * wave + np.sin(time / 9)[:, None, None] * np.cos(np.deg2rad(lon)) + rng.normal(size=(301, 3, 9)) + 280
    x = xr.DataArray(field, {"time": time, "lat": lat, "lon": lon}, ("time", "lat", "lon"), name="t").chunk(
        {"time": 50}
    )
    rows = dsp.Rows(x, sample_dims=("time",), latitude="lat")
    model = dsp.EOF(2).fit(rows)
    with warnings.catch_warnings(action="error"):
        found = model.hilbert(rows, 3)
    weights = np.sqrt(np.cos(np.deg2rad(lat)))[:, None]
    z = scipy.signal.hilbert((field - field.mean(axis=0)) * weights, axis=0).reshape(301, -1)
    u, s, v = np.linalg.svd(z, full_matrices=False)
    np.testing.assert_allclose(found["explained_variance"], s[:3] ** 2 / 301, rtol=1e-10)
    np.testing.assert_allclose(found["explained_variance_ratio"], s[:3] ** 2 / np.sum(s**2), rtol=1e-10)
    assert (
        (found["explained_variance_lower"] <= found["explained_variance"])
        & (found["explained_variance"] <= found["explained_variance_upper"])
    ).all()
    score, pattern = found["scores"].to_numpy(), found["components"].to_numpy()
    expected = np.einsum("nk,k,kd->nkd", u[:, :3], s[:3], v[:3]).reshape(301, 3, 3, 9) / weights
    np.testing.assert_allclose(np.einsum("nk,kij->nkij", score, pattern), expected, atol=1e-8)  # whatever the phase
    np.testing.assert_allclose(np.mean(np.abs(score) ** 2, axis=0), 1, rtol=1e-10)
    np.testing.assert_array_equal(found["time"], time)


def polar(dataset: xr.Dataset, name: str) -> Any:
    return dataset[f"{name}_amplitude"].values * np.exp(1j * dataset[f"{name}_phase"].values)


@pytest.mark.parametrize("kind", ["labeled", "lazy", "array", "dask", "two variables", "wide"])
def test_components_of_complex_rows_are_a_singular_value_decomposition(kind: str) -> None:
    rng, lat = np.random.default_rng(4), np.array([-60.0, 0.0, 30.0])
    n, shape = (20, (3, 8)) if kind == "wide" else (150, (3, 4))
    z = (rng.normal(size=(n, *shape)) + 1j * rng.normal(size=(n, *shape))) * np.linspace(4, 1, shape[1]) + 30 - 7j
    data: Any = xr.DataArray(z, {"time": np.arange(n), "lat": lat}, ("time", "lat", "lon"), name="w")
    data.attrs["units"], root = "m/s", np.sqrt(np.cos(np.deg2rad(lat)))[:, None]
    if kind in ("array", "dask"):
        data, root = z.reshape(n, -1), np.ones((3, 1))
        data = data if kind == "array" else da.from_array(data, chunks=(40, 5))
        rows: Any = data
    else:
        data = data.chunk(time=40) if kind == "lazy" else data
        data = data.to_dataset().assign(v=2 * data) if kind == "two variables" else data
        rows = dsp.Rows(data, sample_dims="time", latitude="lat")
    with warnings.catch_warnings(action="error"):
        found = dsp.EOF(3).complex_modes(rows)
    centered = ((z - z.mean(axis=0)) * root).reshape(n, -1)
    centered = np.hstack([centered, 2 * centered]) if kind == "two variables" else centered
    u, s, v = np.linalg.svd(centered, full_matrices=False)
    np.testing.assert_allclose(found.explained_variance, s[:3] ** 2 / n, rtol=1e-10)
    np.testing.assert_allclose(found.explained_variance_ratio, s[:3] ** 2 / np.sum(s**2), rtol=1e-10)
    name = "w_components" if kind == "two variables" else "components"
    parts = np.einsum("nk,ke->nke", found.scores.values, found[name].values.reshape(3, -1))
    wanted = np.einsum("nk,k,kd->nkd", u[:, :3], s[:3], v[:3, : z[0].size]).reshape(n, 3, *shape) / root
    np.testing.assert_allclose(parts, wanted.reshape(parts.shape), atol=1e-10)
    for values in (name, "scores"):
        np.testing.assert_allclose(polar(found, values), found[values], atol=1e-12)
    if kind == "labeled":
        assert found.components.dims == ("mode", "lat", "lon")
        assert found.components_amplitude.attrs["units"] == "m/s"


REAL = xr.DataArray(np.ones((40, 3)), dims=("time", "place"))
NOT_COMPLEX: dict[str, tuple[Any, type[Exception], str]] = {
    "real rows": (REAL, TypeError, "complex"),
    "a list": ([[1j]], TypeError, "complex"),
    "standardized": (dsp.Rows(REAL * 1j, standardize=True), ValueError, "standardize"),
    "delays": (dsp.Rows(REAL * 1j, delays=2), ValueError, "delays"),
    "a missing value": (REAL.where(np.arange(3) > 0).fillna(np.nan) * 1j, dsp.InvalidRowError, "row 0"),
}


@pytest.mark.parametrize("name", NOT_COMPLEX)
def test_rows_that_have_no_complex_components(name: str) -> None:
    rows, error, match = NOT_COMPLEX[name]
    with pytest.raises(error, match=match):
        dsp.EOF(1).complex_modes(rows)
    for data in (1j * REAL, 1j * REAL.values):
        with pytest.raises(ValueError, match="complex_modes"):
            dsp.EOF(1).fit(data)


def ensemble(members: int, times: int, width: int) -> xr.DataArray:
    """Members of slow columns around different means, without an order between the members."""
    rng = np.random.default_rng(members)
    noise = scipy.signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=(members, times, width)), axis=1)
    steps = np.datetime64("1990-01", "M") + np.arange(times)
    coords = {"time": steps.astype("M8[ns]"), "place": 1.0 * np.arange(width)}
    values = noise * np.linspace(3, 1, width) + 40 + 9 * rng.normal(size=(members, 1, 1))
    return xr.DataArray(values, coords, ("member", "time", "place"))


@pytest.mark.parametrize("dims", [("member", "time"), ("time", "member")])
@pytest.mark.parametrize("width", [4, 200])
def test_members_of_an_ensemble_follow_time_each_for_itself(dims: tuple[str, ...], width: int) -> None:
    data = ensemble(3, 40, width)
    missing = data.copy()
    missing[1, 7] = np.nan
    rows = dsp.Rows(missing.transpose(*dims, "place").chunk({dims[0]: 2}), sample_dims=dims, on_invalid="skip")
    model = dsp.EOF(2, random_state=0).fit(rows)
    found = model.moments_.autocovariance
    x = data.values - (0.0 if model.preparation_.mean is None else model.preparation_.mean)
    pairs = [(x[m, t], x[m, t + 1]) for m in range(3) for t in range(39) if m != 1 or t not in (6, 7)]
    assert found is not None
    assert found.weight == len(pairs)
    np.testing.assert_allclose(found.columns, sum(a * b for a, b in pairs), rtol=1e-9)
    np.testing.assert_allclose(found.means, sum(a + b for a, b in pairs) / 2, rtol=1e-9)
    scores = model.transform(data.transpose(*dims, "place"))
    assert scores.dims == (*dims, "mode")
    whole = dsp.EOF(2, random_state=0).fit(dsp.Rows(data.transpose(*dims, "place"), sample_dims=dims))
    flat = data.values.reshape(-1, width)
    wanted = np.linalg.svd(flat - flat.mean(axis=0), compute_uv=False)[:2] ** 2 / len(flat)
    np.testing.assert_allclose(whole.eigenvalues_, wanted, rtol=1e-10)
    folds, blocks = whole.moments_.folds, np.arange(40) * 10 // 40
    np.testing.assert_array_equal(folds.count, np.full(10, 12))
    if width == 4:
        own = data.values - (0.0 if whole.preparation_.mean is None else whole.preparation_.mean)
        sums, landmarks = [own[:, blocks == k].sum(axis=(0, 1)) for k in range(10)], whole.basis_.parts[-1].landmarks
        np.testing.assert_allclose(folds.arrays["first"][:, -len(landmarks) :], sums @ landmarks.T, rtol=1e-9)


@pytest.mark.parametrize("dims", [("member", "time"), ("time", "member")])
def test_the_analytic_signal_of_members_is_that_of_each(dims: tuple[str, ...]) -> None:
    data = ensemble(3, 60, 5)
    found = dsp.EOF(2).fit(data[0]).hilbert(dsp.Rows(data.transpose(*dims, "place"), sample_dims=dims))
    z = scipy.signal.hilbert(data.values - data.values.mean(axis=(0, 1)), axis=1)
    u, s, v = np.linalg.svd(z.reshape(-1, 5), full_matrices=False)
    np.testing.assert_allclose(found["explained_variance"], s[:2] ** 2 / 180, rtol=1e-10)
    scores = found["scores"].transpose("member", "time", "mode").to_numpy().reshape(180, 2)
    parts = np.einsum("nk,kd->nkd", scores, found["components"].to_numpy())
    np.testing.assert_allclose(parts, np.einsum("nk,k,kd->nkd", u[:, :2], s[:2], v[:2]), atol=1e-8)


def test_rows_that_an_analytic_signal_refuses() -> None:
    model = dsp.EOF(2).fit(X)
    gaps = X.copy()
    gaps[7] = np.nan
    for rows in (gaps, dsp.Rows(gaps, on_invalid="skip")):
        with pytest.raises(dsp.InvalidRowError) as caught:
            model.hilbert(rows)
        assert caught.value.row == 7
    with pytest.raises(ValueError, match="count"):
        model.hilbert(X, 0)
    kernel = dsp.EOF(2).fit_moments(kernel_components(2).fit(X).moments_)
    with pytest.raises(ValueError, match="kernel"):
        kernel.hilbert(X)


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("kept", [np.delete(T, 100), np.insert(T, 100, 99), np.append([1, 0], T[2:])])
def test_gaps_and_disorder_in_time_are_refused(kept: Any, framed: bool) -> None:
    """Of rows that have times, of which single dimensions of numbers count."""
    model = dsp.EOF(2).fit(X)
    for times in (1.0 * T, np.datetime64("1990-01", "M").astype("M8[ns]") + 30 * np.timedelta64(1, "D") * T):
        x = xr.DataArray(X[kept], {"time": times[kept]}, ("time", "place"))
        with pytest.raises(ValueError, match=r"row (1|100)\b"):
            model.hilbert(x.to_pandas() if framed else x)
    whole = xr.DataArray(X, {"time": times}, ("time", "place"))
    assert model.hilbert(whole.to_pandas() if framed else whole).sizes["mode"] == 2


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_share_of_the_variance_is_that_of_scikit_learn(share: float, standardize: bool) -> None:
    x = np.random.default_rng(0).standard_normal((200, 6)) * [4, 3, 2, 1.5, 1, 0.5] + 10
    given = (x - x.mean(axis=0)) / x.std(axis=0) if standardize else x
    wanted = PCA(share).fit(given)
    model = dsp.EOF(share).fit(dsp.Rows(x, standardize=standardize))
    assert len(model.eigenvalues_) == wanted.n_components_
    np.testing.assert_allclose(model.explained_variance_ratio_, wanted.explained_variance_ratio_, rtol=1e-8)
    assert model.score(x) == pytest.approx(model.eigenvalues_.sum(), rel=1e-6)
    assert model.hilbert(x).sizes["mode"] == wanted.n_components_
    assert reloaded(model).fit_moments(model.moments_).n_components == share


@pytest.mark.parametrize(
    "model",
    [
        *(dsp.EOF(value) for value in (1.0, -0.5, True)),
        dsp.SpectralDecomposition(n_components=0.9),
        kernel_components(0.9),
        dsp.DiffusionMap(n_components=0.9),
    ],
    ids=str,
)
def test_shares_that_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="n_components"):
        model.fit(X)


@pytest.mark.parametrize("side", ["left", "right"])
def test_components_have_no_sides(side: str) -> None:
    x = np.random.default_rng(0).standard_normal((200, 2))
    with pytest.raises(ValueError, match="side"):
        dsp.EOF(1).fit(x).transform(x, side=side)
