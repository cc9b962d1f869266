"""Solvers: small dense algebra on the moments."""

from daskspectral.solve.pencil import Penalty, Pencil
from daskspectral.solve.ridge import RidgeFit, solve_ridge
from daskspectral.solve.ritz import explained, ritz, ritz_singular
from daskspectral.solve.solvers import Eigen, Principal, Problem, Singular, Solver, Spectrum, Symmetric
from daskspectral.solve.whitening import Whitening, resolve_cut, whiten

__all__ = [
    "Eigen",
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
