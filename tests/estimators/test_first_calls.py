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

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.data.readers import ArrayReader
from daskspectral.operators import Augmentation, Covariance, Cross, Transfer
from tests.common import unreliable
from tests.estimators.common import model

pytestmark = unreliable

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
Y = np.tanh(X @ rng.standard_normal((3, 2))) + 0.3 * rng.standard_normal((200, 2))


# -- two views ---------------------------------------------------------------------------------------------------------


VIEWS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda x: x,
    "pandas": lambda x: pd.DataFrame(x).add_prefix("c"),
    "dask": lambda x: da.from_array(x, chunks=(70, -1)),
    "xarray": lambda x: xr.DataArray(x, dims=("time", f"part{x.shape[1]}")),
    "Rows": Rows,
}


@pytest.mark.parametrize("kind", VIEWS)
def test_the_second_view_may_be_y(kind: str) -> None:
    make = VIEWS[kind]
    wanted, found = model(Cross()).fit((X, Y)), model(Cross()).fit(make(X), make(Y))
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-10)
    assert found.score(make(X), make(Y)) == pytest.approx(wanted.score((X, Y)))
    again = model(Cross()).fit_transform(make(X), make(Y))
    np.testing.assert_allclose(np.asarray(again), wanted.transform(X), rtol=1e-8, atol=1e-10)


def test_updates_and_plans_accept_the_second_view_as_y() -> None:
    found, wanted = model(Cross()).fit(X[:150], Y[:150]), model(Cross()).fit((X[:150], Y[:150]))
    found.update(X, Y), wanted.update((X, Y))
    np.testing.assert_array_equal(found.singular_values_, wanted.singular_values_)
    assert model(Cross()).plan(X, Y).ranges == model(Cross()).plan((X, Y)).ranges
    wanted, found = (model(Augmentation()).fit(*given) for given in (((X, X + 0.1),), (X, X + 0.1)))
    np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)


# -- sparse rows -------------------------------------------------------------------------------------------------------


THIN = np.where(rng.random((300, 8)) < 0.7, 0.0, rng.standard_normal((300, 8)))
SPARSE = [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array, scipy.sparse.dok_array]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_rows_equal_dense_rows(kind: Any) -> None:
    sparse = kind(THIN)
    wanted, found = model().fit(THIN[:200]), model().fit(kind(THIN[:200]))
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.transform(sparse), wanted.transform(THIN), rtol=1e-8, atol=1e-10)
    assert isinstance(found.transform(sparse), np.ndarray)
    assert found.score(sparse) == pytest.approx(wanted.score(THIN))
    found.update(sparse), wanted.update(THIN)
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9, atol=1e-12)


def test_sparse_rows_of_other_estimators_and_of_views() -> None:
    sparse, y = scipy.sparse.csr_array(THIN), np.sin(THIN[:, 0])
    halves = [THIN[:150], THIN[150:]]
    regressor, embedding = dsp.HermiteRegressor(model().basis, alpha=1e-3, random_state=0), dsp.DiffusionMap(3.0)
    for call, some, plain in (
        (lambda x: regressor.fit(x, y).predict(x), sparse, THIN),
        (lambda x: model(Transfer(1)).fit(x).singular_values_, [*map(scipy.sparse.csr_array, halves)], halves),
        (lambda x: model(Cross()).fit(x[:, :5], x[:, 5:]).singular_values_, sparse, THIN),
        (lambda x: model().fit(Rows(x, columns=[1, 3], standardize=True)).eigenvalues_, sparse, THIN),
        (lambda x: np.abs(embedding.fit_transform(x)), sparse, THIN),
    ):
        np.testing.assert_allclose(call(some), call(plain), rtol=1e-8, atol=1e-10)


def test_each_task_makes_only_its_rows_dense(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_a_symmetric_matrix_is_taken_as_rows_with_a_hint(make: Any) -> None:
    with pytest.warns(UserWarning, match="symmetric"):
        model().fit(make(SQUARE))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*symmetric")
        model().fit(make(SQUARE + np.triu(SQUARE)))
        model().fit(make(SQUARE[:, :-1]))


ESTIMATORS = [dsp.SpectralDecomposition(), dsp.DiffusionMap(), dsp.SDPEmbedding(), dsp.KernelEmbedding()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_every_estimator_hints_at_affinities_and_proposes_its_input(estimator: Any) -> None:
    with pytest.warns(UserWarning, match="symmetric"):
        estimator.fit(SQUARE)
    x = X[:60, :2].copy()
    x[3, 1] = np.nan
    with pytest.raises(dsp.InvalidRowError) as caught:
        estimator.fit(x)
    skips = "on_invalid='skip'" in str(caught.value)
    assert skips != isinstance(estimator, dsp.KernelEmbedding)
    estimator.fit(Rows(x, on_invalid="skip") if skips else x[np.isfinite(x).all(axis=1)])


@pytest.mark.parametrize(
    ("rows", "columns", "model", "faster"),
    [
        (50_000_000, 3, dsp.SpectralDecomposition(), True),
        (50_000_000, 1, dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(n_landmarks=300)), True),
        (50_000_000, 3, dsp.SpectralDecomposition(basis="fourier"), False),
        (50_000_000, 4, dsp.SpectralDecomposition(), False),
        (100_000, 3, dsp.SpectralDecomposition(), False),
        (50_000_000, 3, dsp.EOF(), False),
        (50_000_000, 3, dsp.Koopman(1), False),
    ],
    ids=str,
)
def test_a_plan_reports_a_lattice_that_is_much_faster(rows: int, columns: int, model: Any, faster: bool) -> None:
    plan = model.plan(np.broadcast_to(np.zeros(columns), (rows, columns)))
    assert ("with basis=FourierBasis()" in str(plan)) == (plan.faster is not None) == faster
    if plan.faster is not None:
        assert 4 * plan.faster < plan.seconds
        assert plan.faster == pytest.approx({1: 5.7, 3: 35}[columns], rel=0.3)  # measured on a core of an Intel Xeon
