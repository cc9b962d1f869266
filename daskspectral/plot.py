"""Pictures of fitted estimators: eigenfunctions over the data, and the spectrum. Needs matplotlib."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from daskspectral.data.source import open_source
from daskspectral.engine.sampling import draw_rows
from daskspectral.estimators import SpectralDecomposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Outline

__all__ = [
    "eigenfunctions",
    "level_lines",
    "panels",
    "refuse_picture",
    "save_eigenfunctions",
    "save_figure",
    "spectrum",
]

Array = NDArray[np.floating[Any]]

SUFFIXES = (".png", ".pdf", ".svg")
_COLOURS = "RdBu_r"
_BANDS = 11  # odd: the middle one holds 0, so that a function that vanishes somewhere shows no noise there
_INK = "0.15"
_GRID = 240  # grid points along the longer side
_NEIGHBOURS = 10
_SHOWN = 3000  # data points that are drawn; more of them only blacken the panels


def eigenfunctions(
    estimator: SpectralDecomposition, X: Any, *, count: int = 16, max_points: int = 20_000, random_state: Any = 0
) -> Figure:
    """Draw the first `count` eigenfunctions of a fitted estimator over a sample of the rows of X, a panel each.

    One column: lines over a histogram of the data. Two: level lines where there are data. Three on the unit sphere
    (|x| = 1 to 1e-6 in the sample): level lines in the Mollweide projection, the third axis upward. Otherwise the
    sample in the first two eigenfunctions that are not constant, coloured by each of the others.

    X is whatever `fit` takes; `max_points` of its valid rows are drawn at random. Coordinates are those of X, also
    where the estimator standardizes. Raises ImportError without matplotlib, ValueError for X of another width.
    """
    _require_matplotlib()
    estimator.fitted()
    if count < 1 or max_points < 1:
        raise ValueError(f"count and max_points must be 1 or more; they are {count} and {max_points}")
    points = _draw(estimator, X, max_points, random_state)
    shown = range(min(count, len(estimator.eigenvalues_)))
    d = points.shape[1]
    if d == 1:
        return _draw_lines(estimator, points, shown)
    if d == 2:
        return _draw_plane(estimator, points, shown)
    if d == 3 and np.abs(np.linalg.norm(points, axis=1) - 1).max() <= 1e-6:
        return _draw_sphere(estimator, points, shown)
    return _draw_embedding(estimator, points, shown)


def spectrum(estimator: SpectralDecomposition, *, exact: ArrayLike | None = None) -> Figure:
    """Draw the eigenvalues against their index; the constant's 0 is hollow, `exact` ones (any number) are crosses."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    values = estimator.fitted().eigenvalues_
    index = np.arange(len(values))
    constant = _vanishing(values)
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.vlines(index, 0, values, color="0.8", linewidth=1)
    axes.axhline(0, color="0.8", linewidth=0.8)
    axes.plot(index[~constant], values[~constant], "o", color="tab:blue", markersize=5, label="learned")
    if constant.any():
        axes.plot(index[constant], values[constant], "o", mfc="white", mec="tab:blue", markersize=5, label="constant")
    if exact is not None:
        true = np.asarray(exact, dtype=float)
        axes.plot(np.arange(len(true)), true, "x", color="tab:red", markersize=7, label="exact")
    axes.set(xlabel="index", ylabel="eigenvalue")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def save_eigenfunctions(estimator: SpectralDecomposition, X: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Draw the eigenfunctions (`options` are those of `eigenfunctions`) into a file, as `save_figure` does."""
    refuse_picture(path, overwrite=True)
    save_figure(eigenfunctions(estimator, X, **options), path)


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: float = 150) -> None:
    """Write a figure in the format of the path's ending; it appears whole or not at all, and replaces what is there.

    Raises what `refuse_picture` raises with overwrite=True.
    """
    refuse_picture(path, overwrite=True)
    target = Path(path)
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        figure.savefig(staging, format=target.suffix.lower().removeprefix("."), dpi=dpi)
        staging.replace(target)
    finally:
        staging.unlink(missing_ok=True)


def refuse_picture(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a picture that cannot be written, before the work that it shows.

    Raises ImportError without matplotlib, ValueError for an ending other than .png, .pdf and .svg, FileNotFoundError
    for a missing directory, FileExistsError for a path that exists (with `overwrite`: that is no file).
    """
    _require_matplotlib()
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ValueError(f"a picture's name must end in {', '.join(SUFFIXES)}; it is {os.fspath(path)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent}, the directory for {target.name}, is missing.")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{os.fspath(path)} exists and is not a file: choose another path.")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{os.fspath(path)} exists: choose another path, or replace it with overwrite=True (--overwrite in the shell)."
        )


