"""The numbers of a report: the spectrum, the values held out, the choice, the rank, and the landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskspectral import plot
from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.notebook import grouped
from daskspectral.estimators.summary import chosen, columns, facts
from daskspectral.estimators.tables import no_errors
from daskspectral.estimators.verdicts import verdict_of
from daskspectral.kernels import Linear
from daskspectral.moments import Moments
from daskspectral.moments.intervals import agreeing
from daskspectral.moments.trust import excess, maximised
from daskspectral.passes.selection import Selection, shortened
from daskspectral.plot.clouds import draw_landmarks
from daskspectral.plot.common import column_names, has_right_view, landmarks_of, preparation_of, values_of, vanishing
from daskspectral.plot.decay import LARGEST, gram_values, implied
from daskspectral.plot.style import axes_of
from daskspectral.report import reading
from daskspectral.report.page import Picture, Section, Table
from daskspectral.solve.whitening import CUTS

MEDIAN = 1.1  # of held-out over fitted values, above which they are said to differ
SIZE, TALL = (4.2, 2.9), (4.2, 3.6)  # of a picture, in inches: text is as large as the page's on a phone
MOST = 60  # values that are drawn


def table_of(model: Any, caption: str = "All values") -> list[Table]:
    """The table of a model's values; none where it has none."""
    found = columns(model, details=True)
    return [Table(caption, [list(row) for row in zip(*found, strict=True)])] if found else []


def spectrum(model: Any) -> Section:
    """The values with their errors, and how many are trusted."""
    values = values_of(model)
    words = [verdict_of(model)]
    if isinstance(model, SpectralDecomposition):
        words += _trust(model)
    if np.iscomplexobj(values):
        what = f"{len(values)} complex eigenvalues in the plane"
    else:
        what = f"{min(len(values), MOST)} values against their index, from {values[0]:.3g} to {values[-1]:.3g}"
    if len(values) > MOST:
        words.append(f"The first {MOST} are drawn.")
    picture = Picture(plot.spectrum(model, count=MOST, ax=axes_of(None, SIZE)), f"The spectrum: {what}. {words[0]}")
    more: list[Any] = table_of(model)
    return Section(
        "Spectrum",
        words,
        [picture],
        more=more,
        reading=reading.SPECTRUM if isinstance(model, SpectralDecomposition) else "",
    )


def _trust(model: SpectralDecomposition) -> list[str]:
    why = no_errors(model)
    if why:
        return [f"{why[:1].upper()}{why[1:]}."]
    lag = model.moments_.operator.lag
    words = []
    values, other = values_of(model), model.held_out_
    if not model.trusted_.all() and not np.iscomplexobj(values):
        k = int(np.argmin(model.trusted_))
        ends = getattr(model, model.solver_.errors)[k]
        held = "" if np.isnan(other[k]) else f", and it is {other[k]:.3g} on rows held out"
        words = [f"Value {k} is {values[k]:.3g}; its interval is {ends[0]:.3g} to {ends[1]:.3g}{held}: too uncertain."]
    if np.isnan(other).all():
        words.append("No value is known on rows held out: trusted are those with narrow intervals.")
    times = [] if lag is None else [f"{t:.3g}" for t in implied(values_of(model), lag)[:3]]
    if times:
        words += [
            f"Implied timescales, in rows: {', '.join(times)} (lag {lag}; daskspectral.plot.timescales compares lags)."
        ]
    return words


def held_out(model: SpectralDecomposition) -> list[Section]:
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
    first, second = ("fitted", "held-out") if largest else ("held-out", "fitted")
    words = []
    if np.isfinite(ratio):
        known = ~np.isnan(other) & ~vanishing(values)
        agree, count = int(np.count_nonzero(agreeing(values, other) & known)), int(np.count_nonzero(known))
        far = (
            "the functions follow accidents of the rows"
            if ratio > MEDIAN
            else "the functions hold up on new rows"
            if agree == count
            else "not all of the functions hold up on new rows"
        )
        apart = f"{100 * abs(ratio - 1):.2g} % {'larger' if ratio >= 1 else 'smaller'}"
        words = [f"In the median {first} values are {apart} than the {second} ones: {far}."]
        words.append(f"{agree} of {count} differ by less than a tenth.")
    alt = "Values of the fit against the same values on rows held out" + (f"; {words[0]}" if words else ".")
    return [Section("Held out", words, [Picture(axes, alt)], reading=reading.HELD_OUT)]


