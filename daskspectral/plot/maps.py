"""Maps of functions: level lines in the plane, and on the sphere in the Mollweide projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from daskspectral.plot.style import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]

GRID = 240  # grid points along the longer side
_NEIGHBOURS = 10


def level_lines(
    axes: Axes,
    x: Array,
    y: Array,
    values: Array,
    *,
    largest: float | None = None,
    excess: Array | None = None,
    scale: Scale | None = None,
    transform: Any = None,
) -> Axes:
    """Filled level lines of values (len(y), len(x)), in colours symmetric about 0 up to `largest`.

    x and y may be 2-d too; `excess`, of the shape of the values, is above 1 where nothing shall be drawn. A `scale` has
    its own bands in place of the symmetric ones, and x and y are the data of the axes or of matplotlib's `transform`.
    """
    found = scale or Scale.symmetric(float(np.nanmax(np.abs(values))) if largest is None else largest)
    levels = found.edges
    place: dict[str, Any] = {} if transform is None else {"transform": transform}
    drawn = [axes.contourf(x, y, values, levels=levels, colors=found.colours, extend="both", **place)]
    if np.any((levels > np.nanmin(values)) & (levels < np.nanmax(values))):
        look: dict[str, Any] = {"colors": "#262626", "linewidths": 0.35, "linestyles": "solid"}
        drawn += [axes.contour(x, y, values, levels=levels, **look, **place)]
    if excess is not None and excess.max() > 1:
        region = axes.contourf(x, y, excess, levels=[-1.0, 1.0], **place)
        region.remove()
        for contours in drawn:
            contours.set_clip_path(region.get_paths()[0], axes.transData if transform is None else transform)
    return axes


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
