"""Moments: sums over rows of products of basis functions, measured block by block, added in any order, then solved."""

from daskspectral.moments.digests import Digests
from daskspectral.moments.folds import Folds
from daskspectral.moments.measure import NUMBER, Measure, Measurement, block_rows, evaluate, numbered
from daskspectral.moments.moments import Measured, Moments, SummedRows

__all__ = [
    "NUMBER",
    "Digests",
    "Folds",
    "Measure",
    "Measured",
    "Measurement",
    "Moments",
    "SummedRows",
    "block_rows",
    "evaluate",
    "numbered",
]
