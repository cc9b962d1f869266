"""Pictures of numbers: spectra with error bars, values held out, scores of a choice, Gram matrices, timescales."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators.summary import moments_of
from daskspectral.moments import Moments
from daskspectral.plot.common import Embedding, check_fitted, is_singular, values_of
from daskspectral.plot.style import (
    BLUE,
    FAINT,
    INK,
    LINE,
    MUTED,
    PAPER,
    RED,
    above,
    axes_of,
    counted,
    legend,
    plain,
    told_apart,
)
from daskspectral.solve.whitening import CUTS
from daskspectral.spectral import SpectralDecomposition
from daskspectral.spectral.summary import intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
LARGEST = 4000  # functions of which the Gram matrix's eigenvalues are computed for a picture
MARKED = 8  # lags that each have a tick
WIDEST = 5  # times the range of the values, beyond which the ends of intervals are marks


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
    The value of a constant is a diamond. Complex eigenvalues are drawn in the plane, with the intervals of their
    real parts. The first `count` values are drawn, by default all. Raises ImportError without matplotlib, TypeError for
    estimators without a spectrum.
    """
    check_fitted(estimator, SpectralDecomposition | Embedding)
    values, singular = values_of(estimator)[:count], is_singular(estimator)
    k, plane = len(values), np.iscomplexobj(values)
    constant = np.arange(k) < getattr(estimator, "constants_", 0)
    intervals = intervals_of(estimator) if isinstance(estimator, SpectralDecomposition) else None
    trusted = np.ones(k, bool) if intervals is None else estimator.trusted_[:k]
    axes = plain(axes_of(ax))
    axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)
    x, y = (values.real, values.imag) if plane else (np.arange(k), values.real)
    if plane:
        axes.axvline(0, color=LINE, linewidth=0.8, zorder=0)
        if intervals is not None:
            axes.hlines(y, *intervals[:k].T, color=BLUE, linewidth=1.3, label="95 % interval")
        if not y.any():
            axes.set_ylim(-1, 1)  # all of them are real
    else:
        counted(axes.xaxis)
        if intervals is None:
            axes.vlines(x, 0, y, color=LINE, linewidth=1)
        else:
            _draw_errors(axes, y, estimator.held_out_[:k], intervals[:k], trusted, constant)
    _draw_values(axes, x, y, trusted, constant)
    if exact is not None:
        true = np.asarray(exact)
        at = (true.real, true.imag) if plane else (np.arange(len(true)), true)
        axes.plot(*at, "x", color=RED, markersize=7, label="exact")
    name = "singular value" if singular else "eigenvalue"
    axes.set(xlabel="real part" if plane else "index", ylabel="imaginary part" if plane else name)
    above(axes)
    return axes


def _size(count: int) -> float:
    """The size of marks, in points, of which `count` stand side by side."""
    return min(4.5, max(2.0, 110 / max(count, 1)))


def _draw_values(axes: Axes, x: Any, y: Array, trusted: NDArray[np.bool_], constant: NDArray[np.bool_]) -> None:
    """Draw values as dots, hollow where they are not trusted, and as diamonds where they are of a constant."""
    named = "learned" if trusted.all() else "trusted"
    for some, label, mark, edge, face in (
        (~constant & trusted, named, "o", BLUE, BLUE),
        (~constant & ~trusted, "not trusted", "o", BLUE, PAPER),
        (constant, "constant", "D", MUTED, MUTED),
    ):
        if some.any():
            axes.plot(x[some], y[some], mark, mec=edge, mfc=face, markersize=_size(len(x)), label=label)


def _draw_errors(
    axes: Axes,
    values: Array,
    held: Array,
    intervals: Array,
    trusted: NDArray[np.bool_],
    constant: NDArray[np.bool_],
) -> None:
    """Draw the intervals (k, 2) of values, dashed where they are not trusted, and the values on rows held out."""
    k = len(values)
    if trusted.any() and not trusted.all():
        edges, across = np.arange(k + 1) - 0.5, axes.get_xaxis_transform()
        axes.stairs(trusted, edges, fill=True, color=FAINT, linewidth=0, zorder=-1, transform=across)
    for some, dashes in ((trusted, ()), (~trusted, (3.7, 1.6))):
        at = np.flatnonzero(some & ~constant)
        low, high = intervals[at].T
        axes.vlines(at, low, high, color=BLUE, linewidth=1.3, linestyles=(0.0, dashes))
    if not constant.all():
        axes.plot([], [], color=BLUE, linewidth=1.3, label="95 % interval")
    known = np.flatnonzero(~np.isnan(held) & ~constant)
    if len(known):
        axes.plot(known, held[known], "_", color=INK, markersize=2 * _size(k), markeredgewidth=1.0, label="held out")
    low, high = _ends(np.concatenate([values, held[known]]))
    most = WIDEST * (high - low)  # an interval may be far wider than all values, and goes on behind a mark
    shown = intervals[~constant]
    ends = np.array(_ends(np.clip(np.append(shown[np.isfinite(shown)], [low, high]), low - most, high + most)))
    room = 0.06 * (ends[1] - ends[0])
    for column, sign, mark in ((0, -1, "v"), (1, 1, "^")):
        beyond = np.flatnonzero((sign * intervals[:, column] > sign * ends[column]) & ~constant)
        axes.plot(beyond, np.full(len(beyond), ends[column]), mark, color=BLUE, markersize=_size(k), clip_on=False)
    axes.set(xlim=(-0.6, k - 0.4), ylim=(ends[0] - room, ends[1] + room))


