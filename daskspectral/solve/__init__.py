"""Solvers: small dense algebra on the moments."""

from daskspectral.solve.pencil import Penalty, Pencil
from daskspectral.solve.ridge import RidgeProblem
from daskspectral.solve.ritz import Relation, explained, ritz, ritz_singular
from daskspectral.solve.solvers import (
    Eigen,
    Principal,
    Singular,
    Solution,
    Solver,
    SpectralProblem,
    Symmetric,
    norm_root,
)
from daskspectral.solve.whitening import Whitening, resolve_cut, whiten

__all__ = [
    "Eigen",
    "Pencil",
    "Penalty",
    "Principal",
    "Relation",
    "RidgeProblem",
    "Singular",
    "Solution",
    "Solver",
    "SpectralProblem",
    "Symmetric",
    "Whitening",
    "explained",
    "norm_root",
    "resolve_cut",
    "ritz",
    "ritz_singular",
    "whiten",
]
