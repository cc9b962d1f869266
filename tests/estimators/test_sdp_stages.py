"""Columns in stages, the choice of method with the error it estimates, the sparse kernel, and any new point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.model_selection import train_test_split

import daskspectral as dsp
from daskspectral.errors import RankWarning, TrustWarning
from daskspectral.passes import embed as choice
from daskspectral.passes.embedding import SCRATCH

Array = NDArray[np.floating[Any]]


def moons(n: int, seed: int = 0) -> Array:
    x = make_moons(n, noise=0.1, random_state=seed)[0]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


@pytest.fixture(scope="module")
def wine() -> Array:
    x = load_wine().data
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def abar_of(x: Array, bandwidth: float) -> tuple[Array, Array]:
    """Abar (n, n) and m (n,), written out."""
    k = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2) / bandwidth**2)
    m = k.sum(axis=1)
    return np.asarray(k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()), m


def gram_error(e: Array, other: Array) -> float:
    return float(np.linalg.norm(e @ e.T - other @ other.T) / np.linalg.norm(other @ other.T))


@pytest.mark.parametrize("method", ["exact", "lowrank", "sparse"])
def test_each_stage_is_the_optimum_of_what_is_left(method: str) -> None:
    """Every stage's own dual certificate, from matrices written out."""
    x = moons(120)
    found = dsp.SDPEmbedding(1.0, method=method, n_components=5, n_landmarks=120, random_state=0).fit(x)
    abar, m = abar_of(x, 1.0)
    d = 1 / m - m / m.sum()
    assert sum(found.stages_) >= 5
    assert found.embedding_.shape == (120, 5)
    assert len(found.spectrum_) == 5
    assert len(found.certificates_) == len(found.stages_) > 1
    whole = dsp.SDPEmbedding(1.0, method=method, n_components=int(sum(found.stages_)), n_landmarks=120, random_state=0)
    e, start = whole.fit(x).embedding_, 0
    np.testing.assert_array_equal(e[:, :5], found.embedding_)
    for rank, certificate in zip(found.stages_, found.certificates_, strict=True):
        part = e[:, start : start + rank]
        np.testing.assert_allclose(np.sum(part**2, axis=1), d, rtol=1e-5)
        y = np.sum((abar @ part) * part, axis=1) / d
        gap = max(0.0, -np.linalg.eigvalsh(np.diag(y) - abar)[0]) * d.sum()
        assert certificate.optimal
        assert gap < 1e-4 * (d @ y)
        np.testing.assert_allclose(
            whole.spectrum_[start : start + rank], np.linalg.eigvalsh(part.T @ part)[::-1], rtol=1e-6
        )
        pulled = abar @ part
        abar = abar - pulled @ np.linalg.pinv(part.T @ pulled, rcond=1e-9, hermitian=True) @ pulled.T
        assert np.linalg.eigvalsh(abar)[0] > -1e-9  # still positive semidefinite
        np.testing.assert_allclose(abar @ part, 0, atol=1e-9)
        start += rank


@pytest.mark.parametrize("method", ["exact", "lowrank", "sparse"])
def test_later_columns_extend_to_new_points_as_the_first(method: str) -> None:
    """(1.5) with the deflated kernel, against the optimum's own matrices at one more point."""
    x, z = moons(100), moons(103, seed=1)[:20]
    found = dsp.SDPEmbedding(1.0, method=method, n_components=4, n_landmarks=100, random_state=0).fit(x)
    np.testing.assert_allclose(found.transform(x), found.embedding_, rtol=0, atol=1e-9)
    whole = dsp.SDPEmbedding(1.0, method=method, n_components=int(sum(found.stages_)), n_landmarks=100, random_state=0)
    e, start = whole.fit(x).embedding_, 0
    _, m = abar_of(x, 1.0)
    k = np.exp(-np.sum((z[:, None] - x) ** 2, axis=2))
    mass = k.sum(axis=1)
    rows = k / np.sqrt(np.outer(mass, m)) - np.sqrt(np.outer(mass, m)) / m.sum()  # Abar(z, x_i)
    abar = abar_of(x, 1.0)[0]
    d = np.minimum(1 / mass - mass / m.sum(), (1 / m - m / m.sum()).max())
    for rank in found.stages_:
        part = e[:, start : start + rank]
        u = rows @ part
        wanted = np.sqrt(d)[:, None] * u / np.linalg.norm(u, axis=1, keepdims=True)
        np.testing.assert_allclose(whole.transform(z)[:, start : start + rank], wanted, rtol=0, atol=2e-4)
        inner = np.linalg.pinv(part.T @ abar @ part, rcond=1e-9, hermitian=True)
        rows, abar = rows - rows @ part @ inner @ (abar @ part).T, abar - abar @ part @ inner @ part.T @ abar
        start += rank


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_a_kernel_that_holds_few_columns(method: str) -> None:
    x = np.concatenate([np.zeros((20, 1)), np.ones((20, 1)), np.full((20, 1), 2.0)])  # three distinct points
    with pytest.warns(RankWarning, match=r"only 2 of 6 columns: the kernel holds no more"):
        found = dsp.SDPEmbedding(1.0, method=method, n_components=6, n_landmarks=3, random_state=0).fit(x)
    assert found.embedding_.shape == (60, 2)


