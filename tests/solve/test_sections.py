"""Kernels of manifolds averaged over a group, and bandwidths that join points: against sums written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Generated, Isometry, Orthogonal, Permutations, SignFlips, Translations
from daskspectral.groups.elements import elements
from daskspectral.manifolds import SO3, Interval, Manifold, PeriodicBox, Sphere
from daskspectral.solve import sections as module
from daskspectral.solve.bandwidth import joining_bandwidth
from daskspectral.solve.sections import sections
from tests.solve.common import Array, moons

CASES = {
    "sphere": (Sphere(3), Permutations(3), 60),
    "constants": (Sphere(3), Permutations(3), 1),
    "box": (PeriodicBox([0.0, -1.0], [2.0, 1.0]), Generated([SignFlips(2), Translations([[1.0, 0.5]])]), 40),
    "rotations": (SO3(), Orthogonal([np.kron(np.diag([-1.0, -1.0, 1.0]), np.eye(3))]), 60),
    "interval": (Interval(-1.0, 3.0), None, 12),
}


def dense_kernel(manifold: Manifold, count: int, exponent: float, x: Array, y: Array) -> Array:
    """sum D_lambda^-exponent phi(x) phi(y), from the functions' values."""
    harmonic = HarmonicBasis(manifold, count)
    left, right = (np.concatenate([space.values(z) for space in harmonic.levels], axis=1) for z in (x, y))
    return np.asarray((left * harmonic.cumulative.astype(float) ** -exponent) @ right.T)


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_sum_over_functions_and_its_mean_over_the_group(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifold, group, count = CASES[name]
    monkeypatch.setattr(module, "_PANEL", 2 * count)  # several blocks
    monkeypatch.setattr(module, "_VALUES", 3 * count)
    x, z = manifold.sample(9, np.random.default_rng(1)), manifold.sample(7, np.random.default_rng(2))
    visited = elements(group, manifold, 100) if group else [Isometry(np.eye(1))]
    found = sections(manifold, count, 1.5, x, visited, room=10**9)
    for points, kernel in ((z, found.combined(z, np.eye(9))), (x, found.gram())):
        expected = np.mean([dense_kernel(manifold, count, 1.5, g(points), x) for g in visited], axis=0)
        np.testing.assert_allclose(kernel, expected, atol=1e-11)
    if name == "box":
        with pytest.raises(MemoryError, match=r"eigenfunctions at 9 points take 0.0 GB, and 0.0 GB are free"):
            sections(manifold, count, 1.5, x, visited, room=8 * 9 * manifold.multiplicity(0))


def test_points_are_joined_where_the_tenth_eigenvalue_has_fallen() -> None:
    """Of D^-1 K, from the non-symmetric matrix, to 1 %; of fewer than a hundred points a tenth of their number."""
    for x, mode in ((moons(150), 10), (moons(37), 3), (np.repeat(moons(15), 3, axis=0), 1), (1e3 * moons(20), 2)):
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        h = joining_bandwidth(squares)

        def value(h: float, squares: Array = squares, mode: int = mode) -> float:
            k = np.exp(-squares / h**2)
            return float(np.sort(scipy.linalg.eigvals(k / k.sum(axis=1, keepdims=True)).real)[-1 - mode])

        assert value(h) < 0.9 <= value(h / 1.011)
    two = np.array([[0.0, 25.0], [25.0, 0.0]])  # tanh(r^2 / 2 h^2), by hand
    assert joining_bandwidth(two) == pytest.approx(5 / np.sqrt(2 * np.arctanh(0.9)), rel=0.011)
    with pytest.raises(ValueError, match="expected points that differ"):
        joining_bandwidth(np.zeros((5, 5)))
