"""Estimators of labelled data: the same as of the rows and columns stacked by hand, with labels given back."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import daskspectral as dsp
from daskspectral.data.layout import Layout

TIMES, LAT, LON = 120, np.array([-60.0, 0.0, 40.0]), np.array([0.0, 90.0])
rng = np.random.default_rng(0)
VALUES = (rng.standard_normal((TIMES, 2)) @ rng.standard_normal((2, 6))).reshape(TIMES, 3, 2)
VALUES += 0.3 * rng.standard_normal(VALUES.shape)
ROOTS = np.repeat(np.sqrt(np.cos(np.deg2rad(LAT))), 2)
COSINES = np.broadcast_to(np.cos(np.deg2rad(LAT))[None, :, None], VALUES.shape).ravel()

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")


def field(values: np.ndarray = VALUES) -> xr.DataArray:
    coords = {
        "time": pd.date_range("2001-01-01", periods=len(values), name="time"),
        "lat": ("lat", LAT, {"units": "degrees_north"}),
        "lon": LON,
    }
    return xr.DataArray(values, dims=("time", "lat", "lon"), coords=coords, name="t2m", attrs={"units": "K"})


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    given = {"kernel": dsp.kernels.Gaussian(2.0), "n_landmarks": 20, "n_components": 3, "random_state": 0}
    return dsp.SpectralDecomposition(**{**given, **options})


ESTIMATORS: dict[str, dsp.SpectralDecomposition | Any] = {
    "spectral": spectral(),
    "diffusion": dsp.DiffusionMap(4.0, n_components=2, random_state=0),
    "sdp": dsp.SDPEmbedding(4.0, random_state=0, max_passes=2000),
    "learned": dsp.KernelEmbedding(dsp.kernels.Matern(1.5, 3.0), regularization=1e-2),
    "graph": dsp.GraphLaplacian(n_components=3, n_landmarks=20, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_are_those_stacked_and_weighted_by_hand(name: str) -> None:
    by_hand = clone(ESTIMATORS[name]).fit(VALUES.reshape(TIMES, -1) * ROOTS)
    est = clone(ESTIMATORS[name]).set_params(sample_dims="time", latitude="lat").fit(field())
    wanted = by_hand.transform(VALUES.reshape(TIMES, -1) * ROOTS)
    for x in (field(), field().transpose("lon", "time", "lat"), field().to_dataset().chunk({"time": 50})):
        found = est.transform(x)
        assert found.dims == ("time", "component")
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
        pd.testing.assert_index_equal(found.indexes["time"], field().indexes["time"])
    assert isinstance(est.layout_, Layout)
    assert not hasattr(by_hand, "layout_")


def test_rows_of_all_dimensions_with_the_cosine_as_a_weight() -> None:
    by_hand = spectral(n_landmarks=10).fit(VALUES.reshape(-1, 1), sample_weight=COSINES)
    est = spectral(n_landmarks=10)
    for x in (field(), field().chunk({"time": 50, "lon": 1})):
        est.fit(x, sample_dims=("time", "lat", "lon"), latitude="lat")
        np.testing.assert_allclose(est.eigenvalues_, by_hand.eigenvalues_, rtol=1e-9, atol=1e-9)
        found = est.transform(x)
        assert found.dims == ("time", "lat", "lon", "component")
        wanted = by_hand.transform(VALUES.reshape(-1, 1)).reshape(*VALUES.shape, -1)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)
        given = np.random.default_rng(0).uniform(1, 2, VALUES.shape)
        weights = field(given)
        score = by_hand.score(VALUES.reshape(-1, 1), sample_weight=COSINES * given.ravel())
        np.testing.assert_allclose(est.score(x, sample_weight=weights), score, rtol=1e-9)


def test_land_and_missing_rows_are_dropped_and_restored(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[:, 0, 1] = np.nan
    values[7, 2, 0] = np.nan
    by_hand = spectral().fit(np.delete(values.reshape(TIMES, -1), 1, axis=1), on_invalid="skip")
    for x in (field(values), field(values).chunk({"time": 40})):
        est = spectral().fit(x, on_invalid="skip")
        np.testing.assert_allclose(est.eigenvalues_, by_hand.eigenvalues_, rtol=1e-9, atol=1e-9)
        assert est.moments_.skipped == 1
        found = np.asarray(est.transform(x, on_invalid="skip"))
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(found).any(axis=1)), [7])
        with pytest.raises(dsp.InvalidRowError, match="row 7"):
            np.asarray(est.transform(x))
        est.save(tmp_path / "m.zarr", overwrite=True)
        loaded = dsp.load(tmp_path / "m.zarr")
        np.testing.assert_array_equal(np.asarray(loaded.transform(x, on_invalid="skip")), found)
        assert loaded.layout_.names == est.layout_.names
    with pytest.raises(dsp.InvalidRowError, match="row 0") as caught:
        spectral().fit(field(values))
    assert "such as land" in caught.value.__notes__[-1]
    with pytest.raises(ValueError, match=r"no column of X has a number in any row"):
        spectral().fit(field(np.full_like(values, np.nan)), on_invalid="skip")


def target() -> xr.DataArray:
    y = xr.DataArray(VALUES.sum(axis=(1, 2)), dims="time", coords={"time": field().time}, name="flux")
    return y.assign_attrs(units="W m-2")


def test_a_regression_keeps_the_labels_of_its_target(tmp_path: Path) -> None:
    model = dsp.HermiteRegressor(dsp.kernels.Gaussian(3.0), n_landmarks=40, random_state=0, latitude="lat")
    by_hand = clone(model).set_params(latitude=None).fit(VALUES.reshape(TIMES, -1) * ROOTS, target().values)
    est = clone(model).fit(field(), target())
    found = est.predict(field().chunk({"time": 50}))
    np.testing.assert_allclose(found, by_hand.predict(VALUES.reshape(TIMES, -1) * ROOTS), rtol=1e-9)
    assert (found.name, found.attrs["units"], found.dims) == ("flux", "W m-2", ("time",))
    np.testing.assert_allclose(
        est.score(field(), target()), by_hand.score(VALUES.reshape(TIMES, -1) * ROOTS, target().values), rtol=1e-9
    )
    slopes = est.predict_gradient(field())
    assert slopes.dims == ("time", "lat", "lon")
    step = 1e-5 * field(np.eye(6)[3].reshape(1, 3, 2).repeat(TIMES, 0))
    change = (est.predict(field() + step) - est.predict(field() - step)) / 2e-5
    np.testing.assert_allclose(slopes[:, 1, 1], change, rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match=r"y and X do not align along 'time'"):
        est.fit(field(), target().assign_coords(time=np.arange(TIMES)))
    two = xr.concat([target(), 2 * target()], pd.Index(["north", "south"], name="station")).transpose("time", "station")
    found = clone(model).fit(field(), two).predict(field())
    assert found.dims == ("time", "station")
    assert found.station.values.tolist() == ["north", "south"]


def test_gradients_have_the_dimensions_of_the_field() -> None:
    slopes = field(np.cos(VALUES))
    y = field(np.sin(VALUES)).sum(("lat", "lon"))
    model = dsp.HermiteRegressor(dsp.kernels.Gaussian(3.0), n_landmarks=40, random_state=0)
    by_hand = clone(model).fit(VALUES.reshape(TIMES, -1) * ROOTS, y.values, slopes.values.reshape(TIMES, -1) / ROOTS)
    est = clone(model).fit(field(), y, slopes, sample_dims="time", latitude="lat")
    np.testing.assert_allclose(est.coef_, by_hand.coef_, rtol=1e-7)
    two = [xr.concat([part, -part], "station").transpose("lat", "time", ..., "station") for part in (slopes, slopes)]
    ys = xr.concat([y, -y], "station").transpose("time", "station")
    for chunks in (None, {"time": 50}):
        pair = two[0] if chunks is None else two[0].chunk(chunks)
        both = clone(model).fit(field(), ys, pair, sample_dims="time", latitude="lat")
        np.testing.assert_allclose(both.coef_, np.column_stack([est.coef_, -est.coef_]), rtol=1e-6)
    with pytest.raises(ValueError, match=r"gradients have the dimensions \('time', 'a', 'b'\)"):
        clone(model).fit(field(), y, slopes.rename(lat="a", lon="b"), sample_dims="time", latitude="lat")


def test_views_and_trajectories() -> None:
    other = field()[:, :2].rename(lat="y").drop_vars("y")
    cross = spectral(operator=dsp.operators.Cross())
    by_hand = clone(cross).fit((VALUES.reshape(TIMES, -1), VALUES[:, :2].reshape(TIMES, -1)))
    est = clone(cross).fit((field(), other))
    np.testing.assert_allclose(est.singular_values_, by_hand.singular_values_, rtol=1e-9)
    right = est.transform_right(other.transpose("lon", "y", "time"))
    np.testing.assert_allclose(right, by_hand.transform_right(VALUES[:, :2].reshape(TIMES, -1)), atol=1e-9)
    with pytest.raises(ValueError, match=r"X\[1\] and X do not align along 'time'"):
        clone(cross).fit((field(), other.assign_coords(time=np.arange(TIMES))))
    transfer = spectral(operator=dsp.operators.Transfer(2))
    halves = [field()[:70], field()[70:].transpose("lat", "time", "lon")]
    wanted = clone(transfer).fit([VALUES[:70].reshape(70, -1), VALUES[70:].reshape(50, -1)])
    found = clone(transfer).fit(halves, sample_dims="time")
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-9)
    assert found.transform(field()).dims == ("time", "component")


def test_rows_that_were_appended() -> None:
    est = spectral(sample_dims="time", latitude="lat").fit(field()[:80])
    est.update(field())
    by_hand = spectral().fit(VALUES[:80].reshape(80, -1) * ROOTS).update(VALUES.reshape(TIMES, -1) * ROOTS)
    np.testing.assert_allclose(est.eigenvalues_, by_hand.eigenvalues_, rtol=1e-9, atol=1e-9)
    assert est.transform(field()).dims == ("time", "component")
    assert est.fit(VALUES.reshape(TIMES, -1) if est.set_params(sample_dims=None, latitude=None) else 0)
    assert not hasattr(est, "layout_")


def test_parameters_travel_and_arguments_take_their_place() -> None:
    est = spectral(sample_dims=("time", "lat"), latitude="lat")
    assert clone(est).get_params()["sample_dims"] == ("time", "lat")
    found = make_pipeline(clone(est)).fit_transform(field())
    assert found.dims == ("time", "lat", "component")
    assert clone(est).fit(field(), sample_dims="time").transform(field()).dims == ("time", "component")
    assert dsp.DiffusionMap(4.0).fit_transform(field(), sample_dims="time").dims == ("time", "component")
    assert "sample_dims" in str(dsp.SpectralDecomposition.fit.__signature__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("samples", [("time",), ("time", "lat", "lon"), ("lon", "time")])
def test_results_are_groups_that_xarray_opens(samples: tuple[str, ...], tmp_path: Path) -> None:
    est = spectral(n_landmarks=5, n_components=2).fit(field(), sample_dims=samples)
    kept = est.transform(field())
    for x in (field(), field().chunk({"time": 50, "lat": 2})):
        est.transform(x, out=tmp_path / "z.zarr", overwrite=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = xr.open_zarr(tmp_path / "z.zarr")
        assert list(data.data_vars) == ["eigenfunction"]
        xr.testing.assert_allclose(data["eigenfunction"].compute(), kept, rtol=1e-9)
        assert data.lat.attrs == {"units": "degrees_north"} if "lat" in samples else True
        np.testing.assert_array_equal(data.eigenvalue_lower, est.eigenvalue_errors_[:, 0])
        assert data.attrs["estimator"] == "SpectralDecomposition"
        assert data.attrs["daskspectral_version"] == dsp.__version__
        assert {"parameters", "data_fingerprint"} <= set(data.attrs)
    group = zarr.open_group(tmp_path / "z.zarr", mode="r")
    assert group.metadata.consolidated_metadata is not None
    again = spectral(n_landmarks=5, n_components=2).fit(tmp_path / "z.zarr", sample_dims=samples)  # picks the array
    assert again.n_features_in_ == 2
    assert again.transform(tmp_path / "z.zarr").dims == (*samples, "component")


def test_a_wide_field_is_written_in_pieces_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskspectral.data.writer._CHUNK_BYTES", 200)
    est = spectral(n_landmarks=5, n_components=2).fit(field(), sample_dims=("time", "lat", "lon"))
    est.transform(field(), out=tmp_path / "z.zarr")
    array = zarr.open_group(tmp_path / "z.zarr", mode="r")["eigenfunction"]
    assert array.chunks[-1] == 2
    assert np.prod(array.chunks[:3]) < VALUES.size
    np.testing.assert_allclose(xr.open_zarr(tmp_path / "z.zarr").eigenfunction, est.transform(field()), rtol=1e-9)


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[100] = np.nan
    est = spectral().fit(field())
    with pytest.raises(dsp.InvalidRowError, match="row 100"):
        est.transform(field(values).chunk({"time": 20}), out=tmp_path / "z.zarr")
    assert list(tmp_path.iterdir()) == []
    field().to_dataset().to_zarr(tmp_path / "x.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(ValueError, match="would replace the input"):
        est.transform(tmp_path / "x.zarr", out=tmp_path / "x.zarr", overwrite=True)


def test_refused_before_any_task() -> None:
    with pytest.raises(ValueError, match=r"sample_dims='time' names dimensions and coordinates, and X is a ndarray"):
        spectral(sample_dims="time").fit(VALUES.reshape(TIMES, -1))
    with pytest.raises(ValueError, match=r"latitude='lat' weighs rows, and DiffusionMap takes no sample weights"):
        dsp.DiffusionMap(1.0).fit(field(), sample_dims=("time", "lat"), latitude="lat")
    with pytest.raises(ValueError, match=r"names 'step', and X has the dimensions"):
        spectral().fit(field(), sample_dims="step")
    with pytest.raises(ValueError, match=r"latitude= weighs rows, and rows of trajectories"):
        spectral(operator=dsp.operators.Transfer(1)).fit([field()], sample_dims=("time", "lat"), latitude="lat")


@pytest.mark.parametrize("model", ["spectral", "hermite"])
def test_labels_of_folds_lie_on_the_rows(model: str) -> None:
    labels = xr.DataArray(np.arange(TIMES) // 30, {"time": field().time}, ("time",))

    def fitted(x: Any, folds: Any, **options: Any) -> Any:
        if model == "spectral":
            return spectral(folds=folds).fit(x, **options)
        kernel = dsp.kernels.Gaussian(3.0)
        y = x.mean(("lat", "lon")) if "sample_dims" not in options else x.mean("lon")
        return dsp.HermiteRegressor(kernel, n_landmarks=20, folds=folds, random_state=0).fit(x, y, **options)

    wanted, found = fitted(field(), labels.values), fitted(field(), labels)
    np.testing.assert_array_equal(
        found.coefficients_ if model == "spectral" else found.coef_,
        getattr(wanted, "coefficients_" if model == "spectral" else "coef_"),
    )
    with pytest.raises(ValueError, match=r"folds and X do not align along 'time'"):
        fitted(field(), labels[::-1])
    both = labels.expand_dims(lat=field().lat)
    rows = {"sample_dims": ("time", "lat")}
    with pytest.raises(ValueError, match=r"folds has the dimensions \('lat', 'time'\).*give folds.transpose"):
        fitted(field(), both, **rows)
    fitted(field(), both.transpose("time", "lat").values.ravel(), **rows)


def test_labels_of_folds_of_updates_and_trajectories_lie_on_the_rows() -> None:
    labels = xr.DataArray(np.arange(TIMES) // 30, {"time": field().time}, ("time",))
    est = spectral(folds=labels[:80]).fit(field()[:80])
    with pytest.raises(ValueError, match="folds and X do not align"):
        est.update(field(), folds=labels[::-1])
    transfer = spectral(operator=dsp.operators.Transfer(2))
    halves, parts = [field()[:70], field()[70:]], [labels[:70], labels[70:]]
    assert transfer.set_params(folds=parts).fit(halves).moments_.count == TIMES - 4
    with pytest.raises(ValueError, match=r"folds\[1\] and X do not align"):
        transfer.set_params(folds=[parts[0], parts[1][::-1]]).fit(halves)


PANDAS: dict[str, Any] = {
    "zone": pd.date_range("2000", periods=TIMES, freq="D", tz="UTC"),
    "period": pd.period_range("2000", periods=TIMES, freq="M"),
    "interval": pd.interval_range(0, TIMES),
}


@pytest.mark.parametrize("kind", PANDAS)
def test_coordinates_that_files_do_not_hold(kind: str, tmp_path: Path) -> None:
    x = field().assign_coords(time=PANDAS[kind])
    est = spectral().fit(x)
    assert est.transform(x).indexes["time"].equals(pd.Index(PANDAS[kind]))
    with pytest.raises(ValueError, match=r"rows have a coordinate 'time' of dtype .*, which files do not hold"):
        est.transform(x, out=tmp_path / "z.zarr")
    assert list(tmp_path.iterdir()) == []
    est.transform(x.assign_coords(time=[str(t) for t in PANDAS[kind]]), out=tmp_path / "z.zarr")


def test_categories_are_written_as_text(tmp_path: Path) -> None:
    x = field().assign_coords(season=("time", pd.Categorical(["dry", "wet"] * 60)))
    est = spectral().fit(x)
    est.transform(x, out=tmp_path / "z.zarr")
    assert xr.open_zarr(tmp_path / "z.zarr").season.values[:3].tolist() == ["dry", "wet", "dry"]


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # a sum of functions of one column each
def test_classes_keep_the_labels_of_their_target() -> None:
    states = xr.where(target() > 0, "warm", "cold").rename("state").assign_attrs(long_name="state of the sea")
    est = dsp.InvariantClassifier(n_eigenfunctions=20, alpha=1e-3, folds=None).fit(field(), states)
    found = est.predict(field().chunk({"time": 50}))
    assert (found.name, found.attrs, found.dims) == ("state", {"long_name": "state of the sea"}, ("time",))
    assert set(np.unique(found)) <= {"warm", "cold"}
    assert est.predict_proba(field())["class"].values.tolist() == ["cold", "warm"]


@pytest.mark.parametrize("name", ["eigenfunction", "time"])
def test_coordinates_of_the_name_of_a_result(name: str, tmp_path: Path) -> None:
    x = (
        field().rename(time="eigenfunction")
        if name == "time"
        else field().assign_coords({name: ("time", VALUES[:, 0, 0])})
    )
    est = spectral().fit(x)
    with pytest.raises(ValueError, match="X has rows with a dimension or coordinate 'eigenfunction', the name of"):
        est.transform(x, out=tmp_path / "z.zarr")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dims", [0, (), ("time", "time"), ("time", 0)])
def test_dimensions_of_rows_are_names(dims: Any) -> None:
    with pytest.raises(ValueError, match="sample_dims names the dimensions whose entries are rows, each once"):
        spectral().fit(field(), sample_dims=dims)
