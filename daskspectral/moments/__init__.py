"""Moments: sums over rows of products of basis functions, computed in blocks, added in any order, and solved."""

from daskspectral.basis.base import DENSE_ROWS
from daskspectral.basis.evaluation import NUMBER
from daskspectral.moments.folds import Folds
from daskspectral.moments.measure import Measure
from daskspectral.moments.moments import Moments

__all__ = [
    "DENSE_ROWS",
    "NUMBER",
    "Folds",
    "Measure",
    "Moments",
]
