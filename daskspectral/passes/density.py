"""The density of the rows, estimated from one draw before the pass in which an operator divides it out."""

from __future__ import annotations

import logging

import numpy as np

from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import DensityWarning, warn_user
from daskspectral.operators import Operator

logger = logging.getLogger("daskspectral")
SAMPLE = 50_000
MOST_REMOVED = 0.02


def with_density(
    operator: Operator, source: Source, rng: np.random.Generator, *, periods: tuple[float | None, ...] | None
) -> Operator:
    """The operator with the density of up to 50 000 rows of the source, by their weights.

    `periods` has an entry for each prepared column, None where no column is periodic. Raises InvalidRowError for an
    invalid row (on_invalid="raise"), and ValueError where the rows are one point.
    """
    rows, x = draw_rows(source, SAMPLE, rng)
    weights = None
    if "weight" in source.readers:
        weights = take_rows(source, rows, view="weight")[1][:, 0]
    operator = operator.estimated(x, rng, weights=weights, periods=periods)
    density = operator.estimate
    assert density is not None
    share, removed = 100 * density.clipped, 100 * density.removed
    logger.info(
        "density of %d rows: %d centres, bandwidth %.6g; clipped below at %.6g, under which %.2g %% of the rows lie, "
        "which removes %.2g %% of the weight",
        *(len(x), len(density.centres), density.bandwidth, density.floor, share, removed),
    )
    if density.removed > MOST_REMOVED:
        warn_user(
            f"the sampling density is clipped below at its quantile {share:.2g} %, and this removes {removed:.2g} % of "
            "the weight that rows have once it is divided out: eigenvalues are off by as much or more, as some places "
            "hold very few rows. Lower the argument clip of the Laplacian where these rows are no outliers, or take a "
            "smaller density exponent",
            DensityWarning,
        )
    return operator
