"""How functions are drawn over a sample of rows, by the number of columns: lines, maps, spheres, pairs of columns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from daskspectral.plot.maps import GRID, level_lines, mollweide, projected, support
from daskspectral.plot.style import BLUE, FAINT, LINE, Scale, dots, globe, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
Values = Callable[[Array], Array]

SHOWN = 3000  # data points that are drawn; more of them only blacken the panels
ON_SPHERE = 1e-6
LONGEST = 4.0  # times as long as wide: a picture of the plane
_BINS = 16


def canvas_of(
    points: Array,
    values: Values,
    *,
    names: Sequence[str],
    unit: Array | None = None,
    grid: int = GRID,
    shown: int = SHOWN,
    box: bool = False,
) -> Canvas:
    """What draws functions over points (m, d), in the units of the data.

    `values` takes points (..., d) to (..., k); `unit` (d,) is the length in which distances along each column are
    measured. With `box` the points are no data, but places that fill a box.
    """
    d = points.shape[1]
    kind: type[Canvas] = Pairs
    if d == 1:
        kind = Line
    elif d == 2:
        kind = Plane
    elif d == 3 and np.abs(np.linalg.norm(points, axis=1) - 1).max() <= ON_SPHERE:
        kind = Globe
    lengths = np.ones(d) if unit is None else unit
    if d == 2:
        lengths = fitting(points, lengths)
    return kind(points, values, values(points), tuple(names), lengths, grid, shown, box)


def fitting(points: Array, unit: Array) -> Array:
    """The lengths (d,) in which points (m, d) fill a picture: `unit`, but none spans more than `LONGEST` of another.

    Columns in units of their own, degrees and metres say, are not drawn to scale: one of them would be a line.
    """
    low, high = np.quantile(points, [0.005, 0.995], axis=0)
    spans = (high - low) / unit
    least = spans.max() / LONGEST
    return np.asarray(unit * np.where((spans > 0) & (spans < least), spans / (least or 1.0), 1.0))


@dataclass(frozen=True, eq=False)
class Canvas(ABC):
    """Functions over a sample: points (m, d), and the values (m, k) there."""

    points: Array
    evaluate: Values
    values: Array
    names: tuple[str, ...]
    unit: Array
    grid: int
    shown: int
    box: bool

    projection: ClassVar[str | None] = None
    what: ClassVar[str]
    """How a function is drawn, in words."""

    @abstractmethod
    def draw(self, axes: Axes, i: int, scale: Scale, *, labels: bool = True) -> None:
        """Draw function i, with the names of the columns at the axes where there are to be `labels`."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of one picture, in inches."""
        return 4.0, 3.0

    def scale(self, components: Sequence[int] | None = None) -> Scale:
        """The bands of these functions of unit norm: 2 at least, so that a constant is not the extreme."""
        values = self.values if components is None else self.values[:, list(components)]
        return Scale.symmetric(max(2.0, float(np.quantile(np.abs(values), 0.995))))

    @property
    def faint(self) -> Array:
        """As many of the points as are drawn."""
        return self.points[:: math.ceil(len(self.points) / self.shown)]


class Line(Canvas):
    """One column: lines over a histogram of the data."""

    what = "its values against the column, over a histogram of the rows"

    def draw(self, axes: Axes, i: int, scale: Scale, *, labels: bool = True) -> None:
        x, values = self._lines
        largest = 1.1 * max(1.5, float(np.abs(values[:, i]).max()))
        if not self.box:
            counts, edges = np.histogram(self.points[:, 0], bins=60, range=(x[0], x[-1]))
            axes.stairs(
                0.7 * largest * counts / counts.max() - largest, edges, baseline=-largest, fill=True, color=FAINT
            )
        axes.axhline(0, color=LINE, linewidth=0.5)
        axes.plot(x, values[:, i], color=BLUE, linewidth=1.3)
        axes.set(xlim=(x[0], x[-1]), ylim=(-largest, largest))
        if labels:
            axes.set(xlabel=self.names[0])
            plain(axes)

    @property
    def _lines(self) -> tuple[Array, Array]:
        low, high = np.quantile(self.points, [0.001, 0.999])
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
        x = np.linspace(low, high, 600)
        return x, self.evaluate(x[:, None])


