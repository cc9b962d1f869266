"""Estimators among scikit-learn's tools: data frames in and out, routing of weights, pipelines."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import xarray as xr
import zarr
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
SLOPES = np.column_stack([np.cos(X[:, 0]), np.ones(150), np.zeros(150)])
W = RNG.integers(0, 4, 150).astype(float)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(150)])
FRAMES = {
    "pandas, nullable": FRAME.convert_dtypes(),
    "pandas, Arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "Arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
}


def spectral(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    given = {"kernel": Gaussian(1.0), "n_landmarks": 20, "n_components": 4, "folds": None, "random_state": 0}
    return dsp.SpectralDecomposition(operator, **given | options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(Gaussian(1.0), n_landmarks=20, alpha=1e-3, random_state=0, **options)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_frame_is_its_matrix(frame: Any) -> None:
    model = spectral().fit(frame)
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.transform(frame), spectral().fit(X).transform(X))
    column = pd.Series(Y).convert_dtypes(dtype_backend="pyarrow")
    found, wanted = hermite().fit(frame, column), hermite().fit(X, Y)
    np.testing.assert_array_equal(found.predict(frame), wanted.predict(X))
    assert found.score(frame, pl.Series(Y)) == wanted.score(X, Y)


def test_no_frame_of_rows_that_are_not_in_memory(tmp_path: Path) -> None:
    model = spectral().fit(X).set_output(transform="polars")
    stored = zarr.create_array(tmp_path / "x.zarr", data=X)
    for rows in (da.from_array(X), xr.DataArray(X).chunk({"dim_0": 50}), stored, tmp_path / "x.zarr"):
        with pytest.raises(ValueError, match=r"set_output\(transform='polars'\) .* is read"):
            model.transform(rows)
    with pytest.raises(ValueError, match="out writes to a file"):
        model.transform(X, out=tmp_path / "out.zarr")
    assert isinstance(model.transform(xr.DataArray(X)), pl.DataFrame)


# -- compositions ------------------------------------------------------------------------------------------------------


def test_routing_of_weights_and_gradients() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = hermite().set_fit_request(sample_weight=True, gradients=True).set_score_request(sample_weight=True)
        found = cross_val_score(model, X, Y, cv=3, params={"sample_weight": W, "gradients": SLOPES})
        asked = spectral().set_fit_request(sample_weight=True)
        pipe = make_pipeline(asked, Ridge().set_fit_request(sample_weight=False)).fit(X, Y, sample_weight=W)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(hermite(), X, Y, params={"sample_weight": W})
    for score, (a, b) in zip(found, KFold(3).split(X), strict=True):
        assert score == hermite().fit(X[a], Y[a], SLOPES[a], sample_weight=W[a]).score(X[b], Y[b], W[b])
    np.testing.assert_array_equal(pipe[0].transform(X), spectral().fit(X, sample_weight=W).transform(X))


def test_warnings_point_at_the_line_that_called_scikit_learn() -> None:
    pipe = make_pipeline(StandardScaler(), dsp.InvariantRegressor())
    with pytest.warns(dsp.FitWarning, match="few for the 9 functions") as caught:
        cross_val_score(make_pipeline(pipe), pd.DataFrame(RNG.normal(size=(20, 8))), Y[:20], cv=2)
    assert {warning.filename for warning in caught} == {__file__}
