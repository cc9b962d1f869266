"""Pictures over the data: eigenfunctions by the number of columns, embeddings, and landmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.data.remote import Location, stored
from daskspectral.engine.sampling import take_rows
from daskspectral.plot.canvas import SHOWN, Canvas, Pairs, fitting, on_sphere
from daskspectral.plot.common import (
    check_fitted,
    has_right_view,
    is_singular,
    require_matplotlib,
    still,
    value_label,
    values_of,
)
from daskspectral.plot.fields import aspect_of, draw_field, draw_series, maps_of
from daskspectral.plot.files import refuse_picture, save_figure
from daskspectral.plot.style import BLUE, CLOUD, FAINT, SERIES, Scale, axes_of, dots, globe, legend, plain
from daskspectral.plot.views import View
from daskspectral.spectral import SpectralDecomposition

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.floating[Any]]
CLASSES = 6  # distinct labels that have a colour each


def eigenfunction(
    estimator: SpectralDecomposition,
    X: Any = None,
    component: int | None = None,
    *,
    right: bool = False,
    ax: Axes | None = None,
    colour_bar: bool = True,
    max_points: int = 20_000,
    random_state: Any = 0,
) -> Axes:
    """Draw one eigenfunction over a sample of the rows of X, with axes, units and a colour bar.

    It is the first that is not a constant, or the `component` with this number, counted from 0.

    One column: a line over a histogram of the data. Two: level lines where there are data. Three on the unit sphere:
    level lines in matplotlib's Mollweide projection (`ax` must have it), the third axis upward. Otherwise the sample in
    the two columns that tell most of the function, coloured by its values. Of complex functions the real part is
    drawn, of singular ones the left one, or with `right` the right one of `Cross`, over rows of the second view.

    Of labelled data whose columns have two dimensions, or whose rows have, it is the map that `eigenfunctions` draws.

    Without X the landmarks stand for the data, or the box of a Fourier lattice. The axes have the names and units of
    the columns where the data had them. Raises ImportError without matplotlib, TypeError for other estimators,
    ValueError for X with other columns than at the fit or without a valid row, for a component that there is not,
    without X where the model knows no places, and for right functions of another operator.
    """
    check_fitted(estimator)
    component = checked_component(estimator, component)
    if right and not has_right_view(estimator):
        raise ValueError(f"right functions of other variables are those of Cross; the model is {estimator}")
    if maps := [] if right else maps_of(estimator, X, [component], max_points):
        axes = draw_field(maps[0], ax, colour_bar=colour_bar)
        axes.set_title(value_label(estimator, component), fontsize=9)
        return axes
    canvas = View(estimator, right).canvas(X, max_points=max_points, random_state=random_state)
    scale = canvas.scale([component])
    axes = canvas.picture(component, scale, ax)
    axes.set_title(value_label(estimator, component), fontsize=9)
    if colour_bar and canvas.points.shape[1] > 1:
        singular = f"{'right' if right else 'left'} singular function"
        scale.bar(axes, f"{singular if is_singular(estimator) else 'eigenfunction'} {component}", shrink=0.9)
    return axes


def series(
    estimator: SpectralDecomposition,
    X: Any,
    component: int | None = None,
    *,
    ax: Axes | None = None,
    start: int = 0,
    length: int = 1000,
) -> Axes:
    """Draw an eigenfunction along `length` rows of X that follow one another, from the row `start` on.

    It is the first that is not a constant, or the `component` with this number, counted from 0. X is one trajectory;
    across are the numbers of its rows, or the numbers or times that are their coordinate. Raises as `eigenfunction`
    does.
    """
    check_fitted(estimator)
    component = checked_component(estimator, component)
    view = View(estimator)
    source = view.source(X)
    stop = min(source.n, start + length)
    if not 0 <= start < stop:
        raise ValueError(f"start is a row of X, 0 to {source.n - 1}, and length 1 or more; they are {start}, {length}")
    numbers, points = take_rows(source, np.arange(start, stop))
    label, places = view.along(X, numbers)
    axes = draw_series(axes_of(ax, (5.0, 2.0)), places, view.evaluate(points)[:, component], label=label)
    axes.set_title(value_label(estimator, component), fontsize=9)
    return axes


def eigenfunctions(
    estimator: SpectralDecomposition, X: Any, *, count: int = 16, max_points: int = 20_000, random_state: Any = 0
) -> Figure:
    """Draw the first `count` eigenfunctions of a fitted estimator over a sample of the rows of X, a panel for each.

    Where the operator has singular values, they are its left singular functions; of complex ones the real part is
    drawn.

    One column: lines over a histogram of the data. Two: level lines where there are data. Three on the unit sphere
    (|x| = 1 to 1e-6 in the sample): level lines in the Mollweide projection, the third axis upward. Otherwise the
    sample in the first two eigenfunctions that are not constant, coloured by each of the others.

    Labelled data become maps, with the coordinates as axes and a colour bar each. Where columns have two dimensions,
    such as latitude and longitude, it is the regression of the field on the function: what the field does where the
    function rises by 1, in its own units (`to_xarray` has it as `..._pattern`). Where rows have two, such as
    sample_dims=("lat", "lon"), it is the function.

    X (n, d) is one array of any kind that `fit` takes; `max_points` of its valid rows are drawn at random. The axes
    are in the units of X, also where the estimator standardizes. Raises ImportError without matplotlib, TypeError for
    other estimators, ValueError for X with another number of columns than at the fit, or without a valid row.
    """
    check_fitted(estimator)
    if count < 1 or max_points < 1:
        raise ValueError(f"count and max_points must be 1 or more; they are {count} and {max_points}")
    shown = range(min(count, len(values_of(estimator))))
    if maps := maps_of(estimator, X, shown, max_points):
        return _draw_maps(estimator, maps, shown)
    canvas = View(estimator).canvas(X, max_points=max_points, random_state=random_state)
    if isinstance(canvas, Pairs):
        return _draw_embedding(estimator, canvas, shown)
    width, height = canvas.size
    titles = [value_label(estimator, i) for i in shown]
    figure, axes = panels(titles, width=min(2.2, 0.5 * width), aspect=height / width, projection=canvas.projection)
    for i, ax in zip(shown, axes, strict=True):
        canvas.draw(ax, i, canvas.scale([i]), labels=False)
    return figure


@stored
def save_eigenfunctions(
    estimator: SpectralDecomposition,
    X: Any,
    path: Location,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Draw the eigenfunctions, with the options of `eigenfunctions`, into a file, as `save_figure` does."""
    refuse_picture(path, overwrite)
    save_figure(eigenfunctions(estimator, X, **options), path, overwrite=overwrite)


