"""Pictures of points: an embedding coloured by any variable, and the landmarks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.plot.canvas import ON_SPHERE, SHOWN, fitting
from daskspectral.plot.common import column_names, landmarks_of, preparation_of, require_matplotlib
from daskspectral.plot.style import BLUE, CLOUD, FAINT, LINE, SERIES, Scale, axes_of, dots, globe, legend, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
CLASSES = 6  # distinct labels that have a colour each


def embedding(
    coordinates: ArrayLike,
    *,
    color: ArrayLike | None = None,
    label: str = "",
    components: tuple[int, int] = (0, 1),
    name: str = "component",
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows in two of their coordinates (n, k), such as those of `transform`, coloured by any variable.

    `color` (n,) are numbers, which get a colour bar with the `label`, or labels of up to six classes, which get a
    legend; more numbers than that many whole ones are a scale. `components` are the two columns of the coordinates.
    Of more than `max_points` rows every so manieth is drawn. Raises ImportError without matplotlib, ValueError where
    shapes do not go together.
    """
    require_matplotlib()
    values = np.asarray(coordinates)
    if values.ndim != 2 or not all(0 <= c < values.shape[1] for c in components):
        raise ValueError(f"coordinates are (n, k) with the columns {components}; their shape is {values.shape}")
    variable = None if color is None else np.asarray(color)
    if variable is not None and variable.shape != (len(values),):
        raise ValueError(f"color has a value for each of the {len(values)} rows; its shape is {variable.shape}")
    axes = plain(axes_of(ax, (4.6, 3.6)))
    some = slice(None, None, max(1, math.ceil(len(values) / max_points)))
    x, y = (values[some, c].real for c in components)
    if variable is None:
        dots(axes, x, y, BLUE, rasterized=True)
    else:
        variable = variable[some]
        classes = np.unique(variable)
        if variable.dtype.kind in "OUSb" or (variable.dtype.kind in "iu" and len(classes) <= CLASSES):
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


def landmarks(estimator: Any, X: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the landmarks of a fitted estimator, over points X (m, d) of the columns that are used where they are given.

    One column: their places on a line. Two: the plane. Three on the unit sphere: the Mollweide projection. More: the
    two columns in which they spread most. Raises ImportError without matplotlib, ValueError for a model without
    landmarks.
    """
    require_matplotlib()
    places = landmarks_of(estimator)
    if places is None:
        raise ValueError(
            f"{type(estimator).__name__} has no landmarks: its basis is {getattr(estimator, 'basis_', None)}"
        )
    points = None if X is None else np.asarray(X, dtype=float)[:: max(1, math.ceil(len(np.asarray(X)) / SHOWN))]
    return draw_landmarks(places, points, column_names(estimator), preparation_of(estimator).scale, ax)


def draw_landmarks(
    places: Array, points: Array | None, names: list[str], unit: Array | None = None, ax: Axes | None = None
) -> Axes:
    """Landmarks (p, d) over points (m, d), in columns of which distances are measured in `unit` (d,)."""
    seen = places if points is None else points
    d = places.shape[1]
    if d == 3 and np.abs(np.linalg.norm(seen, axis=1) - 1).max() <= ON_SPHERE:
        axes = axes_of(ax, (4.8, 2.6), "mollweide")
        for some, colour, size in ((points, CLOUD, 2.0), (places, BLUE, 9.0)):
            if some is not None:
                unit = some / np.linalg.norm(some, axis=1, keepdims=True)
                at = np.arctan2(unit[:, 1], unit[:, 0]), np.arcsin(np.clip(unit[:, 2], -1, 1))
                name = "landmarks" if some is places else "rows"
                dots(axes, *at, colour, size=size, label=name, rasterized=True)
        _named(axes)
        return globe(axes)
    if d == 1:
        axes = plain(axes_of(ax, (5.0, 1.8)))
        if points is not None:
            axes.hist(points[:, 0], bins=60, color=FAINT)
        axes.vlines(places[:, 0], 0, 1, color=BLUE, linewidth=0.7, transform=axes.get_xaxis_transform())
        axes.set(xlabel=names[0], yticks=[])
        axes.spines["left"].set_color(LINE)
        return axes
    first, second = sorted(np.argsort(-places.std(axis=0), kind="stable")[:2])
    axes = plain(axes_of(ax, (4.4, 3.6)))
    if points is not None:
        dots(axes, points[:, first], points[:, second], CLOUD, size=2, label="rows", rasterized=True)
    dots(axes, places[:, first], places[:, second], BLUE, size=9, label="landmarks", rasterized=True)
    axes.set(xlabel=names[first], ylabel=names[second])
    if d == 2:
        lengths = fitting(seen, np.ones(d) if unit is None else unit)
        axes.set_aspect(lengths[0] / lengths[1], "datalim")
    _named(axes)
    return axes


def _named(axes: Axes) -> None:
    """A legend of rows and landmarks above the axes."""
    legend(axes, markerscale=1.5, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderpad=0.2)
