"""Passes over the rows of the data, for fits and transforms, one kind in each file."""

from daskspectral.passes.extension import Extension
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.passes.sums import Discretisation

__all__ = ["Candidate", "Discretisation", "Extension", "Selection"]
