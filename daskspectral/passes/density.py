"""The density of the rows, estimated from one draw before the pass in which an operator divides it out."""

from __future__ import annotations

import logging

import numpy as np

from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.operators import Operator
from daskspectral.operators.density import estimate_density

logger = logging.getLogger("daskspectral")
SAMPLE = 50_000


def with_density(
    operator: Operator,
    source: Source,
    rng: np.random.Generator,
    *,
    periods: tuple[float | None, ...] | None,
    on_invalid: str,
    progress: bool | None,
) -> Operator:
    """The operator with the density of up to 50 000 rows of the source, by their weights.

    `periods` has an entry for each prepared column, None where no column is periodic. Raises InvalidRowError for an
    invalid row (on_invalid="raise"), and ValueError where the rows are one point.
    """
    rows, x = draw_rows(source, SAMPLE, rng, on_invalid=on_invalid, progress=progress)
    weights = None
    if "weight" in source.readers:
        weights = take_rows(source, rows, view="weight", on_invalid=on_invalid, progress=progress)[1][:, 0]
    density = estimate_density(x, operator.exponent, rng, weights=weights, periods=periods)
    logger.info(
        "density of %d rows: %d centres, bandwidth %.6g, clipped below at %.6g (%.2g %% of the rows)",
        *(len(x), len(density.centres), density.bandwidth, density.floor, 100 * density.clipped),
    )
    return operator.estimated(density)
