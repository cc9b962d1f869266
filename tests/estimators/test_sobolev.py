"""Kernel ridge regression with the Sobolev kernel: dense oracles, and averages over a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskspectral import SobolevRidge
from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Permutations
from daskspectral.groups.elements import elements
from daskspectral.manifolds import Manifold, Sphere


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
