"""Whether functions that are to vanish at the ends of the data do so, on a draw of rows before the pass."""

from __future__ import annotations

import numpy as np

from daskspectral.basis.edges import Edge
from daskspectral.data.source import Source
from daskspectral.engine.sampling import draw_rows
from daskspectral.errors import TrustWarning, warn_user

SAMPLE = 20_000
ROUNDING = 1e-9
MOST_ON_EDGE = 0.05
LARGE = 0.25  # of the largest value: no function that vanishes near the data is nowhere smaller
FEW, GAP = 10, 0.5  # rows that end at the zeros come ten times nearer than the tenth of them
FEWEST = 100  # rows from which the smallest value says something


def check_edges(edges: tuple[Edge, ...], source: Source, rng: np.random.Generator, *, view: str) -> None:
    """Raise ValueError for a function that does not vanish where the data end, on up to 20 000 rows.

    It is negative, or 0 on more than a twentieth of the rows, or nowhere below a quarter of its largest value. A gap
    between the last rows and its zeros, wider than that between the last rows and the next hundredth of all, gives a
    TrustWarning. A function that vanishes at some ends of the data alone cannot be told from one that is meant so.
    """
    numbers, x = draw_rows(source, SAMPLE, rng, view=view)
    for edge in dict.fromkeys(edges):
        values = edge.values(x)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"the vanishing function {edge!r} is {values[row]} at row {numbers[row]} of the data")
        largest = float(np.abs(values).max())
        zero = np.abs(values) <= ROUNDING * largest
        beyond = edge.outside(x) & ~zero
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"the vanishing function {edge!r} does not vanish where the data end: {np.count_nonzero(beyond)} of "
                f"{len(x)} rows lie outside its domain, row {numbers[row]} at {x[row]} the first of them; widen it, or "
                "leave such rows out"
            )
        if zero.mean() > MOST_ON_EDGE:
            raise ValueError(
                f"the vanishing function {edge!r} is 0 on {np.count_nonzero(zero)} of {len(x)} rows: it is to be "
                "positive where the data lie, and 0 at their ends alone"
            )
        least = float(values.min())
        if len(x) >= FEWEST and least > LARGE * largest:
            raise ValueError(
                f"the vanishing function {edge!r} does not vanish where the data end: over {len(x)} rows it goes from "
                f"{least:.3g} to {largest:.3g}; its zeros belong at the ends of the data"
            )
        few = max(FEW, len(x) // 100)
        if len(x) <= few:
            continue
        for distance in edge.sides(x).T:
            nearest, near = (float(np.partition(distance, k)[k]) for k in (0, few))
            if nearest > GAP * near:
                warn_user(
                    f"the zeros of the vanishing function {edge!r} lie beyond the data: on one side {few} rows come "
                    f"{near - nearest:.3g} nearer to them than the others, and then there is a gap of {nearest:.3g} "
                    "without rows, across which functions need no slope: eigenvalues come out too small. Move the "
                    "zeros to where the data end",
                    TrustWarning,
                )
                break
