"""Points, a SpectralDecomposition of them and containers, for several files of tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.operators import Operator

Array = NDArray[Any]
N = 3000
X = np.random.default_rng(0).standard_normal((N, 3)) * [1.0, 0.7, 0.4] + [0.0, 1.0, -2.0]
X.flags.writeable = False
LAZY = da.from_array(X, chunks=(500, 3))
GAUSSIAN = Gaussian(1.0)


def make(operator: Operator | None = None, basis: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    basis = Landmarks(GAUSSIAN, 20) if basis is None else basis
    return dsp.SpectralDecomposition(operator, basis, **{"n_components": 5, "random_state": 0} | options)


def model(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    """Few functions, and no folds."""
    given = {"basis": Landmarks(Gaussian(2.0), 12), "n_components": 3, "folds": None, "random_state": 0}
    return dsp.SpectralDecomposition(operator, **given | options)


def hermite(**options: Any) -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(Landmarks(Gaussian(2.0), 20), alpha=1e-3, random_state=0, **options)


# the points "x" of a regression, or values at them, in a container


def as_numpy(path: Path, name: str, a: Array) -> Array:
    return a


def as_dask(path: Path, name: str, a: Array) -> da.Array:
    return da.from_array(a, chunks=(130,) + (2,) * (a.ndim - 1))


def as_zarr(path: Path, name: str, a: Array) -> zarr.Array[Any]:
    return zarr.create_array(path / f"{name}.zarr", data=a, chunks=(130, *a.shape[1:]))


def as_path(path: Path, name: str, a: Array) -> str:
    as_zarr(path, name, a)
    return f"{path}/{name}.zarr"


def as_xarray(path: Path, name: str, a: Array) -> xr.DataArray:
    dims = ("row", "feature") if name == "x" else ("row", "j", "i")[: a.ndim]
    coords: dict[str, Any] = {"row": 2 * np.arange(len(a))}
    if name == "x":
        coords["feature"] = list("abc")
    return xr.DataArray(a, dims=dims, coords=coords)


def as_chunked(path: Path, name: str, a: Array) -> xr.DataArray:
    return as_xarray(path, name, a).chunk({"row": 130})


CONTAINERS = {
    "numpy": (as_numpy, np.ndarray),
    "dask": (as_dask, da.Array),
    "zarr": (as_zarr, da.Array),
    "path": (as_path, da.Array),
    "xarray": (as_xarray, xr.DataArray),
    "xarray, chunked": (as_chunked, xr.DataArray),
}
