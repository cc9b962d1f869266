"""Operators that `SpectralDecomposition(operator)` decomposes: forms H(f, g, x) averaged over the data.

    operator                             form of f and g                              data; result
    Laplacian(manifold=None)             ∇f · ∇g, tangential on a manifold            x; eigenvalues, ascending
    Laplacian(density=1.0)               the same, independent of the sampling        x; eigenvalues, ascending
    Schroedinger("potential")            ∇f · ∇g + v f g                              x, v; eigenvalues, ascending
    AnisotropicDiffusion("diffusion")    ∇f · D ∇g                                    x, D; eigenvalues, ascending
    TangentPropagation("direction")      (u · ∇f)(u · ∇g), equation (19)              x, u; eigenvalues, ascending
    DifferentialOperator({(a, b): c})    sum of c ∂_a f ∂_b g, equation (10)          x, c; by symmetry, or solver=
    PartialDerivative(axis)              f ∂_axis g                                   x; singular values
    Generator("drift", "diffusion")      f (b · ∇g + σσᵀ : Hess g / 2), gEDMD         x, b, σ; complex eigenvalues
    Generator(..., reversible=True)      -(σᵀ ∇f) · (σᵀ ∇g) / 2                       x, σ; eigenvalues, descending
    Transfer(lag)                        f(x_t) g(x_(t + lag))                        trajectories; singular values
    Cross(center=False)                  f(x) g(y)                                    (x, y); singular values
    CrossCovariance()                    cov(f(x), g(y)), MCA                         (x, y); singular values
    Covariance()                         cov(f, g), PCA                               x; variances, descending
    Augmentation(views)                  (f(xi) - f(xi'))(g(xi) - g(xi')), (20)       (x, x1, ...); eigenvalues, asc.
    NeighborJumps()                      random walk over nearest centroids, (20)     x; eigenvalues, ascending
    SymmetricForm(form)                  user-defined, see `daskspectral.forms`       x, fields; eigenvalues
    BilinearForm(form, solver=)          user-defined                                 x, fields; values by solver=

Equations are those of Cabannes and Bach (2024). Fields are passed as `fit(Rows(x, fields={"name": array}))`. Operators
that depend on the units of the points (a potential, a drift, a partial derivative, a manifold) raise an error with
`Rows(x, standardize=True)`. With singular values there are left and right functions, `transform(y, side="right")`.

    question                                             operator
    clusters                                             NeighborJumps()
    smooth coordinates along the data                    Laplacian()
    the shape of the set, not its density                Laplacian(density=1.0)
    slow modes, time scales, forecasts of trajectories   Transfer(lag): `dsp.Koopman`
    the same from equilibrium frames and known noise     Generator(diffusion=s, reversible=True)
    decay and rotation from drift and noise              Generator("drift", "diffusion")
    what two measurements have in common                 Cross(center=True)
    functions that vary between rows, not versions       Augmentation(views)
    patterns of the largest variance                     Covariance()

Choose a lag of `Transfer` at which the time scales no longer change. Boundary conditions are natural (Neumann) unless
the basis vanishes there: `basis.DirichletBasis`. For angles, set `periods` of the basis.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> dsp.operators.parse("laplacian"), dsp.operators.parse("transfer", lag=5)
    (Laplacian(), Transfer(lag=5))
    >>> rng = np.random.default_rng(0)
    >>> noise, run = rng.standard_normal(20_000), np.zeros((20_000, 1))
    >>> for t in range(1, 20_000):
    ...     run[t] = 0.8 * run[t - 1] + 0.6 * noise[t]
    >>> koopman = dsp.Koopman(lag=1, basis=dsp.basis.MonomialBasis(d=1, degree=3), n_components=3).fit(run)
    >>> koopman.singular_values_.round(1)  # 1, 0.8, 0.64: the powers of 0.8
    array([1. , 0.8, 0.6])
    >>> koopman.transform(run).shape, koopman.transform(run, side="right").shape
    ((20000, 3), (20000, 3))

Two views of the same rows, as in CLIP, may have different kernels; `center=True` subtracts the means.

    >>> x = rng.standard_normal((20_000, 2))
    >>> y = x[:, :1] + rng.standard_normal((20_000, 1))
    >>> cross = dsp.operators.Cross(center=True)
    >>> linear = dsp.basis.Landmarks(dsp.kernels.Linear(), 2)
    >>> clip = dsp.SpectralDecomposition(cross, linear, right_basis=linear, n_components=1)
    >>> clip.fit((x, y)).singular_values_.round(2)  # the correlation of x_1 and y, 1 / sqrt(2)
    array([0.71])
"""

from daskspectral.operators.base import DerivedField, Operator
from daskspectral.operators.covariance import Covariance
from daskspectral.operators.custom import BilinearForm, SymmetricForm
from daskspectral.operators.differential import DifferentialOperator, PartialDerivative, TangentPropagation
from daskspectral.operators.diffusion import AnisotropicDiffusion, Generator, Schroedinger
from daskspectral.operators.jumps import NeighborJumps
from daskspectral.operators.laplacian import Laplacian
from daskspectral.operators.names import parse
from daskspectral.operators.paired import Augmentation, Cross, CrossCovariance, Transfer

__all__ = [
    "AnisotropicDiffusion",
    "Augmentation",
    "BilinearForm",
    "Covariance",
    "Cross",
    "CrossCovariance",
    "DerivedField",
    "DifferentialOperator",
    "Generator",
    "Laplacian",
    "NeighborJumps",
    "Operator",
    "PartialDerivative",
    "Schroedinger",
    "SymmetricForm",
    "TangentPropagation",
    "Transfer",
    "parse",
]
