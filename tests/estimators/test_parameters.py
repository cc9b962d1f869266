"""What parameters do; models saved bit for bit; weights and warnings in compositions of scikit-learn."""

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.kernels import Gaussian, Matern
from daskspectral.landmarks import METHODS
from daskspectral.operators import Covariance, Transfer
from daskspectral.solvers import Regularized
from tests.common import assert_same_bits, assert_same_moments, reloaded, unreliable
from tests.estimators.common import GAUSSIAN, Array, N, X, hermite, make, model

pytestmark = unreliable


@pytest.mark.usefixtures("small_tasks")
def test_standardize_and_columns_are_manual_preprocessing() -> None:
    wide, weight = np.column_stack([X, np.full(N, np.nan)]), np.random.default_rng(1).integers(0, 3, N)
    x = da.from_array(wide, chunks=(700, 2))
    estimator = make().fit(Rows(x, standardize=True, columns=[2, 0]), sample_weight=weight)
    twice = np.repeat(X, weight, axis=0)
    z = ((X - twice.mean(axis=0)) / twice.std(axis=0))[:, [2, 0]]
    manual = make().fit(z, sample_weight=weight)
    assert_same_moments(estimator.moments_, manual.moments_, 1e-11)
    embeddings = np.abs(estimator.transform(wide)), np.abs(manual.transform(z))
    assert_allclose(*embeddings, rtol=1e-6, atol=1e-7)


def test_eigenfunctions_are_orthonormal_on_rows_that_are_no_landmarks() -> None:
    fitted = make(basis=Landmarks(GAUSSIAN, 20, drop_landmark_rows=True)).fit(X)
    rows = ~(X[:, None] == fitted.basis_.parts[-1].landmarks).all(axis=2).any(axis=1)
    assert fitted.moments_.count == rows.sum() == N - 20
    u = fitted.transform(X[rows])
    assert_allclose(u.T @ u / len(u), np.eye(5), atol=1e-8)
    assert (fitted.residuals_ < 1e-8).all()
    near = Landmarks(GAUSSIAN, points=X[:20] + 1e-9, drop_landmark_rows=True)
    assert make(basis=near).fit(X).moments_.count == N


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", METHODS)
def test_landmarks_do_not_depend_on_the_chunks(method: str) -> None:
    def landmarks(x: Any, seed: Any = 0) -> Array:
        estimator = make(basis=Landmarks(GAUSSIAN, 20, method=method, n_candidates=500), random_state=seed).fit(x)
        return np.asarray(estimator.basis_.parts[-1].landmarks)

    wanted = landmarks(X)
    assert len(np.unique(wanted, axis=0)) == 20
    assert (wanted[:, None] == X).all(axis=2).any(axis=1).all()
    assert_array_equal(landmarks(da.from_array(X, chunks=111), np.random.default_rng(0)), wanted)
    assert not np.array_equal(landmarks(X, seed=1), wanted)


@pytest.mark.slow
def test_rows_that_are_computed_on_the_way_choose_what_stored_rows_in_the_same_chunks_choose() -> None:
    x = np.random.default_rng(0).standard_normal((320, 3)).cumsum(axis=0)
    components = dsp.SpectralDecomposition(Covariance(), n_components=2).fit(x)
    computed = components.transform(da.from_array(x, chunks=(2, 3)))
    stored = da.from_array(np.asarray(computed), chunks=computed.chunks)
    estimator = make(Transfer(1), Landmarks(Gaussian("auto"), 5), solver=Regularized(1.0), n_components=3)
    assert_same_bits(*(clone(estimator).fit(z).moments_ for z in (computed, stored)))


def test_an_object_that_is_changed_in_place_changes_no_fitted_model() -> None:
    kernel, x = Gaussian(0.7), X[:400]
    points = dsp.basis.LandmarkBasis(kernel, x[:20])
    models = [make(basis=dsp.basis.Concatenated((dsp.basis.ConstantBasis(3), points))).fit(x)]
    models.append(dsp.HermiteRegressor(FourierBasis(3, kernel=kernel)).fit(x, x[:, 0]))
    models.append(make(basis=Landmarks(Gaussian("auto"), 10)).fit(x))
    before = [str(model.kernel_) for model in models], models[0].transform(x[:5])
    kernel.set_params(scale=9.0)
    models[2].search_results_.best_params["basis"].kernel.set_params(scale=9.0)
    assert [str(model.kernel_) for model in models] == before[0]
    assert_array_equal(models[0].transform(x[:5]), before[1])
    assert str(models[1].search_results_.best_params["basis"].kernel) == before[0][1]


def test_a_network_has_parameters() -> None:
    model = dsp.SpectralDecomposition(basis=dsp.basis.NeuralBasis((8,))).set_params(basis__steps=5)
    assert (model.get_params()["basis__steps"], clone(model).basis.hidden) == (5, (8,))


