"""SDPEmbedding: reference solutions, extension, stages, methods, checkpoints, and what it refuses.

`sdp_small.npz`, by independent code: for wine E (178, 2) of the optimum at several bandwidths.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.embedding import fitting as choice
from daskspectral.embedding import landmark_passes as embedding_passes
from daskspectral.embedding.landmark_passes import Passes
from daskspectral.errors import InvalidRowError, ReliabilityWarning
from daskspectral.solvers import BurerMonteiro
from tests.common import reference_arrays, unreliable
from tests.embedding.moons import abar_of, gap_of, gaussian, gram_error, moons, wine

Array = NDArray[np.floating[Any]]
METHODS = ("exact", "lowrank")
X = moons(160)
D = np.random.default_rng(0).uniform(0.5, 2, 160)


def make(
    bandwidth: float = 0.7, method: str = "lowrank", count: int | str = 60, random_state: int = 0, **options: Any
) -> dsp.SDPEmbedding:
    landmarks = Landmarks(n_landmarks=count, method="cholesky")
    return dsp.SDPEmbedding(bandwidth, method=method, landmarks=landmarks, random_state=random_state, **options)


def same_fit(a: dsp.SDPEmbedding, b: dsp.SDPEmbedding) -> None:
    np.testing.assert_array_equal(np.asarray(a.embedding_), np.asarray(b.embedding_))
    np.testing.assert_array_equal(a.spectrum_, b.spectrum_)
    np.testing.assert_array_equal(a.objectives_, b.objectives_)
    assert (a.objective_, a.certificate_, a.n_passes_, a.rank_) == (b.objective_, b.certificate_, b.n_passes_, b.rank_)


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Array]:
    return reference_arrays("sdp_small")


# -- the optimum -------------------------------------------------------------------------------------------------------


WINE = {  # eigenvalues of B over the trace, objective, trace of B
    1.5: (0.550150468840, 0.449849531160, 71.214946148416, 76.5010671286),
    3.0: (0.744757762712, 0.255242237288, 4.302145011646, 7.8856983409),
    10.0: (0.874619989202, 0.125380010798, 0.021926511152, 0.2866120763),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("bandwidth", WINE)
def test_wine(bandwidth: float, reference: Mapping[str, Array]) -> None:
    x, (first, second, objective, trace) = wine(), WINE[bandwidth]
    found = make(bandwidth, "exact", solver=BurerMonteiro(tolerance=1e-12)).fit(x)
    assert found.rank_ == found.embedding_.shape[1] == 2
    assert found.certificate_.optimal
    assert found.certificate_.least_eigenvalue >= -1e-11
    assert found.certificate_.gap <= 1e-10 * found.objective_
    np.testing.assert_allclose(found.objective_, objective, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.spectrum_ / found.spectrum_.sum(), [first, second], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.spectrum_.sum(), trace, rtol=1e-9)
    e = reference[f"wine_{bandwidth:g}"]
    signs = np.sign(np.sum(e * found.embedding_, axis=0))
    np.testing.assert_allclose(found.embedding_, e * signs, rtol=0, atol=1e-6)
    abar = abar_of(x, bandwidth)
    assert gap_of(abar, found.embedding_, np.diag(abar)) < 1e-10
    if bandwidth > 2:
        power = make(bandwidth, "exact", solver=BurerMonteiro("power")).fit(x)
        np.testing.assert_allclose(power.objective_, objective, rtol=1e-8)
        low = make(bandwidth, count=178).fit(x)  # every point a landmark
        assert low.certificate_.optimal
        assert low.coverage_ > 1 - 1e-6
        np.testing.assert_allclose(low.objective_, objective, rtol=1e-7)
        assert gram_error(low.embedding_, e) < 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_the_extension_is_formula_1_5(method: str) -> None:
    """sqrt(d(x)) times the direction of sum_j (k(x, x_j) - m(x) m_j / sum m) E_j / sqrt(m_j), with the kernel used."""
    found, z = make(0.7, method).fit(X), X[:20] + 0.05
    e = np.asarray(found.embedding_)
    k, cross = gaussian(X, X, 0.7), gaussian(z, X, 0.7)
    if method == "lowrank":
        y = found.extension_.points
        middle = np.linalg.pinv(gaussian(y, y, 0.7), rcond=1e-10, hermitian=True)
        k, cross = (gaussian(x, y, 0.7) @ middle @ gaussian(y, X, 0.7) for x in (X, z))
    m, mass = k.sum(axis=1), cross.sum(axis=1)
    u = (cross - np.outer(mass, m) / m.sum()) / np.sqrt(m) @ e
    expected = np.sqrt(1 / mass - mass / m.sum())[:, None] * u / np.linalg.norm(u, axis=1, keepdims=True)
    np.testing.assert_allclose(found.transform(z), expected, rtol=0, atol=1e-8)


# -- what changes nothing ----------------------------------------------------------------------------------------------


def test_a_seed_has_the_same_bits_on_any_scheduler() -> None:
    def fit(**changes: Any) -> dsp.SDPEmbedding:
        return make(**changes).fit(da.from_array(X, chunks=(60, 2)))

    with dask.config.set(scheduler="sync"):
        plain = fit()
    with dask.config.set(scheduler="threads", num_workers=3):
        same_fit(fit(), plain)
    exact, other = (make(method="exact", random_state=seed).fit(X) for seed in (0, 5))
    np.testing.assert_allclose(other.embedding_, exact.embedding_, rtol=0, atol=1e-6)
    e = exact.embedding_
    assert (e[np.abs(e).argmax(axis=0), np.arange(exact.rank_)] > 0).all()


# -- bounds, missing rows, saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_bounds_of_the_caller_on_the_diagonal(method: str, tmp_path: Path) -> None:
    found = make(method=method).fit(X, diagonal=D)
    e = np.asarray(found.embedding_)
    np.testing.assert_allclose(np.sum(e**2, axis=1), D, rtol=1e-10)
    np.testing.assert_allclose(found.transform(X[:5], diagonal=4 * D[:5]), 2 * e[:5], rtol=0, atol=1e-9)
    if method == "exact":
        assert gap_of(abar_of(X, 0.7), e, D) <= 1e-10
    dsp.save(found, tmp_path / "model.zarr")
    loaded = dsp.load(tmp_path / "model.zarr")
    same_fit(loaded, found)
    np.testing.assert_array_equal(loaded.transform(X + 0.01, diagonal=D), found.transform(X + 0.01, diagonal=D))
    with pytest.raises(ValueError, match="diagonal"):
        found.transform(X)
    with pytest.raises(ValueError, match="160 positive"):
        found.transform(X, diagonal=-D)
    with pytest.raises(ValueError, match="diagonal"):
        make(method=method).fit(X, diagonal=np.where(np.arange(160) == 3, 0, D))
    missing = np.where(np.arange(160) == 150, np.nan, D)
    with pytest.raises(InvalidRowError, match="row 150 "):
        make(method=method).fit(X, diagonal=missing)
    without = make(method=method).fit(dsp.Rows(X, on_invalid="skip"), diagonal=missing)
    assert np.flatnonzero(np.isnan(without.embedding_).any(axis=1)).tolist() == [150]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    run, call, made = tmp_path / "run.zarr", Passes.__call__, [0]
    reduce = embedding_passes.Run.reduce

    def fit(x: Array = X, **options: Any) -> dsp.SDPEmbedding:
        made[0] = 0
        return make(1.0, count=40).fit(x, **options)

    def halting(self: Passes, task: Any, state: Any = None) -> Any:
        if self.count == 6:
            raise KeyboardInterrupt
        return call(self, task, state)

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        made[0] += 1
        return reduce(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Passes, "__call__", halting)
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=run, checkpoint_every=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_passes.Run, "reduce", counted)
        plain, needed = fit(), made[0]
        again = fit(checkpoint=run)
        assert made[0] == needed - 6
        same_fit(again, plain)
        same_fit(fit(checkpoint=run), plain)
        assert made[0] == 0
    with pytest.raises(ValueError, match=r"another run"):
        fit(X + 1, checkpoint=run)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:only 1 of:daskspectral.errors.RankWarning")
def test_uninformative_bandwidths_and_points(method: str) -> None:
    model = make(method=method, count=20)
    far = np.concatenate([X[:10], X[10:20] + 1e7])
    for bandwidth, x in (
        (0.001, X[:20]),
        (0.001, X[[*range(20), 0, 1]]),
        (1e7, X),
        (1.0, np.ones((30, 2))),
        (0.5, far),
    ):
        with pytest.raises(ValueError, match="at bandwidth"):
            clone(model).set_params(bandwidth=bandwidth).fit(x)


@unreliable
@pytest.mark.parametrize("method", METHODS)
def test_one_far_outlier(method: str) -> None:
    """It has no neighbor: its row is as long as any feasible one's; further away it is refused."""
    x = X[:60].copy()
    x[0] = [1e4, 0.0]
    found, abar = make(method=method).fit(x), abar_of(x, 0.7)
    assert found.certificate_.optimal
    np.testing.assert_allclose(np.sum(np.square(found.embedding_), axis=1), np.diag(abar), rtol=0, atol=2e-7)
    x[0, 0] = 1e6
    with pytest.raises(ValueError, match=r"\[1000000.0, 0.0\]"):
        make(method=method).fit(x)


