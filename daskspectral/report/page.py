"""Sections of a report by type of model, and the page template."""

from __future__ import annotations

import base64
import importlib
import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import plot
from daskspectral.data.remote import Location, using
from daskspectral.data.writing import write_file
from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
from daskspectral.engine.sampling import take_rows
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.summary import Summary, environment, grouped, moments_of, summary_of
from daskspectral.invariance import InvariantRegressor
from daskspectral.moments import Moments
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.selection import Selection
from daskspectral.plot.common import (
    are_constant,
    axes_of,
    figure_of,
    has_right_view,
    is_singular,
    refuse_file,
    require_matplotlib,
    value_label,
    values_of,
)
from daskspectral.plot.functions import draw_field, draw_series, fields_of, modes_above_noise
from daskspectral.plot.views import View
from daskspectral.regression import HermiteRegressor
from daskspectral.spectral import Koopman, SpectralClustering
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.validation import is_sequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
Cells = Sequence[Sequence[str]]

WITH_POINTS = "It is drawn over the points of the fit: daskspectral report model points."
MOST, COUNT, LONGEST = 60, 12, 400  # values and functions that are drawn; characters of a cell
SERIES, SERIES_ROWS = 5000, 1200  # rows along which functions are drawn without a timescale; points of the line
POINTS = 4000  # rows that are drawn


@dataclass(frozen=True)
class Picture:
    """Drawing with its axes; `alt` is the text alternative, `caption` is shown below it."""

    axes: Axes
    alt: str
    caption: str = ""
    small: bool = False

    @property
    def source(self) -> str:
        """Return the SVG image as a data URL, reproducible to the bit."""
        import matplotlib as mpl

        drawn = io.BytesIO()
        look: dict[Any, Any] = {"svg.hashsalt": "daskspectral", "svg.fonttype": "none"}
        with mpl.rc_context(look), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text, in the reader's fonts
            figure_of(self.axes).savefig(drawn, format="svg", transparent=True, dpi=150, metadata={"Date": None})
        return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"


@dataclass(frozen=True)
class Section:
    """Section of the page: text, pictures, and tables (column titles first) or texts by caption."""

    title: str
    words: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Mapping[str, str | Cells] | None = None
    reading: str = ""
    """Name of the explanation in `templates/reading.html`."""

    @property
    def name(self) -> str:
        return self.title.lower().replace(" ", "-")


def save(
    model: Any,
    path: Location,
    X: Any = None,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **origin: Any,
) -> None:
    """Write the report of a model to a path or URL, atomically.

    Parameters
    ----------
    model : estimator or Moments
        A fitted estimator of daskspectral, or moments.
    path : str or path
        Path or URL with the ending .html or .htm.
    X : array-like, optional
        Points of the fit, in any container that `fit` accepts, over which functions are drawn; by default the
        landmarks.
    overwrite : bool, default=False
        Replace an existing file.
    storage_options : mapping, optional
        Options of fsspec for URLs.
    **origin : str
        `about` and `settings` of `render`.

    Raises
    ------
    FileExistsError
        If the path exists and `overwrite` is False.
    ImportError, TypeError or ValueError
        As `render` and `refuse_report`.

    See Also
    --------
    render : Return the same page as text.
    refuse_report : Check the path before a long fit.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
    >>> est = est.fit(np.random.default_rng(0).uniform(0, 3, (2000, 1)))
    >>> dsp.report.save(est, os.path.join(tempfile.mkdtemp(), "report.html"))
    """
    with using(storage_options):
        refuse_report(path, overwrite)
        write_file(path, render(model, X, **origin).encode("utf-8"))


