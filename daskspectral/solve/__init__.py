"""Solvers: small dense algebra on the moments, one algorithm a file."""

from daskspectral.solve.eigen import solve_symmetric
from daskspectral.solve.spectrum import Spectrum
from daskspectral.solve.whiten import Whitening, resolve_cut, whiten

__all__ = ["Spectrum", "Whitening", "resolve_cut", "solve_symmetric", "whiten"]
