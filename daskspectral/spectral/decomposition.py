"""SpectralDecomposition: spectrum and eigenfunctions of an operator on the distribution of the data."""

from __future__ import annotations

from typing import Any

from daskspectral.basis import BasisRecipe
from daskspectral.operators import Operator
from daskspectral.solvers import Solving
from daskspectral.spectral.passage import Process


class SpectralDecomposition(Process):
    """Spectral decomposition of an operator by the Galerkin method.

    This is Algorithm 1 of Cabannes and Bach (2024): one pass over the rows sums the form <f, L g> and the Gram matrices
    of p left and q right functions; the rest is dense linear algebra with p × q matrices. Symmetric operators have
    eigenvalues, and equal functions on both sides; two-sided operators, as `Cross` and `Transfer`, have singular
    values, with left and right singular functions.

    By default kernel, scale, landmarks and penalty are selected on a subsample of 10 000 rows, the pilot, of which one
    half is solved and the other compares candidates. Every fit has error bars and validation values from the folds of
    the pass.

    Parameters
    ----------
    operator : Operator or None, default=None
        Operator to decompose; None means `Laplacian()`.
    basis : BasisRecipe, str or None, default=None
        Functions that span the solution. None or "landmarks" means `Landmarks()`: a kernel at rows of the data;
        "fourier" and "network" mean `FourierBasis()` and `NeuralBasis()`; "auto" compares a `FourierBasis`, for up
        to three columns, with `Landmarks` on the pilot. On a FourierBasis the kernel is the spectral density of the
        coefficients, selected after the pass. For operators with singular values, the candidates include few
        `NormalizedRBF` functions, which suit short trajectories.
    right_basis : BasisRecipe, str or None, default=None
        Right functions of an operator with singular values. By default those of Transfer are the left functions;
        those of Cross have the same kernel and landmark method, at landmarks among their rows.
    n_components : int or float, default=16
        Number of functions; fewer, with a RankWarning, if the rank is less. For `Covariance` of columns, a number
        between 0 and 1 selects the fewest components that explain more than this share of the variance.
    solver : Regularized, Truncated or None, default=None
        Solver (`daskspectral.solvers`). None means `Regularized("auto")`, which favors smooth functions.
    folds : int, array of shape (n,), "blocks", "random" or None, default=10
        Division of the rows into 2 to 100 folds, for error bars and validation values. An int assigns rows at
        random, by a hash of their number, and warns of repeated rows; but pairs of trajectories, and rows with
        times (a coordinate of the first of `sample_dims`, the index of a pandas frame), are divided into contiguous
        blocks. "blocks" means ten contiguous blocks of rows; "random" that rows are independent, regardless of
        their order. An array (numpy, dask, zarr, or its path; for several trajectories a list) contains a label for
        each row, and each distinct label is a fold.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the features and their products, which are summed in float64 in either case.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Device that evaluates and multiplies functions: "cuda" is a GPU (extra `gpu`) of this process, or of each
        worker; "auto" uses a GPU if there is one. Other steps run on the CPU, except eigenvectors of more than 2000
        functions (deploy/README.md, "GPUs").
    random_state : int, Generator or None, default=None
        Seed of the pilot and the landmarks. Equal seeds and orders of rows have equal results; the pilot of more
        than 256 chunks depends on the chunks, too, so that others may lead to another kernel or penalty.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (k,)
        Eigenvalues of symmetric operators, ascending for Laplacian-like ones; complex for the solver "eigen".
    singular_values_ : ndarray of shape (k,)
        Singular values, descending, in place of eigenvalues_ for operators solved by "singular".
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Coefficients of eigenfunctions or left singular functions, of unit L²(ρ) norm, and of right ones.
    left_coefficients_ : ndarray of shape (p, k)
        For "eigen": eigenfunctions of the adjoint, biorthonormal to the eigenfunctions.
    eigenvalue_errors_, singular_value_errors_ : ndarray of shape (k, 2)
        Ends of 95 % intervals: from the fitted to the validation value, extended by the jackknife's standard error;
        of the real parts of complex values. NaN below 100 rows, or if fewer than two folds have rows that are not
        landmarks; `message_` has the reason.
    standard_errors_ : ndarray of shape (k,)
        Standard errors by the jackknife over folds.
    validation_values_ : ndarray of shape (k,)
        Values of the functions on held-out rows; NaN for complex eigenvalues.
    multiplets_ : ndarray of int of shape (k,)
        Groups of values that the data cannot distinguish.
    function_errors_ : ndarray of shape (k,)
        Sine of the angle between the functions of each group with and without a fold.
    discretization_errors_ : ndarray of shape (k,)
        Change of validation values if half of the landmarks are removed, or of fitted values with more frequencies
        of a Fourier basis, extrapolated from half and three quarters of them.
    reliable_ : ndarray of bool of shape (k,)
        True if the ratio of validation to fitted value is below 1.1 and the interval is narrower than 30 %, unless
        a finalist of the search or half of the functions (`discretization_errors_`) change the value by a tenth, or
        functions of a graph of neighboring rows have lower values (Laplacian, on 2000 rows). Differences below a
        thousandth of the last value do not count. Principal components are reliable if they exceed red noise and
        their patterns are known (`EOF.significance`). Constants are always reliable. No value is reliable without
        error bars, if error bars assume independent rows but rows are correlated, if singular values are of
        trajectories that start out of equilibrium, or if eigenvalues depend on few trajectories that return to
        their start.
    n_constants_ : int
        Number of leading functions that are constants, of the exact value 0, or 1 for Transfer and Cross;
        `reliable_[n_constants_:].mean()` excludes them.
    search_results_ : Selection
        Table of the candidates; `SpectralDecomposition(**search_results_.best_params)` repeats the fit.
    rank_ : int or tuple of two int
        Number of independent directions that the data determine; one per side for singular values.
    residuals_ : ndarray of shape (k,)
        Residual norms of the whitened problem.
    message_ : str
        Number of values, ranks, and the largest residual.
    support_, right_support_ : ndarray of shape (p,) and (q,)
        Effective number of rows in the support of each basis function.
    density_ : Density
        Density estimate, if the operator divides by it: centers, counts, bandwidth, floor, and the share `clipped`
        of the rows below the floor.
    layout_, right_layout_ : Layout
        Names and positions of the columns of labeled data.
    moments_, basis_, right_basis_, kernel_, n_features_in_, n_right_features_in_, feature_names_in_
        Sums, functions, and names of the columns.

    See Also
    --------
    EOF : Principal components of fields.
    Koopman : Slow processes of trajectories.
    SpectralClustering : Clusters of rows.

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
