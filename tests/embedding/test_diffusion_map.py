"""DiffusionMap against a dense eigendecomposition, exact against landmarks; the bandwidths of all embeddings."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_wine, make_moons

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data.source import open_source
from daskspectral.embedding import diffusion
from daskspectral.embedding.bandwidth import chosen_bandwidth
from daskspectral.solvers import Ascent
from tests.common import doubtful

Array = NDArray[Any]
X = make_moons(300, noise=0.08, random_state=0)[0]
LANDMARKS = Landmarks(count=120, method="cholesky")
NEW = make_moons(50, noise=0.08, random_state=1)[0]


def make(bandwidth: float = 0.5, landmarks: Landmarks = LANDMARKS, **options: Any) -> dsp.DiffusionMap:
    return dsp.DiffusionMap(bandwidth, n_components=3, landmarks=landmarks, random_state=0, **options)


def dense(x: Array, bandwidth: float, count: int) -> tuple[Array, Array]:
    """The leading eigenpairs of A_bar, equation (1.2), and lambda psi with the largest entry of each positive."""
    k = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=-1) / bandwidth**2)
    m = k.sum(axis=1)
    v0 = np.sqrt(m / m.sum())
    values, vectors = scipy.linalg.eigh(k / np.sqrt(np.outer(m, m)) - np.outer(v0, v0))
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    return values, values * vectors * signs


def test_dense_eigendecomposition() -> None:
    est = make().fit(X)
    values, embedding = dense(X, 0.5, 3)
    assert est.method_ == "exact"
    np.testing.assert_allclose(est.spectrum_, values, atol=1e-13)
    np.testing.assert_allclose(est.embedding_, embedding, atol=1e-11)
    psi = make(time=0).fit(X).embedding_
    np.testing.assert_allclose(psi.T @ psi, np.eye(3), atol=1e-11)
    np.testing.assert_allclose(psi * est.spectrum_, est.embedding_, atol=1e-12)


@pytest.mark.parametrize(("alpha", "symmetric"), [(0, True), (0.5, False), (1, False)])
def test_landmarks_agree_with_all_points(
    alpha: float, symmetric: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = make(method="exact", alpha=alpha, symmetric=symmetric).fit(X)
    few = make(method="lowrank", alpha=alpha, symmetric=symmetric).fit(X)
    assert few.method_ == "lowrank"
    np.testing.assert_allclose(few.spectrum_, exact.spectrum_, atol=1e-7)
    size = np.abs(exact.embedding_).max()
    np.testing.assert_allclose(few.embedding_, exact.embedding_, atol=1e-5 * size)
    np.testing.assert_allclose(few.transform(NEW), exact.transform(NEW), atol=1e-4 * size)
    for est in (exact, few):
        np.testing.assert_allclose(est.transform(X[100:220:3]), est.embedding_[100:220:3], atol=1e-9)
        dsp.save(est, tmp_path / "model.zarr", overwrite=True)
        loaded = dsp.load(tmp_path / "model.zarr")
        np.testing.assert_array_equal(loaded.transform(NEW), est.transform(NEW))
        np.testing.assert_array_equal(loaded.embedding_, est.embedding_)
    monkeypatch.setattr(diffusion, "EXACT_ROWS", len(X) - 1)
    assert make().fit(X).method_ == "lowrank"
    with pytest.raises(ValueError, match="299 rows"):
        make(method="exact").fit(X)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_invalid_rows(method: str) -> None:
    x = X.copy()
    x[[30, 77], 1] = np.nan
    with pytest.raises(dsp.InvalidRowError, match="row 30 is the first"):
        make(method=method).fit(x)
    est = make(method=method).fit(dsp.Rows(x, on_invalid="skip"))
    valid = np.delete(np.arange(len(x)), [30, 77])
    assert np.isnan(est.embedding_[[30, 77]]).all()
    values, embedding = dense(x[valid], 0.5, 3)
    np.testing.assert_allclose(est.spectrum_, values, atol=1e-7)
    np.testing.assert_allclose(est.embedding_[valid], embedding, atol=1e-5)
    assert np.isnan(est.transform(dsp.Rows(x, on_invalid="skip"))[[30, 77]]).all()


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_points_without_coordinates(method: str) -> None:
    est, far = make(method=method).fit(X), np.vstack([NEW, [[1e4, 0.0]]])
    with pytest.raises(ValueError, match="1 of 51 rows"):
        est.transform(far, extrapolate="raise")
    with pytest.warns(dsp.ExtrapolationWarning):
        found = est.transform(far, extrapolate="nan")
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), np.arange(51) == 50)
    with pytest.raises(ValueError, match="of 301 points"):
        make(method="lowrank", landmarks=Landmarks(points=X[:120])).fit(np.vstack([X, [[30.0, 0.0]]]))


def test_bandwidths_beyond_the_data() -> None:
    with pytest.raises(ValueError, match="narrow the bandwidth"):
        make(bandwidth=1e7).fit(X)
    with pytest.warns(dsp.RankWarning, match="only 2 of 3 components"):
        est = make(bandwidth=1e3).fit(X)
    assert est.embedding_.shape == (300, 2)
    with pytest.raises(ValueError, match="the kernel is the identity"):
        make(bandwidth=1e-4).fit(X)


# -- bandwidths, of the SDP as well ------------------------------------------------------------------------------------


Z = make_moons(200, noise=0.1, random_state=0)[0]
MANY = Landmarks(count=150, method="cholesky")
ESTIMATORS: dict[str, Any] = {
    "exact": dsp.SDPEmbedding(method="exact", solver=Ascent(tolerance=1e-6), random_state=0),
    "lowrank": dsp.SDPEmbedding(method="lowrank", landmarks=MANY, solver=Ascent(tolerance=1e-6), random_state=0),
    "diffusion": dsp.DiffusionMap(random_state=0),
    "kernel embedding": dsp.KernelEmbedding(random_state=0),
    "diffusion at landmarks": dsp.DiffusionMap(method="lowrank", landmarks=MANY, random_state=0),
}


def expected(x: Array, word: str) -> float:
    return chosen_bandwidth(open_source(x, progress=False), word, 0)


@pytest.mark.parametrize(
    ("name", "word"),
    [("exact", "auto"), ("lowrank", "median"), ("diffusion", "auto"), ("kernel embedding", "auto")],
)
def test_a_word_is_the_number_that_it_stands_for(name: str, word: str, tmp_path: Path) -> None:
    est = clone(ESTIMATORS[name]).set_params(bandwidth=word).fit(Z)
    assert est.bandwidth == word
    assert est.bandwidth_ == pytest.approx(expected(Z, word), rel=1e-12)
    number = clone(est).set_params(bandwidth=est.bandwidth_).fit(Z)
    assert number.bandwidth_ == est.bandwidth_
    np.testing.assert_allclose(est.spectrum_, number.spectrum_, rtol=1e-9)
    dsp.save(est, tmp_path / "model.zarr")
    assert dsp.load(tmp_path / "model.zarr").bandwidth_ == est.bandwidth_


def test_auto_is_no_narrower_than_landmarks_cover() -> None:
    """Twenty landmarks cover two moons at a multiple of the bandwidth alone; other words are taken as they are."""
    few = clone(ESTIMATORS["diffusion at landmarks"]).set_params(landmarks__count=20)
    ratio = clone(few).fit(Z).bandwidth_ / expected(Z, "auto")
    assert ratio > 1
    assert 2 * np.log2(ratio) == pytest.approx(round(2 * np.log2(ratio)), abs=1e-9)
    with pytest.raises(ValueError, match="20 landmarks"):
        clone(few).set_params(bandwidth=expected(Z, "auto")).fit(Z)


@doubtful
@pytest.mark.parametrize("name", ["exact", "diffusion", "kernel embedding"])
def test_columns_of_unlike_spread_are_warned_of(name: str) -> None:
    """In the words of SpectralDecomposition, with a remedy that works."""
    raw, model = load_wine().data, ESTIMATORS[name]
    with pytest.warns(dsp.TrustWarning, match=r"from 0.124 in column 7 to 314 in column 12") as found:
        clone(model).fit(raw)
    remedied = raw / raw.std(axis=0)
    if "standardize" in str(found[0].message):
        remedied = dsp.Rows(raw, standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dsp.TrustWarning)
        clone(model).fit(remedied)
