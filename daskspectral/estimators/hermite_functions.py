"""What a fitted Hermite regression gives: its values and its gradient at any rows."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import FourierLattice, LandmarkBasis
from daskspectral.data.source import Preparation
from daskspectral.estimators.regressor import Regressor
from daskspectral.moments import Moments
from daskspectral.passes.apply import shaped
from daskspectral.passes.functions import SpanSlopes, SpanValues

Array = NDArray[np.floating[Any]]


class RegressionFunctions(Regressor):
    """The function of a fit, whose coefficients (p,) or (p, m) are `coef_`, in the span of a basis."""

    moments_: Moments
    coef_: Array

    def restored(self) -> Self:
        moments = self.moments_
        basis = moments.basis
        assert isinstance(basis, (LandmarkBasis, FourierLattice))
        self.basis_ = basis
        self.kernel_ = basis.kernel if isinstance(basis, LandmarkBasis) else self.choice_.parameters["kernel"]
        self.preparation_ = Preparation.from_state(moments.preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        return self

    def predict(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """f at the rows of X, (n,), or (n, m) for m targets, float64.

        numpy gives numpy, dask gives dask, xarray gives xarray (lazy where X is), and a zarr array or a path gives a
        lazy dask array. With `out`, (n, m) values are written to a new zarr array at that path or URL, which appears
        whole or not at all, and None is returned. Invalid rows raise InvalidRowError, or become NaN with
        on_invalid="skip". The other options are as in `SpectralDecomposition.transform`.
        """
        check_is_fitted(self)
        result = self._rows(self._predictor()[0], X, out=out, **options)
        return None if out is not None else shaped(result, "prediction", self.coef_.shape[1:], ("target",), {})

    def predict_gradient(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The gradient of f at the rows of X, in the columns of X: (n, d), or (n, m, d) for m targets, float64.

        It is 0 along columns that are not used. Containers and options are as in `predict`; `out` gets (n, m d).
        Raises SmoothnessError where the kernel has no gradient.
        """
        check_is_fitted(self)
        self.basis_.check_order(1, "predict_gradient")
        width = self.n_features_in_
        function = SpanSlopes(self.basis_, self._by_target(), width, preparation=self.preparation_)
        result = self._rows(function, X, out=out, **options)
        if out is not None:
            return None
        dims: tuple[str, ...] = ("feature",)
        names = {}
        if isinstance(X, xr.DataArray):
            dims = (str(X.dims[1]),)
            names = {name: c for name, c in X.coords.items() if c.dims == (X.dims[1],)}
        extra = ("target",) if self.coef_.ndim == 2 else ()
        return shaped(result, "gradient", (*self.coef_.shape[1:], width), (*extra, *dims), names)

    def _predictor(self) -> tuple[SpanValues, int | None]:
        function = SpanValues(self.basis_, self._by_target(), preparation=self.preparation_)
        return function, self.coef_.shape[1] if self.coef_.ndim == 2 else None

    def _by_target(self) -> Array:
        """The coefficients as columns (p, m)."""
        return np.asarray(self.coef_.reshape(len(self.coef_), -1))
