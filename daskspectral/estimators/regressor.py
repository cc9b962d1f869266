"""Base class of regressors: predictions, gradients and R² on rows in any container, chunk by chunk."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self, cast

from sklearn.utils.validation import check_is_fitted

from daskspectral.data.layout import Layout
from daskspectral.data.source import open_regression
from daskspectral.estimators.base import MeasuredEstimator
from daskspectral.estimators.bases import RegressorMixin
from daskspectral.estimators.records import recording_warnings
from daskspectral.estimators.table import RunContext, open_table
from daskspectral.moments import Moments
from daskspectral.operators.regression import Regression
from daskspectral.passes.apply import Result, slopes_of
from daskspectral.passes.folds import continued_folds
from daskspectral.passes.functions import EquivariantValues, SpanSlopes, SpanValues
from daskspectral.passes.score import determination


class Regressor(RegressorMixin, MeasuredEstimator):
    """Estimator whose `predict` is a function in the span of a basis."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def update(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Add rows that were appended to X, y and gradients since the fit.

        The basis and the scaling are unchanged; linear functions of fewer rows than columns are rebuilt from all rows.

        Parameters
        ----------
        X, y : array-like or Rows
            Data of the fit with appended rows.
        gradients : array-like, optional
            Gradients of the targets.
        sample_weight : array-like, optional
            Weights.
        folds : int or array-like, optional
            Folds, as in `SpectralDecomposition.update`.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        Self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X has no more rows than before, or its first rows are not those of the fit.
        """
        before: Moments = self._fitted().moments_
        measured, found = cast(Regression, before.operator), continued_folds(before.folds, folds)
        given = {"y": y, "gradients": gradients, "sample_weight": sample_weight, "folds": folds}
        with open_table(self, X, RunContext(progress), **given) as table, recording_warnings(self):
            options = {"gradients": table.gradients, "slopes": gradients is not None, **table.options(found)}
            source, operator = open_regression(table.rows, table.y, **options)
            if operator != replace(measured, manifold=None, origin=(), unit=1.0, intercept=False):
                raise ValueError(f"data of {measured} expected, as in the fit, got {operator}.")
            return self._update_source(source, found)

    @abstractmethod
    def _predictor(self) -> tuple[SpanValues | EquivariantValues, int | None]:
        """Return the fitted function and the number of targets, None for one given as a vector."""

    def predict(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Predict the targets at the rows of X.

        Parameters
        ----------
        X : array-like or Rows
            Rows (n, n_features).
        out : str or path, optional
            Path or URL of a new zarr group for the values and their coordinates, written completely or not at all.
        **options
            Those of `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n,) or (n, m), or None
            Values in float64, (n, m) for m targets; None with `out`. They are numpy arrays for numpy, lazy dask arrays
            for dask, zarr and paths, and for labeled data an xarray.DataArray with the name and attributes of y.

        Raises
        ------
        InvalidRowError
            For invalid rows; they are NaN with `Rows(X, on_invalid="skip")`.
        PointError
            For points off a manifold.
        """
        check_is_fitted(self)
        function, targets = self._predictor()
        return self._rows(function, X, output=self._target(targets), out=out, **options)

    def predict_gradient(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Return the gradients of the predictions at the rows of X, by the columns of the fit.

        They are 0 along unused columns, and tangent to the manifold if there is one.

        Parameters
        ----------
        X : array-like or Rows
            Rows (n, n_features).
        out : str or path, optional
            As in `predict`.
        **options
            Those of `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, d) or (n, m, d), or None
            Gradients in float64, in containers as those of `predict`. Labeled columns keep their dimensions; gradients
            are by values before weights, NaN at excluded places.

        Raises
        ------
        SmoothnessError
            If the kernel has no gradient.
        """
        check_is_fitted(self)
        values, targets = self._predictor()
        values.basis.check_order(1, "predict_gradient")
        width = self.n_features_in_
        shared: dict[str, Any] = {name: getattr(values, name) for name in ("support", "preparation", "device")}
        function = SpanSlopes(values.basis, values.coefficients, width, **shared)
        output = slopes_of(self._target(targets), vars(self).get("layout_"), X, width)
        return self._rows(function, X, output=output, out=out, **options)

    def _target(self, targets: int | None) -> Result:
        shape: tuple[int, ...] = () if targets is None else (targets,)
        layout: Layout | None = vars(self).get("layout_")
        if layout is None or layout.target is None:
            return Result("prediction", shape, ("target",)[: len(shape)])
        target = layout.target
        coords = {name: c.variable() for name, c in layout.target_coords.items()}
        if targets is None or target.width != targets:
            return Result(target.name or "prediction", shape, ("target",)[: len(shape)], attrs=target.attrs)
        return Result(target.name or "prediction", target.sizes, target.dims, coords, target.attrs)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, progress: bool | None = None) -> float:
        """Return R² of the predictions on rows X with targets y, averaged over targets.

        R² = 1 - sum w (y - f)² / sum w (y - mean)², 0 for the constant mean of y. Data are read once, chunk by chunk.

        Parameters
        ----------
        X : array-like or Rows
            Rows (n, n_features).
        y : array-like of shape (n,) or (n, m)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Weights w.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        float
            R².

        Raises
        ------
        ValueError
            For a single row, and for other columns than those of the fit.
        """
        with open_table(self, X, RunContext(progress), y=y, sample_weight=sample_weight) as table:
            return determination(*self._predictor(), table.rows, table.y, table.sample_weight, progress)
