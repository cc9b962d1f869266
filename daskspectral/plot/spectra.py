"""Pictures of spectra with error bars, of scores and of timescales."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.plot.common import (
    BLUE,
    FAINT,
    MUTED,
    RED,
    Embedding,
    axes_of,
    check_fitted,
    is_singular,
    legend_above,
    series_color,
    values_of,
)
from daskspectral.spectral import EOF, Koopman
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.spectral.summary import intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daskspectral.spectral.sets import MetastableSets

Array = NDArray[np.floating[Any]]
WIDEST = 5  # times the range of the values: limit of intervals


def spectrum(
    estimator: SpectralEstimator | Embedding,
    *,
    exact: ArrayLike | None = None,
    ax: Axes | None = None,
    count: int | None = None,
) -> Axes:
    """Draw the eigenvalues, or singular values, by index.

    Lines are 95 % intervals, and ticks are validation values. Values that are not reliable are hollow circles with
    dotted intervals, and the value of a constant is a diamond. Complex eigenvalues are drawn in the plane, with the
    intervals of their real parts.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator with a spectrum.
    exact : array-like, optional
        Exact values, any number of them, drawn as crosses.
    ax : Axes, optional
        By default those of a new figure.
    count : int, optional
        Number of values; by default all.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    scree : Shares of variance with North's error bars.
    choice : Scores of the automatic choice.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> axes = dsp.plot.spectrum(est)
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('index', 'eigenvalue')
    """
    check_fitted(estimator, SpectralEstimator | Embedding)
    values, singular = values_of(estimator)[:count], is_singular(estimator)
    k, plane = len(values), np.iscomplexobj(values)
    constant = np.arange(k) < getattr(estimator, "n_constants_", 0)
    intervals, reliable, validation = None, np.ones(k, bool), np.full(k, np.nan)
    if isinstance(estimator, SpectralEstimator):
        intervals, validation = intervals_of(estimator), estimator.validation_values_[:k]
        reliable = reliable if intervals is None else estimator.reliable_[:k]
    axes = axes_of(ax)
    axes.axhline(0, color=MUTED, linewidth=0.5)
    number, first = getattr(estimator, "_numbering", ("", 0))
    x, y = (values.real, values.imag) if plane else (np.arange(first, first + k), values.real)
    if plane and intervals is not None:
        axes.hlines(y, *intervals[:k].T, label="95 % interval")
    elif intervals is not None:
        _draw_errors(axes, x, y, validation, intervals[:k], reliable, constant)
    _draw_values(axes, x, y, reliable, constant)
    if exact is not None:
        true = np.asarray(exact)
        at = (true.real, true.imag) if plane else (np.arange(first, first + len(true)), true)
        axes.plot(*at, "x", color=RED, label="exact")
    name = "singular value" if singular else "eigenvalue"
    index = number if first else "index"
    axes.set(xlabel="real part" if plane else index, ylabel="imaginary part" if plane else name)
    if not plane:
        axes.locator_params("x", integer=True)
    legend_above(axes)
    return axes


def scree(model: EOF, *, ax: Axes | None = None) -> Axes:
    """Draw the shares of variance of modes with North's error bars, and the threshold of red noise.

    Bars are one standard error, λ √(2 / n) with the number of independent rows n; modes whose bars overlap are mixed.
    Modes that are not above red noise are hollow.

    Parameters
    ----------
    model : EOF
        The fitted model.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        As `EOF.significance`.

    See Also
    --------
    EOF.significance : The numbers in the picture.
    eof : The map of a mode.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> rows = dsp.Rows(dsp.datasets.ocean(240), sample_dims="time", anomaly="month", detrend=1, on_invalid="skip")
    >>> model = dsp.EOF(n_components=2, random_state=0).fit(rows)
    >>> axes = dsp.plot.scree(model)
    """
    check_fitted(model, EOF)
    found = model.significance()
    k = len(found.explained)
    axes, x, y = axes_of(ax), np.arange(1, k + 1), 100 * found.explained
    above = x <= found.count
    axes.errorbar(
        x, y, y * np.sqrt(2 / found.effective_rows), fmt="none", ecolor=BLUE, capsize=3, label="North's error"
    )
    axes.plot(x[above], y[above], "o", color=BLUE, markersize=5, label="above red noise")
    axes.plot(
        x[~above], y[~above], "o", mec=BLUE, mfc="white", markersize=5, label="not above" if k > found.count else None
    )
    known = np.isfinite(found.thresholds)
    axes.step(x[known], 100 * found.thresholds[known], where="mid", color=RED, linewidth=1, label="red noise, 5 %")
    axes.set(xlabel="mode", ylabel="share of the variance (%)", ylim=(0, None))
    axes.locator_params("x", integer=True)
    legend_above(axes)
    return axes


def _draw_values(axes: Axes, x: Any, y: Array, reliable: NDArray[np.bool_], constant: NDArray[np.bool_]) -> None:
    for some, label, mark, face in (
        (~constant & reliable, "learned" if reliable.all() else "reliable", "o", BLUE),
        (~constant & ~reliable, "not reliable", "o", "none"),
        (constant, "constant", "D", BLUE),
    ):
        if some.any():
            axes.plot(x[some], y[some], mark, mec=BLUE, mfc=face, markersize=4.5, label=label)


def _draw_errors(
    axes: Axes,
    x: Array,
    values: Array,
    held: Array,
    intervals: Array,
    reliable: NDArray[np.bool_],
    constant: NDArray[np.bool_],
) -> None:
    known = np.flatnonzero(~np.isnan(held) & ~constant)
    ends = np.append(values, held[known])
    room = WIDEST * np.ptp(np.append(ends, 0.0))  # an interval may be far wider than all values
    intervals = np.clip(intervals, ends.min() - room, ends.max() + room)
    looks: tuple[dict[str, Any], ...] = ({"label": "95 % interval"}, {"linestyles": ":"})
    for some, look in zip((reliable, ~reliable), looks, strict=True):
        at = np.flatnonzero(some & ~constant)
        axes.vlines(x[at], *intervals[at].T, **look)
    if len(known):
        axes.plot(x[known], held[known], "_", color="black", markersize=9, label="validation")


def choice(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the scores of the automatic choice by scale, in median distances, one line for each kernel.

    The best penalty of each scale is drawn; the chosen candidate is circled.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator with `search_results_`.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        If no candidates were compared.

    See Also
    --------
    spectrum : The spectrum of the choice.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, 1, (1000, 1))
    >>> est = dsp.SpectralDecomposition(n_components=2, random_state=0).fit(x)
    >>> axes = dsp.plot.choice(est)
    """
    if not isinstance(estimator, SpectralEstimator):
        raise TypeError(f"a choice requires a fitted estimator of a spectrum, got {type(estimator).__name__}")
    check_is_fitted(estimator)
    selection = getattr(estimator, "search_results_", None)
    if selection is None or selection.chosen is None:
        raise ValueError(
            "the fit must have compared candidates, as with kernel='auto', got none: "
            f"{getattr(selection, 'reason', '') or 'every parameter was given'}"
        )
    best = selection.chosen
    lines: dict[str, dict[float, float]] = {}
    for candidate in selection.candidates:
        line = lines.setdefault(_family(candidate.kernel), {})
        line[candidate.factor] = max(candidate.score, line.get(candidate.factor, -np.inf))
    axes = axes_of(ax, (5.0, 4.0))
    for number, (family, line) in enumerate(sorted(lines.items())):
        factors, scores = zip(*sorted(line.items()), strict=True)
        axes.plot(factors, scores, markersize=3, label=family, **series_color(number))
    axes.plot(best.factor, best.score, "o", mfc="none", mec="black", markersize=11, label="chosen")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    finite = np.array([c.score for c in selection.candidates if np.isfinite(c.score)])
    top, bottom = finite.max(), max(finite.min(), finite.max() - 6 * (finite.max() - np.median(finite)))
    if top > bottom:  # the worst candidates would leave no room for the others
        axes.set_ylim(bottom - 0.05 * (top - bottom), top + 0.08 * (top - bottom))
    axes.set(xlabel="scale of the kernel, in median distances", ylabel="validation score")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize="small")
    return axes


