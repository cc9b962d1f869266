"""Solvers: small dense algebra on the moments, one algorithm a file."""

from daskspectral.solve.eigen import solve_symmetric
from daskspectral.solve.nonsymmetric import solve_eigen
from daskspectral.solve.ridge import RidgeFit, solve_ridge
from daskspectral.solve.singular import solve_singular
from daskspectral.solve.spectrum import Spectrum
from daskspectral.solve.whiten import Whitening, resolve_cut, whiten

__all__ = [
    "RidgeFit",
    "Spectrum",
    "Whitening",
    "resolve_cut",
    "solve_eigen",
    "solve_ridge",
    "solve_singular",
    "solve_symmetric",
    "whiten",
]
