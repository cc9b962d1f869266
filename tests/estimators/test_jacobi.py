"""Jacobi coordinates: potentials that are exactly invariant, and their gradients."""

from typing import Any

import dask.array as da
import numpy as np
from scipy.stats import ortho_group

import daskspectral as dsp
from daskspectral.groups.atoms import jacobi_matrix

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
