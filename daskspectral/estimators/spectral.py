"""SpectralDecomposition: the spectrum and the eigenfunctions of an operator on the distribution of the data."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.data.remote import stored
from daskspectral.data.source import Source, open_data
from daskspectral.engine.accelerators import chosen_device
from daskspectral.engine.checkpoint import leased
from daskspectral.estimators.labelled import labelled
from daskspectral.estimators.spectral_functions import SpectralFunctions
from daskspectral.kernels import Kernel
from daskspectral.moments.folds import Dealing, Dealt
from daskspectral.moments.trust import UNCERTAIN, advise_update, uncertainty
from daskspectral.operators import Operator
from daskspectral.passes.folds import FoldRequest, checked_folds, continued_folds
from daskspectral.passes.networks import Training
from daskspectral.passes.parameters import (
    check_amount,
    check_landmark_fit,
    check_one_of,
    check_whole,
    checked_operator,
)
from daskspectral.passes.sides import Choice, choose_functions
from daskspectral.passes.sums import PassPlan, probed
from daskspectral.solve import resolve_cut

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
    kernel : Kernel or "auto"
        The functions k(., y_i) that span the solution. "auto" compares a rough and a smooth kernel at the scales that
        are better than their neighbours, and in a metric in which slow functions change evenly (`kernels.Mahalanobis`),
        where functions have gradients; of a kernel with the scale "auto", as Gaussian("auto"), the scale is chosen.
    n_components : int
        Functions wanted; fewer come, with a RankWarning, when the rank is less.
    n_landmarks : int or "auto"
        p, when `landmarks` is a method; "auto" is a quarter of the rows, and at most 500 (of fewer than 200 rows
        half, and at most 50).
    landmarks : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"} or array (p, n_features)
        How rows of the data are chosen as y_i, or the y_i themselves, in the units of X.
    landmark_sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    basis : Basis or "auto", optional
        Functions of the prepared columns that take the place of the kernel at landmarks; Vanishing("landmarks", edge)
        takes the kernel at landmarks into it. On a FourierLattice the kernel is the prior of the coefficients, chosen
        after the pass; "auto" compares a lattice with landmarks on the pilot, for up to three columns. Of operators
        with singular values the choice compares few soft cells (`SoftCells`) too, which short trajectories bear.
    right_basis, right_kernel, right_landmarks : optional
        The right functions of an operator with singular values. Where they take other variables than the left ones
        (Cross), they have the same kernel and landmark method by default, at landmarks among their own points;
        otherwise (Transfer) they are the left functions, unless one of these is given.
    columns : sequence of int, optional
        The columns of X that are used; all by default.
    periods : mapping of int to float, optional
        The periods of columns of X by their numbers, as in {0: 2 * numpy.pi} for angles; kernels at landmarks are made
        periodic in them (`kernels.Periodic`).
    standardize : bool
        Bring each column to mean 0 and standard deviation 1 first, in one more pass. Derivatives, and so the Laplacian,
        are then in standardised units; operators tied to the units of X, for instance by a potential, are refused.
    constant : bool, optional
        Add the constant function to the bases; by default where the operator kills it.
    exclude_landmarks : bool, optional
        Whether rows that coincide with landmarks are left out of the sums where the form has derivatives, as long as
        nine tenths of the rows remain: a radial kernel has a zero gradient at its own landmark, which can make spurious
        small eigenvalues. By default only for kernels with a kink, such as Exponential; for other radial kernels such
        rows are in the sums, and in no fold while there are fewer than 100 rows to a landmark.
    folds : int, array (n,), "blocks" or None
        Into how many parts, 2 to 100, the sums are kept apart, for error bars and held-out values. Whole tasks are
        dealt to the folds in turn from 100 tasks on, and below rows by a hash of their values, so that copies of a row
        share a fold; rows of rounded values, all of five digits or fewer, by a hash of their number, as are fewer than
        100 rows. Columns of few levels that were scaled beforehand pass for copies: leave the scaling to
        standardize=True, or give labels in turn, numpy.arange(n) % 10. Pairs of trajectories are cut into contiguous
        blocks. "blocks" are ten contiguous blocks of rows. An array (numpy, dask, zarr, or its path; for several
        trajectories a list) has a label for each row, and each distinct label is a fold.
    solver : {"penalised", "cut"}
        "penalised" seeks the solution among the functions that are smoothest for what the data see of them, and reports
        Rayleigh-Ritz values, which carry no penalty. "cut" seeks it in all directions of the Gram matrix above `rtol`.
    penalty : float or "auto"
        c of the penalty c κ / n times the squared norm of a function, κ the roughness of the form's functionals
        and n the number of rows; scale-invariant. "auto": chosen with the kernel, .1 or 1, and from .01 to 100 of
        operators with singular values; 1 with a kernel that is given. On a Fourier lattice 1, chosen from 1e-4 to 1
        with a kernel that is given. What is chosen does not depend on the unit of sample weights: these multiply c
        where they count rows more than once.
    spread : float or "auto"
        J: landmarks are moved off the data by J scales of the kernel, in random directions; it helps where the data lie
        on a submanifold. "auto": .3 with a kernel that is chosen, for operators with derivatives; else 0.
    min_support : float, optional
        Functions of a radial kernel that rest on fewer effective points than this, (sum φ)² / sum φ², are left
        out, with a RankWarning: their eigenvalues are an accident of the few points. Default 10 with solver="cut", else
        0. A row of weight 2 counts as two; weights w with sum w < (sum w)² / sum w², such as probabilities, are
        scaled to equality first.
    ridge : float
        Added to a symmetric form's diagonal, times its mean; never to the Gram matrix.
    rtol : float, optional
        Relative cut of the Gram matrices' eigenvalues; default 1e-10 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
    device : {"cpu", "cuda", "auto"}
        Where functions are evaluated and multiplied, in the pass, in `transform` and in `score`: "cuda" is a GPU (extra
        `gpu`) of this process, or of each worker; "auto" takes one where there is one. The other steps stay on the CPU,
        but for eigenvectors of more than 2000 functions. Tested on a stand-in for CuPy's arrays, and not measured on a
        GPU yet (deploy/README.md, "GPUs").
    random_state : int, Generator or None
        Decides the pilot and the landmarks, with the global order of the rows, and for the pilot of more than 256
        chunks with these: the same rows in other chunks, or in memory, may then choose another kernel or penalty.
    sample_dims : str or sequence of str, optional
        Of data with labels (a DataArray or Dataset of xarray, a zarr group, NetCDF files): the dimensions whose entries
        are rows, such as ("time",) or ("time", "lat", "lon"); all others are stacked to columns, variable by variable.
        The first dimension by default. Parameters travel with `clone`, through pipelines and searches; arguments of
        `fit` by the same names take their place for its data.
    latitude : str, optional
        A coordinate of such data in degrees. Where it belongs to the columns, these are multiplied by the square root
        of its cosine; where it belongs to the rows, the cosine is a sample weight.

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
    approximation_ : (k,), by how much held-out values change when half of the landmarks are left out, or the higher
        half of a lattice's frequencies
    trusted_ : (k,) of bool, values with held-out over fitted values below 1.1 and an interval narrower than 30 %,
        which neither a finalist of the choice undercuts nor half of the functions change (`approximation_`) by a tenth;
        what differs by a thousandth of the last value counts as equal, and held-out values that are NaN as the fitted.
        Those of constants are True; without error bars all are False
    constants_ : int, leading values that are 0 by construction; `trusted_[constants_:].mean()` leaves them out
    choice_ : Selection, the table of the candidates, and `parameters`, which give the same fit again
    rank_ : int, independent directions that the data see; with singular values a pair, one for each side
    residuals_ : (k,) norms of the whitened problem's residuals
    status_ : str, how many values were obtained, the ranks, and the largest residual, in words
    support_, right_support_ : (p,), (q,) effective points under each basis function
    density_ : Density, the estimate that was divided out, where the operator asks for one: its centres, counts,
        bandwidth, floor, and the share `clipped` of the rows below it
    layout_ : Layout of data with labels, which tells the names and places of the columns; right_layout_ of y in Cross
    moments_, basis_, right_basis_, kernel_, n_features_in_, n_right_features_in_, feature_names_in_ (of a data frame)

    Examples
    --------
    A uniform distribution on an interval of length π has the eigenvalues k²:

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> kernel = dsp.kernels.Gaussian(1.0)
    >>> est = dsp.SpectralDecomposition(kernel=kernel, n_landmarks=50, n_components=4, random_state=0)
    >>> est.fit(x).eigenvalues_.round(1) + 0.0
    array([0., 1., 4., 9.])
    >>> est.transform(x).shape
    (20000, 4)
    """

    def __init__(
        self,
        operator: Operator | None = None,
        kernel: Kernel | str | None = "auto",
        *,
        n_components: int = 16,
        n_landmarks: int | str = "auto",
        landmarks: str | Any = "kmeans++",
        landmark_sample: int | None = None,
        basis: Basis | str | None = None,
        right_basis: Basis | None = None,
        right_kernel: Kernel | None = None,
        right_landmarks: str | Any = None,
        columns: Sequence[int] | None = None,
        periods: Mapping[int, float] | None = None,
        standardize: bool = False,
        constant: bool | None = None,
        exclude_landmarks: bool | None = None,
        folds: Any = 10,
        min_support: float | None = None,
        solver: str = "penalised",
        penalty: float | str = "auto",
        spread: float | str = "auto",
        ridge: float = 0.0,
        rtol: float | None = None,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.operator = operator
        self.kernel = kernel
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.landmark_sample = landmark_sample
        self.basis = basis
        self.right_basis = right_basis
        self.right_kernel = right_kernel
        self.right_landmarks = right_landmarks
        self.columns = columns
        self.periods = periods
        self.standardize = standardize
        self.constant = constant
        self.exclude_landmarks = exclude_landmarks
        self.folds = folds
        self.min_support = min_support
        self.solver = solver
        self.penalty = penalty
        self.spread = spread
        self.ridge = ridge
        self.rtol = rtol
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.sample_dims = sample_dims
        self.latitude = latitude

    @stored
    @labelled
    @leased
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        fields: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Measure the moments of X (n, d) in one pass on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped), dask, zarr or xarray array, a data frame of numbers (pandas, polars, Arrow),
        or the path or URL of a zarr array; a tuple of them, row by row, for an operator between views, fit((x, y)); for
        Transfer one trajectory, or a list of several with lists of weights and fields. `fields` are the further arrays
        that the operator reads, by name, with a row for each row of X: fields={"potential": v}. `y` is ignored.
        `sample_weight` (n,) are frequency weights. A row with NaN or infinity raises InvalidRowError for the lowest
        one, or with on_invalid="skip" is dropped and counted.

        X may have labels: an xarray DataArray of any dimensions or Dataset, a zarr group, NetCDF files (a path, a
        pattern with *, a list) or Parquet files, which are read lazily. `sample_dims` and `latitude` tell its rows and
        weights, in place of the parameters; weights and fields with labels are brought to its rows. With
        on_invalid="skip" columns that are NaN in all rows (land) are left out first, and NaN in what has the layout of
        X; where the first rows have such columns, X is read once more to find them.

        A missing zarr chunk raises OSError unless `allow_missing` says that fill values are meant. With `checkpoint`, a
        directory or URL, the sums are kept there every `checkpoint_every` seconds, by one live run at a time, and the
        same call goes on from them after a stop, on a device of the same kind, to the same bits. `progress` None: on a
        terminal only.
        `storage_options` are fsspec's for all URLs of the call, such as {"endpoint_url": ...} or {"anon": True};
        credentials among them are refused, and taken from the environment.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent, and OSError for data that are damaged or change meanwhile, or a checkpoint in use.
        """
        source, choice, folds = self._opened(X, fields, sample_weight, on_invalid)
        self._check_several(source)
        self._keep_names(X, alike=choice.operator.lag is not None)

        def lay(source: Source, training: Training) -> Any:
            options: dict[str, Any] = {"on_invalid": on_invalid, "progress": progress}
            return choice.discretise(source, self.random_state, training=training, **options)

        self._fit_source(
            source,
            choice.operator,
            lay,
            sizes=choice.sizes,
            folds=folds,
            apart=choice.apart(source),
            choosing=choice.choosing(source),
            lattice=choice.lattice,
            on_invalid=on_invalid,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
        solver = self.solver_
        doubt = uncertainty(vars(self)[solver.values], vars(self)[solver.errors], two_sided=solver.two_sided)
        self.choice_.advise(certain=doubt <= UNCERTAIN)
        return self

    @stored
    @labelled
    def plan(
        self,
        X: Any,
        *,
        fields: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        probe: bool = False,
        workers: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> PassPlan:
        """The tasks and the peak memory of `fit` on these data, and with `probe` its time, before it starts.

        Nothing is read but metadata, and labels of folds; with on_invalid="skip" also what tells which columns of
        labelled data are empty. A probe chooses the functions as the fit would, and makes two tasks of the pass, each
        on one thread of this process: `plan.probe` has the seconds of the choice (`choosing`), of the second task, and
        of the whole pass (`seconds`) on so many `workers` (processes) with the threads that dask has here; by default
        on those on which a fit would run now. It does not know how far threads slow each other down, on one GPU
        above all, nor what a scheduler takes, and the solution after the pass is not in it.

        Raises ValueError, TypeError or FileNotFoundError for input that cannot work, MemoryError where the run would
        not fit, and with `probe` what `fit` raises for the rows that are read.
        """
        if workers is not None:
            check_whole("workers", workers)
        source, choice, folds = self._opened(X, fields, sample_weight, on_invalid)
        operator, apart, choosing = choice.operator, choice.apart(source), choice.choosing(source)
        folds = None if folds is None else folds.counted(source)
        plan = self._planned(source, operator, choice.sizes, folds, apart, choosing, choice.lattice)
        if not probe:
            return plan

        def dealing(sizes: tuple[int, int | None]) -> Dealing | None:
            return self._planned(source, operator, sizes, folds, apart).dealing

        began = time.perf_counter()
        source = replace(source, by_tasks=isinstance(plan.dealing, Dealt))
        training = Training(dealing)
        laid = choice.discretise(source, self.random_state, on_invalid=on_invalid, progress=False, training=training)
        seconds = time.perf_counter() - began
        plan = self._planned(source, operator, laid.sizes, folds, laid.landmark_rows == "apart", choosing, laid.lattice)
        return probed(
            source,
            laid,
            operator,
            plan,
            dtype=self.dtype,
            device=chosen_device(self.device),
            on_invalid=on_invalid,
            choosing=seconds,
            workers=workers,
        )

    def _opened(
        self, X: Any, fields: Mapping[str, Any] | None, weight: Any, on_invalid: str = "raise"
    ) -> tuple[Source, Choice, FoldRequest | None]:
        """The data of a fit, the choice of functions, and the folds; checked, and nothing but metadata is read."""
        operator = checked_operator(self.operator)
        self._check_parameters(operator, on_invalid)
        choice, folds = choose_functions(self, operator), checked_folds(self.folds)
        labels = None if folds is None else folds.labels
        source = open_data(operator, X, columns=self.columns, weight=weight, fields=fields, fold=labels)
        if self.n_landmarks == "auto":
            choice = choice.fitted_to(source)
        choice = choice.in_dimension(source)
        choice.check_against(source)
        return source, choice, folds

    @stored
    @labelled
    def update(
        self,
        X: Any,
        *,
        fields: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        folds: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fold in rows that were appended to X since it was fitted: only these are summed, and the rest is solved anew.

        For trajectories these are rows appended to the last one, and new trajectories after it. Landmarks and scaling
        stay. New rows come to folds as the old ones did; where these are labels, `folds` are the labels of all rows.

        The rows of the fit, with their weights and fields, must be as they were. Only what may have changed is read
        again, and compared by checksums: zarr chunks that were written since, by their size and time or etag, and
        arrays that are in memory or dask's.

        Raises ValueError where X has no more rows than before, where some of them, the first of which are named, are
        not as they were, where the moments were added up from several arrays, and for labels that are missing or new.
        """
        before = self.fitted().moments_
        found = continued_folds(before.folds, folds)
        labels = None if found is None else found.labels
        X = self._rows_like_fit(X)
        columns = before.preparation["columns"]
        source = open_data(before.operator, X, columns=columns, weight=sample_weight, fields=fields, fold=labels)
        known = self._excess()
        self._update_source(source, folds=found, on_invalid=on_invalid, progress=progress)
        advise_update(known, self._excess())
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same array. Raises ValueError for views and lists of trajectories."""
        if isinstance(X, (tuple, list)) and len(checked_operator(self.operator).views) > 1:
            raise ValueError("fit_transform takes one array: call fit, then transform of the array that is wanted")
        return super().fit_transform(X, y, **options)

    def _check_parameters(self, operator: Operator, on_invalid: str) -> None:
        check_whole("n_components", self.n_components)
        check_landmark_fit(self, on_invalid)
        for name in ("basis", "right_basis"):
            if isinstance(getattr(self, name), str):
                check_one_of(name, getattr(self, name), ("auto",))
        check_one_of("solver", self.solver, ("penalised", "cut"))
        for name in ("penalty", "spread"):
            if getattr(self, name) != "auto":
                check_amount(name, getattr(self, name))
        check_one_of("constant", self.constant, (None, True, False))
        check_one_of("exclude_landmarks", self.exclude_landmarks, (None, True, False))
        check_amount("ridge", self.ridge)
        if self.min_support is not None:
            check_amount("min_support", self.min_support)
        resolve_cut(self.rtol, self.dtype)
        if self.ridge and (operator.solver.by_norm or not operator.solver.needs_symmetry):
            raise ValueError(f"ridge is for symmetric operators, and {operator.name} is solved by {operator.solver!r}")
