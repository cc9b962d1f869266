"""Which sections the report of a model has, by its kind."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from daskspectral.estimators import (
    DiffusionMap,
    GraphLaplacian,
    HermiteRegressor,
    InvariantClassifier,
    InvariantRegressor,
    KernelEmbedding,
    SDPEmbedding,
    SpectralDecomposition,
)
from daskspectral.moments import Moments
from daskspectral.plot.decay import power
from daskspectral.plot.functions import sample
from daskspectral.plot.style import BLUE, LINE, axes_of, plain
from daskspectral.report import functions, reading, spectra
from daskspectral.report.page import Picture, Section
from daskspectral.report.spectra import table_of


@singledispatch
def sections_of(model: Any, X: Any) -> list[Section]:
    """The sections on what was found, before those on cost and provenance; none for an estimator without results."""
    return []


@sections_of.register
def _(model: SpectralDecomposition, X: Any) -> list[Section]:
    points = None
    if X is not None and model.moments_.operator.lag is None and not isinstance(X, (list, tuple)):
        points = sample(model, X, 2000, 0)
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
def _(model: GraphLaplacian, X: Any) -> list[Section]:
    points = None if X is None else sample(model, X, 2000, 0)
    return [spectra.spectrum(model), *functions.eigenfunctions(model, X), *spectra.landmarks(model, points)]


@sections_of.register
def _(model: HermiteRegressor, X: Any) -> list[Section]:
    points = None if X is None else sample(model, X, 2000, 0)
    return [
        *_penalties(model.cv_curve_, "mean squared error on rows left out", model.alpha_),
        *functions.prediction(model, X),
        *spectra.landmarks(model, points),
        *spectra.choice(model),
        *spectra.rank(model),
    ]


@sections_of.register
def _(model: InvariantRegressor, X: Any) -> list[Section]:
    return [*_levels(model), *functions.prediction(model, X), *spectra.rank(model)]


@sections_of.register
def _(model: InvariantClassifier, X: Any) -> list[Section]:
    curve = None if model.held_out_curve_ is None else model.held_out_curve_[:, :2]
    return [*_levels(model), *_penalties(curve, "log loss on rows left out (nats)", model.alpha_)]


@sections_of.register(SDPEmbedding)
@sections_of.register(DiffusionMap)
@sections_of.register(KernelEmbedding)
def _(model: Any, X: Any) -> list[Section]:
    return [spectra.spectrum(model), *functions.embedding(model, X)]


@sections_of.register
def _(model: Moments, X: Any) -> list[Section]:
    return spectra.rank(model)


def _levels(model: InvariantRegressor | InvariantClassifier) -> list[Section]:
    """How large a part of the target each eigenspace has."""
    from matplotlib.ticker import MaxNLocator

    norms = np.array([float(np.linalg.norm(c)) for c in model.coef_])
    dimensions = np.asarray(model.invariant_dimensions_)
    total = float((norms**2).sum()) or 1.0
    axes = plain(axes_of(None, (4.2, 2.6)))
    axes.bar(np.arange(len(norms)), norms**2 / total, color=BLUE, width=0.7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
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


def _penalties(curve: Any, what: str, taken: float | None) -> list[Section]:
    """The error on rows left out, by the penalty."""
    if curve is None or len(curve) == 0:
        return []
    axes = plain(axes_of(None, (4.2, 2.6)))
    penalties, errors = np.asarray(curve, dtype=float)[:, :2].T
    known = np.isfinite(errors) & (penalties > 0)
    axes.loglog(penalties[known], np.abs(errors[known]), color=BLUE, marker="o", markersize=3, linewidth=1.2)
    if taken is not None and taken > 0:
        axes.axvline(taken, color=LINE, linewidth=1.0)
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(power)
    axes.set(xlabel="penalty", ylabel=what)
    alt = f"The {what} against the penalty; {taken:.3g} was taken." if taken is not None else f"The {what}."
    return [Section("Held out", [], [Picture(axes, alt)], reading=reading.PENALTIES)]
