"""SpectralDecomposition: what comes in as dask or xarray goes out as dask or xarray, lazily."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Gaussian
from tests.common import assert_same_bits, assert_same_moments, written
from tests.estimators.common import Array, N, X, make


def as_dask(path: Path, x: Array = X) -> da.Array:
    return da.from_array(x, chunks=(700, 2))


def as_zarr(path: Path, x: Array = X) -> zarr.Array[Any]:
    return zarr.create_array(path / "x.zarr", data=x, chunks=(700, 3), overwrite=True)


def as_path(path: Path, x: Array = X) -> str:
    as_zarr(path, x)
    return f"{path}/x.zarr"


def as_xarray(path: Path, x: Array = X) -> xr.DataArray:
    names = {"row": np.arange(len(x)) * 2, "feature": ["a", "b", "c"], "group": ("row", np.arange(len(x)) % 3)}
    return xr.DataArray(x, dims=("row", "feature"), coords=names, name="points")


def as_chunked(path: Path, x: Array = X) -> xr.DataArray:
    return as_xarray(path, x).chunk({"row": 700, "feature": 2})


def as_netcdf(path: Path, x: Array = X) -> xr.DataArray:
    as_xarray(path, x).drop_vars("feature").to_netcdf(path / "x.nc")
    return xr.open_dataset(path / "x.nc").points


def as_numpy(path: Path, x: Array = X) -> Array:
    return x


CONTAINERS: dict[str, tuple[Callable[..., Any], type]] = {
    "numpy": (as_numpy, np.ndarray),
    "dask": (as_dask, da.Array),
    "zarr": (as_zarr, da.Array),
    "path": (as_path, da.Array),
    "xarray": (as_xarray, xr.DataArray),
    "xarray, chunked": (as_chunked, xr.DataArray),
    "netcdf": (as_netcdf, xr.DataArray),
}


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_container_in_container_out(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    convert, out = CONTAINERS[kind]
    x = convert(tmp_path)
    estimator = make().fit(x)
    assert_same_moments(estimator.moments_, fitted.moments_)
    np.testing.assert_allclose(estimator.eigenvalues_, fitted.eigenvalues_, rtol=1e-9, atol=1e-9)
    embedding = fitted.transform(x)
    assert isinstance(embedding, out)
    assert (embedding.shape, embedding.dtype) == ((N, 5), np.float64)
    np.testing.assert_allclose(np.asarray(embedding), fitted.transform(X), rtol=1e-9, atol=1e-12)
    both = make().fit_transform(x)
    assert isinstance(both, out)
    np.testing.assert_allclose(np.abs(both), np.abs(embedding), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["dask", "zarr", "path", "xarray, chunked", "netcdf"])
def test_lazy_in_lazy_out(
    kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = CONTAINERS[kind][0](tmp_path)
    calls: list[int] = []
    original = LandmarkBasis.at
    monkeypatch.setattr(LandmarkBasis, "at", lambda self, block, atoms: calls.append(1) or original(self, block, atoms))
    embedding = fitted.transform(x)
    assert dask.is_dask_collection(embedding)
    assert calls == []
    part = np.asarray(embedding[1000:1010].compute(scheduler="synchronous"))
    assert 0 < len(calls) <= 3 if kind != "netcdf" else calls
    np.testing.assert_allclose(part, fitted.transform(X[1000:1010]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("convert", [as_xarray, as_chunked])
def test_xarray_keeps_what_belongs_to_the_rows(convert: Any, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    embedding = fitted.transform(convert(tmp_path))
    assert embedding.dims == ("row", "component")
    errors = {"eigenvalue_lower", "eigenvalue_upper", "standard_error"}
    assert set(embedding.coords) == {"row", "group", "component", "eigenvalue", *errors}
    np.testing.assert_array_equal(embedding.eigenvalue_lower, fitted.eigenvalue_errors_[:, 0])
    np.testing.assert_array_equal(embedding.row, 2 * np.arange(N))
    np.testing.assert_array_equal(embedding.eigenvalue, fitted.eigenvalues_)
    np.testing.assert_allclose(embedding.sel(row=20), fitted.transform(X[10:11])[0], rtol=1e-9)


def test_names_that_xarray_holds_already(fitted: dsp.SpectralDecomposition) -> None:
    with pytest.raises(ValueError, match=r"rows along a dimension 'component', .*: rename it"):
        fitted.transform(xr.DataArray(X, dims=("component", "feature")))
    own = xr.DataArray(X, dims=("row", "feature"), coords={"eigenvalue": ("row", X[:, 0]), "day": 3})
    embedding = fitted.transform(own)
    np.testing.assert_array_equal(embedding.eigenvalue, X[:, 0])
    assert embedding.day == 3


@pytest.mark.parametrize("kind", CONTAINERS)
def test_transform_to_a_store(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    x, out = CONTAINERS[kind][0](tmp_path), tmp_path / "out.zarr"
    assert fitted.transform(x, out=out) is None
    np.testing.assert_allclose(written(out), fitted.transform(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(FileExistsError, match=r"out.zarr exists"):
        fitted.transform(x, out=out)
    fitted.transform(x, out=out, overwrite=True)


def test_transform_does_not_replace_its_input(tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    for x in (as_path(tmp_path), as_zarr(tmp_path), zarr.open_array(tmp_path / "x.zarr", mode="r")):
        with pytest.raises(ValueError, match=r"the output .*x.zarr would replace the input"):
            fitted.transform(x, out=tmp_path / "x.zarr", overwrite=True)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_invalid_rows_in_transform(kind: str, tmp_path: Path, fitted: dsp.SpectralDecomposition) -> None:
    broken = X.copy()
    broken[[1717, 1718], [2, 0]] = [np.inf, np.nan]
    x, out = CONTAINERS[kind][0](tmp_path, broken), tmp_path / "out.zarr"
    with pytest.raises(dsp.InvalidRowError, match=r"row 1717 .*X holds inf in column 2") as caught:
        np.asarray(fitted.transform(x))
    assert caught.value.row == 1717
    with pytest.raises(dsp.InvalidRowError, match="row 1717 is the first that cannot be used"):
        fitted.transform(x, out=out)
    assert "out.zarr" not in str(os.listdir(tmp_path))
    fitted.transform(x, out=out, on_invalid="skip")
    for embedding in (np.asarray(fitted.transform(x, on_invalid="skip")), written(out)):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(embedding).any(axis=1)), [1717, 1718])
        assert np.isnan(embedding[1717:1719]).all()


@pytest.mark.parametrize("kind", CONTAINERS)
def test_invalid_rows_in_fit(kind: str, tmp_path: Path) -> None:
    broken = X.copy()
    broken[[2900, 1717], [2, 0]] = [np.inf, np.nan]
    for options in ({}, {"standardize": True}, {"kernel": Gaussian("median"), "landmarks": "kmeans++"}):
        with pytest.raises(dsp.InvalidRowError, match=r"row 1717 is the first .*X holds NaN in column 0"):
            make(**options).fit(CONTAINERS[kind][0](tmp_path, broken))
    skipped = make(landmarks=X[:20]).fit(CONTAINERS[kind][0](tmp_path, broken), on_invalid="skip")
    without = make(landmarks=X[:20]).fit(np.delete(broken, [1717, 2900], axis=0))
    assert skipped.moments_.skipped == 2
    np.testing.assert_allclose(skipped.moments_.arrays["gram"], without.moments_.arrays["gram"], rtol=1e-12)
    left_out = make(exclude_landmarks=True).fit(CONTAINERS[kind][0](tmp_path, broken), on_invalid="skip")
    assert left_out.moments_.count == N - 22


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", "float16", ">f8", "float32"])
def test_other_numbers(dtype: str) -> None:
    x = X > 0 if dtype == "bool" else (3 * np.abs(X)).astype(dtype)
    a, b = (make(n_components=2, landmarks="uniform").fit(rows) for rows in (x, x.astype(float)))
    assert_same_moments(a.moments_, b.moments_)
    np.testing.assert_allclose(a.transform(x), b.transform(x.astype(float)), rtol=1e-6, atol=1e-8)
    assert a.transform(x).dtype == np.float64


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_same_chunks_same_bits(scheduler: str, tmp_path: Path) -> None:
    for convert in (as_numpy, as_dask, as_path):
        with dask.config.set(scheduler="threads", num_workers=3):
            wanted = make().fit(convert(tmp_path)).moments_
        with dask.config.set(scheduler=scheduler):
            assert_same_bits(make().fit(convert(tmp_path)).moments_, wanted)


@pytest.mark.usefixtures("small_tasks")
def test_signs_do_not_depend_on_the_chunks() -> None:
    for seed in range(10):
        x = np.random.default_rng(seed).standard_normal((N, 3))
        a, b = (make(n_landmarks=50, n_components=8).fit(da.from_array(x, chunks=c)) for c in (N, 701))
        assert (np.sum(a.transform(x[:500]) * b.transform(x[:500]), axis=0) > 0).all()
