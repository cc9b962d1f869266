"""Figure 4: the example at the paper's size gives its numbers and its picture."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "figure4_hermite_regression.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_make_a_constant_easier(example, tmp_path):
    numbers = example.main(1000, tmp_path)
    assert 2e-5 <= numbers["error of plain regression"] <= 3e-4
    assert 3 <= numbers["plain over Hermite"] <= 30
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]
