"""`fit_transform` of every transformer: the options of both calls, the labels of the rows, and data frames of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.kernels import Gaussian

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(60, 3, 2))
TIME = pd.date_range("2000-01-01", periods=60, freq="D")
GIVEN: dict[str, Any] = {"random_state": 0, "sample_dims": "time"}
TRANSFORMERS: dict[str, Any] = {
    "spectral": dsp.SpectralDecomposition(kernel=Gaussian(3.0), n_landmarks=10, n_components=3, **GIVEN),
    "diffusion": dsp.DiffusionMap(random_state=0, sample_dims="time"),
    "kernel": dsp.KernelEmbedding(random_state=0, sample_dims="time"),
    "graph": dsp.GraphLaplacian(Gaussian(3.0), Gaussian(3.0), n_landmarks=10, n_components=3, **GIVEN),
    "sdp": dsp.SDPEmbedding(n_components=2, **GIVEN),
    "jacobi": dsp.JacobiCoordinates(sample_dims="time"),
}
transformers = pytest.mark.parametrize("estimator", TRANSFORMERS.values(), ids=TRANSFORMERS.keys())


def field() -> xr.DataArray:
    coords = {"time": TIME, "lat": [-30.0, 0.0, 45.0], "lon": [0.0, 90.0]}
    return xr.DataArray(VALUES.copy(), coords, ("time", "lat", "lon"), attrs={"source": "drawn"})


@transformers
def test_labels_of_the_rows_stay(estimator: Any) -> None:
    model = clone(estimator)
    found = model.fit_transform(field())
    wanted = model.transform(field())
    assert isinstance(found, xr.DataArray)
    xr.testing.assert_allclose(found, wanted, atol=1e-6)
    assert found.name == wanted.name
    assert found.attrs == {"source": "drawn"}


@transformers
def test_labelled_rows_become_frames(estimator: Any) -> None:
    values = np.asarray(clone(estimator).fit_transform(field()))
    model = clone(estimator).set_output(transform="pandas")
    names = [f"{type(estimator).__name__.lower()}{i}" for i in range(values.shape[1])]
    wanted = pd.DataFrame(values, pd.DatetimeIndex(TIME, name="time"), names)
    for found in (model.fit_transform(field()), model.transform(field())):
        pd.testing.assert_frame_equal(found, wanted, check_freq=False, atol=1e-6)
    found = model.set_output(transform="polars").fit_transform(field())
    assert isinstance(found, pl.DataFrame)
    assert found.columns == names
    with pytest.raises(ValueError, match="is read lazily"):
        model.fit_transform(field().chunk({"time": 20}))


def test_rows_of_several_dimensions_are_the_levels_of_an_index() -> None:
    model = clone(TRANSFORMERS["spectral"]).set_params(sample_dims=("time", "lat")).set_output(transform="pandas")
    found = model.fit_transform(field())
    assert found.index.names == ["time", "lat"]
    assert found.index[4] == (TIME[1], 0.0)
    plain = clone(model).set_output(transform="default").fit_transform(field())
    np.testing.assert_array_equal(found.loc[(TIME[1], 0.0)], plain.sel(time=TIME[1], lat=0.0))


@pytest.mark.parametrize("name", ["spectral", "diffusion", "sdp", "jacobi"])
def test_invalid_rows_that_fit_leaves_out_become_nan(name: str) -> None:
    broken = field()
    broken[7, 1, 1] = np.nan
    flat = broken.values.reshape(60, -1)
    plain = clone(TRANSFORMERS[name]).set_params(sample_dims=None)
    for model, x in ((clone(TRANSFORMERS[name]), broken), (plain, flat), (clone(plain), pd.DataFrame(flat))):
        found = np.asarray(model.fit_transform(x, on_invalid="skip"))
        assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [7]
        with pytest.raises(dsp.InvalidRowError, match="row 7"):
            clone(model).fit_transform(x)


def test_missing_chunks_that_are_meant_are_meant_twice(tmp_path: Path) -> None:
    x = da.from_array(VALUES.reshape(60, -1), chunks=(20, 6))
    x.to_zarr(tmp_path / "x.zarr")
    next(p for p in sorted(tmp_path.rglob("2/0")) + sorted(tmp_path.rglob("2.0")) if p.is_file()).unlink()
    model = clone(TRANSFORMERS["spectral"]).set_params(sample_dims=None)
    found = model.fit_transform(str(tmp_path / "x.zarr"), allow_missing=True)
    assert np.isfinite(found.compute()).all()
