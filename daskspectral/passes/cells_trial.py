"""Soft cells on the rows of a pilot, judged on the same rows as kernels at landmarks: short trajectories bear few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import SoftCells
from daskspectral.moments.trial import Split, merged, ranked
from daskspectral.passes.automatic import Search, in_threads
from daskspectral.passes.pilot import Pilot
from daskspectral.passes.selection import Candidate

Array = NDArray[np.floating[Any]]
COUNTS = (0.5, 0.75, 1.0, 1.5)  # of cells, times the cube root of the number of rows
RATIOS = (0.7, 1.0, 1.5)  # of the width to the distance of neighbouring centres
LEAST, LEAST_ROWS = 5, 100  # cells and rows
SAMPLE = 2000  # rows among which centres are found


@dataclass(frozen=True, eq=False)
class CellsRival:
    """Cells, with the held-out values (splits, k) of their functions, and the ratio of their width."""

    name: ClassVar[str] = "cells"

    basis: SoftCells
    values: Array
    ratio: float

    def candidate(self, score: float, why: str) -> Candidate:
        """The cells in the table of an automatic choice."""
        return Candidate.of(f"{self.basis.size} soft cells", self.ratio, None, score, self.values, why)

    def judged(self, pilot: Pilot, landmark: NDArray[np.bool_], components: int, split: Split) -> Array:
        """The values (1, k) of the same cells on other rows."""
        return _judged(self.basis, pilot, landmark, self.values.shape[1], [split])


def cells_candidate(search: Search, splits: Sequence[Split], rng: np.random.Generator) -> CellsRival | None:
    """The best of few cells and somewhat more; None for too few rows.

    Of m rows p cells leave a variance in proportion to p / m, and an error of their size: the best p grows slowly.
    """
    points = np.asarray(search.pilot.points("x"), dtype=float)
    if len(points) < LEAST_ROWS:
        return None
    sample = points[rng.permutation(len(points))[:SAMPLE]]
    counts = sorted({max(LEAST, round(share * np.cbrt(len(points)))) for share in COUNTS})
    drawn = [SoftCells.draw(sample, p, 1.0, rng) for p in counts]
    bases = {(i, ratio): SoftCells(c.centres, ratio * c.width) for i, c in enumerate(drawn) for ratio in RATIOS}
    part, halves = merged(splits, search.pilot.folds)
    pilot = search.pilot.parted(part)
    values = in_threads(
        lambda basis: _judged(basis, pilot, search.landmark, search.count, halves), list(bases.values())
    )
    found = dict(zip(bases, values, strict=True))
    best = ranked(search.scores(found))[0]
    return CellsRival(bases[best], found[best], best[1])


def _judged(basis: SoftCells, pilot: Pilot, landmark: NDArray[np.bool_], count: int, splits: Sequence[Split]) -> Array:
    return pilot.trial(basis, None, landmark, "float64").judged(splits, count, [1.0])[0]