def test_functions_and_kernels_by_their_names() -> None:
    """A name is the object that it stands for, in a fit, a search and a file."""
    assert Landmarks("matern:1.5:0.3").kernel == Matern(1.5, 0.3)
    assert clone(Landmarks("auto")).set_params(kernel="matern:1.5:auto", kernel__scale=0.2).kernel == Matern(1.5, 0.2)
    assert FourierBasis(3, kernel="gaussian:auto") == FourierBasis(3, kernel=Gaussian("auto"))
    x, pair = X[:60, :2], (FourierBasis(), "fourier")
    same, model = (dsp.SpectralDecomposition(basis=b, n_components=3, random_state=0).fit(x) for b in pair)
    assert_array_equal(model.eigenvalues_, same.eigenvalues_)
    again = reloaded(model)
    assert again.basis == "fourier"
    assert_array_equal(again.fit_moments(model.moments_).eigenvalues_, model.eigenvalues_)
    regressors = (dsp.HermiteRegressor(b, alpha=1e-3, random_state=0) for b in (Landmarks(), "landmarks"))
    plain, named = (each.fit(x[:, :1], x[:, 0]) for each in regressors)
    assert_array_equal(plain.predict(x[:9, :1]), named.predict(x[:9, :1]))
    searched = clone(model).set_params(basis__n_frequencies=3)
    assert searched.basis == clone(same).set_params(basis="fourier", basis__n_frequencies=3).basis == FourierBasis(3)
    plain, named = (dsp.KernelEmbedding(kernel).fit(x[:30]) for kernel in (Matern(1.5, 0.3), "matern:1.5:0.3"))
    assert_array_equal(plain.spectrum_, named.spectrum_)


@pytest.mark.parametrize("unit", [2.0**-240, 2.0**240])
def test_spectra_scale_with_powers_of_any_unit(unit: float) -> None:
    basis = Landmarks(Gaussian("median"), 20)
    x = X[:500]
    plain, found = (make(basis=basis).fit(u * x).eigenvalues_ for u in (1.0, unit))
    assert_allclose(found * unit**2, plain, rtol=1e-9, atol=1e-9)
    estimator, unit = dsp.SpectralDecomposition(Covariance(), n_components=3, folds="blocks"), unit**2
    plain, found = (clone(estimator).fit(u * x) for u in (1.0, unit))
    for name in ("eigenvalues_", "standard_errors_", "validation_values_"):
        assert_allclose(getattr(found, name) / unit / unit, getattr(plain, name), rtol=1e-12)


def test_a_failed_fit_leaves_the_estimator_as_it_was(fitted: dsp.SpectralDecomposition) -> None:
    estimator = clone(fitted).fit(X)
    with pytest.raises(dsp.InvalidRowError):
        estimator.fit(np.full_like(X, np.nan))
    np.testing.assert_array_equal(estimator.transform(X[:5]), fitted.transform(X[:5]))


RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(150, 3))
Y = np.sin(TABLE[:, 0]) + TABLE[:, 1]
SLOPES = np.column_stack([np.cos(TABLE[:, 0]), np.ones(150), np.zeros(150)])
W = RNG.integers(0, 4, 150).astype(float)


def test_a_model_that_reads_and_chooses_is_saved_bit_for_bit() -> None:
    rows = dsp.Rows(X[:1000], standardize=True, columns=np.array([-1, 0]))
    basis = Landmarks(Gaussian("median") + Matern(2.5, "median"), 20)
    model = make(basis=basis, dtype="float32", random_state=np.int64(3), n_components=np.int32(4)).fit(rows)
    again = reloaded(model)
    assert_same_bits(again.moments_, model.moments_)
    for name in ("eigenvalues_", "coefficients_", "residuals_", "support_", "rank_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.fit(rows).eigenvalues_, model.eigenvalues_)


# -- compositions ------------------------------------------------------------------------------------------------------


def test_routing_of_weights_and_gradients() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        regressor = hermite().set_fit_request(sample_weight=True, gradients=True).set_score_request(sample_weight=True)
        found = cross_val_score(regressor, TABLE, Y, cv=3, params={"sample_weight": W, "gradients": SLOPES})
        asked = model().set_fit_request(sample_weight=True)
        pipe = make_pipeline(asked, Ridge().set_fit_request(sample_weight=False)).fit(TABLE, Y, sample_weight=W)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(hermite(), TABLE, Y, params={"sample_weight": W})
    for score, (a, b) in zip(found, KFold(3).split(TABLE), strict=True):
        assert score == hermite().fit(TABLE[a], Y[a], SLOPES[a], sample_weight=W[a]).score(TABLE[b], Y[b], W[b])
    np.testing.assert_array_equal(pipe[0].transform(TABLE), model().fit(TABLE, sample_weight=W).transform(TABLE))


def test_warnings_point_at_the_call_of_scikit_learn_and_are_silent_in_a_search() -> None:
    pipe, rows = make_pipeline(StandardScaler(), dsp.InvariantRegressor()), pd.DataFrame(RNG.normal(size=(20, 8)))
    with pytest.warns(dsp.FitWarning, match="9 functions") as caught:
        make_pipeline(pipe).fit(rows[:10], Y[:10])
    assert {warning.filename for warning in caught} == {__file__}
    cross_val_score(make_pipeline(pipe), rows, Y[:20], cv=2)  # warnings are errors
