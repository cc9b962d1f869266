"""Spectral problems and ridge regression: small dense algebra on the moments."""

from daskspectral.solve.pencil import Pencil
from daskspectral.solve.problems import (
    NonNormal,
    NormConstrained,
    NormConstrainedSVD,
    Problem,
    Solution,
    SymmetricPencil,
    TwoMetricSVD,
    norm_root,
    norm_span,
)
from daskspectral.solve.ridge import RidgeProblem
from daskspectral.solve.system import GalerkinSystem, Penalty
from daskspectral.solve.whitening import Whitening, resolve_cut, whiten

__all__ = [
    "GalerkinSystem",
    "NonNormal",
    "NormConstrained",
    "NormConstrainedSVD",
    "Pencil",
    "Penalty",
    "Problem",
    "RidgeProblem",
    "Solution",
    "SymmetricPencil",
    "TwoMetricSVD",
    "Whitening",
    "norm_root",
    "norm_span",
    "resolve_cut",
    "whiten",
]
