"""Labelled arrays in another order than the fit's columns, or than the rows of X, are refused, index or no index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(60, 3, 2))
def field() -> xr.DataArray:
    coords = {"time": np.arange(60), "lat": [-30.0, 0.0, 45.0], "lon": [0.0, 90.0]}
    return xr.DataArray(VALUES, coords, ("time", "lat", "lon"))


def stations() -> xr.DataArray:
    """Columns along a dimension without an index, with their places in coordinates."""
    return field().stack(z=("lat", "lon")).reset_index("z")


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    kernel = dsp.kernels.Gaussian(3.0)
    return dsp.SpectralDecomposition(kernel=kernel, n_landmarks=10, n_components=3, random_state=0, **options)


def test_columns_are_those_of_the_fit_to_rounding_and_where_they_are_missing() -> None:
    x = stations().assign_coords(lat=("z", [0.1, np.nan, 20.7, 1 / 3, 50.0, 60.0]))
    model = spectral(sample_dims="time").fit(x)
    rounded = x.assign_coords(lat=("z", x.lat.values.astype(np.float32)))
    np.testing.assert_array_equal(model.transform(rounded), model.transform(x))
    with pytest.raises(ValueError, match=r"along 'lat'.*entry 2 is 20.71, for 20.7\)"):
        model.transform(x.assign_coords(lat=("z", [0.1, np.nan, 20.71, 1 / 3, 50.0, 60.0])))
    with pytest.raises(ValueError, match="X has other columns than the fit: along 'lat' they are"):
        model.transform(x.isel(z=[0, 4, 2, 3, 1, 5]))


def test_rows_in_another_order_are_refused() -> None:
    x = field().stack(z=("time", "lon")).transpose("z", "lat").reset_index("z")
    weight = xr.DataArray(RNG.uniform(1, 2, 120), dims="z", coords={"time": x.time, "lon": x.lon})
    model = spectral(sample_dims="z")
    assert model.fit(x, sample_weight=weight).moments_.weight == pytest.approx(float(weight.sum()))
    with pytest.raises(ValueError, match=r"sample_weight and X do not align: their rows have no index, and 'time' is"):
        model.fit(x, sample_weight=weight[::-1])
    levels = field().stack(z=("time", "lon")).transpose("z", "lat")
    with pytest.raises(ValueError, match="sample_weight and X do not align"):
        model.fit(levels, sample_weight=weight[::-1])
    other = weight.assign_coords(time=("z", np.roll(x.time.values, 2)))
    model.fit(x, sample_weight=other.drop_vars("time"))
