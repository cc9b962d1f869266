"""SpectralClustering: clusters of many shapes, new rows, stores, appended rows, schedulers, and what it refuses."""

import pickle
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
import zarr
from sklearn import datasets
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral.basis import NearestCentroids
from daskspectral.moments.jumps import gap_ratios
from daskspectral.spectral.clustering import normalized_cut

MOONS, HALVES = datasets.make_moons(600, noise=0.05, random_state=0)
BLOBS, OWNERS = datasets.make_blobs([300, 200, 100], 5, random_state=3)


def fitted(x: Any, count: Any = 2, **options: Any) -> Any:
    fit = {name: options.pop(name) for name in ("sample_weight",) if name in options}
    return dsp.SpectralClustering(count, random_state=0, **options).fit(x, **fit)


def rings(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    angle, ring = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 3
    x = np.column_stack([np.cos(angle), np.sin(angle)]) * (1.0 + ring[:, None])
    return x + 0.03 * rng.normal(size=x.shape), ring


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("x", "y"),
    [(MOONS, HALVES), (BLOBS, OWNERS), rings(900), datasets.make_circles(600, factor=0.5, noise=0.05, random_state=0)],
    ids=["moons", "blobs", "rings", "circles"],
)
def test_clusters_of_any_shape_are_found(x: Any, y: Any) -> None:
    count = int(y.max()) + 1
    for method in ("best", "kmeans", "raw", "cluster_qr", "columns"):
        model = fitted(x, count, assign_labels=method)
        assert (adjusted_rand_score(y, model.labels_) > 0.98) == (method != "columns" or x is BLOBS), method
        np.testing.assert_array_equal(model.predict(x[::-1]), model.labels_[::-1])
    model = fitted(x, count)
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    np.testing.assert_allclose(model.cluster_shares_, np.bincount(model.labels_) / len(x))
    assert 0 <= model.cut_ < 0.05
    assert model.n_clusters_ == count
    assert model.transform(x).shape == (len(x), count)
    assert len(model.eigenvalues_) == len(model.eigenvalue_errors_) == count + 1
    assert f"{count} clusters" in repr(model)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_clusters_of_few_rows_are_found(seed: int) -> None:
    uneven: dict[str, Any] = {"centers": [[0, 0], [6, 0], [0, 6]], "cluster_std": [1.5, 0.5, 0.3]}
    x, y = datasets.make_blobs([1000, 100, 20], random_state=seed, **uneven)
    assert adjusted_rand_score(y, dsp.SpectralClustering(3, random_state=seed).fit_predict(x)) > 0.95


RARE: dict[str, Any] = {"centers": [[0, 0], [8, 0], [4, 6]], "cluster_std": [1.0, 1.0, 0.3]}


@pytest.mark.parametrize(("decimals", "seed"), [(9, 0), (9, 2), (1, 1)])
def test_a_cluster_of_few_rows_beyond_a_gap_is_found(decimals: int, seed: int) -> None:
    x, y = datasets.make_blobs([3000, 3000, 25], random_state=seed, **RARE)  # three for each centroid
    x = x.round(decimals)
    assert adjusted_rand_score(y, dsp.SpectralClustering(3, random_state=seed).fit_predict(x)) > 0.98
    assert [rows.tolist() for rows in NearestCentroids().from_rows(x, np.random.default_rng(seed)).small_groups(x)] in (
        [],
        [np.flatnonzero(y == 2).tolist()],
    )


def test_outliers_near_each_other_are_no_cluster_if_there_is_another() -> None:
    rng = np.random.default_rng(0)
    x, y = datasets.make_blobs([2000, 2000], centers=[[0, 0], [4.5, 0]], cluster_std=1.0, random_state=0)
    outliers = np.array([2.0, 9.0]) + 0.2 * rng.normal(size=(14, 2))
    labels = dsp.SpectralClustering(2, random_state=0).fit_predict(np.vstack([x, outliers]))
    assert adjusted_rand_score(y, labels[: len(y)]) > 0.9


def test_columns_of_noise_cost_no_more_than_k_means() -> None:
    rng = np.random.default_rng(3)
    x, y = datasets.make_blobs(1000, centers=4, n_features=4, cluster_std=2.0, random_state=3)
    x = StandardScaler().fit_transform(np.hstack([x, rng.normal(size=(1000, 28))]))
    model = fitted(x, 4)
    assert model.partition_.method == "columns"
    assert adjusted_rand_score(y, model.labels_) > 0.9  # with the functions 0.67
    moved = fitted(x + 1e6, 4)
    assert adjusted_rand_score(moved.labels_, model.labels_) > 0.99
    np.testing.assert_array_equal(moved.predict(x + 1e6), moved.labels_)


