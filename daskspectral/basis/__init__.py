"""Bases: the p functions whose span the operator is restricted to.

Estimators accept a basis or recipe as `basis`, and as `right_basis` for test functions; "landmarks", "fourier" and
"network" name `Landmarks()`, `FourierBasis()` and `NeuralBasis()`.

    Landmarks, LandmarkBasis               kernel functions at chosen rows (the default), or at known points
    RandomFourierFeatures                  random features of a Gaussian, exponential or Matern kernel
    FourierBasis                           lattice of frequencies in a box, 1 to 3 variables
    TrigonometricBasis                     periodic columns
    MonomialBasis                          monomials up to a total degree
    HarmonicBasis                          eigenfunctions of a manifold's Laplacian
    InvariantBasis, EquivariantBasis       harmonics with the symmetries of a group
    NeuralBasis                            neurons of a trained perceptron
    NearestCentroids, NormalizedRBF        weights of centroids; smooth partitions of the data
    CallableBasis                          user-defined functions
    Concatenated, ConstantBasis            several bases together; the function 1
    DirichletBasis                         functions that are 0 at a BoxBoundary, BallBoundary or other Boundary

`Landmarks`, `FourierBasis`, `NeuralBasis`, `NearestCentroids` and `DirichletBasis` are recipes, whose `build` returns
the `basis_` of a fit. `daskspectral.testing.check_basis` tests user-defined bases.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> basis = dsp.basis.MonomialBasis(d=2, degree=3)
    >>> basis.size
    10
    >>> x = np.random.default_rng(0).standard_normal((20_000, 2))
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=3).fit(x)
    >>> est.eigenvalues_.round(1) + 0.0  # 0, 1, 1 for a normal distribution
    array([0., 1., 1.])
"""

from daskspectral.basis.accumulators import Accumulator
from daskspectral.basis.base import Basis
from daskspectral.basis.boundary import BallBoundary, Boundary, BoxBoundary
from daskspectral.basis.callable import CallableBasis, NormalizedRBF
from daskspectral.basis.centroids import CentroidBasis, NearestCentroids
from daskspectral.basis.concatenated import Concatenated, ConstantBasis
from daskspectral.basis.dirichlet import DirichletBasis, DirichletFunctions
from daskspectral.basis.evaluation import Block, Evaluation
from daskspectral.basis.fourier import RandomFourierFeatures, TrigonometricBasis
from daskspectral.basis.harmonic import HarmonicBasis
from daskspectral.basis.invariant import EquivariantBasis, InvariantBasis
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.basis.lattice import FourierBasis, FourierLattice
from daskspectral.basis.monomial import MonomialBasis
from daskspectral.basis.network import NetworkBasis, NeuralBasis
from daskspectral.basis.nystrom import Landmarks
from daskspectral.basis.recipe import BasisRecipe

__all__ = [
    "Accumulator",
    "BallBoundary",
    "Basis",
    "BasisRecipe",
    "Block",
    "BoxBoundary",
    "CallableBasis",
    "CentroidBasis",
    "Concatenated",
    "ConstantBasis",
    "Boundary",
    "EquivariantBasis",
    "Evaluation",
    "RandomFourierFeatures",
    "FourierBasis",
    "FourierLattice",
    "HarmonicBasis",
    "InvariantBasis",
    "LandmarkBasis",
    "Landmarks",
    "MonomialBasis",
    "NearestCentroids",
    "NetworkBasis",
    "NeuralBasis",
    "NormalizedRBF",
    "TrigonometricBasis",
    "DirichletBasis",
    "DirichletFunctions",
]
