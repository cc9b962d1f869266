"""How functions are drawn over a sample of rows, by the number of columns: lines, maps, spheres, pairs of columns."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree

from daskspectral.errors import ExtrapolationWarning
from daskspectral.plot.common import BLUE, FAINT, MUTED, Scale, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
Values = Callable[[Array], Array]

GRID = 240  # grid points along the longer side
SHOWN = 3000  # data points that are drawn; more of them only blacken the panels
ON_SPHERE = 1e-6
LONGEST = 4.0  # times as long as wide: a picture of the plane
_NEIGHBOURS, _BINS = 10, 16


def canvas_of(points: Array, values: Values, *, names: Sequence[str], unit: Array | None = None, **look: Any) -> Canvas:
    """Return what draws functions over points (m, d), in the units of the data.

    `values` maps points (..., d) to (..., k); `unit` (d,) is the length in which distances along each column are
    measured. The `look` are the other fields of a `Canvas`.
    """
    d = points.shape[1]
    kind = Globe if on_sphere(points) else Line if d == 1 else Plane if d == 2 else Pairs
    lengths = np.ones(d) if unit is None else unit
    return kind(points, _between(values), values(points), tuple(names), lengths, **look)


def _between(values: Values) -> Values:
    """Return the values without warnings of places far from the data, which a grid between the points has."""

    def found(places: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return values(places)

    return found


def on_sphere(points: Array) -> bool:
    """Return whether points (m, d) lie on the unit sphere of three dimensions."""
    return points.shape[1] == 3 and bool(np.abs(np.linalg.norm(points, axis=1) - 1).max() <= ON_SPHERE)


def to_scale(points: Array, unit: Array) -> Array:
    """Return the lengths (2,) in which a picture of the plane is to scale: `unit`, or the ranges of points (m, 2).

    The latter if one range is more than four times the other: columns in degrees and meters would be a line.
    """
    spans = np.ptp(np.quantile(points, [0.005, 0.995], axis=0), axis=0)
    ratio = spans / unit
    return np.asarray(unit if ratio.max() <= LONGEST * ratio.min() or not spans.all() else spans)


@dataclass(frozen=True, eq=False)
class Canvas(ABC):
    """Functions over a sample: points (m, d), and the values (m, k) there."""

    points: Array
    evaluate: Values
    values: Array
    names: tuple[str, ...]
    unit: Array
    grid: int = GRID
    shown: int = SHOWN

    what: ClassVar[str]
    """How a function is drawn, in words."""
    projection: ClassVar[str | None] = None
    least: ClassVar[float] = 2.0
    """Up to which values bands reach at least, so that a constant of unit norm is not the extreme."""
    share: ClassVar[float] = 0.995
    """Of the values within the bands that have an end."""

    @abstractmethod
    def draw(self, axes: Axes, i: int, scale: Scale) -> Any:
        """Draw function i with the names of the columns; return what a color bar describes, or None."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of one picture without labels, in inches."""
        return 4.2, 2.8

    @final
    def picture(self, i: int, scale: Scale, ax: Axes | None = None, *, size: float = 1.0) -> tuple[Axes, Any]:
        """Draw function i into the given axes, or into a figure of this share of the size; return them and `draw`'s."""
        width, height = self.size
        axes = axes_of(ax, (size * width, size * (height + 0.4)), self.projection)
        return axes, self.draw(axes, i, scale)

    def scale(self, components: Sequence[int]) -> Scale:
        """The bands of these functions."""
        largest = float(np.quantile(np.abs(self.values[:, list(components)]), self.share))
        return Scale.symmetric(max(self.least, largest))

    @property
    def some(self) -> slice:
        """As many of the points as are drawn."""
        return slice(None, None, math.ceil(len(self.points) / self.shown))


