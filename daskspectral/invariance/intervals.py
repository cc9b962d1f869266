"""Intervals of columns for models without a manifold, compatible with a group."""

from __future__ import annotations

import logging
from typing import cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import InvariantBasis
from daskspectral.data.source import Source
from daskspectral.errors import FitWarning, ReliabilityWarning, warn_user
from daskspectral.groups import Group
from daskspectral.manifolds import Interval, Manifold
from daskspectral.manifolds.interval import LegendreSpace
from daskspectral.manifolds.isometry import orthogonal_fault
from daskspectral.passes.scale import Extent, extent_from, extent_of
from daskspectral.passes.support import FAR

Array = NDArray[np.float64]
logger = logging.getLogger("daskspectral")
CONSTANT = 1e-6  # length for a constant column, 1 for the others: none of its functions is among the first
STEPS = 1000  # applications of the generators, after which a growing range counts as infinite


def ranges_of(source: Source, group: Group | None) -> Interval:
    """Return the product of intervals over the columns' ranges, of equal lengths, in one pass.

    A range more than three times that between the quantiles .001 and .999 is cut a quarter of this width beyond them,
    with a ReliabilityWarning. Ranges are widened so that the group maps them onto each other. Raises ValueError if all
    columns are constant, and as `symmetric_ranges`.
    """
    extent = extent_of(source, np.random.default_rng(0))
    ends = np.transpose([_range(axis, extent, source) for axis in range(source.dimension)])
    if group is not None:
        ends = symmetric_ranges(ends, group)
    constant = ends[0] == ends[1]
    if constant.all():
        raise ValueError(f"X must have a column that varies, but all {len(constant)} columns are constant")
    if constant.any():
        logger.info("%d of %d columns are constant; no function depends on them", constant.sum(), len(constant))
    margin = np.where(constant, np.maximum(np.abs(ends[0]), 1.0) / 2, 0.0)
    lengths = np.where(constant, CONSTANT, 1.0).tolist()
    return Interval((ends[0] - margin).tolist(), (ends[1] + margin).tolist(), lengths=lengths)


def symmetric_ranges(ends: Array, group: Group) -> Array:
    """Return the narrowest ranges (2, d) around these that each generator maps onto each other.

    Raises ValueError for a group of other coordinates, flows, generators that are not signed permutations of the
    columns, and shifts that add up.
    """
    if group.dimension != ends.shape[1]:
        raise ValueError(f"X must have the {group.dimension} coordinates of {group!r} as columns, got {ends.shape[1]}")
    if any(not field.trivial for field in group.algebra):
        raise ValueError(
            f"without a manifold the columns are intervals, which flows of {group!r} do not preserve. Pass a manifold"
        )
    for number, g in enumerate(group.generators):
        entries = np.abs(g.matrix)
        if orthogonal_fault(g) is not None or np.abs(entries - np.rint(entries)).max() > 1e-11:
            raise ValueError(
                f"without a manifold the columns are intervals, and generator {number} of {group!r} does not "
                "permute them, with or without signs. Pass a manifold on which it acts"
            )
    found = ends
    for _ in range(STEPS):
        corners = np.concatenate([found, *(h(found) for g in group.generators for h in (g, g.inverse))])
        wider = np.stack([corners.min(axis=0), corners.max(axis=0)])
        if (np.abs(wider - found) <= 1e-12 * np.maximum(np.ptp(wider, axis=0), np.abs(wider))).all():
            return np.asarray(found)
        found = wider
    raise ValueError(
        f"without a manifold the columns are intervals, but {group!r} maps no finite intervals to themselves. "
        "Pass a manifold on which it acts, such as PeriodicBox"
    )


def advise_appended(source: Source, start: int, manifold: Manifold) -> None:
    """Warn if rows from `start` on exceed the intervals of the rows before."""
    extent = extent_from(start, source, np.random.default_rng(0))
    if extent is None:  # all of weight 0: treated as absent
        return
    lower, upper = manifold.ends
    over = np.maximum(lower - extent.lower, extent.upper - upper) / (upper - lower)
    if over.max() > FAR:
        warn_user(
            f"rows from {start} on exceed the interval of {source.column_name(int(over.argmax()))}, by "
            f"{over.max():.2g} of its width, and count as rows at its end. Fit all rows again",
            ReliabilityWarning,
        )


def advise_products(basis: InvariantBasis) -> None:
    """Warn if no function depends on two columns; raise ValueError if only the constant is left."""
    manifold = cast(Interval, basis.manifold)
    columns = int(np.count_nonzero(np.array(manifold.lengths) > CONSTANT))  # those that are not constant
    kept = [space for space, size in zip(basis.harmonic.levels, basis.dimensions, strict=True) if size]
    degrees = np.concatenate([space.degrees for space in kept if isinstance(space, LegendreSpace)])
    if not degrees.any():
        raise ValueError(
            f"X has too few rows for its {columns} columns: only the constant function remains. Pass more rows, "
            "fewer columns or n_eigenfunctions, or use HermiteRegressor"
        )
    if columns > 1 and (np.count_nonzero(degrees, axis=1) < 2).all():
        warn_user(
            f"the model of the {columns} columns of X is additive, a sum of polynomials of one column each, of "
            f"degree {degrees.max()}: products would be more functions than half the rows, or than can be "
            "summed. Pass fewer columns, or use HermiteRegressor",
            FitWarning,
        )


def _range(axis: int, extent: Extent, source: Source) -> tuple[float, float]:
    lower, upper = float(extent.lower[axis]), float(extent.upper[axis])
    cut = extent.trimmed(axis) or (lower, upper)  # quantiles of nearly equal values are meaningless
    if cut != (lower, upper):
        low, high = extent.quantiles(axis)
        warn_user(
            f"{source.column_name(axis)} ranges from {lower:.4g} to {upper:.4g}, but 99.8 % of its rows are in "
            f"an interval {(upper - lower) / (high - low):.3g} times narrower: it is cut to [{cut[0]:.4g}, "
            f"{cut[1]:.4g}]. Transform the column (a logarithm, ranks), or pass manifold=Interval(lower, upper)",
            ReliabilityWarning,
        )
    return cut