def render(
    model: Any,
    X: Any = None,
    *,
    about: str | None = None,
    settings: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Return the report of a model as one self-contained HTML text.

    Parameters
    ----------
    model : estimator or Moments
        A fitted estimator of daskspectral, or moments.
    X : array-like, optional
        Points of the fit, in any container that `fit` accepts, over which functions are drawn; by default the
        landmarks.
    about : str, optional
        Name of the model below the title.
    settings : str, optional
        Settings of the command that made the model, as YAML.
    storage_options : mapping, optional
        Options of fsspec for URLs.

    Returns
    -------
    str
        HTML text.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If `model` is neither an estimator nor moments.
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If X has other columns than the data of the fit.

    See Also
    --------
    save : Write the page to a file.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
    >>> page = dsp.report.render(est.fit(np.random.default_rng(0).uniform(0, 3, (2000, 1))))
    >>> page[:15]
    '<!doctype html>'
    """
    require_matplotlib()
    if not isinstance(model, (Estimator, Moments)):
        raise TypeError(f"a report requires a fitted estimator of daskspectral or moments, got {type(model).__name__}")
    head = summary_of(model)
    with using(storage_options):
        sections = _sections(model, X, head)
    sections = [*sections, _provenance(model, head, about=about, settings=settings)]
    version = importlib.import_module("daskspectral").__version__
    template = environment().get_template("report.html")
    return str(template.render(head=head, sections=sections, about=about or "", version=version))


def refuse_report(path: Location, overwrite: bool) -> None:
    """Raise an error if a report cannot be written, before a long fit.

    Parameters
    ----------
    path : str or path
        Path or URL.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the ending is not .html or .htm.
    FileExistsError
        If the path exists (with `overwrite`: and is not a file).
    OSError
        If the folder is not writable.

    See Also
    --------
    save : Write the report.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> dsp.report.refuse_report("report.html", overwrite=True)
    """
    require_matplotlib()
    refuse_file(path, (".html", ".htm"), overwrite, what="a report")


def _sections(model: Any, X: Any, summary: Summary) -> list[Section]:
    found: list[Section] = []
    match model:
        case SpectralEstimator():
            found = [*_clusters(model, X), _spectrum(model, summary), *_dynamics(model)]
            found += [*_eigenfunctions(model, X), *_patterns(model)]
        case HermiteRegressor():
            found = [*_penalties(model), *_prediction(model, X)]
        case InvariantRegressor():
            found = [_levels(model, summary), *_prediction(model, X)]
        case SDPEmbedding() | DiffusionMap() | KernelEmbedding():
            found = [_spectrum(model, summary), *_embedding(model, X)]
    return [*found, *_choice(model, summary)]


def _spectrum(model: Any, summary: Summary) -> Section:
    values, words = values_of(model), []
    decomposed = isinstance(model, SpectralEstimator)
    if len(values) > MOST:
        words.append(f"The first {MOST} of {len(values)} are drawn.")
    picture = Picture(plot.spectrum(model, count=MOST), f"The spectrum. {summary.verdict}")
    tables = {"All values": summary.table(details=True)}
    return Section("Spectrum", words, [picture], tables, "spectrum" if decomposed else "")


def _clusters(model: Any, X: Any) -> list[Section]:
    if not isinstance(model, SpectralClustering):
        return []
    shares = [[f"{i}", f"{100 * share:.3g} %"] for i, share in enumerate(model.cluster_shares_)]
    tables = {"All clusters": [["cluster", "share of the rows"], *shares]}
    if X is None:
        return [Section("Clusters", [WITH_POINTS], tables=tables)]
    axes = plot.embedding(model, X)
    alt = f"Rows by cluster, in the columns {axes.get_xlabel()} and {axes.get_ylabel()}, which clusters differ in most."
    return [Section("Clusters", [alt], [Picture(axes, alt)], tables)]


def _dynamics(model: Any) -> list[Section]:
    """Return implied timescales and the Chapman-Kolmogorov test; empty for a fit at one lag."""
    if not isinstance(model, Koopman) or len(model.lags_) < 2 or not len(model.timescales_[0]):
        return []
    pictures = [Picture(plot.timescales(model), "Implied timescales by the lag.")]
    if model.moments_.right_basis is None:
        alt = "Autocorrelation of each process by lag: predicted from the first lag, and measured."
        pictures.append(Picture(plot.chapman_kolmogorov(model), alt))
    return [Section("Slow processes", (), pictures, reading="dynamics")]


def _penalties(model: HermiteRegressor) -> list[Section]:
    if model.cv_curve_ is None or len(model.cv_curve_) == 0:
        return []
    axes = axes_of(None)
    penalties, errors = np.asarray(model.cv_curve_, dtype=float)[:, :2].T
    axes.loglog(penalties, np.abs(errors), marker="o", markersize=3)
    axes.set(xlabel="penalty", ylabel="mean squared error")
    words = ["Mean squared error on validation rows, by penalty."]
    if model.alpha_:
        axes.axvline(model.alpha_, color="0.5", linestyle="--")
        words.append(f"{model.alpha_:.3g}, the dashed line, was chosen.")
    return [Section("Held out", words, [Picture(axes, words[0])], reading="penalties")]


def _levels(model: InvariantRegressor, summary: Summary) -> Section:
    squares = np.array([float(np.linalg.norm(c) ** 2) for c in model.coef_])
    axes = axes_of(None)
    axes.bar(np.arange(len(squares)), squares / (squares.sum() or 1.0))
    axes.set(xlabel="eigenspace", ylabel="share of the square")
    words = [
        f"{np.sum(model.invariant_dimensions_)} functions of {model.n_eigenfunctions_} are invariant under the group; "
        f"the fit has parts in {np.count_nonzero(squares)} of {len(squares)} eigenspaces."
    ]
    picture = Picture(axes, "Shares of the eigenspaces in the fitted function.")
    return Section("Eigenspaces", words, [picture], {"All eigenspaces": summary.table()}, "eigenspaces")


def _eigenfunctions(model: SpectralEstimator, X: Any) -> list[Section]:
    """Return the eigenfunctions over rows of X or the landmarks, or along trajectories.

    X are rows, a list of trajectories, or a tuple of views; without the second view its landmarks are drawn.
    """
    views = _views(model, X)
    if X is not None and (of_trajectories(model.moments_.operator) or _is_field(model)):
        return _along(model, views[0])
    sections = _over(model, views[0], right=False)
    if has_right_view(model):
        sections += _over(model, views[1] if len(views) > 1 else None, right=True)
    return sections


def _views(model: Any, X: Any) -> Sequence[Any]:
    """Return the trajectories or views of X; raise ValueError for more views than the operator has."""
    operator = model.moments_.operator if isinstance(model, SpectralEstimator) else None
    if operator is None or len(operator.views) < 2 or not is_sequence(X) or not X:
        return (X,)
    if not of_trajectories(operator) and len(X) > len(operator.views):
        raise ValueError(f"{operator} has {len(operator.views)} views of each row, got {len(X)}")
    return X


def _over(model: Any, X: Any, *, right: bool) -> list[Section]:
    title = "Eigenfunctions"
    if is_singular(model):
        title = ("Right s" if right else "Left s" if has_right_view(model) else "S") + "ingular functions"
    if X is None and View(model, right).landmarks is None:
        return [Section(title, [WITH_POINTS])]
    canvas = View(model, right).canvas(X, POINTS)
    numbers = np.flatnonzero(~are_constant(canvas.values))[:COUNT].tolist()
    if not numbers:
        return []
    end, pictures = canvas.largest(numbers), []
    for i in numbers:
        axes = axes_of(None, (2.4, 2.2 * (canvas.shape or 0.8) + 0.2))
        if canvas.draw(axes, i, -end, end) is not None:
            axes.set(xticks=[], yticks=[])
        label = value_label(model, i) + ("" if model.reliable_[i] else " (not reliable)")
        pictures.append(Picture(axes, f"{label}: {canvas.description}.", label, small=True))
    over = "the landmarks" if X is None else f"rows of the {'second view' if right else 'data'}"
    words = [f"The first {len(numbers)} that are not constant, over {over}: {canvas.description}."]
    if canvas.points.shape[1] > 1:
        words.append(f"Colors range from {-end:.2g} (blue) to {end:.2g} (red).")
    if np.iscomplexobj(values_of(model)):
        words.append("Real parts are shown.")
    return [Section(title, words, pictures, reading="functions")]


def _is_field(model: Any) -> bool:
    layout = vars(model).get("layout_")
    return layout is not None and not layout.trivial and any(v.dims for v in layout.variables)


def _along(model: SpectralEstimator, first: Any) -> list[Section]:
    """Return the functions along the first trajectory, or along the times of a field."""
    view = View(model)
    source, slowest = view.source(first), float(model.timescales_[0, :1].sum()) if isinstance(model, Koopman) else 0.0
    window = min(source.n, int(np.clip(20 * slowest, 400, 100_000)) if 0 < slowest < np.inf else SERIES)
    numbers, points = take_rows(source, np.arange(0, window, max(1, window // SERIES_ROWS)))
    values, (label, x) = view.evaluate(points), view.along(first, numbers)
    pictures = []
    for i in np.flatnonzero(~are_constant(values))[:8].tolist():
        axes = draw_series(axes_of(None, (4.8, 1.9)), x, values[:, i], label=label)
        pictures.append(Picture(axes, f"{value_label(model, i)} along {label}.", value_label(model, i)))
    words = [f"The first {len(pictures)} that are not constant, along {window} of {source.n} rows."]
    title = "Singular functions" if is_singular(model) else "Eigenfunctions"
    return [Section(title, words, pictures, reading="series")] if pictures else []


def _patterns(model: SpectralEstimator) -> list[Section]:
    """Return the regression of the columns on the functions, as maps in the dimensions of a field."""
    if not _is_field(model):
        return []
    sides, pictures, above = (False, True) if has_right_view(model) else (False,), [], modes_above_noise(model)
    for i in range(min(6, len(values_of(model)))):
        for right in sides:
            for field in fields_of(model, [i], right):
                if field.ndim < 3:
                    label = value_label(model, i)
                    axes = draw_field(field, lines=i < above)
                    pictures.append(Picture(axes, f"{label} in {field.name}.", f"{label}, {field.name}"))
    return [Section("Patterns", (), pictures, reading="patterns")] if pictures else []


def _prediction(model: HermiteRegressor | InvariantRegressor, X: Any) -> list[Section]:
    view = View(model)

    def predicted(points: Array) -> Array:
        values = np.asarray(model.predict(view.like_fit(points), progress=False), dtype=float)
        return values.reshape(*points.shape[:-1], -1)

    if X is None and view.landmarks is None:
        return [Section("Prediction", [WITH_POINTS])]
    canvas, pictures = view.canvas(X, POINTS, predicted), []
    for i in range(min(4, canvas.values.shape[1])):
        low, high = np.quantile(canvas.values[:, i], [0.005, 0.995])
        axes = axes_of(None, (4.6, 3.6 * (canvas.shape or 0.8)))
        if (drawn := canvas.draw(axes, i, float(low), float(high), "viridis_r")) is not None:
            figure_of(axes).colorbar(drawn, ax=axes, label="prediction")
        pictures.append(Picture(axes, f"Target {i}: {canvas.description}."))
    return [Section("Prediction", [f"The fitted function: {canvas.description}."], pictures)]


def _embedding(model: Any, X: Any) -> list[Section]:
    values = getattr(model, "embedding_", None)
    if not isinstance(values, np.ndarray):
        if X is None:
            return [Section("Embedding", [WITH_POINTS])]
        values = np.asarray(model.transform(X, progress=False))
    values = values[:: math.ceil(len(values) / POINTS)]
    if values.shape[1] < 2:
        return []
    third = values[:, 2] if values.shape[1] > 2 else None
    axes = plot.embedding(values, name="coordinate", color=third, label="coordinate 2")
    alt = f"{len(values)} rows in the coordinates 0 and 1."
    return [Section("Embedding", [alt], [Picture(axes, alt)])]


def _choice(model: Any, summary: Summary) -> list[Section]:
    """Return the section on automatic choices; empty for a model without one."""
    selection = getattr(model, "search_results_", None)
    if not isinstance(selection, Selection):
        return []
    if selection.chosen is None:
        return [Section("Choice", [f"{summary.choice[:1].upper()}{summary.choice[1:]}."])]
    words, pictures = [f"{summary.facts['chosen']}."], []
    if selection.median is not None:
        words.append(f"Scales are in units of the median distance of the rows, {selection.median:.4g}.")
    if selection.edge:
        words.append(f"The best scale is the {selection.edge} of the search; a better one may lie beyond.")
    if isinstance(model, SpectralEstimator):
        pictures = [Picture(plot.choice(model), f"Scores of {len(selection)} candidates; the best is circled.")]
    return [Section("Choice", words, pictures, {"All candidates": selection.table}, "choice")]


def _provenance(model: Any, summary: Summary, *, about: str | None, settings: str | None) -> Section:
    """Return the provenance: sums, versions, parameters, saved settings."""
    facts = {"file": about}
    if (moments := moments_of(model)) is not None:
        facts |= {"rows read": grouped(moments.rows or moments.count), "fingerprint": moments.fingerprint}
    cells = [[name, str(value)] for name, value in facts.items() if value is not None]
    cells += [[name, str(value)] for name, value in {**summary.facts, **summary.details}.items()]
    tables: dict[str, str | Cells] = {"Data": [["name", "value"], *cells]}
    if isinstance(model, Estimator):
        given = {
            k: repr(v) if not isinstance(v, np.ndarray) else f"array {v.shape}"
            for k, v in model._plain_params().items()
        }
        tables["Parameters"] = [["parameter", "value"], *([name, given[name][:LONGEST]] for name in sorted(given))]
    if settings:
        tables["Settings of the command"] = settings
    return Section("Provenance", tables=tables)