def panels(
    titles: Sequence[str],
    *,
    columns: int = 4,
    width: float = 2.2,
    aspect: float = 1.0,
    projection: str | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, row by row; `width` in inches, `aspect` height over width."""
    require_matplotlib()
    from matplotlib.figure import Figure

    rows, columns = math.ceil(len(titles) / columns), min(columns, len(titles))
    figure = Figure(figsize=(width * columns, (width * aspect + 0.3) * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, i + 1, projection=projection) for i in range(len(titles))]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize=9, pad=4)
        ax.tick_params(labelsize=7, length=2)
        ax.spines[:].set_color("0.7")
    return figure, axes


def _draw_maps(estimator: SpectralDecomposition, maps: Sequence[xr.DataArray], shown: range) -> Figure:
    """A panel for each map, of one variable after the other."""
    titles = [value_label(estimator, shown[k % len(shown)]) for k in range(len(maps))]
    figure, axes = panels(titles, columns=3, width=3.6, aspect=aspect_of(maps[0]))
    for one, ax in zip(maps, axes, strict=True):
        draw_field(one, ax)
    return figure


def _draw_embedding(estimator: SpectralDecomposition, canvas: Canvas, shown: range) -> Figure:
    """The sample in the first two functions that are not constant, coloured by each of the others."""
    values, points = canvas.values, canvas.points
    varying = np.flatnonzero(~still(values[:, : len(shown)])).tolist()
    coloured = varying[2:]
    coordinates = [(f"eigenfunction {i}", values[:, i]) for i in varying[:2]]
    coordinates += [(f"column {j}", points[:, j]) for j in range(2 - len(coordinates))]  # where there are fewer
    (across, x), (upward, y) = coordinates
    figure, axes = panels([value_label(estimator, i) for i in coloured] or [f"{len(points)} rows"])
    for n, ax in enumerate(axes):
        colours: Any = canvas.scale([coloured[n]]).of(values[:, coloured[n]]) if coloured else BLUE
        dots(ax, x, y, colours, size=3.0, rasterized=True)
        ax.set(xticks=[], yticks=[])
    figure.supxlabel(across, fontsize=9)
    figure.supylabel(upward, fontsize=9)
    return figure


def checked_component(estimator: SpectralDecomposition, component: int | None) -> int:
    """Return the number of a function, by default of the first that is not a constant.

    Raises ValueError for a number that the fit does not have.
    """
    count = len(values_of(estimator))
    if component is None:
        return min(int(estimator.constants_), count - 1)
    if not 0 <= component < count:
        raise ValueError(f"component is 0 to {count - 1}, the functions of the fit; it is {component}")
    return component


def embedding(
    coordinates: ArrayLike,
    *,
    color: ArrayLike | None = None,
    label: str = "",
    components: tuple[int, int] | None = None,
    name: str = "component",
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows in two of their coordinates (n, k), such as those of `transform`, coloured by any variable.

    `color` (n,) are numbers, which get a colour bar with the `label`, or labels of up to six classes, which get a
    legend; more numbers than that many whole ones are a scale. `components` are the two columns of the coordinates,
    by default the first two that vary. Of more than `max_points` rows every so manieth is drawn. Raises ImportError
    without matplotlib, ValueError where shapes do not go together.
    """
    values = np.asarray(coordinates)
    if components is None:
        components = _varying(values.real) if values.ndim == 2 and len(values) else (0, 1)
    if values.ndim != 2 or not all(0 <= c < values.shape[1] for c in components):
        raise ValueError(f"coordinates are (n, k) with the columns {components}; their shape is {values.shape}")
    if color is not None and np.shape(color) != (len(values),):
        raise ValueError(f"color has a value for each of the {len(values)} rows; its shape is {np.shape(color)}")
    axes = plain(axes_of(ax, (4.6, 3.6)))
    some = slice(None, None, max(1, math.ceil(len(values) / max_points)))
    x, y = (values[some, c].real for c in components)
    variable = np.zeros(len(x)) if color is None else np.asarray(color)[some]
    classes = np.unique(variable)
    if color is None:
        dots(axes, x, y, BLUE, rasterized=True)
    elif variable.dtype.kind in "OUSb" or (variable.dtype.kind in "iu" and len(classes) <= CLASSES):
        for i, one in enumerate(classes):
            at = variable == one
            dots(axes, x[at], y[at], SERIES[i % len(SERIES)], label=f"{one}", rasterized=True)
        legend(axes, title=label or None, markerscale=3, title_fontsize=8)
    else:
        scale = Scale.between(float(np.nanmin(variable)), float(np.nanmax(variable)))
        dots(axes, x, y, scale.of(variable.astype(float)), rasterized=True)
        scale.bar(axes, label)
    axes.set(xlabel=f"{name} {components[0]}", ylabel=f"{name} {components[1]}")
    return axes


def _varying(values: Array) -> tuple[int, int]:
    """The first two columns that are not constant, or the first two."""
    found = np.flatnonzero(~(np.ptp(values, axis=0) <= 1e-9 * np.abs(values).max(axis=0)))
    return (int(found[0]), int(found[1])) if len(found) > 1 else (0, 1)


def landmarks(estimator: Any, X: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the landmarks of a fitted estimator, over points X (m, d) of the columns that are used where they are given.

    One column: their places on a line. Two: the plane. Three on the unit sphere: the Mollweide projection. More: the
    two columns in which they spread most. Raises ImportError without matplotlib, ValueError for a model without
    landmarks.
    """
    points = None if X is None else np.asarray(X, dtype=float)[:: max(1, math.ceil(len(np.asarray(X)) / SHOWN))]
    return draw_landmarks(View(estimator), points, ax)


def draw_landmarks(view: View, points: Array | None, ax: Axes | None = None) -> Axes:
    """The landmarks over points (m, d) in the units of the data."""
    places, names, model = view.landmarks, view.names, view.estimator
    if places is None:
        raise ValueError(f"{type(model).__name__} has no landmarks: its basis is {getattr(model, 'basis_', None)}")
    d = places.shape[1]
    if d == 1:
        axes = plain(axes_of(ax, (5.0, 1.8)))
        if points is not None:
            axes.hist(points[:, 0], bins=60, color=FAINT)
        axes.vlines(places[:, 0], 0, 1, color=BLUE, linewidth=0.7, transform=axes.get_xaxis_transform())
        axes.set(xlabel=names[0], yticks=[])
        return axes
    seen = places if points is None else points
    sphere = on_sphere(seen)
    axes = axes_of(ax, (4.8, 2.6) if sphere else (4.4, 3.6), "mollweide" if sphere else None)
    first, second = sorted(np.argsort(-places.std(axis=0), kind="stable")[:2])
    for some, colour, size, label in ((points, CLOUD, 2.0, "rows"), (places, BLUE, 9.0, "landmarks")):
        if some is None:
            continue
        x, y = some[:, first], some[:, second]
        if sphere:
            unit = some / np.linalg.norm(some, axis=1, keepdims=True)
            x, y = np.arctan2(unit[:, 1], unit[:, 0]), np.arcsin(np.clip(unit[:, 2], -1, 1))
        dots(axes, x, y, colour, size=size, label=label, rasterized=True)
    legend(axes, markerscale=1.5, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderpad=0.2)
    if sphere:
        return globe(axes)
    axes.set(xlabel=names[first], ylabel=names[second])
    if d == 2:
        scale = view.preparation.scale
        lengths = fitting(seen, np.ones(d) if scale is None else scale)
        axes.set_aspect(lengths[0] / lengths[1], "datalim")
    return plain(axes)
