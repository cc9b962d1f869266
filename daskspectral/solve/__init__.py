"""Solvers: small dense algebra on the moments."""

from daskspectral.solve.diffusion import DiffusionFunctions
from daskspectral.solve.kernelised import LearnedKernel
from daskspectral.solve.pencil import Penalty, Pencil
from daskspectral.solve.ridge import RidgeFit, solve_ridge
from daskspectral.solve.ritz import explained, ritz, ritz_singular
from daskspectral.solve.sdp import Certificate
from daskspectral.solve.solver import Problem, Solver, Spectrum
from daskspectral.solve.solvers import Eigen, Principal, Singular, Symmetric
from daskspectral.solve.whitening import Whitening, resolve_cut, whiten

__all__ = [
    "Certificate",
    "DiffusionFunctions",
    "Eigen",
    "LearnedKernel",
    "Pencil",
    "Penalty",
    "Principal",
    "Problem",
    "RidgeFit",
    "Singular",
    "Solver",
    "Spectrum",
    "Symmetric",
    "Whitening",
    "explained",
    "resolve_cut",
    "ritz",
    "ritz_singular",
    "solve_ridge",
    "whiten",
]
