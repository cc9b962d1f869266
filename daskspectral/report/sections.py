"""The sections of a report, by the kind of the model: words, numbers and pictures of them, and where it came from."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.utils import format_bytes
from numpy.typing import NDArray

from daskspectral import plot
from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
from daskspectral.engine.sampling import take_rows
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.summary import Summary, grouped, moments_of
from daskspectral.invariance import InvariantRegressor
from daskspectral.kernels import Linear
from daskspectral.moments.intervals import agreeing
from daskspectral.moments.trust import excess, maximised
from daskspectral.passes.selection import Selection
from daskspectral.plot.canvas import Line, Pairs, Plane
from daskspectral.plot.common import (
    has_right_view,
    is_singular,
    shown,
    still,
    value_label,
    values_of,
    vanishing,
)
from daskspectral.plot.fields import draw_field, draw_series
from daskspectral.plot.functions import draw_landmarks
from daskspectral.plot.spectra import LARGEST, gram_values, power
from daskspectral.plot.style import BLUE, LINE, MUTED, Scale, above, axes_of, counted, plain
from daskspectral.plot.views import View
from daskspectral.regression import HermiteRegressor
from daskspectral.solve.whitening import CUTS
from daskspectral.spectral import SpectralDecomposition
from daskspectral.spectral.functions import in_the_field
from daskspectral.spectral.summary import dynamic_facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]

MEDIAN = 1.1  # of held-out over fitted values, above which they are said to differ
SIZE, TALL, WIDE = (4.2, 2.9), (4.2, 3.6), (4.2, 2.6)  # of a picture, in inches: text is as large as a phone's
SMALL = 0.52  # of the size of a picture that stands alone
MOST, COUNT = 60, 12  # values, and functions, that are drawn
LONGEST, SHORT = 400, 18  # characters of a value that is shown, and of a name below a small picture
SERIES, SERIES_ROWS = 5000, 1200  # rows along which functions are drawn without a timescale; points of the line
GRID, SHOWN, POINTS = 110, 400, 4000  # of a small picture: grid points, rows that are seen, rows that are sampled


@dataclass(frozen=True)
class Picture:
    """A drawing by its axes; `alt` says what it shows to those who cannot see it, `caption` stands below it."""

    axes: Axes
    alt: str
    caption: str = ""
    size: str = "half"
    """Of the page's width: "half", "small" (a third), "bar" (a colour bar), or "whole"."""


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading; what is `more` is folded away under its caption."""

    title: str
    words: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str | Sequence[Sequence[str]]] = field(default_factory=dict)
    """Texts, and tables by their rows, the titles of the columns first."""
    reading: str = ""
    """How the section is read, a name of `templates/reading.html`."""

    @property
    def beside(self) -> bool:
        """Whether there is one picture, which stands beside the words where there is room."""
        return len(self.pictures) == 1

    @property
    def name(self) -> str:
        """The section's identity in links."""
        return re.sub(r"[^a-z]+", "-", self.title.lower()).strip("-")


def sections_of(model: Any, X: Any, summary: Summary) -> list[Section]:
    """The sections on what was found; those on parts that a model does not have are left out."""
    found: list[Section] = []
    match model:
        case SpectralDecomposition():
            found = [_spectrum(model, summary), *_dynamics(model), *_held_out(model), *_eigenfunctions(model, X)]
            found += _patterns(model)
        case HermiteRegressor():
            found = [*_penalties(model.cv_curve_, model.alpha_), *_prediction(model, X)]
        case InvariantRegressor():
            found = [_levels(model, summary), *_prediction(model, X)]
        case SDPEmbedding() | DiffusionMap() | KernelEmbedding():
            found = [_spectrum(model, summary), *_embedding(model, X)]
    return [*found, *_landmarks(model, X, summary), *_choice(model, summary), *_rank(model)]


