"""GraphLaplacian: against dense matrices of all pairs, scikit-learn's neighbours and scipy's graph Laplacian."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import xarray as xr
import zarr
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

import daskspectral as dsp
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.passes import pairs as pairing
from tests.common import assert_close

Array = NDArray[Any]
N = 200
X = np.random.default_rng(0).standard_normal((N, 3)) * [1.0, 0.7, 0.4] + [0.0, 1.0, -2.0]


def make(**changes: Any) -> dsp.GraphLaplacian:
    defaults = {
        "weights": Gaussian(0.5),
        "kernel": Gaussian(1.0),
        "n_landmarks": 15,
        "n_components": 6,
        "random_state": 0,
    }
    return dsp.GraphLaplacian(**(defaults | changes))


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks for small data too."""
    monkeypatch.setattr(pairing, "LEAST_TILE_ROWS", 30)


def features(estimator: dsp.GraphLaplacian, x: Array = X) -> Array:
    return np.asarray(estimator.basis_.values(x))


def dense_form(w: Array, phi: Array, mass: Array | None = None) -> Array:
    """2 (Phi D Phi^T - Phi W Phi^T) / n^2 from the matrix of all pairs."""
    mass = np.ones(len(w)) if mass is None else mass
    w = w * np.outer(mass, mass)
    return 2 * (phi @ np.diag(w.sum(axis=1)) @ phi.T - phi @ w @ phi.T) / mass.sum() ** 2


def symmetrically_normalized(w: Array, mass: Array | None = None) -> Array:
    """D^(-1/2) w D^(-1/2), times the number of rows: the form divides by its square."""
    mass = np.ones(len(w)) if mass is None else mass
    degree = w @ mass
    return mass.sum() * w / np.sqrt(np.outer(degree, degree))


KERNELS = [
    Gaussian(0.5),
    Gaussian(3.0),
    Exponential(0.7),
    Matern(1.5, 1.0),
    Polynomial(2),
    0.5 * Gaussian(0.3) + Polynomial(2),
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("weights", KERNELS, ids=str)
@pytest.mark.parametrize("normalized", [True, False])
def test_against_the_matrix_of_all_pairs(weights: Kernel, normalized: bool) -> None:
    estimator = make(weights=weights, normalized=normalized, landmarks=X[5:20]).fit(X)
    phi = features(estimator)
    w = weights(X, X)
    assert_close(estimator.form_, dense_form(symmetrically_normalized(w) if normalized else w, phi))
    assert_close(estimator.gram_, phi @ phi.T / N)
    # with the constant apart, on what the 15 functions see beside it
    values = scipy.linalg.eigh(estimator.form_[1:, 1:], estimator.gram_[1:, 1:] - np.outer(*[phi[1:].mean(axis=1)] * 2))
    np.testing.assert_allclose(estimator.eigenvalues_[1:], values[0][:5], rtol=1e-5)
    assert abs(estimator.eigenvalues_[0]) < 1e-15 * values[0][-1]
    learned = estimator.transform(X)
    np.testing.assert_allclose(learned.T @ learned / N, np.eye(6), atol=1e-7)
    np.testing.assert_allclose(learned[:, 0], 1, rtol=1e-9)


@pytest.mark.usefixtures("small_tiles")
def test_sample_weight_two_is_the_row_twice() -> None:
    mass = np.random.default_rng(1).integers(0, 4, N)
    landmarks = X[:15]
    for normalized in (True, False):
        weighted = make(landmarks=landmarks, normalized=normalized).fit(X, sample_weight=mass)
        repeated = make(landmarks=landmarks, normalized=normalized).fit(np.repeat(X, mass, axis=0))
        assert_close(weighted.form_, repeated.form_)
        assert_close(weighted.gram_, repeated.gram_)
        np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-8, atol=1e-12)
    w = symmetrically_normalized(Gaussian(0.5)(X, X), mass)
    weighted = make(landmarks=landmarks).fit(X, sample_weight=mass)
    assert_close(weighted.form_, dense_form(w, features(weighted), mass))


@pytest.mark.parametrize("normalized", [True, False])
def test_a_function_a_point_gives_the_whole_graph_laplacian(normalized: bool) -> None:
    """Narrow kernels at every point are delta functions: the matrix n x n itself, as scipy makes it."""
    x = X[:60]
    estimator = make(kernel=Gaussian(1e-4), landmarks=x, n_components=60, normalized=normalized).fit(x)
    w = Gaussian(0.5)(x, x)
    w = symmetrically_normalized(w) if normalized else w
    values, vectors = scipy.linalg.eigh(csgraph.laplacian(w))
    np.testing.assert_allclose(estimator.eigenvalues_, 2 * values / 60, rtol=1e-8, atol=1e-12)
    learned = estimator.transform(x)
    for i in (1, 2, 3):
        assert abs(learned[:, i] @ vectors[:, i]) / np.sqrt(60) == pytest.approx(1, abs=1e-7)


