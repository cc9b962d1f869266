"""Estimators, one in each file, with scikit-learn's conventions."""

from daskspectral.estimators.diffusion import DiffusionMap
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.invariant import InvariantRegressor
from daskspectral.estimators.invariant_features import InvariantFeatures
from daskspectral.estimators.kernelised import KernelEmbedding
from daskspectral.estimators.sdp import SDPEmbedding
from daskspectral.estimators.spectral import SpectralDecomposition

__all__ = [
    "DiffusionMap",
    "HermiteRegressor",
    "InvariantFeatures",
    "InvariantRegressor",
    "KernelEmbedding",
    "SDPEmbedding",
    "SpectralDecomposition",
]