def _ends(values: Array) -> tuple[float, float]:
    """The least and the largest of values and 0; (0, 1) of the constant's 0 alone."""
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    return low, high if low < high else 1.0


def held_out(estimator: SpectralDecomposition, *, ax: Axes | None = None) -> Axes:
    """Draw each value against its value on rows that were not fitted to; on the line they agree.

    Values that are not trusted are hollow; the shade is where both agree to a tenth. Raises ImportError without
    matplotlib, TypeError for other estimators, ValueError where the fit has no values held out.
    """
    check_fitted(estimator, SpectralDecomposition)
    values = values_of(estimator)
    known = ~np.isnan(estimator.held_out_)
    if not known.any() or np.iscomplexobj(values):
        raise ValueError(f"the fit has no values on rows held out: {estimator.status_}")
    values, other = values[known].real, estimator.held_out_[known]
    axes = plain(axes_of(ax, (3.6, 3.4)))
    low, high = _ends(np.append(values, other))
    ends = np.array([low, high]) + 0.05 * (high - low) * np.array([-1, 1])
    axes.fill_between(ends, ends - 0.1 * np.abs(ends), ends + 0.1 * np.abs(ends), color=FAINT, linewidth=0, zorder=-1)
    axes.plot(ends, ends, color=MUTED, linewidth=0.8)
    _draw_values(axes, values, other, estimator.trusted_[known], np.zeros(len(values), bool))
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
        factors, scores = zip(*sorted(line.items()), strict=True)
        axes.plot(factors, scores, linewidth=1.2, markersize=3, label=family, **told_apart(number))
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