def _spectrum(model: Any, summary: Summary) -> Section:
    """The values with their errors."""
    values, words = values_of(model), []
    decomposed = isinstance(model, SpectralDecomposition)
    lag = model.moments_.operator.lag if decomposed else None
    if decomposed and np.isnan(model.held_out_).all() and model.trusted_.any():
        words.append("No value is known on rows held out: trusted are those with narrow intervals.")
    times = [] if lag is None else [f"{time:.3g}" for time in model.timescales_[0, :3]]
    if times:
        where = f"(lag {lag}; daskspectral.plot.timescales compares lags)"
        words.append(f"Implied timescales, in rows: {', '.join(times)} {where}.")
    if len(values) > MOST:
        words.append(f"The first {MOST} are drawn.")
    what = f"{min(len(values), MOST)} values against their index, from {values[0]:.3g} to {values[-1]:.3g}"
    if np.iscomplexobj(values):
        what = f"{len(values)} complex eigenvalues in the plane"
    axes = plot.spectrum(model, count=MOST, ax=axes_of(None, SIZE))
    picture = Picture(axes, f"The spectrum: {what}. {summary.verdict}")
    more = {"All values": summary.table(details=True)}
    return Section("Spectrum", words, [picture], more=more, reading="spectrum" if decomposed else "")


def _dynamics(model: SpectralDecomposition) -> list[Section]:
    """The timescales by the lag and the Chapman-Kolmogorov test; nothing of a fit at one lag."""
    if not hasattr(model, "lags_") or len(model.lags_) < 2 or not len(model.timescales_[0]):
        return []
    alt = (
        f"Implied timescales of {model.timescales_.shape[1]} processes at the lags {', '.join(map(str, model.lags_))}."
    )
    pictures = [Picture(plot.timescales(model, ax=axes_of(None, SIZE)), alt)]
    if model.moments_.right_basis is None:
        alt = "The autocorrelation of each process by the lag, predicted by the first lag and measured."
        pictures.append(Picture(plot.chapman_kolmogorov(model, ax=axes_of(None, SIZE)), alt))
    words, sets = [], getattr(model, "sets_", None)
    if sets is not None:
        words = [f"{dynamic_facts(model)['sets'].capitalize()}."]
        pictures.append(Picture(plot.chapman_kolmogorov(model, sets=True, ax=axes_of(None, SIZE)), "The same by sets."))
    return [Section("Slow processes", words, pictures, reading="dynamics")]


def _held_out(model: SpectralDecomposition) -> list[Section]:
    """Fitted against held-out values; nothing where the fit has none."""
    values, other = values_of(model).real, model.held_out_
    try:
        axes = plot.held_out(model)
    except ValueError:
        return []
    if vanishing(values).all():
        return []  # the constant's 0 is the same on any rows
    largest = maximised(model.moments_.operator, values)
    ratio = excess(values, other, maximised=largest)
    words = []
    if np.isfinite(ratio):
        known = ~np.isnan(other) & ~vanishing(values)
        agree, count = np.count_nonzero(agreeing(values, other) & known), np.count_nonzero(known)
        far = "not all of the functions hold up on new rows"
        if ratio > MEDIAN:
            far = "the functions follow accidents of the rows"
        elif agree == count:
            far = "the functions hold up on new rows"
        first, second = ("fitted", "held-out") if largest else ("held-out", "fitted")
        apart = f"{100 * abs(ratio - 1):.2g} % {'larger' if ratio >= 1 else 'smaller'}"
        words = [f"In the median {first} values are {apart} than the {second} ones: {far}."]
        words.append(f"{agree} of {count} differ by less than a tenth.")
    alt = " ".join(["Values of the fit against the same values on rows held out.", *words])
    return [Section("Held out", words, [Picture(axes, alt)], reading="held_out")]


def _penalties(curve: Any, taken: float | None) -> list[Section]:
    """The mean squared error on rows left out, by the penalty."""
    if curve is None or len(curve) == 0:
        return []
    axes = plain(axes_of(None, WIDE))
    penalties, errors = np.asarray(curve, dtype=float)[:, :2].T
    known = np.isfinite(errors) & (penalties > 0)
    penalties, errors = penalties[known], np.abs(errors[known])
    axes.plot(penalties, errors, color=BLUE, marker="o", markersize=3, linewidth=1.2, label="each penalty")
    if taken is not None and taken > 0:
        axes.axvline(taken, color=MUTED, linewidth=1.0, linestyle="--", label="taken")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(power)
    if errors.max(initial=0.0) > 30 * errors.min(initial=np.inf):
        axes.set_yscale("log")  # within less, powers of ten would leave the axis without a number
        axes.yaxis.set_major_formatter(power)
    axes.minorticks_off()
    axes.set(xlabel="penalty", ylabel="mean squared error")
    above(axes)
    words = ["The mean squared error on rows left out, by the penalty."]
    if taken is not None and len(errors):
        near = np.abs(np.log(penalties / taken)).argmin() if taken > 0 else 0
        error = f"the mean squared error is {errors[near]:.3g}"
        words = [f"On rows left out {error} with the penalty {taken:.3g}, which was taken."]
        if penalties[near] in (penalties.min(), penalties.max()):
            words.append("It is the last one that was tried.")
    return [Section("Held out", words, [Picture(axes, " ".join(words))], reading="penalties")]