def panels(
    titles: Sequence[str],
    *,
    columns: int = 4,
    width: float = 2.2,
    aspect: float = 1.0,
    projection: str | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with a titled panel for each title, row by row; `width` in inches, `aspect` is height over width."""
    _require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(columns, len(titles))
    rows = math.ceil(len(titles) / columns)
    figure = Figure(figsize=(width * columns, (width * aspect + 0.3) * rows), layout="constrained")
    axes = [
        figure.add_subplot(rows, columns, i + 1, projection=projection)  # type: ignore[call-overload]
        for i in range(len(titles))
    ]
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize=9, pad=4)
        ax.tick_params(labelsize=7, length=2)
    return figure, axes


def level_lines(axes: Axes, x: Array, y: Array, values: Array, *, largest: float | None = None) -> None:
    """Filled level lines of values (len(y), len(x)), in colours symmetric about 0 up to `largest`."""
    if largest is None:
        largest = float(np.abs(values).max())
    levels = np.linspace(-1.05 * largest, 1.05 * largest, _BANDS + 1)
    axes.contourf(x, y, values, levels=levels, cmap=_COLOURS, extend="both")
    axes.contour(x, y, values, levels=levels, colors=_INK, linewidths=0.35, linestyles="solid")


@dataclass(frozen=True)
class _Support:
    """Where a sample (m, d) is dense: its 10th neighbour is at most `radius` away."""

    tree: KDTree
    neighbours: int
    radius: float
    dense: Array

    @classmethod
    def of(cls, points: Array) -> _Support:
        """The radius holds 97.5 % of the sample, all of it where the density is even."""
        tree = KDTree(points)
        neighbours = min(_NEIGHBOURS, len(points))
        own = _farthest_of(tree, points, min(neighbours + 1, len(points)))  # a point is its own neighbour
        floor = 0.01 * float(np.linalg.norm(np.ptp(points, axis=0)))
        radius = max(float(np.quantile(own, 0.975)), 2 * float(np.median(own)), floor) or 1.0
        return cls(tree, neighbours, radius, points[own <= radius])

    def excess(self, points: Array) -> Array:
        """Distance to the 10th neighbour over the radius, 1 at the border: (m, d) to (m,)."""
        return _farthest_of(self.tree, points, self.neighbours) / self.radius


def _farthest_of(tree: KDTree, points: Array, count: int) -> Array:
    """Distance from each point to its `count`-th nearest in the tree."""
    distance, _ = tree.query(points, [count])
    result: Array = distance[:, 0]
    return result


def _draw_lines(estimator: SpectralDecomposition, points: Array, shown: range) -> Figure:
    low, high = np.quantile(points, [0.001, 0.999])
    if low == high:
        low, high = low - 0.5, high + 0.5
    grid = np.linspace(low, high, 600)
    values = _evaluate(estimator, grid[:, None])
    counts, edges = np.histogram(points[:, 0], bins=60, range=(low, high))
    figure, axes = panels([_title(estimator, i) for i in shown], aspect=0.75)
    for i, ax in zip(shown, axes, strict=True):
        largest = 1.1 * float(np.abs(values[:, i]).max())
        heights = 0.7 * largest * counts / max(1, counts.max())
        ax.stairs(heights - largest, edges, baseline=-largest, fill=True, color="0.85")
        ax.axhline(0, color="0.7", linewidth=0.5)
        ax.plot(grid, values[:, i], color="tab:blue", linewidth=1.2)
        ax.set(xlim=(low, high), ylim=(-largest, largest))
    return figure


def _draw_plane(estimator: SpectralDecomposition, points: Array, shown: range) -> Figure:
    support = _Support.of(points)
    low, high = support.dense.min(axis=0) - support.radius, support.dense.max(axis=0) + support.radius
    step = (high - low).max() / _GRID
    x, y = (np.arange(a, b + step, step) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    excess = support.excess(grid)
    values, shape = _evaluate(estimator, grid), (len(y), len(x))
    aspect = float(np.clip((high - low)[1] / (high - low)[0], 0.25, 4))
    figure, axes = panels([_title(estimator, i) for i in shown], width=2.2 / max(1, aspect**0.5), aspect=aspect)
    faint = points[: min(len(points), _SHOWN)]  # rows come in order of their number, which says nothing of where
    for i, ax in zip(shown, axes, strict=True):
        largest = float(np.abs(values[excess <= 1, i]).max(initial=1e-300))
        ax.plot(*faint.T, ".", color="0.75", markersize=0.8, markeredgewidth=0, rasterized=True, zorder=0)
        level_lines(ax, x, y, values[:, i].reshape(shape), largest=largest)
        _clip(ax, _outline(ax, x, y, excess.reshape(shape)))
        ax.plot(*faint.T, ",", color="black", alpha=0.12, rasterized=True)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color("0.8")
    return figure


def _draw_sphere(estimator: SpectralDecomposition, points: Array, shown: range) -> Figure:
    longitude, latitude = np.linspace(-np.pi, np.pi, _GRID + 1), np.linspace(-np.pi / 2, np.pi / 2, _GRID // 2 + 1)
    around, up = np.meshgrid(longitude, latitude)
    grid = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=-1).reshape(-1, 3)
    excess, values = _Support.of(points).excess(grid), _evaluate(estimator, grid)
    figure, axes = panels([_title(estimator, i) for i in shown], aspect=0.5, projection="mollweide")
    for i, ax in zip(shown, axes, strict=True):
        largest = float(np.abs(values[excess <= 1, i]).max(initial=1e-300))
        level_lines(ax, longitude, latitude, values[:, i].reshape(up.shape), largest=largest)
        if excess.max() > 1:
            _clip(ax, _outline(ax, longitude, latitude, excess.reshape(up.shape)))
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("0.5")
    return figure


def _draw_embedding(estimator: SpectralDecomposition, points: Array, shown: range) -> Figure:
    values = _evaluate(estimator, points)
    varying = [i for i in shown if values[:, i].std() > 1e-3 * np.sqrt(np.mean(values[:, i] ** 2))]
    coordinates = [(f"eigenfunction {i}", values[:, i]) for i in varying[:2]]
    # with fewer than two of them, columns of the data stand in
    coordinates += [(f"coordinate {j}", points[:, j]) for j in range(2 - len(coordinates))]
    (across, x), (up, y) = coordinates
    coloured = varying[2:]
    figure, axes = panels([_title(estimator, i) for i in coloured] or [f"{len(points)} rows"])
    for n, ax in enumerate(axes):
        if coloured:
            colours = values[:, coloured[n]]
            largest = float(np.quantile(np.abs(colours), 0.99)) or 1.0
            style: dict[str, Any] = {"c": colours, "cmap": _COLOURS, "vmin": -largest, "vmax": largest}
        else:
            style = {"color": "tab:blue"}
        ax.set_facecolor("0.93")  # the middle of the colours is white
        ax.scatter(x, y, s=1.5, linewidths=0, rasterized=True, **style)
        ax.set(xticks=[], yticks=[])
    figure.supxlabel(across, fontsize=9)
    figure.supylabel(up, fontsize=9)
    return figure


def _outline(axes: Axes, x: Array, y: Array, excess: Array) -> Outline:
    """The border of the region excess <= 1, as a path in the panel's coordinates."""
    region = axes.contourf(x, y, excess, levels=[-1.0, 1.0])
    path = region.get_paths()[0]
    region.remove()
    return path


def _clip(axes: Axes, outline: Outline) -> None:
    from matplotlib.contour import ContourSet

    for drawn in axes.findobj(ContourSet):
        drawn.set_clip_path(outline, axes.transData)


def _draw(estimator: SpectralDecomposition, X: Any, size: int, random_state: Any) -> Array:
    """Valid rows of X, drawn at random: the columns that the estimator uses, in the units of X (m, d)."""
    width = open_source(X).n_features_in
    if width != estimator.n_features_in_:
        raise ValueError(f"X has {width} columns, and the model was fitted on {estimator.n_features_in_}")
    source = open_source(X, columns=estimator.preparation_.columns)
    _, points = draw_rows(source, size, np.random.default_rng(random_state), on_invalid="skip")
    if not len(points):
        raise ValueError("X has no valid row to draw: each of those tried holds NaN or infinity")
    return points


def _evaluate(estimator: SpectralDecomposition, points: Array) -> Array:
    """The eigenfunctions (m, k) at points (m, d) of the columns that are used; the other columns are 0."""
    rows = np.zeros((len(points), estimator.n_features_in_))
    columns = estimator.preparation_.columns
    rows[:, slice(None) if columns is None else list(columns)] = points
    return np.asarray(estimator.transform(rows, progress=False))


def _vanishing(values: Array) -> NDArray[np.bool_]:
    vanishing: NDArray[np.bool_] = np.abs(values) <= 1e-9 * np.abs(values).max(initial=0.0)
    return vanishing


def _title(estimator: SpectralDecomposition, i: int) -> str:
    value = 0.0 if _vanishing(estimator.eigenvalues_)[i] else estimator.eigenvalues_[i]
    return rf"$\lambda_{{{i}}} = {value:.3g}$"


def _require_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install daskspectral[plot]") from error