def test_the_form_is_that_of_scipy() -> None:
    """f^T (D - W) f, twice, for functions of the basis."""
    estimator = make(normalized=False).fit(X)
    phi = features(estimator)
    assert_close(estimator.form_, 2 * phi @ csgraph.laplacian(Gaussian(0.5)(X, X)) @ phi.T / N**2)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("n_neighbors", [1, 7, 199])
def test_neighbours(n_neighbors: int, normalized: bool) -> None:
    estimator = make(n_neighbors=n_neighbors, normalized=normalized).fit(X)
    near = kneighbors_graph(X, n_neighbors, include_self=False).toarray()
    w = np.where((near + near.T) > 0, Gaussian(0.5)(X, X), 0)
    assert_close(estimator.form_, dense_form(symmetrically_normalized(w) if normalized else w, features(estimator)))
    assert estimator.n_features_in_ == 3


def test_all_neighbours_are_all_pairs() -> None:
    near, all_pairs = (make(n_neighbors=k, normalized=False).fit(X) for k in (N - 1, None))
    assert_close(near.form_, all_pairs.form_)
    np.testing.assert_allclose(near.eigenvalues_, all_pairs.eigenvalues_, rtol=1e-9, atol=1e-14)


def test_on_the_sphere_it_finds_the_harmonics() -> None:
    """With the sum of the true eigenvalues given, those of degrees 1 and 2 come out on S^2 with enough points."""
    exact = Sphere(3).eigenvalues(9)
    x = Sphere(3).sample(3000, np.random.default_rng(0))
    estimator = make(weights=Gaussian(0.2), kernel=Polynomial(2), n_components=9, rescale=exact).fit(x)
    np.testing.assert_allclose(estimator.eigenvalues_[1:], exact[1:], rtol=0.15)
    # the Gaussian's second moment is scale^2: before the rescaling the normalised form is scale^2 times the Dirichlet
    np.testing.assert_allclose(estimator.eigenvalues_[1] / estimator.factor_, 2 * 0.2**2, rtol=0.1)


# -- rescaling -------------------------------------------------------------------------------------------------------


def test_rescale() -> None:
    plain, total = make().fit(X), make(rescale=42.0).fit(X)
    assert plain.factor_ == 1
    assert total.eigenvalues_.sum() == pytest.approx(42)
    np.testing.assert_allclose(total.eigenvalues_, total.factor_ * plain.eigenvalues_, rtol=1e-14)
    np.testing.assert_array_equal(total.coefficients_, plain.coefficients_)
    np.testing.assert_array_equal(total.form_, plain.form_)
    some = make(rescale=[0, 2, 2]).fit(X)
    assert some.eigenvalues_[:3].sum() == pytest.approx(4)
    np.testing.assert_allclose(some.eigenvalues_, some.factor_ * plain.eigenvalues_, rtol=1e-14)


def test_rescale_with_a_rank_that_is_too_small() -> None:
    exact = Sphere(3).eigenvalues(9)
    x = Sphere(3).sample(100, np.random.default_rng(0))
    with pytest.warns(dsp.RankWarning, match="rank 4 on these data, fewer than n_components=9"):
        estimator = make(kernel=Polynomial(1), n_components=9, rescale=exact).fit(x)
    assert len(estimator.eigenvalues_) == 4
    assert estimator.eigenvalues_.sum() == pytest.approx(exact[:4].sum())


# -- containers and schedulers ---------------------------------------------------------------------------------------


def as_zarr(path: Path, x: Array = X) -> zarr.Array[Any]:
    return zarr.create_array(path / "x.zarr", data=x, chunks=(47, 3), overwrite=True)


def as_path(path: Path, x: Array = X) -> str:
    as_zarr(path, x)
    return f"{path}/x.zarr"


