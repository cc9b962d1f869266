"""Pictures over the data: eigenfunctions, embeddings and maps."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral.errors import ParameterError
from daskspectral.estimators.base import Estimator
from daskspectral.plot.canvas import informative_columns
from daskspectral.plot.common import (
    BLUE,
    FAINT,
    MUTED,
    Embedding,
    axes_of,
    check_fitted,
    figure_of,
    has_right_view,
    is_singular,
    require_matplotlib,
    shown,
    value_label,
    values_of,
    with_unit,
)
from daskspectral.plot.views import View
from daskspectral.spectral import EOF, Koopman
from daskspectral.spectral.components import modes_of
from daskspectral.spectral.estimator import SpectralEstimator, in_the_field
from daskspectral.spectral.fields import FieldEstimator
from daskspectral.validation import check_integer

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.floating[Any]]
MOST, MOST_COUNTED = 20_000, 200_000  # rows that are drawn, and counted in bins
CLASSES = 15  # integers that have a marker and a color each
MARKERS = "o^sDvP"


def eigenfunction(
    estimator: SpectralEstimator,
    X: Any = None,
    component: int | None = None,
    *,
    right: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw one eigenfunction over a sample of the rows of X, with axes, units and a color bar.

    One column: a line over a histogram of the data. Several columns: the rows in the two most informative columns,
    colored by the values; points on the unit sphere in R^3 by longitude and latitude. Labeled data whose columns have
    two dimensions: the map of `eigenfunctions`. Of complex functions the real part is drawn.

    Parameters
    ----------
    estimator : fitted estimator
        A fitted spectral decomposition, or another estimator with functions.
    X : array-like, path or Rows, optional
        Rows of the data; by default the landmarks.
    component : int, optional
        Number of the function, counted from 0, for `EOF`, `CCA` and `MCA` from 1; by default the first that is not
        constant.
    right : bool, default=False
        Draw the right singular function of `Cross`, over rows of the second view.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        If X has other columns than the data of the fit or no valid row, is required for the basis, or if there is
        no such function.

    See Also
    --------
    eigenfunctions : Several functions in one figure.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> dsp.plot.eigenfunction(est, x, 1).get_xlabel()
    'column 0'
    """
    check_fitted(estimator)
    component = checked_component(estimator, component)
    if right and not has_right_view(estimator):
        raise ValueError(f"right=True requires a model of Cross, got {estimator}")
    if maps := maps_of(estimator, X, [component], right):
        axes = draw_field(maps[0], ax, lines=component < modes_above_noise(estimator))
        axes.set_title(value_label(estimator, component))
        return axes
    canvas = View(estimator, right).canvas(X, MOST)
    axes, end = axes_of(ax, (4.8, 4.2 * (canvas.shape or 0.8))), canvas.largest([component])
    drawn = canvas.draw(axes, component, -end, end)
    axes.set_title(value_label(estimator, component))
    if drawn is not None:
        singular = f"{'right' if right else 'left'} singular function"
        label = f"{singular if is_singular(estimator) else 'eigenfunction'} {component + estimator._numbering[1]}"
        figure_of(axes).colorbar(drawn, ax=axes, label=label)
    return axes


