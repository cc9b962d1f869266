"""Mistakes of a first week: each is one error of a builtin type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral import SpectralDecomposition as Model
from daskspectral.basis import FourierLattice, Landmarks
from daskspectral.kernels import Gaussian, Matern
from daskspectral.operators import Covariance, Cross, Schroedinger, Transfer

RNG = np.random.default_rng(0)
X: NDArray[np.float64] = RNG.standard_normal((300, 2))
WALK = np.cumsum(RNG.standard_normal((300, 1)), axis=0)
AXES = {"time": pd.date_range("2000", periods=50, freq="MS"), "lat": [-30.0, 0, 30, 60], "lon": np.arange(5.0)}
FIELD = xr.DataArray(RNG.standard_normal((50, 4, 5)), AXES, ("time", "lat", "lon"), name="t")
LAND = FIELD.where((FIELD.lat != 0) | (FIELD.lon != 2))


def model(operator: Any = None, **options: Any) -> Model:
    basis = None if isinstance(operator, Covariance) else Landmarks(Gaussian(1.0), 20)
    return Model(operator, **{"basis": basis, "n_components": 3, "folds": None, "random_state": 0} | options)


@pytest.fixture(scope="module")
def fitted() -> dict[str, Model]:
    return {
        "laplacian": model(basis=Landmarks(Gaussian(1.0), 100)).fit(X),
        "transfer": model(Transfer(1)).fit(X[:, :1]),
        "covariance": model(Covariance(), n_components=2).fit(X),
    }


Fits = dict[str, Model]
MISTAKES: dict[str, Callable[[Fits, Path], Any]] = {
    "NaN": lambda m, p: model().fit(np.where(X > 2, np.nan, X)),
    "land": lambda m, p: model(Covariance()).fit(dsp.Rows(LAND, sample_dims="time")),
    "land and seasons": lambda m, p: model(Covariance()).fit(dsp.Rows(LAND, sample_dims="time", anomaly="month")),
    "one column": lambda m, p: model().fit(X[:, 0]),
    "no rows": lambda m, p: model().fit(X[:0]),
    "text": lambda m, p: model().fit(np.array([["a", "b"]] * 9)),
    "complex": lambda m, p: model().fit(X + 1j),
    "no such path": lambda m, p: model().fit(p / "none.zarr"),
    "few rows": lambda m, p: model().fit(X[:5]),
    "no such column": lambda m, p: model().fit(dsp.Rows(X, columns=[5])),
    "names of none": lambda m, p: model().fit(dsp.Rows(X, columns=["a"])),
    "names of columns": lambda m, p: model().fit(dsp.Rows(pd.DataFrame(X, columns=["a", "b"]), columns=["c"])),
    "kernel for functions": lambda m, p: model(basis="gaussian:3").fit(X),
    "angles": lambda m, p: (
        Model(Transfer(1), dsp.basis.TrigonometricBasis((6.3,), 2), n_components=2, folds=None)
        .fit(WALK % 6.3)
        .forecast(WALK)
    ),
    "other columns": lambda m, p: m["laplacian"].transform(X[:, :1]),
    "what to skip": lambda m, p: dsp.Rows(X, on_invalid="drop"),
    "dimension": lambda m, p: model().fit(dsp.Rows(FIELD, sample_dims="tim")),
    "latitude": lambda m, p: model().fit(dsp.Rows(FIELD, sample_dims="time", latitude="latitude")),
    "times": lambda m, p: model().fit(dsp.Rows(xr.DataArray(X, dims=("a", "b")), sample_dims="a", anomaly="month")),
    "season": lambda m, p: dsp.Rows(FIELD, anomaly="monthly"),
    "trajectories": lambda m, p: model(Transfer(1)).fit([WALK, X]),
    "weights": lambda m, p: model().fit(X, sample_weight=np.ones(3)),
    "negative weights": lambda m, p: model().fit(X, sample_weight=X[:, 0]),
    "no weight": lambda m, p: model().fit(X, sample_weight=np.zeros(300)),
    "components": lambda m, p: model(n_components=0).fit(X),
    "kernel": lambda m, p: Landmarks("gausian"),
    "basis": lambda m, p: model(basis="landmark").fit(X),
    "operator": lambda m, p: model("laplacian").fit(X),
    "class": lambda m, p: model(dsp.operators.Laplacian).fit(X),
    "solver": lambda m, p: model(solver="cut").fit(X),
    "folds": lambda m, p: model(folds="block").fit(X),
    "one fold": lambda m, p: model(folds=1).fit(X),
    "labels": lambda m, p: model(folds=np.zeros(300, int)).fit(X),
    "device": lambda m, p: model(device="gpu").fit(X),
    "dtype": lambda m, p: model(dtype="float16").fit(X),
    "scale": lambda m, p: Gaussian(-1.0),
    "smoothness": lambda m, p: Matern(0.7),
    "parameter": lambda m, p: model().set_params(scale=1),
    "keyword": lambda m, p: model().fit(X, weights=1),
    "lag": lambda m, p: model(Transfer(500)).fit(WALK),
    "no lag": lambda m, p: Transfer(0),
    "one view": lambda m, p: model(Cross()).fit(X),
    "unlike views": lambda m, p: model(Cross()).fit((X, X[:10])),
    "potential": lambda m, p: model(Schroedinger("v")).fit(X),
    "many variables": lambda m, p: model(basis=FourierLattice()).fit(np.ones((100, 5))),
    "modes in time": lambda m, p: model(Transfer(1), basis=FourierLattice(3)).fit(WALK),
    "not fitted": lambda m, p: model().transform(X),
    "no model": lambda m, p: dsp.load(p / "model.zarr"),
    "an array": lambda m, p: dsp.load(zarr.create_array(p / "x.zarr", data=X).store.root),
    "nothing new": lambda m, p: m["laplacian"].update(X),
    "other rows": lambda m, p: m["laplacian"].update(np.vstack([X + 1, X])),
    "output exists": lambda m, p: [m["laplacian"].transform(X, out=p / "out.zarr") for _ in range(2)],
    "sets": lambda m, p: m["covariance"].metastable_sets(2),
    "many sets": lambda m, p: m["transfer"].metastable_sets(9, WALK),
    "one lag": lambda m, p: m["transfer"].chapman_kolmogorov(),
    "committor": lambda m, p: m["transfer"].committor(WALK),
    "rotation": lambda m, p: m["covariance"].rotated(1),
    "no targets": lambda m, p: dsp.HermiteRegressor().fit(X),
    "few targets": lambda m, p: dsp.HermiteRegressor().fit(X, X[:9, 0]),
    "off the circle": lambda m, p: dsp.InvariantRegressor(dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)).fit(
        X, X[:, 0]
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_error(mistake: str, fitted: Fits, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError, OSError)) as found:
        MISTAKES[mistake](fitted, tmp_path)
    assert 20 < len(str(found.value)) < 700
