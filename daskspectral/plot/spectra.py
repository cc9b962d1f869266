"""Pictures of numbers: the spectrum with its error bars, the values held out, and the scores of the choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators import SpectralDecomposition
from daskspectral.plot.common import (
    Embedding,
    check_fitted,
    is_singular,
    require_matplotlib,
    values_of,
    vanishing,
)
from daskspectral.plot.style import (
    BLUE,
    FAINT,
    INK,
    LINE,
    MUTED,
    PAPER,
    RED,
    SERIES,
    above,
    axes_of,
    counted,
    legend,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = ("o", "s", "^", "D", "v", "P")


def spectrum(
    estimator: SpectralDecomposition | Embedding,
    *,
    exact: ArrayLike | None = None,
    ax: Axes | None = None,
    count: int | None = None,
) -> Axes:
    """Draw the eigenvalues, or singular values, by index; `exact` values, any number of them, are drawn as crosses.

    Where the fit has error bars, lines reach from end to end of the 95 % intervals, ticks are the values on rows that
    were not fitted to, values that are not trusted are hollow circles, and the trusted ones have a shade behind them.
    The eigenvalue 0 of a constant is a diamond. Complex eigenvalues are drawn in the plane, with the intervals of their
    real parts. The first `count` values are drawn, by default all. Raises ImportError without matplotlib, TypeError for
    estimators without a spectrum.
    """
    require_matplotlib()
    check_fitted(estimator, SpectralDecomposition | Embedding)
    values, singular = values_of(estimator)[:count], is_singular(estimator)
    plane = np.iscomplexobj(values)
    least = singular or isinstance(estimator, Embedding)
    index, constant = np.arange(len(values)), np.zeros(len(values), bool) if least else vanishing(values)
    axes = plain(axes_of(ax))
    axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)
    doubted = np.zeros(len(values), bool)
    if plane:
        doubted = _draw_real_errors(axes, estimator, values)
        index, values = values.real, values.imag
        axes.axvline(0, color=LINE, linewidth=0.8, zorder=0)
        if not values.any():
            axes.set_ylim(-1, 1)  # all of them are real
    else:
        doubted = _draw_errors(axes, estimator, values, constant)
        counted(axes.xaxis)
    named = "trusted" if doubted.any() else "learned"
    size = mark_size(len(values))
    for some, label, mark, edge, face in (
        (~constant & ~doubted, named, "o", BLUE, BLUE),
        (~constant & doubted, "not trusted", "o", BLUE, PAPER),
        (constant, "constant", "D", MUTED, MUTED),
    ):
        if some.any():
            style: dict[str, Any] = {"marker": mark, "linestyle": "none", "markersize": size, "label": label}
            axes.plot(index[some], values[some], mec=edge, mfc=face, **style)
    if exact is not None:
        true = np.asarray(exact)
        at = (true.real, true.imag) if plane else (np.arange(len(true)), true)
        axes.plot(*at, "x", color=RED, markersize=7, label="exact")
    name = "singular value" if singular else "eigenvalue"
    axes.set(xlabel="real part" if plane else "index", ylabel="imaginary part" if plane else name)
    above(axes)
    return axes


def mark_size(count: int) -> float:
    """The size of marks, in points, of which `count` stand side by side."""
    return min(4.5, max(2.0, 110 / max(count, 1)))


def _draw_errors(
    axes: Axes, estimator: Any, values: NDArray[np.inexact[Any]], constant: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Draw intervals and held-out values where there are any; which values are not trusted."""
    index, intervals = np.arange(len(constant)), None
    if isinstance(estimator, SpectralDecomposition):
        intervals = getattr(estimator, estimator.solver_.errors, None)
    if intervals is None or np.isnan(intervals).all():
        axes.vlines(index, 0, values, color=LINE, linewidth=1)
        return np.zeros(len(values), bool)
    intervals = intervals[: len(values)]
    doubted = ~estimator.trusted_[: len(values)]
    if doubted.any() and not doubted.all():
        edges, across = np.arange(len(values) + 1) - 0.5, axes.get_xaxis_transform()
        axes.stairs(~doubted, edges, fill=True, color=FAINT, linewidth=0, zorder=-1, transform=across)
    styles: tuple[tuple[Any, Literal["solid", "dashed"]], ...] = ((~doubted, "solid"), (doubted, "dashed"))
    for some, style in styles:
        shown = index[some & ~constant]
        low, high = intervals[shown].T
        axes.vlines(shown, low, high, color=BLUE, linewidth=1.3, linestyles=style)
    if not constant.all():
        axes.plot([], [], color=BLUE, linewidth=1.3, label="95 % interval")
    held = estimator.held_out_[: len(values)]
    known = ~np.isnan(held) & ~constant
    if known.any():
        size = 2 * mark_size(len(values))
        axes.plot(index[known], held[known], "_", color=INK, markersize=size, markeredgewidth=1.0, label="held out")
    # an interval may be far wider than all values: the values decide what is shown
    seen = np.concatenate([values, held[known], intervals[~doubted].ravel()])
    low, high = min(0.0, float(np.nanmin(seen))), max(0.0, float(np.nanmax(seen)))
    high = high if low < high else 1.0  # the constant's 0 alone
    top = np.fmin(intervals[:, 1], high + 0.3 * (high - low))
    room = max(high, float(np.nanmax(top))) - high
    axes.set_ylim(low - 0.04 * (high - low), high + room + 0.06 * (high - low))
    axes.set_xlim(-0.6, len(values) - 0.4)
    return np.asarray(doubted)


