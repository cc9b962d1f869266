"""The functions of a report: eigenfunctions, patterns in the dimensions of a field, predictions, embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskspectral import plot
from daskspectral.data.labelled import stack_rows
from daskspectral.engine.sampling import take_rows
from daskspectral.estimators import (
    HermiteRegressor,
    InvariantRegressor,
    SpectralDecomposition,
)
from daskspectral.estimators.model_dataset import in_the_field
from daskspectral.plot.canvas import Line, Pairs, Plane, canvas_of
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
)
from daskspectral.plot.decay import implied
from daskspectral.plot.functions import canvas_over, draw_series, evaluate, sample, source_of
from daskspectral.plot.maps import level_lines
from daskspectral.plot.style import BLUE, LINE, Scale, axes_of, plain
from daskspectral.report.page import Picture, Section

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
    found, x, label = evaluate(model, points), numbers.astype(float), "row"
    labels = _row_labels(model, first)
    if labels is not None:
        label, places = labels
        x = places[numbers.astype(int)]
    pictures = []
    for i in np.flatnonzero(~still(found))[:8].tolist():
        axes = draw_series(axes_of(None, (4.2, 1.6)), x, found[:, i], label=label)
        pictures.append(Picture(axes, f"{_named(model, i)} along {label}.", _named(model, i)))
    if not pictures:
        return []
    part = f"the first {window} rows" if window < source.n else f"all {source.n} rows"
    of = f" of the first of {len(trajectories)} trajectories" if len(trajectories) > 1 else ""
    words = [f"The first {len(pictures)} that are not constant, along {part}{of}."]
    return [Section(_title(model), words, pictures, reading="series")]


def _telling_rows(values: Any, lag: int) -> int:
    """Rows in which a trajectory jumps, or turns, about twenty times."""
    slowest = implied(values, lag)
    rows = 20 * slowest[0] if len(slowest) else SERIES
    turns = np.abs(np.angle(values))
    if np.iscomplexobj(values) and turns.max(initial=0.0) > 1e-6:
        rows = 20 * 2 * np.pi * lag / turns[turns > 1e-6].min()
    return int(np.clip(rows, 400, 100_000))


def _row_labels(model: SpectralDecomposition, X: Any) -> tuple[str, Any] | None:
    """The name and the values of the rows' one dimension, where the data have numbers or times for it."""
    laid = stack_rows(X, sample_dims=model.sample_dims, layout=vars(model).get("layout_"))
    if laid is None or len(laid.rows.dims) != 1 or laid.rows.dims[0] not in laid.rows.coords:
        return None
    values = np.asarray(laid.rows.coords[laid.rows.dims[0]])
    return (str(laid.rows.dims[0]), values) if values.dtype.kind in "iufM" else None


def patterns(model: Any) -> list[Section]:
    """The regression of the columns on the functions, as maps in the dimensions of a field."""
    if not isinstance(model, SpectralDecomposition) or not _is_field(model):
        return []
    try:
        found = model.patterns_
    except ValueError:
        return []
    count = min(6, len(found.single))
    fields = in_the_field(model, found.single[:count], ("component",))
    pictures = []
    for name, field in fields.items():
        behind = [dim for dim in field.dims if dim != "component"]
        if len(behind) not in (1, 2):
            continue
        unit = str(field.attrs.get("units", ""))
        for i in range(count):
            largest = float(np.nanquantile(np.abs(field.values[i]), 0.995)) or 1.0
            axes = _draw_field(field.isel(component=i), behind, largest)
            if len(behind) == 2:
                Scale.symmetric(largest).bar(axes, f"{name} ({unit})" if unit else str(name), shrink=0.85)
            share = f"{100 * found.explained[i]:.3g} % of the variance"
            pictures.append(Picture(axes, f"The pattern of function {i} in {name}.", f"function {i}: {share}"))
    if not pictures:
        return []
    return [Section("Patterns", ["The regression of the field on each function."], pictures, reading="patterns")]


