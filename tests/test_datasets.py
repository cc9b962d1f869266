"""Data sets of any size: the same numbers in memory, lazily and on disk, and their distributions in closed form."""

import math
from pathlib import Path

import numpy as np
import pytest
import zarr
from scipy.stats import kstest

from daskspectral import datasets
from daskspectral.datasets import OU_STEP, SAMPLES

NAMES = [name for name in datasets.__all__ if name not in ("draw", "ocean", "write")]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_numbers_wherever_they_are_drawn(name: str, tmp_path: Path) -> None:
    """Of a last chunk that is short, with noise, in single precision; another seed gives others."""
    options = {"chunk_rows": 300, "seed": 3, "noise": 0.1, "dtype": "float32"}
    function = getattr(datasets, name)
    found = function(1000, **options)
    assert found.dtype == np.float32
    datasets.write(name.replace("_", "-"), tmp_path / "x.zarr", 1000, progress=False, **options)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x.zarr")[:], found)
    assert not np.array_equal(function(1000, **{**options, "seed": 4}), found)


@pytest.mark.slow  # a path of 60 000 steps
def test_a_langevin_trajectory_samples_its_well_and_crosses_it() -> None:
    """exp(-V) by a Kolmogorov-Smirnov test of rows that hardly depend on one another; the rate is Kramers'."""
    x = datasets.langevin(60_000)[:, 0]
    grid = np.linspace(-2.2, 2.2, 4001)
    density = np.exp(-4 * (grid**2 - 1) ** 2)
    mass = np.cumsum(density) / density.sum()
    apart = x[::100]
    assert kstest(apart, lambda q: np.interp(q, grid, mass)).pvalue > 1e-3
    curvature = np.sqrt(32.0 * 16.0) / (2 * np.pi)  # V'' = 32 at the bottom, -16 at the top, the barrier is 4
    states = np.sign(x)[np.abs(x) > 0.7]
    rate = np.count_nonzero(np.diff(states)) / (len(x) * SAMPLES["langevin"].step)
    assert rate == pytest.approx(curvature * np.exp(-4.0), rel=0.3)


def test_the_ocean_has_its_documented_seasons_trend_and_patterns() -> None:
    field = datasets.ocean(2400, seed=1)
    assert (field.dims, field.units) == (("time", "lat", "lon"), "degC")
    assert 0.1 < float(field.isnull().all("time").mean()) < 0.3
    assert bool((field.isnull().any("time") == field.isnull().all("time")).all())
    assert field.equals(datasets.ocean(2400, seed=1))
    slope = field.polyfit("time", 1).polyfit_coefficients.sel(degree=1) * 3.15576e16  # of nanoseconds to years
    assert abs(float(slope.mean()) - 0.02) < 1e-3
    means = field.groupby("time.month").mean().mean("lon")
    np.testing.assert_allclose(means.sel(month=7) - means.sel(month=1), 16 * np.sin(np.radians(means.lat)), atol=0.2)
    series = field.sel(lat=0, lon=220) - 0.02 * np.arange(2400) / 12
    assert abs(float(series.std()) - np.hypot(1.5, 0.3)) < 0.1
    assert abs(np.corrcoef(series[:-1], series[1:])[0, 1] - 0.5 * 1.5**2 / (1.5**2 + 0.3**2)) < 0.06
    with pytest.raises(ValueError, match="n must"):
        datasets.ocean(0)


N = 40_000


def draw(name: str, dimension: int | None = None, n: int = N) -> np.ndarray:
    return SAMPLES[name].draw(n, dimension or SAMPLES[name].dimension, 0.0, np.random.default_rng(7))[0]


def assert_moments(x: np.ndarray, mean: object, covariance: object) -> None:
    """Six standard errors, taken from the sample's own fourth moments."""
    centered = x - np.asarray(mean)
    assert np.all(np.abs(centered.mean(0)) <= 6 * x.std(0) / math.sqrt(len(x)))
    products = centered[:, :, None] * centered[:, None, :]
    spread = np.maximum(products.std(0), 1e-12)
    assert np.all(np.abs(products.mean(0) - np.asarray(covariance)) <= 6 * spread / math.sqrt(len(x)))


LAWS = {"sphere": (5, 1 / 5), "gaussian": (3, 1.0), "torus": (6, 1 / 2), "uniform": (4, 1 / 3)}


@pytest.mark.parametrize("name", LAWS)
def test_means_and_covariances(name: str) -> None:
    d, variance = LAWS[name]
    assert_moments(draw(name, d), np.zeros(d), variance * np.eye(d))
    if name == "sphere":
        np.testing.assert_allclose(np.linalg.norm(draw(name, d), axis=1), 1, rtol=1e-14)


def test_ou_is_stationary_with_exponential_correlation() -> None:
    x = draw("ou", 1, n=400_000)[:, 0]
    standard_error = math.sqrt(2 / (OU_STEP * len(x)))  # a correlation time has 1 / OU_STEP rows
    for lag in (0, 1, 5, 20):
        expected = math.exp(-OU_STEP * lag)
        assert abs((x[lag:] * x[: len(x) - lag]).mean() - expected) < 6 * standard_error


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_has_its_shape_and_its_noise(name: str) -> None:
    d = SAMPLES[name].dimension
    clean, noisy = (SAMPLES[name].draw(500, d, noise, np.random.default_rng(7))[0] for noise in (0.0, 0.5))
    assert (clean.shape, clean.dtype, np.isfinite(clean).all()) == ((500, d), np.float64, True)
    if not SAMPLES[name].step:
        assert_moments(noisy - clean, np.zeros(d), 0.25 * np.eye(d))
    if name == "two-moons":
        outer, inner = (np.abs(np.linalg.norm(clean - c, axis=1) - 1) < 1e-12 for c in ([0, 0], [1, 0.5]))
        assert np.all(outer ^ inner)
        assert np.all(np.where(outer, clean[:, 1] >= 0, clean[:, 1] <= 0.5))
