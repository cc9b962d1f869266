"""Torsions: the example at fewer frames, its grid against other methods, and the law of its frames."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import zarr

from daskspectral.errors import TrustWarning

PATH = Path(__file__).parents[2] / "examples" / "torsions.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_frames_have_the_slow_modes_of_the_grid(example, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(example, "ORDER", 12)
    numbers = example.main(300_000, tmp_path / "out", tmp_path / "data")
    assert numbers["frames"] == 300_000
    assert numbers["largest relative error of a slow time scale"] <= 0.35
    assert numbers["intervals that hold the time scale on the grid"] >= 4
    assert numbers["least squared correlation of a slow mode with the grid's"] >= 0.98
    for i in range(1, example.COUNT):
        lower, found, upper = (numbers[f"time scale {i}, {end}ps"] for end in ("lower end, ", "", "upper end, "))
        assert 0 < lower < found < upper
    assert [p.name for p in (tmp_path / "out").iterdir()] == [example.PICTURE]
    (kept,) = (tmp_path / "data").iterdir()
    frames = zarr.open_array(kept, mode="r")
    assert (frames.shape, frames.dtype) == ((300_000, 2), np.float32)
    example.report(numbers)
    table = capsys.readouterr().out.splitlines()
    for i in range(1, example.COUNT):  # the columns stand below their headings
        assert table[i][table[0].index("on the grid") :] == f"{numbers[f'time scale {i}, on the grid, ps']:.4g}"


def test_frames_dealt_to_folds_one_by_one_are_warned_of(example, tmp_path, monkeypatch):
    path = tmp_path / "frames.zarr"
    example.simulate(path, 40)
    monkeypatch.setattr(example, "ORDER", 6)
    with pytest.warns(TrustWarning, match="use folds='blocks'"):
        example.estimator().set_params(folds=10).fit(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the order of the rows", TrustWarning)
        example.estimator().fit(path)


def test_frames_are_a_function_of_their_number_alone(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "REPLICAS", 6)
    monkeypatch.setattr(example, "FRAMES", 5)
    paths = [tmp_path / "one.zarr", tmp_path / "two.zarr"]
    for path in paths:
        example.simulate(path, 15)  # two chunks, and half of one
    one, two = (zarr.open_array(path, mode="r") for path in paths)
    np.testing.assert_array_equal(one[:], two[:])
    assert one.shape == (75, 2)
    assert len(np.unique(one[:, 0])) == 75
    assert np.all(np.abs(one[:]) <= np.float32(np.pi))
    steps = np.abs(np.diff(one[:].reshape(15, 5, 2), axis=1))
    assert np.median(np.minimum(steps, 2 * np.pi - steps)) < 0.5  # frames of one replica follow one another


def test_the_grid_agrees_with_the_product_of_two_circles(example, monkeypatch):
    # one well: the density is a product, and eigenvalues are sums of those along each angle, by Fourier-Galerkin there
    widths = np.array([[2.0, 3.0]])
    monkeypatch.setattr(example, "CENTRES", np.array([[0.4, -1.1]]))
    monkeypatch.setattr(example, "WIDTHS", widths)
    monkeypatch.setattr(example, "MASSES", np.prod(scipy.special.i0e(widths), axis=1))
    monkeypatch.setattr(example, "POPULATIONS", np.ones(1))
    monkeypatch.setattr(example, "PLATEAU", 0.0)
    along = [circle(width) for width in widths[0]]
    exact = -example.DIFFUSIVITY * np.sort(np.add.outer(*along).ravel())[: example.COUNT]
    values, functions, mass = example.solve_on_grid(120)
    np.testing.assert_allclose(values, exact, rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(functions.T @ (mass[:, None] * functions), np.eye(example.COUNT), atol=1e-9)


def circle(width):
    """Eigenvalues of -(rho f')' = lambda rho f, rho = exp(width cos t), on trigonometric polynomials."""
    t = 2 * np.pi * np.arange(256) / 256
    k = np.arange(1, 25)[:, None]
    values = np.vstack([np.ones_like(t), np.cos(k * t), np.sin(k * t)])
    slopes = np.vstack([np.zeros_like(t), -k * np.sin(k * t), k * np.cos(k * t)])
    rho = np.exp(width * np.cos(t))
    return scipy.linalg.eigh(slopes * rho @ slopes.T, values * rho @ values.T, eigvals_only=True)


def test_the_density_has_mass_one_and_the_force_is_its_slope(example):
    phi, psi = example.centres(200)
    assert abs(example.density(phi, psi).mean() * example.TURN**2 - 1) <= 1e-12
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, (2, 500))
    for axis in range(2):
        step = np.zeros((2, 1))
        step[axis] = 1e-5
        slope = np.log(example.density(*(x + step)) / example.density(*(x - step))) / 2e-5
        np.testing.assert_allclose(example.force(x.astype(np.float32))[axis], slope, atol=2e-3)


def test_replicas_stay_at_equilibrium(example):
    frames = example.trajectories(4000, 30, np.random.default_rng(3))
    phi, psi = example.centres(200)
    mass = example.density(phi, psi) * (example.TURN / 200) ** 2
    for seen in (example.equilibrium(4000, np.random.default_rng(4)), frames[:, -1]):
        for function in (
            lambda phi, psi: np.log(example.density(phi, psi)),
            lambda phi, psi: np.cos(phi) + np.sin(psi),
            lambda phi, psi: np.sin(2 * phi - psi),
        ):
            values, exact = function(*seen.T.astype(float)), np.sum(mass * function(phi, psi))
            assert abs(values.mean() - exact) <= 4 * values.std() / len(values) ** 0.5


def test_the_histogram_counts_every_frame(example, tmp_path):
    path = tmp_path / "frames.zarr"
    example.simulate(path, 12)
    frames = zarr.open_array(path, mode="r")[:]
    edges = np.linspace(-np.pi, np.pi, example.CELLS + 1)
    expected, _, _ = np.histogram2d(*frames.T, bins=(edges, edges))
    counts = example.histogram(path)
    assert counts.sum() == len(frames)
    assert np.abs(counts - expected).sum() <= 4  # frames on an edge, by rounding