CONTAINERS: dict[str, Callable[..., Any]] = {
    "zarr": as_zarr,
    "path": as_path,
    "one chunk": lambda path: zarr.create_array(path / "one.zarr", data=X, chunks=(N, 3)),
    "in memory": lambda path: zarr.create_array(zarr.storage.MemoryStore(), data=X, chunks=(47, 3)),
    "xarray": lambda path: xr.DataArray(X, dims=("row", "feature")),
    "list": lambda path: X.tolist(),
}


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_same_bits_whatever_holds_the_rows(kind: str, tmp_path: Path) -> None:
    wanted, found = make().fit(X), make().fit(CONTAINERS[kind](tmp_path))
    for name in ("form_", "gram_", "eigenvalues_", "coefficients_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    embedding = found.transform(CONTAINERS[kind](tmp_path / "again"))
    assert isinstance(embedding, xr.DataArray if kind == "xarray" else da.Array if "zarr" in str(kind) else object)
    np.testing.assert_allclose(np.asarray(embedding), wanted.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("small_tiles")
def test_same_bits_on_any_scheduler(tmp_path: Path, cluster: LocalCluster) -> None:
    with dask.config.set(scheduler="threads", num_workers=3):
        wanted = make().fit(X).form_
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(make().fit(X).form_, wanted)
    with Client(cluster):
        np.testing.assert_array_equal(make().fit(X).form_, wanted)
        np.testing.assert_array_equal(make().fit(as_path(tmp_path)).form_, wanted)


@pytest.mark.usefixtures("small_tiles")
def test_invalid_rows(tmp_path: Path) -> None:
    broken = X.copy()
    broken[[170, 171, 60], [2, 0, 1]] = [np.inf, np.nan, np.nan]
    broken[30:55] = np.nan  # more than one whole tile
    kept = np.isfinite(broken).all(axis=1)
    for x in (broken, as_path(tmp_path, broken)):
        with pytest.raises(dsp.InvalidRowError, match=r"row 30 is the first .*X holds NaN in column 0"):
            make().fit(x)
    for changes in ({}, {"n_neighbors": 5}):
        without = make(landmarks=X[:15], **changes).fit(X[kept])
        for x in (broken, as_path(tmp_path, broken)) if not changes else (broken,):
            skipped = make(landmarks=X[:15], **changes).fit(x, on_invalid="skip")
            assert_close(skipped.form_, without.form_)
            assert_close(skipped.gram_, without.gram_)
    assert np.isnan(skipped.transform(broken, on_invalid="skip")[30:55]).all()


@pytest.mark.usefixtures("small_tiles")
def test_each_chunk_is_decoded_once_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[int, int]] = []
    original = pairing.ZarrReader.read
    monkeypatch.setattr(pairing.ZarrReader, "read", lambda self, a, b: reads.append((a, b)) or original(self, a, b))
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(N, 3))
    make(normalized=False, landmarks=X[:15]).fit(tmp_path / "x.zarr")
    tiles = len(pairing.tile_plan(N).ranges)
    assert tiles == 7
    assert sum(b - a == N for a, b in reads) == tiles  # the partners of one task, from one read of the chunk


def test_each_pair_of_tiles_meets_once() -> None:
    for m in (1, 2, 3, 4, 7, 8, 20):
        tiles = pairing.Tiles({}, tuple((i, i + 1) for i in range(m)))
        met = [frozenset((a, b)) for a in range(m) for b in tiles.partners(a)]
        assert len(met) == len(set(met)) == m * (m - 1) // 2
        loads = [len(tiles.partners(a)) for a in range(m)]
        assert max(loads) - min(loads) <= 1


def test_parameters() -> None:
    estimator = make()
    assert estimator.set_params(weights__scale=0.25, kernel__scale=2.0).weights == Gaussian(0.25)
    assert dsp.GraphLaplacian(n_landmarks=20, n_components=3, random_state=0).fit(X).weights_.scale > 0
    chosen = make(landmarks="kmeans++").fit(X)
    assert chosen.basis_.size == 16
    assert make(constant=False).fit(X).basis_.size == 15


# -- errors ----------------------------------------------------------------------------------------------------------


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"weights": 0.5}, TypeError, r"weights must be one of daskspectral.kernels, .* Gaussian\(0.3\); got 0.5"),
    ({"kernel": "gaussian"}, TypeError, "kernel must be one of"),
    ({"n_components": 0}, ValueError, "n_components must be a whole number of 1 or more; it is 0"),
    ({"n_landmarks": 201}, ValueError, "X has 200 rows, fewer than n_landmarks=201"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors must be a whole number of 1 or more; it is 0"),
    ({"n_neighbors": 2.5}, ValueError, "n_neighbors must be a whole number"),
    ({"landmarks": "random"}, ValueError, "landmarks must be 'uniform' or"),
    ({"landmarks": X[:5, :2]}, ValueError, r"array \(p, 3\), one column for each of X"),
    ({"landmark_sample": 3, "landmarks": "leverage"}, ValueError, "landmark_sample must be a whole number of 15"),
    ({"normalized": "yes"}, ValueError, "normalized must be True or False; it is 'yes'"),
    ({"constant": None}, ValueError, "constant must be True or False; it is None"),
    ({"rtol": "a"}, ValueError, "rtol must be a number"),
    ({"random_state": -1}, ValueError, "random_state must be a whole number"),
    ({"rescale": 0}, ValueError, "rescale must be the sum of the true eigenvalues, a positive number, .*; it is 0"),
    ({"rescale": [0.0, -1.0, 2.0]}, ValueError, "rescale must be"),
    ({"rescale": np.nan}, ValueError, "rescale must be .*; it is nan"),
    ({"rescale": "true"}, ValueError, "rescale must be .*; it is 'true'"),
    ({"rescale": np.ones((2, 2))}, ValueError, "rescale must be"),
    ({"rescale": np.ones(7)}, ValueError, "rescale has 7 eigenvalues, more than n_components=6; ask for more"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "error", "message"), BAD, ids=[str(b[0])[:40] for b in BAD])
