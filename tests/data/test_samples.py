"""Test distributions against their closed forms, and their writing against one draw per chunk."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from scipy.integrate import quad
from scipy.stats import kstest

from daskspectral.data.distributions import OU_STEP, SAMPLES
from daskspectral.data.samples import write_sample

N = 40_000


def draw(name: str, dimension: int | None = None, noise: float = 0.0, n: int = N) -> np.ndarray:
    sample = SAMPLES[name]
    d = dimension or sample.dimension
    return sample.draw(n, d, noise, np.random.default_rng(7))


def read(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_array(path, mode="r")[:])


def assert_moments(x: np.ndarray, mean: object, covariance: object) -> None:
    """Six standard errors, taken from the sample's own fourth moments."""
    centred = x - np.asarray(mean)
    assert np.all(np.abs(centred.mean(0)) <= 6 * x.std(0) / math.sqrt(len(x)))
    products = centred[:, :, None] * centred[:, None, :]
    spread = np.maximum(products.std(0), 1e-12)
    assert np.all(np.abs(products.mean(0) - np.asarray(covariance)) <= 6 * spread / math.sqrt(len(x)))


def assert_distributed(x: np.ndarray, cdf: Callable[[Any], Any]) -> None:
    assert kstest(x, cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_has_its_shape_name_and_default(name: str) -> None:
    sample = SAMPLES[name]
    assert sample.name == name
    assert sample.description
    x = sample.draw(11, sample.dimension, sample.noise, np.random.default_rng(0))
    assert x.shape == (11, sample.dimension)
    assert x.dtype == np.float64
    assert np.isfinite(x).all()


@pytest.mark.parametrize("name", [name for name in SAMPLES if not SAMPLES[name].trajectory])
def test_noise_adds_its_variance_to_every_coordinate(name: str) -> None:
    noisy, clean = draw(name, noise=0.5), draw(name)
    difference = noisy - clean
    assert_moments(difference, np.zeros(clean.shape[1]), 0.25 * np.eye(clean.shape[1]))


def test_two_moons() -> None:
    x = draw("two-moons")
    outer = np.abs(np.linalg.norm(x, axis=1) - 1) < 1e-12
    inner = np.abs(np.linalg.norm(x - [1, 0.5], axis=1) - 1) < 1e-12
    assert np.all(outer ^ inner)
    assert np.all(x[outer, 1] >= 0)
    assert np.all(x[inner, 1] <= 0.5)
    assert abs(outer.mean() - 0.5) < 6 * 0.5 / math.sqrt(N)
    assert_moments(x[outer], [0, 2 / math.pi], [[0.5, 0], [0, 0.5 - 4 / math.pi**2]])
    assert_moments(x[inner], [1, 0.5 - 2 / math.pi], [[0.5, 0], [0, 0.5 - 4 / math.pi**2]])


@pytest.mark.parametrize("d", [2, 3, 6])
def test_sphere(d: int) -> None:
    x = draw("sphere", d)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-14)
    assert_moments(x, np.zeros(d), np.eye(d) / d)
    assert (x[:, 0] ** 4).mean() == pytest.approx(3 / (d * (d + 2)), rel=0.05)


def test_circle_has_a_uniform_angle() -> None:
    x = draw("circle")
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-14)
    assert_distributed(np.arctan2(x[:, 1], x[:, 0]), lambda t: (t + math.pi) / (2 * math.pi))


def test_gaussian() -> None:
    x = draw("gaussian", 3)
    assert_moments(x, np.zeros(3), np.eye(3))
    assert kstest(x[:, 1], "norm").pvalue > 1e-4


def test_torus() -> None:
    x = draw("torus", 6)
    np.testing.assert_allclose(np.linalg.norm(x.reshape(N, 3, 2), axis=2), 1, rtol=1e-14)
    assert_moments(x, np.zeros(6), np.eye(6) / 2)


def test_torus_surface_is_uniform_in_area() -> None:
    x, y, z = draw("torus-surface").T
    radius = np.hypot(x, y)
    np.testing.assert_allclose((radius - 2) ** 2 + z**2, 1, rtol=1e-12)
    tube, around = np.arctan2(z, radius - 2), np.arctan2(y, x)
    # The area up to the tube's angle t is proportional to the integral of 2 + cos.
    assert_distributed(tube, lambda t: (t + math.pi + np.sin(t) / 2) / (2 * math.pi))
    assert_distributed(around, lambda t: (t + math.pi) / (2 * math.pi))
    # The outer half has the area 2 pi (2 pi + 2), of 8 pi^2.
    outer = 0.5 + 1 / (2 * math.pi)
    assert abs((radius > 2).mean() - outer) < 6 * math.sqrt(outer * (1 - outer) / N)


def test_swiss_roll() -> None:
    x, height, z = draw("swiss-roll").T
    t = np.hypot(x, z)
    np.testing.assert_allclose(t * np.cos(t), x, atol=1e-9)
    assert_distributed(t, lambda t: (t / (1.5 * math.pi) - 1) / 2)
    assert_distributed(height, lambda h: h / 21)


def test_uniform() -> None:
    x = draw("uniform", 4)
    assert np.abs(x).max() <= 1
    assert_moments(x, np.zeros(4), np.eye(4) / 3)


