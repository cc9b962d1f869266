"""SDPEmbedding: reference solutions, containers, extension, checkpoints, and what it refuses.

`sdp_small.npz`, by independent code: for wine E (178, 2) of the optimum at five bandwidths, two sets of two moons
(2, 400, 2) with the objective and the certificate that 5000 power steps reach at each bandwidth, and the interval.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import daskspectral as dsp
from daskspectral.errors import InvalidRowError
from daskspectral.passes import embed as embedding_choice
from daskspectral.passes import embedding as embedding_passes
from daskspectral.passes.embedding import Passes
from tests.common import reference_arrays, written

Array = NDArray[np.floating[Any]]
METHODS = ("exact", "lowrank")
WINE = {  # eigenvalues of B over the trace, objective, trace of B
    1.5: (0.550150468840, 0.449849531160, 71.214946148416, 76.5010671286),
    2.0: (0.574416547834, 0.425583452166, 26.799066522694, 33.1823894911),
    3.0: (0.744757762712, 0.255242237288, 4.302145011646, 7.8856983409),
    4.0: (0.802250208640, 0.197749791360, 1.149772921623, 2.9648435754),
    10.0: (0.874619989202, 0.125380010798, 0.021926511152, 0.2866120763),
}


def moons(n: int, noise: float = 0.1, seed: int = 0) -> Array:
    x = make_moons(n, noise=noise, random_state=seed)[0]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


X = moons(300)


def make(bandwidth: float = 0.7, method: str = "lowrank", **changes: Any) -> dsp.SDPEmbedding:
    defaults = {"n_landmarks": 40, "random_state": 0}
    return dsp.SDPEmbedding(bandwidth, method=method, **(defaults | changes))


def abar_of(x: Array, bandwidth: float) -> Array:
    k = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2) / bandwidth**2)
    m = k.sum(axis=1)
    return np.asarray(k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum())


def gap_of(abar: Array, e: Array, d: Array) -> float:
    """The duality gap over the objective, from the matrices."""
    y = np.sum((abar @ e) * e, axis=1) / d
    return float(max(0.0, -np.linalg.eigvalsh(np.diag(y) - abar)[0]) * d.sum() / (d @ y))


def same_fit(a: dsp.SDPEmbedding, b: dsp.SDPEmbedding) -> None:
    np.testing.assert_array_equal(np.asarray(a.embedding_), np.asarray(b.embedding_))
    np.testing.assert_array_equal(a.spectrum_, b.spectrum_)
    np.testing.assert_array_equal(a.objectives_, b.objectives_)
    assert (a.objective_, a.certificate_, a.n_passes_, a.rank_) == (b.objective_, b.certificate_, b.n_passes_, b.rank_)


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Array]:
    return reference_arrays("sdp_small")


@pytest.fixture(scope="module")
def wine() -> Array:
    x = load_wine().data
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0, ddof=1))


@pytest.mark.parametrize("bandwidth", WINE)
def test_wine(bandwidth: float, wine: Array, reference: Mapping[str, Array]) -> None:
    first, second, objective, trace = WINE[bandwidth]
    found = make(bandwidth, "exact", tolerance=1e-12).fit(wine)
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
    abar = abar_of(wine, bandwidth)
    assert gap_of(abar, found.embedding_, np.diag(abar)) < 1e-10
    np.testing.assert_allclose(np.sum(abar * (e @ e.T)), objective, rtol=1e-10)


@pytest.mark.parametrize("bandwidth", [3.0, 10.0])
def test_wine_with_every_point_a_landmark(bandwidth: float, wine: Array) -> None:
    found = make(bandwidth, n_landmarks=178).fit(wine)
    exact = make(bandwidth, "exact").fit(wine)
    assert found.certificate_.optimal
    assert found.coverage_ > 1 - 1e-6
    np.testing.assert_allclose(found.objective_, exact.objective_, rtol=1e-7)
    b, dense = found.embedding_ @ found.embedding_.T, exact.embedding_ @ exact.embedding_.T
    assert np.linalg.norm(b - dense) < 1e-4 * np.linalg.norm(dense)


def test_the_interval(reference: Mapping[str, Array]) -> None:
    """The reference's kernel is times dx = 2 / 15, so that its B is 1 / dx times ours."""
    x = np.linspace(-1 + 1 / 15, 1 - 1 / 15, 15)[:, None]
    found = make(0.1, "exact").fit(x)
    expected = reference["interval"] * np.sqrt(2 / 15)
    signs = np.sign(np.sum(expected * found.embedding_, axis=0))
    np.testing.assert_allclose(found.embedding_, expected * signs, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.spectrum_ * 7.5, [53.0011134, 25.1078190], rtol=1e-8)
    assert found.certificate_.least_eigenvalue >= -1e-11
    # the extension is a function of direction times sqrt(d(x)): the same circle between the points
    between, values = found.transform(reference["interval_at"]), reference["interval_values"]
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    np.testing.assert_allclose(between, signs * unit * np.linalg.norm(between, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("bandwidth", [0.2, 0.3, 0.5, 1.0])
def test_two_moons(index: int, bandwidth: float, reference: Mapping[str, Array]) -> None:
    """No less than 5000 power steps reach, proved, and the same where these were converged."""
    x, at = reference["moons"][index], int(np.abs(reference["bandwidths"] - bandwidth).argmin())
    found = make(bandwidth, "exact", tolerance=1e-10).fit(x)
    objective = reference["moons_objective"][index, at]
    assert found.certificate_.optimal
    assert found.certificate_.gap <= 1e-10 * found.objective_
    assert found.objective_ >= objective * (1 - 1e-10)
    assert found.objective_ <= objective * (1 + 1e-10) - reference["moons_least"][index, at] * found.spectrum_.sum()
    abar = abar_of(x, bandwidth)
    np.testing.assert_allclose(np.sum(abar * (found.embedding_ @ found.embedding_.T)), found.objective_, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bandwidth", [0.7, 1.5])
def test_transform_of_the_points_of_the_fit_is_the_embedding(method: str, bandwidth: float) -> None:
    found = make(bandwidth, method).fit(X)
    e = np.asarray(found.embedding_)
    assert e.shape == (300, found.rank_)
    np.testing.assert_allclose(found.transform(X), e, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.transform(X[7:30]), e[7:30], rtol=0, atol=1e-9)
    np.testing.assert_allclose(e.T @ e, np.diag(found.spectrum_), rtol=0, atol=1e-9 * found.spectrum_[0])
    assert (np.diff(found.spectrum_) <= 0).all()
    np.testing.assert_array_equal(np.asarray(clone(found).fit_transform(X)), e)


@pytest.mark.parametrize("method", METHODS)
def test_the_extension_is_formula_1_5(method: str) -> None:
    """sqrt(d(x)) times the direction of sum_j (k(x, x_j) - m(x) m_j / sum m) E_j / sqrt(m_j), with the kernel used."""
    found, z = make(0.7, method).fit(X), X[:20] + 0.05

    def kernel(a: Array, b: Array) -> Array:
        return np.asarray(np.exp(-np.sum((a[:, None] - b) ** 2, axis=2) / 0.49))

    if method == "exact":
        k, cross = kernel(X, X), kernel(z, X)
    else:
        y = found.extension_.points
        middle = np.linalg.pinv(kernel(y, y), rcond=1e-10, hermitian=True)
        k, cross = kernel(X, y) @ middle @ kernel(y, X), kernel(z, y) @ middle @ kernel(y, X)
    m, mass = k.sum(axis=1), cross.sum(axis=1)
    u = (cross - np.outer(mass, m) / m.sum()) / np.sqrt(m) @ np.asarray(found.embedding_)
    expected = np.sqrt(1 / mass - mass / m.sum())[:, None] * u / np.linalg.norm(u, axis=1, keepdims=True)
    np.testing.assert_allclose(found.transform(z), expected, rtol=0, atol=1e-8)


def test_low_rank_is_close_to_exact() -> None:
    x = moons(600)
    exact, low = make(0.6, "exact").fit(x), make(0.6, n_landmarks=150).fit(x)
    assert exact.certificate_.optimal
    assert low.certificate_.optimal
    assert low.coverage_ > 0.99
    np.testing.assert_allclose(low.objective_, exact.objective_, rtol=1e-3)
    b, dense = (np.asarray(one.embedding_) @ np.asarray(one.embedding_).T for one in (low, exact))
    assert np.linalg.norm(b - dense) < 1e-2 * np.linalg.norm(dense)


@pytest.mark.parametrize("method", METHODS)
def test_the_container_decides_nothing(method: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    stored = zarr.create_array(path, shape=X.shape, chunks=(100, 2), dtype="f8")
    stored[:] = X
    plain = make(method=method).fit(X)
    e = np.asarray(plain.embedding_)
    lazy = da.from_array(X, chunks=(100, 1))
    labelled = xr.DataArray(X, dims=("point", "coordinate"), coords={"point": np.arange(300) * 2})
    found = {
        name: make(method=method).fit(x)
        for name, x in {"zarr": stored, "path": str(path), "dask": lazy, "xarray": labelled}.items()
    }
    for name, one in found.items():
        np.testing.assert_allclose(np.asarray(one.embedding_), e, rtol=0, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(one.objective_, plain.objective_, rtol=1e-12)
    same_fit(found["zarr"], found["path"])
    same_fit(found["xarray"], plain)
    assert isinstance(plain.transform(lazy), da.Array)
    assert isinstance(plain.transform(str(path)), da.Array)
    assert isinstance(plain.transform(stored), da.Array)
    after = plain.transform(labelled)
    assert after.dims == ("point", "component")
    np.testing.assert_array_equal(after.eigenvalue, plain.spectrum_)
    np.testing.assert_array_equal(after.point, labelled.point)
    for x in (lazy, stored, labelled):
        np.testing.assert_allclose(np.asarray(plain.transform(x)), e, rtol=0, atol=1e-9)
    plain.transform(stored, out=tmp_path / "e.zarr")
    np.testing.assert_allclose(written(tmp_path / "e.zarr"), e, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_scheduler_decides_nothing(method: str) -> None:
    def fit() -> dsp.SDPEmbedding:
        return make(method=method, cache="never").fit(da.from_array(X, chunks=(60, 2)))

    with dask.config.set(scheduler="sync"):
        plain = fit()
        np.asarray(plain.embedding_)
    with dask.config.set(scheduler="threads", num_workers=3):
        threaded = fit()
        same_fit(threaded, plain)
        np.testing.assert_array_equal(threaded.transform(X[::7]), plain.transform(X[::7]))
    assert plain.method_ == method


def test_a_cluster_decides_nothing(cluster: LocalCluster) -> None:
    x = da.from_array(X, chunks=(100, 2))
    plain = make(bandwidth=1.5).fit(x)
    with Client(cluster):
        remote = make(bandwidth=1.5).fit(x)
        same_fit(remote, plain)
        np.testing.assert_array_equal(np.asarray(remote.transform(x)), np.asarray(plain.transform(x)))
    assert plain.certificate_.optimal


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_the_same_bits_and_a_sign(method: str) -> None:
    one, other = make(method=method).fit(X), make(method=method).fit(X.copy())
    same_fit(one, other)
    different = make(method=method, random_state=5).fit(X)
    np.testing.assert_allclose(different.objective_, one.objective_, rtol=1e-3 if method == "lowrank" else 1e-9)
    if method == "exact":
        np.testing.assert_allclose(different.embedding_, one.embedding_, rtol=0, atol=1e-6)
        e = one.embedding_
        assert (e[np.abs(e).argmax(axis=0), np.arange(one.rank_)] > 0).all()


def test_kept_kernel_values_change_nothing() -> None:
    same = [make(cache=cache).fit(X) for cache in ("auto", "always", "never")]
    np.testing.assert_allclose(same[0].embedding_, same[2].embedding_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(same[0].embedding_, same[1].embedding_)


def test_kernel_values_in_a_scratch_array(tmp_path: Path) -> None:
    path = tmp_path / "features.zarr"
    d = np.random.default_rng(0).uniform(0.5, 2, 300)
    for given in (None, d):
        found = make(cache_path=path).fit(X, diagonal=given)
        np.testing.assert_allclose(
            found.embedding_, make(cache="never").fit(X, diagonal=given).embedding_, rtol=0, atol=1e-9
        )
        assert zarr.open_array(path).shape == (300, len(found.extension_.points))
        shutil.rmtree(path)
    with pytest.raises(ValueError, match=r"cache_path takes no dask array: write X by X.to_zarr"):
        make(cache_path=path).fit(da.from_array(X, chunks=(100, 2)))
    with pytest.raises(ValueError, match=r"cache_path keeps every row: .* on_invalid='raise'"):
        make(cache_path=path).fit(X, on_invalid="skip")


def test_masked_bounds_are_not_used_in_silence() -> None:
    d = np.random.default_rng(0).uniform(0.5, 2, 300)
    masked = da.from_array(np.ma.masked_array(d, mask=np.arange(300) == 17), chunks=100, asarray=False)
    fitted = make().fit(X, diagonal=d)
    np.testing.assert_array_equal(fitted.transform(X, diagonal=da.from_array(d, chunks=100)), fitted.embedding_)
    with pytest.raises(ValueError, match=r"diagonal must be 300 positive numbers"):
        fitted.transform(X, diagonal=masked)


def test_cache_is_a_word_and_cache_path_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for cache in ("always", "auto", "never"):
        make(cache=cache).fit(X)
    assert list(tmp_path.iterdir()) == []
    for wrong in ("features.zarr", tmp_path / "features.zarr", "", True, None):
        with pytest.raises(ValueError, match=r"cache must be 'auto' or 'always' or 'never'; it is"):
            make(cache=wrong).fit(X)
    for wrong in ("", 3, b"features.zarr"):
        with pytest.raises(ValueError, match=r"cache_path must be a path or None"):
            make(cache_path=wrong).fit(X)
    with pytest.raises(ValueError, match=r"cache='never' keeps nothing at cache_path"):
        make(cache="never", cache_path="features.zarr").fit(X)
    assert list(tmp_path.iterdir()) == []


def test_kernel_values_that_are_always_kept_and_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = make(cache="never").fit(X).embedding_
    monkeypatch.setattr(embedding_passes, "KEPT", 1000)
    with pytest.raises(MemoryError, match=r"cache='always': .* GB, cannot be kept .*; give cache_path"):
        make(cache="always").fit(X)
    kept = make(cache="always", cache_path=str(tmp_path / "features.zarr")).fit(X)
    np.testing.assert_allclose(kept.embedding_, wanted, rtol=0, atol=1e-9)
    with pytest.raises(MemoryError, match=r"dask array"):
        make(cache="always").fit(da.from_array(X, chunks=(100, 2)))


def test_a_second_fit_replaces_its_own_scratch_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "features.zarr"
    model = make(cache_path=path)
    model.fit(X)
    model.fit(X[:200])
    assert zarr.open_array(path).shape[0] == 200
    model.save(tmp_path / "model.zarr")
    assert dsp.load(tmp_path / "model.zarr").get_params()["cache_path"] == str(path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "data.txt").write_text("mine")
    (tmp_path / "a_file").write_text("mine")
    zarr.create_array(tmp_path / "points.zarr", data=X)
    zarr.open_group(tmp_path / "group.zarr", mode="w").create_array("x", data=X)
    before = sorted(tmp_path.rglob("*"))
    for other in ("empty", "notes", "a_file", "points.zarr", "group.zarr", "model.zarr"):
        with pytest.raises(FileExistsError, match=rf"{other} exists and is not the scratch of an earlier fit"):
            make(cache_path=tmp_path / other).fit(X)
    with pytest.raises(FileNotFoundError, match=r"nowhere, the directory for features.zarr, is missing"):
        make(cache_path=tmp_path / "nowhere" / "features.zarr").fit(X)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "notes" / "data.txt").read_text() == "mine"


def test_a_kernel_that_does_not_fit_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = make(1.5, "exact").fit(X)
    monkeypatch.setattr(embedding_passes, "KEPT", 1000)
    anew = make(1.5, "exact").fit(X)
    np.testing.assert_allclose(anew.embedding_, kept.embedding_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("own", [False, True])
def test_a_model_saved_and_loaded(method: str, own: bool, tmp_path: Path) -> None:
    d = np.random.default_rng(0).uniform(0.5, 2, 300) if own else None
    one = make(method=method, standardize=True, columns=[1, 0]).fit(X, diagonal=d)
    dsp.save(one, tmp_path / "model.zarr")
    other = dsp.load(tmp_path / "model.zarr")
    same_fit(one, other)
    assert other.get_params() == one.get_params()
    assert (other.method_, other.n_features_in_) == (method, 2)
    z = X[:9] + 0.01
    bound = None if d is None else d[:9]
    np.testing.assert_array_equal(other.transform(z, diagonal=bound), one.transform(z, diagonal=bound))


@pytest.mark.parametrize("method", METHODS)
def test_own_bounds_on_the_diagonal(method: str) -> None:
    d = np.random.default_rng(0).uniform(0.5, 2, 300)
    found = make(method=method, tolerance=1e-10).fit(X, diagonal=d)
    e = np.asarray(found.embedding_)
    np.testing.assert_allclose(np.sum(e**2, axis=1), d, rtol=1e-10)
    np.testing.assert_allclose(found.transform(X, diagonal=d), e, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.transform(X[:5], diagonal=4 * d[:5]), 2 * e[:5], rtol=0, atol=1e-9)
    assert found.certificate_.optimal
    if method == "exact":
        assert gap_of(abar_of(X, 0.7), e, d) <= 1e-10
    with pytest.raises(
        ValueError, match=r"transform needs diagonal, the bounds at these points: the fit was given one"
    ):
        found.transform(X)
    with pytest.raises(ValueError, match=r"diagonal must be 300 positive numbers, a bound for each row"):
        found.transform(X, diagonal=-d)
    with pytest.raises(ValueError, match=r"transform takes no diagonal: the fit was given none"):
        make(method=method).fit(X).transform(X, diagonal=d)
    d[3] = 0
    with pytest.raises(ValueError, match=r"diagonal must be positive at every row; 1 (of 300 )?are not"):
        make(method=method).fit(X, diagonal=d)
    with pytest.raises(ValueError, match=r"diagonal"):
        make(method=method).fit(X, diagonal=d[:7])


@pytest.mark.parametrize("method", METHODS)
def test_invalid_rows(method: str) -> None:
    x = X.copy()
    x[[5, 250], [0, 1]] = np.nan
    valid = np.isfinite(x).all(axis=1)
    with pytest.raises(InvalidRowError, match=r"row 5 "):
        make(method=method).fit(x)
    found = make(method=method).fit(x, on_invalid="skip")
    without = make(method=method).fit(x[valid])
    np.testing.assert_allclose(found.objective_, without.objective_, rtol=1e-9)
    after = found.transform(x, on_invalid="skip")
    np.testing.assert_array_equal(np.isnan(after).any(axis=1), ~valid)
    np.testing.assert_allclose(after[valid], np.asarray(without.embedding_), rtol=0, atol=1e-6)
    assert np.asarray(found.embedding_).shape == (300, found.rank_)
    with pytest.raises(InvalidRowError, match=r"row 5 "):
        found.transform(x)


@pytest.mark.parametrize("method", METHODS)
def test_invalid_rows_with_own_bounds(method: str) -> None:
    """A row of which the point or the bound is missing is left out."""
    x, d = X.copy(), np.random.default_rng(0).uniform(0.5, 2, 300)
    x[5, 0] = d[250] = np.nan
    valid = np.isfinite(x).all(axis=1) & np.isfinite(d)
    found = make(1.0, method).fit(x, diagonal=d, on_invalid="skip")
    without = make(1.0, method).fit(x[valid], diagonal=d[valid])
    np.testing.assert_allclose(found.objective_, without.objective_, rtol=1e-9)
    e = np.asarray(found.embedding_)
    np.testing.assert_array_equal(np.isnan(e).any(axis=1), ~valid)
    np.testing.assert_allclose(np.sum(e[valid] ** 2, axis=1), d[valid], rtol=1e-10)
    with pytest.raises(ValueError, match=r"diagonal must be 300 positive numbers"):
        found.transform(X, diagonal=d)


class Halt(Exception):
    pass


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    run, call, made = tmp_path / "run.zarr", Passes.__call__, [0]

    def fit(**options: Any) -> dsp.SDPEmbedding:
        return make(1.0, n_landmarks=30).fit(X, **options)

    def halting(self: Passes, task: Any, state: Any = None) -> Any:
        if self.count == 6:
            raise Halt
        return call(self, task, state)

    reduce = embedding_passes.Run.reduce

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        made[0] += 1
        return reduce(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Passes, "__call__", halting)
        with pytest.raises(Halt):
            fit(checkpoint=run, checkpoint_every=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_passes.Run, "reduce", counted)
        plain = fit()
        needed, made[0] = made[0], 0
        again = fit(checkpoint=run)
        assert made[0] == needed - 6
        made[0] = 0
        finished = fit(checkpoint=run)
        assert made[0] == 0
    same_fit(again, plain)
    same_fit(finished, plain)
    with pytest.raises(ValueError, match=r"another run"):
        make(0.8).fit(X, checkpoint=run)
    with pytest.raises(ValueError, match=r"another run"):
        make(1.0, n_landmarks=30).fit(X + 1, checkpoint=run)
    with pytest.raises(ValueError, match=r"give method='lowrank', or no checkpoint"):
        make(method="exact").fit(X, checkpoint=run)


@pytest.mark.parametrize("method", METHODS)
def test_columns_and_standardisation(method: str) -> None:
    rng = np.random.default_rng(0)
    raw = np.column_stack([3 * X[:, 1] + 7, rng.standard_normal(300), 0.1 * X[:, 0]])
    found = make(method=method, columns=[2, 0], standardize=True).fit(raw)
    plain = make(method=method).fit(X)
    np.testing.assert_allclose(found.objective_, plain.objective_, rtol=1e-9 if method == "exact" else 1e-3)
    if method == "exact":
        np.testing.assert_allclose(found.embedding_, plain.embedding_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.transform(raw), np.asarray(found.embedding_), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features"):
        found.transform(X)


@pytest.mark.parametrize("method", METHODS)
def test_the_embedding_is_one_of_distances(method: str) -> None:
    """A rigid motion of the points changes nothing."""
    turn = ortho_group.rvs(2, random_state=0)
    landmarks = make().fit(X).extension_.points
    one = make(method=method, landmarks=landmarks).fit(X)
    other = make(method=method, landmarks=landmarks @ turn + [3.0, -1.0]).fit(X @ turn + [3.0, -1.0])
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-8)
    e, f = np.asarray(one.embedding_), np.asarray(other.embedding_)
    np.testing.assert_allclose(f @ f.T, e @ e.T, rtol=0, atol=1e-6)


def test_auto_is_exact_for_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make(method="auto").fit(X).method_ == "exact"
    monkeypatch.setattr(embedding_choice, "FEW", 299)
    assert make(method="auto", accuracy=1.0).fit(X).method_ == "lowrank"


@pytest.mark.parametrize("method", METHODS)
def test_the_power_method_reaches_the_same_in_more_passes(method: str) -> None:
    slow, fast = (make(1.0, method, solver=solver).fit(X[:150]) for solver in ("power", "accelerated"))
    assert slow.certificate_.optimal
    assert fast.certificate_.optimal
    assert fast.n_passes_ <= slow.n_passes_
    assert len(slow.objectives_) == slow.n_passes_
    np.testing.assert_allclose(slow.objective_, fast.objective_, rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_a_run_that_ends_early_is_not_called_optimal(method: str, passes: int) -> None:
    best = make(3.0, method).fit(X).objective_
    with pytest.warns(ConvergenceWarning, match=r"the embedding is not proved optimal"):
        found = make(3.0, method, max_passes=passes).fit(X)
    assert found.n_passes_ == passes
    assert not found.certificate_.optimal
    assert found.objective_ + found.certificate_.gap >= best * (1 - 1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bandwidth", [0.001, 0.01])
def test_the_kernel_of_a_tiny_bandwidth_is_refused(method: str, bandwidth: float) -> None:
    with pytest.raises(ValueError, match=r"at bandwidth 0.0+1 the kernel is the identity: .* Give a larger bandwidth"):
        make(bandwidth, method, n_landmarks=100).fit(X[:30])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:only 1 of:daskspectral.errors.RankWarning")
def test_the_kernel_of_a_huge_bandwidth_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match=r"at bandwidth 1e\+07 the kernel is of rank one: .* Give a smaller bandwidth"):
        make(1e7, method).fit(X)
    with pytest.raises(ValueError, match=r"rank one: it cannot tell any two points apart"):
        make(1.0, method).fit(np.ones((30, 2)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:only:daskspectral.errors.RankWarning")
def test_duplicate_points(method: str) -> None:
    """Each point twice: the same embedding over sqrt(2), twice, proved over all rows."""
    once, twice = make(method=method).fit(X[:60]), make(method=method).fit(np.repeat(X[:60], 2, axis=0))
    e, f = np.asarray(once.embedding_), np.asarray(twice.embedding_)
    assert twice.certificate_.optimal
    np.testing.assert_allclose(f[::2], f[1::2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(2 * f[::2] @ f[::2].T, e @ e.T, rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_one_far_outlier(method: str) -> None:
    """It has no neighbour: its row is as long as any feasible one's, alone, and finite; the rest is proved too."""
    x = X[:60].copy()
    x[0] = [1e4, 0.0]
    found = make(method=method, n_landmarks=60).fit(x)
    e = np.asarray(found.embedding_)
    abar = abar_of(x, 0.7)
    assert found.certificate_.optimal
    assert np.isfinite(e).all()
    np.testing.assert_allclose(np.sum(e**2, axis=1), np.diag(abar), rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.sum(abar * (e @ e.T)), found.objective_, rtol=1e-7)
    assert gap_of(abar, e, np.diag(abar)) < (1e-7 if method == "lowrank" else 1e-10)
    x[0] = [1e6, 0.0]
    with pytest.raises(
        ValueError, match=r"the point \[1000000.0, 0.0\] is .* bandwidths away .* leave such points out"
    ):
        make(method=method, n_landmarks=60).fit(x)


@pytest.mark.parametrize("method", METHODS)
def test_few_points(method: str) -> None:
    with pytest.raises(ValueError, match=r"X has 1 row \(n_samples = 1\), and SDPEmbedding needs 2 or more"):
        make(method=method).fit(X[:1])
    # of two, Abar = (1 - k) / 2 [[1, -1], [-1, 1]] / (1 + k): opposite signs
    k = float(np.exp(-np.sum((X[0] - X[1]) ** 2)))
    found = make(1.0, method).fit(X[:2])
    half = (1 - k) / (2 * (1 + k))
    np.testing.assert_allclose(np.abs(found.embedding_), np.sqrt([[half], [half]]), rtol=1e-9)
    np.testing.assert_allclose(found.embedding_.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(found.objective_, 4 * half**2, rtol=1e-9)
    assert found.certificate_.optimal


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_column_changes_nothing(method: str) -> None:
    x = np.column_stack([X, np.full(300, 5.0)])
    landmarks = make().fit(X).extension_.points
    for standardize in (False, True):
        third = np.full(len(landmarks), 5.0)
        one = make(method=method, landmarks=landmarks, standardize=standardize).fit(X)
        other = make(method=method, landmarks=np.column_stack([landmarks, third]), standardize=standardize).fit(x)
        np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-8)
        assert other.certificate_.optimal


def test_points_that_landmarks_do_not_cover() -> None:
    x = X.copy()
    x[10:15] += 50
    with pytest.raises(
        ValueError, match=r"the landmarks do not cover 5 of 300 points .*give more landmarks .* or widen the bandwidth"
    ):
        make(landmarks=make().fit(X).extension_.points).fit(x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 0.0}, r"bandwidth must be positive, 1e-100 to 1e100, in the units of X; it is 0.0"),
        ({"bandwidth": -1}, r"bandwidth must be positive"),
        ({"bandwidth": np.nan}, r"bandwidth"),
        ({"bandwidth": "mean"}, r"bandwidth must be a number, or one of 'auto', 'median', 'local'; it is 'mean'"),
        ({"bandwidth": None}, r"bandwidth must be a number; it is None"),
        ({"tolerance": 0.0}, r"tolerance must be positive"),
        ({"max_passes": 0}, r"max_passes"),
        ({"n_landmarks": 0}, r"n_landmarks"),
        ({"method": "dense"}, r"method"),
        ({"solver": "newton"}, r"solver"),
        ({"cache": 3}, r"cache"),
        ({"landmarks": "random"}, r"landmarks"),
        ({"landmarks": np.ones((5, 3))}, r"landmarks"),
        ({"landmark_sample": 3}, r"landmark_sample"),
        ({"columns": [2]}, r"columns"),
        ({"standardize": "yes"}, r"standardize"),
        ({"random_state": "one"}, r"random_state"),
    ],
)
def test_parameters_that_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**({"bandwidth": 0.7} | changes)).fit(X)


def test_before_the_fit() -> None:
    with pytest.raises(NotFittedError):
        make().transform(X)
    with pytest.raises(NotFittedError):
        make().state()
    with pytest.raises(ValueError, match=r"on_invalid"):
        make().fit(X, on_invalid="drop")


@pytest.mark.parametrize("method", ["exact", "sparse", "lowrank"])
def test_a_bandwidth_that_joins_equal_points_only(method: str) -> None:
    x = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.raises(ValueError, match=r"at bandwidth 0.001 the kernel joins equal points only"):
        dsp.SDPEmbedding(0.001, method=method, n_landmarks=60, random_state=0).fit(np.concatenate([x, x[:20]]))


@pytest.mark.parametrize("method", ["exact", "sparse", "lowrank"])
def test_groups_so_far_apart_that_near_distances_lose_their_digits(method: str) -> None:
    """A diagonal 5 % off was certified; at a thousand bandwidths all is well."""
    x = np.random.default_rng(0).standard_normal((60, 2))
    far = np.concatenate([x[:30], x[30:] + 1e7])
    with pytest.raises(ValueError, match=r"bandwidths from their middle, and distances .* lose their digits"):
        dsp.SDPEmbedding(0.5, method=method, n_landmarks=60, random_state=0).fit(far)
    near = np.concatenate([x[:30], x[30:] + 1e3])
    e = dsp.SDPEmbedding(0.5, method="exact", random_state=0).fit(near)
    other = dsp.SDPEmbedding(0.5, method="exact", random_state=0).fit(np.concatenate([x[:30], x[30:] + 50]))
    assert e.certificate_.optimal
    np.testing.assert_allclose(e.embedding_ @ e.embedding_.T, other.embedding_ @ other.embedding_.T, atol=1e-6)