# -- stages, methods, new points ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_each_stage_is_the_optimum_of_what_is_left(method: str) -> None:
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


def test_methods_that_auto_selects(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    """All points where they are few; landmarks, doubled until they answer; all points where they do not."""
    assert make(0.7, "auto", "auto").fit(moons(100)).method_ == "exact"
    monkeypatch.setattr(choice, "FEW", 100)
    x = moons(600)
    found, exact = make(0.7, "auto", "auto").fit(x), make(0.7, "exact", "auto").fit(x)
    assert found.method_ == "lowrank"
    assert len(found.extension_.points) <= 600 / 5
    assert gram_error(found.embedding_, exact.embedding_) < 1e-3
    assert found.certificate_.approximation < 1e-3
    with pytest.raises(ValueError, match="exact"):
        make(0.7, "exact").fit(moons(3001))
    solver = BurerMonteiro(tolerance=1e-6)
    wide = make(1.5, "auto", "auto", solver=solver).fit(np.random.default_rng(0).normal(size=(200, 6)))
    assert wide.method_ == "exact"  # more than n / 5 landmarks would be needed
    assert not [w for w in recwarn if issubclass(w.category, ReliabilityWarning)]


@pytest.mark.parametrize("method", METHODS)
def test_points_far_from_every_row(method: str) -> None:
    x = moons(150)
    z = np.concatenate([x[:4], [[1e3, 0.0]], [[-1e6, 1e6]]])
    found = make(0.7, method, 60, accuracy=1.0).fit(x)
    e = np.asarray(found.embedding_)
    with pytest.warns(
        ReliabilityWarning, match=r"2 of 6 rows have the direction of their nearest row: no row of the fit"
    ):
        after = found.transform(z)
    np.testing.assert_allclose(after[:4], e[:4], rtol=0, atol=1e-9)
    for row, point in zip(after[4:], z[4:], strict=True):
        near = e[np.argmin(np.sum((x - point) ** 2, axis=1))]
        np.testing.assert_allclose(row / np.linalg.norm(row), near / np.linalg.norm(near), atol=1e-9)
        np.testing.assert_allclose(row @ row, np.square(e).sum(axis=1).max(), rtol=1e-3)
    with pytest.warns(ReliabilityWarning, match=r"rows 0 to 6: 2 of 6 rows have the direction"):
        np.testing.assert_array_equal(found.transform(da.from_array(z, chunks=(6, 2))).compute(), after)
