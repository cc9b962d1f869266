"""Clusters of pulsars, on points drawn at random in place of the survey's."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "pulsar_clusters.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_slowest_function_tells_the_classes_apart(example, tmp_path):
    numbers = example.main(out=tmp_path, n=1500)
    assert numbers["share of pulsars"] == pytest.approx(0.1)
    assert numbers["adjusted Rand index, slowest eigenfunction"] >= 0.9
    assert numbers["area under the ROC curve, slowest eigenfunction"] >= 0.99
    assert numbers["lower end of its interval"] <= numbers["eigenvalue"] <= numbers["upper end"]
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_a_file_of_data_is_read(example, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 5 == 0
    x = rng.standard_normal((600, 8)) + 6 * y[:, None]
    np.savez(tmp_path / "data.npz", X=x, y=y.astype(int))
    numbers = example.main(tmp_path / "data.npz", tmp_path / "out")
    assert numbers["rows"] == 600
    assert numbers["adjusted Rand index, slowest eigenfunction"] == 1


def test_the_smaller_cluster_counts_as_pulsars(example):
    np.testing.assert_array_equal(example.rarer(np.array([1, 1, 0])), [0, 0, 1])
    np.testing.assert_array_equal(example.rarer(np.array([1, 0, 0])), [1, 0, 0])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((4, 8))}, r"must hold the arrays X .*'y'.* missing"),
        ({"X": np.zeros((4, 5)), "y": np.array([0, 1, 0, 1])}, "6 columns or more"),
        ({"X": np.zeros((4, 8)), "y": np.array([1, 2, 1, 2])}, "values 0 and 1"),
    ],
)
def test_a_file_that_does_not_fit_is_said(example, tmp_path, arrays, message):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        example.main(tmp_path / "data.npz", tmp_path)
