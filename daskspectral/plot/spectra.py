"""Pictures of numbers: the spectrum with its error bars, and the scores of the automatic choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators import SpectralDecomposition
from daskspectral.plot.common import (
    Estimator,
    check_fitted,
    is_singular,
    require_matplotlib,
    values_of,
    vanishing,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _PALE = "tab:blue", "#b5cde1"


def spectrum(estimator: Estimator, *, exact: ArrayLike | None = None) -> Figure:
    """Draw the eigenvalues, or singular values, by index; `exact` values, any number of them, are drawn as crosses.

    Where the fit has error bars, lines reach from end to end of the 95 % intervals, ticks are the values on rows that
    were not fitted to, and values beyond the trusted ones are pale. The eigenvalue 0 of a constant is a hollow circle.
    Complex eigenvalues are drawn in the plane.
    """
    require_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    check_fitted(estimator)
    values, singular = values_of(estimator), is_singular(estimator)
    plane = np.iscomplexobj(values)
    index, constant = np.arange(len(values)), np.zeros(len(values), bool) if singular else vanishing(values)
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(0, color="0.8", linewidth=0.8)
    pale = np.zeros(len(values), bool)
    if plane:
        index, values = values.real, values.imag
    else:
        pale = _draw_errors(axes, estimator, constant)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4.5}
    named = "trusted" if pale.any() else "learned"
    for some, label, colour, face in (
        (~constant & ~pale, named, _BLUE, _BLUE),
        (~constant & pale, "not trusted" if pale.any() else "learned", _PALE, _PALE),
        (constant, "constant", _BLUE, "white"),
    ):
        if some.any():
            axes.plot(index[some], values[some], mec=colour, mfc=face, label=label, **style)
    if exact is not None:
        true = np.asarray(exact)
        at = (true.real, true.imag) if plane else (np.arange(len(true)), true)
        axes.plot(*at, "x", color="tab:red", markersize=7, label="exact")
    name = "singular value" if singular else "eigenvalue"
    axes.set(xlabel="real part" if plane else "index", ylabel="imaginary part" if plane else name)
    axes.spines[["top", "right"]].set_visible(False)
    falling = not plane and len(values) > 1 and values[-1] < values[0]
    axes.legend(
        frameon=False, loc="lower left" if falling and not singular else "upper right" if falling else "upper left"
    )
    return figure


def _draw_errors(axes: Axes, estimator: Estimator, constant: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Draw intervals and held-out values where there are any; which values are not trusted."""
    values, index = values_of(estimator), np.arange(len(constant))
    intervals = None
    if isinstance(estimator, SpectralDecomposition):
        intervals = getattr(estimator, estimator.solver_.errors, None)
    if intervals is None or np.isnan(intervals).all():
        axes.vlines(index, 0, values, color="0.85", linewidth=1)
        return np.zeros(len(values), bool)
    pale = index >= estimator.trusted_
    for some, colour in ((~pale, _BLUE), (pale, _PALE)):
        shown = index[some & ~constant]
        axes.vlines(shown, *intervals[shown].T, color=colour, linewidth=1.4)
    held_out, known = estimator.held_out_, ~np.isnan(estimator.held_out_) & ~constant
    axes.plot(index[known], held_out[known], "_", color="black", markersize=9, markeredgewidth=0.9, label="held out")
    # an interval may be far wider than all values: the values decide what is shown
    seen = np.concatenate([values, held_out[known], intervals[~pale].ravel()])
    low, high = min(0.0, float(seen.min())), max(0.0, float(seen.max()))
    room = max(high, float(np.minimum(intervals[:, 1], high + 0.3 * (high - low)).max())) - high
    axes.set_ylim(low - 0.04 * (high - low), high + room + 0.06 * (high - low))
    return np.asarray(pale)


def choice(estimator: SpectralDecomposition) -> Figure:
    """Draw the scores of the automatic choice by scale, in median distances: a line for each kernel and spread.

    Of the penalties that were tried with a kernel, scale and spread, the best is drawn. The candidate that was taken is
    circled. Raises ImportError without matplotlib, TypeError for other estimators, ValueError where nothing was
    compared.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

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
    lines: dict[tuple[str, float], dict[float, float]] = {}
    for candidate in selection.candidates:
        line = lines.setdefault((_family(candidate.kernel), candidate.spread), {})
        line[candidate.factor] = max(candidate.score, line.get(candidate.factor, -np.inf))
    families, spreads = sorted({family for family, _ in lines}), sorted({spread for _, spread in lines})
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for (family, spread), line in sorted(lines.items()):
        factors = sorted(line)
        colour, mark = f"C{families.index(family)}", ("-", "--", ":", "-.")[spreads.index(spread) % 4]
        label = f"{family}, moved by {spread:g}" if spread else family
        scores = [line[factor] for factor in factors]
        axes.plot(factors, scores, mark, marker="o", markersize=3, linewidth=1.2, color=colour, label=label)
    axes.plot(best.factor, best.score, "o", mfc="none", mec="black", markersize=11, label="taken")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda factor, _: f"{factor:.3g}")
    finite = np.array([c.score for c in selection.candidates if np.isfinite(c.score)])
    top, bottom = finite.max(), max(finite.min(), finite.max() - 6 * (finite.max() - np.median(finite)))
    if top > bottom:
        axes.set_ylim(bottom - 0.05 * (top - bottom), top + 0.08 * (top - bottom))
    axes.set(xlabel="scale of the kernel, in median distances", ylabel="score on rows held out")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def _family(kernel: str) -> str:
    """A kernel as the candidates write it, without its scale."""
    return re.sub(r",? ?scale=[^,)]*", "", kernel).replace("()", "").replace("(, ", "(")
