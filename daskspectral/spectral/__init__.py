"""Spectra of operators: the estimator, how its functions are chosen, and what it gives at any rows."""

from daskspectral.spectral.decomposition import SpectralDecomposition

__all__ = ["SpectralDecomposition"]
