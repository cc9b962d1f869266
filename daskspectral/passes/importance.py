"""Importance weights of rows that are not uniform on a manifold, from one draw before the pass that uses them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import DensityWarning, warn_user
from daskspectral.operators.sampling import ImportanceWeights, balanced, dual, within_reach
from daskspectral.passes.invariant import HARMONICS, Levels

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
SAMPLE = 20_000
ROWS_OF_A_FUNCTION = 20
FUNCTIONS = 150
FEWEST = 0.05  # effective rows, of all


def importance_weights(
    levels: Levels, source: Source, rng: np.random.Generator, *, on_invalid: str, progress: bool | None
) -> ImportanceWeights:
    """1 over the density of the rows, averaged over the group, from up to 20 000 of them by their sample weights.

    Its logarithm is in the span of the first levels, up to 150 functions, each with 20 rows: as many as halves of the
    sample tell of each other. Warns where few rows get most of the weight. Raises ValueError where all are invalid.
    """
    rows, x = draw_rows(source, SAMPLE, rng, on_invalid=on_invalid, progress=progress)
    if not len(x):
        raise ValueError(
            f"expected valid rows to estimate a density from, received {source.n} that are invalid; mend the data"
        )
    p = np.full(len(x), 1 / len(x))
    if "weight" in source.readers:
        w = take_rows(source, rows, view="weight", on_invalid=on_invalid, progress=progress)[1][:, 0]
        p = w / w.sum() if w.sum() > 0 else p
    basis = levels.within(max(1, min(FUNCTIONS, len(x) // ROWS_OF_A_FUNCTION)), HARMONICS)
    values = basis.values(x).T
    ends = sorted({part.stop for part in basis.slices})
    end, reached = _chosen(values, p, ends, rng)
    c = np.zeros(basis.size)
    c[1:end] = balanced(values[:, 1:end], p)
    c[0] = -dual(values[:, 1:end], p, c[1:end])  # a mean of 1 over the sample
    found = np.exp(values @ c)
    share = float((p @ found) ** 2 / np.sum(p**2 * found**2) * np.sum(p**2))
    logger.info("importance weights of %d rows: %d functions, effective share %.3g", len(x), end, share)
    if not reached or share < FEWEST:
        what = (
            f"weighed by 1 over their density, the rows say as much as {share:.2g} of them would if they were uniform"
        )
        if not reached:
            what = "no weights give these rows the means of the uniform probability"
        warn_user(
            f"{what}: some places of the manifold have hardly any. Take solver='least_squares', which needs no weights",
            DensityWarning,
        )
    return ImportanceWeights(basis, c)


def _chosen(values: Array, p: Array, ends: list[int], rng: np.random.Generator) -> tuple[int, bool]:
    """How many functions (n, r) to use, of the numbers `ends`, and whether any weights can be found.

    Those are best whose weights, found on one half of the rows, do best on the other.
    """
    first = rng.permutation(len(values)) % 2 == 0
    best, least = 1, 0.0
    for end in ends:
        if end == 1:
            continue
        score = 0.0
        for half in (first, ~first):
            own, other = p[half] / p[half].sum(), p[~half] / p[~half].sum()
            c = balanced(values[half, 1:end], own)
            if not within_reach(dual(values[half, 1:end], own, c), len(own)):
                return best, best > 1  # nor are more functions
            score += dual(values[~half, 1:end], other, c)
        if score < least:
            best, least = end, score
        elif end > 4 * best + 16:
            break  # ever worse
    return best, True
