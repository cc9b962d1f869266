"""Committors and mean first passage times in the span of a basis, from the sums of a stopped process.

With S the operator of the process stopped in a set (`operators.stopped`), both solve (1 - S) u = v outside the sets,
with v the probability of stopping in b within the lag, or the mean time until the process stops or the lag has passed.
Exact at any lag, except for the span (Thiede, Giannakis, Dinner and Weare 2019; Strahan and others 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.moments.intervals import jackknife_factor
from daskspectral.moments.moments import Moments
from daskspectral.solve.whitening import whiten

Array = NDArray[np.floating[Any]]


def stopped_passage(moments: Moments, cut: float, *, both: bool) -> tuple[Array, float, Array]:
    """Return the committor to b and the time until a or b of a stopped process, in the basis.

    Returns coefficients (1 + S, p, 2), for all rows and without each of S folds, the factor of the jackknife variance,
    and the shares (3,) of the rows outside the sets, in a, and in b. Directions are those of the Gram matrix outside
    the sets above the cutoff. Raises ValueError if a and b overlap, or if a, their outside, or b (if `both`) has no
    row.
    """
    members = moments.arrays["members"]
    outside, a, b, shared = members.tolist()
    if shared:
        raise ValueError(f"a and b must be disjoint, got {shared:.0f} common rows")
    for count, where in ((outside, "outside the sets"), (a, "in a"), (b if both else 1, "in b")):
        if not count:
            raise ValueError(f"no row with a future at this lag is {where}. Pass sets that rows enter and leave")
    w = whiten(moments.arrays["gram"] / moments.weight, cut).matrix

    def solved(sums: Mapping[str, Array]) -> Array:
        source = w.T @ np.column_stack([sums["arrivals"], sums["elapsed"]])
        return np.asarray(w @ np.linalg.solve(w.T @ sums["form"] @ w, source))

    return *_by_folds(moments, solved), members[:3] / members[:3].sum()


def passage_of_generator(moments: Moments, cut: float, *, both: bool) -> tuple[Array, float]:
    """Return the committor and the passage time of a generator, in the basis.

    Functions of the basis vanish in the sets, except the last, the guess, if `both`. The committor is the guess plus a
    combination of the others, the time a combination of these alone: <f, L u> = 0, or -E f, for each of them.
    """
    vanishing = slice(-1 if both else None)
    gram = moments.arrays["gram"][vanishing, vanishing] / moments.weight
    if not np.diagonal(gram).any():
        raise ValueError("all rows are in a or b. Pass smaller sets")
    w, p = whiten(gram, cut).matrix, len(moments.arrays["form"])
    sign = np.sign(np.trace(w.T @ moments.arrays["form"][vanishing, vanishing] @ w))  # of -L or L

    def solved(sums: Mapping[str, Array]) -> Array:
        form, found = sums["form"][vanishing], np.zeros((p, 2))
        guess = form[:, -1] if both else np.zeros(len(form))
        source = np.column_stack([-guess, sign * sums["first"][vanishing]])
        found[vanishing] = w @ np.linalg.solve(w.T @ form[:, vanishing] @ w, w.T @ source)
        found[-1, 0] = both
        return found

    return _by_folds(moments, solved)


def _by_folds(moments: Moments, solved: Callable[[Mapping[str, Array]], Array]) -> tuple[Array, float]:
    """Return solutions for all rows and without each of S folds, (1 + S, ...), and the factor."""
    folds, sums = moments.folds, moments.arrays
    filled = [] if folds is None else folds.filled
    if folds is None or len(filled) < 2:
        return solved(sums)[None], 0.0
    kept = sums.keys() & folds.arrays.keys()
    parts = ({name: sums[name] - folds.arrays[name][k] for name in kept} for k in filled)
    return np.stack([solved(sums), *map(solved, parts)]), jackknife_factor(folds, len(filled))
