"""Jumps between neighbors: against a dense graph by hand, additivity, invariances, schedulers, degenerate rows."""

from typing import Any

import dask
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import CentroidBasis, NearestCentroids
from daskspectral.basis.centroids import local_dimension, spread_rows
from daskspectral.operators import NeighborJumps
from tests.common import unreliable

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3)) + np.repeat([[0.0, 0, 0], [4, 0, 0]], [300, 400], axis=0)
SMALL: dict[str, Any] = {"n_components": 5, "random_state": 0}
FEW = NearestCentroids(40, n_sets=2)


def fitted(x: Any, basis: Any = FEW, **options: Any) -> Any:
    return dsp.SpectralDecomposition(NeighborJumps(), basis, **(SMALL | options)).fit(x)


def by_hand(basis: CentroidBasis, x: Any) -> tuple[Any, Any]:
    """The weights a (n, p) of rows, and w (n,), by loops over rows and sets."""
    sets, m, _ = basis.centroids.shape
    a, radii = np.zeros((len(x), sets * m)), np.zeros(len(x))
    for row, point in enumerate(x):
        for number, centroids in enumerate(basis.centroids):
            distances = np.sqrt(((centroids - point) ** 2).sum(axis=1))
            nearest = np.argsort(distances)
            own = np.exp(-((distances[nearest[:3]] / distances[nearest[2]]) ** 2))
            a[row, number * m + nearest[:3]] = own / own.sum() / sets
            radii[row] += distances[nearest[3]] / sets
    return a, (basis.radius / radii) ** 2


@pytest.mark.parametrize("columns", [3, 20])
def test_a_dense_graph_by_hand_has_the_same_eigenvalues_and_functions(columns: int) -> None:
    x = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), columns - 3))])
    model = fitted(x)
    a, w = by_hand(model.basis_, x)
    np.testing.assert_allclose(model.basis_.values(x).T, a, rtol=0, atol=1e-12)
    graph = np.sum([u * np.outer(v, v) for u, v in zip(w, a, strict=True)], axis=0)
    root = np.sqrt(graph.sum(axis=1))
    walk = np.linalg.eigvalsh(graph / np.outer(root, root))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, 1 - np.sqrt(np.minimum(walk[:5], 1)), rtol=0, atol=1e-12)
    functions = model.transform(x)
    np.testing.assert_allclose((functions.T * w) @ functions / len(x), np.eye(5), rtol=0, atol=1e-11)
    np.testing.assert_allclose(functions, a @ model.coefficients_, rtol=0, atol=1e-12)
    assert model.n_constants_ == 1
    apart = fitted(RNG.permutation(X * np.where(X[:, :1] > 2, 3, 1)), n_components=2)
    assert apart.eigenvalues_[1] < 1e-3
    assert apart.reliable_.all()  # near 0, and known to a hundredth
    assert (model.eigenvalue_errors_[1:, 0] <= model.eigenvalues_[1:]).all()
    score = model.score(x)
    assert np.isclose(score, -np.sum(1 / (1 - model.eigenvalues_) ** 2 - 1))


def test_moments_add_and_rows_are_appended() -> None:
    model = fitted(X)
    fixed = dsp.SpectralDecomposition(NeighborJumps(), model.basis_, **SMALL)
    whole = fixed.fit(X)
    values, first = whole.eigenvalues_.copy(), fixed.fit(X[:300]).moments_
    both = first + fixed.fit(X[300:]).moments_
    np.testing.assert_allclose(fixed.fit_moments(both).eigenvalues_, values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(fixed.fit(X[:300]).update(X).eigenvalues_, values, rtol=0, atol=1e-13)
    twice = np.arange(len(X)) % 3
    weighted = fixed.fit(X, sample_weight=twice).eigenvalues_.copy()
    np.testing.assert_allclose(weighted, fixed.fit(np.repeat(X, twice, axis=0)).eigenvalues_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("columns", [3, 20])
def test_invariance_to_rotations_shifts_and_one_unit(columns: int) -> None:
    x = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), columns - 3))])
    values = fitted(x).eigenvalues_
    rotation = np.linalg.qr(RNG.normal(size=(columns, columns)))[0]
    for moved, tolerance in ((x @ rotation, 1e-9), (x + 1e3, 1e-9), (x * 1e100, 1e-12), (x * 1e-100, 1e-12)):
        np.testing.assert_allclose(fitted(moved).eigenvalues_, values, rtol=0, atol=tolerance)


