"""Spectra of operators: estimators by the names of their users, how functions are chosen, and what a fit offers."""

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
