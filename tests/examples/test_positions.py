"""Positions: the example at fewer rows and functions, its grid against closed forms, and the law of its rows."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import zarr

PATH = Path(__file__).parents[2] / "examples" / "positions.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_positions_have_the_eigenvalues_of_the_grid(example, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(example, "ORDERS", (20, 14))
    monkeypatch.setattr(example, "FEWER", (10, 7))
    monkeypatch.setattr(example, "SHOWN", 5000)
    numbers = example.main(100_000, tmp_path / "out", tmp_path / "data")
    assert numbers["largest relative error"] <= 0.05
    assert 0.01 <= numbers["largest relative change with fewer frequencies"] <= 0.6
    for i in range(1, example.COUNT):
        assert 0 < numbers[f"eigenvalue {i}, lower end"] < numbers[f"eigenvalue {i}, upper end"]
        assert numbers[f"eigenvalue {i} with fewer frequencies"] >= 0.99 * numbers[f"eigenvalue {i}"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {example.FUNCTIONS, example.VALUES}
    (kept,) = (tmp_path / "data").iterdir()
    assert zarr.open_array(kept, mode="r").shape == (100_000, 2)
    example.report(numbers)
    table = capsys.readouterr().out.splitlines()
    for i in range(1, example.COUNT):  # the columns stand below their headings
        assert table[i][table[0].index("on the grid") :] == f"{numbers[f'eigenvalue {i} on the grid']:.4g}"


def test_the_grid_has_the_eigenvalues_of_a_rectangle(example, monkeypatch):
    monkeypatch.setattr(example, "in_water", lambda x, y: np.ones(np.broadcast(x, y).shape, dtype=bool))
    monkeypatch.setattr(example, "density", lambda x, y: np.ones(np.broadcast(x, y).shape))
    waves = [(np.pi * np.arange(6) / length) ** 2 for length in (example.LENGTH, example.WIDTH)]
    exact = np.sort(np.add.outer(*waves).ravel())[: example.COUNT]
    np.testing.assert_allclose(example.finite_volumes(0.5), exact, rtol=2e-3, atol=1e-12)


def test_the_grid_is_fine_enough(example):
    coarse, fine = example.solve_on_grid(0.5), example.solve_on_grid(0.25)
    np.testing.assert_allclose(coarse[1:], fine[1:], rtol=5e-4)


def test_the_density_is_bounded_and_has_its_positions(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "ROWS", 30_000)
    path = tmp_path / "positions.zarr"
    example.write_positions(path, 80_000)
    x, y = zarr.open_array(path, mode="r")[:].T.astype(float)
    assert len(np.unique(x)) > 79_000  # chunks differ
    assert example.in_water(x, y).all()
    side = 0.25
    u = side * (np.arange(240) + 0.5)[:, None]
    v = side * (np.arange(160) + 0.5)[None]
    mass = example.density(u, v) * example.in_water(u, v)
    assert mass.max() <= example.HIGHEST
    mass /= mass.sum()
    for function in (lambda x, y: x + 0 * y, lambda x, y: x * y, lambda x, y: (x < example.SHORES[0]) & (y > 20)):
        values = function(x, y)
        assert abs(values.mean() - np.sum(mass * function(u, v))) <= 4 * values.std() / len(values) ** 0.5