def _draw_real_errors(axes: Axes, estimator: Any, values: NDArray[np.inexact[Any]]) -> NDArray[np.bool_]:
    """Draw the intervals of the real parts of complex values where there are any; which values are not trusted."""
    intervals = getattr(estimator, estimator.solver_.errors, None)
    if intervals is None or np.isnan(intervals).all():
        return np.zeros(len(values), bool)
    low, high = intervals[: len(values)].T
    axes.hlines(values.imag, low, high, color=BLUE, linewidth=1.3, label="95 % interval")
    return np.asarray(~estimator.trusted_[: len(values)])


def held_out(estimator: SpectralDecomposition, *, ax: Axes | None = None) -> Axes:
    """Draw each value against its value on rows that were not fitted to; on the line they agree.

    Values that are not trusted are hollow; the shade is where both agree to a tenth. Raises ImportError without
    matplotlib, TypeError for other estimators, ValueError where the fit has no values held out.
    """
    require_matplotlib()
    check_fitted(estimator, SpectralDecomposition)
    values = values_of(estimator)
    known = ~np.isnan(estimator.held_out_)
    if not known.any() or np.iscomplexobj(values):
        raise ValueError(f"the fit has no values on rows held out: {estimator.status_}")
    values, other = values[known].real, estimator.held_out_[known]
    axes = plain(axes_of(ax, (3.6, 3.4)))
    low, high = min(0.0, values.min(), other.min()), max(0.0, values.max(), other.max())
    high = high if low < high else 1.0  # the constant's 0 alone
    pad = 0.05 * (high - low)
    ends = np.array([low - pad, high + pad])
    axes.fill_between(ends, ends - 0.1 * np.abs(ends), ends + 0.1 * np.abs(ends), color=FAINT, linewidth=0, zorder=-1)
    axes.plot(ends, ends, color=MUTED, linewidth=0.8)
    trusted = estimator.trusted_[known]
    named = "trusted" if not trusted.all() else "learned"
    for some, label, face in ((trusted, named, BLUE), (~trusted, "not trusted", PAPER)):
        if some.any():
            size = mark_size(len(values))
            axes.plot(values[some], other[some], "o", mec=BLUE, mfc=face, markersize=size, label=label)
    name = "singular value" if is_singular(estimator) else "eigenvalue"
    axes.set(xlabel=f"{name} of the fit", ylabel="on rows held out", xlim=ends, ylim=ends)
    axes.set_aspect("equal")
    above(axes)
    return axes


def choice(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the scores of the automatic choice by scale, in median distances: a line for each kernel.

    Of the penalties that were tried with a kernel and scale, the best is drawn. The candidate that was taken is
    circled. Raises ImportError without matplotlib, TypeError for other estimators, ValueError where nothing was
    compared.
    """
    require_matplotlib()
    if not isinstance(estimator, SpectralDecomposition):
        raise TypeError(f"a choice is drawn of a fitted SpectralDecomposition; got {type(estimator).__name__}")
    check_is_fitted(estimator)
    selection = getattr(estimator, "choice_", None)
    if selection is None or selection.chosen is None:
        raise ValueError(
            f"nothing was compared: {getattr(selection, 'reason', '') or 'every parameter was given'}; a choice has "
            "scores to draw with kernel='auto'"
        )
    best = selection.chosen
    lines: dict[str, dict[float, float]] = {}
    for candidate in selection.candidates:
        line = lines.setdefault(_family(candidate.kernel), {})
        line[candidate.factor] = max(candidate.score, line.get(candidate.factor, -np.inf))
    axes = plain(axes_of(ax, (5.4, 4.2)))
    for number, (family, line) in enumerate(sorted(lines.items())):
        factors = sorted(line)
        scores = [line[factor] for factor in factors]
        mark: dict[str, Any] = {
            "color": SERIES[number % len(SERIES)],
            "marker": _MARKS[number % len(_MARKS)],
            "markersize": 3,
        }
        axes.plot(factors, scores, linewidth=1.2, label=family, **mark)
    axes.plot(best.factor, best.score, "o", mfc="none", mec=INK, markersize=11, label="taken")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda factor, _: f"{factor:.3g}")
    finite = np.array([c.score for c in selection.candidates if np.isfinite(c.score)])
    top, bottom = finite.max(), max(finite.min(), finite.max() - 6 * (finite.max() - np.median(finite)))
    if top > bottom:
        axes.set_ylim(bottom - 0.05 * (top - bottom), top + 0.08 * (top - bottom))
    axes.set(xlabel="scale of the kernel, in median distances", ylabel="score on rows held out")
    legend(axes, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2)
    return axes


def _family(kernel: str) -> str:
    """A kernel as the candidates write it, without its scale."""
    return re.sub(r",? ?scale=[^,)]*", "", kernel).replace("()", "").replace("(, ", "(")