@pytest.mark.slow
def test_real_tables_compared_with_k_means() -> None:
    wine, kinds = datasets.load_wine(return_X_y=True)
    found = make_pipeline(StandardScaler(), dsp.SpectralClustering(3, random_state=0)).fit_predict(wine)
    assert adjusted_rand_score(kinds, found) > 0.86  # with three rows for a centroid 0.8
    x, y = datasets.load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), dsp.SpectralClustering(2, random_state=0))
    assert adjusted_rand_score(y, model.fit_predict(x)) > 0.72  # 0.65 by k-means
    np.testing.assert_array_equal(model.predict(x), model[-1].labels_)
    own = dsp.SpectralClustering(2, random_state=0).fit(dsp.Rows(x, standardize=True))
    assert adjusted_rand_score(own.labels_, model[-1].labels_) > 0.9
    with pytest.warns(dsp.ReliabilityWarning, match="standard deviations"):
        dsp.SpectralClustering(2, random_state=0).fit(x)


@pytest.mark.slow
def test_the_number_of_clusters_follows_from_the_gap() -> None:
    model = fitted(BLOBS, "auto")
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(OWNERS, model.labels_) > 0.98
    ratios, errors = gap_ratios(model.moments_, model.coefficients_)
    values = model.eigenvalues_ + 3e-5
    np.testing.assert_allclose(ratios, values[1:-1] / values[2:], rtol=1e-6)
    assert (errors > 0).any()
    with pytest.warns(dsp.ReliabilityWarning, match="clear gap"):
        fitted(np.random.default_rng(0).uniform(size=(400, 2)), "auto")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_thin_line_has_no_clear_number_of_clusters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = np.column_stack([8 * rng.random(300), 0.2 * rng.normal(size=300)])  # eigenvalues as 1, 4, 9, ...
    with pytest.warns(dsp.ReliabilityWarning, match="clear gap"):
        dsp.SpectralClustering("auto", random_state=seed).fit(line)


@pytest.mark.slow
def test_new_rows_containers_and_stores_have_the_labels_of_the_rows(tmp_path: Any) -> None:
    model = fitted(MOONS)
    labels = model.labels_
    lazy = model.predict(da.from_array(MOONS, chunks=(100, 2)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), labels)
    zarr.create_array(str(tmp_path / "x.zarr"), data=MOONS, chunks=(150, 2))
    models = []
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            models.append(dsp.SpectralClustering(2, random_state=0).fit(str(tmp_path / "x.zarr")))
    stored, other = models
    np.testing.assert_array_equal(stored.coefficients_, other.coefficients_)
    np.testing.assert_array_equal(stored.predict(MOONS), other.predict(MOONS))
    assert not hasattr(stored, "labels_")
    assert adjusted_rand_score(stored.predict(MOONS), labels) == 1
    stored.predict(str(tmp_path / "x.zarr"), out=tmp_path / "labels.zarr")
    written = xr.open_zarr(tmp_path / "labels.zarr").cluster
    assert written.dtype.kind == "i"
    np.testing.assert_array_equal(written, stored.predict(MOONS))
    stored.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").predict(MOONS), stored.predict(MOONS))
    assert "at the peak" in str(stored.plan(str(tmp_path / "x.zarr")))
    frame = pd.DataFrame(MOONS, columns=["a", "b"])
    np.testing.assert_array_equal(fitted(frame).labels_, labels)
    shown = dsp.SpectralClustering(2, random_state=0).set_output(transform="pandas").fit(frame).transform(frame)
    assert shown.columns.tolist() == ["spectralclustering0", "spectralclustering1"]


def test_rows_far_away_and_rows_that_are_skipped_are_marked() -> None:
    x = np.vstack([MOONS, [[np.nan, 0.0]]])
    model = dsp.SpectralClustering(2, random_state=0).fit(dsp.Rows(x, on_invalid="skip"))
    assert model.labels_[-1] == -1
    far = np.array([[100.0, 0.0], [0.0, 0.0]])
    with pytest.warns(dsp.ExtrapolationWarning, match="1 of 2 rows"):
        assert model.predict(far, extrapolate="nan")[0] == -1
    with pytest.warns(dsp.ExtrapolationWarning):
        assert (model.predict(far) >= 0).all()


@pytest.mark.slow
def test_rows_are_appended_and_weighted() -> None:
    model = fitted(MOONS[:400])
    labels = model.predict(MOONS)
    model.update(MOONS)
    assert adjusted_rand_score(model.predict(MOONS), labels) > 0.95
    weights = np.ones(len(MOONS))
    np.testing.assert_array_equal(fitted(MOONS, sample_weight=weights).labels_, fitted(MOONS).labels_)