def landmarks(model: Any, points: Any) -> list[Section]:
    """Where the kernel functions sit; nothing for a model without landmarks."""
    places = landmarks_of(model)
    if places is None or not _sits(model):
        return []
    p, d = places.shape
    names = column_names(model)
    words = [f"{p} landmarks in {d} column{'s' if d > 1 else ''}; a function of the basis sits at each."]
    support = getattr(model, "support_", None)
    if support is not None:
        least, middle = (rounded(float(f(support))) for f in (np.min, np.median))
        words.append(f"Under a function are {least} effective points at least, and {middle} in the median.")
    shown = None if points is None or points.shape[1] != d else points[:2000]
    axes = draw_landmarks(places, shown, names, preparation_of(model).scale)
    if d > 2 and axes.name == "rectilinear":
        words.append("Drawn are the two columns in which they spread most.")
    over = " over rows of the data" if shown is not None else ""
    pictures = [Picture(axes, f"{p} landmarks{over}.")]
    others = landmarks_of(model, right=True) if has_right_view(model) else None
    if others is not None:
        axes = draw_landmarks(others, None, column_names(model, right=True), preparation_of(model, right=True).scale)
        pictures.append(Picture(axes, f"{len(others)} landmarks of the second view.", "of the second view"))
        words.append(f"The second view has {len(others)} of its own.")
    return [Section("Landmarks", words, pictures, reading=reading.LANDMARKS)]


def _sits(model: Any) -> bool:
    """Whether functions of the basis sit at landmarks; those of a linear kernel span the columns, and are no places."""
    return landmarks_of(model) is not None and not isinstance(getattr(model, "kernel_", None), Linear)


def rounded(number: float) -> str:
    """Three digits of a number, whole from a thousand on."""
    return grouped(round(number)) if number >= 1000 else f"{number:.3g}"


def choice(model: Any) -> list[Section]:
    """What was chosen and why; nothing for a model that chooses nothing."""
    selection = getattr(model, "choice_", None)
    if not isinstance(selection, Selection):
        return []
    best = selection.chosen
    if best is None:
        return [Section("Choice", [f"Nothing was compared: {selection.reason or 'every parameter was given'}."])]
    taken = (
        chosen(model)
        if isinstance(model, SpectralDecomposition)
        else f"{shortened(best.kernel)}; best of {len(selection)}"
    )
    words = [f"{taken[:1].upper()}{taken[1:]}."]
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
    return [Section("Choice", words, pictures, more=[Table("All candidates", selection.table)], reading=reading.CHOICE)]


def rank(model: Any) -> list[Section]:
    """How many directions the data determine; nothing for a model without moments."""
    moments = model if isinstance(model, Moments) else getattr(model, "moments_", None)
    if not isinstance(moments, Moments):
        return []
    pictures, words, seen = [], [], []
    for right in (False, True):
        name, side = ("right_gram", "Right functions: ") if right else ("gram", "")
        matrix = moments.arrays.get(name)
        if matrix is None or matrix.ndim != 2 or len(matrix) > LARGEST:
            continue
        values = gram_values(moments, right=right)
        above = int(np.count_nonzero(values > CUTS[moments.dtype]))
        seen.append(above)
        alt = f"Eigenvalues of the {name.replace('_', ' ')} matrix fall below the cut after {above} of {len(values)}."
        words.append(f"{side}{above} of {len(values)} directions of the Gram matrix are above the cut of rounding.")
        pictures.append(Picture(plot.gram(moments, right=right, ax=axes_of(None, SIZE)), alt))
    described = facts(model, details=True) if isinstance(model, SpectralDecomposition) else {}
    if described and seen and np.any(np.atleast_1d(model.rank_)[: len(seen)] > seen):
        words.append("The rank counts some below the cut too, which the penalty settles in favour of smooth functions.")
    names = ("rank", "status", *(("support", "right support") if _sits(model) else ()), "folds")
    kept: dict[str, str] = {name: str(described[name]) for name in names if name in described}
    if not pictures and not kept:
        return []
    return [Section("Rank and support", words, pictures, kept, reading=reading.RANK)]
