"""Gradients in an invariant regression: exact polynomials, finite differences, dense least squares."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.groups import DirectProduct, Generated, Group, Permutations, Translations
from daskspectral.manifolds import Manifold, PeriodicBox, Product, Sphere
from tests.common import doubtful

Array = NDArray[Any]
S2 = Sphere(3)
N = 300
X = S2.sample(N, np.random.default_rng(0))

CASES: dict[str, tuple[Manifold, Group | None]] = {
    "sphere": (S2, None),
    "permutations of many": (Sphere(8), Permutations(8)),  # large eigenspaces that are not built
    "crystal": (PeriodicBox([0] * 3, [1] * 3), Generated([Permutations(3), Translations([[0.5, 0.5, 0.5]])])),
    "product": (Product(S2, PeriodicBox([0], [2])), DirectProduct(Permutations(3), Translations([[0.5]]))),
}


def invariant(x: Array) -> Array:
    """A polynomial that permutations leave as it is."""
    return np.asarray(x.prod(axis=1) + (x**4).sum(axis=1))


def slopes(x: Array) -> Array:
    """Its gradient, along the normals too."""
    others = np.stack([x[:, 1] * x[:, 2], x[:, 0] * x[:, 2], x[:, 0] * x[:, 1]], axis=1)
    return np.asarray(others + 4 * x**3)


def tangential(x: Array, t: Array) -> Array:
    return np.asarray(t - np.sum(x * t, axis=1, keepdims=True) * x)


def model(**changes: Any) -> dsp.InvariantRegressor:
    options: dict[str, Any] = {"manifold": S2, "group": Permutations(3), "n_eigenfunctions": 49} | changes
    return dsp.InvariantRegressor(**options)


@doubtful
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_derivatives(name: str) -> None:
    """Central differences along tangents, projected back to the manifold, give predict_gradient."""
    manifold, group = CASES[name]
    rng = np.random.default_rng(0)
    x, new = manifold.sample(120, rng), manifold.sample(9, rng)
    y = np.column_stack([np.sin(2 * x).sum(axis=1), x[:, 0] ** 2])
    size = 3000 if manifold.ambient == 8 else 60
    fitted = dsp.InvariantRegressor(manifold, group, n_eigenfunctions=size, alpha=1e-6).fit(x, y)
    found = fitted.predict_gradient(new)
    assert found.shape == (9, 2, manifold.ambient)
    direction = rng.standard_normal(new.shape)
    for normal in manifold.normals(new):
        np.testing.assert_allclose(np.einsum("kmd,kd->km", found, normal), 0, atol=1e-9 * np.abs(found).max())
        direction -= np.sum(direction * normal, axis=1, keepdims=True) * normal
    step = 1e-5
    up, down = (new + s * step * direction for s in (1, -1))
    if manifold != PeriodicBox([0] * 3, [1] * 3):  # back on spheres: both ends as far from them
        up, down = (_back(manifold, z) for z in (up, down))
    expected = (fitted.predict(up) - fitted.predict(down)) / (2 * step)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(np.einsum("kmd,kd->km", found, direction), expected, rtol=1e-5, atol=1e-6 * scale)
    alone = clone(fitted).fit(x, y[:, 0]).predict_gradient(new)
    np.testing.assert_allclose(alone, found[:, 0], rtol=1e-8, atol=1e-8 * np.abs(alone).max())


def _back(manifold: Manifold, x: Array) -> Array:
    """Points near spheres, divided by their radii."""
    if isinstance(manifold, Product):
        return np.concatenate([_back(manifold.first, x[:, :3]), x[:, 3:]], axis=1)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_gradients_and_values_give_a_polynomial_exactly() -> None:
    """Along the normals gradients may say anything: that part is left out of the fit and of its error."""
    t = slopes(X) + 7 * np.random.default_rng(1).standard_normal((N, 1)) * X
    fitted = model(alpha=0).fit(X, invariant(X), gradients=t)
    new = S2.sample(50, np.random.default_rng(2))
    np.testing.assert_allclose(fitted.predict(new), invariant(new), atol=1e-11)
    np.testing.assert_allclose(fitted.predict_gradient(new), tangential(new, slopes(new)), atol=1e-10)
    forces = model(alpha=0).fit(X, None, gradients=t)  # the potential up to a constant, of the mean 0
    off = forces.predict(new) - invariant(new)
    np.testing.assert_allclose(off, off[0], atol=1e-10)
    np.testing.assert_allclose(forces.coef_[0], 0, atol=1e-12)


@doubtful
def test_least_squares_with_gradients_equals_dense_ridge() -> None:
    """(Phi + w L + alpha K) a = sum phi y + w sum <grad phi, t>, written out over rows and tangents."""
    rng = np.random.default_rng(3)
    y, t, w = rng.standard_normal(N), rng.standard_normal((N, 3)), rng.uniform(0.5, 2, N)
    fitted = model(alpha=1e-3, gradient_weight=0.3, smoothness=1.5).fit(X, y, gradients=t, sample_weight=w)
    spaces = [S2.eigenfunctions(level) for level in range(7)]
    values = np.concatenate([space.values(X) for space in spaces], axis=1)
    axes = [np.concatenate([s.derivatives(X, np.tile(e, (N, 1))) for s in spaces], axis=1) for e in np.eye(3)]
    u = scipy.linalg.block_diag(*fitted.basis_.vectors)
    root = np.sqrt(w / w.sum())[:, None]
    rows = [root * values @ u, *(np.sqrt(0.3) * root * axis @ u for axis in axes)]
    aims = [root[:, 0] * y, *(np.sqrt(0.3) * root[:, 0] * tangential(X, t)[:, i] for i in range(3))]
    penalty = np.diag(np.sqrt(1e-3 * fitted.basis_.cumulative**1.5) * (fitted.basis_.cumulative > 1))
    a = np.linalg.lstsq(np.concatenate([*rows, penalty]), np.concatenate([*aims, np.zeros(len(penalty))]))[0]
    np.testing.assert_allclose(np.concatenate(fitted.coef_), u @ a, atol=1e-10)
