"""Moments: sums over rows of products of basis functions, measured block by block, added in any order, and solved."""

from daskspectral.moments.measure import Measure, MeasureMany, Measurement, block_rows, evaluate
from daskspectral.moments.moments import Moments, update_digest

__all__ = ["Measure", "MeasureMany", "Measurement", "Moments", "block_rows", "evaluate", "update_digest"]
