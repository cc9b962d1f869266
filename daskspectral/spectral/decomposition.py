"""SpectralDecomposition: the spectrum and the eigenfunctions of any operator on the distribution of the data."""

from __future__ import annotations

from typing import Any

from daskspectral.basis import BasisRecipe
from daskspectral.operators import Operator
from daskspectral.solvers import Solving
from daskspectral.spectral.passage import Process


class SpectralDecomposition(Process):
    """Spectral decomposition of an operator by the Galerkin method (Algorithm 1, Cabannes and Bach 2024).

    One pass over the rows sums the form <f, L g> and the Gram matrices of p left and q right functions; the rest is
    dense algebra on p × q matrices. Symmetric operators have eigenvalues and the same functions on both sides; Cross,
    Transfer and other two-sided operators have singular values, with left and right singular functions.

    With no argument given, kernel, scale, landmarks and penalty are chosen from the data: candidates are solved on half
    of a pilot of 10 000 rows and compared on the other half, first with 100 functions on 2000 rows, the best scale of
    each kernel then with 300 on all of them; all rows are read once, for the winner. Every fit has
    error bars from the folds of the same pass, and values on rows that were not fitted to.

    Parameters
    ----------
    operator : Operator, default Laplacian()
        What is decomposed.
    basis : BasisRecipe, its name, "auto" or None
        The functions that span the solution, as a basis or a recipe of one: by default `Landmarks()`, a kernel at rows
        of the data, with the kernel, its scale and their number chosen. The names "landmarks", "fourier" and "network"
        stand for `Landmarks()`, `FourierBasis()` and `NeuralBasis()`. On a FourierBasis the kernel is the prior of the
        coefficients, chosen after the pass. "auto" compares a lattice, for up to three columns, with landmarks on the
        pilot. Of operators with singular values the choice compares few `NormalizedRBF` functions too, which suit
        short trajectories.
    right_basis : BasisRecipe or its name, optional
        The right functions of an operator with singular values. Where they take other variables than the left ones
        (Cross), they have the same kernel and landmark method by default, at landmarks among their own points;
        otherwise (Transfer) they are the left functions.
    n_components : int or float
        Number of functions, or for `Covariance` the share of the variance to explain. If the rank is less, there are
        fewer, with a RankWarning. For `Covariance` of columns, a number between 0 and 1 stands for the fewest
        components that explain more than this share of the variance.
    solver : Regularized or Truncated, optional
        In which functions the solution is sought (`help(daskspectral.solvers)`): by default `Regularized("auto")`,
        those that are smoothest for what the data see of them.
    folds : int, array (n,), "blocks", "random" or None
        Parts into which the rows are divided, for error bars and held-out values. Their number is 2 to 100. Rows come
        to the folds at random, by a hash of their number; copies of a row are warned of. Pairs of trajectories, and
        rows that have times (a coordinate of the first of `sample_dims`, the index of a frame of pandas), are cut into
        contiguous blocks. "blocks" are ten contiguous blocks of rows. "random" says that rows are independent, whatever
        their order. An array (numpy, dask, zarr, or its path; for several trajectories a list) has a label for each
        row, and each distinct label is a fold.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products, which are summed in float64 in any case.
    device : {"cpu", "cuda", "auto"}
        Where functions are evaluated and multiplied: "cuda" is a GPU (extra `gpu`). This holds for the pass,
        `transform` and `score`; the GPU is that of this process, or of each worker; "auto" takes one where there is
        one. The other steps stay on the CPU, but for eigenvectors of more than 2000 functions (deploy/README.md,
        "GPUs").
    random_state : int, Generator or None
        Seed of random choices: the same seed makes the same result. It decides the pilot and the landmarks, with the
        global order of the rows, and for the pilot of more than 256 chunks with these: the same rows in other chunks,
        or in memory, may then choose another kernel or penalty.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (k,)
        Eigenvalues of symmetric operators, ascending for Laplacian-like ones; complex for the solver "eigen".
    singular_values_ : ndarray of shape (k,)
        Singular values, descending, instead of eigenvalues_ for operators solved by "singular".
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Eigenfunctions or left singular functions in the basis, of unit L²(ρ) norm; right singular functions.
    left_coefficients_ : ndarray of shape (p, k)
        For "eigen": eigenfunctions of the adjoint, biorthonormal to the eigenfunctions.
    eigenvalue_errors_, singular_value_errors_ : ndarray of shape (k, 2)
        Ends of 95 % intervals, from the fitted to the validation value and wider by the jackknife's standard error; of
        the real parts of complex values. NaN below 100 rows, or if fewer than two folds have rows that are not
        landmarks; `message_` has the reason.
    standard_errors_ : ndarray of shape (k,)
        Standard errors, by leaving out one fold at a time.
    validation_values_ : ndarray of shape (k,)
        Values of the functions on held-out rows; NaN for complex eigenvalues.
    multiplets_ : ndarray of int of shape (k,)
        Groups of values that the data cannot distinguish.
    function_errors_ : ndarray of shape (k,)
        Sines of the angles by which the functions of each group turn when a fold is left out.
    discretization_errors_ : ndarray of shape (k,)
        Change of validation values without half of the landmarks, or of fitted values with more frequencies of a
        Fourier basis, extrapolated from half and three quarters of them.
    reliable_ : ndarray of bool of shape (k,)
        True for values with a ratio of validation to fitted value below 1.1 and an interval narrower than 30 %, unless
        a finalist of the search or half of the functions (`discretization_errors_`) change them by a tenth, or
        functions of a graph of neighboring rows have lower values (Laplacian, on 2000 rows). Differences of a
        thousandth of the last value do not count. Principal components are reliable if they are above red noise and
        their patterns known (`EOF.significance`). Constants are always reliable. Without error bars no value is, nor if
        error bars assume independent rows but rows are correlated, singular values are of trajectories that start out
        of equilibrium, or eigenvalues depend on few trajectories that return to their start.
    n_constants_ : int
        Number of leading functions that are constants, with the exact value 0, or 1 of Transfer and Cross;
        `reliable_[n_constants_:].mean()` excludes them.
    search_results_ : Selection
        Table of the candidates; `SpectralDecomposition(**search_results_.best_params)` repeats the fit.
    rank_ : int or tuple of two int
        Independent directions that the data determine; with singular values one for each side.
    residuals_ : ndarray of shape (k,)
        Norms of the residuals of the whitened problem.
    message_ : str
        Number of values, ranks, and the largest residual.
    support_, right_support_ : ndarray of shape (p,) and (q,)
        Effective number of points under each basis function.
    density_ : Density
        Estimate that was divided out, if the operator does so: its centers, counts, bandwidth, floor, and the share
        `clipped` of the rows below it.
    layout_, right_layout_ : Layout
        Names and places of the columns of labeled data.
    moments_, basis_, right_basis_, kernel_, n_features_in_, n_right_features_in_, feature_names_in_
        Sums, functions, and names of the columns.

    Examples
    --------
    A uniform distribution on an interval of length π has the eigenvalues k²:

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 50)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
    >>> est.fit(x).eigenvalues_.round(1) + 0.0
    array([0., 1., 4., 9.])
    >>> est.transform(x).shape
    (20000, 4)
    """

    def __init__(
        self,
        operator: Operator | None = None,
        basis: BasisRecipe | str | None = None,
        *,
        right_basis: BasisRecipe | str | None = None,
        n_components: float = 16,
        solver: Solving | None = None,
        folds: Any = 10,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.operator = operator
        self.basis = basis
        self.right_basis = right_basis
        self.n_components = n_components
        self.solver = solver
        self.folds = folds
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
