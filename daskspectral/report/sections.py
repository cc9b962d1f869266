"""The sections of a report, by the kind of the model: numbers and their pictures, and where the model came from."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.utils import format_bytes

from daskspectral import plot
from daskspectral.estimators import (
    DiffusionMap,
    HermiteRegressor,
    InvariantRegressor,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.summary import Summary, grouped, moments_of
from daskspectral.kernels import Linear
from daskspectral.moments.intervals import agreeing
from daskspectral.moments.trust import excess, maximised
from daskspectral.passes.selection import Selection
from daskspectral.plot.clouds import draw_landmarks
from daskspectral.plot.common import has_right_view, landmarks_of, values_of, vanishing
from daskspectral.plot.functions import sample
from daskspectral.plot.spectra import LARGEST, gram_values, implied, power
from daskspectral.plot.style import BLUE, LINE, MUTED, above, axes_of, counted, plain
from daskspectral.report import functions
from daskspectral.report.page import Picture, Section
from daskspectral.solve.whiten import CUTS

MEDIAN = 1.1  # of held-out over fitted values, above which they are said to differ
SIZE, TALL, WIDE = (4.2, 2.9), (4.2, 3.6), (4.2, 2.6)  # of a picture, in inches: text is as large as a phone's
MOST = 60  # values that are drawn
LONGEST = 400  # characters of a value that is shown


def sections_of(model: Any, X: Any, summary: Summary) -> list[Section]:
    """The sections on what was found; those on parts that a model does not have are left out."""
    found: list[Section] = []
    match model:
        case SpectralDecomposition():
            found = [_spectrum(model, summary), *_held_out(model), *functions.eigenfunctions(model, X)]
            found += functions.patterns(model)
        case HermiteRegressor():
            found = [*_penalties(model.cv_curve_, model.alpha_), *functions.prediction(model, X)]
        case InvariantRegressor():
            found = [_levels(model, summary), *functions.prediction(model, X)]
        case SDPEmbedding() | DiffusionMap() | KernelEmbedding():
            found = [_spectrum(model, summary), *functions.embedding(model, X)]
    return [*found, *_landmarks(model, X, summary), *_choice(model, summary), *_rank(model)]


def _spectrum(model: Any, summary: Summary) -> Section:
    """The values with their errors."""
    values, words = values_of(model), []
    decomposed = isinstance(model, SpectralDecomposition)
    lag = model.moments_.operator.lag if decomposed else None
    if decomposed and np.isnan(model.held_out_).all() and model.trusted_.any():
        words.append("No value is known on rows held out: trusted are those with narrow intervals.")
    times = [] if lag is None else [f"{time:.3g}" for time in implied(values, lag)[:3]]
    if times:
        where = f"(lag {lag}; daskspectral.plot.timescales compares lags)"
        words.append(f"Implied timescales, in rows: {', '.join(times)} {where}.")
    if len(values) > MOST:
        words.append(f"The first {MOST} are drawn.")
    what = f"{min(len(values), MOST)} values against their index, from {values[0]:.3g} to {values[-1]:.3g}"
    if np.iscomplexobj(values):
        what = f"{len(values)} complex eigenvalues in the plane"
    picture = Picture(
        plot.spectrum(model, count=MOST, ax=axes_of(None, SIZE)), f"The spectrum: {what}. {summary.verdict}"
    )
    more = {"All values": summary.table(details=True)}
    return Section("Spectrum", words, [picture], more=more, reading="spectrum" if decomposed else "")


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


def _landmarks(model: Any, X: Any, summary: Summary) -> list[Section]:
    """Where the kernel functions sit; nothing without landmarks, or of a linear kernel, which span the columns."""
    places = landmarks_of(model)
    if places is None or isinstance(getattr(model, "kernel_", None), Linear):
        return []
    p, d = places.shape
    words = [f"{p} landmarks in {d} column{'s' if d > 1 else ''}; a function of the basis sits at each."]
    if "support" in summary.details:
        words.append(f"There are {summary.details['support']}.")
    points = None if X is None else sample(model, functions.views_of(model, X)[0], 2000, 0)
    axes = draw_landmarks(model, points)
    if d > 2 and axes.name == "rectilinear":
        words.append("Drawn are the two columns in which they spread most.")
    pictures = [Picture(axes, f"{p} landmarks{'' if points is None else ' over rows of the data'}.")]
    others = landmarks_of(model, right=True) if has_right_view(model) else None
    if others is not None:
        words.append(f"The second view has {len(others)} of its own.")
        pictures.append(Picture(draw_landmarks(model, None, right=True), words[-1], "of the second view"))
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
        alt = (
            f"Scores of {len(selection)} candidates on rows held out, by the scale of the kernel; the best is circled."
        )
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
