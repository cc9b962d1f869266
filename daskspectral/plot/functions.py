"""Pictures of eigenfunctions over the data, by the number of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree

from daskspectral.data.labelled import lay_out
from daskspectral.data.remote import stored
from daskspectral.data.source import open_source
from daskspectral.engine.sampling import draw_rows
from daskspectral.plot.common import (
    Estimator,
    check_fitted,
    is_singular,
    preparation_of,
    require_matplotlib,
    values_of,
    vanishing,
)
from daskspectral.plot.files import Location, refuse_picture, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.floating[Any]]

_COLOURS = "RdBu_r"
_BANDS = 9  # odd: the middle band holds 0, so that a function shows no noise where it vanishes
_GRID = 240  # grid points along the longer side
_NEIGHBOURS = 10
_SHOWN = 3000  # data points that are drawn; more of them only blacken the panels


def eigenfunctions(
    estimator: Estimator, X: Any, *, count: int = 16, max_points: int = 20_000, random_state: Any = 0
) -> Figure:
    """Draw the first `count` eigenfunctions of a fitted estimator over a sample of the rows of X.

    Where the operator has singular values, they are its left singular functions; of complex ones the real part is
    drawn.

    One column: lines over a histogram of the data. Two: level lines where there are data. Three on the unit sphere
    (|x| = 1 to 1e-6 in the sample): level lines in the Mollweide projection, the third axis upward. Otherwise the
    sample in the first two eigenfunctions that are not constant, coloured by each of the others.

    X (n, d) is one array of any kind that `fit` takes; `max_points` of its valid rows are drawn at random. The axes
    are in the units of X, also where the estimator standardizes. Raises ImportError without matplotlib, TypeError for
    other estimators, ValueError for X with another number of columns than at the fit, or without a valid row.
    """
    require_matplotlib()
    check_fitted(estimator)
    if count < 1 or max_points < 1:
        raise ValueError(f"count and max_points must be 1 or more; they are {count} and {max_points}")
    points = _draw(estimator, X, max_points, random_state)
    shown = range(min(count, len(values_of(estimator))))
    d = points.shape[1]
    if d == 1:
        return _draw_lines(estimator, points, shown)
    if d == 2:
        return _draw_plane(estimator, points, shown)
    if d == 3 and np.abs(np.linalg.norm(points, axis=1) - 1).max() <= 1e-6:
        return _draw_sphere(estimator, points, shown)
    return _draw_embedding(estimator, points, shown)


@stored
def save_eigenfunctions(
    estimator: Estimator,
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
    titles: Sequence[str], *, columns: int = 4, width: float = 2.2, aspect: float = 1.0
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, row by row; `width` in inches, `aspect` height over width."""
    require_matplotlib()
    from matplotlib.figure import Figure

    rows, columns = math.ceil(len(titles) / columns), min(columns, len(titles))
    figure = Figure(figsize=(width * columns, (width * aspect + 0.3) * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(len(titles))]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize=9, pad=4)
        ax.tick_params(labelsize=7, length=2)
        ax.spines[:].set_color("0.7")
    return figure, axes


def level_lines(
    axes: Axes, x: Array, y: Array, values: Array, *, largest: float | None = None, excess: Array | None = None
) -> None:
    """Filled level lines of values (len(y), len(x)), in colours symmetric about 0 up to `largest`.

    x and y may be 2-d too; `excess`, of the shape of the values, is above 1 where nothing shall be drawn.
    """
    levels = np.linspace(-1.02, 1.02, _BANDS + 1) * (np.abs(values).max() if largest is None else largest)
    drawn = [axes.contourf(x, y, values, levels=levels, cmap=_COLOURS, extend="both")]
    if np.any((levels > values.min()) & (levels < values.max())):
        drawn += [axes.contour(x, y, values, levels=levels, colors="0.15", linewidths=0.35, linestyles="solid")]
    if excess is not None and excess.max() > 1:
        region = axes.contourf(x, y, excess, levels=[-1.0, 1.0])
        region.remove()
        for contours in drawn:
            contours.set_clip_path(region.get_paths()[0], axes.transData)


