"""Faults that somebody met, each as it was met: none of them says so by itself."""

import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.basis import FourierLattice, Landmarks
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.solvers import Penalised
from tests.common import assert_same_bits, doubtful

pytestmark = doubtful

RNG = np.random.default_rng(0)
X = RNG.uniform(0, np.pi, (400, 3))


def spectral(**options: Any) -> dsp.SpectralDecomposition:
    given: dict[str, Any] = {"basis": Landmarks(Gaussian(1.0), 10), "n_components": 3, "random_state": 0}
    return dsp.SpectralDecomposition(**given | options)


def test_a_lattice_has_fewer_functions_than_a_quarter_of_the_rows() -> None:
    model = spectral(basis=FourierLattice(kernel=Matern(1.5, 2.0)), solver=Penalised(1.0)).fit(X[:300, :2])
    assert model.basis_.size == 49
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1], atol=0.3)


def test_rows_far_out_are_named_where_the_box_holds_them() -> None:
    x = np.random.default_rng(0).laplace(size=(2000, 2))
    model = spectral(basis=FourierLattice(6, kernel=Matern(1.5, 1.0)), solver=Penalised(1.0))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TrustWarning)
        model.fit(x)
    assert not [w for w in told if "outliers" in str(w.message)]
    x[::400] = 100.0
    with pytest.warns(TrustWarning, match="outliers of column 0"):
        model.fit(x)
    assert any("outliers of column 1" in doubt for doubt in model.doubts_)


@pytest.mark.slow
def test_rows_that_are_computed_on_the_way_choose_what_stored_rows_in_the_same_chunks_choose() -> None:
    x = RNG.standard_normal((320, 3)).cumsum(axis=0)
    components = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(x)
    computed = components.transform(da.from_array(x, chunks=(2, 3)))
    stored = da.from_array(np.asarray(computed), chunks=computed.chunks)
    basis = Landmarks(Gaussian("auto"), 5)
    model = spectral(operator=dsp.operators.Transfer(1), basis=basis, solver=Penalised(1.0))
    one, other = (model.fit(z).moments_ for z in (computed, stored))
    assert_same_bits(one, other)


def test_columns_of_the_same_name_are_refused() -> None:
    names = ["a", "b", "a"]
    for same in (pd.DataFrame(X, columns=names), pa.table(list(X.T), names=names)):
        for model in (spectral(), dsp.DiffusionMap(2.0)):
            with pytest.raises(ValueError, match="'a'"):
                model.fit(same)


def test_the_first_trajectory_of_an_update_is_compared(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    arrays = [zarr.create_array(p, data=x, chunks=(50, 3)) for p, x in zip(paths, np.split(X[:300], 2), strict=True)]
    model = spectral(operator=dsp.operators.Transfer(1), folds=None).fit(paths)
    arrays[0][:] = X[150:300]
    with pytest.raises(ValueError, match="X differs in its first rows"):
        model.update([*paths, X[300:]])


@pytest.mark.parametrize(("then", "now"), [(None, np.ones(400)), (np.ones(300), None)])
def test_weights_of_a_part_of_the_rows_are_refused(then: Any, now: Any) -> None:
    model = spectral().fit(X[:300], sample_weight=then)
    with pytest.raises(ValueError, match="sample_weight"):
        model.update(X, sample_weight=now)


def test_an_object_that_is_changed_in_place_changes_no_fitted_model() -> None:
    kernel = Gaussian(0.7)
    points = dsp.basis.LandmarkBasis(kernel, X[:20])
    models = [spectral(basis=dsp.basis.Concatenated((dsp.basis.ConstantBasis(3), points))).fit(X)]
    models.append(dsp.HermiteRegressor(FourierLattice(3, kernel=kernel)).fit(X, X[:, 0]))
    models.append(spectral(basis=Landmarks(Gaussian("auto"), 10)).fit(X))
    before = [str(model.kernel_) for model in models], models[0].transform(X[:5])
    kernel.set_params(scale=9.0)
    models[2].choice_.parameters["basis"].kernel.set_params(scale=9.0)
    assert [str(model.kernel_) for model in models] == before[0]
    np.testing.assert_array_equal(models[0].transform(X[:5]), before[1])
    assert str(models[1].choice_.parameters["basis"].kernel) == before[0][1]


def test_periods_within_a_kernel_are_in_the_units_of_the_columns_too() -> None:
    kernel = dsp.kernels.Periodic(Gaussian(1.0), (3.0, None, None))
    with pytest.raises(ValueError, match="periods"):
        spectral(basis=Landmarks(kernel, 10)).plan(dsp.Rows(X, standardize=True))


def test_dimensions_of_rows_are_heard_by_every_method() -> None:
    x = RNG.uniform(0, np.pi, (60, 3))
    field = xr.DataArray(x.T, dims=("column", "time"))
    rows = dsp.Rows(field, sample_dims="time")
    model = spectral().fit(x)
    assert len(rows) == 60
    assert rows[:7].data.sizes == {"column": 3, "time": 7}
    assert model.score(rows) == model.score(x)
    np.testing.assert_array_equal(model.transform(rows), model.transform(x))
    labelled = spectral().fit(rows)
    for wrong in ("sample_dims", "latitude"):
        for method in (labelled.score, labelled.transform):
            with pytest.raises(ValueError, match=wrong):
                method(dsp.Rows(field, **{wrong: "column"}))
    with pytest.raises(ValueError, match="latitude"):
        model.transform(dsp.Rows(x, latitude="lat"))
