"""What regressors share: values, gradients and R^2 on rows in any container, which are read chunk by chunk."""

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
from daskspectral.estimators.records import remembered
from daskspectral.estimators.table import RunContext, open_table
from daskspectral.moments import Moments
from daskspectral.operators.regression import Regression
from daskspectral.passes.apply import Result, slopes_of
from daskspectral.passes.folds import continued_folds
from daskspectral.passes.functions import EquivariantValues, SpanSlopes, SpanValues
from daskspectral.passes.score import determination


class Regressor(RegressorMixin, MeasuredEstimator):
    """An estimator whose `predict` is a function in the span of a basis."""

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
        """Fold in rows that were appended to X, y and gradients since they were fitted.

        The functions and the scaling of columns stay; linear functions of fewer rows than columns are made of all rows
        anew. What is summed, and `folds`, are as in `SpectralDecomposition.update`. Raises ValueError where X has no
        more rows than before, or its first rows are not those of the fit.
        """
        before: Moments = self.fitted().moments_
        measured, found = cast(Regression, before.operator), continued_folds(before.folds, folds)
        given = {"y": y, "gradients": gradients, "sample_weight": sample_weight, "folds": folds}
        with open_table(self, X, RunContext(progress), **given) as table, remembered(self):
            options = {"gradients": table.gradients, "slopes": gradients is not None, **table.options(found)}
            source, operator = open_regression(table.rows, table.y, **options)
            if operator != replace(measured, manifold=None, origin=(), unit=1.0, intercept=False):
                raise ValueError(f"the data are for {operator}, and the model was fitted on {measured}")
            return self._update_source(source, found)

    @abstractmethod
    def _predictor(self) -> tuple[SpanValues | EquivariantValues, int | None]:
        """The fitted function, and the number of targets, None for one that was given as a vector."""

    def predict(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """f at the rows of X, (n,), or (n, m) for m targets, float64.

        numpy gives numpy, dask gives dask, data with labels give an xarray.DataArray with the name and attributes of y
        (lazy where they are not in memory), and a zarr array or the path of one gives a lazy dask array. With `out`,
        the values are written to a new zarr group of one array and its coordinates at that path or URL, which appears
        whole or not at all, and None is returned. Invalid rows raise InvalidRowError, or become NaN with
        `Rows(X, on_invalid="skip")`; points off a manifold raise PointError. The other options are as in
        `SpectralDecomposition.transform`.
        """
        check_is_fitted(self)
        function, targets = self._predictor()
        return self._rows(function, X, output=self._target(targets), out=out, **options)

    def predict_gradient(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The gradient of f at the rows of X, by the columns of the fit: (n, d), or (n, m, d) for m targets, float64.

        It is 0 along columns that are not used, and tangent to the manifold where there is one. Containers and options
        are as in `predict`. By columns with labels it has their dimensions, and is by their values before weights, NaN
        where they were left out. Raises SmoothnessError where a kernel has no gradient.
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
        """Return the labels of predictions of the targets: those of what was fitted, if that had labels."""
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
        """R² on rows X with targets y, 1 - sum w (y - f)² / sum w (y - mean)², averaged over the targets.

        It is 1 at best, 0 for the constant mean of y, as in scikit-learn. X, y and `sample_weight` are numpy, dask,
        zarr or xarray arrays or paths, and read once, chunk by chunk. Raises ValueError for a single row, and for other
        columns than those of the fit.
        """
        with open_table(self, X, RunContext(progress), y=y, sample_weight=sample_weight) as table:
            return determination(*self._predictor(), table.rows, table.y, table.sample_weight, progress)
