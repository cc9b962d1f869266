"""DiffusionMap: against a dense eigendecomposition, exact against landmarks, containers, saving, bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
import zarr
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_moons

import daskspectral as dsp
from daskspectral.estimators import diffusion
from tests.common import written

Array = NDArray[Any]
X = make_moons(300, noise=0.08, random_state=0)[0]
NEW = make_moons(50, noise=0.08, random_state=1)[0]


def make(**changes: Any) -> dsp.DiffusionMap:
    return dsp.DiffusionMap(**({"bandwidth": 0.5, "n_components": 3, "n_landmarks": 120, "random_state": 0} | changes))


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


@pytest.mark.parametrize("method", ["exact", "lowrank"])
@pytest.mark.parametrize("alpha", [0, 1])
def test_extension_at_training_points(method: str, alpha: float) -> None:
    est = make(method=method, alpha=alpha).fit(X)
    for rows in (slice(None), slice(7, 8), slice(100, 220, 3)):
        np.testing.assert_allclose(est.transform(X[rows]), est.embedding_[rows], atol=1e-9)


@pytest.mark.parametrize("alpha", [0, 1])
@pytest.mark.parametrize("symmetric", [True, False])
def test_landmarks_agree_with_all_points(alpha: float, symmetric: bool) -> None:
    exact = make(method="exact", alpha=alpha, symmetric=symmetric).fit(X)
    few = make(method="lowrank", alpha=alpha, symmetric=symmetric).fit(X)
    assert few.method_ == "lowrank"
    np.testing.assert_allclose(few.spectrum_, exact.spectrum_, atol=1e-7)
    size = np.abs(exact.embedding_).max()
    np.testing.assert_allclose(few.embedding_, exact.embedding_, atol=1e-5 * size)
    np.testing.assert_allclose(few.transform(NEW), exact.transform(NEW), atol=1e-4 * size)


def test_landmarks_of_many_rows() -> None:
    """Several tasks and an own array of landmarks: the sums of all ranges, and no draw."""
    x = make_moons(2000, noise=0.08, random_state=2)[0]
    est = make(method="lowrank", landmarks=x[:100]).fit(x)
    np.testing.assert_array_equal(est.functions_.points, x[:100])
    values, embedding = dense(x, 0.5, 3)
    np.testing.assert_allclose(est.spectrum_, values, atol=1e-4)
    np.testing.assert_allclose(est.embedding_, embedding, atol=0.02 * np.abs(embedding).max())


def test_auto_takes_landmarks_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make().fit(X).method_ == "exact"
    monkeypatch.setattr(diffusion, "EXACT_ROWS", len(X) - 1)
    assert make().fit(X).method_ == "lowrank"


def test_products_that_are_streamed_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dense matrix and blocks give one answer; kept and streamed blocks give equal bits."""
    whole = make().fit(X)
    monkeypatch.setattr(diffusion, "DENSE", 10)
    kept = make().fit(X)
    monkeypatch.setattr(diffusion, "available", lambda: 0)
    streamed = make().fit(X)
    np.testing.assert_array_equal(kept.embedding_, streamed.embedding_)
    np.testing.assert_allclose(kept.embedding_, whole.embedding_, atol=1e-11)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_containers(method: str, tmp_path: Path) -> None:
    est = make(method=method).fit(X)
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=X, chunks=(70, 2))
    blocks = da.from_array(X, chunks=(90, 1))
    for given in (blocks, path, zarr.open_array(path), xr.DataArray(X, dims=("row", "feature"))):
        other = make(method=method).fit(given)
        np.testing.assert_allclose(other.embedding_, est.embedding_, atol=1e-9)
        assert isinstance(other.embedding_, np.ndarray)
    lazy = est.transform(blocks)
    assert isinstance(lazy, da.Array)
    assert lazy.chunks[0] == blocks.chunks[0]
    np.testing.assert_allclose(lazy.compute(), est.embedding_, atol=1e-9)
    assert isinstance(make(method=method).fit_transform(blocks), da.Array)
    np.testing.assert_array_equal(make(method=method).fit_transform(X), est.embedding_)
    labelled = est.transform(xr.DataArray(X, dims=("row", "feature")))
    np.testing.assert_array_equal(labelled.coords["eigenvalue"], est.spectrum_)
    assert est.transform(X, out=tmp_path / "out.zarr") is None
    np.testing.assert_allclose(written(tmp_path / "out.zarr"), est.embedding_, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_saved_and_loaded(method: str, tmp_path: Path) -> None:
    est = make(method=method, alpha=0.5, symmetric=False).fit(X)
    dsp.save(est, tmp_path / "model.zarr")
    loaded = dsp.load(tmp_path / "model.zarr")
    assert isinstance(loaded, dsp.DiffusionMap)
    assert loaded.get_params() == est.get_params()
    np.testing.assert_array_equal(loaded.transform(NEW), est.transform(NEW))
    np.testing.assert_array_equal(loaded.embedding_, est.embedding_)
    np.testing.assert_array_equal(loaded.spectrum_, est.spectrum_)
    assert loaded.method_ == method


def test_deterministic_for_a_seed() -> None:
    for method in ("exact", "lowrank"):
        with dask.config.set(scheduler="synchronous"):
            one = make(method=method).fit(X)
        np.testing.assert_array_equal(clone(one).fit(X).embedding_, one.embedding_)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_invalid_rows(method: str) -> None:
    x = X.copy()
    x[[30, 77], 1] = np.nan
    with pytest.raises(dsp.InvalidRowError, match="row 30 is the first"):
        make(method=method).fit(x)
    est = make(method=method).fit(x, on_invalid="skip")
    valid = np.delete(np.arange(len(x)), [30, 77])
    assert np.isnan(est.embedding_[[30, 77]]).all()
    values, embedding = dense(x[valid], 0.5, 3)
    np.testing.assert_allclose(est.spectrum_, values, atol=1e-7)
    np.testing.assert_allclose(est.embedding_[valid], embedding, atol=1e-5)
    assert np.isnan(est.transform(x, on_invalid="skip")[[30, 77]]).all()


def test_points_that_landmarks_do_not_cover() -> None:
    x = np.vstack([X, [[30.0, 0.0], [0.0, 30.0]]])
    with pytest.raises(
        ValueError, match=r"2 of 302 points are not covered by the 120 landmarks.*add landmarks .*widen"
    ):
        make(method="lowrank", landmarks=X[:120]).fit(x)
    est = make(method="lowrank").fit(x)  # those of a pivoted Cholesky factor cover them
    np.testing.assert_allclose(est.spectrum_[:2], 1, atol=1e-8)


def test_points_without_coordinates() -> None:
    far = np.vstack([NEW, [[1e4, 0.0]]])
    for method in ("exact", "lowrank"):
        est = make(method=method).fit(X)
        with pytest.raises(ValueError, match=r"1 of 51 points.* undefined: widen the bandwidth"):
            est.transform(far)
        values = est.transform(far, on_invalid="skip")
        assert np.isnan(values[-1]).all()
        assert np.isfinite(values[:-1]).all()


def test_duplicate_points_and_constant_columns() -> None:
    """A point given twice is embedded once, at the same place; a column of a constant changes nothing."""
    x = np.vstack([X, X[:5]])
    for method in ("exact", "lowrank"):
        est = make(method=method).fit(x)
        np.testing.assert_allclose(est.embedding_[300:], est.embedding_[:5], atol=1e-9)
        other = make(method=method).fit(np.c_[x, np.full(305, 1e3)])
        np.testing.assert_allclose(other.spectrum_, est.spectrum_, atol=1e-9)


def test_bandwidths_beyond_the_data() -> None:
    with pytest.raises(ValueError, match="narrow the bandwidth"):
        make(bandwidth=1e7).fit(X)
    with pytest.raises(ValueError, match="all points are equal"):
        make().fit(np.ones((20, 2)))
    with pytest.warns(dsp.RankWarning, match="only 2 of 3 components"):
        est = make(bandwidth=1e3).fit(X)
    assert est.embedding_.shape == (300, 2)
    with pytest.raises(ValueError, match="the kernel is the identity"):
        make(bandwidth=1e-4).fit(X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 0}, r"bandwidth must be positive, 1e-100 to 1e100, in the units of X; it is 0"),
        ({"bandwidth": "wide"}, r"bandwidth must be a number, or one of 'auto', 'median', 'local'; it is 'wide'"),
        ({"n_components": 0}, r"n_components must be a whole number of 1 or more"),
        ({"n_components": 300}, r"X has 300 rows, and n_components=300 needs one more"),
        ({"method": "fast"}, r"method must be 'auto' or 'exact' or 'lowrank'; it is 'fast'"),
        ({"time": -1}, r"time must be a number of 0 or more"),
        ({"alpha": None}, r"alpha must be a number of 0 or more"),
        ({"symmetric": "no"}, r"symmetric must be True or False"),
        ({"landmarks": "grid"}, r"landmarks must be 'uniform'"),
        ({"method": "lowrank", "n_landmarks": 301}, r"X has 300 rows, fewer than n_landmarks=301; lower n_landmarks"),
        ({"method": "lowrank", "n_landmarks": 3}, r"3 landmarks are too few for n_components=3"),
        ({"method": "lowrank", "landmarks": np.ones((5, 3))}, r"array \(p, 2\)"),
        ({"random_state": -1}, r"random_state must be"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes).fit(X)


def test_bad_data() -> None:
    with pytest.raises(ValueError, match=r"X has 1 row \(n_samples = 1\), and DiffusionMap needs 2"):
        make(n_components=1).fit(X[:1])
    est = make().fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but \w+ is expecting 2 features"):
        est.transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"on_invalid must be"):
        est.transform(X, on_invalid="drop")
    with pytest.raises(ValueError, match=r"not fitted yet"):
        make().transform(X)