def test_double_well() -> None:
    x = draw("double-well")[:, 0]
    mass = [quad(lambda t, k=k: t**k * math.exp(-4 * (t * t - 1) ** 2), -3, 3)[0] for k in range(5)]
    for k in range(1, 5):
        assert abs((x**k).mean() - mass[k] / mass[0]) < 6 * (x**k).std() / math.sqrt(N)


def test_ou_is_stationary_with_exponential_correlation() -> None:
    x = draw("ou", 1, n=400_000)[:, 0]
    standard_error = math.sqrt(2 / (OU_STEP * len(x)))  # a correlation time has 1 / OU_STEP rows
    for lag in (0, 1, 5, 20):
        expected = math.exp(-OU_STEP * lag)
        assert abs((x[lag:] * x[: len(x) - lag]).mean() - expected) < 6 * standard_error


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_ou_chunks_continue_one_another(tmp_path: Path, rows: int) -> None:
    write_sample("ou", tmp_path / "x.zarr", 50, dimension=2, chunk_rows=rows, seed=3, progress=False)
    decay = math.exp(-OU_STEP)
    expected, last = [], None
    for i, start in enumerate(range(0, 50, rows)):
        rng = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(i,)))
        for kick in math.sqrt(1 - decay**2) * rng.standard_normal((min(rows, 50 - start), 2)):
            last = rng.standard_normal(2) if last is None else decay * last + kick
            expected.append(last)
    np.testing.assert_allclose(read(tmp_path / "x.zarr"), expected, rtol=1e-12)


def test_ou_noise_stays_out_of_the_trajectory(tmp_path: Path) -> None:
    for noise in (0.0, 1e-9):
        write_sample("ou", tmp_path / f"{noise}.zarr", 20, noise=noise, chunk_rows=20, progress=False)
    difference = read(tmp_path / "1e-09.zarr") - read(tmp_path / "0.0.zarr")
    assert 0 < np.abs(difference).max() < 1e-8


@pytest.mark.parametrize("name", [name for name in SAMPLES if not SAMPLES[name].trajectory])
def test_chunk_i_is_drawn_from_seed_and_i(tmp_path: Path, name: str) -> None:
    write_sample(name, tmp_path / "x.zarr", 25, chunk_rows=10, seed=5, noise=0.2, progress=False)
    d = SAMPLES[name].dimension
    expected = [
        SAMPLES[name].draw(count, d, 0.2, np.random.default_rng(np.random.SeedSequence(5, spawn_key=(i,))))
        for i, count in enumerate((10, 10, 5))
    ]
    np.testing.assert_array_equal(read(tmp_path / "x.zarr"), np.concatenate(expected))


def test_same_arguments_same_bits(tmp_path: Path) -> None:
    for i in range(2):
        write_sample("sphere", tmp_path / f"{i}.zarr", 1000, chunk_rows=30, seed=1, progress=False)
    write_sample("sphere", tmp_path / "other.zarr", 1000, chunk_rows=30, seed=2, progress=False)
    np.testing.assert_array_equal(read(tmp_path / "0.zarr"), read(tmp_path / "1.zarr"))
    assert not np.any(read(tmp_path / "0.zarr") == read(tmp_path / "other.zarr"))


def test_array_and_attributes(tmp_path: Path) -> None:
    write_sample("two-moons", tmp_path / "x.zarr", 9, dtype="float32", chunk_rows=4, seed=2, progress=False)
    array = zarr.open_array(tmp_path / "x.zarr", mode="r")
    assert (array.shape, array.chunks) == ((9, 2), (4, 2))
    assert array.dtype == np.dtype("float32")
    assert array.attrs.asdict() == {"sample": "two-moons", "seed": 2, "noise": 0.05}
    assert os.listdir(tmp_path) == ["x.zarr"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "moon"}, "no sample 'moon'.*two-moons, sphere, circle"),
        ({"n": 0}, "at least 1 row, not 0"),
        ({"name": "circle", "dimension": 3}, "circle has dimension 2, not 3"),
        ({"name": "torus", "dimension": 3}, "a multiple of 2 and at least 2, not 3"),
        ({"name": "sphere", "dimension": 1}, "at least 2, not 1"),
        ({"name": "gaussian", "dimension": 0}, "at least 1, not 0"),
        ({"noise": -1.0}, "noise is a standard deviation"),
        ({"noise": math.nan}, "noise is a standard deviation"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"dtype": "int32"}, "dtype must be a floating type"),
        ({"chunk_rows": 0}, "chunk_rows must be a positive integer"),
    ],
)
def test_wrong_values_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    arguments = {"name": "gaussian", "path": tmp_path / "x.zarr", "n": 5, "progress": False} | options
    with pytest.raises(ValueError, match=message):
        write_sample(**arguments)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_existing_array_is_kept_or_replaced(tmp_path: Path) -> None:
    write_sample("gaussian", tmp_path / "x.zarr", 5, progress=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_sample("gaussian", tmp_path / "x.zarr", 6, progress=False)
    assert len(read(tmp_path / "x.zarr")) == 5
    write_sample("gaussian", tmp_path / "x.zarr", 6, overwrite=True, progress=False)
    assert len(read(tmp_path / "x.zarr")) == 6


def test_progress_is_silent_when_not_on_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sample("gaussian", tmp_path / "x.zarr", 5)
    write_sample("gaussian", tmp_path / "y.zarr", 5, progress=False)
    assert capsys.readouterr() == ("", "")
