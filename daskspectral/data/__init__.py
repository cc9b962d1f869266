"""Data: array-like input as a `Source` of ranges of rows, and output that is written atomically."""

from daskspectral.data.columns import ColumnNames
from daskspectral.data.layout import Layout
from daskspectral.data.source import Preparation

__all__ = ["ColumnNames", "Layout", "Preparation"]
