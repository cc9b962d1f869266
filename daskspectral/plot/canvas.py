"""Drawing of functions over rows: a line for one column, else the rows in two columns, colored by the values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import ExtrapolationWarning
from daskspectral.plot.common import BLUE, FAINT, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
Values = Callable[[Array], Array]

ON_SPHERE = 1e-6
_BINS = 16


@dataclass(frozen=True, eq=False)
class Canvas:
    """Functions over a sample: points (m, d), and a function of points (..., d) that returns values (..., k)."""

    points: Array
    evaluate: Values
    names: Sequence[str]

    @cached_property
    def values(self) -> Array:
        return self.evaluate(self.points)

    @property
    def description(self) -> str:
        if self.points.shape[1] == 1:
            return "its values against the column, over a histogram of the rows"
        return "the rows in the two most informative columns, colored by its values"

    @cached_property
    def places(self) -> tuple[Array, Sequence[str]]:
        """Coordinates (m, c) and their names: columns, or degrees for points of the unit sphere in R^3."""
        x = self.points
        if x.shape[1] != 3 or np.abs(np.linalg.norm(x, axis=1) - 1).max() > ON_SPHERE:
            return x, self.names
        degrees = np.rad2deg([np.arctan2(x[:, 1], x[:, 0]), np.arcsin(np.clip(x[:, 2], -1, 1))])
        return degrees.T, ("longitude", "latitude")

    @property
    def shape(self) -> float | None:
        """Height over width of a picture to scale; None unless there are two columns of similar lengths."""
        spans = np.ptp(np.quantile(self.places[0], [0.005, 0.995], axis=0), axis=0)
        to_scale = len(spans) == 2 and 0 < spans.max() <= 4 * spans.min()
        return float(spans[1] / spans[0]) if to_scale else None

    def largest(self, components: Sequence[int]) -> float:
        """Return the limit of colors for these functions, at least 1, so that a constant is not extreme."""
        return max(1.0, float(np.quantile(np.abs(self.values[:, list(components)]), 0.95)))

    def draw(self, axes: Axes, i: int, low: float, high: float, cmap: str = "coolwarm") -> Any:
        """Draw function i with these color limits; return the artist for a color bar, None for a line."""
        if self.points.shape[1] == 1:
            self._draw_line(axes, i)
            return None
        (places, names), values = self.places, self.values[:, i]
        first, second = informative_columns(places, values)
        order = np.argsort(np.abs(values - (low + high) / 2))  # values far from the middle on top
        x, y = places[order, first], places[order, second]
        axes.set(xlabel=names[first], ylabel=names[second])
        if self.shape is not None:
            axes.set_aspect("equal")
        look: dict[str, Any] = {"s": 4, "linewidths": 0, "rasterized": True}
        return axes.scatter(x, y, c=values[order], cmap=cmap, vmin=low, vmax=high, **look)

    def _draw_line(self, axes: Axes, i: int) -> None:
        low, high = np.quantile(self.points, [0.001, 0.999])
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        x = np.linspace(low, high, 600)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)  # of places between the rows
            values = self.evaluate(x[:, None])[:, i]
        top = 1.1 * max(1.5, float(np.abs(values).max()))
        counts, edges = np.histogram(self.points[:, 0], bins=60, range=(low, high))
        axes.stairs(0.7 * top * counts / counts.max() - top, edges, baseline=-top, fill=True, color=FAINT)
        axes.axhline(0, color=MUTED, linewidth=0.5)
        axes.plot(x, values, color=BLUE)
        axes.set(xlim=(low, high), ylim=(-top, top), xlabel=self.names[0])


def informative_columns(points: Array, values: Array) -> tuple[int, int]:
    """Return the two columns of points (m, d) whose bins have means of values (m,), or (m, k), that vary most."""
    places = np.argsort(np.argsort(points, axis=0), axis=0) * _BINS // len(points)
    centered = (values - values.mean(axis=0)).reshape(len(points), -1)
    shares = []
    for column in places.T:
        counts = np.maximum(np.bincount(column, minlength=_BINS), 1)
        sums = (np.bincount(column, each, _BINS) for each in centered.T)
        shares.append(sum(float((each**2 / counts).sum()) for each in sums))
    first, second = np.argsort(-np.asarray(shares), kind="stable")[:2]
    return int(min(first, second)), int(max(first, second))


def level_lines(axes: Axes, x: Array, y: Array, values: Array, *, largest: float | None = None) -> Any:
    """Draw filled level lines in colors symmetric about 0; NaN is blank.

    Parameters
    ----------
    axes : Axes
        Axes to draw into.
    x, y : ndarray
        Coordinates, of shape (n_x,) and (n_y,), or both (n_y, n_x).
    values : ndarray of shape (n_y, n_x)
        Values.
    largest : float, optional
        Limit of the colors; by default the largest absolute value.

    Returns
    -------
    QuadContourSet
        The filled contours, for a color bar.

    See Also
    --------
    mollweide : Points for a map of the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> figure, (axes,) = dsp.plot.panels(["x y"])
    >>> x = np.linspace(-1, 1, 20)
    >>> filled = dsp.plot.level_lines(axes, x, x, np.outer(x, x))
    """
    levels = np.linspace(-1.02, 1.02, 10) * ((np.nanmax(np.abs(values)) if largest is None else largest) or 1.0)
    filled = axes.contourf(x, y, values, levels=levels, cmap="RdBu_r", extend="both")
    if np.any((levels > np.nanmin(values)) & (levels < np.nanmax(values))):
        axes.contour(x, y, values, levels=levels, colors="0.15", linewidths=0.35, linestyles="solid")
    return filled


def mollweide(size: int = 240) -> tuple[Array, Array, Array]:
    """Return points of the unit sphere and their coordinates in the Mollweide projection.

    Parameters
    ----------
    size : int, default=240
        Number of columns c; there are r = c / 2 rows.

    Returns
    -------
    tuple of ndarray
        Points of shape (r, c, 3), and coordinates x and y of shape (r, c).

    See Also
    --------
    level_lines : Draw values at the points.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> points, x, y = dsp.plot.mollweide(8)
    >>> points.shape, x.shape
    ((4, 8, 3), (4, 8))
    """
    longitude, angle = np.meshgrid(np.linspace(-np.pi, np.pi, size), np.linspace(-np.pi / 2, np.pi / 2, size // 2))
    height = np.clip((2 * angle + np.sin(2 * angle)) / np.pi, -1, 1)  # the sine of the latitude
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=-1)
    return points, 2 / np.pi * longitude * np.cos(angle), np.sin(angle)
