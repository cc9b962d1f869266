"""Products of consecutive rows, for the autocorrelations of columns and of linear functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.kernels import Linear
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]

AUTOCOVARIANCE = "autocovariance"
"""Name of these sums in the results of tasks."""

ENOUGH = 4096  # pairs of consecutive rows, for an error of autocorrelations of 0.015


def directions_of(basis: Basis | None) -> Array | None:
    """Return the landmarks (r, d) of the linear functions at the end of a basis, or None."""
    own: Any = None if basis is None else basis.parts[-1]
    return own.landmarks if type(getattr(own, "kernel", None)) is Linear else None


def share_of_pairs(rows: int) -> float:
    """Return the share of `rows` whose products are summed."""
    return min(1.0, ENOUGH / max(rows, 1))


@dataclass(frozen=True)
class Series:
    """Order of rows in time: rows `stride` apart are consecutive, within series of `length` rows (None: all rows)."""

    stride: int = 1
    length: int | None = None

    def neighbors(self, numbers: NDArray[np.int64]) -> tuple[Any, Any]:
        wanted = numbers + self.stride
        places = np.searchsorted(numbers, wanted)
        there = numbers[np.minimum(places, len(numbers) - 1)] == wanted
        if self.length is not None:
            there &= numbers % self.length < self.length - self.stride
        if there[:-1].all() and self.stride == 1:
            return slice(None, -1), slice(1, None)
        return np.flatnonzero(there), places[there]


ONE_SERIES = Series()


@dataclass(frozen=True, eq=False)
class Autocovariance(Registered):
    """Sums over pairs of consecutive rows x, y, weighted by the root of the product of their weights.

    Parameters
    ----------
    products : ndarray of shape (r, r)
        Sum of (q x) (q y)^T, symmetrized, for directions q.
    columns : ndarray of shape (d,)
        Sum of x y for each column.
    means : ndarray of shape (d,)
        Sum of (x + y) / 2.
    weight : float
        Sum of 1.
    """

    dimension_names: ClassVar = {"products": ("function", "function"), "columns": ("column",), "means": ("column",)}

    products: Array
    columns: Array
    means: Array
    weight: float

    def __add__(self, other: Autocovariance) -> Autocovariance:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Autocovariance(*(one + two for one, two in pairs))

    def shifted(self, delta: Array, directions: Array) -> Autocovariance:
        first, moved = directions @ self.means, directions @ delta
        products = self.products + np.outer(first, moved) + np.outer(moved, first)
        return replace(
            self,
            products=products + self.weight * np.outer(moved, moved),
            columns=self.columns + delta * (2 * self.means + self.weight * delta),
            means=self.means + self.weight * delta,
        )


class AutocovarianceSums:
    """Sums of one task over a share of the rows of each batch, in directions (r, d)."""

    def __init__(self, directions: Array, share: float, series: Series = ONE_SERIES):
        unit = directions.shape[0] == directions.shape[1] and np.array_equal(directions, np.eye(len(directions)))
        self._directions, self._share, self._last = None if unit else directions, share, np.empty((0, 0))
        self._series, self._before = series, np.empty(0, np.int64)
        r, d = directions.shape
        self._sums: list[Any] = [np.zeros((r, r)), np.zeros(d), np.zeros(d), 0.0]

    def add(self, x: Array, weight: Array | None, numbers: NDArray[np.int64]) -> None:
        stride, old = self._series.stride, 0
        if self._share < 1:
            some = slice(int(np.ceil(self._share * len(x))) + stride)
            x, weight, numbers = x[some], None if weight is None else weight[some], numbers[some]
        x = np.asarray(x, float)
        root = np.ones((len(x), 1)) if weight is None else np.sqrt(weight, dtype=float)[:, None]
        if self._share >= 1 and len(x):
            both = np.hstack([x, root])  # with the last rows of the previous batch
            old = len(self._last)
            both = np.concatenate([self._last, both]) if old else both
            numbers = np.concatenate([self._before, numbers])
            self._last, x, root = both[-stride:].copy(), both[:, :-1], both[:, -1:]
            self._before = numbers[-stride:].copy()
        if len(x) < 2:
            return
        one, two = self._series.neighbors(numbers)
        if old > 1:
            one, two = one[two >= old], two[two >= old]
        z, pairs = root * x, (root[one] * root[two]).ravel()
        y = z if self._directions is None else z @ self._directions.T
        products = y[one].T @ y[two]
        self._sums[0] += (products + products.T) / 2
        self._sums[1] += np.einsum("nd,nd->d", z[one], z[two])
        self._sums[2] += (pairs @ x[one] + pairs @ x[two]) / 2
        self._sums[3] += float(pairs.sum())

    def result(self) -> Autocovariance:
        return Autocovariance(*self._sums)
