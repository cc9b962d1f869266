"""The molecule: the example's bounds at fewer configurations, and its gradient."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "molecule.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
def test_the_potential_of_four_atoms(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "PEER", 300)
    numbers = example.main(2000, tmp_path)
    assert numbers["Morse: relative RMSE"] <= 0.02
    assert numbers["Morse: largest change under a rotation and a permutation"] <= 1e-8
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_its_forces_are_the_slope_of_its_energies(example):
    x = example.configurations(5, np.random.default_rng(1))
    step = 1e-6 * np.random.default_rng(2).normal(size=x.shape)
    change = example.morse(x + step) - example.morse(x - step)
    np.testing.assert_allclose(change, 2 * np.sum(example.slope(x) * step, axis=1), rtol=1e-6, atol=1e-15)
