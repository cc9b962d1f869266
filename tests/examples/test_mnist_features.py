"""Features of images: the example on scikit-learn's digits, enlarged so that a pixel is narrower than a stroke."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

PATH = Path(__file__).parents[2] / "examples" / "mnist_features.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    small = load_digits()
    images = ndimage.zoom(small.images, (1, 3, 3), order=1)
    np.savez(path, X=np.round(images / 16 * 255).astype(np.uint8).reshape(len(images), -1), y=small.target)
    return path


def test_invariant_features_tell_digits_apart_with_fewer_errors(example, digits, tmp_path):
    study = example.Study(sizes=(), landmarks=200)
    numbers = example.main(digits, 200, tmp_path, components=32, study=study)
    assert numbers["accuracy, augmentation"] >= 0.92
    assert numbers["errors of laplacian over errors of augmentation"] >= 1.1
    assert numbers["errors of pca over errors of augmentation"] >= 1.1
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]


def test_the_features_change_least_under_shifts(example, digits):
    images, _ = example.load(digits)
    seen, held_out = images[:800], images[800:1100]
    change = {}
    for name, (features, *_) in example.learn(seen, example.Study(landmarks=100), 8).items():
        values = features(held_out)
        shifted = features(example.moved(held_out, 0, 1))
        change[name] = np.median(np.mean((values - shifted) ** 2, axis=0) / values.var(axis=0))
    assert change["augmentation"] <= 0.5 * min(change["laplacian"], change["pca"]), change


@pytest.mark.parametrize("move", [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (2, -1)])
def test_images_move(example, move):
    images = np.random.default_rng(0).random((3, 25))
    expected = [ndimage.shift(image.reshape(5, 5), move, order=0).ravel() for image in images]
    np.testing.assert_array_equal(example.moved(images, *move), expected)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((4, 9), np.uint8)}, r"must hold the arrays X .*'y'.* missing"),
        ({"X": np.zeros((4, 8), np.uint8), "y": np.zeros(4)}, r"X is \(4, 8\)"),
        ({"X": np.zeros((4, 9), np.uint8), "y": np.zeros(3)}, r"y \(3,\)"),
        ({"X": np.zeros((4, 9)), "y": np.zeros(4)}, r"it is float64"),
    ],
)
def test_a_file_that_does_not_fit_is_said(example, tmp_path, arrays, message):
    np.savez(tmp_path / "images.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        example.main(tmp_path / "images.npz", out=tmp_path)


def test_more_labels_than_images_are_said(example, digits, tmp_path):
    with pytest.raises(ValueError, match=r"between 100 and the 1437 images"):
        example.main(digits, 5000, out=tmp_path)
