"""The dipole: its numbers at fewer rows, and the symmetry of the model that it learns."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "dipole.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_symmetry_is_worth_many_rows(example, capsys):
    numbers = example.main(200)
    found, plain, kernel = (
        numbers[f"relative error, {k}"] for k in ("equivariant", "without the group", "kernel ridge")
    )
    assert found < 0.005
    assert 5 * found < min(plain, kernel)
    assert numbers["equivariant functions"] == 10
    assert numbers["largest |f(R x) - R f(x)|"] < 1e-10
    example.report(numbers)
    assert len(capsys.readouterr().out.splitlines()) == len(numbers)


def test_the_dipole_turns_with_the_molecule(example):
    rng = np.random.default_rng(1)
    x, turn = example.molecules(50, rng), np.linalg.qr(rng.standard_normal((3, 3)))[0]
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)
    y = example.dipole(x)
    np.testing.assert_allclose(example.dipole(x @ np.kron(np.eye(2), turn).T), y @ turn.T, atol=1e-12)
    np.testing.assert_allclose(example.dipole(x[:, [3, 4, 5, 0, 1, 2]]), y, atol=1e-12)
