"""SpectralDecomposition: what each parameter does, and scikit-learn's conventions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.engine.sampling import draw_rows
from daskspectral.forms import form, grad, inner
from daskspectral.kernels import Exponential, Gaussian, Matern
from daskspectral.landmarks import METHODS
from daskspectral.passes import landmarks as common
from tests.common import assert_same_bits, assert_same_moments
from tests.estimators.common import Array, N, X, make


def test_float32_is_close_to_float64(fitted: dsp.SpectralDecomposition) -> None:
    single = make(dtype="float32").fit(X)
    assert_same_moments(single.moments_, fitted.moments_, 1e-5)
    assert {a.dtype for a in single.moments_.arrays.values()} == {np.dtype(float)}
    same_cut = make(dtype="float32", rtol=1e-4).fit(X), make(rtol=1e-4).fit(X)
    np.testing.assert_allclose(same_cut[0].eigenvalues_, same_cut[1].eigenvalues_, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match=r"rtol must lie in \[1e-07, 1\) for dtype float32"):
        make(dtype="float32", rtol=1e-9).fit(X)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("chunks", [None, (700, 2), (111, 3)])
def test_standardize_and_columns_are_manual_preprocessing(chunks: Any) -> None:
    x = X if chunks is None else da.from_array(X, chunks=chunks)
    estimator = make(standardize=True, columns=[2, 0], kernel=Gaussian(0.8)).fit(x)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    manual = make(kernel=Gaussian(0.8)).fit(z[:, [2, 0]])
    assert_same_moments(estimator.moments_, manual.moments_, 1e-11)
    embeddings = np.abs(estimator.transform(X)), np.abs(manual.transform(z[:, [2, 0]]))
    np.testing.assert_allclose(*embeddings, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(estimator.preparation_.mean, X.mean(axis=0)[[2, 0]], rtol=1e-13)
    assert estimator.n_features_in_ == 3


def test_constant_columns_keep_their_scale() -> None:
    x = np.column_stack([X, np.full(N, 0.1), np.zeros(N), 1e9 + X[:, 0]])
    scale = make(standardize=True).fit(x).preparation_.scale
    np.testing.assert_allclose(scale, [*X.std(axis=0), 1, 1, X[:, 0].std()], rtol=1e-6)


def test_standardize_with_weights_and_columns_that_are_not_used() -> None:
    x, weight = np.column_stack([X, np.full(N, np.nan)]), np.random.default_rng(1).integers(0, 3, N)
    estimator = make(standardize=True, columns=[0, 1, 2]).fit(x, sample_weight=weight)
    twice = np.repeat(X, weight, axis=0)
    np.testing.assert_allclose(estimator.preparation_.mean, twice.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(estimator.preparation_.scale, twice.std(axis=0), rtol=1e-12)
    for y in (x, da.from_array(x, chunks=900), xr.DataArray(x)):
        assert np.isfinite(np.asarray(estimator.transform(y))).all()


@pytest.mark.parametrize("as_kind", [np.asarray, lambda w: da.from_array(w, chunks=77), list])
def test_weight_two_is_the_row_twice(as_kind: Any) -> None:
    weight = np.random.default_rng(1).integers(0, 3, N)
    weighted = make(landmarks=X[:20]).fit(X, sample_weight=as_kind(weight))
    repeated = make(landmarks=X[:20]).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.moments_.arrays["gram"], repeated.moments_.arrays["gram"], rtol=1e-12)
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-7, atol=1e-9)
    assert weighted.moments_.weight == repeated.moments_.weight == weight.sum()


@pytest.mark.filterwarnings("ignore::daskspectral.errors.WeightWarning")  # of weights in another unit
def test_support_follows_the_weights() -> None:
    """Whole weights count rows, also 0; the unit of weights that sum to less does not matter."""
    rng = np.random.default_rng(0)
    x, landmarks = rng.standard_normal((150, 2)), rng.standard_normal((30, 2))

    def fit(x: Array, weight: Any = None) -> dsp.SpectralDecomposition:
        options = {"kernel": Gaussian(0.25), "landmarks": landmarks, "n_components": 4, "min_support": 10.0}
        with pytest.warns(dsp.RankWarning, match="min_support=10"):
            return make(**options).fit(x, sample_weight=weight)

    plain, padded = fit(x), np.concatenate([x, rng.standard_normal((400, 2))])
    counts, uneven = rng.integers(0, 4, 150), rng.uniform(0.1, 1, 150)
    effective = uneven.sum() ** 2 / np.sum(uneven**2)
    for model, other in [
        (fit(x, np.full(150, 2.0)), fit(np.concatenate([x, x]))),
        (fit(x, counts), fit(np.repeat(x, counts, axis=0))),
        (fit(padded, np.repeat([1.0, 0.0], [150, 400])), plain),
        (fit(x, np.full(150, 1 / 150)), plain),
        (fit(x, uneven / uneven.sum()), fit(x, uneven * 1e-6)),
        (fit(x, uneven / uneven.sum()), fit(x, uneven * effective / uneven.sum())),
    ]:
        np.testing.assert_allclose(model.support_, other.support_, rtol=1e-9)
        np.testing.assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-7, atol=1e-9)
        assert model.rank_ == other.rank_
    assert fit(np.concatenate([x, x])).rank_ > plain.rank_


def test_eigenfunctions_are_orthonormal() -> None:
    fitted = make(exclude_landmarks=True).fit(X)
    rows = np.setdiff1d(np.arange(N), draw_rows_of(fitted))
    u = fitted.transform(X[rows])
    np.testing.assert_allclose(u.T @ u / len(rows), np.eye(5), atol=1e-8)
    assert (fitted.residuals_ < 1e-8).all()
    whitened = np.abs(u[:, 0])
    np.testing.assert_allclose(whitened, 1, atol=1e-6)


def draw_rows_of(estimator: dsp.SpectralDecomposition) -> Array:
    landmarks = estimator.basis_.parts[-1].landmarks  # type: ignore[attr-defined]
    return np.array([np.flatnonzero((y == X).all(axis=1))[0] for y in landmarks])


def test_constant_on_and_off(fitted: dsp.SpectralDecomposition) -> None:
    assert abs(fitted.eigenvalues_[0]) < 1e-12
    assert fitted.basis_.size == 21
    without = make(constant=False).fit(X)
    assert without.basis_.size == 20
    assert 1e-9 < without.eigenvalues_[0] < 0.1
    np.testing.assert_allclose(without.eigenvalues_[1:3], fitted.eigenvalues_[1:3], rtol=0.05)


def test_landmark_rows_are_left_out() -> None:
    drawn = make(exclude_landmarks=True).fit(X)
    assert drawn.moments_.count == N - 20
    assert make(exclude_landmarks=False).fit(X).moments_.count == N
    assert make(landmarks=X[:20], exclude_landmarks=True).fit(X).moments_.count == N - 20
    assert make(landmarks=X[:20] + 1e-9, exclude_landmarks=True).fit(X).moments_.count == N


def test_user_landmarks() -> None:
    given = X[:30].tolist()
    estimator = make(landmarks=given, n_landmarks=10**6, standardize=True, columns=[0, 2]).fit(X)
    assert estimator.basis_.size == 31
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(estimator.basis_.parts[-1].landmarks, z[:30, [0, 2]], rtol=1e-12)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("method", METHODS)
def test_landmarks_do_not_depend_on_the_chunks(method: str, tmp_path: Path) -> None:
    def landmarks(x: Any, seed: int = 0) -> Array:
        estimator = make(landmarks=method, landmark_sample=500, random_state=seed).fit(x)
        return np.asarray(estimator.basis_.parts[-1].landmarks)  # type: ignore[attr-defined]

    wanted = landmarks(X)
    assert wanted.shape == (20, 3)
    assert len(np.unique(wanted, axis=0)) == 20
    assert (wanted[:, None] == X).all(axis=2).any(axis=1).all()
    stored = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(77, 1))
    for x in (da.from_array(X, chunks=(700, 2)), da.from_array(X, chunks=111), stored):
        with dask.config.set(scheduler="threads", num_workers=3):
            np.testing.assert_array_equal(landmarks(x), wanted)
    np.testing.assert_array_equal(landmarks(X, seed=np.random.default_rng(0)), wanted)  # type: ignore[arg-type]
    assert not np.array_equal(landmarks(X, seed=1), wanted)


def test_landmarks_come_from_all_rows_beside_a_larger_sample() -> None:
    """The sample for the median is larger than that of the landmarks."""
    x = np.linspace(0, 1, N)[:, None]
    drawn = [make(kernel=Gaussian("median"), random_state=seed).fit(x).basis_.parts[-1].landmarks for seed in range(5)]
    assert min(d.max() for d in drawn) > 0.7
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.15)


def test_size_of_the_landmark_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def spy(source: Any, size: int, rng: Any, **options: Any) -> Any:
        sizes.append(size)
        return draw_rows(source, size, rng, **options)

    monkeypatch.setattr(common, "draw_rows", spy)
    make(landmarks="uniform").fit(X)
    make(landmarks="farthest").fit(X)
    make(landmarks="farthest", landmark_sample=77).fit(X)
    make(landmarks="uniform", kernel=Gaussian("median")).fit(X)
    make(landmarks=X[:20]).fit(X)
    assert sizes == [20, 10_000, 77, 1000]


def test_median_scale(fitted: dsp.SpectralDecomposition) -> None:
    estimator = make(kernel=Gaussian("median")).fit(X)
    distances = np.linalg.norm(X[:500, None] - X[None, 500:1000], axis=2)
    scale = estimator.kernel_.scale
    assert scale == pytest.approx(np.median(distances), rel=0.1)
    assert estimator.kernel.scale == "median"
    np.testing.assert_array_equal(make(kernel=Gaussian("median")).fit(da.from_array(X, chunks=99)).kernel_.scale, scale)
    given = make(kernel=Exponential("median"), landmarks=X[:20]).fit(X)
    assert given.kernel_.scale == pytest.approx(scale, rel=0.1)


def test_fitted_models_do_not_change_with_their_parameters() -> None:
    landmarks = X[:20].copy()
    estimator = make(landmarks=landmarks).fit(X)
    before = estimator.transform(X[:50])
    estimator.set_params(kernel__scale=9.0, n_components=2)
    landmarks *= 3
    np.testing.assert_array_equal(estimator.transform(X[:50]), before)


def test_ridge_moves_eigenvalues_up(fitted: dsp.SpectralDecomposition) -> None:
    lifted = make(ridge=1e-2).fit(X)
    assert (lifted.eigenvalues_[1:] > fitted.eigenvalues_[1:]).all()


def test_form_of_ones_own() -> None:
    @form
    def scaled(f: Any, g: Any, x: Any) -> Any:
        return 3.0 * inner(grad(f), grad(g))

    operator = dsp.operators.SymmetricForm(scaled, constants=True)
    tripled, plain = make(operator=operator).fit(X), make().fit(X)
    np.testing.assert_allclose(tripled.eigenvalues_, 3 * plain.eigenvalues_, rtol=1e-7, atol=1e-10)


def test_scikit_learn_conventions() -> None:
    estimator = make(kernel=Gaussian(1.0) + Matern(1.5, 2.0))
    copy = clone(estimator)
    assert copy.kernel is not estimator.kernel
    assert repr(copy.kernel) == repr(estimator.kernel)
    assert "kernel__left__scale" in estimator.get_params()
    assert estimator.set_params(kernel__left__scale=3.0).kernel.left.scale == 3.0
    assert copy.kernel.left.scale == 1.0
    with pytest.raises(ValueError, match="positive scale"):
        make().set_params(kernel__scale=-1.0)
    with pytest.raises(ValueError, match="no parameter 'width'"):
        make().set_params(kernel__width=1.0)
    assert "n_landmarks=20" in repr(make())
    pipeline = make_pipeline(StandardScaler(), make())
    assert pipeline.fit_transform(X).shape == (N, 5)
    pipeline.set_params(spectraldecomposition__kernel__scale=2.0).fit(X)
    assert pipeline[-1].kernel_.scale == 2.0


def test_grid_search() -> None:
    search = GridSearchCV(
        make(), {"kernel__scale": [0.5, 1.5]}, scoring=lambda e, x, y=None: -float(e.eigenvalues_[1]), cv=2
    )
    assert search.fit(X).best_params_ == {"kernel__scale": 1.5}
    assert search.best_estimator_.transform(X).shape == (N, 5)


def test_generators_are_accepted() -> None:
    a = make(random_state=np.random.default_rng(5)).fit(X)
    b = make(random_state=np.random.default_rng(5)).fit(X)
    assert_same_bits(a.moments_, b.moments_)
