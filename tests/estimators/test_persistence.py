"""Models and moments saved and loaded, bit for bit; data frames in and out, routing of weights, pipelines."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.operators import Laplacian
from tests.common import assert_same_bits, doubtful
from tests.estimators.common import X, make


def saved(estimator: Any, path: Path) -> Any:
    dsp.save(estimator, path)
    return dsp.load(path)


ON_SPHERE = X / np.linalg.norm(X, axis=1, keepdims=True)
VARIANTS: dict[str, tuple[dict[str, Any], Any]] = {
    "standardized": ({}, dsp.Rows(X, standardize=True, columns=np.array([-1, 0]))),
    "median": ({"basis": Landmarks(Gaussian("median") + Matern(2.5, "median"), 20)}, X),
    "sphere": ({"operator": Laplacian(Sphere(3)), "basis": Landmarks(Polynomial(2), 20)}, ON_SPHERE),
    "float32": ({"dtype": "float32", "random_state": np.int64(3), "n_components": np.int32(4)}, X),
}


@doubtful
@pytest.mark.parametrize("variant", VARIANTS)
def test_save_and_load_bit_for_bit(variant: str, tmp_path: Path) -> None:
    options, rows = VARIANTS[variant]
    estimator, x = make(**options).fit(rows), dsp.Rows.of(rows).data
    again = saved(estimator, tmp_path / "m.zarr")
    assert_same_bits(again.moments_, estimator.moments_)
    for name in ("eigenvalues_", "coefficients_", "residuals_", "support_", "rank_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(estimator, name))
    assert repr(again.kernel_) == repr(estimator.kernel_)
    np.testing.assert_array_equal(again.transform(x), estimator.transform(x))
    np.testing.assert_array_equal(again.fit(rows).eigenvalues_, estimator.eigenvalues_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(x), estimator.transform(x))


RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(150, 3))
Y = np.sin(TABLE[:, 0]) + TABLE[:, 1]
SLOPES = np.column_stack([np.cos(TABLE[:, 0]), np.ones(150), np.zeros(150)])
W = RNG.integers(0, 4, 150).astype(float)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(TABLE, columns=NAMES, index=[f"row {i}" for i in range(150)])
FRAMES = {
    "pandas, nullable": FRAME.convert_dtypes(),
    "pandas, Arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
}


def spectral(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    return make(operator, **{"n_components": 4, "folds": None} | options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(Landmarks(Gaussian(1.0), 20), alpha=1e-3, random_state=0, **options)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_frame_is_its_matrix(frame: Any) -> None:
    model = spectral().fit(frame)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.transform(frame), spectral().fit(TABLE).transform(TABLE))
    column = pd.Series(Y).convert_dtypes(dtype_backend="pyarrow")
    found, wanted = hermite().fit(frame, column), hermite().fit(TABLE, Y)
    np.testing.assert_array_equal(found.predict(frame), wanted.predict(TABLE))
    assert found.score(frame, pl.Series(Y)) == wanted.score(TABLE, Y)


# -- compositions ------------------------------------------------------------------------------------------------------


def test_routing_of_weights_and_gradients() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = hermite().set_fit_request(sample_weight=True, gradients=True).set_score_request(sample_weight=True)
        found = cross_val_score(model, TABLE, Y, cv=3, params={"sample_weight": W, "gradients": SLOPES})
        asked = spectral().set_fit_request(sample_weight=True)
        pipe = make_pipeline(asked, Ridge().set_fit_request(sample_weight=False)).fit(TABLE, Y, sample_weight=W)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(hermite(), TABLE, Y, params={"sample_weight": W})
    for score, (a, b) in zip(found, KFold(3).split(TABLE), strict=True):
        assert score == hermite().fit(TABLE[a], Y[a], SLOPES[a], sample_weight=W[a]).score(TABLE[b], Y[b], W[b])
    np.testing.assert_array_equal(pipe[0].transform(TABLE), spectral().fit(TABLE, sample_weight=W).transform(TABLE))


def test_warnings_point_at_the_line_that_called_scikit_learn_and_there_are_none_in_a_search() -> None:
    pipe, rows = make_pipeline(StandardScaler(), dsp.InvariantRegressor()), pd.DataFrame(RNG.normal(size=(20, 8)))
    with pytest.warns(dsp.FitWarning, match="few for the 9 functions") as caught:
        make_pipeline(pipe).fit(rows[:10], Y[:10])
    assert {warning.filename for warning in caught} == {__file__}
    cross_val_score(make_pipeline(pipe), rows, Y[:20], cv=2)  # warnings are errors


def test_a_fit_has_one_warning_of_doubt() -> None:
    x = np.random.default_rng(0).laplace(size=(2000, 2))
    x[::400] = 100.0
    lattice = dsp.basis.FourierLattice(6, kernel=dsp.kernels.Matern(1.5, 1.0))
    model = dsp.SpectralDecomposition(basis=lattice, n_components=3)
    with pytest.warns(dsp.TrustWarning, match=r"outliers of column 0.*\. \d more in doubts_$") as caught:
        model.fit(x)
    assert len(caught) == 1
    assert len([doubt for doubt in model.doubts_ if doubt.startswith("TrustWarning: ")]) > 1
