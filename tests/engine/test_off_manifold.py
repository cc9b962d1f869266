"""A point off the manifold is named by the number of its row in the data, wherever it is met."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis
from daskspectral.engine import plan as planning
from daskspectral.errors import PointError
from daskspectral.groups import Permutations
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import FlatTorus, Implicit, Sphere

N, ROW = 6000, 4321
RNG = np.random.default_rng(11)
X = RNG.standard_normal((N, 3))
X /= np.linalg.norm(X, axis=1, keepdims=True)
OFF = X.copy()
OFF[ROW] *= 1.5
OFF[ROW + 700] *= 1.2
Y = X[:, 0] * X[:, 1] * X[:, 2]
LANDMARKS = X[:30]

CONTAINERS: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "numpy": lambda path, x: x,
    "dask": lambda path, x: da.from_array(x, chunks=(700, 3)),
    "zarr": lambda path, x: zarr.create_array(path / "x.zarr", data=x, chunks=(900, 3), overwrite=True),
    "xarray": lambda path, x: xr.DataArray(x, dims=("row", "column")),
}


@pytest.fixture(autouse=True)
def short_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPOCH", 3), ("TASK_FLOPS", 3e6), ("LEAST_FLOPS", 3e6)):
        monkeypatch.setattr(planning, name, value)


def tangential(**changes: Any) -> dsp.SpectralDecomposition:
    settings = {"operator": dsp.operators.Laplacian(Sphere(3)), "landmarks": LANDMARKS, "n_components": 4}
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), **(settings | changes))


def regressor() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(Sphere(3), Permutations(3), smoothness=2.0, n_eigenfunctions=30)


def named(row: int = ROW) -> Any:
    return pytest.raises(
        PointError, match=rf"expected points on Sphere\(d=3\) to within .*, received row {row} at dist"
    )


@pytest.mark.parametrize("kind", CONTAINERS)
def test_an_off_manifold_row_is_named_by_its_number_in_the_data(kind: str, tmp_path: Path) -> None:
    x = CONTAINERS[kind](tmp_path, OFF)
    with named() as caught:
        tangential().fit(x)
    assert caught.value.row == ROW
    with named():
        regressor().fit(x, Y)
    fitted = regressor().fit(X, Y)
    one = X.copy()  # of lazy rows, dask raises whatever it meets first
    one[ROW] *= 1.5
    with named():
        np.asarray(fitted.predict(CONTAINERS[kind](tmp_path, one)))
    with named():
        fitted.predict(CONTAINERS[kind](tmp_path, OFF), out=tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr").exists()


def test_an_off_manifold_row_after_rows_that_are_left_out(tmp_path: Path) -> None:
    x = OFF.copy()
    x[100:ROW:17] = np.nan
    for points in (x, da.from_array(x, chunks=(700, 3))):
        for model, y in (tangential(), ()), (regressor(), (Y,)):
            with named() as caught:
                model.fit(points, *y, on_invalid="skip")
            assert caught.value.row == ROW


def test_an_off_manifold_row_among_the_first_and_among_the_landmarks() -> None:
    x = X.copy()
    x[:40] = np.nan
    x[57] *= 2
    with named(57) as caught:
        regressor().fit(x, Y, on_invalid="skip")
    assert caught.value.row == 57
    sample = dsp.SpectralDecomposition(
        dsp.operators.Laplacian(Sphere(3)), Gaussian(1.0), landmarks="uniform", n_landmarks=200, random_state=0
    )
    sample.fit(X)
    landmark = int(np.flatnonzero((sample.basis_.parts[-1].landmarks[50] == X).all(axis=1))[0])
    x = X.copy()
    x[landmark] *= 2
    with named(landmark) as caught:
        sample.fit(x)
    assert caught.value.row == landmark


def test_an_off_manifold_row_of_appended_rows() -> None:
    fitted = tangential().fit(X[:2000])
    values = fitted.eigenvalues_.copy()
    with named() as caught:
        fitted.update(OFF)
    assert caught.value.row == ROW
    assert fitted.moments_.count == 2000
    np.testing.assert_array_equal(fitted.eigenvalues_, values)  # the model is as before


def test_an_off_manifold_row_of_a_trajectory_and_of_a_view() -> None:
    basis = HarmonicBasis(Sphere(3), 3)
    model = dsp.SpectralDecomposition(dsp.operators.Transfer(3), basis=basis, n_components=2)
    with pytest.raises(PointError, match=r"received row 1321 of trajectory 1 at distance 0\.5"):
        model.fit([X[:3000], OFF[3000:5000]])
    off = X.copy()
    off[0:3] *= 1.1
    off[2] *= 1.1
    with pytest.raises(PointError, match=r"received row 2 of trajectory 1 at distance"):
        model.fit([X[:3000], off])
    off = X.copy()
    off[-1] *= 1.1  # met as a future alone
    with pytest.raises(PointError, match=rf"received row {N - 1} of trajectory 1 at distance"):
        model.fit([X[:3000], off])


def test_the_origin_and_normals_that_are_no_unit_vectors_are_named() -> None:
    pairs = RNG.standard_normal((N, 4))
    pairs /= np.repeat(np.hypot(pairs[:, ::2], pairs[:, 1::2]), 2, axis=1)

    def normals(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x - X[ROW]).max(axis=1, keepdims=True) < 1e-12, 3.0, 1.0) * x

    known = dsp.operators.Laplacian(Implicit(normals, 3))
    with pytest.raises(PointError, match=rf"expected unit normals .*, 3 in row {ROW}; divide each normal by its norm"):
        tangential(operator=known).fit(X)
    pairs[ROW, :2] = 0
    torus = dsp.operators.Laplacian(FlatTorus(2))
    with pytest.raises(PointError, match=rf"received row {ROW} at distance"):
        tangential(operator=torus, landmarks=pairs[:30]).fit(pairs)


@pytest.mark.usefixtures("client")
def test_an_off_manifold_row_is_named_on_a_cluster() -> None:
    x = da.from_array(OFF, chunks=(700, 3))
    with named() as caught:
        regressor().fit(x, Y)
    with named():
        regressor().fit(X, Y).predict(x[: ROW + 100]).compute()
    assert caught.value.row == ROW


def test_a_point_error_travels() -> None:
    error = PointError("expected points, received", 7, " far away", "future")
    copy = pickle.loads(pickle.dumps(error.at(9)))
    assert (str(copy), copy.row, copy.field) == ("expected points, received row 9 far away", 9, "future")
