"""Pictures of points: an embedding coloured by any variable, and the landmarks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskspectral.plot.canvas import SHOWN, fitting, on_sphere
from daskspectral.plot.common import column_names, landmarks_of, preparation_of
from daskspectral.plot.style import BLUE, CLOUD, FAINT, SERIES, Scale, axes_of, dots, globe, legend, plain

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
    values = np.asarray(coordinates)
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


def landmarks(estimator: Any, X: ArrayLike | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the landmarks of a fitted estimator, over points X (m, d) of the columns that are used where they are given.

    One column: their places on a line. Two: the plane. Three on the unit sphere: the Mollweide projection. More: the
    two columns in which they spread most. Raises ImportError without matplotlib, ValueError for a model without
    landmarks.
    """
    points = None if X is None else np.asarray(X, dtype=float)[:: max(1, math.ceil(len(np.asarray(X)) / SHOWN))]
    return draw_landmarks(estimator, points, ax=ax)


def draw_landmarks(estimator: Any, points: Array | None, *, right: bool = False, ax: Axes | None = None) -> Axes:
    """The landmarks, of the second view with `right`, over points (m, d) in the units of the data."""
    places, names = landmarks_of(estimator, right=right), column_names(estimator, right=right)
    if places is None:
        raise ValueError(
            f"{type(estimator).__name__} has no landmarks: its basis is {getattr(estimator, 'basis_', None)}"
        )
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
        scale = preparation_of(estimator, right=right).scale
        lengths = fitting(seen, np.ones(d) if scale is None else scale)
        axes.set_aspect(lengths[0] / lengths[1], "datalim")
    return plain(axes)