def _levels(model: InvariantRegressor, summary: Summary) -> Section:
    """How large a part of the target each eigenspace has."""
    squares = np.array([float(np.linalg.norm(c) ** 2) for c in model.coef_])
    axes = plain(axes_of(None, WIDE))
    axes.bar(np.arange(len(squares)), squares / (squares.sum() or 1.0), color=BLUE, width=0.7)
    counted(axes.xaxis)
    axes.set(xlabel="eigenspace", ylabel="share of the square")
    axes.axhline(0, color=LINE, linewidth=0.8)
    words = [
        f"{np.sum(model.invariant_dimensions_)} functions of {model.n_eigenfunctions_} are left as they are by the "
        f"group; the fit takes {np.count_nonzero(squares)} of {len(squares)} eigenspaces."
    ]
    picture = Picture(axes, f"Shares of {len(squares)} eigenspaces in the fitted function.")
    return Section("Eigenspaces", words, [picture], more={"All eigenspaces": summary.table()}, reading="eigenspaces")


def _eigenfunctions(model: SpectralDecomposition, X: Any) -> list[Section]:
    """The eigenfunctions over rows of X, or over what the model knows of places; of Cross those of both views.

    X are rows, a list of trajectories, or a tuple of views; without the second view its landmarks stand for it.
    """
    views = _views(model, X)
    if X is not None and (model.moments_.operator.lag is not None or _is_field(model)):
        return _along(model, views)
    sections = _over(model, views[0], right=False)
    if has_right_view(model):
        sections += _over(model, views[1] if len(views) > 1 else None, right=True)
    return sections


def _views(model: Any, X: Any) -> Sequence[Any]:
    """The trajectories or views of X, one where the operator takes one; a list of files is one, too.

    Raises ValueError for more views than the operator has.
    """
    operator = model.moments_.operator if isinstance(model, SpectralDecomposition) else None
    if operator is None or len(operator.views) < 2 or not isinstance(X, (list, tuple)) or not X:
        return (X,)
    if operator.lag is None and len(X) > len(operator.views):
        raise ValueError(f"{operator} is of {len(operator.views)} views of each row; {len(X)} are given")
    return X


def _title(model: Any, right: bool = False) -> str:
    if not is_singular(model):
        return "Eigenfunctions"
    return ("Right s" if right else "Left s" if has_right_view(model) else "S") + "ingular functions"


def _over(model: Any, X: Any, *, right: bool) -> list[Section]:
    """The functions over rows of X, or over the landmarks."""
    title = _title(model, right)
    try:
        canvas = View(model, right).canvas(X, max_points=POINTS, grid=GRID, shown=SHOWN)
    except ValueError as error:
        if X is not None:
            raise
        return [Section(title, [f"They are not drawn: {error}."])]
    numbers = np.flatnonzero(~still(canvas.values))[:COUNT].tolist()
    if not numbers:
        return []
    over, hint = f"rows of the {'second view' if right else 'data'}", []
    if X is None:
        over = "the box of the lattice" if canvas.box else "the landmarks"
        hint = ["With the points of the fit (daskspectral report model points) they are drawn over the data."]
        if right:
            hint = ["With the second view of the fit (--view) they are drawn over its rows."]
    which = f"first {len(numbers)} that are" if len(numbers) > 1 else "first that is"
    words = [f"The {which} not constant, over {over}: {canvas.what}."]
    if isinstance(canvas, Plane):
        words.append(f"Across is {canvas.names[0]}, upward {canvas.names[1]}.")
    words += hint
    if np.iscomplexobj(values_of(model)):
        words.append("Drawn are the real parts.")
    scale, pictures = canvas.scale(numbers), []
    for i in numbers:
        axes = canvas.picture(i, scale, size=SMALL)
        _thinned(axes, labels=isinstance(canvas, Pairs))
        pictures.append(Picture(axes, f"{_named(model, i)}: {canvas.what}.", _named(model, i), "small"))
    if not isinstance(canvas, Line):
        axes = axes_of(None, (3.8, 0.6))
        scale.bar(axes, "value of the function", cax=True, orientation="horizontal")
        alt = f"The colours, from {scale.edges[0]:.2g} to {scale.edges[-1]:.2g}."
        pictures.append(Picture(axes, alt, size="bar"))
    return [Section(title, words, pictures, reading="functions")]


