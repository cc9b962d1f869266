"""Pictures of what the data determine: the Gram matrix's eigenvalues, and implied timescales against the lag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.estimators import SpectralDecomposition
from daskspectral.moments import Moments
from daskspectral.plot.common import check_fitted, require_matplotlib, values_of
from daskspectral.plot.style import BLUE, FAINT, INK, MUTED, RED, SERIES, axes_of, counted, legend, plain
from daskspectral.solve.whitening import CUTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.floating[Any]]
STILL = 1e-6  # below 1, from which on a value is the constant's 1 with rounding
LARGEST = 4000  # functions of which the Gram matrix's eigenvalues are computed for a picture
_MARKS = ("o", "s", "^", "D", "v", "P")


def gram(model: Any, *, right: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues of the Gram matrix, functions scaled to unit norm, relative to the largest.

    The dashed line is the relative cut below which directions are rounding; the title counts the directions above, the
    rank that the data see. `model` is a fitted estimator with moments, or moments; `right` takes the Gram
    matrix of the right functions. Raises ImportError without matplotlib, TypeError for a model without moments,
    ValueError where they hold no such matrix (a Fourier lattice sums modes) or more than 4000 functions.
    """
    require_matplotlib()
    moments = model if isinstance(model, Moments) else getattr(model, "moments_", None)
    if not isinstance(moments, Moments):
        raise TypeError(f"the Gram matrix is drawn of a fitted estimator with moments; got {type(model).__name__}")
    values = gram_values(moments, right=right)
    cut = CUTS[moments.dtype]
    axes = plain(axes_of(ax))
    rank = int(np.count_nonzero(values > cut))
    index = np.arange(1, len(values) + 1)
    axes.axvspan(0.5, rank + 0.5, color=FAINT, linewidth=0, zorder=-1)
    axes.semilogy(index, np.maximum(values, 1e-18), color=BLUE, linewidth=1.3)
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
    models: Iterable[SpectralDecomposition],
    *,
    count: int = 5,
    step: float = 1.0,
    unit: str = "rows",
    ax: Axes | None = None,
) -> Axes:
    """Draw the implied timescales of transfer operators against their lags: -lag / ln |value| for each value below 1.

    `models` are fits of `Transfer(lag)` at several lags; `step` is the time between two rows, in `unit`. Below the
    diagonal, timescales are shorter than the lag and cannot be told. Flat lines mean that the lag is long enough.
    Raises ImportError without matplotlib, TypeError for other estimators, ValueError for other operators.
    """
    require_matplotlib()
    found: dict[int, Array] = {}
    for model in models:
        check_fitted(model, SpectralDecomposition)
        lag = model.moments_.operator.lag
        if lag is None:
            raise ValueError(f"implied timescales are of Transfer(lag); the operator is {model.moments_.operator}")
        found[lag] = implied(values_of(model), lag)[:count]
    if not found:
        raise ValueError("models are fits of Transfer(lag) at one lag or more; there is none")
    axes = plain(axes_of(ax))
    lags = np.array(sorted(found))
    most = max(len(times) for times in found.values())
    table = np.array([np.append(found[lag], np.full(most - len(found[lag]), np.nan)) for lag in lags])
    for i, times in enumerate(table.T):
        style: dict[str, Any] = {
            "color": SERIES[i % len(SERIES)],
            "marker": _MARKS[i % len(_MARKS)],
            "markersize": 4,
            "linewidth": 1.1,
        }
        axes.plot(lags * step, times * step, label=f"{i + 1}", **style)
    low, high = float(lags.min() * step), float(lags.max() * step)
    reach = np.array([0.8 * low, 1.25 * high])
    axes.fill_between(reach, 0.0 * reach + 1e-300, reach, color=FAINT, linewidth=0, zorder=-1)
    axes.plot(reach, reach, color=MUTED, linewidth=0.8)
    times = table[np.isfinite(table)] * step
    ends = (min(low, times.min(initial=low)) * 0.6, max(high, times.max(initial=high)) * 1.6)
    axes.set(xscale="log", yscale="log", xlim=reach, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(power)
        axis.set_minor_formatter(lambda *_: "")
    axes.set(xlabel=f"lag ({unit})", ylabel=f"implied timescale ({unit})")
    legend(axes, title="process", loc="upper left", ncols=2, title_fontsize=8)
    return axes


def implied(values: NDArray[np.inexact[Any]], lag: int) -> Array:
    """The implied timescales -lag / ln |value|, in rows, of values below 1, slowest first; the constant has none."""
    sizes = np.abs(values)
    inside = sizes[(sizes < 1 - STILL) & (sizes > 0)]
    return np.asarray(-lag / np.log(np.sort(inside)[::-1]))


def power(value: float, _: Any) -> str:
    """The label of a logarithmic axis: 10 and its power, or the number itself from 0.1 to 1000."""
    if 0.05 < value < 2000:
        return f"{value:g}"
    digits = str(round(float(np.log10(value)))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"
