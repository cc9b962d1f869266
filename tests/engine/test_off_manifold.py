"""A point off the manifold is named by the number of its row in the data, wherever it is met."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis
from daskspectral.errors import PointError
from daskspectral.groups import Permutations
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import FlatTorus, Implicit, Sphere
from tests.engine.common import model

N, ROW = 6000, 4321
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X.prod(axis=1)
pytestmark = pytest.mark.usefixtures("short_epochs")


def off(*rows: int, x: np.ndarray = X) -> np.ndarray:
    x = x.copy()
    x[list(rows)] *= 1.5
    return x


OFF = off(ROW, ROW + 700)
CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda x: x,
    "dask": lambda x: da.from_array(x, chunks=(700, 3)),
    "xarray": lambda x: xr.DataArray(x, dims=("row", "column")),
}


def tangential(**changes: Any) -> dsp.SpectralDecomposition:
    settings = {"operator": dsp.operators.Laplacian(Sphere(3)), "landmarks": X[:30], "kernel": Gaussian(1.0)}
    return model(**(settings | changes))


def regressor() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(Sphere(3), Permutations(3), smoothness=2.0, n_eigenfunctions=30)


def named(row: int = ROW) -> Any:
    told = rf"expected points on Sphere\(d=3\) to within .*, received row {row} at dist"
    return pytest.raises(PointError, match=told, check=lambda error: error.row == row)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_an_off_manifold_row_is_named_by_its_number_in_the_data(kind: str) -> None:
    with named():
        tangential().fit(CONTAINERS[kind](OFF))
    with named():
        regressor().fit(CONTAINERS[kind](OFF), Y)
    fitted = regressor().fit(X, Y)
    with named():  # of lazy rows, dask raises whatever it meets first
        np.asarray(fitted.predict(CONTAINERS[kind](off(ROW))))


def test_an_off_manifold_row_after_rows_that_are_left_out() -> None:
    x = OFF.copy()
    x[:40] = x[100:ROW:17] = np.nan
    for points in (x, da.from_array(x, chunks=(700, 3))):
        for estimator, y in (tangential(), ()), (regressor(), (Y,)):
            with named():
                estimator.fit(points, *y, on_invalid="skip")


def test_an_off_manifold_row_among_the_landmarks_and_among_appended_rows() -> None:
    sample = tangential(landmarks="uniform", n_landmarks=200).fit(X)
    landmark = int(np.flatnonzero((sample.basis_.parts[-1].landmarks[50] == X).all(axis=1))[0])
    with named(landmark):
        sample.fit(off(landmark))
    fitted = tangential().fit(X[:2000])
    values = fitted.eigenvalues_.copy()
    with named():
        fitted.update(OFF)
    np.testing.assert_array_equal(fitted.eigenvalues_, values)  # the model is as before


@pytest.mark.parametrize("row", [1321, 2, 2999])  # the last one as a future alone
def test_an_off_manifold_row_of_a_trajectory(row: int) -> None:
    estimator = dsp.SpectralDecomposition(dsp.operators.Transfer(3), basis=HarmonicBasis(Sphere(3), 3), n_components=2)
    with pytest.raises(PointError, match=rf"received row {row} of trajectory 1 at distance 0\.5"):
        estimator.fit([X[:3000], off(row, x=X[3000:])])


def test_the_origin_and_normals_that_are_no_unit_vectors_are_named() -> None:
    def normals(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x - X[ROW]).max(axis=1, keepdims=True) < 1e-12, 3.0, 1.0) * x

    known = dsp.operators.Laplacian(Implicit(normals, 3))
    with pytest.raises(PointError, match=rf"expected unit normals .*, 3 in row {ROW}; divide each normal by its norm"):
        tangential(operator=known).fit(X)
    pairs = RNG.standard_normal((N, 4))
    pairs /= np.repeat(np.hypot(pairs[:, ::2], pairs[:, 1::2]), 2, axis=1)
    pairs[ROW, :2] = 0
    torus = dsp.operators.Laplacian(FlatTorus(2))
    with pytest.raises(PointError, match=rf"received row {ROW} at distance"):
        tangential(operator=torus, landmarks=pairs[:30]).fit(pairs)


@pytest.mark.usefixtures("client")
def test_an_off_manifold_row_is_named_on_a_cluster() -> None:
    with named():
        regressor().fit(da.from_array(OFF, chunks=(700, 3)), Y)


def test_a_point_error_travels() -> None:
    error = PointError("expected points, received", 7, " far away", "future")
    copy = pickle.loads(pickle.dumps(error.at(9)))
    assert (str(copy), copy.row, copy.field) == ("expected points, received row 9 far away", 9, "future")
