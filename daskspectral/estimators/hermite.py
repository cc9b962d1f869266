"""HermiteRegressor: kernel regression on values and gradients, in one pass over the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice, LandmarkBasis
from daskspectral.data.remote import stored
from daskspectral.data.source import Source, open_regression
from daskspectral.engine.checkpoint import leased
from daskspectral.estimators.doubts import remembered
from daskspectral.estimators.hermite_functions import RegressionFunctions
from daskspectral.estimators.labelled import labelled
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.moments.regression import RidgeProblem, advise_offset
from daskspectral.operators.regression import Regression
from daskspectral.passes.deciding import pilot_bytes
from daskspectral.passes.folds import checked_folds, continued_folds
from daskspectral.passes.landmarks import MOST_LANDMARKS, choose_landmarks
from daskspectral.passes.lattice import boxed, check_lattice_choice, regression_lattice
from daskspectral.passes.networks import Training
from daskspectral.passes.parameters import (
    check_amount,
    check_landmark_choice,
    check_landmark_fit,
    check_one_of,
    checked_kernel,
    given_landmarks,
)
from daskspectral.passes.periods import Periods, check_periods, periodic, periods_of
from daskspectral.passes.prior import regress_on_lattice
from daskspectral.passes.regression import Open, decide_regression
from daskspectral.passes.scale import standardized
from daskspectral.passes.selection import Selection
from daskspectral.passes.sums import Discretisation
from daskspectral.solve.ridge import resolve_ridge_cut

Array = NDArray[np.floating[Any]]


class HermiteRegressor(RegressionFunctions):
    """Kernel regression on values and gradients (section 7.2, algorithms 4 and 5, Cabannes and Bach 2024).

    f = Σ_i coef_i k(., y_i) at p landmarks minimises the mean over the rows of

        (f(x) - y)² + gradient_weight |∇f(x) - t|²,

    plus alpha coef.K coef, with K the kernel matrix of the landmarks. One pass sums p × p matrices, in
    O(n p² + n p d); the rest is p × p. Without gradients this is Nystrom kernel ridge regression.

    Parameters
    ----------
    kernel : Kernel or "auto"
        The functions k(., y_i) that span the solution. "auto" compares Matern(1.5), with gradients Matern(2.5), and
        Gaussian at many scales, by cross-validation on a pilot of 10 000 rows at most; a kernel whose scale is "auto"
        is compared with itself at other scales. `choice_` has the table.
    n_landmarks : int or "auto"
        p, when `landmarks` is a method; "auto" is 500, or n where there are fewer rows.
    alpha : float, "gcv" or None
        Weight of the penalty, 0 or more. By default the weight with the least error on folds that were left out, for
        which sums by fold are enough; "gcv", and any fit without folds, takes the weight with the least robust
        generalised cross-validation, which can fail badly where p is about half of n.
    landmarks : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"} or array (p, n_features)
        How rows of the data are chosen as y_i, or the y_i themselves, in the units of X.
    landmark_sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    basis : FourierLattice, optional
        Takes the place of the kernel at landmarks, for one to four columns: one pass sums modes, from which kernel,
        scale and alpha are chosen afterwards. The kernel is then the prior of its coefficients, alpha the weight of
        its squared norm, and a constant is free.
    gradient_weight : float
        Weight of a gradient against a value, 0 or more.
    columns : sequence of int, optional
        The columns of X that f depends on; all by default. Gradients always have all columns.
    periods : mapping of int to float, optional
        The periods of columns of X by their numbers, as in {0: 2 * numpy.pi} for angles: f is periodic in them.
    standardize : bool
        Bring each column to mean 0 and standard deviation 1 first, in one more pass. Gradients follow by the chain
        rule, and count in these units.
    rtol : float, optional
        Relative size of directions that are rounding, positive; default 1e-15 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
    device : {"cpu", "cuda", "auto"}
        Where functions are evaluated and multiplied, in the pass, in `predict` and `score`; as in
        `SpectralDecomposition`.
    folds : int, array (n,), "blocks" or None
        Into how many parts the sums are kept apart, for cross-validation; as in `SpectralDecomposition`. Rows that
        depend on their neighbours, as in a time series, need "blocks", or labels of what belongs together.
    random_state : int, Generator or None
        Decides the landmarks, with the global order of the rows and nothing else.
    sample_dims, latitude : optional
        Rows, and weights by latitude, of data with labels, as in `SpectralDecomposition`.

    Attributes
    ----------
    coef_ : (p,), or (p, m) for m targets
    alpha_ : float, the penalty's weight
    choice_ : Selection, the kernels that were compared, and the `parameters` that give this fit again, to the same bits
    cv_ : float, the mean squared error at alpha_ on folds that were left out, summed over the targets, with gradients
        plus gradient_weight times theirs; None without folds
    cv_score_ : float, the share of the targets' spread that was explained there: R² of values about their mean, with
        gradients of both together; None without folds
    cv_curve_ : (g, 2), penalties and their errors on folds that were left out; None without folds
    gcv_ : float, robust generalised cross-validation at alpha_: the mean over the rows of the squared residual of the
        value, and gradient_weight times the squared residual of the gradient, each corrected for its own leverage,
        RSS / (1 - tr / n)² with n values or n d entries of gradients, and raised where the fit nears interpolation
        (`daskspectral.solve.solve_ridge`)
    gcv_curve_ : (g, 2), the penalties and these scores
    rank_ : int, directions that the sums resolve
    degrees_of_freedom_ : float, the trace of the hat matrix
    moments_, basis_, kernel_, n_features_in_, feature_names_in_ (of a data frame)

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.linspace(0, 6, 300)[:, None]
    >>> h = dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), n_landmarks=30, random_state=0)
    >>> h = h.fit(x, np.sin(x[:, 0]), gradients=np.cos(x))
    >>> h.predict([[1.0], [2.0]]).round(2)  # sin(1), sin(2)
    array([0.84, 0.91])
    >>> h.predict_gradient([[1.0], [2.0]]).round(2)  # cos(1), cos(2)
    array([[ 0.54],
           [-0.42]])
    """

    def __init__(
        self,
        kernel: Kernel | str | None = "auto",
        n_landmarks: int | str = "auto",
        alpha: float | str | None = None,
        *,
        landmarks: str | Any = "kmeans++",
        landmark_sample: int | None = None,
        basis: FourierLattice | None = None,
        gradient_weight: float = 1.0,
        columns: Sequence[int] | None = None,
        periods: Mapping[int, float] | None = None,
        standardize: bool = False,
        rtol: float | None = None,
        dtype: str = "float64",
        device: str = "cpu",
        folds: Any = 10,
        random_state: Any = None,
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.landmarks = landmarks
        self.landmark_sample = landmark_sample
        self.basis = basis
        self.gradient_weight = gradient_weight
        self.columns = columns
        self.periods = periods
        self.standardize = standardize
        self.rtol = rtol
        self.dtype = dtype
        self.device = device
        self.folds = folds
        self.random_state = random_state
        self.sample_dims = sample_dims
        self.latitude = latitude

    @stored
    @labelled
    @leased
    def fit(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Measure the moments of X (n, d), y and the gradients in one pass on the active dask scheduler, and solve.

        y is (n,), or (n, m) for m targets; `gradients` are the derivatives of y by the columns of X, (n, d), or
        (n, m, d). Each is a numpy (also memory-mapped), dask, zarr or xarray array, or the path or URL of a zarr array.
        `sample_weight` (n,) are frequency weights, though cross-validation counts rows, whatever the weights' unit.
        A row with NaN or infinity raises InvalidRowError for the lowest one, or with on_invalid="skip" is dropped and
        counted. The other options are as in `SpectralDecomposition.fit`.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent, and OSError for data that are damaged or change meanwhile.
        """
        kernel = checked_kernel("auto" if self.kernel is None else self.kernel)
        self._check_parameters(on_invalid)
        folds = checked_folds(self.folds)
        source, operator = open_regression(
            X,
            y,
            gradients=gradients,
            columns=self.columns,
            weight=sample_weight,
            fold=None if folds is None else folds.labels,
        )
        self._keep_names(X)
        periods = None if self.periods is None else periods_of(self.periods, source)
        lattice = None if self.basis is None else regression_lattice(self.basis, source.dimension, periods)
        if lattice is None:
            kernel = periodic(kernel, periods, "periods= asks for")
            self._check_against(source, kernel, operator)

        def lay(source: Source, training: Training) -> Discretisation:
            if self.basis is not None:
                return self._boxed(source, operator, periods, on_invalid=on_invalid, progress=progress)
            return self._discretised(source, operator, kernel, on_invalid=on_invalid, progress=progress)

        self._fit_source(
            source,
            operator,
            lay,
            folds=folds,
            sizes=(self._size(source) if lattice is None else lattice.size, None),
            lattice=lattice,
            on_invalid=on_invalid,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress=progress,
            choosing=pilot_bytes(source, operator, self._count(source)) if kernel.automatic and not lattice else 0,
        )
        self.choice_ = replace(self.choice_, parameters={**self.choice_.parameters, "alpha": self.alpha_})
        return self

    @stored
    @labelled
    def update(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fold in rows that were appended to X, y and gradients since they were fitted.

        The landmarks, or the box, and the scaling of columns stay. What is read and compared, and `folds`, are as in
        `SpectralDecomposition.update`. Raises ValueError where X has no more rows than before, or data are not as they
        were.
        """
        before: Moments = self.fitted().moments_
        found = continued_folds(before.folds, folds)
        labels = None if found is None else found.labels
        columns = self.preparation_.columns
        source, operator = open_regression(
            self._like_fit(X), y, gradients=gradients, columns=columns, weight=sample_weight, fold=labels
        )
        if operator != before.operator:
            raise ValueError(f"the data are for {operator}, and the model was fitted on {before.operator}")
        return self._update_source(source, folds=found, on_invalid=on_invalid, progress=progress)

    @remembered
    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, with this alpha and gradient_weight; no data are touched.

        Raises ValueError for moments of another kind, moments that are not finite, or weights that are all zero.
        """
        operator, basis = moments.operator, moments.basis
        if not isinstance(operator, Regression) or not isinstance(basis, (LandmarkBasis, FourierLattice)):
            raise ValueError(
                f"these are moments of {operator}, not of values to regress on; measure them with HermiteRegressor.fit"
            )
        alpha = self.alpha if self.alpha is None or isinstance(self.alpha, str) else float(self.alpha)
        cut, weight = resolve_ridge_cut(self.rtol, moments.dtype), float(self.gradient_weight)
        if isinstance(basis, FourierLattice):
            return self._fit_modes(moments, alpha, cut)
        problem = RidgeProblem.of(moments, weight)
        fit = problem.solve(alpha, cut)
        known = vars(self).get("moments_")
        if "choice_" in vars(self) and known is not None and known.fingerprint != moments.fingerprint:
            del self.choice_  # of an earlier fit
        advise_offset(moments)
        return self._with(moments, problem, fit, fit.coefficients)

    def _fit_modes(self, moments: Moments, alpha: float | str | None, cut: float) -> Self:
        """Solve modes on a Fourier lattice, for the kernel that is given or chosen by their folds."""
        found = regress_on_lattice(
            moments,
            kernel=self.kernel,
            basis=self.basis,
            alpha=alpha,
            gradient_weight=float(self.gradient_weight),
            cut=cut,
        )
        self.choice_ = found.selection.with_parameters(self.given_params())
        advise_offset(moments)
        return self._with(moments, found.problem, found.fit, found.coefficients)

    def _size(self, source: Source) -> int:
        return self._count(source) if isinstance(self.landmarks, str) else len(self.landmarks)

    def _boxed(self, source: Source, operator: Regression, periods: Periods | None, **options: Any) -> Discretisation:
        """The lattice on its box and the scaling of columns, each from a pass where it is not given."""
        if self.standardize:
            source = standardized(source, **options)
        assert self.basis is not None
        rng = np.random.default_rng(self.random_state)
        lattice = regression_lattice(self.basis, source.dimension, periods)
        return Discretisation(boxed(lattice, source, operator, rng, periods=periods, **options), source.preparation)

    def _count(self, source: Source) -> int:
        """The number p of landmarks, where they are chosen."""
        return min(MOST_LANDMARKS, source.n) if self.n_landmarks == "auto" else int(self.n_landmarks)

    def _discretised(self, source: Source, operator: Regression, kernel: Kernel, **options: Any) -> Discretisation:
        """The basis at landmarks and the scaling of columns, from a pass and a draw of rows."""
        if self.standardize:
            source = standardized(source, **options)
        rng = np.random.default_rng(self.random_state)
        selection, landmarks = Selection((), {}), self.landmarks
        if kernel.automatic:
            wanted = Open(
                None if self.kernel is None or isinstance(self.kernel, str) else kernel,
                None if self.periods is None else periods_of(self.periods, source),
                landmarks,
                self._count(source),
                float(self.gradient_weight),
                None if self.alpha is None or isinstance(self.alpha, str) else float(self.alpha),
                isinstance(self.folds, str) and self.folds == "blocks",
                resolve_ridge_cut(self.rtol, self.dtype),
                self.dtype,
            )
            selection = decide_regression(source, operator, wanted, rng, **options)
            kernel, landmarks = selection.parameters["kernel"], selection.parameters["landmarks"]
        found = choose_landmarks(
            source,
            kernel,
            landmarks,
            self._count(source),
            rng,
            at_most=self.n_landmarks == "auto",
            sample_size=self.landmark_sample,
            **options,
        )
        chosen = {"kernel": found.kernel, "landmarks": found.raw, "n_landmarks": len(found.raw)}
        return Discretisation(
            LandmarkBasis(found.kernel, found.points),
            source.preparation,
            raw_landmarks=found.raw,
            selection=replace(selection, parameters=chosen),
        )

    def _check_parameters(self, on_invalid: str) -> None:
        check_landmark_fit(self, on_invalid)
        least = 1 if self.n_landmarks == "auto" else int(self.n_landmarks)
        check_landmark_choice(self.landmarks, self.landmark_sample, least)
        if self.basis is not None:
            check_lattice_choice(self.basis, self.kernel, self.landmarks)
        if isinstance(self.alpha, str):
            check_one_of("alpha", self.alpha, ("gcv",))
        elif self.alpha is not None:
            check_amount("alpha", self.alpha)
        check_amount("gradient_weight", self.gradient_weight)
        check_periods(self.periods)
        periods = self.periods if self.basis is None else self.basis.periods or self.periods
        if self.standardize and periods is not None:
            raise ValueError(
                "standardize=True would change the units of X, and periods are in them; scale the columns of X before, "
                "without standardize"
            )
        resolve_ridge_cut(self.rtol, self.dtype)

    def _check_against(self, source: Source, kernel: Kernel, operator: Regression) -> None:
        """Raise an error where parameters and data do not fit, as far as metadata tell, before any task is sent."""
        basis = LandmarkBasis(kernel, np.zeros((1, source.dimension)))
        basis.check_order(int(operator.gradients), "regression on gradients")
        if not isinstance(self.landmarks, str):
            given_landmarks(self.landmarks, source.n_features_in, columns=source.preparation.columns)
        elif source.n < self._count(source):
            raise ValueError(
                f"X has {source.n} rows, fewer than n_landmarks={self.n_landmarks}; lower n_landmarks or give landmarks"
            )
