"""Copies of rows that folds of whole tasks hold apart, as far as a few rows tell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.moments.row_keys import distinct_rows

LEAST_COPIES, LEAST_PAIRS = 0.01, 3


def advise_copies(x: NDArray[Any], source: Source) -> None:
    """Warn where whole tasks are dealt to folds, and of raw rows x (m, n_features_in), drawn from the source, some are
    copies: of n rows with c further copies each, m drawn ones hold about c m^2 / (2 n) pairs."""
    if not source.by_tasks or not len(x):
        return
    counts = np.bincount(distinct_rows(source.preparation.selected(x)))
    pairs = int(np.sum(counts * (counts - 1)) // 2)
    copies = 2 * source.n * pairs / len(x) ** 2
    if pairs >= LEAST_PAIRS and copies > LEAST_COPIES:
        warn_user(
            f"rows are copies of others: about {copies:.2g} further ones for each row ({pairs} pairs of {len(x)} rows "
            "that were drawn are equal). Folds of whole tasks hold copies apart, and held-out values and error bars "
            "take them for other rows: they come out too good. Give each row once, with sample_weight, or labels "
            "that copies share, folds=labels",
            TrustWarning,
        )
