"""Kernel ridge regression with the Sobolev kernel of a manifold, averaged over a group, for `invariances_torus.py`.

f minimizes 1/n Σ_i (f(x_i) - y_i)² + alpha ||f||², equation (8) of Soleymani and others (2025), in the space of

    K(x, y) = Σ_λ D_λ^-(2 s / dimension) Σ_l φ_(λ, l)(x) φ_(λ, l)(y),

or of its average over the group, K_G(x, y) = 1/|G| Σ_g K(g x, y), equation (9).
"""

from __future__ import annotations

from functools import cache
from typing import Self

import numpy as np
import scipy.linalg
import scipy.optimize

from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Group, Isometry
from daskspectral.manifolds import Manifold
from daskspectral.solve.ridge import GRID, ROBUST

CUT = 1e-15  # of eigenvalues of the kernel matrix, times its size, relative to the largest: rounding
harmonics = cache(HarmonicBasis)  # built once for all fits


class SobolevRidge:
    """The regression; `alpha` has the least robust generalized cross-validation, as in `InvariantRegressor`."""

    def __init__(self, manifold: Manifold, group: Group | None = None, smoothness: float = 2.0, count: int = 2000):
        self.basis = harmonics(manifold, count)
        self.scale = self.basis.cumulative.astype(float)[:, None] ** (-smoothness / manifold.dimension)
        generators = [] if group is None else [g.matrix for g in group.generators]
        found = {np.eye(manifold.ambient).tobytes(): np.eye(manifold.ambient)}
        for matrix in (listed := [*found.values()]):  # products, until none is new
            for product in (np.round(g @ matrix, 9) + 0.0 for g in generators):
                if product.tobytes() not in found:
                    found[product.tobytes()] = product
                    listed.append(product)
        self.elements = [Isometry(matrix) for matrix in listed]

    def fit(self, x: np.ndarray, y: np.ndarray) -> Self:
        """Fit rows x (n, d) and values y (n,)."""
        self.features = sum(self._features(g(x)) for g in self.elements) / len(self.elements)
        gram = self.features.T @ self.features  # the mean over G is a projection: once for either point
        spectrum, vectors = scipy.linalg.eigh(gram, driver="evd")
        kept = spectrum > CUT * len(x) * spectrum[-1]
        self.spectrum, self.vectors = spectrum[kept], vectors[:, kept]
        self.target = self.vectors.T @ y
        self.missed = float(np.sum((y - self.vectors @ self.target) ** 2))
        self.alpha = self._best()
        return self

    def predict(self, x: np.ndarray, alpha: float | np.ndarray | None = None) -> np.ndarray:
        """f at rows of x, (m,), with another penalty if given; (m, k) with k penalties."""
        ridge = len(self.vectors) * np.asarray(self.alpha if alpha is None else alpha)
        coefficients = self.vectors @ (self.target / (self.spectrum + ridge[..., None])).T
        return np.asarray(self._features(x).T @ (self.features @ coefficients))

    def score(self, alpha: float) -> float:
        """Robust generalized cross-validation."""
        n, ridge = len(self.vectors), alpha * len(self.vectors)
        free = ridge / (self.spectrum + ridge)
        residual = (np.sum(free**2 * self.target**2) + self.missed) / n
        left = (n - len(free) + free.sum()) / n  # exact also where it is tiny
        variance = np.sum((1 - free) ** 2) / n
        return float(residual / left**2 * (1 + ROBUST * variance**2)) if left > 0 else float("inf")

    def _best(self) -> float:
        """The alpha of least score, by a grid and a refinement; the largest of several that are equally good."""
        low, high = np.log10(np.array([1e-3, 100]) * self.spectrum[[0, -1]] / len(self.vectors))
        logs = np.linspace(high, low, round(GRID * (high - low)) + 1)
        heights = [self._height(log) for log in logs]
        log = logs[np.argmin(heights)]
        bounds = log - 1 / GRID, log + 1 / GRID
        found = scipy.optimize.minimize_scalar(self._height, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        return float(10 ** (found.x if found.fun < min(heights) else log))

    def _height(self, log: float) -> float:
        return float(np.log(np.clip(self.score(10**log), 1e-300, 1e300)))

    def _features(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * self.basis.values(x))
