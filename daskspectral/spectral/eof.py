"""EOF: empirical orthogonal functions, the principal components of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.labelled import ROW, stack_rows
from daskspectral.data.rows import Rows
from daskspectral.estimators.table import open_table
from daskspectral.moments.field_modes import Significance
from daskspectral.operators import Covariance
from daskspectral.passes.apply import Result, labelled_rows
from daskspectral.spectral.components import (
    analytic_rows,
    complex_components,
    linear_landmarks,
    pattern_errors,
    rotated,
    significance,
)
from daskspectral.spectral.estimator import Fields, units_of_columns, with_fields
from daskspectral.spectral.fields import FieldEstimator, square_units, with_ends
from daskspectral.validation import check_integer

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.inexact[Any]]


class EOF(FieldEstimator):
    """Empirical orthogonal functions of a field, its principal components: patterns, time series and variances.

    Rows are times and columns the places; `daskspectral.Rows` subtracts seasons and trends, and weighs by latitude.
    Scores have variance 1. Components of a kernel are `SpectralDecomposition(operators.Covariance(), basis)`.

    Parameters
    ----------
    n_components : int or float
        Number of components, or the share of the variance to explain, between 0 and 1.
    folds, dtype, device, random_state
        As in `SpectralDecomposition`; folds of rows with times are contiguous blocks, and sums float64 for any dtype.

    Attributes
    ----------
    eigenvalues_, eigenvalue_errors_ : ndarray of shape (k,) and (k, 2)
        Variances, descending, and the ends of their 95 % intervals.
    explained_variance_ratio_ : ndarray of shape (k,)
        Shares of the total variance.
    patterns_, pattern_errors_ : Patterns, ndarray of shape (k, d, 2)
        Patterns in the units of the data, and the ends of the 95 % intervals of `patterns_.single`.
    reliable_ : ndarray of shape (k,)
        Whether a component is above red noise, and its pattern known, or that of its group (`significance`); the width
        of its interval does not matter.
    validation_values_, multiplets_
        Variances on rows that were not fitted to, and clusters of components that are not separate.
        `SpectralDecomposition` describes the other attributes.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> field = dsp.datasets.ocean(1200)  # months, NaN on land
    >>> rows = dsp.Rows(field, sample_dims="time", latitude="lat", anomaly="month", detrend=1, on_invalid="skip")
    >>> model = dsp.EOF(n_components=2, random_state=0).fit(rows)
    >>> model.to_xarray().components.dims, model.transform(field).dims
    (('mode', 'lat', 'lon'), ('time', 'mode'))
    """

    operator = Covariance()
    value_name: ClassVar[str] = "explained_variance"
    rotation_: NDArray[np.floating[Any]]

    def __init__(
        self,
        n_components: float = 10,
        *,
        folds: Any = 10,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.folds = folds
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    @property
    def fitted_attributes(self) -> tuple[str, ...]:
        return (*super().fitted_attributes, "rotation_")

    @property
    def pattern_errors_(self) -> Array:
        """The ends (k, d, 2) of 95 % intervals of `patterns_.single`, by leaving out folds; NaN without error bars.

        Of components in one group of `multiplets_` only the span is known, and their patterns are rotated to the
        nearest in it.
        """
        return pattern_errors(self)

    def mode_label(self, i: int) -> str:
        return f"{100 * self.explained_variance_ratio_[i]:.1f} %"

    def _of_values(self) -> dict[str, Any]:
        values, ends, patterns = self.eigenvalues_, self.eigenvalue_errors_, self.patterns_
        total = np.divide(values, patterns.explained, out=np.full(len(values), np.nan), where=patterns.explained > 0)
        variance, share = "variance of the field along the mode", "share of the total variance"
        found = with_ends(self.value_name, values, ends, variance, square_units(self))
        name = f"{self.value_name}_ratio"
        return found | with_ends(name, patterns.explained, ends / total[:, None], share, {"units": "1"})

    def _pattern_ends(self) -> Any:
        return np.moveaxis(self.pattern_errors_, -1, 0)

    def rotated(self, count: int) -> Self:
        """Return a fitted model of `count` components rotated so that each pattern is large in few places (varimax).

        Scores have variance 1 and remain uncorrelated; patterns, in the weighted columns, have squares of the largest
        variance over the columns (Kaiser 1958). `eigenvalues_` are the variances that each explains, descending, of the
        same sum, and `rotation_` (count, count) maps the components to them. There are no error bars; `update` finds
        components.

        Raises ValueError for fewer than 2 components or more than there are, and as `patterns_`.
        """
        check_integer("count", count, 2, self.fitted().coefficients_.shape[1])
        found: Self = rotated(self, count)
        return found

    def significance(self) -> Significance:
        """Compare the components with those of red noise (rule N), and with each other (North's rule).

        Red noise has independent AR(1) columns with the sums of squares and the lag-one autocorrelations of the columns
        of the fit; rows are in the order of time. Everything follows from sums of the same pass, of which rows
        that are left out have no part (`help(daskspectral.moments.field_modes)`).

        Returns
        -------
        Significance
            With `count`, the number of components above noise, `separations`, `groups`, `pattern_correlations`,
            `effective_rows` and, in words, `verdict`.

        Raises
        ------
        ValueError
            For fewer than 30 rows, for rows with single missing values, and after a rotation.
        """
        return significance(self.fitted())

    def hilbert(self, X: Any, count: int | None = None) -> xr.Dataset:
        """Return complex components of rows X in the order of time, of patterns that propagate (Hilbert EOFs).

        Those of the analytic signal x + i H x of columns of mean 0 (Rasmusson and others 1981), along all rows of each
        member of an ensemble at once. The transform continues rows periodically: where the ends of a series do not
        meet, the signal is distorted near both of them.
        The Dataset has by `mode` (`count`, or as many as were fitted) `explained_variance`, E |score|² of patterns of
        length 1, with `_lower` and `_upper` ends from blocks of rows, `reliable`, `explained_variance_ratio`, complex
        `components` in the units of the data, and lazy complex `scores` of mean square 1: x + i H x is about Σ scores
        components. Raises ValueError for rows of several dimensions without a time, for rows that are left out, for
        moments of a kernel, and for times that have gaps or do not increase.
        """
        import xarray as xr

        count = check_integer("count", len(self.fitted().eigenvalues_) if count is None else count)
        if linear_landmarks(self.moments_) is None:
            raise ValueError("an analytic signal is of columns, and these are moments of a kernel")
        rows, layout = Rows.of(X), vars(self).get("layout_")
        stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=layout, wanted=self._columns_wanted())
        labels = None if stacked is None else stacked.rows
        with open_table(self, X) as table:
            signal, blocks = analytic_rows(self, table.rows)
        fitted, patterns, scores = complex_components(self, signal, blocks, count)
        some = slice(None, None, 2)
        raw = self.preparation_.of_directions.inverse(patterns, self.n_features_in_) * units_of_columns(self)
        found = {
            "explained_variance": 2 * fitted.eigenvalues_[some],
            "explained_variance_lower": 2 * fitted.eigenvalue_errors_[some, 0],
            "explained_variance_upper": 2 * fitted.eigenvalue_errors_[some, 1],
            "reliable": fitted.reliable_[some],
            "explained_variance_ratio": 2 * fitted.explained_variance_ratio_[some],
        }
        dim, first = self.numbering
        variables: dict[str, Any] = {name: (dim, values) for name, values in found.items()}
        dataset = xr.Dataset(variables, {dim: np.arange(first, first + len(patterns))})
        output = Result("scores", (len(patterns),), (dim,))
        score = xr.DataArray(scores, dims=(ROW, dim)) if labels is None else labelled_rows(scores, output, labels)
        alone = layout is None or len(layout.variables) == 1
        return with_fields(dataset, self, [Fields("components", raw, (dim,), alone=alone)], {"scores": score})
