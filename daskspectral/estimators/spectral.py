"""SpectralDecomposition: eigenvalues and eigenfunctions of an operator on the distribution of the data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import check_memory
from daskspectral.estimators.advice import advise_rank, advise_support
from daskspectral.estimators.common import check_head, choose_landmarks, standardized
from daskspectral.estimators.functions import Eigenfunctions
from daskspectral.estimators.measuring import (
    Ground,
    PassPlan,
    Store,
    measure_moments,
    open_checkpoint,
    plan_pass,
    run_identity,
)
from daskspectral.estimators.parameters import (
    check_amount,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    checked_kernel,
    checked_operator,
    given_landmarks,
    params_state,
)
from daskspectral.estimators.rows import apply_rows
from daskspectral.kernels import Kernel
from daskspectral.landmarks import METHODS
from daskspectral.moments import Moments
from daskspectral.operators import Operator
from daskspectral.solve import resolve_cut, solve_symmetric

Array = NDArray[np.floating[Any]]
SOLUTION = ("eigenvalues_", "coefficients_", "rank_", "residuals_", "support_")


class SpectralDecomposition(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral decomposition of an operator by the Galerkin method (Algorithm 1, Cabannes and Bach 2024).

    One pass over the rows sums the form and the Gram matrix of p kernel functions at landmarks; the rest is p x p.

    Parameters
    ----------
    operator : Operator, default Laplacian()
        What is decomposed.
    kernel : Kernel, default Gaussian("median")
        The functions k(., y_i) that span the solution.
    n_components : int
        Eigenfunctions wanted; fewer come, with a RankWarning, when the rank is less.
    n_landmarks : int
        p, when `landmarks` is a method.
    landmarks : {"uniform", "kmeans++", "cholesky", "farthest", "leverage"} or array (p, n_features)
        How rows of the data are chosen as y_i, or the y_i themselves, in the units of X.
    landmark_sample : int, optional
        Rows, drawn uniformly, among which the methods other than "uniform" choose; default max(10 p, 10 000).
    columns : sequence of int, optional
        The columns of X that are used; all by default.
    standardize : bool
        Bring each column to mean 0 and standard deviation 1 first, in one more pass.
    constant : bool, optional
        Add the constant function to the basis; by default where the operator kills it.
    exclude_landmarks : bool
        Give the rows that became landmarks weight 0: each sees a zero gradient at itself, which makes spurious small
        eigenvalues.
    min_support : float
        Functions of a radial kernel that rest on fewer effective points than this, (sum phi)^2 / sum phi^2, are left
        out, with a RankWarning: their eigenvalues are an accident of the few points.
    ridge : float
        Added to the form's diagonal, times its mean; never to the Gram matrix.
    rtol : float, optional
        Relative cut of the Gram matrix's eigenvalues; default 1e-10 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}
        Arithmetic of the features and their products; sums are always float64.
    random_state : int, Generator or None
        Decides the landmarks, with the global order of the rows and nothing else.

    Attributes
    ----------
    eigenvalues_ : (k,) ascending for Laplacian-like operators
    coefficients_ : (p, k), the eigenfunctions in the basis, unit L2(rho) norm
    rank_ : int, independent directions that the data see
    residuals_ : (k,) norms of the whitened eigenproblem's residuals
    support_ : (p,) effective points under each basis function
    moments_, basis_, kernel_, n_features_in_
    """

    def __init__(
        self,
        operator: Operator | None = None,
        kernel: Kernel | None = None,
        *,
        n_components: int = 16,
        n_landmarks: int = 500,
        landmarks: str | Any = "uniform",
        landmark_sample: int | None = None,
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
        self.columns = columns
        self.standardize = standardize
        self.constant = constant
        self.exclude_landmarks = exclude_landmarks
        self.min_support = min_support
        self.ridge = ridge
        self.rtol = rtol
        self.dtype = dtype
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Measure the moments of X (n, d) in one pass on the active dask scheduler, and solve.

        X is a numpy (also memory-mapped), dask, zarr or xarray array, or the path or URL of a zarr array.
        `sample_weight` (n,) are frequency weights. A row with NaN or infinity raises InvalidRowError for the lowest
        one, or with on_invalid="skip" is dropped and counted. A zarr chunk that is missing raises OSError unless
        `allow_missing` says that fill values are meant. With `checkpoint`, a local directory, the sums so far are kept
        there every `checkpoint_every` seconds, and the same call goes on from them after a stop, to the same bits.
        `progress` None shows a bar on a terminal only.

        Raises ValueError, TypeError, FileNotFoundError or MemoryError for input that cannot work, before any task of
        the pass is sent, and OSError for data that are damaged or change meanwhile.
        """
        operator, kernel = checked_operator(self.operator), checked_kernel(self.kernel)
        self._check_parameters(on_invalid)
        source = open_source(X, columns=self.columns, weight=sample_weight)
        self._check_against(source, operator, kernel)
        self._plan(source, operator)
        source = source.allowing_missing() if allow_missing else source
        store = Store(source, allow_missing=allow_missing)
        identity = (
            run_identity(store, params_state(self.get_params(deep=False)), on_invalid) if checkpoint is not None else {}
        )
        saved = open_checkpoint(checkpoint, identity, checkpoint_every)
        if saved is not None:
            ground, head = Ground.from_state(saved.constants), saved.constants["head"]
        else:
            ground = self._ground(source, operator, kernel, on_invalid=on_invalid, progress=progress)
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

    def plan(self, X: Any, *, sample_weight: Any = None) -> PassPlan:
        """The tasks and the peak memory of `fit` on this data, before it starts; nothing is read but metadata.

        Raises as `fit` does for input that cannot work, MemoryError where the run would not fit.
        """
        operator, kernel = checked_operator(self.operator), checked_kernel(self.kernel)
        self._check_parameters("raise")
        source = open_source(X, columns=self.columns, weight=sample_weight)
        self._check_against(source, operator, kernel)
        return self._plan(source, operator)

    def _plan(self, source: Source, operator: Operator) -> PassPlan:
        p = self.n_landmarks if isinstance(self.landmarks, str) else len(self.landmarks)
        plan = plan_pass(source, p + self._with_constant(operator), operator, self.dtype)
        check_memory(plan.memory)
        return plan

    def update(
        self,
        X: Any,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X since it was fitted: only these are read, and the rest is solved anew.

        The landmarks and the scaling of columns stay. Raises ValueError where X has no more rows than before, or is
        not the array that was measured: its first rows differ, or the moments are of several arrays.
        """
        check_is_fitted(self)
        before: Moments = self.moments_
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        source = open_source(X, columns=self.preparation_.columns, weight=sample_weight)
        if source.n_features_in != self.n_features_in_:
            raise ValueError(f"X has {source.n_features_in} columns, and the model was fitted on {self.n_features_in_}")
        if source.n <= before.rows:
            raise ValueError(f"X has {source.n} rows, and the model has seen {before.rows}: there is nothing to add")
        source = source.allowing_missing() if allow_missing else source
        check_head(before, source)
        ground = Ground(before.basis, self.preparation_, None)
        added = measure_moments(
            source,
            ground,
            before.operator,
            dtype=before.dtype,
            on_invalid=on_invalid,
            progress=progress,
            store=Store(source, allow_missing=allow_missing),
            start=before.rows,
        )
        return self.fit_moments(before + replace(added, start=before.rows, head=before.head))

    def _ground(
        self, source: Source, operator: Operator, kernel: Kernel, *, on_invalid: str, progress: bool | None
    ) -> Ground:
        """Scaling of columns, landmarks and basis, from a pass and a draw of rows."""
        if self.standardize:
            source = standardized(source, on_invalid=on_invalid, progress=progress)
        kernel, points, rows = choose_landmarks(
            source,
            kernel,
            self.landmarks,
            self.n_landmarks,
            self.random_state,
            sample_size=self.landmark_sample,
            on_invalid=on_invalid,
            progress=progress,
        )
        if rows is not None:
            operator.check_points(points)
        basis: Basis = LandmarkBasis(kernel, points)
        if self._with_constant(operator):
            basis = Concatenated((ConstantBasis(source.dimension), basis))
        return Ground(basis, source.preparation, rows if self.exclude_landmarks else None)

    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, by this or another run; no data are touched.

        Raises ValueError where every basis function vanishes, or the weights are all zero.
        """
        if moments.weight <= 0:
            raise ValueError(f"the total sample weight is {moments.weight:g}; some row needs a positive weight")
        gram, form = moments.mean("gram"), moments.mean("form")
        if not np.isfinite(gram).all() or not np.isfinite(form).all():
            raise ValueError(
                "the moments are not finite: the kernel or its derivatives overflow on these data; scale the columns "
                "(standardize=True), or change the kernel's scale or degree"
            )
        # in rows, whatever the unit of the weights
        first, diagonal = moments.arrays["first"], np.diag(moments.arrays["gram"]) * (moments.weight / moments.count)
        support = np.divide(first**2, diagonal, out=np.zeros_like(first), where=diagonal > 0)
        kept = ~moments.basis.local | (support >= self.min_support)
        advise_support(kept, moments.basis, self.min_support)
        solution = solve_symmetric(
            form[np.ix_(kept, kept)],
            gram[np.ix_(kept, kept)],
            count=self.n_components,
            cut=resolve_cut(self.rtol, moments.dtype),
            ridge=self.ridge,
        )
        advise_rank(solution, moments.basis, self.n_components)
        coefficients = np.zeros((len(kept), len(solution.values)))
        coefficients[kept] = solution.left
        return self.with_solution(
            moments,
            {
                "eigenvalues_": solution.values,
                "coefficients_": coefficients,
                "rank_": solution.rank,
                "residuals_": solution.residuals,
                "support_": support,
            },
        )

    def with_solution(self, moments: Moments, solution: Mapping[str, Any]) -> Self:
        """Take over moments and their solution (`SOLUTION`), which another estimator found."""
        for name in SOLUTION:
            setattr(self, name, solution[name])
        self.moments_, self.basis_ = moments, moments.basis
        self.kernel_ = next((b.kernel for b in moments.basis.parts if isinstance(b, LandmarkBasis)), None)
        preparation = {k: v for k, v in moments.preparation.items() if k != "n_features_in"}
        self.preparation_ = Preparation.from_state(preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        return self

    def transform(
        self,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        progress: bool | None = None,
    ) -> Any:
        """The eigenfunctions at the rows of X, (n, k) float64, unit L2(rho) norm.

        numpy comes out as numpy, dask and xarray as dask and xarray, lazily; a zarr array or a path comes out as a
        lazy dask array. With `out`, they are written to a new zarr array at that path or URL, which appears whole or
        not at all, and None is returned. Invalid rows raise InvalidRowError, or become NaN with on_invalid="skip".
        """
        check_is_fitted(self)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        task = Eigenfunctions(self.basis_, self.coefficients_, self.preparation_, on_invalid == "skip")
        return apply_rows(
            task,
            X,
            n_features=self.n_features_in_,
            coordinates={"eigenvalue": self.eigenvalues_},
            out=out,
            overwrite=overwrite,
            progress=progress,
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted estimator as a zarr group (`daskspectral.save`)."""
        from daskspectral.estimators.persistence import save

        save(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fitted estimator that was saved. Raises ValueError where the path holds something else."""
        from daskspectral.estimators.persistence import load

        model = load(path)
        if not isinstance(model, cls):
            what = type(model).__name__
            raise ValueError(f"{os.fspath(path)} holds {what}, not {cls.__name__}; use daskspectral.load")
        return model

    def fitted(self) -> Self:
        """This estimator; raises sklearn's NotFittedError (a ValueError) before `fit`."""
        check_is_fitted(self)
        return self

    def _with_constant(self, operator: Operator) -> bool:
        return operator.kills_constants if self.constant is None else self.constant

    def _check_parameters(self, on_invalid: str) -> None:
        for name in ("n_components", "n_landmarks"):
            check_whole(name, getattr(self, name))
        if isinstance(self.landmarks, str):
            check_one_of("landmarks", self.landmarks, METHODS)
            if self.landmarks != "uniform" and self.landmark_sample is not None:
                check_whole("landmark_sample", self.landmark_sample, self.n_landmarks)
        check_one_of("dtype", self.dtype, ("float64", "float32"))
        check_one_of("constant", self.constant, (None, True, False))
        for name in ("standardize", "exclude_landmarks"):
            check_one_of(name, getattr(self, name), (True, False))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        check_amount("ridge", self.ridge)
        check_amount("min_support", self.min_support)
        if self.rtol is not None:
            check_number("rtol", self.rtol)
        resolve_cut(self.rtol, self.dtype)
        check_random_state(self.random_state)

    def _check_against(self, source: Source, operator: Operator, kernel: Kernel) -> None:
        """What metadata can tell before any task is sent."""
        operator.check(source.dimension)
        LandmarkBasis(kernel, np.zeros((1, source.dimension))).check_order(operator.derivative_order, operator.name)
        if not isinstance(self.landmarks, str):
            given_landmarks(self.landmarks, source.n_features_in)
        n = source.n
        if n < self.n_components:
            raise ValueError(f"X has {n} rows, fewer than the n_components={self.n_components} asked for")
        if isinstance(self.landmarks, str):
            if n < self.n_landmarks:
                raise ValueError(f"X has {n} rows, fewer than n_landmarks={self.n_landmarks}; lower n_landmarks")
            if n == self.n_landmarks and self.exclude_landmarks:
                raise ValueError(
                    f"all {n} rows would become landmarks and none would be left to measure; lower n_landmarks or set "
                    "exclude_landmarks=False"
                )
