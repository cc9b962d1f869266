"""The functions of a report: eigenfunctions, patterns in the dimensions of a field, predictions, embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskspectral import plot
from daskspectral.data.labelled import stack_rows
from daskspectral.engine.sampling import take_rows
from daskspectral.estimators import HermiteRegressor, InvariantRegressor, SpectralDecomposition
from daskspectral.estimators.model_dataset import in_the_field
from daskspectral.plot.canvas import Line, Pairs, Plane, canvas_of, level_lines
from daskspectral.plot.common import (
    column_names,
    has_right_view,
    is_singular,
    landmarks_of,
    like_fit,
    preparation_of,
    shown,
    still,
    value_label,
    values_of,
    with_unit,
)
from daskspectral.plot.functions import canvas_over, draw_series, evaluate, sample, source_of
from daskspectral.plot.spectra import implied
from daskspectral.plot.style import BLUE, Scale, axes_of, plain
from daskspectral.report.page import Picture, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]

SHORT = 18  # characters of a name below a small picture
COUNT = 12  # functions that are drawn
SERIES = 5000  # rows along which they are, where no timescale is known
GRID, SHOWN, POINTS = 110, 400, 4000
SERIES_ROWS = 1200
SMALL = 0.52  # of the size of a picture that stands alone


def eigenfunctions(model: Any, X: Any) -> list[Section]:
    """The eigenfunctions over rows of X, or over what the model knows of places; of Cross those of both views.

    X are rows, a list of trajectories, or a tuple of views; without the second view its landmarks stand for it.
    """
    views = views_of(model, X)
    lag = isinstance(model, SpectralDecomposition) and model.moments_.operator.lag is not None
    if X is not None and (lag or _is_field(model)):
        return _along(model, views)
    sections = _over(model, views[0], right=False)
    if has_right_view(model):
        sections += _over(model, views[1] if len(views) > 1 else None, right=True)
    return sections


def views_of(model: Any, X: Any) -> Sequence[Any]:
    """The trajectories or views of X, one where the operator takes one; a list of files is one, too.

    Raises ValueError for more views than the operator has.
    """
    operator = model.moments_.operator if isinstance(model, SpectralDecomposition) else None
    if operator is None or len(operator.views) < 2 or not isinstance(X, (list, tuple)) or not X:
        return (X,)
    if operator.lag is None and len(X) > len(operator.views):
        raise ValueError(f"{operator} is of {len(operator.views)} views of each row; {len(X)} are given")
    return X


def _title(model: Any, right: bool = False) -> str:
    if not is_singular(model):
        return "Eigenfunctions"
    return ("Right s" if right else "Left s" if has_right_view(model) else "S") + "ingular functions"


def _over(model: Any, X: Any, *, right: bool) -> list[Section]:
    """The functions over rows of X, or over the landmarks."""
    title = _title(model, right)
    try:
        canvas = canvas_over(model, X, right=right, max_points=POINTS, grid=GRID, shown=SHOWN)
    except ValueError as error:
        if X is not None:
            raise
        return [Section(title, [f"They are not drawn: {error}."])]
    numbers = np.flatnonzero(~still(canvas.values))[:COUNT].tolist()
    if not numbers:
        return []
    over = f"rows of the {'second view' if right else 'data'}"
    hint = []
    if X is None:
        over = "the box of the lattice" if canvas.box else "the landmarks"
        hint.append(
            "With the second view of the fit (--view) they are drawn over its rows."
            if right
            else "With the points of the fit (daskspectral report model points) they are drawn over the data."
        )
    which = f"first {len(numbers)} that are" if len(numbers) > 1 else "first that is"
    words = [f"The {which} not constant, over {over}: {canvas.what}."]
    if isinstance(canvas, Plane):
        words.append(f"Across is {canvas.names[0]}, upward {canvas.names[1]}.")
    words += hint
    if np.iscomplexobj(values_of(model)):
        words.append("Drawn are the real parts.")
    scale, pictures = canvas.scale(numbers), []
    for i in numbers:
        axes = axes_of(None, (canvas.size[0] * SMALL, canvas.size[1] * SMALL), canvas.projection)
        canvas.draw(axes, i, scale)
        _thinned(axes, labels=isinstance(canvas, Pairs))
        pictures.append(Picture(axes, f"{_named(model, i)}: {canvas.what}.", _named(model, i), "small"))
    if not isinstance(canvas, Line):
        axes = axes_of(None, (3.8, 0.6))
        scale.bar(axes, "value of the function", cax=True, orientation="horizontal")
        alt = f"The colours, from {scale.edges[0]:.2g} to {scale.edges[-1]:.2g}."
        pictures.append(Picture(axes, alt, size="bar"))
    return [Section(title, words, pictures, reading="functions")]


def _named(model: Any, i: int) -> str:
    return value_label(model, i) + ("" if model.trusted_[i] else " (not trusted)")


def _thinned(axes: Any, *, labels: bool) -> None:
    """Few ticks; the names of the axes only where they differ from panel to panel."""
    from matplotlib.ticker import MaxNLocator

    if axes.name != "rectilinear":
        return
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3))
        axis.set_label_text(shown(axis.get_label_text(), SHORT) if labels else "")


def _is_field(model: Any) -> bool:
    """Whether the columns have dimensions of their own, such as latitude and longitude."""
    layout = vars(model).get("layout_")
    return layout is not None and not layout.trivial and any(v.dims for v in layout.variables)


def _along(model: SpectralDecomposition, trajectories: Sequence[Any]) -> list[Section]:
    """The functions along rows that follow one another: the first of several trajectories, or times of a field."""
    first, lag = trajectories[0], model.moments_.operator.lag
    source = source_of(model, first)
    window = min(source.n, SERIES if lag is None else _telling_rows(values_of(model), lag))
    numbers, points = take_rows(source, np.arange(0, window, max(1, window // SERIES_ROWS)), on_invalid="skip")
    values, label, x = evaluate(model, points), "row", numbers.astype(float)
    laid = stack_rows(first, sample_dims=model.sample_dims, layout=vars(model).get("layout_"))
    if laid is not None and len(laid.rows.dims) == 1 and laid.rows.dims[0] in laid.rows.coords:
        places = np.asarray(laid.rows.coords[laid.rows.dims[0]])
        if places.dtype.kind in "iufM":  # numbers or times
            label, x = str(laid.rows.dims[0]), places[numbers.astype(int)]
    pictures = []
    for i in np.flatnonzero(~still(values))[:8].tolist():
        axes = draw_series(axes_of(None, (4.2, 1.6)), x, values[:, i], label=label)
        pictures.append(Picture(axes, f"{_named(model, i)} along {label}.", _named(model, i)))
    part = f"the first {window} rows" if window < source.n else f"all {source.n} rows"
    of = f" of the first of {len(trajectories)} trajectories" if len(trajectories) > 1 else ""
    words = [f"The first {len(pictures)} that are not constant, along {part}{of}."]
    return [Section(_title(model), words, pictures, reading="series")] if pictures else []


def _telling_rows(values: Any, lag: int) -> int:
    """Rows in which a trajectory jumps, or turns, about twenty times."""
    slowest = implied(values, lag)
    rows = 20 * slowest[0] if len(slowest) else SERIES
    turns = np.abs(np.angle(values))
    if np.iscomplexobj(values) and turns.max(initial=0.0) > 1e-6:
        rows = 20 * 2 * np.pi * lag / turns[turns > 1e-6].min()
    return int(np.clip(rows, 400, 100_000))


def patterns(model: SpectralDecomposition) -> list[Section]:
    """The regression of the columns on the functions, as maps in the dimensions of a field."""
    if not _is_field(model):
        return []
    try:
        known = model.patterns_
    except ValueError:
        return []
    count = min(6, len(known.single))
    pictures = []
    for name, field in in_the_field(model, known.single[:count], ("component",)).items():
        for i in range(count) if field.ndim in (2, 3) else ():
            axes = _draw_field(field.isel(component=i), with_unit(name, field.attrs))
            share = f"{100 * known.explained[i]:.3g} % of the variance"
            pictures.append(Picture(axes, f"The pattern of function {i} in {name}.", f"function {i}: {share}"))
    words = ["The regression of the field on each function."]
    return [Section("Patterns", words, pictures, reading="patterns")] if pictures else []


def _draw_field(field: xr.DataArray, name: str) -> Axes:
    """A field along one dimension, or as a map of two with a colour bar."""
    axis = [field[dim].values for dim in field.dims]
    axis = [places.astype(float) if places.dtype.kind in "iuf" else np.arange(len(places)) for places in axis]
    labels = [with_unit(dim, field[dim].attrs) for dim in field.dims]
    if field.ndim == 1:
        return draw_series(axes_of(None, (4.0, 2.2)), axis[0], field.values, label=labels[0])
    y, x = axis
    aspect = float(np.clip(np.ptp(y) / (np.ptp(x) or 1.0), 0.4, 1.0))
    axes = plain(axes_of(None, (4.2, 4.2 * aspect + 0.4)))
    scale = Scale.symmetric(float(np.nanquantile(np.abs(field), 0.995)))
    if field.size and min(field.shape) > 1:
        level_lines(axes, x, y, np.ma.masked_invalid(field.values), scale=scale)
    axes.set(xlabel=labels[1], ylabel=labels[0])
    scale.bar(axes, name, shrink=0.85)
    return axes


def prediction(model: HermiteRegressor | InvariantRegressor, X: Any) -> list[Section]:
    """The fitted function of a regression, over rows of X, landmarks, or points of the manifold."""

    def predicted(points: Array) -> Array:
        values = np.asarray(model.predict(like_fit(model, points), progress=False), dtype=float)
        return values.reshape(*points.shape[:-1], -1)

    look: dict[str, Any] = {"names": column_names(model), "unit": preparation_of(model).scale, "box": X is None}
    try:
        points, over = _places(model, X)
        canvas = canvas_of(points, predicted, grid=GRID, shown=SHOWN, **look)
    except ValueError as error:
        return [Section("Prediction", [f"It is not drawn: {error}."])]
    count, pictures = canvas.values.shape[1], []
    for i in range(min(4, count)):
        low, high = np.quantile(canvas.values[:, i], [0.005, 0.995])
        scale = Scale.between(float(low), float(high))
        name = "prediction" if count == 1 else f"target {i}"
        axes = axes_of(None, canvas.size, canvas.projection)
        canvas.draw(axes, i, scale)
        if not isinstance(canvas, Line):
            scale.bar(axes, name, shrink=0.8)
        pictures.append(Picture(axes, f"The {name} over {over}: {canvas.what}."))
    return [Section("Prediction", [f"The fitted function over {over}: {canvas.what}."], pictures)]


def _places(model: HermiteRegressor | InvariantRegressor, X: Any) -> tuple[Array, str]:
    """Points to draw a prediction over, and what they are."""
    if X is not None:
        return sample(model, X, POINTS, 0), "rows of the data"
    if isinstance(model, InvariantRegressor):
        try:
            return np.asarray(model.manifold_.sample(2000, np.random.default_rng(0))), "points of the manifold"
        except NotImplementedError:
            raise ValueError(f"no points of {model.manifold_} are drawn here; give the points of the fit") from None
    known = landmarks_of(model)
    if known is None:
        raise ValueError("the model knows no places; give the points of the fit")
    return known, "the landmarks"


def embedding(model: Any, X: Any) -> list[Section]:
    """The rows in their first coordinates."""
    values = getattr(model, "embedding_", None)
    if not isinstance(values, np.ndarray):
        if X is None:
            hint = "It is not kept with the model; with the points (daskspectral report model points) it is drawn."
            return [Section("Embedding", [hint])]
        values = np.asarray(model.transform(X, progress=False))
    values = values[:: math.ceil(len(values) / POINTS)]
    count = values.shape[1]
    if count == 0:
        return []
    if count == 1:
        axes = plain(axes_of(None, (5.0, 2.4)))
        axes.hist(values[:, 0], bins=60, color=BLUE)
        axes.set(xlabel="coordinate 0", ylabel="rows")
        return [Section("Embedding", pictures=[Picture(axes, "A histogram of the one coordinate.", size="whole")])]
    third = values[:, 2] if count > 2 else None
    words = [f"{len(values)} rows in their first coordinates{', coloured by the third' if count > 2 else ''}."]
    first = plot.embedding(values, name="coordinate", color=third, label="coordinate 2")
    pictures = [Picture(first, "Rows in the coordinates 0 and 1.")]
    if count > 2:
        second = plot.embedding(values, components=(1, 2), name="coordinate")
        pictures.append(Picture(second, "Rows in the coordinates 1 and 2."))
    return [Section("Embedding", words, pictures)]
