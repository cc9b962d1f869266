"""Operators that `SpectralDecomposition(operator)` decomposes.

An operator is a form H(f, g, x) averaged over the data, with the Gram forms that define the norm of its functions.
Arrays other than the points are passed as `fit(Rows(x, fields={"name": array}))`, one row for each row of x.

    operator                             form of f and g, averaged over the data
                                           data; result
    Laplacian(manifold=None)             ∇f · ∇g, tangential on a manifold
                                           x; eigenvalues, ascending
    Laplacian(density=1.0)               the same, rows weighted by 1 / their estimated density: Laplace-Beltrami,
                                         independent of the sampling; exponents from 0 to 1
                                           x; eigenvalues, ascending
    Schroedinger("potential")            ∇f · ∇g + v f g
                                           x, v (n,); eigenvalues, ascending
    AnisotropicDiffusion("diffusion")    ∇f · D ∇g
                                           x, D (n, d, d); eigenvalues, ascending
    TangentPropagation("direction")      (u · ∇f)(u · ∇g), equation (19)
                                           x, u (n, d) or (n, m, d); eigenvalues, ascending
    DifferentialOperator({(a, b): c})    sum of c ∂_a f ∂_b g, equation (10); c is a number or the name of a field
                                           x, fields; values by symmetry, or by solver=
    PartialDerivative(axis)              f ∂_axis g
                                           x; singular values
    Generator("drift", "diffusion")      f (b · ∇g + σσᵀ : Hess g / 2), gEDMD
                                           x, b (n, d), σ (n, d, m) or a number; complex eigenvalues
    Generator(..., reversible=True)      -(σᵀ ∇f) · (σᵀ ∇g) / 2
                                           x, σ; eigenvalues, 0 first, descending
    Transfer(lag)                        f(x_t) g(x_(t + lag))
                                           a trajectory, or a list of them; singular values, or eigenvalues with
                                           solver="eigen"
    Cross(center=False)                  f(x) g(y)
                                           fit((x, y)); singular values
    CrossCovariance()                    cov(f(x), g(y)), against the norms of the function spaces: MCA
                                           fit((x, y)); singular values
    Covariance()                         cov(f, g), against the norm of the function space: principal components
                                           x; variances, descending
    Augmentation(views)                  the mean of (f(xi) - f(xi'))(g(xi) - g(xi')), equation (20)
                                           fit((x, x1, ...)); eigenvalues, ascending
    NeighborJumps()                      random walk from row to row over the nearest centroids, equation (20)
                                           x; eigenvalues, ascending
    SymmetricForm(form)                  a user-defined symmetric form: see `daskspectral.forms`
                                           x and the fields that it reads; eigenvalues
    BilinearForm(form, solver=)          a user-defined form
                                           x and the fields that it reads; values by solver=

Equations are numbered as in Cabannes and Bach (2024). Operators that depend on the units of the points (a
potential, a drift, a partial derivative, a manifold) raise an error with `Rows(x, standardize=True)`: scale the columns
first. Operators with singular values have left and right functions, `transform(x)` and `transform(y, side="right")`;
`rank_` is a pair.

Choosing an operator
--------------------
The operator depends on the rows and on the question:

    the rows are                          the question                           operator
    points, in any order                  clusters                               NeighborJumps()
    points, in any order                  coordinates along the data, smooth     Laplacian()
                                          functions of the points
    points, sampled unevenly              the shape of the set, not its density  Laplacian(density=1.0)
    points on a known surface             functions along the surface            Laplacian(manifold)
    points, with a matrix at each         the same, direction-dependent          AnisotropicDiffusion("diffusion")
    points, with a potential              bound states                           Schroedinger("potential")
    frames of a trajectory                slow modes, time scales, forecasts     Transfer(lag): `dsp.Koopman`
    equilibrium frames, known noise       the same, without a lag                Generator(diffusion=s, reversible=True)
    points, with their drift and noise    decay and rotation, complex rates      Generator("drift", "diffusion")
    two measurements of the same rows     what they have in common               Cross(center=True)
    several versions of each row          functions that vary between rows,      Augmentation(views)
                                          not between versions
    points, with invariant directions     functions nearly constant along them   TangentPropagation("direction")
    maps, or many correlated columns      patterns of the largest variance       Covariance()
    any of these                          a user-defined form                    SymmetricForm(form)

If two operators fit, choose the simpler one: `Laplacian()` requires only the points, and its error bars and validation
values show whether there are enough of them. `Transfer` requires only frames and a lag. Its singular values,
exp(-lag / time scale) for reversible processes, approach 1 as the lag decreases: choose a lag at which the time scales
no longer change. `Generator` requires no pairs of frames, and no drift with `reversible=True`, but the noise must be
known and the frames sampled in equilibrium. For regression see `HermiteRegressor` and `InvariantRegressor`.

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> dsp.operators.parse("laplacian"), dsp.operators.parse("transfer", lag=5)
    (Laplacian(), Transfer(lag=5))

Boundaries and periodic columns
-------------------------------
Boundary conditions are natural (Neumann) unless the basis vanishes there: `basis.DirichletBasis`. For columns that are
angles, set `periods` of `basis.Landmarks`, `basis.FourierBasis` or `basis.TrigonometricBasis`.

    >>> import numpy as np
    >>> import daskspectral as dsp
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
