"""Mistakes of a first week, fifty and more: each is one error, of what came, and what is wanted or what to do."""

import re
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
MISTAKES: dict[str, tuple[Callable[[Fits, Path], Any], str]] = {
    # data
    "NaN": (lambda m, p: model().fit(np.where(X > 2, np.nan, X)), "row 39 .* NaN in column 1.*on_invalid='skip'"),
    "land": (
        lambda m, p: model(Covariance()).fit(dsp.Rows(LAND, sample_dims="time")),
        r"time=2000-01-01.*lat=0, lon=2.*skip",
    ),
    "land and seasons": (
        lambda m, p: model(Covariance()).fit(dsp.Rows(LAND, sample_dims="time", anomaly="month")),
        r"lat=0, lon=2.* skipping leaves out 1 of 20 columns",
    ),
    "one column": (lambda m, p: model().fit(X[:, 0]), r"shape \(300,\).*reshape\(-1, 1\)"),
    "no rows": (lambda m, p: model().fit(X[:0]), "0 sample.*Look at what selected them"),
    "text": (lambda m, p: model().fit(np.array([["a", "b"]] * 9)), "dtype <U1.*astype"),
    "complex": (lambda m, p: model().fit(X + 1j), "complex128; split real and imaginary parts"),
    "no such path": (lambda m, p: model().fit(p / "none.zarr"), "none.zarr: the path does not exist"),
    "few rows": (lambda m, p: model().fit(X[:5]), "20 landmarks .* has 5 rows: lower their count"),
    "no such column": (lambda m, p: model().fit(dsp.Rows(X, columns=[5])), r"from 0 to 1; got \[5\]"),
    "names of none": (lambda m, p: model().fit(dsp.Rows(X, columns=["a"])), "have no names. .* numbers, from 0 to 1"),
    "names of columns": (
        lambda m, p: model().fit(dsp.Rows(pd.DataFrame(X, columns=["a", "b"]), columns=["c"])),
        r"no columns \['c'\]; its columns are 'a', 'b'",
    ),
    "kernel for functions": (lambda m, p: model(basis="gaussian:3").fit(X), r"give Landmarks\('gaussian:3'\)"),
    "angles": (
        lambda m, p: (
            Model(Transfer(1), dsp.basis.TrigonometricBasis((6.3,), 2), n_components=2, folds=None)
            .fit(WALK % 6.3)
            .forecast(WALK)
        ),
        "angles have no mean .* cosines and sines",
    ),
    "other columns": (lambda m, p: m["laplacian"].transform(X[:, :1]), "1 features, .* expecting 2"),
    "what to skip": (lambda m, p: dsp.Rows(X, on_invalid="drop"), "on_invalid must .* got 'drop'"),
    "dimension": (
        lambda m, p: model().fit(dsp.Rows(FIELD, sample_dims="tim")),
        r"'tim', and X has the dimensions \('time', 'lat', 'lon'\)",
    ),
    "latitude": (
        lambda m, p: model().fit(dsp.Rows(FIELD, sample_dims="time", latitude="latitude")),
        r"'latitude' is no coordinate of X, which has \['lat'",
    ),
    "times": (
        lambda m, p: model().fit(dsp.Rows(xr.DataArray(X, dims=("a", "b")), sample_dims="a", anomaly="month")),
        r"rows of X, which .* \('a',\); got none. Give sample_dims=\('time',\), or decode",
    ),
    "season": (lambda m, p: dsp.Rows(FIELD, anomaly="monthly"), "anomaly must .* got 'monthly'"),
    "trajectories": (lambda m, p: model(Transfer(1)).fit([WALK, X]), r"X\[1\] has 2 columns and X\[0\] has 1.*share"),
    "weights": (lambda m, p: model().fit(X, sample_weight=np.ones(3)), "3 rows and X has 300; .* row by row"),
    "negative weights": (lambda m, p: model().fit(X, sample_weight=X[:, 0]), "row 2 .*negative.*on_invalid='skip'"),
    "no weight": (lambda m, p: model().fit(X, sample_weight=np.zeros(300)), "total sample weight is 0; some row needs"),
    # words and numbers
    "components": (lambda m, p: model(n_components=0).fit(X), "n_components must .* got 0"),
    "kernel": (lambda m, p: Landmarks("gausian"), "did you mean gaussian.*kernels are .* or auto"),
    "basis": (lambda m, p: model(basis="landmark").fit(X), "'fourier' .*did you mean landmarks"),
    "operator": (lambda m, p: model("laplacian").fit(X), "operator must .* got 'laplacian'"),
    "class": (lambda m, p: model(dsp.operators.Laplacian).fit(X), "operator must .* got <class"),
    "solver": (lambda m, p: model(solver="cut").fit(X), r"Penalised\(penalty\) or Cut\(rtol\).* got 'cut'"),
    "folds": (lambda m, p: model(folds="block").fit(X), "'block', which is neither 'blocks' nor 'random'"),
    "one fold": (lambda m, p: model(folds=1).fit(X), "folds must .* got 1"),
    "labels": (lambda m, p: model(folds=np.zeros(300, int)).fit(X), "only 0; two at least are needed"),
    "device": (lambda m, p: model(device="gpu").fit(X), "'cpu', 'cuda' or 'auto'; it is 'gpu'"),
    "dtype": (lambda m, p: model(dtype="float16").fit(X), "dtype must .* got 'float16'"),
    "scale": (lambda m, p: Gaussian(-1.0), "scale must .* got -1.0"),
    "smoothness": (lambda m, p: Matern(0.7), "nu must .* got 0.7"),
    "parameter": (lambda m, p: model().set_params(scale=1), "Invalid parameter 'scale' .* Valid parameters are"),
    "keyword": (lambda m, p: model().fit(X, weights=1), r"fit\(X, y, sample_weight.*unexpected .* 'weights'"),
    # operators
    "lag": (lambda m, p: model(Transfer(500)).fit(WALK), "lag is 500 rows .* has 300: .* smaller lag"),
    "no lag": (lambda m, p: Transfer(0), "lag must .* got 0"),
    "one view": (lambda m, p: model(Cross()).fit(X), r"2 views of each row: fit\(\(x, y\)\)"),
    "unlike views": (lambda m, p: model(Cross()).fit((X, X[:10])), "10 rows and X has 300; .* row by row"),
    "potential": (lambda m, p: model(Schroedinger("v")).fit(X), r"fields v: give them as Rows\(X, fields="),
    "many variables": (
        lambda m, p: model(basis=FourierLattice()).fit(np.ones((100, 5))),
        "1 to 4 variables, and 5 are asked for.*kernel at landmarks",
    ),
    "modes in time": (
        lambda m, p: model(Transfer(1), basis=FourierLattice(3)).fit(WALK),
        r"FourierLattice\(m, periods=",
    ),
    # what comes after a fit
    "not fitted": (lambda m, p: model().transform(X), "not fitted yet. Call 'fit'"),
    "no model": (lambda m, p: dsp.load(p / "model.zarr"), "no saved model at .*model.zarr"),
    "an array": (lambda m, p: dsp.load(zarr.create_array(p / "x.zarr", data=X).store.root), "an array, not a model"),
    "nothing new": (lambda m, p: m["laplacian"].update(X), "300 rows, and the model has seen 300: .* nothing to add"),
    "other rows": (lambda m, p: m["laplacian"].update(np.vstack([X + 1, X])), "rows 0 to 300.*add the moments"),
    "output exists": (
        lambda m, p: [m["laplacian"].transform(X, out=p / "out.zarr") for _ in range(2)],
        "out.zarr exists .*another path, or .* overwrite=True",
    ),
    "sets": (lambda m, p: m["covariance"].metastable_sets(2), r"Transfer\(lag\) .* Covariance\(\)"),
    "many sets": (lambda m, p: m["transfer"].metastable_sets(9, WALK), "9 sets take 8 functions .* fit more"),
    "one lag": (lambda m, p: m["transfer"].chapman_kolmogorov(), r"has one: fit Transfer\(lag, further="),
    "committor": (lambda m, p: m["transfer"].committor(WALK), r"call first_passage\(X, a, b\) first"),
    "rotation": (lambda m, p: m["covariance"].rotated(1), "count must .* got 1"),
    "no targets": (lambda m, p: dsp.HermiteRegressor().fit(X), r"fit\(X, y, .*missing a required argument: 'y'"),
    "few targets": (lambda m, p: dsp.HermiteRegressor().fit(X, X[:9, 0]), "9 rows and X has 300; .* row by row"),
    "off the circle": (
        lambda m, p: dsp.InvariantRegressor(dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)).fit(X, X[:, 0]),
        r"Circle\(\).* row \d+ at distance .*project",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_error_with_a_remedy(mistake: str, fitted: Fits, tmp_path: Path) -> None:
    make, message = MISTAKES[mistake]
    with pytest.raises((ValueError, TypeError, OSError)) as found:
        make(fitted, tmp_path)
    assert re.search(message, str(found.value), re.DOTALL), found.value
    assert len(str(found.value)) < 700
