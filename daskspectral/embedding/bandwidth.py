"""The bandwidth of an embedding, exp(-r^2 / bandwidth^2), chosen from a sample of the rows.

    bandwidth=   chosen on 1000 rows drawn uniformly
    "auto"       where the kernel just joins the rows: the tenth eigenvalue of the normalised kernel has fallen to 0.9
    "local"      0.6 times the median distance of a row to its seventh neighbour among all rows
    "median"     the median distance of two rows
    a number     in the units of X, or of its standardised columns

No choice sees labels. "local" shrinks as rows are added, as distances to neighbours do; it takes one more pass, because
neighbours in a sample are further away than neighbours among all rows, by a factor that depends on their unknown
dimension. "auto" and "median" belong to the distribution of the rows, whatever their number.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from daskspectral.data.source import Source
from daskspectral.embedding.diffusion_functions import joining_bandwidth
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import draw_rows
from daskspectral.landmarks import median_of_distinct
from daskspectral.validation import check_number

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
WORDS = ("auto", "median", "local")
SAMPLE = 1000  # rows that decide
QUERIES = 400  # of them, whose neighbours among all rows are looked for
NEIGHBOUR = 7
MULTIPLE = 0.6  # of the median distance to the seventh neighbour
_BLOCK_ROWS = 2048


def check_bandwidth(value: Any) -> None:
    """Raise ValueError unless the value is "auto", "median", "local" or a positive number."""
    if isinstance(value, str):
        if value not in WORDS:
            raise ValueError(f"bandwidth must be a number, or one of {', '.join(map(repr, WORDS))}; it is {value!r}")
        return
    check_number("bandwidth", value, "(1e-100, 1e100)")


def chosen_bandwidth(source: Source, bandwidth: str | float, random_state: Any) -> float:
    """The bandwidth as a number, by the table of this module; a number stays, and nothing is read.

    The draw, and so the number, depends on `random_state` and the rows only, not on chunks. Rows that coincide are no
    neighbours where most do.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), and ValueError where no row is valid or all rows of
    the sample are equal.
    """
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    rng = np.random.default_rng(random_state)
    points = draw_rows(source, SAMPLE, rng)[1]
    if not len(points):
        raise ValueError(f"no rows are left: every row is invalid. {source.remedy(1.0)}")
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        raise ValueError(
            f"expected rows that differ, received {len(points)} that are all {points[0].tolist()}: no bandwidth can be "
            "chosen; choose other columns or rows, or give a number"
        )
    if bandwidth == "median":
        found = median_of_distinct(points, rng)
    elif bandwidth == "local":
        found = MULTIPLE * _neighbour_distance(source, points, distinct, rng)
    else:
        unit = float(np.abs(points - points[0]).max())  # squares of distances stay in range
        found = unit * joining_bandwidth(squareform(pdist(points / unit, "sqeuclidean")))
    logger.info("bandwidth %.6g, by %r on %d rows", found, bandwidth, len(points))
    return found


def _neighbour_distance(source: Source, points: Array, distinct: Array, rng: np.random.Generator) -> float:
    """The median, over some of the points, of the distance to the seventh neighbour among all rows of the source.

    Where it is 0, since many rows coincide, it is taken over points that have no seven copies, or at last among the
    distinct points of the sample.
    """
    some = points[np.sort(rng.permutation(len(points))[:QUERIES])]
    plan = plan_rows(source, 2.0 * len(some) * (source.dimension + 10))
    run = Run(source, plan, None, "neighbours")
    nearest: Nearest = run.reduce(NeighbourTask(some)).sums["nearest"]
    distances = np.sqrt(nearest.squares[:, -1])
    if np.median(distances) > 0:
        return float(np.median(distances))
    if distances.any():
        return float(np.median(distances[distances > 0]))
    return float(np.median(np.sort(squareform(pdist(distinct)), axis=1)[:, min(NEIGHBOUR, len(distinct) - 1)]))


@dataclass(frozen=True, eq=False)
class Nearest:
    """The least squared distances from some points, (q, 8) ascending, fewer columns where there are fewer rows.

    They add up to the least of both. A point that is a row itself is its own nearest.
    """

    squares: Array

    def __add__(self, other: Nearest) -> Nearest:
        both = np.concatenate([self.squares, other.squares], axis=1)
        least = np.partition(both, min(NEIGHBOUR, both.shape[1] - 1), axis=1)[:, : NEIGHBOUR + 1]
        return Nearest(np.sort(least, axis=1))


@dataclass(frozen=True, eq=False)
class NeighbourTask:
    """The nearest rows of one range to some points (q, d): `nearest`, a `Nearest`.

    Distances are sums of squared differences, which are the same on any chunks.
    """

    points: Array

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        total = Nearest(np.empty((len(self.points), 0)))
        for batch in batches:
            x = np.asarray(batch["x"], dtype=float)
            for start in range(0, len(x), _BLOCK_ROWS):
                total += Nearest(cdist(self.points, x[start : start + _BLOCK_ROWS], "sqeuclidean"))
        return {"nearest": total}
