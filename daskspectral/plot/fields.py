"""Maps of a labelled field: what its columns do where a function is large, or the function itself over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.labelled import stack_rows
from daskspectral.data.rows import Rows
from daskspectral.engine.sampling import take_rows
from daskspectral.plot.canvas import level_lines
from daskspectral.plot.common import with_unit
from daskspectral.plot.style import BLUE, LINE, Scale, axes_of, plain
from daskspectral.plot.views import View
from daskspectral.spectral import SpectralDecomposition
from daskspectral.spectral.functions import in_the_field

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]


def maps_of(estimator: SpectralDecomposition, X: Any, components: Sequence[int], most: int) -> list[xr.DataArray]:
    """A map of two dimensions for each of the functions; none of a model of other data.

    Of columns with two dimensions, such as latitude and longitude, the map is the regression of the field on the
    function, in the field's units; of rows with two it is the function, at `most` rows about.
    """
    layout = vars(estimator).get("layout_")
    if layout is None:
        return []
    if any(len(variable.dims) == 2 for variable in layout.variables):
        try:
            patterns = estimator.patterns_.single
        except ValueError:
            return []
        if X is not None:
            View(estimator).source(X)  # refuses other columns
        found = in_the_field(estimator, patterns[list(components)].real, ("component",))
        return [maps[k] for maps in found.values() if maps.ndim == 3 for k in range(len(components))]
    return _over_rows(estimator, X, components, most) if len(layout.sample_dims) == 2 else []


def _over_rows(estimator: SpectralDecomposition, X: Any, components: Sequence[int], most: int) -> list[xr.DataArray]:
    import xarray as xr

    rows, view = Rows.of(X), View(estimator)
    layout, wanted = vars(estimator)["layout_"], estimator._columns_wanted()
    stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=layout, wanted=wanted)
    if stacked is None or len(stacked.rows.sizes) != 2:
        return []
    labels = stacked.rows
    step = int(np.ceil(np.sqrt(np.prod(labels.sizes) / most)))
    places = [np.arange(0, size, step) for size in labels.sizes]
    numbers = (places[0][:, None] * labels.sizes[1] + places[1]).ravel()
    valid, points = take_rows(view.source(X), numbers)
    values = np.full((len(numbers), len(components)), np.nan)
    values[np.searchsorted(numbers, valid)] = view.evaluate(points)[:, list(components)]
    coords = {d: labels.coords[d][at] for d, at in zip(labels.dims, places, strict=True) if d in labels.coords}
    maps = values.reshape(len(places[0]), len(places[1]), -1)
    return [xr.DataArray(maps[..., k], coords, labels.dims, f"eigenfunction {i}") for k, i in enumerate(components)]


def draw_series(axes: Axes, x: Array, values: Array, *, label: str) -> Axes:
    """A function along rows that follow one another."""
    axes.axhline(0, color=LINE, linewidth=0.5)
    axes.plot(x, values, color=BLUE, linewidth=0.9)
    axes.set(xlabel=label, xlim=(x[0], x[-1]) if len(x) > 1 else None)
    return plain(axes)


def draw_field(field: xr.DataArray, ax: Axes | None = None, *, colour_bar: bool = True) -> Axes:
    """A field along one dimension, or as a map of two with a colour bar."""
    axis = [field[dim].values for dim in field.dims]
    axis = [places.astype(float) if places.dtype.kind in "iuf" else np.arange(len(places)) for places in axis]
    labels = [with_unit(dim, field[dim].attrs) for dim in field.dims]
    if field.ndim == 1:
        return draw_series(axes_of(ax, (4.0, 2.2)), axis[0], field.values, label=labels[0])
    y, x = axis
    axes = plain(axes_of(ax, (4.2, 4.2 * aspect_of(field) + 0.4)))
    values = np.ma.masked_invalid(field.values)
    scale = Scale.symmetric(float(np.quantile(np.abs(values.compressed()), 0.995)) if values.count() else 1.0)
    if min(field.shape) > 1:
        level_lines(axes, x, y, values, scale=scale)
    axes.set(xlabel=labels[1], ylabel=labels[0])
    if colour_bar:
        scale.bar(axes, with_unit(field.name, field.attrs), shrink=0.85)
    return axes


def aspect_of(field: xr.DataArray) -> float:
    """Height over width of a map."""
    y, x = (np.ptp(c.values) if (c := field[dim]).dtype.kind in "iuf" else len(c) for dim in field.dims)
    return float(np.clip(y / (x or 1.0), 0.4, 1.0))