def gram(model: Any, *, right: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues of the Gram matrix, functions scaled to unit norm, relative to the largest.

    The dashed line is the relative cut below which directions are rounding; the title counts the directions above, the
    rank that the data see. `model` is a fitted estimator with moments, or moments; `right` takes the Gram
    matrix of the right functions. Raises ImportError without matplotlib, TypeError for a model without moments,
    ValueError where they hold no such matrix (a Fourier lattice sums modes) or more than 4000 functions.
    """
    moments = moments_of(model)
    if moments is None:
        raise TypeError(f"the Gram matrix is drawn of a fitted estimator with moments; got {type(model).__name__}")
    values = gram_values(moments, right=right)
    cut = CUTS[moments.dtype]
    axes = plain(axes_of(ax))
    rank = int(np.count_nonzero(values > cut))
    axes.axvspan(0.5, rank + 0.5, color=FAINT, linewidth=0, zorder=-1)
    axes.semilogy(np.arange(1, len(values) + 1), np.maximum(values, 1e-18), color=BLUE, linewidth=1.3)
    axes.axhline(cut, color=RED, linestyle="--", linewidth=1)
    words = f"{rank} of {len(values)} above the cut {cut:.0e}".replace("e-", "e\N{MINUS SIGN}")
    axes.set_title(words, fontsize=8, color=INK, loc="left")
    axes.set(xlabel="direction", ylabel="eigenvalue, of the largest", xlim=(0.5, len(values) + 0.5))
    counted(axes.xaxis)
    axes.yaxis.set_major_formatter(power)
    axes.minorticks_off()
    return axes


def gram_values(moments: Moments, *, right: bool = False) -> Array:
    """The eigenvalues (p,) of the Gram matrix of functions scaled to unit norm, descending, over the largest.

    Raises ValueError where the moments hold none, or one of more than 4000 functions.
    """
    name = "right_gram" if right else "gram"
    if name not in moments.arrays:
        raise ValueError(
            f"these moments hold no {name.replace('_', ' ')} matrix: they hold {', '.join(moments.arrays)}"
        )
    matrix = moments.mean(name)
    if len(matrix) > LARGEST:
        raise ValueError(
            f"the Gram matrix has {len(matrix)} functions, more than the {LARGEST} that are decomposed here"
        )
    norms = np.sqrt(np.maximum(np.diag(matrix), 0))
    norms = np.where(norms > 0, norms, 1.0)
    values = np.linalg.eigvalsh(matrix / np.outer(norms, norms))[::-1]
    return np.asarray(values / values[0])


def timescales(
    models: SpectralDecomposition | Iterable[SpectralDecomposition],
    *,
    count: int = 5,
    step: float = 1.0,
    unit: str = "rows",
    ax: Axes | None = None,
) -> Axes:
    """Draw the implied timescales of transfer operators, `timescales_`, against their lags; the constant has none.

    `models` are fits of `Transfer(lag)` at several lags, of which the processes are counted from the slowest; or one at
    `further` lags, each of whose processes is followed by its function, with 95 % intervals shaded. `step` is the time
    between two rows, in `unit`. Below the diagonal, timescales are shorter than the lag and cannot be told. Flat lines
    mean that the lag is long enough. Raises ImportError without matplotlib, TypeError for other estimators, ValueError
    for other operators.
    """
    found: dict[int, Array] = {}
    ends: dict[int, Array] = {}
    for model in [models] if isinstance(models, SpectralDecomposition) else models:
        check_fitted(model, SpectralDecomposition)
        if model.moments_.operator.lag is None:
            raise ValueError(f"implied timescales are of Transfer(lag); the operator is {model.moments_.operator}")
        times, around = model.timescales_[:, :count], model.timescale_errors_[:, :count]
        found |= dict(zip(model.lags_.tolist(), step * times, strict=True))
        if len(model.lags_) > 1:
            ends |= dict(zip(model.lags_.tolist(), step * around, strict=True))
    if not found:
        raise ValueError("models are fits of Transfer(lag) at one lag or more; there is none")
    axes = plain(axes_of(ax))
    lags = sorted(found)
    for i in range(max(map(len, found.values()))):
        some = [lag for lag in lags if len(found[lag]) > i and np.isfinite(found[lag][i])]
        times, look = [found[lag][i] for lag in some], told_apart(i)
        axes.plot(np.multiply(step, some), times, linewidth=1.1, markersize=4, label=_counted("process", i), **look)
        if known := [lag for lag in some if lag in ends]:
            low, high = np.array([ends[lag][i] for lag in known]).T
            high = np.where(np.isfinite(high), high, 1e300)
            axes.fill_between(np.multiply(step, known), low, high, color=look["color"], alpha=0.15, linewidth=0)
    extent = np.array([lags[0], lags[-1]]) * step
    shown = extent * [0.8, 1.25]
    axes.fill_between(shown, 1e-300, shown, color=FAINT, linewidth=0, zorder=-1)
    axes.plot(shown, shown, color=MUTED, linewidth=0.8)
    drawn = np.concatenate([extent, *found.values()])
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    axes.set(xscale="log", yscale="log", xlim=shown, ylim=(0.6 * drawn.min(), 1.6 * drawn.max()))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(power)
        axis.set_minor_formatter(lambda *_: "")
    axes.set(xlabel=f"lag ({unit})", ylabel=f"implied timescale ({unit})")
    if len(lags) <= MARKED:
        axes.set_xticks(np.multiply(step, lags))
    above(axes, columns=5)
    return axes


def _counted(what: str, i: int) -> str:
    """One of several in a legend, the first with what they are: process 1, 2, 3."""
    return f"{'' if i else what} {i + 1}".lstrip()


def chapman_kolmogorov(
    model: SpectralDecomposition,
    *,
    sets: bool = False,
    count: int = 4,
    step: float = 1.0,
    unit: str = "rows",
    ax: Axes | None = None,
) -> Axes:
    """Draw the Chapman-Kolmogorov test: what stays of each process, or in each of its metastable `sets`, by the lag.

    Lines with shades are the predictions of the first lag with their 95 % bands, marks with bars what is measured; the
    first `count` are drawn. `step` is the time between two rows, in `unit`. Raises ImportError without matplotlib,
    TypeError for other estimators, and ValueError as the estimator's `chapman_kolmogorov` does.
    """
    check_fitted(model, SpectralDecomposition)
    test = model.chapman_kolmogorov(sets)
    axes, lags = plain(axes_of(ax)), step * test.lags
    for i in range(min(count, test.predicted.shape[1])):
        look = told_apart(i)
        colour = look["color"]
        low, high = test.predicted_errors[:, i, i].T
        axes.fill_between(lags, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(lags, test.predicted[:, i, i], color=colour, linewidth=1.1)
        axes.vlines(lags, *test.measured_errors[:, i, i].T, color=colour, linewidth=1.0)
        mark = {**look, "linestyle": "none"}
        label = _counted("set" if sets else "process", i)
        axes.plot(lags, test.measured[:, i, i], markersize=4, label=label, **mark)
    axes.set(xlabel=f"lag ({unit})", ylabel="probability to stay" if sets else "autocorrelation")
    above(axes, columns=5)
    return axes


def power(value: float, _: Any) -> str:
    """The label of a logarithmic axis: 10 and its power, or the number itself from 0.1 to 1000."""
    if 0.05 < value < 2000:
        return f"{value:g}"
    digits = str(round(float(np.log10(value)))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"
