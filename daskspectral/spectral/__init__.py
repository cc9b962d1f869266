"""Estimators of spectra of operators, selection of their functions, and results of a fit."""

from daskspectral.spectral.clustering import SpectralClustering
from daskspectral.spectral.decomposition import SpectralDecomposition
from daskspectral.spectral.eof import EOF
from daskspectral.spectral.koopman import Koopman
from daskspectral.spectral.pairs import CCA, MCA
from daskspectral.spectral.passage import FirstPassage
from daskspectral.spectral.sets import MetastableSets

__all__ = [
    "CCA",
    "EOF",
    "FirstPassage",
    "Koopman",
    "MCA",
    "MetastableSets",
    "SpectralClustering",
    "SpectralDecomposition",
]
