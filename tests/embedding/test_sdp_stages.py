"""Columns in stages, the choice of method with the error it estimates, and any new point."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.embedding import fitting as choice
from daskspectral.errors import TrustWarning
from daskspectral.solvers import Ascent
from tests.embedding.moons import abar_of, gap_of, gaussian, gram_error, moons

METHODS = ("exact", "lowrank")


def make(bandwidth: float, method: str = "auto", count: int | str = "auto", **options: Any) -> dsp.SDPEmbedding:
    landmarks = Landmarks(count=count, method="cholesky")
    return dsp.SDPEmbedding(bandwidth, method=method, landmarks=landmarks, random_state=0, **options)


@pytest.mark.parametrize("method", METHODS)
def test_each_stage_is_the_optimum_of_what_is_left(method: str, tmp_path: Path) -> None:
    """Every stage's own dual certificate, and (1.5) with the deflated kernel, from matrices written out."""
    x, z = moons(100), moons(103, seed=1)[:20]
    found = make(1.0, method, 100, n_components=5).fit(x)
    abar, k, cross = abar_of(x, 1.0), gaussian(x, x, 1.0), gaussian(z, x, 1.0)
    m, mass = k.sum(axis=1), cross.sum(axis=1)
    d = 1 / m - m / m.sum()
    rows = cross / np.sqrt(np.outer(mass, m)) - np.sqrt(np.outer(mass, m)) / m.sum()  # Abar(z, x_i)
    length = np.sqrt(np.minimum(1 / mass - mass / m.sum(), d.max()))[:, None]
    assert found.embedding_.shape == (100, 5)
    assert len(found.certificates_) == len(found.stages_) > 1
    whole = make(1.0, method, 100, n_components=int(sum(found.stages_))).fit(x)
    e, after, start = whole.embedding_, whole.transform(z), 0
    np.testing.assert_array_equal(e[:, :5], found.embedding_)
    np.testing.assert_allclose(whole.transform(x), e, rtol=0, atol=1e-9)
    for rank, certificate in zip(found.stages_, found.certificates_, strict=True):
        own = slice(start, start + rank)
        part, start = e[:, own], start + rank
        np.testing.assert_allclose(np.sum(part**2, axis=1), d, rtol=1e-5)
        assert certificate.optimal
        assert gap_of(abar, part, d) < 1e-4
        np.testing.assert_allclose(whole.spectrum_[own], np.linalg.eigvalsh(part.T @ part)[::-1], rtol=1e-6)
        u = rows @ part
        wanted = length * u / np.linalg.norm(u, axis=1, keepdims=True)
        np.testing.assert_allclose(after[:, own], wanted, rtol=0, atol=2e-4)
        pulled = abar @ part
        inner = np.linalg.pinv(part.T @ pulled, rcond=1e-9, hermitian=True)
        rows, abar = rows - u @ inner @ pulled.T, abar - pulled @ inner @ pulled.T
        assert np.linalg.eigvalsh(abar)[0] > -1e-9  # still positive semidefinite
    found.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(again.transform(z), found.transform(z))
    assert again.certificates_ == found.certificates_


@pytest.mark.parametrize(("p", "least"), [(30, 0.01), (80, 0.0)])
def test_the_error_of_landmarks_is_estimated(p: int, least: float) -> None:
    """Against the optimum over all points."""
    x = moons(400)
    exact = make(0.5, "exact").fit(x)
    found = make(0.5, "lowrank", p, accuracy=1e3).fit(x)
    error = gram_error(found.embedding_, exact.embedding_)
    assert error > least
    assert error / 2 < found.certificate_.approximation < 20 * error
    assert found.certificate_.optimal  # of the problem at the landmarks


def test_methods_that_auto_takes(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    """All points where they are few; landmarks, doubled until they answer; all points where they do not."""
    assert make(0.7).fit(moons(100)).method_ == "exact"
    monkeypatch.setattr(choice, "FEW", 100)
    x = moons(600)
    found, exact = make(0.7).fit(x), make(0.7, "exact").fit(x)
    assert found.method_ == "lowrank"
    assert len(found.extension_.points) <= 600 / 5
    assert gram_error(found.embedding_, exact.embedding_) < 1e-3
    assert found.certificate_.approximation < 1e-3
    solver = Ascent(tolerance=1e-6)
    wide = make(1.5, solver=solver).fit(np.random.default_rng(0).normal(size=(200, 6)))
    assert wide.method_ == "exact"  # more than n / 5 landmarks would be needed
    assert not [w for w in recwarn if issubclass(w.category, TrustWarning)]


@pytest.mark.parametrize("method", METHODS)
def test_points_far_from_every_row(method: str) -> None:
    x = moons(150)
    z = np.concatenate([x[:4], [[1e3, 0.0]], [[-1e6, 1e6]]])
    found = make(0.7, method, 60, accuracy=1.0).fit(x)
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
        missing = found.transform(z, extrapolate="nan")
    np.testing.assert_array_equal(np.isnan(missing).all(axis=1), [False] * 4 + [True] * 2)
    with pytest.raises(ValueError, match=r"2 of 6 rows: no row of the fit is within reach.*1000.0, 0.0"):
        found.transform(z, extrapolate="raise")


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_a_sweep_starts_from_the_fit_before(method: str) -> None:
    """The same optimum in fewer passes, on the way to a bandwidth nearby."""
    x = moons(150)
    warm = make(0.9, method, 100, accuracy=1.0, solver=Ascent(warm_start=True)).fit(x)
    cold = make(0.8, method, 100, accuracy=1.0).fit(x)
    warm.set_params(bandwidth=0.8).fit(x)
    assert warm.n_passes_ <= cold.n_passes_ - (method == "exact")  # landmarks start from half of them in any case
    assert gram_error(warm.embedding_, cold.embedding_) < 1e-5
    with pytest.raises(ValueError, match="warm_start starts from a fit that the checkpoint does not hold"):
        warm.fit(x, checkpoint="run.zarr")
    for other in (x[:100], x[:, :1]):  # other rows; other columns: from the beginning
        assert warm.fit(other).certificate_.optimal
