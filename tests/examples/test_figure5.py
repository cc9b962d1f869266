"""Figure 5: a short training, which goes on from the state that it keeps, and what it is measured by."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    spec = importlib.util.spec_from_file_location(
        "figure5_network_harmonics", EXAMPLES / "figure5_network_harmonics.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEPT", 100)
    monkeypatch.setattr(module, "SMALL", 1.0)
    return module


def test_a_short_training_finds_the_first_harmonics(example, tmp_path, capsys):
    numbers = example.main(300, tmp_path, hidden=(100, 100))
    assert numbers["share outside degree 1, Galerkin"] <= 0.05
    assert numbers["share outside degree 2, hidden layer"] <= 0.05
    errors = [numbers[f"error (21) of 15 eigenvalues, {way}"] for way in ("hidden layer", "Galerkin", "components")]
    assert errors == sorted(errors)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([example.PICTURE, example.STATE])
    assert capsys.readouterr().out.count("batch ") == 3


def test_a_stopped_training_goes_on_to_the_same_bits(example, tmp_path, monkeypatch):
    start = example.NeuralBasis((8, 8), features="outputs").started(example.sphere(1000, 0), example.OUTPUTS, seed=0)
    whole = example.train(start, 200, tmp_path / "whole.npz")
    replace, kept = Path.replace, []

    def stopping(self, target):
        replace(self, target)
        kept.append(target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping)
        with pytest.raises(KeyboardInterrupt):
            example.train(start, 200, tmp_path / "state.npz")
    again = example.train(start, 200, tmp_path / "state.npz")
    for one, other in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="is of a run of 200 steps"):
        example.train(start, 300, tmp_path / "state.npz")


def test_the_harmonics_themselves_have_no_error(example):
    """Measured on the true eigenspaces, in place of a network."""
    from daskspectral import SpectralDecomposition
    from daskspectral.basis import HarmonicBasis

    points, weights = example.quadrature()
    model = SpectralDecomposition(
        example.OPERATOR, basis=HarmonicBasis(example.Sphere(3), 16), n_components=16, folds=None, solver="cut"
    ).fit(points, sample_weight=weights * len(points))
    network = example.NeuralBasis((8, 8), features="outputs").started(example.sphere(1000, 0), 16, seed=0)
    numbers = example.measure(network, model, model)
    assert numbers["error (21) of 15 eigenvalues, Galerkin"] < 1e-10
    assert max(numbers[f"share outside degree {k}, Galerkin"] for k in (1, 2, 3)) < 1e-10
    assert numbers["error (21) of 15 eigenvalues, components"] > 0.1
