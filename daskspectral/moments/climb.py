"""The search for the scale of a kernel: from a few scales outward, as far as they become better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

LEAST_FACTOR, LARGEST_FACTOR = 1 / 128, 4.0


@dataclass(frozen=True)
class Setting:
    """One way to discretise: a kernel by its place among several, a factor of the unit of its scale, c of the penalty.

    The unit is the median distance at landmarks, the longest period on a lattice.
    """

    family: int
    factor: float
    penalty: float | None = None


def climb(
    factors: Iterable[float], best_of: Callable[[list[float]], float], largest: float = LARGEST_FACTOR
) -> set[float]:
    """All factors that were judged: the given ones, and twice or half the outermost one while it is the best.

    `best_of` judges new factors, and gives the best of all so far. A single factor is that of a given scale.
    """
    new = list(factors)
    tried = set(new)
    while new:
        best = best_of(new)
        beyond = {min(tried): best / 2, max(tried): 2 * best}.get(best, 0.0) if len(tried) > 1 else 0.0
        new = [beyond] if LEAST_FACTOR <= beyond <= largest else []
        tried.update(new)
    return tried


def edge_of(tried: Iterable[float], best: float) -> str:
    """Which end of several factors the best one is, the "smallest" or the "largest"; "" where it lies between them."""
    factors = list(tried)
    if len(factors) == 1 or min(factors) < best < max(factors):
        return ""
    return "smallest" if best <= min(factors) else "largest"
