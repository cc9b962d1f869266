"""What users try first: fit(x, y) for two views, rows of scipy.sparse, and matrices of affinities."""

import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.basis import Landmarks
from daskspectral.data.readers import ArrayReader
from daskspectral.kernels import Gaussian
from daskspectral.operators import Covariance, Cross, Laplacian, Transfer
from tests.common import doubtful

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
Y = np.tanh(X @ rng.standard_normal((3, 2))) + 0.3 * rng.standard_normal((200, 2))
FITTED: Any = Landmarks(Gaussian(2.0), 15, method="uniform")


def model(operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    given = {"basis": FITTED, "n_components": 3, "folds": None, "random_state": 0}
    return dsp.SpectralDecomposition(operator, **given | options)


# -- two views ---------------------------------------------------------------------------------------------------------


VIEWS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda x: x,
    "pandas": lambda x: pd.DataFrame(x).add_prefix("c"),
    "dask": lambda x: da.from_array(x, chunks=(70, -1)),
    "xarray": lambda x: xr.DataArray(x, dims=("time", f"part{x.shape[1]}")),
    "Rows": Rows,
}


@doubtful
@pytest.mark.parametrize("kind", VIEWS)
def test_the_second_view_may_be_y(kind: str) -> None:
    make = VIEWS[kind]
    wanted, found = model(Cross()).fit((X, Y)), model(Cross()).fit(make(X), make(Y))
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-10)
    assert found.score(make(X), make(Y)) == pytest.approx(wanted.score((X, Y)))
    again = model(Cross()).fit_transform(make(X), make(Y))
    np.testing.assert_allclose(np.asarray(again), wanted.transform(X), rtol=1e-8, atol=1e-10)


@doubtful
def test_pipelines_and_cross_validation_pass_the_second_view() -> None:
    pipe = make_pipeline(StandardScaler(), model(Cross())).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    wanted = model(Cross()).fit((scaled, Y))
    np.testing.assert_array_equal(pipe[-1].singular_values_, wanted.singular_values_)
    assert pipe.score(X, Y) == wanted.score((scaled, Y))
    assert np.isfinite(cross_val_score(model(Cross()), X, Y, cv=3)).all()


@doubtful
@pytest.mark.parametrize("operator", [Laplacian(), Transfer(1)])
def test_other_operators_ignore_y(operator: Any) -> None:
    ours, wanted = model(operator).fit(X, Y), model(operator).fit(X)
    for name in {"eigenvalues_", "singular_values_"} & {*vars(wanted)}:
        np.testing.assert_array_equal(getattr(ours, name), getattr(wanted, name))
    assert ours.score(X, Y) == wanted.score(X)


# -- sparse rows -------------------------------------------------------------------------------------------------------


THIN = np.where(rng.random((300, 8)) < 0.7, 0.0, rng.standard_normal((300, 8)))
SPARSE = [
    *(getattr(scipy.sparse, f"{kind}_{form}") for kind in ("csr", "csc", "coo", "lil") for form in ("matrix", "array")),
    scipy.sparse.bsr_array,
    scipy.sparse.dok_array,
]


@doubtful
@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_rows_give_what_dense_ones_give(kind: Any) -> None:
    sparse = kind(THIN)
    wanted, found = model().fit(THIN[:200]), model().fit(kind(THIN[:200]))
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.transform(sparse), wanted.transform(THIN), rtol=1e-8, atol=1e-10)
    assert isinstance(found.transform(sparse), np.ndarray)
    assert found.score(sparse) == pytest.approx(wanted.score(THIN))
    np.testing.assert_allclose(
        found.update(sparse).eigenvalues_, wanted.update(THIN).eigenvalues_, rtol=1e-9, atol=1e-12
    )


@doubtful
def test_sparse_rows_of_regressions_trajectories_and_embeddings() -> None:
    sparse = scipy.sparse.csr_array(THIN)
    y = np.sin(THIN[:, 0])
    regressor = dsp.HermiteRegressor(FITTED, alpha=1e-3, random_state=0)
    np.testing.assert_allclose(
        regressor.fit(sparse, y).predict(sparse), regressor.fit(THIN, y).predict(THIN), rtol=1e-8
    )
    assert regressor.score(sparse, y) == pytest.approx(regressor.score(THIN, y))
    halves = [THIN[:150], THIN[150:]]
    found, wanted = (model(Transfer(1)).fit(x) for x in ([*map(scipy.sparse.csr_array, halves)], halves))
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-10)
    pair = model(Cross()).fit(sparse, scipy.sparse.csr_array(THIN[:, :2] ** 2))
    np.testing.assert_allclose(
        pair.singular_values_, model(Cross()).fit(THIN, THIN[:, :2] ** 2).singular_values_, rtol=1e-10
    )
    rows = Rows(sparse, columns=[1, 3], standardize=True)
    np.testing.assert_allclose(
        model().fit(rows).eigenvalues_,
        model().fit(Rows(THIN, columns=[1, 3], standardize=True)).eigenvalues_,
        rtol=1e-9,
    )
    embedded = dsp.DiffusionMap(3.0, n_components=2)
    np.testing.assert_allclose(embedded.fit_transform(sparse), embedded.fit_transform(THIN), rtol=1e-8, atol=1e-10)


@doubtful
def test_each_task_makes_only_its_own_rows_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    read = ArrayReader.read

    def counted(self: ArrayReader, start: int, stop: int) -> np.ndarray:
        if self.is_sparse:
            made.append(stop - start)
        return read(self, start, stop)

    monkeypatch.setattr(ArrayReader, "read", counted)
    wide = scipy.sparse.random_array((40_000, 300), density=0.001, rng=np.random.default_rng(0), format="csr")
    with dask.config.set(scheduler="synchronous"):
        model(Covariance(), basis=None).fit(wide)
    assert sum(made) >= 40_000
    assert max(made) * 300 * 8 <= 1 << 23


# -- matrices of affinities --------------------------------------------------------------------------------------------


SQUARE = rbf_kernel(X[:60])


@doubtful
@pytest.mark.parametrize(
    "make", [np.asarray, pd.DataFrame, xr.DataArray, scipy.sparse.csr_array, scipy.sparse.csr_matrix]
)
def test_a_symmetric_matrix_is_taken_as_rows_with_a_hint(make: Any) -> None:
    with pytest.warns(UserWarning, match="affinities"):
        model().fit(make(SQUARE))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*affinities")
        model().fit(make(SQUARE + np.triu(SQUARE)))
        model().fit(make(SQUARE[:, :-1]))