def test_ten_columns_tell_digits_apart() -> None:
    """Five nearest neighbours: .98 with ten columns, .77 with the optimum's own at half the median distance."""
    x, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(x))[:900]
    x, y = x[chosen], y[chosen]
    found = dsp.SDPEmbedding(12.0, n_components=10, tolerance=1e-6, random_state=0).fit(x)
    squares = np.sum((found.embedding_[:, None] - found.embedding_) ** 2, axis=2)
    np.fill_diagonal(squares, np.inf)
    near = np.argsort(squares, axis=1)[:, :5]
    votes = (y[near][:, :, None] == np.arange(10)).sum(axis=1).argmax(axis=1)
    assert np.mean(votes == y) > 0.96


@pytest.mark.parametrize(("p", "least"), [(50, 0.01), (100, 1e-4), (200, 0.0)])
def test_the_error_of_landmarks_is_estimated(p: int, least: float) -> None:
    """Against the optimum over all points."""
    x = moons(800)
    exact = dsp.SDPEmbedding(0.5, method="exact", random_state=0).fit(x)
    found = dsp.SDPEmbedding(0.5, method="lowrank", n_landmarks=p, random_state=0, accuracy=1e3).fit(x)
    error = gram_error(found.embedding_, exact.embedding_)
    assert error > least
    assert error / 2 < found.certificate_.approximation < 20 * error
    assert found.certificate_.optimal  # of the problem at the landmarks
    k, inner = (np.exp(-np.sum((x[:, None] - z) ** 2, axis=2) / 0.25) for z in (x, found.extension_.points))
    m = k.sum(axis=1)
    at = inner[[int(np.argmin(np.sum((x - z) ** 2, axis=1))) for z in found.extension_.points]]
    low = inner @ np.linalg.pinv(at, rcond=1e-10, hermitian=True) @ inner.T
    mass = low.sum(axis=1)
    low = low / np.sqrt(np.outer(mass, mass)) - np.sqrt(np.outer(mass, mass)) / mass.sum()
    y = np.sum((low @ found.embedding_) * found.embedding_, axis=1) / np.sum(found.embedding_**2, axis=1)
    abar = k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / mass.sum()
    wanted = np.linalg.eigvalsh(np.diag(y) - abar)[0]  # every row is a probe
    np.testing.assert_allclose(found.certificate_.full_eigenvalue, wanted, rtol=1e-3, atol=1e-9)


def test_auto_does_not_insist_on_landmarks_that_do_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", 100)
    x = np.random.default_rng(0).uniform(0, 1, (300, 2))
    found = dsp.SDPEmbedding(0.05, n_landmarks=20, random_state=0, tolerance=1e-6).fit(x)
    assert found.method_ == "sparse"


def test_invalid_rows_count_for_nothing_where_landmarks_do_not_cover() -> None:
    x = moons(200)
    z = np.concatenate([x, np.full((200, 2), np.nan)])
    options = {"method": "lowrank", "n_landmarks": 60, "accuracy": 1.0, "random_state": 0}
    both = [
        dsp.SDPEmbedding(0.5, **options).fit(x),
        dsp.SDPEmbedding(0.5, **options).fit(z, on_invalid="skip"),
    ]
    assert [found.extension_.share for found in both] == [1.0, 1.0]


