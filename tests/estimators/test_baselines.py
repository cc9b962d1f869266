"""GraphLaplacian against all pairs, the Sobolev ridge against dense oracles, Jacobi coordinates and their gradients."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from scipy.sparse import csgraph
from scipy.stats import ortho_group
from sklearn.neighbors import kneighbors_graph

import daskspectral as dsp
from daskspectral import SobolevRidge
from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Permutations
from daskspectral.groups.atoms import jacobi_matrix
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


WATER = [16.0, 1.0, 1.0]


def energy(x: Any) -> tuple[Any, Any]:
    """A sum over pairs, smooth, and its gradient."""
    at = x.reshape(len(x), -1, 3)
    apart = at[:, :, None] - at[:, None]
    pairs = np.exp(-np.sum(apart**2, axis=3) / 4)
    return pairs.sum(axis=(1, 2)), -np.einsum("nij,nijk->nik", pairs, apart).reshape(x.shape)


def test_a_potential_with_its_forces(tmp_path: Any) -> None:
    """Of a molecule of water's kind: exactly invariant, and its gradients are the forces."""
    a, m = jacobi_matrix(WATER), np.array(WATER)
    np.testing.assert_allclose(a @ np.diag(1 / m) @ a.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(a @ np.ones(3), 0, atol=1e-12)
    rng = np.random.default_rng(2)
    x, new = rng.uniform(-1, 1, (300, 9)), rng.uniform(-0.8, 0.8, (100, 9))
    c = dsp.JacobiCoordinates(WATER, species=["O", "H", "H"]).fit(da.from_array(x, chunks=(100, 9)))
    c.save(tmp_path / "c.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "c.zarr").transform(new), c.transform(new))
    c.group_.check(c.manifold_)
    f, slope = energy(x)
    there = c.gradient_of_coordinates(x, slope)
    np.testing.assert_allclose(np.sum(there[:, 1:] * c.transform(x)[:, 1:], axis=1), 0, atol=1e-12)  # tangent
    np.testing.assert_allclose(c.gradient_of_positions(x, there), slope, atol=1e-12)
    model = dsp.InvariantRegressor(c.manifold_, c.group_, n_eigenfunctions=2000, alpha=1e-8, folds=None)
    model.fit(c.transform(x), f, gradients=there)
    values, forces = energy(new)
    assert np.std(model.predict(c.transform(new)) - values) < 0.1 * values.std()
    found = c.gradient_of_positions(new, model.predict_gradient(c.transform(new)))
    assert np.std(found - forces) < 0.2 * forces.std()
    turn = ortho_group.rvs(3, random_state=rng)
    moved = (new.reshape(-1, 3, 3)[:, [0, 2, 1]] @ turn.T + 5).reshape(len(new), -1)
    np.testing.assert_allclose(model.predict(c.transform(moved)), model.predict(c.transform(new)), atol=1e-9)
