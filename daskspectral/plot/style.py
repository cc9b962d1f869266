"""The colours of all pictures: told apart without seeing hue, and dark enough on white for lines and for text.

Text has a contrast of 4.5 or more, marks and lines one of 3 or more. The report gives each of these colours another
value on a dark page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.plot.common import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.floating[Any]]

PAPER, INK, MUTED, LINE, FAINT = "#fffffe", "#1b1f24", "#57606b", "#c9d1d9", "#e6eaee"
BLUE, RED, GREEN, PURPLE, OCHRE, TEAL = "#0b61a4", "#b2410c", "#1a6e37", "#83398f", "#7f5d06", "#0c6a73"
SERIES = (BLUE, RED, GREEN, PURPLE, OCHRE, TEAL)
"""Of lines and classes; more of them differ by marks and dashes too."""
CLOUD = "#8795a3"
"""Points of the data."""
DIVERGING = (
    *("#053061", "#1b5a9c", "#3f8cc0", "#8ac0dc", "#cfe3ef"),
    "#eceef0",
    *("#fbdac8", "#f2a482", "#d5604d", "#b01b2c", "#67001f"),
)
"""Bands of a function, from its most negative values (after ColorBrewer's RdBu); the middle one holds 0."""
SEQUENTIAL = (
    *("#fbe9a3", "#e6d36c", "#b7c968", "#7dbd7a", "#48ab87"),
    *("#24938c", "#22778a", "#305a80", "#3a3d6c", "#341f50"),
)
"""Bands of a magnitude or of a variable, from the least."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours of bands of values: one more than there are `edges` between them, the outer two without an end."""

    edges: Array
    colours: tuple[str, ...]

    @classmethod
    def symmetric(cls, largest: float) -> Self:
        """About 0; the middle band holds it, so that a function shows no noise where it vanishes."""
        return cls(np.linspace(-1.02, 1.02, len(DIVERGING) - 1) * (largest or 1.0), DIVERGING)

    @classmethod
    def between(cls, low: float, high: float) -> Self:
        """From the least value to the largest."""
        if not low < high:
            low, high = low - 0.5, high + 0.5
        return cls(np.linspace(low, high, len(SEQUENTIAL) + 1)[1:-1], SEQUENTIAL)

    def of(self, values: Array) -> list[str]:
        """The colour of each value."""
        return [self.colours[i] for i in np.digitize(values, self.edges)]

    def bar(self, axes: Axes, label: str, *, cax: bool = False, **options: Any) -> None:
        """A colour bar beside axes, or with `cax` in them."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm, ListedColormap

        norm, last = BoundaryNorm(self.edges, len(self.colours), extend="both"), len(self.edges) - 1
        ticks = [float(self.edges[i]) for i in (0, (last + 1) // 3, last - (last + 1) // 3, last)]
        place: dict[str, Any] = {"cax": axes} if cax else {"ax": axes, "aspect": 28}
        drawn = ScalarMappable(norm, ListedColormap(self.colours))
        bar = figure_of(axes).colorbar(drawn, ticks=ticks, format="{x:.2g}", **place, **options)
        bar.ax.tick_params(labelsize=8, length=2, color=LINE, labelcolor=INK)
        bar.minorticks_off()
        bar.set_label(label, fontsize=9, color=INK)
        bar.outline.set_edgecolor(LINE)


def axes_of(ax: Axes | None, size: tuple[float, float] = (5.0, 3.4), projection: str | None = None) -> Axes:
    """The axes that were given, or those of a new figure. Raises ImportError without matplotlib.

    Raises ValueError for axes of another projection than the one that is needed.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if ax is None:
        return Figure(figsize=size, layout="constrained").add_subplot(projection=projection)
    if ax.name != (projection or "rectilinear"):
        raise ValueError(
            f"ax has the projection {ax.name!r}, and {projection or 'rectilinear'!r} is wanted: "
            f"figure.add_subplot(projection={projection!r})"
        )
    return ax


def figure_of(axes: Axes) -> Figure:
    """The figure that axes are in."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def plain(axes: Axes) -> Axes:
    """The axes with two quiet spines and small ticks."""
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(color=LINE, labelcolor=INK, labelsize=8, length=3)
    axes.tick_params(which="minor", color=LINE, length=2)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=INK, fontsize=9)
    return axes


def globe(axes: Axes) -> Axes:
    """Axes of the sphere: faint meridians and parallels, without degrees."""
    axes.set_facecolor("none")
    axes.grid(True, color=MUTED, linewidth=0.3, alpha=0.5)
    axes.spines[:].set_color(MUTED)
    axes.tick_params(labelbottom=False, labelleft=False)
    return axes


def legend(axes: Axes, **options: Any) -> None:
    """A legend without a frame."""
    axes.legend(**{"frameon": False, "fontsize": 8, "labelcolor": INK, **options})


def told_apart(i: int) -> dict[str, Any]:
    """The colour and the mark of one of several lines."""
    return {"color": SERIES[i % len(SERIES)], "marker": "os^DvP"[i % 6]}


def counted(axis: Any) -> None:
    """Ticks of an axis at whole numbers, one at least."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def above(axes: Axes, columns: int = 3) -> None:
    """A legend above the axes, where it hides nothing; none where it would name all that is drawn by one word."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        legend(axes, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, borderpad=0.2, columnspacing=1.2)


def dots(axes: Axes, x: Array, y: Array, colours: Any, *, size: float = 5.0, **options: Any) -> None:
    """Points without an edge; one colour, or one for each, with a grey rim that pale ones are seen by."""
    if not isinstance(colours, str):
        axes.scatter(x, y, s=1.6 * size, c=CLOUD, linewidths=0, **options)
    axes.scatter(x, y, s=size, c=colours, linewidths=0, **options)
