"""Common parts of pictures: checks of an estimator, labels, colors, axes, and atomic files."""

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
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error


def check_fitted(estimator: Any, kinds: Any = SpectralEstimator) -> None:
    """Raise TypeError for other estimators, NotFittedError before `fit`, ImportError without matplotlib."""
    require_matplotlib()
    if not isinstance(estimator, kinds):
        wanted = getattr(kinds, "__name__", kinds)
        raise TypeError(f"estimator must be a fitted {wanted}, got {type(estimator).__name__}")
    check_is_fitted(estimator)


def has_right_view(estimator: Any) -> bool:
    """Return whether the right functions have other variables than the left ones, as for Cross."""
    return is_singular(estimator) and estimator.moments_.operator.own_right_basis


def is_singular(estimator: Any) -> bool:
    """Return whether the estimator has singular values."""
    return isinstance(estimator, SpectralEstimator) and estimator.solver_.sides[0] == "left"


def values_of(estimator: Any) -> NDArray[np.inexact[Any]]:
    """Return the eigenvalues or singular values."""
    embedded = isinstance(estimator, Embedding)
    return np.asarray(estimator.spectrum_ if embedded else getattr(estimator, Attributes(estimator.solver_).values))


def vanishing(values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Return which values are 0 relative to the largest."""
    return np.asarray(np.abs(values) <= 1e-9 * np.abs(values).max(initial=0.0))


def are_constant(values: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which functions, by values (m, k), are constant, or the best constant of the basis."""
    return np.asarray(values.std(axis=0) <= 0.1 * np.sqrt(np.mean(values**2, axis=0)))


def value_label(estimator: Any, i: int) -> str:
    """Return the title of a function, such as "λ₁ = 0.21" with its timescale, or "EOF 1 (19.0 %)"."""
    if isinstance(estimator, FieldEstimator):
        return f"{type(estimator).__name__} {i + 1} ({estimator._mode_label(i)})"
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
    """Return a name from the data for a label: printable, not a formula, and shorter than an axis."""
    text = "".join(character if character.isprintable() else " " for character in name)
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}").replace("$", r"\$")


def axes_of(ax: Axes | None, size: tuple[float, float] = (4.8, 3.4), projection: Any = None) -> Axes:
    """Return the given axes, or those of a new figure, a map in a `projection` of cartopy."""
    require_matplotlib()
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=size, layout="constrained").add_subplot(projection=projection)
        if projection is None:
            ax.spines[["top", "right"]].set_visible(False)
    return ax


def figure_of(axes: Axes) -> Figure:
    """Return the figure of axes.

    Parameters
    ----------
    axes : Axes
        The axes.

    Returns
    -------
    Figure
        The figure.

    See Also
    --------
    save_figure : Save a figure.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> figure, axes = dsp.plot.panels(["a"])
    >>> dsp.plot.figure_of(axes[0]) is figure
    True
    """
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
    """Save a figure as .png, .pdf or .svg, atomically.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : str or path
        Path or URL, whose ending is the format.
    overwrite : bool, default=False
        Replace an existing file.
    dpi : float, default=150
        Dots per inch.
    storage_options : mapping, optional
        Options of fsspec for a URL.

    Raises
    ------
    ValueError or OSError
        As `refuse_picture`.

    See Also
    --------
    refuse_picture : Check the path before a long fit.

    Examples
    --------
    >>> import os, tempfile
    >>> import daskspectral as dsp
    >>> figure, axes = dsp.plot.panels(["a"])
    >>> dsp.plot.save_figure(figure, os.path.join(tempfile.mkdtemp(), "a.png"))
    """
    drawn = io.BytesIO()
    with using(storage_options):
        refuse_picture(path, overwrite)
        figure.savefig(drawn, format=_suffix(path).removeprefix("."), dpi=dpi)
        write_file(path, drawn.getvalue())


def refuse_picture(path: Location, overwrite: bool) -> None:
    """Raise an error if a picture cannot be written, before a long fit.

    Parameters
    ----------
    path : str or path
        Path or URL with the ending .png, .pdf or .svg.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    ValueError
        If the ending is another one.
    FileExistsError
        If the path exists (with `overwrite`: and is not a file).
    OSError
        If the folder or bucket is missing or not writable.

    See Also
    --------
    save_figure : Save a figure.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> dsp.plot.refuse_picture("picture.png", overwrite=True)
    """
    require_matplotlib()
    refuse_file(path, SUFFIXES, overwrite, what="a picture")


def refuse_file(path: Location, endings: Sequence[str], overwrite: bool, *, what: str) -> None:
    """Raise an error for a file that cannot be written, as `refuse_picture`; `what` is "a report" or so."""
    if _suffix(path) not in endings:
        raise ValueError(f"{what}'s name must end in {', '.join(endings)}, got {os.fspath(path)!r}")
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
