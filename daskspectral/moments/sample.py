"""Random sample of the summed rows, which is additive and independent of chunks."""

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
"""Name of sampled rows in the results of tasks."""

ROWS, WIDE_ROWS = 2000, 1200  # rows of one graph; the same above `FEW` columns
GRAPHS = 2  # number of graphs per sample
FEW = 3
MOST_NUMBERS = 2**20  # entries of a sample
LEAST_ROWS = 300  # minimum size of a sample of wide rows


def sample_size(dimension: int) -> int:
    """Return the number of rows of a sample, 0 for very many columns."""
    rows = min(GRAPHS * graph_size(dimension), MOST_NUMBERS // dimension)
    return rows if rows >= LEAST_ROWS else 0


def reach_of(rows: int, size: int) -> float:
    """Return the key below which slightly more than `size` of `rows` keys are expected."""
    return min(1.0, (size + 6 * math.sqrt(size)) / rows)


def graph_size(dimension: int) -> int:
    """Return the maximum number of points of a graph."""
    return ROWS if dimension <= FEW else WIDE_ROWS


@dataclass(frozen=True, eq=False)
class Sample(Registered):
    """Prepared points of a random sample of rows, with their sample weights.

    Sampled rows have the lowest keys, hashes of their numbers; the sum of two samples has the lowest keys of both.

    Parameters
    ----------
    points : ndarray of shape (m, d)
        Prepared points.
    weights : ndarray of shape (m,)
        Sample weights.
    keys : ndarray of shape (m,)
        Keys, ascending.
    reach : float
        Key below which every row is in the sample; 1 for all rows.
    size : int
        Maximum number of rows.
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
        """Return the sample of a batch: up to `size` rows of lowest keys below the reach."""
        hashes = mixed(batch[NUMBER])
        rows = np.flatnonzero(hashes <= np.uint64(reach * 2.0**64)) if reach < 1 else np.arange(len(hashes))
        keys = hashes[rows] * 2.0**-64
        order = np.argsort(keys, kind="stable")
        order = order[keys[order] < reach]
        if len(order) > size:
            reach, order = float(keys[order[size]]), order[:size]
        rows, keys = rows[order], keys[order]
        weights = np.asarray(batch["weight"][rows], float) if "weight" in batch else np.ones(len(rows))
        return cls(np.asarray(batch["x"][rows], float), weights, keys, reach, size)

    def shifted(self, delta: Array) -> Sample:
        return replace(self, points=self.points + delta)

    @property
    def distinct(self) -> tuple[Array, Array]:
        """Distinct points (m', d) of positive weight, with their total weights (m',)."""
        heavy = self.weights > 0
        points, inverse = np.unique(self.points[heavy], axis=0, return_inverse=True)
        return points, np.bincount(inverse.ravel(), self.weights[heavy], len(points)).astype(float)