class Plane(Canvas):
    """Two columns: level lines where there are data."""

    what = "level lines where there are rows, and some of the rows as points"

    def draw(self, axes: Axes, i: int, scale: Scale, *, labels: bool = True) -> None:
        x, y, values, excess = self._maps
        level_lines(axes, x, y, values[..., i], scale=scale, excess=excess)
        if not self.box:
            axes.plot(*self.faint.T, ",", color="black", alpha=0.15, rasterized=True)
        axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        axes.set_aspect(self.unit[0] / self.unit[1])
        if labels:
            axes.set(xlabel=self.names[0], ylabel=self.names[1])
            plain(axes)
        else:
            axes.set(xticks=[], yticks=[])

    @property
    def aspect(self) -> float:
        """Height over width."""
        x, y = self._maps[:2]
        sides = np.array([x[-1] - x[0], y[-1] - y[0]]) / self.unit
        return float(np.clip(sides[1] / sides[0], 0.25, 4))

    @property
    def size(self) -> tuple[float, float]:
        width = 4.4 / max(1, self.aspect**0.5)
        return width, width * self.aspect + 0.4

    @property
    def _maps(self) -> tuple[Array, Array, Array, Array | None]:
        known = self.__dict__.get("_known")
        if known is None:
            known = self._box() if self.box else self._region()
            object.__setattr__(self, "_known", known)
        found: tuple[Array, Array, Array, Array | None] = known
        return found

    def _region(self) -> tuple[Array, Array, Array, Array | None]:
        radius, dense, excess_at = support(self.points / self.unit)
        low, high = dense.min(axis=0) - radius, dense.max(axis=0) + radius
        x, y = (np.arange(a, b, (high - low).max() / self.grid) for a, b in zip(low, high, strict=True))
        grid = np.stack(np.meshgrid(x, y), axis=-1)
        excess = gaussian_filter(excess_at(grid), 2 * self.grid / GRID, mode="nearest")
        return x * self.unit[0], y * self.unit[1], self.evaluate(grid * self.unit), excess

    def _box(self) -> tuple[Array, Array, Array, Array | None]:
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        x, y = (np.linspace(a, b, self.grid) for a, b in zip(low, high, strict=True))
        return x, y, self.evaluate(np.stack(np.meshgrid(x, y), axis=-1)), None


class Globe(Canvas):
    """Three columns on the unit sphere: level lines in the Mollweide projection, the third axis upward."""

    projection = "mollweide"
    what = "level lines in the Mollweide projection, the third column upward"

    def draw(self, axes: Axes, i: int, scale: Scale, *, labels: bool = True) -> None:
        x, y, values, excess = self._maps
        level_lines(axes, x, y, values[..., i], scale=scale, excess=excess, transform=projected(axes))
        globe(axes)

    @property
    def size(self) -> tuple[float, float]:
        return 4.4, 2.3

    @property
    def _maps(self) -> tuple[Array, Array, Array, Array | None]:
        known = self.__dict__.get("_known")
        if known is None:
            points, x, y = mollweide(self.grid)
            excess = None if self.box else support(self.points)[2](points)
            known = x, y, self.evaluate(points), excess
            object.__setattr__(self, "_known", known)
        found: tuple[Array, Array, Array, Array | None] = known
        return found


class Pairs(Canvas):
    """More columns: the sample in the two columns that tell most of the function, coloured by its values."""

    what = "the rows in the two columns that tell most of it, coloured by its values"

    def scale(self, components: Sequence[int] | None = None) -> Scale:
        # most values of a function of unit norm are below 1, and points of the pale bands would be lost
        values = self.values if components is None else self.values[:, list(components)]
        return Scale.symmetric(max(1.0, float(np.quantile(np.abs(values), 0.95))))

    def draw(self, axes: Axes, i: int, scale: Scale, *, labels: bool = True) -> None:
        step = math.ceil(len(self.points) / self.shown)
        points, values = self.points[::step], self.values[::step, i]
        first, second = telling(self.points, self.values[:, i])
        order = np.argsort(np.abs(values))  # large values on top
        dots(axes, points[order, first], points[order, second], scale.of(values[order]), size=7.0, rasterized=True)
        if labels:
            axes.set(xlabel=self.names[first], ylabel=self.names[second])
            plain(axes)


def telling(points: Array, values: Array) -> tuple[int, int]:
    """The two columns of points (m, d) that tell most of values (m,), by the variance of their means in bins."""
    places = np.argsort(np.argsort(points, axis=0), axis=0) * _BINS // len(points)
    centred = values - values.mean()
    shares = []
    for column in places.T:
        sums, counts = np.bincount(column, centred, _BINS), np.bincount(column, minlength=_BINS)
        shares.append(float((sums**2 / np.maximum(counts, 1)).sum()))
    first, second = np.argsort(-np.asarray(shares), kind="stable")[:2]
    return int(min(first, second)), int(max(first, second))