def test_a_wrong_gram_matrix_does_not_read_as_a_clean_answer() -> None:
    with pytest.warns(TrustWarning, match=r"at 50 landmarks the Gram matrix of the embedding is off by about \d+"):
        dsp.SDPEmbedding(0.5, method="lowrank", n_landmarks=50, random_state=0).fit(moons(800))


def test_auto_doubles_landmarks_until_they_answer(recwarn: pytest.WarningsRecorder) -> None:
    x = moons(1200)
    found = dsp.SDPEmbedding(0.5, random_state=0).fit(x)
    assert found.method_ == "lowrank"
    assert len(found.extension_.points) <= 1200 / 5
    exact = dsp.SDPEmbedding(0.5, method="exact", random_state=0).fit(x)
    error = gram_error(found.embedding_, exact.embedding_)
    assert error < 1e-3
    assert found.certificate_.approximation < 1e-3
    assert not [w for w in recwarn if issubclass(w.category, TrustWarning)]
    with pytest.warns(TrustWarning, match="more than accuracy=1e-12"):
        dsp.SDPEmbedding(0.5, method="lowrank", n_landmarks=200, accuracy=1e-12, random_state=0).fit(x)


def test_auto_takes_the_sparse_kernel_where_landmarks_do_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FEW", 100)
    x = np.random.default_rng(0).uniform(0, 1, (600, 2))
    found = dsp.SDPEmbedding(0.04, random_state=0, tolerance=1e-6).fit(x)
    assert found.method_ == "sparse"
    wide = dsp.SDPEmbedding(1.5, random_state=0, tolerance=1e-6).fit(np.random.default_rng(0).normal(size=(400, 6)))
    assert wide.method_ == "exact"  # most pairs are within reach, and more than n / 5 landmarks would be needed


def test_the_sparse_kernel_is_the_kernel_without_small_values(wine: Array, tmp_path: Path) -> None:
    exact = dsp.SDPEmbedding(1.5, method="exact", random_state=0).fit(wine)
    found = dsp.SDPEmbedding(1.5, method="sparse", random_state=0).fit(wine)
    assert gram_error(found.embedding_, exact.embedding_) < 1e-3
    x = np.ascontiguousarray(wine)
    k = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2) / 1.5**2)
    k[k < 1e-6] = 0
    m = k.sum(axis=1)
    abar = k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    e = found.embedding_
    np.testing.assert_allclose(np.trace(abar @ e @ e.T), found.objective_, rtol=1e-9)
    y = np.sum((abar @ e) * e, axis=1) / found.extension_.longest * (found.extension_.longest / np.sum(e**2, axis=1))
    gap = max(0.0, -np.linalg.eigvalsh(np.diag(y) - abar)[0]) * np.sum(e**2)
    assert gap < 1e-9 * found.objective_
    kept = dsp.SDPEmbedding(1.5, method="sparse", random_state=0, cache_path=tmp_path / "kernel.zarr").fit(wine)
    np.testing.assert_array_equal(kept.embedding_, found.embedding_)
    assert zarr.open_group(tmp_path / "kernel.zarr").attrs[SCRATCH] is True
    kept.fit(wine[:100])  # its own scratch is replaced


def test_a_sparse_kernel_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskspectral.passes.sparse_kernel.available", lambda: 1000)
    with pytest.raises(MemoryError, match=r"the kernel values above 1e-06 of 300 points .* give cache_path"):
        dsp.SDPEmbedding(0.3, method="sparse").fit(moons(300))


@pytest.mark.parametrize("method", ["exact", "lowrank", "sparse"])
def test_held_out_rows_are_not_refused(method: str, wine: Array) -> None:
    """45 rows of wine at bandwidth 2, most of which landmarks do not cover: those with all points are the measure."""
    train, test = train_test_split(wine, test_size=45, random_state=0)
    found = dsp.SDPEmbedding(2.0, method=method, n_landmarks=len(train), random_state=0).fit(train)
    exact = dsp.SDPEmbedding(2.0, method="exact", random_state=0).fit(train)
    after, wanted = found.transform(test), exact.transform(test)
    assert np.isfinite(after).all()
    turn, _, other = np.linalg.svd(np.asarray(found.embedding_).T @ exact.embedding_)
    cosine = np.sum((after @ turn @ other) * wanted, axis=1)
    cosine /= np.linalg.norm(after, axis=1) * np.linalg.norm(wanted, axis=1)
    assert np.median(cosine) > 0.999
    assert cosine.min() > 0.9
    longest = np.square(exact.embedding_).sum(axis=1).max()
    assert np.all(np.square(after).sum(axis=1) <= longest * (1 + 1e-5))


