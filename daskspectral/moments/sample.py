"""A sample of the rows that were summed: it adds as sums do, and does not depend on chunks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import NUMBER
from daskspectral.moments.folds import mixed
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


def reach_of(rows: int, size: int) -> float:
    """Return the key below which a few more than `size` of so many rows have theirs."""
    return min(1.0, (size + 6 * math.sqrt(size)) / rows)


def graph_size(dimension: int) -> int:
    """Return the number of points of so many columns that a graph has at most."""
    return ROWS if dimension <= FEW else WIDE_ROWS


@dataclass(frozen=True, eq=False)
class Sample(Registered):
    """Prepared points of rows that were drawn at random, with their sample weights.

    The rows have the lowest keys, hashes of their numbers: the sample of two data sets has the lowest keys of both.

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

    dimension_names: ClassVar = {"points": ("row", "column"), "weights": ("row",), "keys": ("row",)}

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

    @classmethod
    def of_batch(cls, batch: Mapping[str, NDArray[Any]], reach: float, size: int) -> Sample:
        """Return the sample of a batch: rows whose keys are below the reach, the lowest of them."""
        keys = mixed(batch[NUMBER]) * 2.0**-64
        rows = np.flatnonzero(keys < reach)
        rows = rows[np.argsort(keys[rows], kind="stable")]
        if len(rows) > size:
            reach, rows = float(keys[rows[size]]), rows[:size]
        weights = np.asarray(batch["weight"][rows], float) if "weight" in batch else np.ones(len(rows))
        return cls(np.asarray(batch["x"][rows], float), weights, keys[rows], reach, size)

    def shifted(self, delta: Array) -> Sample:
        """Return the sample of points moved by delta (d,)."""
        return replace(self, points=self.points + delta)

    @property
    def distinct(self) -> tuple[Array, Array]:
        """The distinct points (m', d) of positive weight, with their total weights (m',)."""
        heavy = self.weights > 0
        points, inverse = np.unique(self.points[heavy], axis=0, return_inverse=True)
        return points, np.bincount(inverse.ravel(), self.weights[heavy], len(points)).astype(float)
