"""Pictures in matplotlib (extra `plot`), ready for print: `dsp.plot`.

==================================================  ================================================================
`spectrum(est)`                                     values with 95 % intervals, validation values, reliability
`eigenfunction(est, X, 1)`, `eigenfunctions`        one function with axes, units and color bar; many, side by side
`eof(model, 1)`, `scree(model)`                     the map of a mode; shares of modes, North's bars, red noise
`embedding(est, X)`, `embedding(F, color=)`         clusters or coordinates of rows, colored by any variable
`free_energy(model, X)`                             free energy of trajectories over two columns, in equilibrium
`timescales(model)`                                 implied timescales of transfer operators against the lag
`chapman_kolmogorov(model)`                         predictions from one lag for longer ones, and estimates there
`choice(est)`                                       the scores of the automatic choice by scale
`level_lines(axes, x, y, values)`, `mollweide()`    filled level lines of any values; points of a map of the sphere
`panels(titles)`, `save_figure(figure, path)`       a figure of panels; a picture file, atomic
==================================================  ================================================================

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
