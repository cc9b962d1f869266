"""The double well: the example's own bounds, at fewer points, and its grid against closed forms."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "double_well.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generator_has_the_spectrum_of_the_grid(example, tmp_path):
    numbers = example.main(10_000, tmp_path)
    assert numbers["largest relative error, reversible form"] <= 0.06
    assert numbers["largest relative error, form with drift"] <= 0.01
    assert numbers["largest error of a transfer singular value"] <= 0.04
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_the_grid_finds_hermite_polynomials_in_one_well(example, monkeypatch):
    # V = beta^-1 x^2 / 2: the eigenvalues are -k / beta, and the functions Hermite polynomials
    monkeypatch.setattr(example, "energy", lambda x: x**2 / (2 * example.BETA))
    monkeypatch.setattr(example, "EDGE", 9.0)
    grid, values, functions, density = example.solve_on_grid()
    np.testing.assert_allclose(values, -np.arange(6) / example.BETA, atol=1e-4)
    second = (grid**2 - 1) / np.sqrt(2)
    middle = np.abs(grid) < 3
    np.testing.assert_allclose(np.abs(functions[middle, 2]), np.abs(second[middle]), atol=1e-3)
    np.testing.assert_allclose(density, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), atol=1e-9)


def test_the_drift_is_minus_the_derivative_of_the_energy(example):
    x = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(example.slope(x), example.energy(x + 1e-30j).imag / 1e-30, atol=1e-12)


def test_points_and_trajectories_have_their_laws(example):
    rng = np.random.default_rng(1)
    x = example.equilibrium(40_000, rng)[:, 0]
    grid, _, _, density = example.solve_on_grid()
    mass = density * (grid[1] - grid[0])
    for power in (1, 2, 4):
        assert abs(np.mean(x**power) - mass @ grid**power) <= 5 * (x**power).std() / np.sqrt(len(x))
    trajectories = example.ornstein_uhlenbeck(80_000, rng)
    assert [t.shape for t in trajectories] == [(10_000, 1)] * 8
    paths = np.stack(trajectories)[..., 0]
    assert abs(paths.var() - 1) <= 0.06
    assert abs(np.mean(paths[:, 1:] * paths[:, :-1]) - np.exp(-example.STEP)) <= 0.05
