"""Mistakes of a first week: each is one error that names what came, before any task where that can be known.

Those that scikit-learn knows are in its checks, and those of folds, kernels, columns and files are tested there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.basis import Landmarks
from daskspectral.forms import dirichlet
from daskspectral.kernels import Gaussian
from daskspectral.operators import Cross, Schroedinger, Transfer
from daskspectral.solve import SymmetricPencil
from tests.common import unreliable
from tests.estimators.common import GAUSSIAN, LAZY, X, make

pytestmark = unreliable

WALK = np.cumsum(np.random.default_rng(0).standard_normal((300, 1)), axis=0)
FIELD = xr.DataArray(X[:60].reshape(20, 3, 3), dims=("time", "lat", "lon"))
PERIODIC = Landmarks(dsp.kernels.Periodic(GAUSSIAN, (3.0, None, None)), 10)

EARLY: dict[str, Callable[[], Any]] = {
    # data
    "compute_chunk_sizes": lambda: make().fit(LAZY[LAZY[:, 0] > 0]),
    "n_landmarks": lambda: make(basis=Landmarks("auto", 20)).fit(Rows(X[:19], standardize=True)),
    "'malt'": lambda: make().fit(Rows(X, columns=["malt"])),
    "standardize": lambda: Rows(X, standardize="no"),
    "'tim'": lambda: make().fit(Rows(FIELD, sample_dims="tim")),
    "X[1]": lambda: make(Transfer(1)).fit([WALK, X]),
    "sample_weight": lambda: make().fit(X, sample_weight=np.ones(3)),
    "periods": lambda: make(basis=PERIODIC).plan(Rows(X, standardize=True)),
    "columns=": lambda: dsp.KernelEmbedding().fit(Rows(X, columns=[0])),
    "DiffusionMap": lambda: dsp.DiffusionMap().fit(Rows(X, standardize=True)),
    "KernelEmbedding": lambda: dsp.KernelEmbedding().fit(Rows(X, on_invalid="skip")),
    "views of each row for cross: (x, y)": lambda: dsp.CCA(1).fit(X),
    # words and numbers
    "checkpoint must": lambda: make().fit(X, checkpoint=3),
    "checkpoint_every": lambda: make().fit(X, checkpoint_every="a"),
    "progress": lambda: make().fit(X, progress="yes"),
    "did you mean gaussian": lambda: Landmarks("gausian"),
    "right_basis": lambda: make(Cross(), right_basis="landmark").fit((X, X)),
    "basis must": lambda: make(basis="auto").set_params(basis__n_frequencies=3),
    "with parameters": lambda: make(basis=dsp.basis.ConstantBasis(2)).set_params(basis__size=3),
    "Sphere(d=5)": lambda: make(dsp.operators.Laplacian(dsp.manifolds.Sphere(5))).fit(X),
    "got 'cut'": lambda: make(solver="cut").fit(X),
    # operators, and what comes after a fit
    "lag": lambda: make(Transfer(500)).fit(WALK),
    "2 views": lambda: make(Cross()).fit(X),
    "3000 rows": lambda: make(Cross()).fit((X, X[:10])),
    "fields v": lambda: make(Schroedinger("v")).fit(X),
    "solver='eigen'": lambda: dsp.operators.BilinearForm(dirichlet, "eigen", descending=True),
    "descending": lambda: dsp.operators.BilinearForm(dirichlet, SymmetricPencil(descending=True)),
}


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("name", EARLY)
def test_a_mistake_is_an_error_before_any_task(name: str) -> None:
    with pytest.raises((ValueError, TypeError, OSError)) as found:
        EARLY[name]()
    assert name in str(found.value)
    assert len(str(found.value)) < 700


LATE: dict[str, Callable[[dsp.SpectralDecomposition, Path], Any]] = {
    "sample weights": lambda m, p: make().fit(X, sample_weight=np.zeros(len(X))),
    "distinct values": lambda m, p: make(folds=np.zeros(len(X), int)).fit(X),
    "x.zarr": lambda m, p: dsp.load(zarr.create_array(p / "x.zarr", data=X).store.root),
    "out.zarr": lambda m, p: [m.transform(X, out=p / "out.zarr") for _ in range(2)],
    "Covariance()": lambda m, p: dsp.Koopman(right_basis=None).fit_moments(dsp.EOF(2).fit(X).moments_),
    "Circle()": lambda m, p: dsp.InvariantRegressor(dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)).fit(
        X[:, :2], X[:, 0]
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_a_mistake_is_an_error_that_names_what_came(
    name: str, fitted: dsp.SpectralDecomposition, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError, OSError)) as found:
        LATE[name](fitted, tmp_path)
    assert name in str(found.value)


def test_numbers_that_overflow(fitted: dsp.SpectralDecomposition) -> None:
    with pytest.raises(ValueError, match="finite"):
        make(basis=Landmarks(dsp.kernels.Polynomial(6), 20)).fit(1e60 * X)
    few = X[:60].copy()
    few[3, 1] = -1e160
    for model in (make(), dsp.DiffusionMap(2.0), dsp.SDPEmbedding(2.0), dsp.KernelEmbedding()):
        with pytest.raises(dsp.InvalidRowError) as caught:
            model.fit(few)
        assert (caught.value.row, caught.value.column) == (3, 1)
    found = np.asarray(fitted.transform(Rows(few, on_invalid="skip")))
    assert np.flatnonzero(np.isnan(found).all(axis=1)).tolist() == [3]
    for unit in (1e-300, 1e150):
        with pytest.raises(ValueError, match="median"):
            make(basis=Landmarks(Gaussian("median"), 20)).fit(unit * X)


def test_ranks_below_the_requested_number_are_warned_of() -> None:
    with pytest.warns(dsp.RankWarning):
        estimator = make(basis=Landmarks(dsp.kernels.Polynomial(1), 20)).fit(X)
    assert estimator.transform(X).shape == (len(X), len(estimator.eigenvalues_)) == (len(X), 4)
    with pytest.warns(dsp.RankWarning, match="8 of 20"):
        make(basis=Landmarks(GAUSSIAN, 20, drop_landmark_rows=False)).fit(np.repeat(X[:8], 100, axis=0))
    with pytest.raises(ValueError, match="median"):
        make(basis=Landmarks(Gaussian("median"), 20)).fit(np.ones((100, 2)))