@pytest.mark.slow
def test_searches_vary_the_parameters() -> None:
    search = GridSearchCV(dsp.SpectralClustering(2, random_state=0), {"n_centroids": [50, 100]}, cv=2, refit=True)
    assert search.fit(MOONS).best_params_["n_centroids"] in (50, 100)
    assert clone(fitted(MOONS)).get_params()["n_clusters"] == 2


def test_the_cut_is_the_sum_of_probabilities_to_leave_a_cluster() -> None:
    rng = np.random.default_rng(0)
    weights, rows, labels = rng.dirichlet(np.ones(6), 30), rng.uniform(size=30), rng.integers(0, 3, 30)
    walk = weights * rows[:, None]
    steps = walk @ np.diag(1 / walk.sum(axis=0)) @ walk.T
    left = [steps[np.ix_(labels == c, labels != c)].sum() / rows[labels == c].sum() for c in range(3)]
    assert np.isclose(normalized_cut(weights, rows, labels, 3), sum(left))


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (MOONS[:3], {"count": 4}, "number of rows, 3"),
        (np.ones((9, 2)), {"count": 2}, "distinct rows, 1"),
        (MOONS, {"count": 0}, "n_clusters"),
        (MOONS, {"assign_labels": "discretize"}, "assign_labels"),
        (MOONS, {"n_centroids": -3}, "n_centroids"),
        (np.where(np.arange(1200).reshape(600, 2) == 7, np.nan, MOONS), {}, "row 3"),
        (np.full((5, 2), "a"), {}, "number|text|str"),
    ],
)
def test_what_cannot_work_is_refused(x: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(x, **options)


FEW, SIDES = datasets.make_moons(240, noise=0.05, random_state=0)


@pytest.mark.parametrize(
    ("x", "y", "count"),
    [
        (np.ones((9, 2)), np.zeros(9), 1),
        (FEW[:12], np.arange(12), 12),
        (np.rint(1.5 * BLOBS).astype(int), OWNERS, 3),
        (np.column_stack([FEW, np.ones(240)]), SIDES, 2),
        (np.tile(FEW, (5, 1)), np.tile(SIDES, 5), 2),
        (np.vstack([FEW, np.tile(FEW[:1], (240, 1))]), np.append(SIDES, np.full(240, SIDES[0])), 2),
        (FEW.astype(np.float32), SIDES, 2),
        (scipy.sparse.csr_array(FEW), SIDES, 2),
        *((FEW * scale, SIDES, 2) for scale in (1e-300, 1e-12, 1e12, 1e150)),
        (FEW + 1e7, SIDES, 2),
    ],
)
@pytest.mark.filterwarnings("ignore:rows are copies:daskspectral.ReliabilityWarning")
def test_rows_of_any_kind_and_unit_have_their_labels(x: Any, y: Any, count: int) -> None:
    model = fitted(x, count)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.labels_)


def test_more_clusters_than_centroids_and_a_single_row() -> None:
    assert fitted(FEW, 12, n_centroids=5).cluster_shares_.min() > 0.02
    with pytest.raises(ValueError, match="2 or more rows"):
        fitted(FEW[:1], 1)
    with pytest.warns(dsp.ReliabilityWarning, match="clear gap"):
        assert fitted(np.ones((9, 2)), "auto").n_clusters_ == 1


def test_rows_of_weight_0_change_nothing_and_copies_are_counted() -> None:
    far, light = 50 + np.arange(40.0).reshape(20, 2), np.append(np.ones(240), np.zeros(20))
    with pytest.warns(dsp.ExtrapolationWarning, match="20 of 260 rows"):
        labels = fitted(np.vstack([FEW, far]), 2, sample_weight=light).labels_
    assert adjusted_rand_score(SIDES, labels[:240]) == 1
    with pytest.warns(dsp.ReliabilityWarning, match="about 9 copies for each row"):
        fitted(np.tile(FEW, (10, 1)))
    with pytest.warns(dsp.ReliabilityWarning, match="about 120 copies"):
        fitted(np.vstack([FEW, np.tile(FEW[:1], (240, 1))]))


def test_one_column_ties_and_single_clusters_have_labels() -> None:
    line = np.concatenate([np.linspace(0, 1, 50), np.linspace(4, 5, 50)])[:, None]
    assert adjusted_rand_score(fitted(line).labels_, np.repeat([0, 1], 50)) == 1
    ties = np.repeat([[0.0, 0], [1, 0], [5, 5]], 40, axis=0)
    assert adjusted_rand_score(fitted(ties, 3).labels_, np.repeat([0, 1, 2], 40)) == 1
    assert (fitted(MOONS, 1).labels_ == 0).all()