def test_bad_parameters_before_any_task(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**changes).fit(X)


@pytest.mark.usefixtures("no_tasks")
def test_bad_data_before_any_task(tmp_path: Path) -> None:
    lazy = da.from_array(X, chunks=(50, 3))
    for x in (lazy, xr.DataArray(lazy, dims=("row", "feature"))):
        with pytest.raises(TypeError, match=r"cannot read one another's blocks: write X by X.to_zarr\(path\)"):
            make().fit(x)
    with pytest.raises(TypeError, match=r"\(sample_weight likewise\)"):
        make().fit(X, sample_weight=da.ones(N, chunks=50))
    with pytest.raises(TypeError, match=r"n_neighbors looks up neighbours in memory: give X\[:\] in place of the zarr"):
        make(n_neighbors=5).fit(as_path(tmp_path))
    with pytest.raises(ValueError, match=r"n_neighbors counts rows and cannot weigh them"):
        make(n_neighbors=5).fit(X, sample_weight=np.ones(N))
    with pytest.raises(ValueError, match=r"on_invalid must be 'raise' or 'skip'"):
        make().fit(X, on_invalid="ignore")
    with pytest.raises(FileNotFoundError, match="there is no zarr array"):
        make().fit(tmp_path / "none.zarr")


def test_what_only_the_data_tell() -> None:
    with pytest.raises(ValueError, match=r"the weights of some row sum to -.* positive, such as Gaussian\(scale\)"):
        make(weights=Linear()).fit(X - X.mean(axis=0) + [[0.1, 0, 0]])
    with pytest.raises(ValueError, match=r"the eigenvalues sum to 0 and cannot be rescaled: all eigenfunctions are"):
        make(kernel=Polynomial(2), landmarks=np.zeros((1, 3)), n_components=1, rescale=1.0).fit(X)
    with pytest.raises(ValueError, match="X has 200 rows, too few for n_neighbors=200 others of each"):
        make(n_neighbors=200).fit(X)
    with pytest.raises(ValueError, match="the total sample weight is 0"):
        make().fit(X, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="not fitted"):
        make().transform(X)


def test_saved_and_loaded(tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((80, 2))
    options: dict[str, Any] = {"n_landmarks": 12, "n_components": 4, "rescale": [0.0, 1.0], "random_state": 0}
    fitted = dsp.GraphLaplacian(Gaussian(0.5), Gaussian("median"), **options).fit(x)
    fitted.save(tmp_path / "graph.zarr")
    loaded = dsp.load(tmp_path / "graph.zarr")
    assert repr(loaded) == repr(fitted.set_params(rescale=np.array([0.0, 1.0])))
    assert vars(loaded).keys() == vars(fitted).keys()
    assert (loaded.kernel_, loaded.weights_, loaded.n_features_in_) == (fitted.kernel_, fitted.weights_, 2)
    np.testing.assert_array_equal(loaded.eigenvalues_, fitted.eigenvalues_, strict=True)
    np.testing.assert_array_equal(loaded.transform(x), fitted.transform(x), strict=True)
    with pytest.raises(ValueError, match=r"holds GraphLaplacian, not SpectralDecomposition; use daskspectral.load"):
        dsp.SpectralDecomposition.load(tmp_path / "graph.zarr")


def test_few_rows_without_an_argument() -> None:
    x = np.random.default_rng(0).standard_normal((30, 2))
    graph = dsp.GraphLaplacian(n_components=5, random_state=0).fit(x)
    assert graph.basis_.size == 31
    with pytest.warns(dsp.RankWarning, match="fewer than n_components=16"):
        few = dsp.GraphLaplacian(random_state=0).fit(x[:6])
    assert len(few.eigenvalues_) <= 7
