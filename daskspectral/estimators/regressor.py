"""What regressors share: R^2 on rows in any container, which are read chunk by chunk."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators.base import MeasuredEstimator
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.residuals import determination


class Regressor(RegressorMixin, MeasuredEstimator):  # type: ignore[misc]
    """An estimator whose `predict` is a function in the span of a basis."""

    n_features_in_: int

    @abstractmethod
    def _predictor(self) -> tuple[SpanValues, int | None]:
        """The fitted function, and the number of targets, None for one that was given as a vector."""

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> float:
        """R^2 on rows X with targets y, 1 - sum w (y - f)^2 / sum w (y - mean)^2, averaged over the targets.

        It is 1 at best, 0 for the constant mean of y, as in scikit-learn. X, y and `sample_weight` are numpy, dask,
        zarr or xarray arrays or paths, and read once, chunk by chunk; invalid rows raise InvalidRowError, or are left
        out with on_invalid="skip". Raises ValueError for a single row, and for other columns than those of the fit.
        """
        check_is_fitted(self)
        function, targets = self._predictor()
        return determination(
            function,
            targets,
            X,
            y,
            sample_weight,
            n_features=self.n_features_in_,
            on_invalid=on_invalid,
            allow_missing=allow_missing,
            progress=progress,
        )