def eigenfunctions(estimator: SpectralEstimator, X: Any = None, *, count: int = 16) -> Figure:
    """Draw the first `count` eigenfunctions over a sample of the rows of X, one panel each.

    Panels are those of `eigenfunction`; for labeled data whose columns have two dimensions maps of the regression of
    the field on the function, in the units of the field. Of singular values the left functions are drawn.

    Parameters
    ----------
    estimator : fitted estimator
        A fitted spectral decomposition, or another estimator with functions.
    X : array-like, path or Rows, optional
        Rows of the data, of which at most 20 000 valid ones are drawn, at random, in the units of X. Not needed for
        maps.
    count : int, default=16
        Number of functions.

    Returns
    -------
    Figure
        The figure.

    Raises
    ------
    TypeError
        If `estimator` is not an estimator that the picture shows, or X is missing.
    ValueError
        If X has another number of columns than the data of the fit, or no valid row.

    See Also
    --------
    eigenfunction : One function.
    eof : One map of a field.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> figure = dsp.plot.eigenfunctions(est, x, count=3)
    """
    check_fitted(estimator)
    check_integer("count", count)
    numbers = range(min(count, len(values_of(estimator))))
    if maps := maps_of(estimator, X, numbers):
        titles = [value_label(estimator, numbers[k % len(numbers)]) for k in range(len(maps))]
        above, on_map = modes_above_noise(estimator), all(projection_of(one) is not None for one in maps)
        projection = projection_of(maps[0]) if on_map else None
        aspect = aspect_of(maps[0]) * (1.0 if projection is None else 0.75)  # the bar leaves less width for the map
        figure, axes = panels(titles, columns=3, width=3.6, aspect=aspect, projection=projection)
        for k, (one, ax) in enumerate(zip(maps, axes, strict=True)):
            draw_field(one, ax, lines=numbers[k % len(numbers)] < above)
            if k % 3:
                ax.set_ylabel("")
            if k + 3 < len(maps):
                ax.set_xlabel("")
        return figure
    if X is None:
        raise TypeError("X is required unless eigenfunctions are drawn as maps. Pass the rows of the data")
    canvas = View(estimator).canvas(X, MOST)
    figure, axes = panels([value_label(estimator, i) for i in numbers], aspect=canvas.shape or 1.0)
    for i, ax in zip(numbers, axes, strict=True):
        end = canvas.largest([i])
        canvas.draw(ax, i, -end, end)
        ax.set(xticks=[], yticks=[])
        if canvas.points.shape[1] < 3:
            ax.set(xlabel="", ylabel="")
    return figure


def panels(
    titles: Sequence[str],
    *,
    columns: int = 4,
    width: float = 2.2,
    aspect: float = 1.0,
    projection: Any = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel for each title, row by row.

    Parameters
    ----------
    titles : sequence of str
        Titles of the panels.
    columns : int, default=4
        Number of panels in a row.
    width : float, default=2.2
        Width of a panel in inches.
    aspect : float, default=1.0
        Height of a panel over its width.
    projection : cartopy.crs.Projection, optional
        Projection of maps.

    Returns
    -------
    (Figure, list of Axes)
        Figure and axes.

    See Also
    --------
    save_figure : Save a figure.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> figure, axes = dsp.plot.panels(["a", "b", "c"])
    >>> len(axes)
    3
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    rows, columns = math.ceil(len(titles) / columns), min(columns, len(titles))
    figure = Figure(figsize=(width * columns, (width * aspect + 0.3) * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, i + 1, projection=projection) for i in range(len(titles))]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize="small")
        ax.tick_params(labelsize="small")
    return figure, axes


def checked_component(estimator: SpectralEstimator, component: int | None) -> int:
    """Return the index of a function, by default of the first that is not constant.

    Raises ValueError for other numbers than those of the fit; modes of fields are counted from 1.
    """
    count, (name, first) = len(values_of(estimator)), estimator._numbering
    if component is None:
        return min(int(estimator.n_constants_), count - 1)
    if not first <= component < first + count:
        raise ValueError(f"{name} must be {first} to {first + count - 1}, those of the fit, got {component}")
    return component - first


def eof(model: FieldEstimator, mode: int = 1, *, right: bool = False, delay: int = 0, ax: Axes | None = None) -> Axes:
    """Draw the map of one mode: the change of the field per standard deviation of its score.

    Level lines are drawn for modes above red noise. Maps of longitudes and latitudes have coastlines with cartopy
    (extra `maps`) and its data. Fields along one dimension are drawn as lines; of several variables the first with
    dimensions.

    Parameters
    ----------
    model : EOF, CCA or MCA
        The fitted model.
    mode : int
        Number of the mode, counted from 1.
    right : bool, default=False
        Draw the map of y instead of x, for `CCA` and `MCA`.
    delay : int, default=0
        After a fit with delays: number of rows before the last row of a window, to which the map belongs.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        If there is no such mode or delay, or if columns have no dimensions.

    See Also
    --------
    scree : Shares of modes.
    eigenfunctions : Several maps.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> rows = dsp.Rows(dsp.datasets.ocean(240), sample_dims="time", anomaly="month", detrend=1, on_invalid="skip")
    >>> model = dsp.EOF(n_components=2, random_state=0).fit(rows)
    >>> axes = dsp.plot.eof(model, 1)
    """
    check_fitted(model, FieldEstimator)
    place, delays = checked_component(model, mode), model.preparation_.delays
    if check_integer("delay", delay, 0) >= delays:
        raise ValueError(f"delay must be less than the {delays} delays of the fit, got {delay}")
    fields = fields_of(model, [place], right, delay)
    if not fields:
        raise ValueError("a map requires labeled columns, such as latitudes and longitudes of an xarray.DataArray")
    axes = draw_field(fields[0], ax, lines=place < modes_above_noise(model))
    axes.set_title(value_label(model, place))
    return axes


