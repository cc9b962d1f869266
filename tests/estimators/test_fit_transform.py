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

VALUES = np.random.default_rng(0).normal(size=(60, 3, 2))
TIME = pd.date_range("2000-01-01", periods=60, freq="D")
GIVEN: dict[str, Any] = {"random_state": 0, "sample_dims": "time"}
TRANSFORMERS: dict[str, Any] = {
    "spectral": dsp.SpectralDecomposition(kernel=Gaussian(3.0), n_landmarks=10, n_components=3, **GIVEN),
    "diffusion": dsp.DiffusionMap(2.0, **GIVEN),
    "kernel": dsp.KernelEmbedding(Gaussian(3.0), regularization=1e-2, **GIVEN),
    "sdp": dsp.SDPEmbedding(3.0, n_components=2, **GIVEN),
    "jacobi": dsp.JacobiCoordinates(sample_dims="time"),
}


def field() -> xr.DataArray:
    coords = {"time": TIME, "lat": [-30.0, 0.0, 45.0], "lon": [0.0, 90.0]}
    return xr.DataArray(VALUES.copy(), coords, ("time", "lat", "lon"), attrs={"source": "drawn"})


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_labelled_rows_stay_and_become_frames(name: str) -> None:
    model = clone(TRANSFORMERS[name])
    found = model.fit_transform(field())
    assert isinstance(found, xr.DataArray)
    xr.testing.assert_allclose(found, model.transform(field()), atol=1e-6)
    assert found.attrs == {"source": "drawn"}
    names = [f"{type(model).__name__.lower()}{i}" for i in range(found.shape[1])]
    wanted = pd.DataFrame(found.values, pd.DatetimeIndex(TIME, name="time"), names)
    model.set_output(transform="pandas")
    pd.testing.assert_frame_equal(model.fit_transform(field()), wanted, check_freq=False, atol=1e-6)
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


@pytest.mark.parametrize("name", ["spectral", "diffusion", "sdp", "jacobi"])
def test_invalid_rows_that_fit_leaves_out_become_nan(name: str) -> None:
    broken = field()
    broken[7, 1, 1] = np.nan
    plain = clone(TRANSFORMERS[name]).set_params(sample_dims=None)
    for model, x in ((clone(TRANSFORMERS[name]), broken), (plain, pd.DataFrame(broken.values.reshape(60, -1)))):
        found = np.asarray(model.fit_transform(x, on_invalid="skip"))
        assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [7]
        with pytest.raises(dsp.InvalidRowError, match="row 7"):
            clone(model).fit_transform(x)


def test_missing_chunks_that_are_meant_are_meant_twice(tmp_path: Path) -> None:
    da.from_array(VALUES.reshape(60, -1), chunks=(20, 6)).to_zarr(tmp_path / "x.zarr")
    next(p for p in sorted(tmp_path.rglob("2/0")) + sorted(tmp_path.rglob("2.0")) if p.is_file()).unlink()
    model = clone(TRANSFORMERS["spectral"]).set_params(sample_dims=None)
    found = model.fit_transform(str(tmp_path / "x.zarr"), allow_missing=True)
    assert np.isfinite(found.compute()).all()
