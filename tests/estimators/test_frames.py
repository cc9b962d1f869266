"""Estimators among scikit-learn's tools: data frames in and out, names of columns, pipelines, searches, routing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
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
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.kernels import Gaussian
from daskspectral.operators import Cross, Transfer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
SLOPES = np.column_stack([np.cos(X[:, 0]), np.ones(150), np.zeros(150)])
CLASSES = np.where(Y > 0, "high", "low")
W = RNG.integers(0, 4, 150).astype(float)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(150)])
FRAMES = {
    "pandas": FRAME,
    "pandas, nullable": FRAME.convert_dtypes(),
    "pandas, Arrow": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas(FRAME),
    "Arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
    "Arrow, one batch": pa.RecordBatch.from_pandas(FRAME, preserve_index=False),
}


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20, n_components=4, random_state=0, **options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(Gaussian(1.0), n_landmarks=20, alpha=1e-3, random_state=0, **options)


def invariant() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(n_eigenfunctions=40, alpha=1e-6)


TRANSFORMERS = {
    "spectral": spectral(),
    "diffusion": dsp.DiffusionMap(random_state=0),
    "kernel": dsp.KernelEmbedding(random_state=0),
    "graph": dsp.GraphLaplacian(Gaussian(1.0), Gaussian(1.0), n_landmarks=10, n_components=3, random_state=0),
    "sdp": dsp.SDPEmbedding(n_components=2, random_state=0),
}
PREDICTORS = {
    "hermite": (hermite(), Y),
    "invariant": (invariant(), Y),
    "sobolev": (dsp.SobolevRidge(n_eigenfunctions=60), Y),
    "classes": (dsp.InvariantClassifier(n_eigenfunctions=20, alpha=1e-3, folds=None), CLASSES),
}
transformers = pytest.mark.parametrize("estimator", TRANSFORMERS.values(), ids=TRANSFORMERS.keys())
predictors = pytest.mark.parametrize(("estimator", "y"), PREDICTORS.values(), ids=PREDICTORS.keys())


@pytest.fixture
def routed() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# -- data frames in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@transformers
def test_a_frame_is_its_matrix(estimator: Any, frame: Any) -> None:
    found, wanted = clone(estimator).fit(frame), clone(estimator).fit(X)
    assert found.feature_names_in_.tolist() == NAMES
    assert found.n_features_in_ == 3
    assert not hasattr(wanted, "feature_names_in_")
    np.testing.assert_array_equal(found.transform(frame), wanted.transform(X))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@predictors
def test_predictions_from_a_frame(estimator: Any, y: Any, frame: Any) -> None:
    column = pd.Series(y).convert_dtypes(dtype_backend="pyarrow")
    found, wanted = clone(estimator).fit(frame, column), clone(estimator).fit(X, y)
    np.testing.assert_array_equal(found.predict(frame), wanted.predict(X))
    assert found.score(frame, pl.Series(y)) == wanted.score(X, y)
    assert found.feature_names_in_.tolist() == NAMES


def test_fields_come_as_columns_too() -> None:
    slopes = pl.DataFrame(SLOPES, schema=NAMES)
    found = hermite().fit(FRAME, FRAME["a"], slopes, sample_weight=pd.Series(W, dtype="Int64"))
    wanted = hermite().fit(X, X[:, 0], SLOPES, sample_weight=W)
    np.testing.assert_array_equal(found.predict(FRAME), wanted.predict(X))
    both = hermite().fit(FRAME, FRAME[["a", "b"]])
    assert both.predict(FRAME).shape == (150, 2)
    np.testing.assert_array_equal(spectral(landmarks=FRAME[:20]).fit(X).transform(X).shape, (150, 4))


def test_names_are_checked_and_forgotten() -> None:
    model = spectral().fit(FRAME)
    with pytest.raises(ValueError, match=r"feature names should match.*\n.*must be in the same order"):
        model.transform(FRAME[["b", "a", "c"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- d\n.*now missing:\n- c"):
        model.score(FRAME.rename(columns={"c": "d"}))
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but SpectralDecomposition was fitted with"
    ):
        model.transform(X)
    with pytest.raises(
        ValueError, match="X has 2 features, but SpectralDecomposition is expecting 3 features as input"
    ):
        model.transform(da.from_array(X[:, :2]))
    longer = pd.concat([FRAME, FRAME])
    with pytest.raises(ValueError, match="must be in the same order"):
        model.update(longer[["b", "a", "c"]])
    assert model.update(longer).moments_.count == 300
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(model.fit(X), "feature_names_in_")
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        spectral().fit(FRAME.rename(columns={"a": 0}))
    assert not hasattr(spectral().fit(pd.DataFrame(X)), "feature_names_in_")


def test_columns_of_the_same_name_are_refused() -> None:
    model = spectral().fit(FRAME)
    table = pa.table([X[:, 0], X[:, 1], X[:, 2]], names=["a", "b", "a"])
    for same in (FRAME.set_axis(["a", "b", "a"], axis=1), table):
        for call in (model.transform, spectral().fit, dsp.DiffusionMap(2.0).fit):
            with pytest.raises(ValueError, match="several columns of X are named 'a', and names tell columns apart"):
                call(same)


def test_names_of_views_and_trajectories() -> None:
    other = FRAME.rename(columns=str.upper)
    pair = dsp.SpectralDecomposition(Cross(), Gaussian(1.0), n_landmarks=20, n_components=3).fit((FRAME, other))
    assert pair.feature_names_in_.tolist() == NAMES
    assert pair.transform(FRAME).shape == pair.transform_right(other).shape == (150, 3)
    lagged = dsp.SpectralDecomposition(Transfer(1), Gaussian(1.0), n_landmarks=20, n_components=3)
    assert lagged.fit([FRAME, FRAME]).feature_names_in_.tolist() == NAMES
    assert np.isfinite(lagged.score([FRAME, FRAME]))
    with pytest.raises(ValueError, match="The feature names should match"):
        lagged.fit([FRAME, other])


@pytest.mark.parametrize("name", ["spectral", "diffusion", "sdp"])
def test_names_are_saved_copied_and_pickled(name: str, tmp_path: Path) -> None:
    model = clone(TRANSFORMERS[name]).fit(FRAME)
    dsp.save(model, tmp_path / "model.zarr")
    for again in (dsp.load(tmp_path / "model.zarr"), pickle.loads(pickle.dumps(model))):
        assert again.feature_names_in_.dtype == object
        assert again.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(again.transform(FRAME), model.transform(FRAME))
    plain = clone(TRANSFORMERS[name]).fit(X)
    dsp.save(plain, tmp_path / "plain.zarr")
    assert not hasattr(dsp.load(tmp_path / "plain.zarr"), "feature_names_in_")


# -- data frames out ---------------------------------------------------------------------------------------------------


@transformers
def test_frames_come_out(estimator: Any) -> None:
    model = clone(estimator).fit(FRAME)
    values = model.transform(FRAME)
    names = [f"{type(estimator).__name__.lower()}{i}" for i in range(values.shape[1])]
    assert model.get_feature_names_out().tolist() == names
    found = model.set_output(transform="pandas").transform(FRAME)
    pd.testing.assert_frame_equal(found, pd.DataFrame(values, index=FRAME.index, columns=names))
    again = model.set_output(transform="polars").transform(FRAMES["polars"])
    assert again.columns == names
    np.testing.assert_array_equal(again.to_numpy(), values)


@transformers
@pytest.mark.parametrize("wanted", ["pandas", "polars"])
def test_no_frame_of_rows_that_are_not_in_memory(estimator: Any, wanted: str, tmp_path: Path) -> None:
    model = clone(estimator).fit(X).set_output(transform=wanted)
    stored = zarr.create_array(tmp_path / "x.zarr", data=X)
    for rows in (da.from_array(X), xr.DataArray(X).chunk({"dim_0": 50}), stored, tmp_path / "x.zarr"):
        with pytest.raises(ValueError, match=rf"set_output\(transform='{wanted}'\) .* is read lazily: take"):
            model.transform(rows)
    with pytest.raises(ValueError, match="out writes to a file"):
        model.transform(X, out=tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()
    found = model.transform(xr.DataArray(X))
    assert type(found).__module__.startswith(wanted)
    default = model.set_output(transform="default")
    np.testing.assert_array_equal(found, default.transform(X))
    assert isinstance(default.transform(da.from_array(X)), da.Array)
    with sklearn.config_context(transform_output=wanted), pytest.raises(ValueError, match="is read lazily"):
        spectral().fit_transform(da.from_array(X))


def test_attributes_stay_arrays() -> None:
    holed = FRAME.copy()
    holed.iloc[3, 0] = np.nan
    model = dsp.SDPEmbedding(random_state=0).set_output(transform="pandas").fit(holed, on_invalid="skip")
    assert isinstance(model.embedding_, np.ndarray)
    assert np.isnan(model.embedding_).any(axis=1).sum() == 1


def test_coordinates_of_atoms() -> None:
    positions = pd.DataFrame(RNG.normal(size=(40, 9)), columns=[f"{axis}{i}" for i in range(3) for axis in "xyz"])
    model = dsp.JacobiCoordinates().set_output(transform="pandas")
    found = model.fit_transform(positions)
    assert found.columns.tolist() == [f"jacobicoordinates{i}" for i in range(7)]
    assert model.group_ == dsp.JacobiCoordinates([1, 1, 1]).fit(positions).group_
    model.set_output(transform="default")
    with pytest.raises(ValueError, match="X has 6 features, but JacobiCoordinates is expecting 9 features"):
        model.transform(da.from_array(positions.to_numpy()[:, :6]))
    with pytest.raises(ValueError, match="X has 7 columns; x, y, z of one atom"):
        clone(model).fit(positions.iloc[:, :7])


# -- compositions ------------------------------------------------------------------------------------------------------


def test_pipelines_unions_and_columns() -> None:
    pipe = make_pipeline(StandardScaler(), spectral(), Ridge()).set_output(transform="pandas").fit(FRAME, Y)
    expected = spectral().fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(pipe.predict(FRAME), Ridge().fit(expected, Y).predict(expected), atol=1e-8)
    assert pipe[:-1].get_feature_names_out().tolist() == [f"spectraldecomposition{i}" for i in range(4)]
    union = FeatureUnion([("s", spectral()), ("d", dsp.DiffusionMap(n_components=2))]).set_output(transform="polars")
    assert union.fit_transform(FRAMES["polars"]).columns == [
        *(f"s__spectraldecomposition{i}" for i in range(4)),
        "d__diffusionmap0",
        "d__diffusionmap1",
    ]
    parts = ColumnTransformer([("s", spectral(), ["c", "a"])], remainder="passthrough").fit(FRAME)
    assert parts.named_transformers_["s"].feature_names_in_.tolist() == ["c", "a"]
    np.testing.assert_array_equal(parts.transform(FRAME)[:, :4], spectral().fit_transform(X[:, [2, 0]]))


@predictors
def test_cross_validation(estimator: Any, y: Any) -> None:
    splits = KFold(3, shuffle=True, random_state=0)
    found = cross_val_score(estimator, FRAME, y, cv=splits)
    expected = [clone(estimator).fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits.split(X)]
    np.testing.assert_array_equal(found, expected)
    assert found.mean() > 0.8


def test_grid_search() -> None:
    grid = {"kernel__scale": [0.05, 1.0], "alpha": [1e-4, 1.0]}
    search = GridSearchCV(hermite(), grid, cv=3).fit(FRAME, Y)
    assert search.best_params_ == {"kernel__scale": 1.0, "alpha": 1e-4}
    assert search.feature_names_in_.tolist() == NAMES
    pipe = make_pipeline(StandardScaler(), spectral(), Ridge(1e-6))
    search = GridSearchCV(pipe, {"spectraldecomposition__n_components": [2, 8]}, cv=3).fit(FRAME, Y)
    assert search.best_params_ == {"spectraldecomposition__n_components": 8}


def test_routing_of_weights_and_gradients(routed: None) -> None:
    model = hermite().set_fit_request(sample_weight=True, gradients=True).set_score_request(sample_weight=True)
    pipe = make_pipeline(StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False), model)
    pipe.fit(X, Y, sample_weight=W, gradients=SLOPES)
    alone = hermite().fit(X, Y, SLOPES, sample_weight=W)
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(X))
    assert pipe.score(X, Y, sample_weight=W) == alone.score(X, Y, W)
    found = cross_val_score(model, X, Y, cv=3, params={"sample_weight": W, "gradients": SLOPES})
    expected = []
    for a, b in KFold(3).split(X):
        part = hermite().fit(X[a], Y[a], SLOPES[a], sample_weight=W[a])
        expected.append(part.score(X[b], Y[b], W[b]))
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        cross_val_score(hermite(), X, Y, params={"sample_weight": W})


@pytest.mark.parametrize("name", ["spectral", "graph"])
def test_weights_are_routed_to_transformers(name: str, routed: None) -> None:
    estimator = TRANSFORMERS[name]
    asked = clone(estimator).set_fit_request(sample_weight=True)
    pipe = make_pipeline(asked, Ridge().set_fit_request(sample_weight=False)).fit(X, Y, sample_weight=W)
    np.testing.assert_array_equal(pipe[0].transform(X), clone(estimator).fit(X, sample_weight=W).transform(X))
    with pytest.raises(TypeError, match="Unexpected args"):
        dsp.DiffusionMap().set_fit_request(sample_weight=True)


def test_warnings_point_at_the_line_that_called_scikit_learn() -> None:
    x = pd.DataFrame(RNG.normal(size=(20, 8)))
    pipe = make_pipeline(StandardScaler(), dsp.InvariantRegressor())
    with pytest.warns(dsp.FitWarning, match="few for the 9 functions") as caught:
        cross_val_score(make_pipeline(pipe), x, Y[:20], cv=2)
    assert {warning.filename for warning in caught} == {__file__}


def test_representations() -> None:
    for estimator in (*TRANSFORMERS.values(), *(model for model, _ in PREDICTORS.values()), spectral(landmarks=X[:9])):
        assert type(estimator).__name__ in repr(estimator)
        assert type(estimator).__name__ in estimator._repr_html_()
    assert "Gaussian(scale=1.0)" in make_pipeline(StandardScaler(), spectral())._repr_html_()
    assert "landmarks=array([[" in repr(spectral(landmarks=X[:9]))
    assert "landmarks" not in repr(dsp.DiffusionMap())
