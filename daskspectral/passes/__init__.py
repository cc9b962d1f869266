"""What a fit does over the rows, one pass a file."""

from daskspectral.passes.extension import Extension
from daskspectral.passes.sums import Discretisation

__all__ = ["Discretisation", "Extension"]