class Line(Canvas):
    """One column: lines over a histogram of the data."""

    what = "its values against the column, over a histogram of the rows"

    def draw(self, axes: Axes, i: int, scale: Scale) -> Any:
        low, high = np.quantile(self.points, [0.001, 0.999])
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        x = np.linspace(low, high, 600)
        values = self.evaluate(x[:, None])[:, i]
        top = 1.1 * max(1.5, float(np.abs(values).max()))
        counts, edges = np.histogram(self.points[:, 0], bins=60, range=(low, high))
        axes.stairs(0.7 * top * counts / counts.max() - top, edges, baseline=-top, fill=True, color=FAINT)
        axes.axhline(0, color=MUTED, linewidth=0.5)
        axes.plot(x, values, color=BLUE)
        axes.set(xlim=(low, high), ylim=(-top, top), xlabel=self.names[0])


class Plane(Canvas):
    """Two columns: level lines where there are data."""

    what = "level lines where there are rows, and some of the rows as points"

    def draw(self, axes: Axes, i: int, scale: Scale) -> Any:
        x, y, values, excess = self._maps
        drawn = filled_lines(axes, x, y, values[..., i], scale, excess=excess)
        axes.plot(*self.points[self.some].T, ",", color="black", alpha=0.15, rasterized=True)
        axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=self.names[0], ylabel=self.names[1])
        axes.set_aspect(self._lengths[0] / self._lengths[1])
        return drawn

    @property
    def size(self) -> tuple[float, float]:
        x, y = self._maps[:2]
        aspect = float(np.clip(np.ptp(y) / self._lengths[1] / (np.ptp(x) / self._lengths[0]), 0.25, 4))
        width = 4.4 / max(1, aspect**0.5)
        return width, width * aspect

    @cached_property
    def _lengths(self) -> Array:
        return to_scale(self.points, self.unit)

    @cached_property
    def _maps(self) -> tuple[Array, Array, Array, Array | None]:
        radius, dense, excess_at = support(self.points / self._lengths)
        low, high = dense.min(axis=0) - radius, dense.max(axis=0) + radius
        x, y = (np.arange(a, b, (high - low).max() / self.grid) for a, b in zip(low, high, strict=True))
        grid = np.stack(np.meshgrid(x, y), axis=-1)
        excess = gaussian_filter(excess_at(grid), 2 * self.grid / GRID, mode="nearest")
        return x * self._lengths[0], y * self._lengths[1], self.evaluate(grid * self._lengths), excess


class Globe(Canvas):
    """Three columns on the unit sphere: level lines in the Mollweide projection, the third axis upward."""

    projection = "mollweide"
    what = "level lines in the Mollweide projection, the third column upward"

    def draw(self, axes: Axes, i: int, scale: Scale) -> Any:
        x, y, values, excess = self._maps
        return globe(axes, filled_lines(axes, x, y, values[..., i], scale, excess=excess, transform=projected(axes)))

    @property
    def size(self) -> tuple[float, float]:
        return 4.4, 2.2

    @cached_property
    def _maps(self) -> tuple[Array, Array, Array, Array | None]:
        points, x, y = mollweide(self.grid)
        return x, y, self.evaluate(points), support(self.points)[2](points)


class Pairs(Canvas):
    """More columns: the sample in the two columns that tell most of the function, coloured by its values."""

    what = "the rows in the two columns that tell most of it, coloured by its values"
    # most values of a function of unit norm are below 1, and points of the pale bands would be lost
    least, share = 1.0, 0.95

    def draw(self, axes: Axes, i: int, scale: Scale) -> Any:
        points, values = self.points[self.some], self.values[self.some, i]
        first, second = telling(self.points, self.values[:, i])
        order = np.argsort(np.abs(values))  # large values on top
        axes.set(xlabel=self.names[first], ylabel=self.names[second])
        x, y = points[order, first], points[order, second]
        return axes.scatter(x, y, s=7, c=values[order], linewidths=0, rasterized=True, **scale.colors)


def telling(points: Array, values: Array) -> tuple[int, int]:
    """Return the two columns of points (m, d) whose bins have means of values (m,) of the largest variance."""
    places = np.argsort(np.argsort(points, axis=0), axis=0) * _BINS // len(points)
    centered = values - values.mean()
    shares = []
    for column in places.T:
        sums, counts = np.bincount(column, centered, _BINS), np.bincount(column, minlength=_BINS)
        shares.append(float((sums**2 / np.maximum(counts, 1)).sum()))
    first, second = np.argsort(-np.asarray(shares), kind="stable")[:2]
    return int(min(first, second)), int(max(first, second))


