"""Forces in a crystal: the example at fewer sizes, and what it takes for true."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from daskspectral.groups import SpaceGroup

PATH = Path(__file__).parents[2] / "examples" / "crystal_forces.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_energies_of_a_crystal_give_its_forces(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "SIZES", (60, 120))
    numbers = example.main(150, tmp_path)
    assert numbers["error of energies, space group"] <= 1e-4
    assert numbers["error of forces, space group"] <= 1e-4
    assert numbers["error of forces, translations alone"] >= 0.1
    assert numbers["largest change of forces under the group"] <= 1e-12
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_forces_are_minus_the_slope_of_energies_with_the_symmetry_of_diamond(example):
    rng = np.random.default_rng(0)
    x = rng.normal(scale=10, size=(40, 3))
    energy, force = example.energies_and_forces(x)
    for axis in np.eye(3):
        ends = [example.energies_and_forces(x + step * axis)[0] for step in (1e-5, -1e-5)]
        np.testing.assert_allclose(force @ axis, (ends[1] - ends[0]) / 2e-5, atol=1e-6)
    group = SpaceGroup.by_number(example.CUBE, example.NUMBER)
    for g in group.generators:
        there, turned = example.energies_and_forces(g(x))
        np.testing.assert_allclose(there, energy, atol=1e-9)
        np.testing.assert_allclose(turned @ g.matrix, force, atol=1e-9)
