"""Pictures in matplotlib (extra `plot`), ready for print: `dsp.plot`.

`spectrum`, `scree`, `choice` and `timescales` draw numbers of a fit; `eigenfunction`, `eigenfunctions`, `eof`,
`embedding` and `free_energy` draw functions over rows; `chapman_kolmogorov` is a test.

Functions that draw one picture have the argument `ax` and return the axes; `figure_of(axes)` returns their figure. All
raise ImportError without matplotlib, and TypeError for an estimator that they do not show.

>>> import numpy as np
>>> import daskspectral as dsp
>>> x = np.random.default_rng(0).uniform(0, np.pi, (2000, 1))
>>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
>>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
>>> axes = dsp.plot.spectrum(est.fit(x))
>>> axes.get_xlabel(), axes.get_ylabel()
('index', 'eigenvalue')

`daskspectral.report` puts all of it on one page.
"""

from daskspectral.plot.canvas import level_lines, mollweide
from daskspectral.plot.common import figure_of, refuse_picture, save_figure
from daskspectral.plot.functions import (
    eigenfunction,
    eigenfunctions,
    embedding,
    eof,
    free_energy,
    panels,
)
from daskspectral.plot.spectra import chapman_kolmogorov, choice, scree, spectrum, timescales

__all__ = [
    "chapman_kolmogorov",
    "choice",
    "eigenfunction",
    "eigenfunctions",
    "embedding",
    "eof",
    "figure_of",
    "free_energy",
    "level_lines",
    "mollweide",
    "panels",
    "refuse_picture",
    "save_figure",
    "scree",
    "spectrum",
    "timescales",
]