def mollweide() -> tuple[Array, Array, Array]:
    """Return points (r, c, 3) of the unit sphere with their coordinates x and y (r, c) in the projection."""
    longitude, angle = np.meshgrid(np.linspace(-np.pi, np.pi, _GRID), np.linspace(-np.pi / 2, np.pi / 2, _GRID // 2))
    height = np.clip((2 * angle + np.sin(2 * angle)) / np.pi, -1, 1)  # the sine of the latitude
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=-1)
    return points, 2 / np.pi * longitude * np.cos(angle), np.sin(angle)


def _draw_lines(estimator: Estimator, points: Array, shown: range) -> Figure:
    low, high = np.quantile(points, [0.001, 0.999])
    low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
    grid = np.linspace(low, high, 600)
    values = _evaluate(estimator, grid[:, None])
    counts, edges = np.histogram(points[:, 0], bins=60, range=(low, high))
    figure, axes = panels([_title(estimator, i) for i in shown], aspect=0.75)
    for i, ax in zip(shown, axes, strict=True):
        largest = 1.1 * max(1.5, float(np.abs(values[:, i]).max()))
        ax.stairs(0.7 * largest * counts / counts.max() - largest, edges, baseline=-largest, fill=True, color="0.87")
        ax.axhline(0, color="0.7", linewidth=0.5)
        ax.plot(grid, values[:, i], color="tab:blue", linewidth=1.2)
        ax.set(xlim=(low, high), ylim=(-largest, largest))
    return figure


def _draw_plane(estimator: Estimator, points: Array, shown: range) -> Figure:
    scale = preparation_of(estimator).scale
    unit = np.ones(2) if scale is None else scale  # of each axis: distances are measured as the kernel measures them
    radius, dense, excess_at = _support(points / unit)
    low, high = dense.min(axis=0) - radius, dense.max(axis=0) + radius
    x, y = (np.arange(a, b, (high - low).max() / _GRID) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    excess = gaussian_filter(excess_at(grid), 2, mode="nearest")
    values, sampled = _evaluate(estimator, grid * unit), _evaluate(estimator, points)
    aspect = float(np.clip((high - low)[1] / (high - low)[0], 0.25, 4))
    figure, axes = panels([_title(estimator, i) for i in shown], width=2.2 / max(1, aspect**0.5), aspect=aspect)
    x, y, faint = x * unit[0], y * unit[1], points[:: math.ceil(len(points) / _SHOWN)]
    for i, ax in zip(shown, axes, strict=True):
        level_lines(ax, x, y, values[..., i], largest=_largest(sampled[:, i]), excess=excess)
        ax.plot(*faint.T, ",", color="black", alpha=0.15, rasterized=True)
        ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xticks=[], yticks=[], aspect=unit[0] / unit[1])
    return figure


def _draw_sphere(estimator: Estimator, points: Array, shown: range) -> Figure:
    sphere, x, y = mollweide()
    excess = _support(points)[2](sphere)
    values, sampled = _evaluate(estimator, sphere), _evaluate(estimator, points)
    (figure, axes), rim = panels([_title(estimator, i) for i in shown], aspect=0.5), np.linspace(0, 2 * np.pi, 200)
    for i, ax in zip(shown, axes, strict=True):
        level_lines(ax, x, y, values[..., i], largest=_largest(sampled[:, i]), excess=excess)
        ax.plot(2 * np.cos(rim), np.sin(rim), color="0.4", linewidth=0.8)
        ax.set(xlim=(-2.02, 2.02), ylim=(-1.02, 1.02), aspect="equal")
        ax.set_axis_off()
    return figure


def _draw_embedding(estimator: Estimator, points: Array, shown: range) -> Figure:
    values = _evaluate(estimator, points)
    varying = [i for i in shown if values[:, i].std() > 1e-3 * np.sqrt(np.mean(values[:, i] ** 2))]
    coloured = varying[2:]
    coordinates = [(f"eigenfunction {i}", values[:, i]) for i in varying[:2]]
    coordinates += [(f"column {j}", points[:, j]) for j in range(2 - len(coordinates))]  # where there are fewer
    figure, axes = panels([_title(estimator, i) for i in coloured] or [f"{len(points)} rows"])
    for n, ax in enumerate(axes):
        style: dict[str, Any] = {"color": "tab:blue"}
        if coloured:
            largest = _largest(values[:, coloured[n]])
            style = {"c": values[:, coloured[n]], "cmap": _COLOURS, "vmin": -largest, "vmax": largest}
        ax.set_facecolor("0.92")  # the middle of the colours is white
        ax.scatter(coordinates[0][1], coordinates[1][1], s=1.5, linewidths=0, rasterized=True, **style)
        ax.set(xticks=[], yticks=[])
    figure.supxlabel(coordinates[0][0], fontsize=9)
    figure.supylabel(coordinates[1][0], fontsize=9)
    return figure


def _draw(estimator: Estimator, X: Any, size: int, random_state: Any) -> Array:
    """Valid rows of X, drawn at random: the columns that the estimator uses, in the units of X (m, d)."""
    laid = lay_out(X, sample_dims=getattr(estimator, "sample_dims", None), layout=vars(estimator).get("layout_"))
    source = open_source(X if laid is None else laid.reader)
    if source.n_features_in != estimator.n_features_in_:
        raise ValueError(f"X has {source.n_features_in} columns, the model was fitted on {estimator.n_features_in_}")
    source = source.with_preparation(columns=preparation_of(estimator).columns)
    _, points = draw_rows(source, size, np.random.default_rng(random_state), on_invalid="skip")
    if not len(points):
        raise ValueError("X has no valid row to draw: each of them holds NaN or infinity")
    return points


def _evaluate(estimator: Estimator, points: Array) -> Array:
    """The eigenfunctions (..., k) at points (..., d) of the columns that are used; other columns are 0."""
    rows = np.zeros((*points.shape[:-1], estimator.n_features_in_))
    rows[..., list(preparation_of(estimator).columns or range(rows.shape[-1]))] = points
    values = np.asarray(estimator.transform(rows.reshape(-1, rows.shape[-1]), progress=False))
    return np.asarray(values.real.reshape(*points.shape[:-1], -1))


def _support(points: Array) -> tuple[float, Array, Callable[[Array], Array]]:
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


def _largest(sampled: Array) -> float:
    """Where the colours of a function of unit norm end: 2 at least, so that a constant is not the extreme."""
    return max(2.0, float(np.quantile(np.abs(sampled), 0.995)))


def _title(estimator: Estimator, i: int) -> str:
    values, letter = values_of(estimator), r"\sigma" if is_singular(estimator) else r"\lambda"
    value = complex(0.0 if vanishing(values)[i] else values[i])
    text = _number(value.real)
    if value.imag:
        text += rf" {'+' if value.imag > 0 else '-'} {_number(abs(value.imag))} i"
    return rf"${letter}_{{{i}}} = {text}$"


def _number(value: float) -> str:
    digits, _, exponent = (f"{value:#.3g}" if value else "0").partition("e")
    return digits.rstrip(".") + (rf" \cdot 10^{{{int(exponent)}}}" if exponent else "")