def _named(model: Any, i: int) -> str:
    return value_label(model, i) + ("" if model.trusted_[i] else " (not trusted)")


def _thinned(axes: Any, *, labels: bool) -> None:
    """Few ticks; the names of the axes only where they differ from panel to panel."""
    from matplotlib.ticker import MaxNLocator

    if axes.name != "rectilinear":
        return
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(3))
        axis.set_label_text(shown(axis.get_label_text(), SHORT) if labels else "")


def _is_field(model: Any) -> bool:
    """Whether the columns have dimensions of their own, such as latitude and longitude."""
    layout = vars(model).get("layout_")
    return layout is not None and not layout.trivial and any(v.dims for v in layout.variables)


def _along(model: SpectralDecomposition, trajectories: Sequence[Any]) -> list[Section]:
    """The functions along rows that follow one another: the first of several trajectories, or times of a field."""
    first, lag = trajectories[0], model.moments_.operator.lag
    view = View(model)
    source = view.source(first)
    window = min(source.n, SERIES if lag is None else _telling_rows(values_of(model), model.timescales_[0], lag))
    numbers, points = take_rows(source, np.arange(0, window, max(1, window // SERIES_ROWS)))
    values, (label, x) = view.evaluate(points), view.along(first, numbers)
    pictures = []
    for i in np.flatnonzero(~still(values))[:8].tolist():
        axes = draw_series(axes_of(None, (4.2, 1.6)), x, values[:, i], label=label)
        pictures.append(Picture(axes, f"{_named(model, i)} along {label}.", _named(model, i)))
    part = f"the first {window} rows" if window < source.n else f"all {source.n} rows"
    of = f" of the first of {len(trajectories)} trajectories" if len(trajectories) > 1 else ""
    words = [f"The first {len(pictures)} that are not constant, along {part}{of}."]
    return [Section(_title(model), words, pictures, reading="series")] if pictures else []


def _telling_rows(values: Any, times: Any, lag: int) -> int:
    """Rows in which a trajectory jumps, or turns, about twenty times."""
    rows = 20 * times[0] if len(times) and np.isfinite(times[0]) else SERIES
    turns = np.abs(np.angle(values))
    if np.iscomplexobj(values) and turns.max(initial=0.0) > 1e-6:
        rows = 20 * 2 * np.pi * lag / turns[turns > 1e-6].min()
    return int(np.clip(rows, 400, 100_000))


def _patterns(model: SpectralDecomposition) -> list[Section]:
    """The regression of the columns on the functions, as maps in the dimensions of a field."""
    if not _is_field(model):
        return []
    try:
        known = model.patterns_
    except ValueError:
        return []
    count = min(6, len(known.single))
    pictures = []
    for name, maps in in_the_field(model, known.single[:count], ("component",)).items():
        for i in range(count) if maps.ndim in (2, 3) else ():
            axes = draw_field(maps.isel(component=i))
            share = f"{100 * known.explained[i]:.3g} % of the variance"
            pictures.append(Picture(axes, f"The pattern of function {i} in {name}.", f"function {i}: {share}"))
    words = ["The regression of the field on each function."]
    return [Section("Patterns", words, pictures, reading="patterns")] if pictures else []


def _prediction(model: HermiteRegressor | InvariantRegressor, X: Any) -> list[Section]:
    """The fitted function of a regression, over rows of X, landmarks, or points of the manifold."""
    view = View(model)

    def predicted(points: Array) -> Array:
        values = np.asarray(model.predict(view.like_fit(points), progress=False), dtype=float)
        return values.reshape(*points.shape[:-1], -1)

    try:
        points, over = _places(view, X)
        canvas = view.over(points, predicted, grid=GRID, shown=SHOWN, box=X is None)
    except ValueError as error:
        return [Section("Prediction", [f"It is not drawn: {error}."])]
    count, pictures = canvas.values.shape[1], []
    for i in range(min(4, count)):
        low, high = np.quantile(canvas.values[:, i], [0.005, 0.995])
        scale = Scale.between(float(low), float(high))
        name = "prediction" if count == 1 else f"target {i}"
        axes = canvas.picture(i, scale)
        if not isinstance(canvas, Line):
            scale.bar(axes, name, shrink=0.8)
        pictures.append(Picture(axes, f"The {name} over {over}: {canvas.what}."))
    return [Section("Prediction", [f"The fitted function over {over}: {canvas.what}."], pictures)]


def _places(view: View, X: Any) -> tuple[Array, str]:
    """Points to draw a prediction over, and what they are."""
    model, known = view.estimator, view.landmarks
    if X is not None:
        return view.sample(X, POINTS), "rows of the data"
    if isinstance(model, InvariantRegressor):
        try:
            return np.asarray(model.manifold_.sample(2000, np.random.default_rng(0))), "points of the manifold"
        except ValueError:
            raise ValueError(f"no points of {model.manifold_} are drawn here; give the points of the fit") from None
    if known is None:
        raise ValueError("the model knows no places; give the points of the fit")
    return known, "the landmarks"


def _embedding(model: Any, X: Any) -> list[Section]:
    """The rows in their first coordinates."""
    values = getattr(model, "embedding_", None)
    if not isinstance(values, np.ndarray):
        if X is None:
            hint = "It is not kept with the model; with the points (daskspectral report model points) it is drawn."
            return [Section("Embedding", [hint])]
        values = np.asarray(model.transform(X, progress=False))
    values = values[:: math.ceil(len(values) / POINTS)]
    count = values.shape[1]
    if count == 0:
        return []
    if count == 1:
        axes = plain(axes_of(None, (5.0, 2.4)))
        axes.hist(values[:, 0], bins=60, color=BLUE)
        axes.set(xlabel="coordinate 0", ylabel="rows")
        return [Section("Embedding", pictures=[Picture(axes, "A histogram of the one coordinate.", size="whole")])]
    third = values[:, 2] if count > 2 else None
    words = [f"{len(values)} rows in their first coordinates{', coloured by the third' if count > 2 else ''}."]
    first = plot.embedding(values, name="coordinate", color=third, label="coordinate 2")
    pictures = [Picture(first, "Rows in the coordinates 0 and 1.")]
    if count > 2:
        second = plot.embedding(values, components=(1, 2), name="coordinate")
        pictures.append(Picture(second, "Rows in the coordinates 1 and 2."))
    return [Section("Embedding", words, pictures)]


def _landmarks(model: Any, X: Any, summary: Summary) -> list[Section]:
    """Where the kernel functions sit; nothing without landmarks, or of a linear kernel, which span the columns."""
    places = View(model).landmarks
    if places is None or isinstance(getattr(model, "kernel_", None), Linear):
        return []
    p, d = places.shape
    words = [f"{p} landmarks in {d} column{'s' if d > 1 else ''}; a function of the basis sits at each."]
    if "support" in summary.details:
        words.append(f"There are {summary.details['support']}.")
    points = None if X is None else View(model).sample(_views(model, X)[0], 2000)
    axes = draw_landmarks(View(model), points)
    if d > 2 and axes.name == "rectilinear":
        words.append("Drawn are the two columns in which they spread most.")
    pictures = [Picture(axes, f"{p} landmarks{'' if points is None else ' over rows of the data'}.")]
    others = View(model, right=True).landmarks if has_right_view(model) else None
    if others is not None:
        words.append(f"The second view has {len(others)} of its own.")
        pictures.append(Picture(draw_landmarks(View(model, right=True), None), words[-1], "of the second view"))
    return [Section("Landmarks", words, pictures, reading="landmarks")]


def _choice(model: Any, summary: Summary) -> list[Section]:
    """What was chosen and why; nothing for a model that chooses nothing."""
    selection = getattr(model, "choice_", None)
    if not isinstance(selection, Selection):
        return []
    if selection.chosen is None:
        return [Section("Choice", [f"{summary.choice[:1].upper()}{summary.choice[1:]}."])]
    words = [f"{summary.facts['chosen']}."]
    if selection.median is not None:
        words.append(f"Scales are in units of the median distance of the rows, {selection.median:.4g}.")
    if selection.edge:
        words.append(f"The best scale is the {selection.edge} that was tried: a better one may lie beyond.")
    pictures = []
    if isinstance(model, SpectralDecomposition):
        alt = f"Scores of {len(selection)} candidates on rows held out, by the kernel's scale; the best is circled."
        pictures = [Picture(plot.choice(model, ax=axes_of(None, TALL)), alt)]
    return [Section("Choice", words, pictures, more={"All candidates": selection.table}, reading="choice")]


def _rank(model: Any) -> list[Section]:
    """How many directions the data determine; nothing where no Gram matrix was summed."""
    moments, pictures, words, seen = moments_of(model), [], [], []
    if moments is None:
        return []
    for name, side in {"gram": "", "right_gram": "Right functions: "}.items():
        matrix = moments.arrays.get(name)
        if matrix is None or matrix.ndim != 2 or len(matrix) > LARGEST:
            continue
        right = name == "right_gram"
        values = gram_values(moments, right=right)
        seen.append(int(np.count_nonzero(values > CUTS[moments.dtype])))
        words.append(f"{side}{seen[-1]} of {len(values)} directions of the Gram matrix are above the cut of rounding.")
        pictures.append(Picture(plot.gram(moments, right=right, ax=axes_of(None, SIZE)), words[-1]))
    if isinstance(model, SpectralDecomposition) and seen and np.any(np.atleast_1d(model.rank_)[: len(seen)] > seen):
        words.append("The rank counts some below the cut too, which the penalty settles in favour of smooth functions.")
    return [Section("Rank", words, pictures, reading="rank")] if pictures else []


def provenance(model: Any, summary: Summary, *, about: str | None, settings: str | None, saved: str | None) -> Section:
    """What the model cost and where it came from: sums, versions, parameters, the settings kept beside it."""
    facts = {} if about is None else {"file": about}
    if saved is not None:
        facts["saved by"] = f"daskspectral {saved}"
    moments = moments_of(model)
    if moments is not None:
        sums, folds = ([] if of is None else list(of.arrays.values()) for of in (moments, moments.folds))
        held, apart = (format_bytes(sum(array.nbytes for array in arrays)) for arrays in (sums, folds))
        operations = 2.0 * moments.count * sum(array.size for array in sums)
        facts |= {
            "rows read": grouped(moments.rows or moments.count),
            "sums": f"{', '.join(moments.arrays)}: {held}, and {apart} apart by fold",
            "arithmetic": f"one pass of about {operations:.2g} operations for products of functions, {moments.dtype}",
            "fingerprint": f"{moments.fingerprint}, of basis, operator and columns: sums with the same one add",
        }
        if moments.skipped:
            facts["rows left out"] = f"{grouped(moments.skipped)} with NaN or infinity"
    elif hasattr(model, "n_passes_"):
        facts["passes"] = f"{model.n_passes_} over the rows, or products with the kernel"
    more: dict[str, Any] = {"What was measured": _cells("name", {**summary.facts, **summary.details})}
    if isinstance(model, Estimator):
        given = sorted(model.plain_params().items())
        shown = {name: f"array {v.shape}" if isinstance(v, np.ndarray) else repr(v) for name, v in given}
        more["Parameters"] = _cells("parameter", shown)
    if settings:
        more["Settings of the command that made it"] = settings
    words = [] if settings else ["No settings are kept beside it: it was made in Python, not by a command."]
    return Section("Provenance", words, facts=facts, more=more)


def _cells(title: str, named: Any) -> list[list[str]]:
    """The rows of a table of names and values, none too long for a cell."""
    texts = {name: str(value) for name, value in named.items()}
    cut = [[name, text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."] for name, text in texts.items()]
    return [[title, "value"], *cut]
