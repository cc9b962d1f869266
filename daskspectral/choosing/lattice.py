"""Box of a Fourier lattice, from one pass for extremes and a sample for quantiles, and its method of summing."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierBasis, FourierLattice
from daskspectral.basis.boundary import Interval
from daskspectral.basis.recipe import Periods
from daskspectral.data.source import Source
from daskspectral.errors import ReliabilityWarning, warn_user
from daskspectral.modes import nufft
from daskspectral.modes.matrices import weights_of
from daskspectral.modes.sums import best_method
from daskspectral.operators import Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.scale import Extent, extent_of

Array = NDArray[np.floating[Any]]
REGRESSION_MARGIN = 0.3
OUTLYING, FAR_OUT = (
    0.01,
    5.0,
)  # share of rows at either end, and the ratio of widths with and without them that causes a warning
MOST_UNEVEN = 1e6  # largest ratio of periods of columns whose squared slopes have common digits


def boxed(recipe: FourierBasis, source: Source, operator: Operator, rng: np.random.Generator) -> FourierLattice:
    """Return the lattice on its box, with its method of summing.

    By default the box extends from the minimum to the maximum of each column, found in one pass. If this is more than
    three times as wide as the interval between the quantiles 0.001 and 0.999 of a sample, the box is cut a quarter of
    this interval beyond the quantiles, with a ReliabilityWarning: otherwise a few remote rows would leave no functions
    for the others. Raises ValueError for a column of zero width, and for columns of very different widths.
    """
    d, box = source.dimension, recipe.box
    ends = list(zip(recipe.periods or (None,) * d, box or (None,) * d, strict=True))
    if any(not period and side is None for period, side in ends):
        extent = extent_of(source, rng)
        box = tuple(side if p or side else _interval(axis, extent, source) for axis, (p, side) in enumerate(ends))
    lattice = recipe.lattice(d, box)
    narrow, wide = int(lattice.period.argmin()), int(lattice.period.argmax())
    ratio = lattice.period[wide] / lattice.period[narrow]
    if any(derivative_orders(operator)) and ratio > MOST_UNEVEN:
        raise ValueError(
            f"{source.column_name(wide)} is {ratio:.1g} times as wide as {source.column_name(narrow)}, so that squares "
            "of slopes have no common digits. Scale the columns to similar units, or select some by columns=."
        )
    return with_method(lattice, operator)


def regression_lattice(recipe: FourierBasis, dimension: int) -> FourierBasis:
    """Return the recipe for a regression on `dimension` columns, by default with a wider margin.

    A smooth kernel that reaches across the gap penalizes functions that differ at opposite ends.
    """
    if recipe.margin is None and not all(recipe.periods or (None,)):
        usual = recipe.lattice(dimension, recipe.box or ((0.0, 1.0),) * dimension).margin
        recipe = replace(recipe, margin=max(usual, REGRESSION_MARGIN))
    return recipe.sized(dimension)


def pilot_box(points: Array, periods: Periods | None, rows: int) -> FourierLattice | None:
    """Return the lattice of a fit to `rows` rows, on the box of a sample of them (m, d).

    None if a column of the sample is constant, or if columns have very different widths.
    """
    extent, known = Extent(points.min(axis=0), points.max(axis=0), points), periods or (None,) * points.shape[1]
    box = [None if period else extent.trimmed(axis) for axis, period in enumerate(known)]
    if any(side is None and not period for side, period in zip(box, known, strict=True)):
        return None
    lattice = FourierBasis().sized(points.shape[1], periods, rows).lattice(points.shape[1], box)
    return lattice if np.ptp(np.log(lattice.period)) < math.log(MOST_UNEVEN) else None


def with_method(lattice: FourierLattice, operator: Operator) -> FourierLattice:
    """Return the lattice with its method of summing; raise ImportError if finufft is missing."""
    installed = version("finufft") if nufft.available() else None
    weights = len(weights_of(operator.forms, operator.functionals, lattice.dimension))
    method = lattice.method or best_method(lattice.orders, weights, installed is not None)
    if method == "nufft" and installed is None:
        raise ImportError("method='nufft' requires finufft: pip install finufft, or pass method='matmul'.")
    return replace(lattice, method=method, version=installed if method == "nufft" else None)


def check_modes(operator: Operator) -> None:
    """Raise ValueError if an operator has no modes on a lattice."""
    if not has_modes(operator):
        raise ValueError(
            f"a Fourier basis requires functions at one point, but {operator.name} relates two. Pass "
            "basis=Landmarks(), or for angles TrigonometricBasis(periods, degree)."
        )
    if operator.solver.by_norm:
        raise ValueError(f"{operator.name} requires the norm of a kernel at landmarks. Pass basis=Landmarks().")
    weights_of(operator.forms, operator.functionals, 1)  # the same for any dimension, but slow for large ones


def has_modes(operator: Operator) -> bool:
    """Return whether an operator has functions at one point only, so that products are modes of the data."""
    return operator.views == ("x",) and not of_trajectories(operator)


def compares_modes(operator: Operator | None) -> bool:
    """Return whether solutions of an operator for modes can be compared on validation rows."""
    return operator is not None and has_modes(operator) and not operator.solver.two_sided


def _interval(axis: int, extent: Extent, source: Source) -> Interval:
    """Return the box of one column, (lower, upper)."""
    lower, upper = float(extent.lower[axis]), float(extent.upper[axis])
    column, (low, high), cut = source.column_name(axis), extent.quantiles(axis), extent.trimmed(axis)
    if not upper > lower or cut is None:
        rows = "every row" if not upper > lower else "nearly every row"
        raise ValueError(
            f"{column} must vary, but is {low:g} in {rows}. Select columns by columns=, or pass FourierBasis(box=...)."
        )
    if cut != (lower, upper):
        warn_user(
            f"{column} is in [{lower:.4g}, {upper:.4g}], but all except 0.2 % of its rows are in a "
            f"{(upper - lower) / (high - low):.3g} times smaller interval: the box is cut to [{cut[0]:.4g}, "
            f"{cut[1]:.4g}], and rows outside are dropped. The spectrum of heavy tails depends on this: pass "
            "FourierBasis(box=...), or transform the column",
            ReliabilityWarning,
        )
    _advise_outliers(column, extent.sample[:, axis], cut)
    return cut


def _advise_outliers(column: str, values: Array, box: Interval) -> None:
    """Warn if a few of the rows, sampled by `values` (s,) of a column, make the box wide."""
    low, high = np.quantile(values, [OUTLYING, 1 - OUTLYING])
    width = high - low
    if not box[1] - box[0] > FAR_OUT * width > 0:
        return
    share = np.mean((values < low - width) | (values > high + width))
    warn_user(
        f"{100 * share:.2g} % of the rows are outliers of {column}: its box is [{box[0]:.4g}, {box[1]:.4g}], but 98 % "
        f"of the rows are in [{low:.4g}, {high:.4g}]. Values near 0 may represent outliers only: drop them, or pass "
        "FourierBasis(box=...) without them",
        ReliabilityWarning,
    )
