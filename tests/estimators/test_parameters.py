"""SpectralDecomposition: what each parameter does; bad input is refused before a task is sent; doubts are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.basis import FourierLattice, Landmarks
from daskspectral.kernels import Gaussian, Matern, Polynomial
from daskspectral.landmarks import METHODS
from daskspectral.operators import Covariance, Cross
from daskspectral.solvers import Cut
from tests.common import assert_same_moments, doubtful
from tests.estimators.common import GAUSSIAN, Array, N, X, make

pytestmark = doubtful


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
    fitted = make(basis=Landmarks(GAUSSIAN, 20, exclude=True)).fit(X)
    rows = ~(X[:, None] == fitted.basis_.parts[-1].landmarks).all(axis=2).any(axis=1)
    assert fitted.moments_.count == rows.sum() == N - 20
    u = fitted.transform(X[rows])
    assert_allclose(u.T @ u / len(u), np.eye(5), atol=1e-8)
    assert (fitted.residuals_ < 1e-8).all()
    near = Landmarks(GAUSSIAN, points=X[:20] + 1e-9, exclude=True)
    assert make(basis=near).fit(X).moments_.count == N


def test_constant_on_and_off(fitted: dsp.SpectralDecomposition) -> None:
    assert abs(fitted.eigenvalues_[0]) < 1e-12
    without = make(basis=Landmarks(GAUSSIAN, 20, constant=False)).fit(X)
    assert without.basis_.size == fitted.basis_.size - 1 == 20
    assert 1e-9 < without.eigenvalues_[0] < 0.1


def test_user_landmarks_are_prepared_and_copied() -> None:
    landmarks = X[:30].copy()
    estimator = make(basis=Landmarks(GAUSSIAN, 10**6, points=landmarks))
    estimator.fit(Rows(X, standardize=True, columns=[0, 2]))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(estimator.basis_.parts[-1].landmarks, z[:30, [0, 2]], rtol=1e-12)
    landmarks *= 3
    assert_allclose(estimator.basis_.parts[-1].landmarks, z[:30, [0, 2]], rtol=1e-12)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", METHODS)
def test_landmarks_do_not_depend_on_the_chunks(method: str) -> None:
    def landmarks(x: Any, seed: Any = 0) -> Array:
        estimator = make(basis=Landmarks(GAUSSIAN, 20, method=method, sample=500), random_state=seed).fit(x)
        return np.asarray(estimator.basis_.parts[-1].landmarks)

    wanted = landmarks(X)
    assert len(np.unique(wanted, axis=0)) == 20
    assert (wanted[:, None] == X).all(axis=2).any(axis=1).all()
    assert_array_equal(landmarks(da.from_array(X, chunks=111), np.random.default_rng(0)), wanted)
    assert not np.array_equal(landmarks(X, seed=1), wanted)


def test_functions_and_kernels_by_their_names(tmp_path: Path) -> None:
    """A name is the object that it stands for, in a fit, a search and a file."""
    assert Landmarks("matern:1.5:0.3").kernel == Matern(1.5, 0.3)
    assert clone(Landmarks("auto")).set_params(kernel="matern:1.5:auto", kernel__scale=0.2).kernel == Matern(1.5, 0.2)
    assert FourierLattice(3, kernel="gaussian:auto") == FourierLattice(3, kernel=Gaussian("auto"))
    x = X[:120, :2]
    for name, basis in (("landmarks", Landmarks()), ("fourier", FourierLattice())):
        model, same = (dsp.SpectralDecomposition(basis=b, n_components=3, random_state=0) for b in (name, basis))
        assert_array_equal(model.fit(x).eigenvalues_, same.fit(x).eigenvalues_)
        model.save(tmp_path / name)
        again = dsp.load(tmp_path / name)
        assert again.basis == name
        assert_array_equal(again.fit_moments(model.moments_).eigenvalues_, model.eigenvalues_)
    plain, named = (dsp.HermiteRegressor(b, alpha=1e-3).fit(x[:, :1], x[:, 0]) for b in (basis, name))
    assert_array_equal(plain.predict(x[:9, :1]), named.predict(x[:9, :1]))
    searched = clone(model).set_params(basis__m=3)
    assert searched.basis == clone(same).set_params(basis="fourier", basis__m=3).basis == FourierLattice(3)
    plain, named = (dsp.KernelEmbedding(kernel).fit(x[:30]) for kernel in (Matern(1.5, 0.3), "matern:1.5:0.3"))
    assert_array_equal(plain.spectrum_, named.spectrum_)


LARGE = dsp.operators.Laplacian(dsp.manifolds.Sphere(5))
SCALED = Rows(X, standardize=True)
BAD_PARAMETERS: list[Callable[[], Any]] = [
    lambda: make(n_components=True).fit(SCALED),
    lambda: make(operator=LARGE).fit(SCALED),
    lambda: make(solver="cut").fit(SCALED),
    lambda: make(solver=Cut(rtol=1.0)).fit(SCALED),
    lambda: make().fit(Rows(X, columns=[True, False, True])),
    lambda: dsp.DiffusionMap().fit(SCALED),
    lambda: dsp.KernelEmbedding().fit(Rows(X, columns=[0])),
    lambda: dsp.InvariantRegressor().fit(SCALED, X[:, 0]),
    lambda: dsp.InvariantFeatures().fit(SCALED),
    lambda: dsp.KernelEmbedding().fit(Rows(X, on_invalid="skip")),
    lambda: Rows(X, standardize="no"),
    lambda: Landmarks(count=X[:5]),
    lambda: Landmarks(1.0),
    lambda: Landmarks("gausian:1"),
    lambda: FourierLattice(3, kernel="rbf"),
    lambda: make(basis="lattice").fit(SCALED),
    lambda: make(Cross(), right_basis="landmark").fit((X, X)),
    lambda: dsp.HermiteRegressor("auto").fit(X, X[:, 0]),
    lambda: make(basis="auto").set_params(basis__m=3),
    lambda: Landmarks(method="random"),
    lambda: Landmarks(count=20, sample=19),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("call", BAD_PARAMETERS)
def test_bad_parameters_before_any_task(call: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        call()


def test_numbers_that_overflow(fitted: dsp.SpectralDecomposition) -> None:
    with pytest.raises(ValueError, match="the moments are not finite"):
        make(basis=Landmarks(Polynomial(6), 20)).fit(1e60 * X)
    few = X[:60].copy()
    few[3, 1] = -1e160
    for model in (make(), dsp.DiffusionMap(2.0), dsp.SDPEmbedding(2.0), dsp.KernelEmbedding()):
        with pytest.raises(dsp.InvalidRowError, match=r"row 3 .* X holds -1e\+160 in column 1"):
            model.fit(few)
    found = np.asarray(fitted.transform(Rows(da.from_array(few, chunks=(2, -1)), on_invalid="skip")))
    assert np.flatnonzero(np.isnan(found).all(axis=1)).tolist() == [3]


@pytest.mark.parametrize("unit", [2.0**-480, 2.0**480])
def test_variances_and_their_errors_scale_with_the_square_of_any_unit(unit: float) -> None:
    estimator = dsp.SpectralDecomposition(Covariance(), n_components=3, folds="blocks")
    plain, found = (clone(estimator).fit(u * X) for u in (1.0, unit))
    for name in ("eigenvalues_", "standard_errors_", "held_out_"):
        np.testing.assert_allclose(getattr(found, name) / unit / unit, getattr(plain, name), rtol=1e-12)


def test_a_failed_fit_leaves_the_estimator_as_it_was(fitted: dsp.SpectralDecomposition) -> None:
    estimator = clone(fitted).fit(X)
    with pytest.raises(dsp.InvalidRowError):
        estimator.fit(np.full_like(X, np.nan))
    np.testing.assert_array_equal(estimator.transform(X[:5]), fitted.transform(X[:5]))