def _family(kernel: str) -> str:
    return re.sub(r",? ?scale=[^,)]*", "", kernel).replace("()", "").replace("(, ", "(")


def timescales(
    model: Koopman, *, count: int = 5, step: float = 1.0, unit: str = "rows", ax: Axes | None = None
) -> Axes:
    """Draw the implied timescales of a Koopman operator by lag; the constant has none.

    Each process is followed over the lags by its function, with 95 % intervals shaded, or as bars at a single lag.
    Below the diagonal, timescales are shorter than the lag and cannot be estimated. Flat lines mean that the lag is
    long enough.

    Parameters
    ----------
    model : Koopman
        The fitted model.
    count : int, default=5
        Number of processes, slowest first.
    step : float, default=1.0
        Time between two rows, in `unit`.
    unit : str, default="rows"
        Unit of time.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    chapman_kolmogorov : Test of the lag.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(3000)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 20)
    >>> model = dsp.Koopman(lag=(5, 10), reversible=True, basis=basis, n_components=2, random_state=0).fit(x)
    >>> axes = dsp.plot.timescales(model, step=0.1, unit="ns")
    """
    check_fitted(model, Koopman)
    lags, times, ends = (step * v for v in (model.lags_, model.timescales_, model.timescale_errors_))
    axes = axes_of(ax)
    for i in range(min(count, times.shape[1])):
        some, look = np.isfinite(times[:, i]), series_color(i)
        at = lags[some] * (1 if len(lags) > 1 else 1 + 0.02 * i)  # side by side for a single lag
        axes.plot(at, times[some, i], markersize=4, label=f"process {i + 1}", **look)
        low, high = ends[some, i].T
        high = np.where(np.isfinite(high), high, 1e300)
        if len(lags) > 1:
            axes.fill_between(at, low, high, color=look["color"], alpha=0.15, linewidth=0)
        else:
            axes.vlines(at, low, high, color=look["color"])
    diagonal = np.linspace(0.8 * lags[0], 1.1 * lags[-1], 100)
    axes.fill_between(diagonal, 1e-300, diagonal, color=FAINT, zorder=0)
    drawn = np.append(lags, times[:, :count])
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    axes.set(yscale="log", xlim=diagonal[[0, -1]], ylim=(0.6 * drawn.min(), 1.6 * drawn.max()))
    axes.set(xlabel=f"lag ({unit})", ylabel=f"implied timescale ({unit})")
    legend_above(axes)
    return axes