def _draw_field(field: xr.DataArray, dims: list[Any], largest: float) -> Any:
    def axis(dim: Any) -> tuple[Any, str]:
        values = field.coords[dim].values if dim in field.coords else np.arange(field.sizes[dim])
        if values.dtype.kind not in "iuf":
            values = np.arange(len(values))
        unit = field.coords[dim].attrs.get("units", "") if dim in field.coords else ""
        return values.astype(float), f"{dim} ({unit})" if unit else str(dim)

    if len(dims) == 1:
        axes = plain(axes_of(None, (4.0, 2.2)))
        x, name = axis(dims[0])
        axes.axhline(0, color=LINE, linewidth=0.5)
        axes.plot(x, field.values, color=BLUE, linewidth=1.2)
        axes.set(xlabel=name)
        return axes
    (y, vertical), (x, across) = axis(dims[0]), axis(dims[1])
    aspect = float(np.clip(abs(np.ptp(y) / (np.ptp(x) or 1.0)), 0.4, 1.0))
    axes = plain(axes_of(None, (4.2, 4.2 * aspect + 0.4)))
    values = np.ma.masked_invalid(field.transpose(*dims).values)
    if len(x) > 1 and len(y) > 1:
        level_lines(axes, x, y, values, largest=largest)
    axes.set(xlabel=across, ylabel=vertical)
    return axes


def prediction(model: HermiteRegressor | InvariantRegressor, X: Any) -> list[Section]:
    """The fitted function of a regression, over rows of X, landmarks, or points of the manifold."""

    def predicted(points: Array) -> Array:
        values = np.asarray(model.predict(like_fit(model, points), progress=False), dtype=float)
        return values.reshape(*points.shape[:-1], -1)

    try:
        points = _places(model, X)
        unit = preparation_of(model).scale
        names = column_names(model)
        canvas = canvas_of(points, predicted, names=names, unit=unit, grid=GRID, shown=SHOWN, box=X is None)
    except ValueError as error:
        return [Section("Prediction", [f"It is not drawn: {error}."])]
    count = min(4, canvas.values.shape[1])
    over = (
        "rows of the data"
        if X is not None
        else "points of the manifold"
        if isinstance(model, InvariantRegressor)
        else "the landmarks"
    )
    pictures = []
    for i in range(count):
        low, high = np.quantile(canvas.values[:, i], [0.005, 0.995])
        scale = Scale.between(float(low), float(high))
        name = "prediction" if canvas.values.shape[1] == 1 else f"target {i}"
        axes = axes_of(None, canvas.size, canvas.projection)
        canvas.draw(axes, i, scale)
        if not isinstance(canvas, Line):
            scale.bar(axes, name, shrink=0.8)
        pictures.append(Picture(axes, f"The {name} over {over}: {canvas.what}."))
    return [Section("Prediction", [f"The fitted function over {over}: {canvas.what}."], pictures)]


def _places(model: Any, X: Any) -> Array:
    if X is not None:
        return sample(model, X, POINTS, 0)
    known = landmarks_of(model)
    if known is not None:
        return known
    manifold = getattr(model, "manifold_", None)
    if manifold is None:
        raise ValueError("the model knows no places; give the points of the fit")
    try:
        return np.asarray(manifold.sample(2000, np.random.default_rng(0)))
    except NotImplementedError:
        raise ValueError(f"no points of {manifold} are drawn here; give the points of the fit") from None


def embedding(model: Any, X: Any) -> list[Section]:
    """The rows in their first coordinates."""
    values = getattr(model, "embedding_", None)
    if not isinstance(values, np.ndarray) or values.ndim != 2:
        if X is None:
            return [
                Section(
                    "Embedding",
                    ["It is not kept with the model; with the points (daskspectral report model points) it is drawn."],
                )
            ]
        values = np.asarray(model.transform(X, progress=False))
    count = values.shape[1]
    step = math.ceil(len(values) / POINTS)
    values = values[::step]
    if count == 0:
        return []
    if count == 1:
        axes = plain(axes_of(None, (5.0, 2.4)))
        axes.hist(values[:, 0], bins=60, color=BLUE)
        axes.set(xlabel="coordinate 0", ylabel="rows")
        return [Section("Embedding", [], [Picture(axes, "A histogram of the one coordinate.", size="whole")])]
    pairs = [(i, i + 1) for i in range(0, min(count - 1, 4))]
    pictures = []
    for pair in pairs[:2]:
        color = values[:, 2] if count > 2 and pair == (0, 1) else None
        axes = plot.embedding(values, components=pair, name="coordinate", color=color, label="coordinate 2")
        pictures.append(Picture(axes, f"Rows in the coordinates {pair[0]} and {pair[1]}."))
    words = [f"{len(values)} rows in their first coordinates" + (", coloured by the third." if count > 2 else ".")]
    return [Section("Embedding", words, pictures)]
