"""The inverse by bands: what its definition says, and close to the exact one beyond the coarse block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

from daskspectral.modes.symbol import SymbolInverse
from tests.modes.common import circles, direct, waves

T = 0.05


def by_definition(lattice: Any, modes: Any, scale: Any, energy: Any, mu: float, coarse: Any, sigma: float) -> Any:
    """The matrix of the inverse at t = T: a density on a grid, and bands whose middles are a factor of 16 or so apart.

    Of a cosine and its sine the energies are averaged; shares fall linearly in the logarithm to the next middle.
    """
    sizes = [scipy.fft.next_fast_len(2 * m + 1, real=True) for m in lattice.orders]
    grid = np.stack(np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in sizes), indexing="ij"), axis=-1)
    points = grid.reshape(-1, len(sizes))
    density = np.zeros(len(points))
    for index in np.ndindex(modes.shape):
        k = np.array(index) - 2 * np.array(lattice.orders)
        fejer = np.prod([max(0, 1 - abs(j) / (0.5 * m + 1)) for j, m in zip(k, lattice.orders, strict=True)])
        density += fejer * (modes[index] * np.exp(1j * points @ k)).real
    half = lattice.size // 2
    mean = np.tile((energy[1 : half + 1] + energy[half + 1 :]) / 2, 2)
    symbol = scale**2 * (1 + T * (sigma + np.append(energy[0], mean)))
    beyond = np.setdiff1d(np.arange(1, lattice.size), coarse)
    low, high = np.log(symbol[beyond].min()), np.log(16 * symbol[beyond].max())
    nodes, step = np.linspace(low, high, 1 + round((high - low) / np.log(16)), retstep=True)
    functions, total = waves(lattice, points + lattice.centre), np.zeros((lattice.size, lattice.size))
    for node in nodes:
        share = np.sqrt(np.maximum(0, 1 - np.abs(np.log(np.maximum(symbol, np.exp(low))) - node) / step))
        share[0] = 0
        factor = 1 / (np.maximum(density, 0) * np.exp(node) + T * mu)
        total += share[:, None] * (functions * factor @ functions.T / len(points)) * share
    return total


@pytest.mark.parametrize(("orders", "sigma"), [((7,), 0.0), ((3, 4), 2.0)])
def test_the_definition(orders: Any, sigma: float) -> None:
    lattice, rng = circles(orders), np.random.default_rng(0)
    x = rng.vonmises(0, 2, (200, len(orders))) + lattice.centre
    modes = direct(tuple(2 * m for m in orders), lattice.angles(x), None)[0] / len(x)
    scale, energy = np.exp(-rng.uniform(0, 4, lattice.size)), rng.uniform(0, 30, lattice.size)
    coarse = np.array([1, 4, 5])
    for workers in (1, 2):
        inverse = SymbolInverse(lattice, modes, scale, energy, 1e-3, coarse, workers=workers)
        found = inverse(T, sigma)(np.eye(lattice.size))
        wanted = by_definition(lattice, modes, scale, energy, 1e-3, coarse, sigma)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    every = SymbolInverse(lattice, modes, scale, energy, 1e-3, np.arange(1, lattice.size))(T, sigma)
    assert not every(np.ones((lattice.size, 2))).any()
