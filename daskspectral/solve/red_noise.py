"""Largest eigenvalue of red noise, independent AR(1) columns, by fixed point equations of free probability.

In the cosine basis of the rows, entries of a matrix (n, d) have the variance s_j f_j(t), f_j the spectrum of column j
and s_j its sum of squares. With g_t = 1 / (z - Σ_j s_j f_j(t) / (1 - s_j x_j)) and x_j = Σ_t f_j(t) g_t, the trace of
the resolvent of X^T X is Σ_t g_t; the edge is the largest z without a solution that continues the one at infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

MOST_LAG_ONE = 0.99
GROUPS = 12  # groups of columns by autocorrelation
SINGLE, GROWTH = 24, 1.15  # number of frequencies with separate equations; growth of the width of groups
NODES = 48  # of the quadrature for the spectrum of a normalized column
STEPS, ROUNDS = 40, 100  # iterations of Newton's method, and of the search for the edge
ABOVE = 0.8  # 95 % quantile of the largest eigenvalue, in scales above the edge


def lag_one(products: Array, squares: Array, n: float) -> Array:
    """Return lag-one autocorrelations (d,) from sums about the means of n rows.

    Corrected for the bias of the raw estimate, -(1 + 3 a) / n (Kendall 1954).
    """
    raw = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    return np.asarray(np.clip((n * raw + 1) / (n - 3), -MOST_LAG_ONE, MOST_LAG_ONE))


def threshold(n: float, lags: Array, squares: Array, removed: int = 0) -> float:
    """Return the 95 % quantile of the largest eigenvalue of X^T X if X is red noise.

    X has n rows, and columns of mean 0 with lag-one autocorrelations and sums of squares (d,) after `removed` leading
    components were subtracted.
    """
    varies = squares > 1e-12 * squares.max(initial=0.0)
    d = int(np.count_nonzero(varies))
    rows = round(n) - removed
    if d <= removed or rows < 4:
        return np.inf
    top = float(squares.max())
    edge, scale = _RedNoise(rows, lags[varies], squares[varies] / top / (1 - removed / d), 1 - removed / d).edge
    return top * (edge + ABOVE * scale)


@dataclass(frozen=True, eq=False)
class _RedNoise:
    """Noise matrix of n rows and AR(1) columns with lag-one autocorrelations and sums of squares (d,)."""

    n: int
    lags: Array
    squares: Array
    share: float
    """Share of the dimensions that remains after the leading components were subtracted."""

    @cached_property
    def _groups(self) -> list[NDArray[np.intp]]:
        number = min(GROUPS, len(self.lags)) if np.ptp(self.lags) > 1e-9 else 1
        return np.array_split(np.argsort(self.lags, kind="stable"), number)

    @cached_property
    def _squares(self) -> list[Array]:
        return [self.squares[group] for group in self._groups]

    @cached_property
    def _widths(self) -> tuple[Array, Array]:
        """Sizes (m,) of groups of frequencies, and mean frequency of each."""
        ends = [1]
        while ends[-1] < self.n:
            last = ends[-1]
            ends.append(min(self.n, max(last + 1, int(last * GROWTH) if last > SINGLE else last + 1)))
        edges = np.array(ends)
        return np.diff(edges).astype(float), (edges[:-1] + edges[1:] - 1) / 2 * np.pi / self.n

    @cached_property
    def _spectra(self) -> Array:
        """Expected share of the sum of squares at each frequency, by group of columns, (m, groups).

        E[f g² / Σ f g²] for the spectrum f of an AR(1) process and normal g, by E[1/q] = ∫ E exp(-x q) dx.
        """
        width, frequency = self._widths
        a = np.array([self.lags[group].mean() for group in self._groups])
        plain = (1 - a**2) / (1 + a**2 - 2 * a * np.cos(frequency)[:, None])
        plain /= width @ plain
        found = np.zeros_like(plain)
        for x in np.exp(np.linspace(-7, np.log(60 * self.n), NODES)):
            q = 1 + 2 * x * plain
            found += x * (plain / q) * np.exp(-0.5 * (width @ np.log(q)))
        return np.asarray(found / (width @ found))

    def _solved(self, z: float, x: Array) -> _Resolvent | None:
        """Return the solution at z, by Newton's method; None unless it continues that at infinity."""
        f, (width, _) = self._spectra, self._widths
        weighted, one = (width[:, None] * f).T, np.eye(f.shape[1])
        tops = np.array([s.max() for s in self._squares])
        for _ in range(STEPS):
            if (x * tops >= 1).any() or (x < 0).any():
                return None
            parts = [s / (1 - s * own) for s, own in zip(self._squares, x, strict=True)]
            first = self.share * np.array([part.sum() for part in parts])
            second = self.share * np.array([(part * part).sum() for part in parts])
            denominator = z - f @ first
            if (denominator <= 0).any():
                return None
            g = 1 / denominator
            slopes = f * second * (g**2)[:, None]
            jacobian = one - weighted @ slopes
            step = np.linalg.solve(jacobian, x - weighted @ g)
            x = x - step
            if np.abs(step).max() < 1e-9 * x.max():
                if (x * tops >= 1).any() or (x < 0).any() or np.linalg.eigvals(jacobian).real.min() <= 0:
                    return None
                along = np.linalg.solve(jacobian, -(weighted @ g**2))
                slope = -(width @ g**2) + width @ (slopes @ along)
                return _Resolvent(z, x, along, float(1 / slope**2), g, jacobian)
        return None

    @cached_property
    def edge(self) -> tuple[float, float]:
        """Upper end of the spectrum, and scale of the Tracy-Widom distribution.

        1 / m'(z)² vanishes linearly at the edge, and is extrapolated from z above it.
        """
        f, (width, _) = self._spectra, self._widths
        total, tops = np.array([s.sum() for s in self._squares]), np.array([s.max() for s in self._squares])
        z = 2 * float(np.sqrt((f @ total).max()) + np.sqrt((f * tops).max() * width.sum())) ** 2
        now = self._solved(z, np.zeros(f.shape[1]))
        while now is None:
            z *= 2
            now = self._solved(z, np.zeros(f.shape[1]))
        below, slope, edge, wanted = 0.0, 1.0, now.z, 0.85 * now.z
        for _ in range(ROUNDS):
            found = None if wanted <= below else self._solved(wanted, now.x + 0.9 * now.along * (wanted - now.z))
            if found is None or found.decay >= now.decay:
                below = max(below, wanted)
                wanted = below + 0.4 * (now.z - below)
                if now.z - below < 1e-5 * now.z:
                    break
                continue
            slope = (now.decay - found.decay) / (now.z - found.z)
            now, edge = found, found.z - found.decay / slope
            if now.z - edge < 0.03 * edge * (self.n + len(self.lags)) ** (-2 / 3):
                break
            wanted = max(edge + 0.3 * (now.z - edge), below + 0.4 * (now.z - below))
        return edge + self._shift(now), float((2 / np.sqrt(slope)) ** (-2 / 3))

    def _shift(self, at: _Resolvent) -> float:
        """Return the first-order shift of the edge by the normalization of columns."""
        f, (width, _) = self._spectra, self._widths
        weighted = (width[:, None] * f).T
        own, p = np.diag(weighted @ f), (weighted * f.T) @ at.g
        change = np.zeros(len(width))
        for i, s in enumerate(self._squares):
            h, x, q = 1 / (1 - s * at.x[i]), s * at.x[i], s * p[i]
            linear = s * (-2 * h**2 * (q - x * own[i]) + 2 * h**3 * (x**2 * own[i] - 2 * x * q))
            change += self.share * f[:, i] * linear.sum() - 2 * self.share * f[:, i] ** 2 * (s * h**2 * x).sum()
        values, vectors = np.linalg.eig(at.jacobian.T)
        weights = np.abs(vectors[:, values.real.argmin()].real) @ (weighted * at.g**2)
        return float((weights * change).sum() / weights.sum())


@dataclass(frozen=True, eq=False)
class _Resolvent:
    """Solution x (groups,) at z, its derivative `along` z, 1 / m'(z)² as `decay`, g (m,) and the Jacobian."""

    z: float
    x: Array
    along: Array
    decay: float
    g: Array
    jacobian: Array
