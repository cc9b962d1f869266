"""Bandwidth of an embedding's kernel exp(-r^2 / bandwidth^2), chosen on a sample of the rows.

"auto"       the tenth eigenvalue of the normalized kernel is 0.9: its graph is just connected
"median"     the median distance of two rows
a number     in the units of X, or of its standardized columns
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from daskspectral.data.source import Source
from daskspectral.embedding.diffusion_functions import eigenvectors, joining_bandwidth, neighbor_scale
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import ReliabilityWarning, warn_user
from daskspectral.landmarks import median_of_distinct
from daskspectral.moments.counting import unequal_units
from daskspectral.validation import check_number

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
WORDS = ("auto", "median")
SAMPLE = 1000  # sampled rows
ROUNDED = 1e-12  # of the largest value of a column: smaller variations are rounding errors
SCALED = "divide each column by its standard deviation"
"""Remedy for columns in different units."""


def check_bandwidth(value: Any) -> None:
    """Raise ValueError unless the value is "auto", "median" or a positive number."""
    if isinstance(value, str):
        if value not in WORDS:
            raise ValueError(f"bandwidth must be 'auto', 'median' or a number, got {value!r}")
        return
    check_number("bandwidth", value, "(1e-100, 1e100)")


def chosen_bandwidth(source: Source, bandwidth: str | float, random_state: Any) -> float:
    """Return the bandwidth as a number, by the table of this module, from 1000 rows.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError without distinct valid rows.
    """
    if bandwidth not in WORDS:
        return float(bandwidth)
    rng = np.random.default_rng(random_state)
    points, unit = _sample(source, SAMPLE, rng)
    if bandwidth == "median":
        found = median_of_distinct(points, rng)
    else:
        found = unit * joining_bandwidth(squareform(pdist(points / unit, "sqeuclidean")))
    logger.info("bandwidth %.6g, by %r on %d rows", found, bandwidth, len(points))
    return found


def neighbor_bandwidth(
    source: Source, n_components: int, random_state: Any, vectors: Callable[[float], Array] | None = None
) -> float:
    """Return the "auto" bandwidth of `DiffusionMap`, from 2000 rows and the `vectors` (n, k) of all at a bandwidth."""
    points, unit = _sample(source, 2 * SAMPLE, np.random.default_rng(random_state))
    scaled = (points - points[0]) / unit
    if vectors is None:
        squares = squareform(pdist(scaled, "sqeuclidean"))
        found = unit * neighbor_scale(scaled, partial(eigenvectors, squares, n_components))
    else:
        found = unit * neighbor_scale(scaled, lambda h: vectors(unit * h))
    logger.info("bandwidth %.6g, by the distances of neighbors among %d rows", found, len(points))
    return found


def _sample(source: Source, size: int, rng: np.random.Generator) -> tuple[Array, float]:
    points = draw_rows(source, size, rng)[1]
    if not len(points):
        raise ValueError(f"no rows are left: every row is invalid. {source.remedy(1.0)}")
    if (points == points[0]).all():
        raise ValueError(
            f"rows must differ for a choice of the bandwidth, got {len(points)} equal to {points[0].tolist()}. "
            "Select other columns or rows, or pass a number."
        )
    return points, float(np.abs(points - points[0]).max())


def advise_units(source: Source, remedy: str) -> None:
    """Warn, with a `remedy`, if one bandwidth does not suit all columns."""
    points = draw_rows(source, SAMPLE, np.random.default_rng(0))[1]
    spreads: dict[int, float] = {}
    if len(points):
        varies = points.std(axis=0) > ROUNDED * np.abs(points).max(axis=0)
        spreads = {int(c): float(points[:, c].std()) for c in np.flatnonzero(varies)}
    if text := unequal_units(spreads, source.column_name, remedy=remedy):
        warn_user(text, ReliabilityWarning)
