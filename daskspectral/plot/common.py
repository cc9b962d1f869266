"""What pictures share: requirements of an estimator, labels, colors, axes, and files that are written whole."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.data.folders import Folder
from daskspectral.data.remote import Location, local_path, using
from daskspectral.data.writing import write_file
from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
from daskspectral.moments.attributes import Attributes
from daskspectral.spectral import Koopman
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.spectral.fields import FieldEstimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = NDArray[np.floating[Any]]
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
LONGEST = 32  # characters of a column's name that are drawn
BLUE, RED, MUTED, FAINT = "tab:blue", "tab:red", "0.45", "0.9"
Embedding = SDPEmbedding | DiffusionMap | KernelEmbedding


def require_matplotlib() -> None:
    """Raise ImportError, which names the extra to install, without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install daskspectral[plot]") from error


def check_fitted(estimator: Any, kinds: Any = SpectralEstimator) -> None:
    """Raise TypeError for estimators of other kinds, sklearn's NotFittedError before `fit`, ImportError as above."""
    require_matplotlib()
    if not isinstance(estimator, kinds):
        wanted = getattr(kinds, "__name__", kinds)
        raise TypeError(f"estimator must be a fitted {wanted}, got {type(estimator).__name__}")
    check_is_fitted(estimator)


def has_right_view(estimator: Any) -> bool:
    """Whether the right functions are of other variables than the left ones, as of Cross."""
    return is_singular(estimator) and estimator.moments_.operator.own_right_basis


def is_singular(estimator: Any) -> bool:
    """Whether the estimator has singular values."""
    return isinstance(estimator, SpectralEstimator) and estimator.solver_.sides[0] == "left"


def values_of(estimator: Any) -> NDArray[np.inexact[Any]]:
    """The eigenvalues, or the singular values."""
    embedded = isinstance(estimator, Embedding)
    return np.asarray(estimator.spectrum_ if embedded else getattr(estimator, Attributes(estimator.solver_).values))


def vanishing(values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Which values are 0 beside the largest."""
    return np.asarray(np.abs(values) <= 1e-9 * np.abs(values).max(initial=0.0))


def still(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Which functions, by values (m, k), are constant, or what a basis without the constant makes of it."""
    return np.asarray(values.std(axis=0) <= 0.1 * np.sqrt(np.mean(values**2, axis=0)))


def value_label(estimator: Any, i: int) -> str:
    """A function by its value, such as "λ₁ = 0.21", with its timescale or "constant"; of a field "EOF 1 (19.0 %)"."""
    if isinstance(estimator, FieldEstimator):
        return f"{type(estimator).__name__} {i + 1} ({estimator.mode_label(i)})"
    values = values_of(estimator)
    value = complex(0.0 if vanishing(values)[i] else values[i])
    text = f"{value.real:.3g}" + (f" {'+' if value.imag > 0 else '-'} {abs(value.imag):.3g}i" if value.imag else "")
    letter = "σ" if is_singular(estimator) else "λ"
    constant = ", constant" if i < getattr(estimator, "n_constants_", 0) else ""
    if isinstance(estimator, Koopman) and i in (processes := estimator._matrices().processes):
        constant = f", {estimator.timescales_[0, list(processes).index(i)]:.3g} rows"
    return f"{letter}{str(i).translate(_LOWERED)} = {text}{constant}".replace("-", "\N{MINUS SIGN}")


def with_unit(name: Any, attrs: Mapping[Any, Any]) -> str:
    """Return a name from the data with its unit, if the attributes have one, as `shown` does."""
    return shown(f"{name} ({attrs['units']})" if attrs.get("units") else str(name))


def shown(name: str) -> str:
    """Return a name from the data as it is drawn: printable, no formula, and no longer than an axis."""
    text = "".join(character if character.isprintable() else " " for character in name)
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}").replace("$", r"\$")


def axes_of(ax: Axes | None, size: tuple[float, float] = (4.8, 3.4), projection: Any = None) -> Axes:
    """Return the given axes, or those of a new figure, a map in a `projection` of cartopy.

    Raises ImportError without matplotlib.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=size, layout="constrained").add_subplot(projection=projection)
        if projection is None:
            ax.spines[["top", "right"]].set_visible(False)
    return ax


def figure_of(axes: Axes) -> Figure:
    """Return the figure of the axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def series_color(i: int) -> dict[str, Any]:
    """Return the color and the mark of one of several lines."""
    return {"color": f"C{i % 10}", "marker": "os^DvP"[i % 6]}


def legend_above(axes: Axes) -> None:
    """Draw a legend above the axes, if there is more than one label."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize="small")


SUFFIXES = (".png", ".pdf", ".svg")


def save_figure(
    figure: Figure,
    path: Location,
    *,
    overwrite: bool = False,
    dpi: float = 150,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a figure in the format that the path's ending names, .png, .pdf or .svg; it appears whole or not at all.

    `storage_options` are fsspec's for a URL (see `daskspectral.save`). Raises ValueError or OSError, as
    `refuse_picture` does, for a path where it cannot be written.
    """
    drawn = io.BytesIO()
    with using(storage_options):
        refuse_picture(path, overwrite)
        figure.savefig(drawn, format=_suffix(path).removeprefix("."), dpi=dpi)
        write_file(path, drawn.getvalue())


def refuse_picture(path: Location, overwrite: bool) -> None:
    """Raise an error for a picture that could not be written, before the work is done that it would show.

    Raises ImportError without matplotlib, ValueError for an ending other than .png, .pdf and .svg, FileExistsError for
    a path that exists (with `overwrite`: and is not a file), and another OSError for a directory or bucket that is
    missing or cannot be written.
    """
    require_matplotlib()
    refuse_file(path, SUFFIXES, overwrite, what="a picture")


def refuse_file(path: Location, endings: Sequence[str], overwrite: bool, *, what: str) -> None:
    """Raise an error for a file that could not be written, as `refuse_picture` does; `what` is "a report", say."""
    if _suffix(path) not in endings:
        raise ValueError(f"{what}'s name must end in {', '.join(endings)}; it is {os.fspath(path)!r}")
    target, url = local_path(path), os.fspath(path)
    parent, _, name = str(target or url).rpartition("/")
    folder = Folder(parent or "/")
    there, replaceable = (folder.holds(name),) * 2 if target is None else (target.exists(), target.is_file())
    if overwrite or not there:
        folder.refuse_unwritable(name)
    if there and not (overwrite and replaceable):
        remedy = ", or replace it with overwrite=True (--overwrite in the shell)" if replaceable else ""
        raise FileExistsError(f"{url} exists: choose another path{remedy}.")


def _suffix(path: Location) -> str:
    return PurePosixPath(os.fspath(path)).suffix.lower()
