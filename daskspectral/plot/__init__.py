"""Pictures of fitted estimators: eigenfunctions over the data, the spectrum, and the choice. Needs matplotlib."""

from daskspectral.plot.files import refuse_picture, save_figure
from daskspectral.plot.functions import eigenfunctions, level_lines, mollweide, panels, save_eigenfunctions
from daskspectral.plot.spectra import choice, spectrum

__all__ = [
    "choice",
    "eigenfunctions",
    "level_lines",
    "mollweide",
    "panels",
    "refuse_picture",
    "save_eigenfunctions",
    "save_figure",
    "spectrum",
]
