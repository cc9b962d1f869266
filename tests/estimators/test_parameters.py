"""SpectralDecomposition: what each parameter does."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import daskspectral as dsp
from daskspectral.landmarks import METHODS
from tests.common import assert_same_moments
from tests.estimators.common import Array, N, X, make


@pytest.mark.usefixtures("small_tasks")
def test_standardize_and_columns_are_manual_preprocessing() -> None:
    wide, weight = np.column_stack([X, np.full(N, np.nan)]), np.random.default_rng(1).integers(0, 3, N)
    x = da.from_array(wide, chunks=(700, 2))
    estimator = make(standardize=True, columns=[2, 0]).fit(x, sample_weight=weight)
    twice = np.repeat(X, weight, axis=0)
    z = ((X - twice.mean(axis=0)) / twice.std(axis=0))[:, [2, 0]]
    manual = make().fit(z, sample_weight=weight)
    assert_same_moments(estimator.moments_, manual.moments_, 1e-11)
    embeddings = np.abs(estimator.transform(wide)), np.abs(manual.transform(z))
    assert_allclose(*embeddings, rtol=1e-6, atol=1e-7)


def test_eigenfunctions_are_orthonormal_on_rows_that_are_no_landmarks() -> None:
    fitted = make(exclude_landmarks=True).fit(X)
    rows = ~(X[:, None] == fitted.basis_.parts[-1].landmarks).all(axis=2).any(axis=1)
    assert fitted.moments_.count == rows.sum() == N - 20
    u = fitted.transform(X[rows])
    assert_allclose(u.T @ u / len(u), np.eye(5), atol=1e-8)
    assert (fitted.residuals_ < 1e-8).all()
    assert make(landmarks=X[:20] + 1e-9, exclude_landmarks=True).fit(X).moments_.count == N


def test_constant_on_and_off(fitted: dsp.SpectralDecomposition) -> None:
    assert abs(fitted.eigenvalues_[0]) < 1e-12
    without = make(constant=False).fit(X)
    assert without.basis_.size == fitted.basis_.size - 1 == 20
    assert 1e-9 < without.eigenvalues_[0] < 0.1


def test_user_landmarks_are_prepared_and_copied() -> None:
    landmarks = X[:30].copy()
    estimator = make(landmarks=landmarks, n_landmarks=10**6, standardize=True, columns=[0, 2]).fit(X)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(estimator.basis_.parts[-1].landmarks, z[:30, [0, 2]], rtol=1e-12)
    landmarks *= 3
    assert_allclose(estimator.basis_.parts[-1].landmarks, z[:30, [0, 2]], rtol=1e-12)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", METHODS)
def test_landmarks_do_not_depend_on_the_chunks(method: str) -> None:
    def landmarks(x: Any, seed: Any = 0) -> Array:
        estimator = make(landmarks=method, landmark_sample=500, random_state=seed).fit(x)
        return np.asarray(estimator.basis_.parts[-1].landmarks)

    wanted = landmarks(X)
    assert len(np.unique(wanted, axis=0)) == 20
    assert (wanted[:, None] == X).all(axis=2).any(axis=1).all()
    assert_array_equal(landmarks(da.from_array(X, chunks=111), np.random.default_rng(0)), wanted)
    assert not np.array_equal(landmarks(X, seed=1), wanted)