def level_lines(
    axes: Axes,
    x: Array,
    y: Array,
    values: Array,
    *,
    largest: float | None = None,
    excess: Array | None = None,
    transform: Any = None,
) -> Axes:
    """Draw filled level lines of values (len(y), len(x)), in colors symmetric about 0 up to `largest`.

    x and y may be 2-d too; `excess`, of the shape of the values, is above 1 where nothing shall be drawn. x and y are
    in the data coordinates of the axes or of matplotlib's `transform`.
    """
    scale = Scale.symmetric(float(np.nanmax(np.abs(values))) if largest is None else largest)
    filled_lines(axes, x, y, values, scale, excess=excess, transform=transform)
    return axes


def filled_lines(
    axes: Axes, x: Array, y: Array, values: Array, scale: Scale, *, excess: Array | None = None, transform: Any = None
) -> Any:
    """Draw level lines as `level_lines` does, in the bands of the scale; return matplotlib's contours."""
    place: dict[str, Any] = {} if transform is None else {"transform": transform}
    drawn = [axes.contourf(x, y, values, levels=scale.levels, extend="both", **scale.colors, **place)]
    if np.any((scale.levels > np.nanmin(values)) & (scale.levels < np.nanmax(values))):
        look: dict[str, Any] = {"colors": "0.15", "linewidths": 0.35, "linestyles": "solid"}
        drawn += [axes.contour(x, y, values, levels=scale.levels, **look, **place)]
    if excess is not None and excess.max() > 1:
        region = axes.contourf(x, y, excess, levels=[-1.0, 1.0], **place)
        region.remove()
        for contours in drawn:
            contours.set_clip_path(region.get_paths()[0], axes.transData if transform is None else transform)
    return drawn[0]


def globe(axes: Axes, drawn: Any = None) -> Any:
    """Show faint meridians and parallels without degrees; return `drawn`."""
    axes.grid(True, linewidth=0.3, alpha=0.5)
    axes.tick_params(labelbottom=False, labelleft=False)
    return drawn


def mollweide(size: int = GRID) -> tuple[Array, Array, Array]:
    """Return points (r, c, 3) of the unit sphere with their coordinates x and y (r, c) in the projection."""
    longitude, angle = np.meshgrid(np.linspace(-np.pi, np.pi, size), np.linspace(-np.pi / 2, np.pi / 2, size // 2))
    height = np.clip((2 * angle + np.sin(2 * angle)) / np.pi, -1, 1)  # the sine of the latitude
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=-1)
    return points, 2 / np.pi * longitude * np.cos(angle), np.sin(angle)


def projected(axes: Any) -> Any:
    """The transform from x and y of `mollweide` to matplotlib's Mollweide axes.

    Level lines in longitude and latitude would be cut into many pieces each, which makes a drawing a hundred times as
    large.
    """
    from matplotlib.transforms import Affine2D

    return Affine2D().scale(np.sqrt(2.0)) + axes.transAffine + axes.transAxes


def support(points: Array) -> tuple[float, Array, Callable[[Array], Array]]:
    """Where a sample (m, d) is dense: a radius, the rows whose tenth neighbour is within it, and a function of points.

    The function takes points (..., d) to the distance of their tenth nearest row over the radius, 2 at most. Within
    the radius are 97.5 % of the sample, and all of it where the density is even.
    """
    tree, neighbours = KDTree(points), min(_NEIGHBOURS, len(points) - 1)
    own = np.asarray(tree.query(points, [neighbours + 1])[0])[:, 0]  # the first neighbour is the point itself
    floor = 0.01 * float(np.linalg.norm(np.ptp(points, axis=0)))
    radius = max(float(np.quantile(own, 0.975)), 2 * float(np.median(own)), floor) or 1.0

    def excess(at: Array) -> Array:
        # the bound keeps points far from all data cheap
        distance = tree.query(at, [max(1, neighbours)], distance_upper_bound=2 * radius)[0]
        return np.minimum(np.asarray(distance)[..., 0] / radius, 2.0)

    return radius, points[own <= radius], excess
