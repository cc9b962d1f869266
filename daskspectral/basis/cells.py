"""Soft cells: functions that are one near a centre and fade into those of the other centres; they sum to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from daskspectral.basis.base import Array
from daskspectral.basis.callable import Differentiated
from daskspectral.kernels.base import positive
from daskspectral.landmarks import kmeans_plus_plus

ROUNDS = 20  # of k-means: with few, the chance of the first centres decides how good cells are
NEIGHBOURS = 2  # whose distances are the spacing of centres


@dataclass(frozen=True, eq=False)
class SoftCells(Differentiated):
    """φ_i(x) = exp(-|x - y_i|² / 2 w²) / Σ_j exp(-|x - y_j|² / 2 w²) for centres y (p, d) and a width w.

    As w falls to 0 they become the indicators of the cells nearest to each centre, the states of a Markov model; a
    width near the distance of neighbouring centres makes of the states few functions that are smooth. They are
    bounded far from all centres, and their span holds the constant. Few of them serve short trajectories, whose rows
    determine few functions. Raises ValueError where the centres are not finite numbers (p, d), or w is not positive.

    Examples
    --------
    >>> cells = SoftCells(np.array([[0.0], [1.0]]), width=0.5)
    >>> cells.values(np.array([[0.0], [0.5], [100.0]])).round(3)
    array([[0.881, 0.5  , 0.   ],
           [0.119, 0.5  , 1.   ]])
    """

    shapes: ClassVar = {"centres": "pd"}

    order = 1
    description = "soft cells"
    holds_constant = True

    centres: Array
    width: float

    def __post_init__(self) -> None:
        centres = np.ascontiguousarray(self.centres, dtype=float)
        if centres.ndim != 2 or not centres.size or not np.isfinite(centres).all():
            raise ValueError(f"centres are finite numbers (p, d), a point in each row; they have shape {centres.shape}")
        object.__setattr__(self, "centres", centres)
        object.__setattr__(self, "width", positive("width of SoftCells", self.width))

    @classmethod
    def draw(
        cls, x: Array, p: int, ratio: float = 1.0, random_state: int | np.random.Generator | None = None
    ) -> SoftCells:
        """p cells of rows x (m, d): centres by k-means, w the median distance of neighbouring centres times `ratio`.

        Fewer than p where fewer rows differ. Raises ValueError for p outside 2..m, and where all rows are equal.
        """
        rows, rng = np.asarray(x, dtype=float), np.random.default_rng(random_state)
        centres = rows[kmeans_plus_plus(rows, p, rng)]
        for _ in range(ROUNDS):
            cell = cdist(rows, centres, "sqeuclidean").argmin(axis=1)
            counts = np.bincount(cell, minlength=len(centres))
            sums = np.stack([np.bincount(cell, column, len(centres)) for column in rows.T], axis=1)
            centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        near = np.sort(cdist(centres, centres), axis=1)[:, 1 : 1 + NEIGHBOURS]
        if not near.size:
            raise ValueError(f"cells need two rows that differ, and p of 2 or more; p is {p}, and x {rows.shape}")
        return cls(centres, ratio * float(np.median(near.mean(axis=1))))

    @property
    def size(self) -> int:
        return len(self.centres)

    @property
    def dimension(self) -> int:
        return int(self.centres.shape[1])

    def evaluate(self, x: Array) -> Array:
        exponents = cdist(self.centres, x, "sqeuclidean") / (-2 * self.width**2)
        values = np.exp(exponents - exponents.max(axis=0))
        return np.asarray(values / values.sum(axis=0))

    def differentiate(self, x: Array) -> Array:
        values = self.evaluate(x)
        mean = values.T @ self.centres
        return np.asarray(values[:, :, None] * (self.centres[:, None] - mean) / self.width**2)
