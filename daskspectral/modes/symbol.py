"""Approximate inverses of penalised matrices on a lattice, from the density of the data and the prior alone.

Functions of high frequency see the density of the data as nearly constant: at a point x, on frequency w, the matrix
S (Phi + t L) S + t mu acts nearly as rho(x) sigma(w) + t mu, with sigma = S^2 (1 + t |w|^2). Its inverse is applied
band by band of sigma: a factor in frequency, a factor on a grid, and the factor in frequency again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from daskspectral.basis.lattice import FourierLattice
from daskspectral.modes.packing import Complex, Packing
from daskspectral.modes.products import by_columns, density_values

Array = NDArray[np.floating[Any]]
RATIO = 16.0  # of sigma at the middles of neighbouring bands, and of its largest beyond the coarse block to the first


class SymbolInverse:
    """An approximate inverse of A + t (B + sigma A) for functions of a lattice beyond a coarse block.

    A = S Phi S and B = S L S + mu I. `modes` (4m + 1, ...) are the mean modes of the rows, `scale` (p,) the diagonal of
    S, `energy` (p,) that of L; `coarse` are the places of the functions whose inverse is known otherwise. An instance
    called with t and sigma gives the function of residuals (p, k) that `leading_iterative` takes. The density is
    smoothed by the Fejer kernel of the lattice's half order: no less than 0 anywhere.
    """

    def __init__(
        self,
        lattice: FourierLattice,
        modes: Complex,
        scale: Array,
        energy: Array,
        mu: float,
        coarse: NDArray[np.integer[Any]],
        *,
        workers: int = 1,
    ):
        self.lattice, self.workers, self.mu = lattice, workers, mu
        self._packing = Packing(lattice)
        self._grid = tuple(scipy.fft.next_fast_len(2 * order + 1, real=True) for order in lattice.orders)
        self._density = _smoothed(modes, lattice.orders, self._grid)
        h = len(lattice.half)
        mean = 0.5 * (energy[1 : h + 1] + energy[h + 1 :])  # of each cosine and its sine
        self._energy = np.concatenate([energy[:1], mean, mean]).clip(0)
        self._squares = scale**2
        self._beyond = np.ones(lattice.size, dtype=bool)
        self._beyond[np.append(coarse, 0)] = False

    def __call__(self, t: float, sigma: float) -> Callable[[Array], Array]:
        symbol, packing = self._squares * (1 + t * sigma + t * self._energy), self._packing
        if not self._beyond.any():
            return np.zeros_like
        ends = np.log(symbol[self._beyond].min()), np.log(symbol[self._beyond].max() * RATIO)
        nodes = np.linspace(*ends, max(2, 1 + round((ends[1] - ends[0]) / np.log(RATIO))))
        places = (np.log(np.maximum(symbol, symbol[self._beyond].min())) - nodes[0]) / (nodes[1] - nodes[0])
        shares = [np.sqrt(np.clip(1 - np.abs(places - number), 0, 1)) for number in range(len(nodes))]
        for share in shares:
            share[0] = 0
        factors = [1 / (self._density * np.exp(node) + t * self.mu) for node in nodes]

        def multiplied(column: Array) -> Array:
            """The sum over the bands of share * (factor on the grid) * share."""
            total = np.zeros(len(column))
            for share, factor in zip(shares, factors, strict=True):
                values = packing.grid(packing.spectrum(share * column), self._grid)
                values *= factor
                total += share * packing.coefficients(packing.back(values))
            return total

        return lambda residuals: np.array(by_columns(multiplied, residuals, self.workers)).T


def _smoothed(modes: Complex, orders: tuple[int, ...], grid: tuple[int, ...]) -> Array:
    """The density on a grid, smoothed by the Fejer kernel of half the lattice's order, along each axis."""
    kept = modes[tuple(slice(order, 3 * order + 1) for order in orders)]
    for axis, order in enumerate(orders):
        weights = np.maximum(0, 1 - np.abs(np.arange(-order, order + 1)) / (0.5 * order + 1))
        kept = kept * weights.reshape([-1 if a == axis else 1 for a in range(len(orders))])
    return np.maximum(density_values(kept, grid), 0)
