"""HermiteRegressor: kernel regression on values and gradients, in one pass over the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.engine.checkpoint import Checkpoint, leased
from daskspectral.estimators.common import check_head, choose_landmarks, standardized
from daskspectral.estimators.functions import Eigenfunctions
from daskspectral.estimators.measuring import Store, open_checkpoint, run_identity
from daskspectral.estimators.parameters import (
    check_amount,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    checked_kernel,
    given_landmarks,
    saved_params,
)
from daskspectral.estimators.regressing import Slopes, checked_targets, measure_regression, shaped
from daskspectral.estimators.rows import apply_rows
from daskspectral.estimators.saved import Saved
from daskspectral.kernels import Kernel
from daskspectral.landmarks import METHODS
from daskspectral.moments import Moments
from daskspectral.operators.regression import Regression
from daskspectral.solve import solve_ridge
from daskspectral.solve.ridge import Observed, resolve_ridge_cut

Array = NDArray[np.floating[Any]]
SOLUTION = ("coef_", "alpha_", "gcv_", "gcv_curve_", "rank_", "degrees_of_freedom_")


class HermiteRegressor(Saved, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel regression on values and gradients (section 7.2, algorithms 4 and 5, Cabannes and Bach 2024).

    f = sum_i coef_i k(., y_i) at p landmarks minimises the mean over the rows of

        (f(x) - y)^2 + gradient_weight |grad f(x) - t|^2,

    plus alpha coef.K coef, with K the kernel matrix of the landmarks. One pass sums p x p matrices, in
    O(n p^2 + n p d); the rest is p x p. Without gradients this is Nystrom kernel ridge regression.

    Parameters
    ----------
    kernel : Kernel, default Gaussian("median")
        The functions k(., y_i) that span the solution.
    n_landmarks : int
        p, when `landmarks` is a method.
    alpha : float, optional
        Weight of the penalty, 0 or more; by default the one of least robust generalised cross-validation.
    landmarks : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"} or array (p, n_features)
        How rows of the data are chosen as y_i, or the y_i themselves, in the units of X.
    landmark_sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    gradient_weight : float
        Weight of a gradient against a value, 0 or more.
    columns : sequence of int, optional
        The columns of X that f depends on; all by default. Gradients always have all columns.
    standardize : bool
        Bring each column to mean 0 and standard deviation 1 first, in one more pass. Gradients follow by the chain
        rule, and count in these units.
    rtol : float, optional
        Relative size of directions that are rounding, positive; default 1e-15 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
    random_state : int, Generator or None
        Decides the landmarks, with the global order of the rows and nothing else.

    Attributes
    ----------
    coef_ : (p,), or (p, m) for m targets
    alpha_ : float, the penalty's weight
    gcv_ : float, robust generalised cross-validation at alpha_: the mean over the rows of the squared residual of the
        value, and gradient_weight times that of the gradient, each corrected for its own leverage, RSS / (1 - tr / n)^2
        with n values or n d entries of gradients, and raised where the fit nears interpolation (`solve_ridge`)
    gcv_curve_ : (g, 2), the penalties that were compared and their scores
    rank_ : int, directions that the sums resolve
    degrees_of_freedom_ : float, the trace of the hat matrix
    moments_, basis_, kernel_, n_features_in_
    """

    kind = "hermite"

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_landmarks: int = 500,
        alpha: float | None = None,
        *,
        landmarks: str | Any = "uniform",
        landmark_sample: int | None = None,
        gradient_weight: float = 1.0,
        columns: Sequence[int] | None = None,
        standardize: bool = False,
        rtol: float | None = None,
        dtype: str = "float64",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.landmarks = landmarks
        self.landmark_sample = landmark_sample
        self.gradient_weight = gradient_weight
        self.columns = columns
        self.standardize = standardize
        self.rtol = rtol
        self.dtype = dtype
        self.random_state = random_state

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
    ) -> Self:
        """Measure the moments of X (n, d), y and the gradients in one pass on the active dask scheduler, and solve.

        y is (n,), or (n, m) for m targets; `gradients` are those of y in the columns of X, (n, d), or (n, m, d). Each
        is a numpy (also memory-mapped), dask, zarr or xarray array, or the path or URL of a zarr array.
        `sample_weight` (n,) are frequency weights, though cross-validation counts rows, whatever the weights' unit.
        A row with NaN or infinity raises InvalidRowError for the lowest one, or with on_invalid="skip" is dropped and
        counted. The other options are those of `SpectralDecomposition.fit`.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent, and OSError for data that are damaged or change meanwhile.
        """
        kernel = checked_kernel(self.kernel)
        self._check_parameters(on_invalid)
        source = open_source(X, columns=self.columns, weight=sample_weight, y=y, gradients=gradients)
        operator = checked_targets(source)
        self._check_against(source, kernel, operator)
        source = source.allowing_missing(allow_missing)
        store = Store(source, allow_missing=allow_missing)
        identity = run_identity(store, saved_params(self), on_invalid) if checkpoint is not None else {}
        saved = open_checkpoint(checkpoint, identity, checkpoint_every)
        if saved is not None:
            basis, preparation = saved.constants["basis"], saved.constants["preparation"]
            source = source.with_preparation(mean=preparation.mean, scale=preparation.scale)
            head = saved.constants["head"]
        else:
            head = source.head(source.n)
            basis, source = self._ground(source, kernel, on_invalid=on_invalid, progress=progress)
            if checkpoint is not None:
                constants = {"basis": basis, "preparation": source.preparation, "head": head}
                saved = Checkpoint.start(checkpoint, identity, constants, checkpoint_every)
        moments = measure_regression(
            source,
            basis,
            operator,
            dtype=self.dtype,
            on_invalid=on_invalid,
            progress=progress,
            store=store,
            checkpoint=saved,
        )
        return self.fit_moments(replace(moments, head=head))

    def update(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X, y and gradients since they were fitted: only these are read.

        The landmarks and the scaling of columns stay. Raises ValueError where X has no more rows than before.
        """
        check_is_fitted(self)
        before: Moments = self.moments_
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        columns = self.preparation_.columns
        source = open_source(X, columns=columns, weight=sample_weight, y=y, gradients=gradients)
        if source.n_features_in != self.n_features_in_:
            raise ValueError(f"X has {source.n_features_in} columns, and the model was fitted on {self.n_features_in_}")
        if source.n <= before.rows:
            raise ValueError(f"X has {source.n} rows, and the model has seen {before.rows}: there is nothing to add")
        source = source.allowing_missing(allow_missing)
        check_head(before, source)
        operator = checked_targets(source)
        if operator != before.operator:
            raise ValueError(f"the data are for {operator}, and the model was fitted on {before.operator}")
        added = measure_regression(
            source.with_preparation(mean=self.preparation_.mean, scale=self.preparation_.scale),
            before.basis,
            operator,
            dtype=before.dtype,
            on_invalid=on_invalid,
            progress=progress,
            store=Store(source, allow_missing=allow_missing),
            start=before.rows,
        )
        return self.fit_moments(before + replace(added, start=before.rows, head=before.head))

    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, with this alpha and gradient_weight; no data are touched.

        Raises ValueError where they are not of regression, not finite, or the weights are all zero.
        """
        operator, basis = moments.operator, moments.basis
        if not isinstance(operator, Regression) or not isinstance(basis, LandmarkBasis):
            raise ValueError(
                f"these are moments of {operator}, not of values to regress on; measure them with HermiteRegressor.fit"
            )
        if moments.weight <= 0:
            raise ValueError(f"the total sample weight is {moments.weight:g}; some row needs a positive weight")
        weight = float(self.gradient_weight) if operator.gradients else 0.0
        rows = int(moments.arrays["observed"][0])
        gram, values, squares = (moments.mean(name) for name in ("gram", "values", "value_squares"))
        observed = [Observed(gram, values, squares, rows)]
        if weight:
            energy, slopes, squares = (weight * moments.mean(f) for f in ("dirichlet", "slopes", "slope_squares"))
            observed.append(Observed(energy, slopes, squares, rows * basis.dimension))
        if not all(np.isfinite(mean).all() for kind in observed for mean in (kind.form, kind.target, kind.squares)):
            raise ValueError(
                "the moments are not finite: the kernel, its derivatives or the targets overflow on these data; scale "
                "the columns (standardize=True) or the targets, or change the kernel's scale or degree"
            )
        fit = solve_ridge(
            observed,
            basis.kernel.values(basis.landmarks, basis.landmarks),
            alpha=None if self.alpha is None else float(self.alpha),
            cut=resolve_ridge_cut(self.rtol, moments.dtype),
        )
        solution = {
            "coef_": fit.coefficients[:, 0] if operator.targets is None else fit.coefficients,
            "alpha_": fit.alpha,
            "gcv_": fit.score,
            "gcv_curve_": np.column_stack([fit.alphas, fit.scores]),
            "rank_": fit.rank,
            "degrees_of_freedom_": fit.freedom,
        }
        return self._with_solution(moments, solution)

    def predict(
        self,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        """f at the rows of X, (n,), or (n, m) for m targets, float64.

        numpy comes out as numpy, dask and xarray as dask and xarray, lazily; a zarr array or a path comes out as a
        lazy dask array. With `out`, (n, m) values are written to a new zarr array at that path or URL, which appears
        whole or not at all, and None is returned. Invalid rows raise InvalidRowError, or become NaN with
        on_invalid="skip".
        """
        check_is_fitted(self)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        task = Eigenfunctions(self.basis_, self._columns(), self.preparation_, on_invalid == "skip")
        result = self._apply(task, X, out, overwrite, allow_missing, progress)
        return None if out is not None else shaped(result, "prediction", self.coef_.shape[1:], ("target",), {})

    def predict_gradient(
        self,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        """The gradient of f at the rows of X, in the columns of X: (n, d), or (n, m, d) for m targets, float64.

        It is 0 along columns that are not used. Containers and options are those of `predict`; `out` gets (n, m d).
        Raises SmoothnessError where the kernel has no gradient.
        """
        check_is_fitted(self)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        self.basis_.check_order(1, "predict_gradient")
        width = self.n_features_in_
        task = Slopes(self.basis_, self._columns(), self.preparation_, width, on_invalid == "skip")
        result = self._apply(task, X, out, overwrite, allow_missing, progress)
        if out is not None:
            return None
        dims: tuple[str, ...] = ("feature",)
        names = {}
        if isinstance(X, xr.DataArray):
            dims = (str(X.dims[1]),)
            names = {name: c for name, c in X.coords.items() if c.dims == (X.dims[1],)}
        extra = ("target",) if self.coef_.ndim == 2 else ()
        return shaped(result, "gradient", (*self.coef_.shape[1:], width), (*extra, *dims), names)

    def state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return {
            "params": saved_params(self),
            "moments": self.moments_,
            "solution": {name: getattr(self, name) for name in SOLUTION},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(**state["params"])._with_solution(state["moments"], state["solution"])

    def _with_solution(self, moments: Moments, solution: Mapping[str, Any]) -> Self:
        for name in SOLUTION:
            setattr(self, name, solution[name])
        assert isinstance(moments.basis, LandmarkBasis)
        self.moments_, self.basis_, self.kernel_ = moments, moments.basis, moments.basis.kernel
        preparation = {k: v for k, v in moments.preparation.items() if k != "n_features_in"}
        self.preparation_ = Preparation.from_state(preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        return self

    def _columns(self) -> Array:
        """The coefficients as columns (p, m)."""
        return np.asarray(self.coef_.reshape(len(self.coef_), -1))

    def _apply(self, task: Any, X: Any, out: Any, overwrite: bool, allow_missing: bool, progress: bool | None) -> Any:
        options: dict[str, Any] = {"out": out, "overwrite": overwrite, "progress": progress}
        n = self.n_features_in_
        return apply_rows(task, X, n_features=n, coordinates={}, allow_missing=allow_missing, **options)

    def _ground(self, source: Source, kernel: Kernel, **options: Any) -> tuple[LandmarkBasis, Source]:
        """The basis, and the source with its columns scaled, from a pass and a draw of rows."""
        if self.standardize:
            source = standardized(source, **options)
        p, state, size = self.n_landmarks, self.random_state, self.landmark_sample
        kernel, points, _ = choose_landmarks(source, kernel, self.landmarks, p, state, sample_size=size, **options)
        return LandmarkBasis(kernel, points), source

    def _check_parameters(self, on_invalid: str) -> None:
        check_whole("n_landmarks", self.n_landmarks)
        if isinstance(self.landmarks, str):
            check_one_of("landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.landmark_sample is not None:
                check_whole("landmark_sample", self.landmark_sample, self.n_landmarks)
        if self.alpha is not None:
            check_amount("alpha", self.alpha)
        check_amount("gradient_weight", self.gradient_weight)
        check_one_of("standardize", self.standardize, (True, False))
        check_one_of("dtype", self.dtype, ("float64", "float32"))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if self.rtol is not None:
            check_number("rtol", self.rtol)
        resolve_ridge_cut(self.rtol, self.dtype)
        check_random_state(self.random_state)

    def _check_against(self, source: Source, kernel: Kernel, operator: Regression) -> None:
        """What metadata can tell before any task is sent."""
        basis = LandmarkBasis(kernel, np.zeros((1, source.dimension)))
        basis.check_order(int(operator.gradients), "regression on gradients")
        if not isinstance(self.landmarks, str):
            given_landmarks(self.landmarks, source.n_features_in)
        elif source.n < self.n_landmarks:
            raise ValueError(
                f"X has {source.n} rows, fewer than n_landmarks={self.n_landmarks}; lower n_landmarks or give landmarks"
            )