@pytest.mark.parametrize("method", ["exact", "lowrank", "sparse"])
def test_points_far_from_every_row(method: str) -> None:
    x = moons(300)
    z = np.concatenate([x[:4], [[1e3, 0.0]], [[-1e6, 1e6]]])
    found = dsp.SDPEmbedding(0.7, method=method, n_landmarks=60, accuracy=1.0, random_state=0).fit(x)
    e = np.asarray(found.embedding_)
    with pytest.warns(TrustWarning, match=r"2 of 6 rows have the direction of their nearest row: no row of the fit"):
        after = found.transform(z)
    np.testing.assert_allclose(after[:4], e[:4], rtol=0, atol=1e-9)
    for row, point in zip(after[4:], z[4:], strict=True):
        near = e[np.argmin(np.sum((x - point) ** 2, axis=1))]
        np.testing.assert_allclose(row / np.linalg.norm(row), near / np.linalg.norm(near), atol=1e-9)
        np.testing.assert_allclose(row @ row, np.square(e).sum(axis=1).max(), rtol=1e-3)
    with pytest.warns(TrustWarning, match=r"rows 0 to 6: 2 of 6 rows have the direction"):
        np.testing.assert_array_equal(found.transform(da.from_array(z, chunks=(6, 2))).compute(), after)
    with pytest.warns(TrustWarning, match=r"2 of 6 rows are NaN: no row of the fit is within reach"):
        missing = found.set_params(on_uncovered="nan").transform(z)
    np.testing.assert_array_equal(np.isnan(missing).all(axis=1), [False] * 4 + [True] * 2)
    with pytest.raises(ValueError, match=r"no row of the fit is within reach of 2 of 6 rows, the first .*1000.0, 0.0"):
        found.set_params(on_uncovered="raise").transform(z)
    with pytest.raises(ValueError, match="on_uncovered"):
        found.set_params(on_uncovered="ignore").transform(z)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_a_sweep_starts_from_the_fit_before(method: str) -> None:
    """The same optimum in fewer passes, on the way to a bandwidth nearby."""
    x = moons(300)
    warm = dsp.SDPEmbedding(0.9, method=method, n_landmarks=100, accuracy=1.0, warm_start=True, random_state=0).fit(x)
    cold = dsp.SDPEmbedding(0.8, method=method, n_landmarks=100, accuracy=1.0, random_state=0).fit(x)
    warm.set_params(bandwidth=0.8).fit(x)
    assert warm.n_passes_ <= cold.n_passes_ - (method == "exact")  # landmarks start from half of them in any case
    assert gram_error(np.asarray(warm.embedding_), np.asarray(cold.embedding_)) < 1e-5
    warm.fit(x[:200])  # other rows
    with pytest.raises(ValueError, match="warm_start starts from a fit that the checkpoint does not hold"):
        warm.fit(x, checkpoint="run.zarr")
    warm.fit(x[:, :1])  # other columns: from the beginning
    assert warm.certificate_.optimal


def test_a_model_with_stages_saved_and_loaded(tmp_path: Path) -> None:
    x = moons(150)
    found = dsp.SDPEmbedding(0.7, method="lowrank", n_components=4, n_landmarks=60, random_state=0).fit(x)
    found.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    z = moons(40, seed=3) * 3
    np.testing.assert_array_equal(again.transform(z), found.transform(z))
    assert again.certificates_ == found.certificates_
    assert again.certificate_ == found.certificate_
    np.testing.assert_array_equal(again.stages_, found.stages_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 300}, r"n_components=300 needs more than the 300 rows"),
        ({"accuracy": 0.0}, "accuracy must be positive"),
        ({"on_uncovered": "skip"}, "on_uncovered"),
        ({"n_landmarks": "many"}, "n_landmarks"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        dsp.SDPEmbedding(0.7, **changes).fit(moons(300))