def test_schedulers_and_saved_models_have_the_same_bits(tmp_path: Any) -> None:
    import zarr

    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(90, 3))
    models = []
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            models.append(fitted(str(tmp_path / "x.zarr")))
    one, other = models
    np.testing.assert_array_equal(one.coefficients_, other.coefficients_)
    np.testing.assert_array_equal(one.eigenvalue_errors_, other.eigenvalue_errors_)
    one.save(tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").transform(X), other.transform(X))
    kept = dsp.SpectralDecomposition(NeighborJumps(), FEW, **SMALL).fit(X, checkpoint=tmp_path / "kept")
    again = dsp.SpectralDecomposition(NeighborJumps(), FEW, **SMALL).fit(X, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(kept.coefficients_, again.coefficients_)


def test_few_and_equal_rows_have_as_many_values_as_they_can() -> None:
    assert fitted(np.ones((9, 2))).eigenvalues_.tolist() == [0.0]
    assert len(fitted(np.arange(6.0)[:, None]).eigenvalues_) <= 5
    ties = np.random.default_rng(0).integers(0, 3, (300, 2)).astype(float)
    assert np.isfinite(fitted(ties).transform(ties)).all()


def test_other_functions_and_wrong_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="NearestCentroids"):
        fitted(X, dsp.basis.Landmarks())
    for wrong in ({"n_centroids": 0}, {"n_nearest": 1.5}, {"n_sets": "all"}, {"max_components": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            NearestCentroids(**wrong)
    with pytest.raises(ValueError, match="centroids"):
        CentroidBasis(np.zeros((3, 2)))
    assert isinstance(fitted(X, None).basis_, CentroidBasis)


def test_fewer_centroids_join_components() -> None:
    x = np.random.default_rng(0).normal(size=(2000, 1)) + np.repeat([0.0, 30], 1000)[:, None]
    assert NearestCentroids().from_rows(x, RNG).centroids.shape[1] == 500
    assert NearestCentroids(max_components=1).from_rows(x, RNG).centroids.shape[1] < 500


def test_each_region_has_its_share_of_the_rows_that_are_drawn() -> None:
    x = np.vstack([RNG.normal(size=(1100, 2)), [0, 20] + 0.1 * RNG.normal(size=(20, 2))])
    drawn = [spread_rows(x, 373, np.random.default_rng(seed)) for seed in range(40)]
    assert all(len(np.unique(rows)) == 373 for rows in drawn)
    few = np.array([np.count_nonzero(rows >= 1100) for rows in drawn])
    assert few.min() >= 5  # at random there are 2
    assert abs(few.mean() - 373 / 56) < 0.3
    turned = x @ np.linalg.qr(RNG.normal(size=(2, 2)))[0] + 100
    np.testing.assert_array_equal(spread_rows(turned, 373, np.random.default_rng(0)), drawn[0])
    counts = np.mean([np.bincount(rows, minlength=1120) for rows in drawn], axis=0)
    assert abs(counts[:1100].mean() - 1 / 3) < 0.01


@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_the_dimension_near_a_row_is_that_of_the_rows_and_not_of_the_columns(dimension: int) -> None:
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(20, dimension)))[0]
    x = rng.uniform(size=(3000, dimension)) @ plane.T
    assert abs(local_dimension(x, rng) / dimension - 1) < 0.25
    rows = {NearestCentroids(5000, n_sets=1).from_rows(at, rng).centroids.shape[1] for at in (x, 1e3 * x + 7)}
    assert (rows == {1000}) == (dimension < 3)
