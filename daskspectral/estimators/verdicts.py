"""One sentence on a fitted model: what was found, and how far it holds."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from daskspectral.estimators.diffusion import DiffusionMap
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.invariant import InvariantRegressor
from daskspectral.estimators.kernelised import KernelEmbedding
from daskspectral.estimators.sdp import SDPEmbedding
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.estimators.tables import no_errors
from daskspectral.moments import Moments
from daskspectral.moments.intervals import trusted_words

NO_FOLDS = "Fitted without folds: nothing tells how well it predicts."


@singledispatch
def verdict_of(model: Any) -> str:
    """What was found, in one sentence; empty for a model of which none is known."""
    return ""


@verdict_of.register
def _(model: SpectralDecomposition) -> str:
    attribute, count = model.solver_.values, len(model.trusted_)
    if no_errors(model):
        name = attribute.removesuffix("_" if count != 1 else "s_").replace("_", " ")
        return f"{count} {name}, without error bars: this fit tells of none whether it can be trusted."
    words = trusted_words(model.trusted_, model.constants_, attribute)
    return f"{words[:1].upper()}{words[1:]}."


@verdict_of.register
def _(model: HermiteRegressor) -> str:
    return _explained(model.cv_score_)


@verdict_of.register
def _(model: InvariantRegressor) -> str:
    return _explained(model.cv_score_, model.cv_score_error_)


@verdict_of.register
def _(model: SDPEmbedding) -> str:
    return _proved(model.rank_, model.certificate_.optimal)


@verdict_of.register
def _(model: KernelEmbedding) -> str:
    return _proved(model.rank_, model.certificate_.optimal)


@verdict_of.register
def _(model: DiffusionMap) -> str:
    return f"{len(model.spectrum_)} diffusion coordinates, without error bars."


@verdict_of.register
def _(model: Moments) -> str:
    return "Sums that any solver can take; no model has been made of them here."


def _explained(score: float | None, error: float | None = None) -> str:
    if score is None:
        return NO_FOLDS
    spread = "" if error is None else f" ± {error:.1g}"
    return f"It explains {score:.4g}{spread} of the spread of rows that were left out (R²; 1 is all)."


def _proved(rank: int, optimal: bool) -> str:
    return f"An embedding of rank {rank}, {'proved optimal' if optimal else 'not proved optimal'}."