def chapman_kolmogorov(
    model: Koopman,
    *,
    sets: MetastableSets | None = None,
    count: int = 4,
    step: float = 1.0,
    unit: str = "rows",
    ax: Axes | None = None,
) -> Axes:
    """Draw the Chapman-Kolmogorov test of each process, or of metastable sets, by lag.

    Shaded lines are predictions from the first lag with 95 % bands, marks with bars are estimates at each lag.

    Parameters
    ----------
    model : Koopman
        A model fitted at several lags.
    sets : MetastableSets, optional
        Sets of which the probability of staying is tested; by default the processes.
    count : int, default=4
        Number of processes or sets.
    step : float, default=1.0
        Time between two rows, in `unit`.
    unit : str, default="rows"
        Unit of time.
    ax : Axes, optional
        By default those of a new figure.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    ValueError
        As `Koopman.chapman_kolmogorov`.

    See Also
    --------
    timescales : Implied timescales.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(3000)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 20)
    >>> model = dsp.Koopman(lag=(5, 10), reversible=True, basis=basis, n_components=2, random_state=0).fit(x)
    >>> axes = dsp.plot.chapman_kolmogorov(model)
    """
    check_fitted(model, Koopman)
    test = model.chapman_kolmogorov(sets)
    axes, lags = axes_of(ax), step * test.lags
    for i in range(min(count, test.predicted.shape[1])):
        look = series_color(i)
        low, high = test.predicted_errors[:, i, i].T
        axes.fill_between(lags, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(lags, test.predicted[:, i, i], color=look["color"])
        axes.vlines(lags, *test.measured_errors[:, i, i].T, color=look["color"])
        label = f"process {i + 1}" if sets is None else f"set {i}"
        axes.plot(lags, test.measured[:, i, i], linestyle="none", markersize=4, label=label, **look)
    axes.set(xlabel=f"lag ({unit})", ylabel="autocorrelation" if sets is None else "probability to stay")
    legend_above(axes)
    return axes
