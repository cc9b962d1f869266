"""Energies of functions and of a neighbor graph, against loops and dense eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.neighbors import energy_ratios

Array = NDArray[np.float64]


def by_loops(points: Array, functions: Array, weights: Array, k: int) -> Array:
    """The ratios by loops over points and a dense generalized problem without the constant."""
    m = len(points)
    edges = np.zeros((m, m))
    for i in range(m):
        distances = np.linalg.norm(points - points[i], axis=1)
        near = [j for j in np.argsort(distances) if j != i][:k]
        for j in near:
            edge = np.sqrt(weights[i] * weights[j]) / (distances[j] ** 2 + distances[near[-1]] ** 2 / 4)
            edges[i, j] += edge / 2
            edges[j, i] += edge / 2
    laplacian, mass = np.diag(edges.sum(axis=1)) - edges, np.diag(weights)
    centered = functions - weights @ functions / weights.sum()
    lowest = scipy.linalg.eigh(laplacian, mass, eigvals_only=True)[1 : functions.shape[1] + 1]
    energies = scipy.linalg.eigh(centered.T @ laplacian @ centered, centered.T @ mass @ centered, eigvals_only=True)
    return np.asarray((energies + 1e-6 * lowest[-1]) / (lowest + 1e-6 * lowest[-1]))


@pytest.mark.parametrize(("dimension", "k"), [(1, 16), (2, 10), (3, 10), (5, 10)])
@pytest.mark.parametrize("weighted", [False, True])
def test_ratios_are_those_of_loops(dimension: int, k: int, weighted: bool) -> None:
    rng = np.random.default_rng(dimension)
    points = rng.random((150, dimension))
    weights = rng.uniform(0.5, 2, 150) if weighted else np.ones(150)
    functions = np.cos(np.pi * points[:, :1] * np.arange(1, 4))
    found = energy_ratios(points, functions, weights)
    np.testing.assert_allclose(found, by_loops(points, functions, weights, k), 1e-4)


def test_ratios_depend_on_the_span_beyond_the_constant_alone() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((300, 2))
    functions = np.cos(np.pi * points * [1, 2])
    found = energy_ratios(points, functions)
    mixed = functions @ [[1.0, 2.0, 0.5], [-1.0, 1.0, 2.0]] + [5.0, 0.0, -3.0]
    np.testing.assert_allclose(energy_ratios(7 * points + 1e3, mixed, np.full(300, 3.0)), found, rtol=1e-6)
    assert len(found) == 2
    assert len(energy_ratios(points, np.ones((300, 1)))) == 0
