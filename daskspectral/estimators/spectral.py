"""SpectralDecomposition: the spectrum of an operator on the distribution of the data, with its functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.data.source import Preparation, Source
from daskspectral.engine.checkpoint import Checkpoint, leased
from daskspectral.engine.memory import check_memory
from daskspectral.estimators.functions import Eigenfunctions
from daskspectral.estimators.measuring import (
    Ground,
    PassPlan,
    Store,
    measure_moments,
    open_appended,
    open_checkpoint,
    open_data,
    plan_pass,
    run_identity,
)
from daskspectral.estimators.parameters import check_one_of, checked_operator, params_from_state, params_state
from daskspectral.estimators.rows import apply_rows
from daskspectral.estimators.saved import Saved
from daskspectral.estimators.sides import Choice, check_moments, choose_functions
from daskspectral.estimators.solving import SOLUTION, solve_moments
from daskspectral.estimators.variance import VarianceBound, variance_bound
from daskspectral.kernels import Kernel
from daskspectral.moments import Moments
from daskspectral.operators import Operator
from daskspectral.store import moments_from_state, moments_state

Array = NDArray[np.inexact[Any]]


def _solved_by(solver: str) -> Any:
    """A check for `available_if`: whether the operator is of this solver."""

    def check(estimator: SpectralDecomposition) -> bool:
        operator = vars(estimator).get("moments_", estimator).operator
        return isinstance(operator, Operator) and operator.solver == solver

    return check


class SpectralDecomposition(Saved, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral decomposition of an operator by the Galerkin method (Algorithm 1, Cabannes and Bach 2024).

    One pass over the rows sums the form <f, L g> and the Gram matrices of p left and q right functions; the rest is
    dense algebra on p x q matrices. Symmetric operators have eigenvalues and the same functions on both sides;
    Cross, Transfer and other two-sided ones singular values, with left and right singular functions.

    Parameters
    ----------
    operator : Operator, default Laplacian()
        What is decomposed.
    kernel : Kernel, default Gaussian("median")
        The functions k(., y_i) that span the solution.
    n_components : int
        Functions wanted; fewer come, with a RankWarning, when the rank is less.
    n_landmarks : int
        p, when `landmarks` is a method.
    landmarks : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"} or array (p, n_features)
        How rows of the data are chosen as y_i, or the y_i themselves, in the units of X.
    landmark_sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    basis : Basis, optional
        Functions of the prepared columns that take the place of the kernel at landmarks.
    right_basis, right_kernel, right_landmarks : optional
        The right functions of an operator with singular values. Where they are of other variables (Cross), they have
        the same kernel and method as the left ones unless told, at landmarks among their own points; where not
        (Transfer), they are the left ones unless one of these is given.
    columns : sequence of int, optional
        The columns of X that are used; all by default.
    standardize : bool
        Bring each column to mean 0 and standard deviation 1 first, in one more pass. Derivatives, the Laplacian's among
        them, are then in standardised units; operators tied to the units of X, by a potential, say, are refused.
    constant : bool, optional
        Add the constant function to the bases; by default where the operator kills it.
    exclude_landmarks : bool
        Give the rows that became landmarks weight 0 where the form has derivatives: each sees a zero gradient at
        itself, which makes spurious small eigenvalues.
    min_support : float
        Functions of a radial kernel that rest on fewer effective points than this, (sum phi)^2 / sum phi^2, are left
        out, with a RankWarning: their eigenvalues are an accident of the few points. Sums are weighted, weight 2 is
        the row twice; weights w with sum w < (sum w)^2 / sum w^2, such as probabilities, are scaled to equality first.
    ridge : float
        Added to a symmetric form's diagonal, times its mean; never to the Gram matrix.
    rtol : float, optional
        Relative cut of the Gram matrices' eigenvalues; default 1e-10 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
    random_state : int, Generator or None
        Decides the landmarks, with the global order of the rows and nothing else.

    Attributes
    ----------
    eigenvalues_ : (k,) of symmetric operators, ascending for Laplacian-like ones; complex for those solved by "eigen"
    singular_values_ : (k,) descending, of operators solved by "singular", in place of eigenvalues_
    coefficients_ : (p, k), the eigenfunctions or left singular functions in the basis, unit L2(rho) norm
    right_coefficients_ : (q, k), the right singular functions in theirs
    left_coefficients_ : (p, k), of "eigen": eigenfunctions of the adjoint, biorthonormal to those of L
    rank_ : int, independent directions that the data see; a pair, of both sides, with singular values
    residuals_ : (k,) norms of the whitened problem's residuals
    support_, right_support_ : (p,), (q,) effective points under each basis function
    moments_, basis_, right_basis_, kernel_, n_features_in_, n_right_features_in_
    """

    kind = "spectral"

    def __init__(
        self,
        operator: Operator | None = None,
        kernel: Kernel | None = None,
        *,
        n_components: int = 16,
        n_landmarks: int = 500,
        landmarks: str | Any = "uniform",
        landmark_sample: int | None = None,
        basis: Basis | None = None,
        right_basis: Basis | None = None,
        right_kernel: Kernel | None = None,
        right_landmarks: str | Any = None,
        columns: Sequence[int] | None = None,
        standardize: bool = False,
        constant: bool | None = None,
        exclude_landmarks: bool = True,
        min_support: float = 10.0,
        ridge: float = 0.0,
        rtol: float | None = None,
        dtype: str = "float64",
        random_state: Any = None,
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
        self.standardize = standardize
        self.constant = constant
        self.exclude_landmarks = exclude_landmarks
        self.min_support = min_support
        self.ridge = ridge
        self.rtol = rtol
        self.dtype = dtype
        self.random_state = random_state

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
    ) -> Self:
        """Measure the moments of X (n, d) in one pass on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped), dask, zarr or xarray array, or the path or URL of a zarr array; a tuple of
        them, row by row, for an operator between views, fit((x, y)); for Transfer one trajectory or a list of several,
        of which weights and fields are lists too. `fields` are the further arrays, by name, that the operator reads, a
        row for each of X: fields={"potential": v}. `y` is not looked at. `sample_weight` (n,) are frequency weights. A
        row with NaN or infinity raises InvalidRowError for the lowest one, or with on_invalid="skip" is dropped and
        counted. A missing zarr chunk raises OSError unless `allow_missing` says that fill values are meant. With
        `checkpoint`, a local directory, the sums are kept there every `checkpoint_every` seconds, by one live run at a
        time, and the same call goes on from them after a stop, to the same bits. `progress` None: on a terminal only.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent, and OSError for data that are damaged or change meanwhile, or a checkpoint in use.
        """
        operator = checked_operator(self.operator)
        choice = choose_functions(self, operator, on_invalid)
        source = open_data(operator, X, columns=self.columns, weight=sample_weight, fields=fields)
        choice.check_against(source)
        self._plan(source, choice)
        source = source.allowing_missing(allow_missing)
        store = Store(source, allow_missing=allow_missing)
        identity = (
            run_identity(store, params_state(self.get_params(deep=False)), on_invalid) if checkpoint is not None else {}
        )
        saved = open_checkpoint(checkpoint, identity, checkpoint_every)
        if saved is not None:
            ground, head = Ground.from_state(saved.constants), saved.constants["head"]
        else:
            ground = choice.ground(source, self.random_state, on_invalid=on_invalid, progress=progress)
            head = source.head(source.n)
            if checkpoint is not None:
                saved = Checkpoint.start(checkpoint, identity, ground.state() | {"head": head}, checkpoint_every)
        moments = measure_moments(
            source,
            ground,
            operator,
            dtype=self.dtype,
            on_invalid=on_invalid,
            progress=progress,
            store=store,
            checkpoint=saved,
        )
        return self.fit_moments(replace(moments, head=head))

    def plan(self, X: Any, *, fields: Mapping[str, Any] | None = None, sample_weight: Any = None) -> PassPlan:
        """The tasks and the peak memory of `fit` on this data, before it starts; nothing is read but metadata.

        Raises as `fit` does for input that cannot work, MemoryError where the run would not fit.
        """
        operator = checked_operator(self.operator)
        choice = choose_functions(self, operator)
        source = open_data(operator, X, columns=self.columns, weight=sample_weight, fields=fields)
        choice.check_against(source)
        return self._plan(source, choice)

    def _plan(self, source: Source, choice: Choice) -> PassPlan:
        p, q = choice.sizes
        plan = plan_pass(source, p, choice.operator, self.dtype, q=q)
        check_memory(plan.memory)
        return plan

    def update(
        self,
        X: Any,
        *,
        fields: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X since it was fitted: only these are read, and the rest is solved anew.

        Of trajectories, rows that were appended to the last one, and new ones after it. Landmarks and scaling stay.
        Raises ValueError where X has no more rows than before, other first rows, or the moments are of several arrays.
        """
        before: Moments = self.fitted().moments_
        operator = before.operator
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        source = open_appended(before, X, weight=sample_weight, fields=fields, allow_missing=allow_missing)
        right = self.right_preparation_ if operator.own_right_basis else None
        added = measure_moments(
            source,
            Ground(before.basis, self.preparation_, None, before.right_basis, right),
            operator,
            dtype=before.dtype,
            on_invalid=on_invalid,
            progress=progress,
            store=Store(source, allow_missing=allow_missing),
            start=before.rows,
        )
        return self.fit_moments(before + replace(added, start=before.rows, head=before.head))

    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, by this or another run; no data are touched.

        Raises ValueError for moments of a regression or of another operator than the one that was given, where every
        basis function vanishes, or the weights are all zero.
        """
        check_moments(self.operator, moments)
        solution = solve_moments(
            moments, count=self.n_components, rtol=self.rtol, ridge=self.ridge, min_support=self.min_support
        )
        return self.with_solution(moments, solution)

    def with_solution(self, moments: Moments, solution: Mapping[str, Any]) -> Self:
        """Take over moments and their solution (`SOLUTION`), which another estimator found."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit, perhaps by another solver
        for name in SOLUTION[moments.operator.solver]:
            setattr(self, name, solution[name])
        rank = solution["rank_"]
        self.rank_ = tuple(rank) if isinstance(rank, list) else rank  # a list, from a store
        self.moments_, self.basis_ = moments, moments.basis
        if moments.right_basis is not None:
            self.right_basis_ = moments.right_basis
        self.kernel_ = next((b.kernel for b in moments.basis.parts if isinstance(b, LandmarkBasis)), None)
        self.preparation_ = Preparation.from_state(moments.preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        right = moments.preparation.get("right")
        if right is not None:
            self.right_preparation_ = Preparation.from_state(right)
            self.n_right_features_in_ = int(right["n_features_in"])
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same array. Raises ValueError for views and lists of trajectories."""
        if isinstance(X, (tuple, list)) and len(checked_operator(self.operator).views) > 1:
            raise ValueError("fit_transform takes one array: call fit, then transform of the array that is wanted")
        return self.fit(X, y, **options).transform(X)

    def transform(
        self,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        """The eigenfunctions, or left singular functions, at the rows of X, (n, k), unit L2(rho) norm.

        They are float64, of an operator solved by "eigen" complex128. numpy gives numpy, dask and xarray the same,
        lazily, a zarr array or a path a lazy dask array. With `out`, they are written to a new zarr array at that path
        or URL, which appears whole or not at all, and None is returned. Invalid rows raise InvalidRowError, or become
        NaN with on_invalid="skip"; a missing chunk raises OSError unless `allow_missing`: fill values are meant.
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"overwrite": overwrite, "on_invalid": on_invalid, "progress": progress}
        return self._apply("", self.coefficients_, X, out=out, allow_missing=allow_missing, **options)

    @available_if(_solved_by("singular"))  # type: ignore[untyped-decorator]
    def transform_right(self, X: Any, **options: Any) -> Any:
        """The right singular functions at the rows of X, of Cross those of y, (n, k); options as of `transform`."""
        check_is_fitted(self)
        return self._apply("right_", self.right_coefficients_, X, **options)

    @available_if(_solved_by("eigen"))  # type: ignore[untyped-decorator]
    def transform_left(self, X: Any, **options: Any) -> Any:
        """The eigenfunctions of the adjoint at the rows of X, (n, k); options as of `transform`."""
        check_is_fitted(self)
        return self._apply("", self.left_coefficients_, X, **options)

    def _apply(
        self,
        side: str,
        coefficients: Array,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        basis, preparation, width = self.basis_, self.preparation_, self.n_features_in_
        if side:
            basis = basis if self.moments_.right_basis is None else self.moments_.right_basis
            if self.moments_.operator.own_right_basis:
                preparation, width = self.right_preparation_, self.n_right_features_in_
        means = self.moments_.mean(f"{side}first") @ coefficients if self.moments_.operator.center else None
        values = "singular_value" if self.moments_.operator.solver == "singular" else "eigenvalue"
        return apply_rows(
            Eigenfunctions(basis, coefficients, preparation, on_invalid == "skip", means),
            X,
            n_features=width,
            coordinates={values: getattr(self, f"{values}s_")},
            dtype=coefficients.dtype,
            allow_missing=allow_missing,
            out=out,
            overwrite=overwrite,
            progress=progress,
        )

    def variance_bound(self, X: Any, *, delta: float = 0.05, **options: Any) -> VarianceBound:
        """Error bars from the rows of X, in one pass: Theorem 1's variance term, a sharper bound, standard errors.

        X are the rows of the fit, or some of them; `options` are the fields, sample_weight, on_invalid, allow_missing
        and progress of `fit`. Raises ValueError for operators that are not symmetric, or not invertible on the span.
        """
        return variance_bound(self.fitted(), X, delta=delta, **options)

    def state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return {
            "params": params_state(self.get_params(deep=False)),
            "moments": moments_state(self.moments_),
            "solution": {name: getattr(self, name) for name in SOLUTION[self.moments_.operator.solver]},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        # not solved again: another machine's LAPACK may turn degenerate eigenfunctions
        estimator = cls(**params_from_state(state["params"]))
        return estimator.with_solution(moments_from_state(state["moments"]), state["solution"])

    def fitted(self) -> Self:
        """This estimator; raises sklearn's NotFittedError (a ValueError) before `fit`."""
        check_is_fitted(self)
        return self
