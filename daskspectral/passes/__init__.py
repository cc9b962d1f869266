"""Passes over the rows that every method makes: sums, first looks, functions applied, and scores."""

from daskspectral.passes.selection import Candidate, Selection
from daskspectral.passes.sums import Discretisation
from daskspectral.passes.support import Coverage

__all__ = ["Candidate", "Coverage", "Discretisation", "Selection"]
