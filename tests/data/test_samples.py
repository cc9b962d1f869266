"""Test distributions against their closed forms, and their writing against one draw per chunk."""

import math

import numpy as np
import pytest

from daskspectral.datasets import OU_STEP, SAMPLES

N = 40_000


def draw(name: str, dimension: int | None = None, n: int = N) -> np.ndarray:
    return SAMPLES[name].draw(n, dimension or SAMPLES[name].dimension, 0.0, np.random.default_rng(7))[0]


def assert_moments(x: np.ndarray, mean: object, covariance: object) -> None:
    """Six standard errors, taken from the sample's own fourth moments."""
    centred = x - np.asarray(mean)
    assert np.all(np.abs(centred.mean(0)) <= 6 * x.std(0) / math.sqrt(len(x)))
    products = centred[:, :, None] * centred[:, None, :]
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
