"""Data: anything array-like becomes a `Source` of row ranges; arrays of our own are written whole or not at all."""

from daskspectral.data.columns import ColumnNames
from daskspectral.data.layout import Layout
from daskspectral.data.source import Preparation

__all__ = ["ColumnNames", "Layout", "Preparation"]
