"""Models and moments saved and loaded, bit for bit."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.exceptions import NotFittedError

import daskspectral as dsp
from daskspectral.kernels import Gaussian, Matern, Polynomial, Radial
from tests.common import assert_same_bits
from tests.estimators.common import X, make


def saved(estimator: Any, path: Path) -> Any:
    dsp.save(estimator, path)
    return dsp.load(path)


VARIANTS: dict[str, dict[str, Any]] = {
    "standardized": {"standardize": True, "columns": np.array([-1, 0])},
    "median": {"kernel": Gaussian("median") + Matern(2.5, "median"), "landmarks": "kmeans++"},
    "sphere": {"operator": dsp.operators.Laplacian(dsp.manifolds.Sphere(3)), "kernel": Polynomial(2)},
    "float32": {"dtype": "float32", "random_state": np.int64(3), "n_components": np.int32(4)},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_save_and_load_bit_for_bit(variant: str, tmp_path: Path) -> None:
    x = X / np.linalg.norm(X, axis=1, keepdims=True) if variant == "sphere" else X
    estimator = make(**VARIANTS[variant]).fit(x)
    again = saved(estimator, tmp_path / "m.zarr")
    assert_same_bits(again.moments_, estimator.moments_)
    for name in ("eigenvalues_", "coefficients_", "residuals_", "support_", "rank_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(estimator, name))
    assert repr(again.kernel_) == repr(estimator.kernel_)
    np.testing.assert_array_equal(again.transform(x), estimator.transform(x))
    np.testing.assert_array_equal(again.fit(x).eigenvalues_, estimator.eigenvalues_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(x), estimator.transform(x))


def test_what_cannot_be_saved_or_loaded(tmp_path: Path) -> None:
    local = make(kernel=Radial(lambda s: np.exp(-s), [lambda s: -np.exp(-s)])).fit(X)
    for model, error, match in (
        (make(), NotFittedError, "not fitted"),
        (3, TypeError, r"save\(\) takes a fitted estimator or moments, not int"),
        (local, ValueError, "cannot be saved: only functions and classes at the top level"),
    ):
        with pytest.raises(error, match=match):
            dsp.save(model, tmp_path / "m.zarr")
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError, match=r"there is no saved model at .*m.zarr"):
        dsp.load(tmp_path / "m.zarr")
    zarr.create_array(tmp_path / "x.zarr", data=X)
    with pytest.raises(ValueError, match=r"x.zarr is an array, not a model or moments"):
        dsp.load(tmp_path / "x.zarr")