def embedding(
    model: Any,
    X: Any = None,
    *,
    color: ArrayLike | None = None,
    label: str = "",
    name: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw rows in two coordinates, colored by clusters or any variable.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_samples, k)
        `SpectralClustering`: its clusters, in the two columns of X in which they differ most. Other estimators:
        their functions at the rows. An array or frame: its first two columns that vary.
    X : array-like, path or Rows, optional
        Rows at which a model is evaluated, in any container that `fit` accepts; at most 20 000 are drawn, at
        random. An embedding without X draws the rows of its fit.
    color : array-like of shape (n_samples,), optional
        Text, or up to 15 whole numbers, are classes, with a legend, markers, and colors that differ in lightness;
        -1 is gray. Other numbers have a color bar.
    label : str
        Title of the legend or color bar.
    name : str
        Name of the coordinates, if they have none.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        If shapes do not match, or X is required.

    See Also
    --------
    eigenfunctions : Functions, one panel each.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).normal(size=(600, 2)) + np.repeat([[0.0, 0.0], [9.0, 0.0]], 300, axis=0)
    >>> model = dsp.SpectralClustering(n_clusters=2, random_state=0).fit(x)
    >>> dsp.plot.embedding(model, x).get_xlabel()
    'column 0'
    """
    if isinstance(model, Estimator):
        values, names, color, label = _evaluated(model, X, color, label)
    else:
        if X is not None:
            raise TypeError(f"model must be a fitted estimator if X is given, got {type(model).__name__}")
        values, names = np.asarray(model), []
        names = [shown(str(column)) for column in getattr(model, "columns", ())]
        if values.ndim == 2 and len(values) > MOST:
            some = slice(None, None, math.ceil(len(values) / MOST))
            values, color = values[some], _of_rows(color, len(values), some)
    if values.ndim != 2 or not len(values) or values.shape[1] < 2:
        raise ValueError(f"coordinates must have the shape (n, k) with k > 1, got {values.shape}")
    first, second = _varying(values.real)
    variable = _of_rows(color, len(values), slice(None))
    axes = axes_of(ax, (4.6, 3.6))
    x, y = (values[:, c].real for c in (first, second))
    look: dict[str, Any] = {"s": 5, "linewidths": 0, "rasterized": True}
    if variable is None:
        axes.scatter(x, y, **look)
    elif (classes := _classes(variable)) is not None:
        _draw_classes(axes, x, y, variable, classes, label)
    else:
        bar = figure_of(axes).colorbar(axes.scatter(x, y, c=variable, **look), ax=axes, label=label)
        if variable.dtype.kind in "iu":
            bar.locator = _whole_numbers()
            bar.update_ticks()
    names = names or [f"{name or 'component'} {i}" for i in range(values.shape[1])]
    axes.set(xlabel=names[first], ylabel=names[second])
    return axes


def free_energy(
    model: Koopman, X: Any, columns: Sequence[int] | None = None, *, bins: int = 50, ax: Axes | None = None
) -> Axes:
    """Draw the free energy -ln p in kT over one or two columns of X, with equilibrium weights.

    The minimum is 0, and bins without rows are blank.

    Parameters
    ----------
    model : Koopman
        A fitted reversible model.
    X : array-like, path, Rows or list of these
        One trajectory or several, of which at most 200 000 valid rows are drawn, at random.
    columns : sequence of int, optional
        One or two of the columns that are used; by default the first two.
    bins : int, default=50
        Number of bins along a column.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        As `Koopman.equilibrium_weights`.

    See Also
    --------
    timescales : Implied timescales.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(3000)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 20)
    >>> model = dsp.Koopman(lag=(5, 10), reversible=True, basis=basis, n_components=2, random_state=0).fit(x)
    >>> axes = dsp.plot.free_energy(model, x)
    """
    check_fitted(model, Koopman)
    check_integer("bins", bins, 2)
    view = View(model)
    points = view.sample(X, MOST_COUNTED)
    d = points.shape[1]
    chosen = list(range(min(2, d)) if columns is None else columns)
    if len(chosen) not in (1, 2) or not all(0 <= column < d for column in chosen):
        raise ParameterError("columns", f"one or two of the columns 0 to {d - 1}", columns)
    weights = np.asarray(view.plain.equilibrium_weights(view.like_fit(points), progress=False))
    counts, edges = np.histogramdd(points[:, chosen], bins, weights=weights, density=True)
    with np.errstate(divide="ignore"):
        energy = -np.log(counts)
    energy = np.where(np.isfinite(energy), energy - energy.min(), np.nan)
    axes, names = axes_of(ax, (4.8, 3.8)), [view.names[column] for column in chosen]
    label = "free energy (kT)"
    if len(chosen) == 1:
        axes.plot((edges[0][1:] + edges[0][:-1]) / 2, energy, color=BLUE)
        axes.set(xlabel=names[0], ylabel=label)
        return axes
    drawn = axes.pcolormesh(*edges, energy.T, cmap="viridis", rasterized=True)
    figure_of(axes).colorbar(drawn, ax=axes, label=label)
    axes.set(xlabel=names[0], ylabel=names[1])
    return axes


def _evaluated(model: Any, X: Any, color: Any, label: str) -> tuple[Array, list[str], Any, str]:
    """Return coordinates of rows by a model, their names, and the color variable with its label."""
    check_is_fitted(model)
    if X is None:
        values = getattr(model, "embedding_", None)
        if values is None:
            raise ValueError(
                f"X must be rows of the data, because {type(model).__name__} keeps no coordinates of rows."
            )
        some = slice(None, None, math.ceil(len(values) / MOST))
        return (
            values[some],
            [f"coordinate {i}" for i in range(values.shape[1])],
            _of_rows(color, len(values), some),
            label,
        )
    view = View(model)
    source = view.source(X)
    numbers, points = view.numbered(X, MOST)
    color = _of_rows(color, source.n, numbers)
    if not isinstance(model, ClusterMixin):
        values = view.evaluate(points)
        word = "coordinate" if isinstance(model, Embedding) else "function"
        return values, [f"{word} {i}" for i in range(values.shape[1])], color, label
    clusters = np.asarray(model.predict(view.like_fit(points), progress=False)).reshape(-1)
    if points.shape[1] == 1:
        points = np.hstack([points, clusters[:, None]])
        places, names = [0, 1], [*view.names, "cluster"]
    else:
        places, names = (
            list(informative_columns(points, (clusters[:, None] == np.unique(clusters)).astype(float))),
            view.names,
        )
    values = points[:, places]
    return (
        values,
        [names[i] for i in places],
        clusters if color is None else color,
        label or ("" if color is not None else "cluster"),
    )


def _of_rows(color: Any, n: int, some: Any) -> Any:
    """Return the values of a variable (n,) at some rows; raise ValueError for another shape."""
    if color is None:
        return None
    if np.shape(color) != (n,):
        raise ValueError(f"color must have shape ({n},), got {np.shape(color)}")
    return np.asarray(color)[some]


def _classes(variable: NDArray[Any]) -> NDArray[Any] | None:
    """Return the distinct values of texts and of few whole numbers; None for a scale."""
    if variable.dtype.kind in "OUSb":
        return np.unique(variable.astype(str))
    if variable.dtype.kind == "f" and not np.array_equal(variable, np.rint(variable)):
        return None
    found = np.unique(variable)
    return found if len(found) <= CLASSES else None


def _draw_classes(axes: Axes, x: Array, y: Array, variable: NDArray[Any], classes: NDArray[Any], label: str) -> None:
    """Draw classes with a marker each, in colors of falling lightness, and a legend."""
    from matplotlib import colormaps

    texts = variable.astype(str) if classes.dtype.kind == "U" else variable
    unknown = classes == -1 if classes.dtype.kind in "if" else np.zeros(len(classes), bool)
    colors = iter(colormaps["viridis"](np.linspace(0, 0.9, np.count_nonzero(~unknown))))
    look: dict[str, Any] = {"s": 11, "linewidths": 0, "rasterized": True}
    for one, marker, none in zip(classes, cycle(MARKERS), unknown, strict=False):
        of_class = texts == one
        of_one: dict[str, Any] = {"color": MUTED if none else next(colors), "marker": "." if none else marker}
        title = shown(str(one) if classes.dtype.kind != "f" else f"{one:.0f}")
        axes.scatter(x[of_class], y[of_class], label=title, **of_one, **look)
    columns = 1 + (len(classes) > 8)
    axes.legend(
        title=label or None,
        markerscale=2,
        fontsize="small",
        frameon=False,
        ncols=columns,
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _varying(values: Array) -> tuple[int, int]:
    found = np.flatnonzero(~(np.ptp(values, axis=0) <= 1e-9 * np.abs(values).max(axis=0)))
    return (int(found[0]), int(found[1])) if len(found) > 1 else (0, 1)


# -- maps of labeled fields ------------------------------------------------------------------------------------------


def maps_of(estimator: SpectralEstimator, X: Any, components: Sequence[int], right: bool = False) -> list[xr.DataArray]:
    """Return the regression of a field on each function; empty unless columns have two dimensions."""
    found = [field for field in fields_of(estimator, components, right) if field.ndim == 2]
    if found and X is not None and not right:
        View(estimator).source(X)  # refuses other columns
    return found


def fields_of(
    estimator: SpectralEstimator, components: Sequence[int], right: bool = False, delay: int = 0
) -> list[xr.DataArray]:
    """Return the regression of labeled columns on each function, by variable; empty for other columns."""
    layout = vars(estimator).get(f"{'right_' * right}layout_")
    if layout is None or not any(variable.dims for variable in layout.variables):
        return []
    try:
        if isinstance(estimator, FieldEstimator):
            patterns = next(side.scaled for side in estimator._mode_fields() if side.right == right)
        else:
            patterns = estimator.patterns_.single.real
    except (ValueError, StopIteration):
        return []
    width = estimator.n_right_features_in_ if right else estimator.n_features_in_
    patterns = patterns[list(components), delay * width : (delay + 1) * width]
    found = in_the_field(estimator, patterns, ("component",), right=right)
    return [_as_map(maps[k]) for maps in found.values() if maps.ndim > 1 for k in range(len(components))]


def modes_above_noise(estimator: Any) -> int:
    """Return how many modes of a field are above red noise; all functions of other models."""
    modes = modes_of(estimator) if isinstance(estimator, EOF) else None
    return len(values_of(estimator)) if modes is None else modes.count


def draw_series(axes: Axes, x: Array, values: Array, *, label: str) -> Axes:
    """Draw a function along consecutive rows."""
    axes.axhline(0, color=MUTED, linewidth=0.5)
    axes.plot(x, values, color=BLUE, linewidth=0.9)
    axes.set(xlabel=label, xlim=(x[0], x[-1]) if len(x) > 1 else None)
    return axes


def draw_field(field: xr.DataArray, ax: Axes | None = None, *, lines: bool = True) -> Axes:
    """Draw a field along one dimension, or as a map of two with a color bar and, if asked, level lines.

    Maps of longitudes and latitudes have coastlines if cartopy is installed, on new axes and on those of its maps.
    """
    labels = [with_unit(dim, field[dim].attrs) for dim in field.dims]
    if field.ndim == 1:
        axes = axes_of(ax, (4.0, 2.2))
        field.plot(ax=axes, add_labels=False)  # type: ignore[call-arg]
        axes.set(xlabel=labels[0])
        return axes
    projection = projection_of(field) if ax is None else getattr(ax, "projection", None)
    axes = axes_of(ax, (4.4, 4.2 * aspect_of(field) + 0.4), projection)
    most, usual = np.nanquantile(np.abs(field.values), [1.0, 0.98])
    look: dict[str, Any] = {"cbar_kwargs": {"label": with_unit(field.name, field.attrs)}}
    look["vmax"] = float(usual if most > 2 * usual > 0 else most) or 1.0  # few cells do not determine the colors
    shared: dict[str, Any] = {"ax": axes, "add_labels": False}
    if projection is not None:
        shared["transform"] = importlib.import_module("cartopy.crs").PlateCarree()
        look["cbar_kwargs"]["shrink"] = 0.6  # the map keeps its aspect, and is lower than its panel
    axes.set_facecolor(FAINT)  # missing values, such as land
    field.plot.pcolormesh(**shared, rasterized=True, center=0.0, **look)
    if lines and min(field.shape) > 2:
        levels = (float(usual) or 1.0) * np.array([-0.8, -0.4, 0.4, 0.8])
        if np.any((levels > np.nanmin(field)) & (levels < np.nanmax(field))):
            field.plot.contour(**shared, levels=levels, colors="0.2", linewidths=0.5)
    if projection is not None:
        _draw_coastlines(axes, field[field.dims[1]].values)
    axes.set(xlabel=labels[1], ylabel=labels[0])
    return axes


LATITUDE, LONGITUDE = ("lat", "latitude", "degrees_north"), ("lon", "longitude", "degrees_east")


def _is_map(field: xr.DataArray, names: Sequence[Sequence[str]] = (LATITUDE, LONGITUDE)) -> bool:
    """Return whether the dimensions are latitudes and longitudes, by name, standard name or unit."""
    if field.ndim != len(names):
        return False
    pairs = [(dim, field[dim].attrs, own) for dim, own in zip(field.dims, names, strict=True)]
    return all(
        field[dim].dtype.kind in "iuf"
        and (str(dim).lower() in own[:2] or attrs.get("standard_name") == own[1] or attrs.get("units") == own[2])
        for dim, attrs, own in pairs
    )


def _as_map(field: xr.DataArray) -> xr.DataArray:
    """Return a map with latitudes first, and longitudes that ascend without the widest gap between them."""
    field = field.T if _is_map(field, (LONGITUDE, LATITUDE)) else field
    if not _is_map(field):
        return field
    dim = field.dims[1]
    degrees = field[dim].values.astype(float)
    order, steps = np.sort(degrees % 360), np.diff(degrees)
    if (steps > 0).all() and steps.max(initial=0) <= max(360 - np.ptp(degrees), 1.5 * np.median(steps)):
        return field
    start = order[(np.argmax(np.diff(order, append=order[:1] + 360)) + 1) % len(order)]
    return field.assign_coords({dim: field[dim].copy(data=start + (degrees - start) % 360)}).sortby(dim)


def projection_of(field: xr.DataArray) -> Any:
    """Return cartopy's projection for a map of latitudes and longitudes; None for others, and without cartopy."""
    if not _is_map(field) or importlib.util.find_spec("cartopy") is None:
        return None
    middle = float(np.mean([field[field.dims[1]].min(), field[field.dims[1]].max()]))
    return importlib.import_module("cartopy.crs").PlateCarree(central_longitude=middle)


def _draw_coastlines(axes: Any, longitudes: Array) -> None:
    """Draw coastlines, if the data of Natural Earth are available, and ticks in degrees."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    reader = importlib.import_module("cartopy.io.shapereader")
    with suppress(OSError):  # offline
        reader.natural_earth(resolution="110m", category="physical", name="coastline")
        axes.coastlines(linewidth=0.5)
    drawn = axes.gridlines(draw_labels=["left", "bottom"], linewidth=0)
    ticker = importlib.import_module("cartopy.mpl.ticker")
    ticks: Any = MaxNLocator(4, steps=[1, 1.5, 3, 6, 10]).tick_values(longitudes.min(), longitudes.max())
    drawn.xlocator, drawn.ylocator = FixedLocator((ticks + 180) % 360 - 180), ticker.LatitudeLocator(nbins=4)
    drawn.xlabel_style = drawn.ylabel_style = {"size": "small"}


def aspect_of(field: xr.DataArray) -> float:
    """Return the height over the width of a map."""
    y, x = (np.ptp(c.values) if (c := field[dim]).dtype.kind in "iuf" else len(c) for dim in field.dims)
    return float(np.clip(y / (x or 1.0), 0.4, 1.0))
