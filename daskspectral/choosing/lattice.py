"""The box of a Fourier lattice, in one pass of extremes with a sample for quantiles, and how its modes are summed."""

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
OUTLYING, FAR_OUT = 0.01, 5.0  # of the rows at either end, and how many times wider than without them a box is told
MOST_UNEVEN = 1e6  # times the period of a column over another's: squares of slopes along both have digits in common


def boxed(recipe: FourierBasis, source: Source, operator: Operator, rng: np.random.Generator) -> FourierLattice:
    """Return the lattice on its box, with its method of summing.

    A box that is not given goes from the least to the largest value of each column, found in one pass. Where this is
    more than three times as wide as the interval between the quantiles .001 and .999 of a sample, a few rows far out
    would leave no functions for the others: the box is then cut a quarter of this interval beyond them, with a
    ReliabilityWarning. Raises ValueError for a column of zero width, and for columns of very different widths.
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
            f"{source.column_name(wide)} is {ratio:.1g} times as wide as {source.column_name(narrow)}, and squares of "
            "slopes have no digits in common. Bring the columns to like units, or choose some by columns=."
        )
    return with_method(lattice, operator)


def regression_lattice(recipe: FourierBasis, dimension: int) -> FourierBasis:
    """Return the recipe for a regression on so many columns: by default with a wider margin.

    A smooth kernel that reaches across the gap holds functions back that differ at opposite edges.
    """
    if recipe.margin is None and not all(recipe.periods or (None,)):
        usual = recipe.lattice(dimension, recipe.box or ((0.0, 1.0),) * dimension).margin
        recipe = replace(recipe, margin=max(usual, REGRESSION_MARGIN))
    return recipe.sized(dimension)


def pilot_box(points: Array, periods: Periods | None, rows: int) -> FourierLattice | None:
    """Return the lattice that a fit to so many `rows` takes, on the box of a few of them (m, d).

    None where a column is constant in these, or columns are of very different widths.
    """
    extent, own = Extent(points.min(axis=0), points.max(axis=0), points), periods or (None,) * points.shape[1]
    box = [None if period else extent.trimmed(axis) for axis, period in enumerate(own)]
    if any(side is None and not period for side, period in zip(box, own, strict=True)):
        return None
    lattice = FourierBasis().sized(points.shape[1], periods, rows).lattice(points.shape[1], box)
    return lattice if np.ptp(np.log(lattice.period)) < math.log(MOST_UNEVEN) else None


def with_method(lattice: FourierLattice, operator: Operator) -> FourierLattice:
    """Return the lattice with its method of summing, and the version of finufft. ImportError where it lacks."""
    installed = version("finufft") if nufft.available() else None
    weights = len(weights_of(operator.forms, operator.functionals, lattice.dimension))
    method = lattice.method or best_method(lattice.orders, weights, installed is not None)
    if method == "nufft" and installed is None:
        raise ImportError(
            "method='nufft' needs finufft, which is not installed. pip install finufft, or pass method='matmul'."
        )
    return replace(lattice, method=method, version=installed if method == "nufft" else None)


def check_modes(operator: Operator, dimension: int) -> None:
    """Raise ValueError if an operator has no modes on a lattice."""
    if not has_modes(operator):
        raise ValueError(
            f"{operator.name} relates functions at two points, whose products are no modes of the data. Pass "
            "basis=Landmarks(), or for angles TrigonometricBasis(periods, degree)."
        )
    if operator.solver.by_norm:
        raise ValueError(f"{operator.name} needs the norm of a kernel at landmarks. Pass basis=Landmarks().")
    weights_of(operator.forms, operator.functionals, dimension)


def has_modes(operator: Operator) -> bool:
    """Return whether an operator takes functions at one point alone, so that their products are modes of the data."""
    return operator.views == ("x",) and not of_trajectories(operator)


def compares_modes(operator: Operator | None) -> bool:
    """Return whether solutions of an operator for modes can be compared on rows held out."""
    return operator is not None and has_modes(operator) and not operator.solver.two_sided


def _interval(axis: int, extent: Extent, source: Source) -> Interval:
    """Return the box of one column, (lower, upper)."""
    lower, upper = float(extent.lower[axis]), float(extent.upper[axis])
    column, (low, high), cut = source.column_name(axis), extent.quantiles(axis), extent.trimmed(axis)
    if not upper > lower or cut is None:
        rows = "every row" if not upper > lower else "nearly every row"
        raise ValueError(f"{column} is {low:g} in {rows}. Choose columns by columns=, or pass FourierBasis(box=...).")
    if cut != (lower, upper):
        warn_user(
            f"{column} goes from {lower:.4g} to {upper:.4g}, and all but two in a thousand of its rows lie in a "
            f"{(upper - lower) / (high - low):.3g} times smaller interval: the box of the lattice is cut at "
            f"{cut[0]:.4g} and {cut[1]:.4g}, and rows outside count as absent. The spectrum of heavy tails depends on "
            "this: pass FourierBasis(box=...), or transform the column",
            ReliabilityWarning,
        )
    _advise_outliers(column, extent.sample[:, axis], cut)
    return cut


def _advise_outliers(column: str, values: Array, box: Interval) -> None:
    """Warn if a few rows, of which these `values` (s,) of a column are a sample, make the box wide."""
    low, high = np.quantile(values, [OUTLYING, 1 - OUTLYING])
    width = high - low
    if not box[1] - box[0] > FAR_OUT * width > 0:
        return
    share = np.mean((values < low - width) | (values > high + width))
    warn_user(
        f"{100 * share:.2g} % of the rows are outliers of {column}: it goes from {box[0]:.4g} to {box[1]:.4g}, and 98 "
        f"of 100 rows lie between {low:.4g} and {high:.4g}. Values near 0 may stand for outliers alone: leave them "
        "out, or pass a box around the others, FourierBasis(box=...)",
        ReliabilityWarning,
    )
