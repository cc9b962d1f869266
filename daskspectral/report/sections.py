"""Which sections the report of a model has, by its kind."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from daskspectral.estimators import (
    DiffusionMap,
    HermiteRegressor,
    InvariantRegressor,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)
from daskspectral.moments import Moments
from daskspectral.plot.decay import power
from daskspectral.plot.functions import sample
from daskspectral.plot.style import BLUE, LINE, MUTED, above, axes_of, counted, plain
from daskspectral.report import functions, reading, spectra
from daskspectral.report.page import Picture, Section
from daskspectral.report.spectra import table_of


@singledispatch
def sections_of(model: Any, X: Any) -> list[Section]:
    """The sections on what was found, before those on cost and provenance; none for an estimator without results."""
    return []


@sections_of.register
def _(model: SpectralDecomposition, X: Any) -> list[Section]:
    first = functions.views_of(model, X)[0]
    points = None if X is None else sample(model, first, 2000, 0)
    return [
        spectra.spectrum(model),
        *spectra.held_out(model),
        *functions.eigenfunctions(model, X),
        *functions.patterns(model),
        *spectra.landmarks(model, points),
        *spectra.choice(model),
        *spectra.rank(model),
    ]


@sections_of.register
def _(model: HermiteRegressor, X: Any) -> list[Section]:
    points = None if X is None else sample(model, X, 2000, 0)
    return [
        *_penalties(model.cv_curve_, model.alpha_),
        *functions.prediction(model, X),
        *spectra.landmarks(model, points),
        *spectra.choice(model),
        *spectra.rank(model),
    ]


@sections_of.register
def _(model: InvariantRegressor, X: Any) -> list[Section]:
    return [*_levels(model), *functions.prediction(model, X), *spectra.rank(model)]


@sections_of.register(SDPEmbedding)
@sections_of.register(DiffusionMap)
@sections_of.register(KernelEmbedding)
def _(model: Any, X: Any) -> list[Section]:
    return [spectra.spectrum(model), *functions.embedding(model, X)]


@sections_of.register
def _(model: Moments, X: Any) -> list[Section]:
    return spectra.rank(model)


def _levels(model: InvariantRegressor) -> list[Section]:
    """How large a part of the target each eigenspace has."""
    norms = np.array([float(np.linalg.norm(c)) for c in model.coef_])
    dimensions = np.asarray(model.invariant_dimensions_)
    total = float((norms**2).sum()) or 1.0
    axes = plain(axes_of(None, (4.2, 2.6)))
    axes.bar(np.arange(len(norms)), norms**2 / total, color=BLUE, width=0.7)
    counted(axes.xaxis)
    axes.set(xlabel="eigenspace", ylabel="share of the square")
    axes.axhline(0, color=LINE, linewidth=0.8)
    words = [
        f"{int(dimensions.sum())} functions of {model.n_eigenfunctions_} are left as they are by the group; the fit "
        f"takes {int(np.count_nonzero(norms > 0))} of {len(norms)} eigenspaces."
    ]
    picture = Picture(axes, f"Shares of {len(norms)} eigenspaces in the fitted function.")
    return [
        Section("Eigenspaces", words, [picture], more=table_of(model, "All eigenspaces"), reading=reading.EIGENSPACES)
    ]


def _penalties(curve: Any, taken: float | None) -> list[Section]:
    """The mean squared error on rows left out, by the penalty."""
    if curve is None or len(curve) == 0:
        return []
    axes = plain(axes_of(None, (4.2, 2.6)))
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
    alt = words = "The mean squared error on rows left out, by the penalty."
    if taken is not None and len(errors):
        near = np.abs(np.log(penalties / taken)).argmin() if taken > 0 else 0
        error = f"the mean squared error is {errors[near]:.3g}"
        words = f"On rows left out {error} with the penalty {taken:.3g}, which was taken."
        if penalties[near] in (penalties.min(), penalties.max()):
            words += " It is the last one that was tried."
        alt = f"{alt} {words}"
    return [Section("Held out", [words], [Picture(axes, alt)], reading=reading.PENALTIES)]
