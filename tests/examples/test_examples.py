"""The examples: each runs at a smaller n, where its own bounds are wider as n^(-1/2), and gives its numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from daskspectral import plot

EXAMPLES = Path(__file__).parents[2] / "examples"
N = 10_000


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_half_moons(tmp_path):
    example = load("figure1_half_moons")
    numbers = example.main(N, tmp_path)
    assert numbers["second eigenvalue"] <= 0.2
    assert numbers["second over third eigenvalue"] <= 0.2
    assert numbers["largest error of an eigenvalue over k^2"] <= 0.2
    assert numbers["least correlation with cos(k t)"] >= 0.94
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_spherical_harmonics(tmp_path):
    example = load("figure2_spherical_harmonics")
    numbers = example.main(N, tmp_path)
    assert numbers["error (21) of 24 eigenvalues"] <= 0.035
    assert max(numbers[f"residual outside degree {k}"] for k in (1, 2, 3, 4)) <= 0.17
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_hermite(tmp_path):
    example = load("figure6_hermite")
    numbers = example.main(N, tmp_path)
    assert numbers["largest error of eigenvalue 1"] <= 0.07
    assert numbers["largest error of eigenvalue 2"] <= 0.25
    assert numbers["largest error of eigenvalue 3"] <= 0.8
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


NAMES = ["figure1_half_moons", "figure2_spherical_harmonics", "figure4_hermite_regression", "figure6_hermite"]
OTHERS = ["double_well", "torsions", "positions", "mnist_features", "digits_embedding", "crystal_forces"]


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_a_folder_that_is_missing_is_made(name, tmp_path, monkeypatch):
    def reached(path, overwrite):
        raise InterruptedError(path)

    monkeypatch.setattr(plot, "refuse_picture", reached)  # before any work
    example, folder = load(name), tmp_path / "new" / "folder"
    with pytest.raises(InterruptedError):
        example.main("mnist.npz" if name == "mnist_features" else N, out=folder)
    assert folder.is_dir()


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_that_cannot_be_written_is_said_before_any_work(name, tmp_path):
    (tmp_path / load(name).PICTURE).mkdir()
    with pytest.raises(FileExistsError, match="exists: choose another path"):
        load(name).main(N, tmp_path)


def test_the_true_functions_are_orthonormal():
    sphere = load("figure2_spherical_harmonics")
    points, weights = sphere.quadrature()
    functions = np.column_stack([sphere.harmonics(degree, points) for degree in range(5)])
    np.testing.assert_allclose(functions.T @ (weights[:, None] * functions), np.eye(25), atol=1e-12)

    hermite = load("figure6_hermite")
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    functions = np.column_stack([hermite.hermite(k, points) for k in range(4)])
    np.testing.assert_allclose(functions.T @ (weights[:, None] * functions), np.eye(10), atol=1e-12)
