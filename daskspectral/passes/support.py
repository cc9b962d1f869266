"""Where the rows of a fit lie, and which new rows do not: beyond the ends of intervals, or far from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.engine.tasks import Tally
from daskspectral.manifolds import Manifold
from daskspectral.moments.invariant import Coverage
from daskspectral.passes.rows import Guessed

Array = NDArray[Any]
FAR = 0.01  # of an interval's width, by which the least and the largest of other rows go beyond it as a rule


@final
@dataclass(frozen=True, eq=False)
class Support:
    """The `ends` (2, d) of intervals, infinite for other coordinates, and the `coverage` by the rows; None without.

    Rows beyond the ends count as rows there. Those farther by more than 1 % of the width between the ends are guesses,
    and rows that the coverage finds far from those of the fit.
    """

    ends: Array | None = None
    coverage: Coverage | None = None

    @classmethod
    def of(cls, manifold: Manifold, coverage: Coverage | None) -> Self:
        """On a manifold, with its ends where it has any."""
        ends = manifold.ends
        return cls(ends if np.isfinite(ends).any() else None, coverage)

    def nearest(self, x: Array) -> Array:
        """Points (c, d), those beyond the ends taken to them."""
        return x if self.ends is None else np.clip(x, *self.ends)

    def guessed(self, x: Array, leverage: Array | None) -> Guessed | None:
        """Which rows (c, d), with so much `leverage` (c,), are guesses, and by how many widths they are beyond."""
        beyond = None if self.ends is None else self._beyond(x)
        if beyond is None and leverage is None:
            return None
        rows = np.zeros(len(x), dtype=bool) if leverage is None else np.asarray(leverage > 1)
        return Guessed(rows if beyond is None else rows | (beyond > FAR), beyond)

    def doubt(self, found: Tally, count: int, values: str, there: str = "") -> str:
        """The warning of rows that are guesses, with `values` there: those at an end, and what else they are."""
        if self.coverage is None:
            return (
                f"{found.count} of {count} rows lie beyond the end of an interval by more than {FAR:.0%} of its width "
                f"(the farthest by {found.most:.3g} times its width), and have the {values} at the end; `manifold_` "
                "has the ends"
            )
        where, which = "", ""
        if found.most > FAR:
            where = (
                f"beyond the end of an interval by more than {FAR:.0%} of its width (the farthest by "
                f"{found.most:.3g} times its width), with the {values} at the end{there}, or "
            )
            which = ", `manifold_` has the ends"
        return (
            f"{found.count} of {count} rows lie where the fit had no rows: {where}at a leverage above 1, the most that "
            f"a row of the fit can have. The {values} there are extrapolated, and the held-out score does not hold for "
            f"them; `leverage` tells which rows they are{which}"
        )

    def _beyond(self, x: Array) -> Array:
        """By how many widths between the ends rows are beyond them, (c,)."""
        assert self.ends is not None
        return np.asarray(np.max(np.abs(self.nearest(x) - x) / np.ptp(self.ends, axis=0), axis=1))
