"""A sample of the rows that were summed: it adds as sums do, and does not depend on chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.moments.measure import NUMBER
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]

SAMPLE = "sample"
"""The name by which tasks send sampled rows."""

ROWS, WIDE_ROWS = 2000, 1200  # of one graph; above `FEW` columns
GRAPHS = 2  # that a sample is enough for
FEW = 3
MOST_NUMBERS = 2**20  # of a sample
LEAST_ROWS = 300  # below which wide rows are not sampled


def sample_size(dimension: int) -> int:
    """Return the number of rows of so many columns that a sample has, 0 for very many columns."""
    rows = min(GRAPHS * graph_size(dimension), MOST_NUMBERS // dimension)
    return rows if rows >= LEAST_ROWS else 0


def graph_size(dimension: int) -> int:
    """Return the number of points of so many columns that a graph has at most."""
    return ROWS if dimension <= FEW else WIDE_ROWS


@dataclass(frozen=True, eq=False)
class Sample(Registered):
    """Prepared points of rows that were drawn at random, with their sample weights.

    The rows have the lowest of independent uniform keys: the sample of two data sets has the lowest keys of both.

    Parameters
    ----------
    points : array of shape (m, d)
    weights : array of shape (m,)
    keys : array of shape (m,)
        Ascending.
    reach : float
        The key below which every row is in the sample, 1 for all rows.
    size : int
        The number of rows at most.
    """

    points: Array
    weights: Array
    keys: Array
    reach: float
    size: int

    def __add__(self, other: Sample) -> Sample:
        reach, size = min(self.reach, other.reach), min(self.size, other.size)
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")
        order = order[keys[order] <= reach]
        if len(order) > size:
            reach, order = float(keys[order[size]]), order[:size]
        points = np.concatenate([self.points, other.points])[order]
        return Sample(points, np.concatenate([self.weights, other.weights])[order], keys[order], reach, size)

    def shifted(self, delta: Array) -> Sample:
        """Return the sample of points moved by delta (d,)."""
        return replace(self, points=self.points + delta)

    @property
    def distinct(self) -> tuple[Array, Array]:
        """The distinct points (m', d) of positive weight, with their total weights (m',)."""
        heavy = self.weights > 0
        points, inverse = np.unique(self.points[heavy], axis=0, return_inverse=True)
        return points, np.bincount(inverse.ravel(), self.weights[heavy], len(points)).astype(float)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The sorted numbers of rows to sample, with their keys, and the reach of the keys."""

    numbers: NDArray[np.int64]
    keys: Array
    reach: float
    size: int

    @classmethod
    def of(cls, start: int, stop: int, size: int) -> Drawn:
        """Draw the rows of the range with the lowest of independent uniform keys; the same for the same range."""
        rng, n = np.random.default_rng([start, stop]), stop - start
        m = min(size, n)
        keys = np.cumsum(rng.standard_exponential(m + 1))  # order statistics by the spacings of a Poisson process
        total = keys[-1] + rng.standard_gamma(n - m) if n > m else keys[-1]
        numbers, keys = start + rng.choice(n, m, replace=False), keys / total
        order = np.argsort(numbers)
        return cls(numbers[order], keys[:-1][order], 1.0 if m == n else float(keys[-1]), size)

    def of_batch(self, batch: Mapping[str, NDArray[Any]]) -> Sample | None:
        """Return the sample of a batch of rows; None for no row."""
        rows = batch[NUMBER]
        first, last = np.searchsorted(self.numbers, [rows[0], rows[-1] + 1])
        if first == last:
            return None
        places = np.searchsorted(rows, self.numbers[first:last])
        there = rows[places] == self.numbers[first:last]
        places, keys = places[there], self.keys[first:last][there]
        order = np.argsort(keys)
        chosen = places[order]
        weights = np.asarray(batch["weight"][chosen], float) if "weight" in batch else np.ones(len(chosen))
        return Sample(np.asarray(batch["x"][chosen], float), weights, keys[order], self.reach, self.size)
