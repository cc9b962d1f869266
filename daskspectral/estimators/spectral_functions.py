"""What a fitted spectral decomposition gives: its functions at any rows, its score, bounds of its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import LandmarkBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators.base import MeasuredEstimator
from daskspectral.moments import Moments
from daskspectral.moments.lattice import on_lattice
from daskspectral.operators import Operator
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.score import measure_score
from daskspectral.passes.variance import VarianceBound, variance_bound
from daskspectral.solve import Solver

Array = NDArray[np.inexact[Any]]


def _shows(attribute: str) -> Callable[[Any], bool]:
    """A check for `available_if`: whether the operator's solver gives the attribute."""

    def check(estimator: SpectralFunctions) -> bool:
        operator = vars(estimator).get("moments_", estimator).operator
        return isinstance(operator, Operator) and attribute in operator.solver.attributes

    return check


class SpectralFunctions(TransformerMixin, MeasuredEstimator):  # type: ignore[misc]
    """The functions of a solution, which `moments_` and the attributes of the operator's solver hold."""

    moments_: Moments

    def restored(self) -> Self:
        moments = self.moments_
        self.basis_ = moments.basis
        if moments.right_basis is not None:
            self.right_basis_ = moments.right_basis
        cores = [part.core for part in moments.basis.parts]
        self.kernel_ = next((b.kernel for b in cores if isinstance(b, LandmarkBasis)), None)
        if on_lattice(moments):
            self.kernel_ = self.choice_.parameters["kernel"]
        if moments.operator.estimate is not None:
            self.density_ = moments.operator.estimate
        self.preparation_ = Preparation.from_state(moments.preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        right = moments.preparation.get("right")
        if right is not None:
            self.right_preparation_ = Preparation.from_state(right)
            self.n_right_features_in_ = int(right["n_features_in"])
        return self

    @property
    def solver_(self) -> Solver:
        """The solver of the fitted operator; it decides which attributes there are."""
        found: Solver = self.fitted().moments_.operator.solver
        return found

    def transform(self, X: Any, **options: Any) -> Any:
        """The eigenfunctions, or left singular functions, at the rows of X, (n, k), unit L2(rho) norm.

        They are float64, or complex128 for an operator solved by "eigen". numpy gives numpy, dask gives dask, xarray
        gives xarray (lazy where X is), and a zarr array or a path gives a lazy dask array. With `out`, they are written
        to a new zarr array at that path or URL, which appears whole or not at all (an existing one is replaced with
        `overwrite`), and None is returned.
        Invalid rows raise InvalidRowError, or become NaN with on_invalid="skip"; a missing chunk raises OSError unless
        `allow_missing`: fill values are meant. `progress` None shows a bar on a terminal only.
        """
        check_is_fitted(self)
        return self._functions("", self.coefficients_, X, **options)

    @available_if(_shows("right_coefficients_"))  # type: ignore[untyped-decorator]
    def transform_right(self, X: Any, **options: Any) -> Any:
        """The right singular functions at the rows of X (for Cross, of y), (n, k); options as in `transform`."""
        check_is_fitted(self)
        return self._functions("right_", self.right_coefficients_, X, **options)

    @available_if(_shows("left_coefficients_"))  # type: ignore[untyped-decorator]
    def transform_left(self, X: Any, **options: Any) -> Any:
        """The eigenfunctions of the adjoint at the rows of X, (n, k); options as in `transform`."""
        check_is_fitted(self)
        return self._functions("", self.left_coefficients_, X, **options)

    def _functions(self, side: str, coefficients: Array, X: Any, **options: Any) -> Any:
        moments, basis = self.moments_, self.basis_
        preparation, width = self.preparation_, self.n_features_in_
        if side:
            basis = basis if moments.right_basis is None else moments.right_basis
            if moments.operator.own_right_basis:
                preparation, width = self.right_preparation_, self.n_right_features_in_
        means = moments.mean(f"{side}first") @ coefficients if moments.operator.center else None
        values = self.solver_.values
        return self._rows(
            SpanValues(basis, coefficients, means, preparation=preparation),
            X,
            n_features=width,
            coordinates={values.removesuffix("s_"): getattr(self, values)},
            **options,
        )

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        fields: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> float:
        """How good the first `n_components` functions are on rows X that they were not fitted to; larger is better.

        One pass measures the functions there; `y` is ignored. The score is minus the sum of their Ritz values: by
        min-max at most minus the sum of the least eigenvalues, so that kernels, scales and bases compare. For singular
        values, and for Transfer, it is VAMP-2, the sum of their squares on the new rows; for generators the sum of the
        Ritz values' real parts (`help(daskspectral.moments.score)`). It is -inf for fewer than `n_components`
        functions, and with a RankWarning where the new rows do not tell them apart. Rows of the fit flatter it.

        `options` are on_invalid, allow_missing and progress, as in `fit`. Raises ValueError for no more rows than
        functions, and for rows of other columns than those of the fit.
        """
        return measure_score(self.fitted(), X, fields=fields, sample_weight=sample_weight, **options).score

    def variance_bound(self, X: Any, *, delta: float = 0.05, **options: Any) -> VarianceBound:
        """Bounds of the error from the rows of X, in one pass: the variance term of Theorem 1, and a sharper one.

        The theorem's is vacuous on most data; error bars for use are those of the fit, `eigenvalue_errors_`. X are the
        rows of the fit, or some of them; `options` are fields, sample_weight, on_invalid, allow_missing and progress,
        as in `fit`; `delta` is the probability with which a bound may fail. Raises ValueError for operators that are
        not symmetric, or not invertible on the span, and after a fit with a ridge.
        """
        return variance_bound(self.fitted(), X, delta=delta, **options)
