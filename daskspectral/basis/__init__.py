"""Bases: the p functions whose span the operator is restricted to.

The default is k(., y_i) at landmarks y_i chosen among the rows. Estimators accept these and all other bases as `basis`,
and as `right_basis` for the test functions of an operator with singular values; "landmarks", "fourier" and "network"
are names of `Landmarks()`, `FourierBasis()` and `NeuralBasis()`.

    basis                                  functions
    Landmarks(kernel, n_landmarks)         k(., y_i) at chosen rows; by default, kernel and number are chosen too
    LandmarkBasis(kernel, points)          k(., y_i) at known points
    RandomFourierFeatures.draw(kernel, d,  random Fourier features of a Gaussian, exponential or Matern kernel
                      p, random_state)
    FourierBasis(n_frequencies)            1, cos, sin on a lattice of frequencies in a box, for 1 to 3 variables: one
                                           pass sums a few modes, which serve any stationary kernel; not for
                                           operators with two points, such as Transfer
    TrigonometricBasis(periods, degree)    1, cos, sin and their products for any number of periodic columns
    MonomialBasis(d, degree)               all monomials up to a total degree
    HarmonicBasis(manifold, count)         eigenfunctions of a manifold's Laplacian, whole eigenspaces
    InvariantBasis(harmonic, group)        the combinations of harmonics that are invariant under a group
    EquivariantBasis(harmonic, group,      equivariant vector-valued ones: f(g x) = ρ(g) f(x)
                     representation)
    NeuralBasis(hidden)                    neurons of a perceptron, trained by the operator's loss
    NearestCentroids(n_centroids)          weights of the nearest centroids, for operators.NeighborJumps
    NormalizedRBF(centers, width)          normalized Gaussians, a smooth partition of the data, for short
                                           trajectories; NormalizedRBF.draw(x, p) chooses the centers
    CallableBasis(function, gradient, d=d) user-defined: function(x (c, d)) -> (p, c), gradient -> (p, c, d)
    Concatenated((a, b))                   several bases together
    ConstantBasis(d)                       the function 1
    DirichletBasis(basis, boundary)        any of these times a function that is 0 at the boundary of the data:
                                           BoxBoundary(lower, upper), BallBoundary(radius, center), a subclass of
                                           Boundary

`Landmarks`, `FourierBasis`, `NeuralBasis`, `NearestCentroids` and `DirichletBasis` are recipes: fits call
`recipe.build(sample, rng)`, and `basis_` is a `LandmarkBasis`, `FourierLattice`, `NetworkBasis`, `CentroidBasis` or
`DirichletFunctions`. A user-defined recipe is a subclass of `BasisRecipe` with `cost`, `probe` and `build`.

`daskspectral.testing.check_basis` tests a user-defined basis.

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
