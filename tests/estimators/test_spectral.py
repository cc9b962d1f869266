"""SpectralDecomposition: what comes in as dask or xarray goes out as dask or xarray, lazily."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Gaussian
from tests.common import assert_same_moments, written
from tests.estimators.common import CONTAINERS, Array, N, X, as_chunked, as_dask, as_numpy, as_path, as_xarray, make


def as_netcdf(path: Path, name: str, x: Array) -> xr.DataArray:
    as_xarray(path, name, x).drop_vars("feature").rename("points").to_netcdf(path / "x.nc")
    return xr.open_dataset(path / "x.nc").points


KINDS: dict[str, Any] = {**CONTAINERS, "netcdf": (as_netcdf, xr.DataArray)}
BROKEN = X.copy()
BROKEN[[1718, 1717], [2, 0]] = [np.inf, np.nan]


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", KINDS)
def test_container_in_container_out(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    convert, out = KINDS[kind]
    x = convert(tmp_path, "x", X)
    assert_same_moments(make().fit(x).moments_, fitted.moments_)
    embedding = fitted.transform(x)
    assert isinstance(embedding, out)
    assert (embedding.shape, embedding.dtype) == ((N, 5), np.float64)
    np.testing.assert_allclose(np.asarray(embedding), fitted.transform(X), rtol=1e-9, atol=1e-12)
    fitted.transform(x, out=tmp_path / "out.zarr")
    np.testing.assert_allclose(written(tmp_path / "out.zarr"), fitted.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("convert", [as_dask, as_chunked, as_netcdf])
def test_lazy_in_lazy_out(
    convert: Any, tmp_path: Path, fitted: dsp.SpectralDecomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, calls, original = convert(tmp_path, "x", X), [], LandmarkBasis.at
    monkeypatch.setattr(LandmarkBasis, "at", lambda self, block, atoms: calls.append(1) or original(self, block, atoms))
    embedding = fitted.transform(x)
    assert dask.is_dask_collection(embedding)
    assert calls == []
    part = np.asarray(embedding[1000:1010].compute(scheduler="synchronous"))
    assert 0 < len(calls) <= 3 if convert is not as_netcdf else calls
    np.testing.assert_allclose(part, fitted.transform(X[1000:1010]), rtol=1e-9, atol=1e-12)


def test_xarray_keeps_what_belongs_to_the_rows(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    x = as_chunked(tmp_path, "x", X).assign_coords(group=("row", np.arange(N) % 3), day=3)
    embedding = fitted.transform(x)
    assert embedding.dims == ("row", "component")
    errors = {"eigenvalue_lower", "eigenvalue_upper", "standard_error"}
    assert set(embedding.coords) == {"row", "group", "day", "component", "eigenvalue", *errors}
    np.testing.assert_array_equal(embedding.eigenvalue_lower, fitted.eigenvalue_errors_[:, 0])
    np.testing.assert_allclose(embedding.sel(row=20), fitted.transform(X[10:11])[0], rtol=1e-9)
    own = xr.DataArray(X, dims=("row", "feature"), coords={"eigenvalue": ("row", X[:, 0])})
    np.testing.assert_array_equal(fitted.transform(own).eigenvalue, X[:, 0])


@pytest.mark.parametrize("convert", [as_numpy, as_path])
def test_invalid_rows(convert: Any, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    x, out = convert(tmp_path, "x", BROKEN), tmp_path / "out.zarr"
    with pytest.raises(dsp.InvalidRowError, match=r"row 1717 .*X holds NaN in column 0") as caught:
        np.asarray(fitted.transform(x))
    assert caught.value.row == 1717
    fitted.transform(x, out=out, on_invalid="skip")
    for embedding in (np.asarray(fitted.transform(x, on_invalid="skip")), written(out)):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(embedding).all(axis=1)), [1717, 1718])
    for options in ({}, {"standardize": True}, {"kernel": Gaussian("median"), "landmarks": "kmeans++"}):
        with pytest.raises(dsp.InvalidRowError, match=r"row 1717 is the first .*X holds NaN in"):
            make(**options).fit(x)
    skipped = make(landmarks=X[:20]).fit(x, on_invalid="skip")
    without = make(landmarks=X[:20]).fit(np.delete(BROKEN, [1717, 1718], axis=0))
    assert skipped.moments_.skipped == 2
    np.testing.assert_allclose(skipped.moments_.arrays["gram"], without.moments_.arrays["gram"], rtol=1e-12)
