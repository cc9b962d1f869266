"""GraphLaplacian against all pairs, the Sobolev ridge against dense oracles."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

import daskspectral as dsp
from daskspectral import SobolevRidge
from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Permutations
from daskspectral.groups.elements import elements
from daskspectral.kernels import Gaussian
from daskspectral.manifolds import Manifold, Sphere
from daskspectral.passes import pairs as pairing
from tests.common import assert_close

N = 120
X = np.random.default_rng(0).standard_normal((N, 3))


@pytest.mark.parametrize(("n_neighbors", "normalized"), [(None, True), (7, False)])
def test_against_the_matrix_of_all_pairs(
    n_neighbors: int | None, normalized: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "LEAST_TILE_ROWS", 30)
    model = dsp.GraphLaplacian(Gaussian(0.5), Gaussian(1.0), n_landmarks=9, n_components=4, random_state=0)
    model.set_params(normalized=normalized, n_neighbors=n_neighbors, rescale=[0.0, 1.0])
    model.fit(zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(47, 3)) if n_neighbors is None else X)
    w = Gaussian(0.5)(X, X)
    if n_neighbors is not None:
        near = kneighbors_graph(X, n_neighbors, include_self=False).toarray()
        w = np.where((near + near.T) > 0, w, 0)
    if normalized:
        w = N * w / np.sqrt(np.outer(w.sum(axis=1), w.sum(axis=1)))
    phi = model.basis_.values(X)
    assert_close(model.form_, 2 * phi @ csgraph.laplacian(w) @ phi.T / N**2)
    assert_close(model.gram_, phi @ phi.T / N)
    assert model.eigenvalues_[:2].sum() == pytest.approx(1)
    model.save(tmp_path / "graph.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "graph.zarr").transform(X), model.transform(X))


def dense_kernel(manifold: Manifold, s: float, x: Any, y: Any) -> Any:
    """sum D_lambda^-alpha phi(x) phi(y), from the functions' values."""
    harmonic = HarmonicBasis(manifold, 100)
    weights = harmonic.cumulative.astype(float) ** (-2 * s / manifold.dimension)
    left, right = (np.concatenate([space.values(z) for space in harmonic.levels], axis=1) for z in (x, y))
    return (left * weights) @ right.T


def test_averages_and_augmented_data_are_the_dense_solution() -> None:
    manifold, group, s, rng = Sphere(3), Permutations(3), 2.0, np.random.default_rng(0)
    x, z = manifold.sample(25, rng), manifold.sample(11, rng)
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(25)
    every = elements(group, manifold, 100)
    assert every is not None
    for how, visited in (("none", every[:1]), ("average", every), ("augment", every)):
        k, cross = (np.mean([dense_kernel(manifold, s, g(a), x) for g in visited], axis=0) for a in (x, z))
        model = SobolevRidge(manifold, group, s, how, n_eigenfunctions=100).fit(x, y)
        assert model.n_elements_ == len(visited)
        wanted = cross @ np.linalg.solve(k + 25 * model.alpha_ * np.eye(25), y)
        np.testing.assert_allclose(model.predict(z), wanted, atol=1e-8)
        hat = k @ np.linalg.inv(k + 25 * model.alpha_ * np.eye(25))
        free = 1 - np.trace(hat) / 25
        score = np.mean((y - hat @ y) ** 2) / free**2 * (1 + 2 * (np.trace(hat @ hat) / 25) ** 2)
        assert model.gcv_ == pytest.approx(score, rel=1e-6)
