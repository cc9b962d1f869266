"""SpectralDecomposition: the spectrum and the eigenfunctions of an operator on the distribution of the data."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, Landmarks
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, in_rows, open_data
from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.records import remembered
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.trust import UNCERTAIN, uncertainty
from daskspectral.operators import Operator
from daskspectral.passes.folds import FoldRequest, checked_folds, continued_folds
from daskspectral.passes.parameters import check_components, check_fit, checked_operator
from daskspectral.passes.session import Session, Training
from daskspectral.passes.sums import Discretisation
from daskspectral.solve import SymmetricPencil, resolve_cut
from daskspectral.solvers import Solving, solving
from daskspectral.spectral.choice import choose_functions
from daskspectral.spectral.functions import SpectralFunctions

Array = NDArray[np.inexact[Any]]


class SpectralDecomposition(SpectralFunctions):
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
    basis : Landmarks, another basis, a name, "auto" or None
        The functions that span the solution: by default `Landmarks()`, a kernel at rows of the data, with the kernel,
        its scale and their number chosen. The names "landmarks", "fourier" and "network" stand for `Landmarks()`,
        `FourierBasis()` and `NeuralBasis()`. On a FourierBasis the kernel is the prior of the coefficients, chosen
        after the pass. "auto" compares a lattice, for up to three columns, with landmarks on the pilot.
        Of operators with singular values the choice compares few `NormalizedRBF` functions too, which short
        trajectories bear.
    right_basis : Landmarks, another basis or a name, optional
        The right functions of an operator with singular values. Where they take other variables than the left ones
        (Cross), they have the same kernel and landmark method by default, at landmarks among their own points;
        otherwise (Transfer) they are the left functions.
    n_components : int or float
        Number of functions, or for `Covariance` the share of the variance to explain. If the rank is less, there are
        fewer, with a RankWarning. For `Covariance` of columns, a number between 0 and 1 stands for the fewest
        components that explain more than this share of the variance.
    solver : Penalised or Cut, optional
        In which functions the solution is sought (`help(daskspectral.solvers)`): by default `Penalised("auto")`, those
        that are smoothest for what the data see of them.
    folds : int, array (n,), "blocks", "random" or None
        Parts into which the rows are divided, for error bars and held-out values. Their number is 2 to 100. Rows come
        to the folds at random, by a hash of their number; copies of a row are warned of. Pairs of trajectories, and
        rows that have times (a coordinate of the first of `sample_dims`, the index of a frame of pandas), are cut into
        contiguous blocks. "blocks" are ten contiguous blocks of rows. "random" says that rows are independent, whatever
        their order. An array (numpy, dask, zarr, or its path; for several trajectories a list) has a label for each
        row, and each distinct label is a fold.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
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
    eigenvalues_ : (k,) of symmetric operators, ascending for Laplacian-like ones; complex for the solver "eigen"
    singular_values_ : (k,) descending, for operators solved by "singular", in place of eigenvalues_
    coefficients_ : (p, k), the eigenfunctions or left singular functions in the basis, unit L²(ρ) norm
    right_coefficients_ : (q, k), the right singular functions in the right basis
    left_coefficients_ : (p, k), for "eigen": eigenfunctions of the adjoint, biorthonormal to the eigenfunctions
    eigenvalue_errors_, singular_value_errors_ : (k, 2), ends of the 95 % intervals, from the fitted value to the one
        held out and wider by the jackknife's standard error, of complex values for the real parts; NaN below 100 rows,
        or without rows in two folds that are no landmarks, and the status says why
    standard_errors_ : (k,), by leaving out one fold at a time
    held_out_ : (k,), values of the functions on rows that they were not fitted to; NaN for complex eigenvalues
    groups_ : (k,) of int, clusters of values that the data cannot tell apart
    function_errors_ : (k,), sines of the angles by which the functions of each group turn when a fold is left out
    approximation_ : (k,), by how much held-out values change when half of the landmarks are left out, or fitted values
        would change with more of a lattice's frequencies, extrapolated from half and three quarters of them
    trusted_ : (k,) of bool, values with held-out over fitted values below 1.1 and an interval narrower than 30 %,
        which neither a finalist of the choice undercuts nor half of the functions change (`approximation_`) by a tenth,
        and below which functions of a graph of neighboring rows have no values (of a Laplacian, on 2000 rows);
        what differs by a thousandth of the last value counts as equal, and held-out values that are NaN as the fitted.
        Those of constants are True; without error bars all are False, and all others where error bars take rows as
        independent whose order matters, if singular values are of trajectories that start out of equilibrium, or if
        eigenvalues depend on few trajectories that return to where they began
    constants_ : int, leading functions that are constants, whose values are 0, or 1 of Transfer and Cross, by
        construction; `trusted_[constants_:].mean()` leaves them out
    choice_ : Selection, the table of the candidates, and `parameters`, which give the same values and functions again
    rank_ : int, independent directions that the data see; with singular values a pair, one for each side
    residuals_ : (k,) norms of the whitened problem's residuals
    status_ : str, how many values were obtained, the ranks, and the largest residual, in words
    support_, right_support_ : (p,), (q,) effective points under each basis function
    density_ : Density, the estimate that was divided out, where the operator asks for one: its centres, counts,
        bandwidth, floor, and the share `clipped` of the rows below it
    lags_, timescales_, timescale_errors_ : (L,), (L, k'), (L, k', 2) of Transfer, whose `further` lags the same pass
        sums; `help(SpectralDecomposition.timescales_)`, `chapman_kolmogorov`, `metastable_sets`, `forecast`,
        `equilibrium_weights`
    dynamic_residuals_ : (k, 2), by how much eigenfunctions of Transfer are none: ends of 95 % intervals of |K f - l f|;
        values of reversible processes are not trusted where the lower end exceeds the gap to the nearest value
    layout_ : Layout of data with labels, which tells the names and places of the columns; right_layout_ of y in Cross
    moments_, basis_, right_basis_, kernel_, n_features_in_, n_right_features_in_, feature_names_in_ (if named)

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
        basis: Basis | Landmarks | str | None = None,
        *,
        right_basis: Basis | Landmarks | str | None = None,
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Measure the moments of X (n, d) in one pass on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped), dask, zarr or xarray array, a data frame of numbers, the path or URL of a
        zarr array or of data with labels, or `Rows`, which tell how such data are read; a tuple of them, row by row,
        for an operator between views, fit((x, y)), where fit(x, y) does the same for two; for Transfer one trajectory,
        or a list of several with lists of weights and fields. `y` is ignored otherwise. Sparse matrices of scipy are
        made dense in each task, its own rows only.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent; InvalidRowError for the lowest row with NaN or infinity, where these are not to be skipped;
        OSError for data that are damaged or change meanwhile, or a checkpoint in use.

        Parameters
        ----------
        sample_weight : array (n,), optional
            Frequency weights: a row of weight 2 counts as two rows.
        checkpoint : str, optional
            Directory or URL for the sums so far, from which the same call resumes after a stop. One live run at a time
            writes there; on a device of the same kind the result has the same bits.
        checkpoint_every : float
            Seconds between writes of the checkpoint.
        progress : bool, optional
            Show a progress bar; by default on a terminal only.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        with open_table(self, X, context, fits=True, y=y, sample_weight=sample_weight) as table:
            session = self._session(table)
            self._check_several(session.source)
            self._fit_session(session, context)
            solver = self.solver_
            values, ends = self._values, vars(self)[Attributes(solver).errors]
            doubt = uncertainty(values, ends, solver, constants=self.constants_)
            self.choice_.advise(certain=doubt <= UNCERTAIN)
        return self

    def _session(self, table: Table) -> Session:
        operator = in_rows(checked_operator(self.operator), table.rows)
        self._check_parameters(operator)
        folds = checked_folds(self.folds)
        labels = None if folds is None else folds.labels
        source = open_data(operator, table.rows, fold=labels, **table.options)
        return self._session_of(source, operator, folds)

    def _session_of(self, source: Source, operator: Operator, folds: FoldRequest | None) -> Session:
        wanted = choose_functions(self, operator)
        choice = wanted.fitted_to(source)
        if wanted.uses_gaps(source):
            source = replace(source, options=("skip", "pairwise"))
        choice.check_against(source)

        def choose(source: Source, training: Training) -> Discretisation:
            return choice.discretise(source, self.random_state, training=training)

        expected, choosing = choice.outline(source), choice.choosing(source)
        return Session(source, operator, choose, self.dtype, chosen_device(self.device), folds, expected, choosing)

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X since it was fitted: the functions stay, and the sums are solved anew.

        X holds all rows, old and new; for trajectories rows are appended to the last one, and new trajectories after
        it. Landmarks, scaling and anomalies stay, and functions keep the signs that they had. New rows come to folds as
        the old ones did; where these are labels, `folds` are the labels of all rows. Linear functions of fewer rows
        than columns, such as principal components of wide fields, span only these rows: they are made of all rows, and
        all are summed, as in a fit.

        The new rows alone are summed if all fields are in zarr stores of which no file with rows of the fit was
        written since, by size and time or etag (append whole chunks). Otherwise, and for arrays that are in memory or
        dask's, all rows are summed again, with the functions of the fit.

        Raises ValueError where X has no more rows than before, where the first rows are not those of the fit, where
        the moments were added up from several arrays, and for labels that are missing or new.
        """
        before = self.fitted().moments_
        found = continued_folds(before.folds, folds)
        labels = None if found is None else found.labels
        given = {"y": y, "sample_weight": sample_weight, "folds": folds}
        with open_table(self, X, RunContext(progress), **given) as table, remembered(self):
            source = open_data(before.operator, table.rows, fold=labels, **table.options)
            fitted = copy.copy(self)
            self._update_source(source, found)
            self._turn_like(fitted)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same array. Raises ValueError for views and lists of trajectories."""
        if isinstance(Rows.of(X).data, (tuple, list)) and len(checked_operator(self.operator).views) > 1:
            raise ValueError("fit_transform takes one array: call fit, then transform of the array that is wanted")
        return super().fit_transform(X, y, **options)

    def _check_parameters(self, operator: Operator) -> None:
        check_components(self.n_components, operator)
        check_fit(self)
        solver = solving(self.solver)
        resolve_cut(solver.rtol, self.dtype)
        if solver.ridge and not isinstance(operator.solver, SymmetricPencil):
            raise ValueError(f"ridge is for symmetric operators, and {operator.name} is solved by {operator.solver!r}")
