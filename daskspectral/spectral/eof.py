"""EOF: empirical orthogonal functions (principal components) of fields."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.labeled import ROW, stack_rows
from daskspectral.data.rows import Rows
from daskspectral.data.source import windows_of
from daskspectral.errors import FitWarning
from daskspectral.estimators.table import open_table
from daskspectral.moments.field_modes import Significance
from daskspectral.operators import Covariance
from daskspectral.passes.apply import Result, labeled_rows
from daskspectral.spectral.components import (
    PARTS,
    analytic_rows,
    complex_components,
    complex_parts,
    complex_rows,
    linear_landmarks,
    pattern_errors,
    rotated,
    significance,
)
from daskspectral.spectral.estimator import FieldVariables, units_of_columns, with_fields
from daskspectral.spectral.fields import FieldEstimator, square_units, with_ends
from daskspectral.validation import check_integer

if TYPE_CHECKING:
    import xarray as xr

    from daskspectral.data.layout import RowLabels

Array = NDArray[np.inexact[Any]]


class EOF(FieldEstimator):
    """Empirical orthogonal functions of a field, its principal components.

    Rows are times and columns are places. `daskspectral.Rows` subtracts seasonal cycles and trends, and weights by
    latitude. Scores have variance 1. Components of a kernel: `SpectralDecomposition(operators.Covariance(), basis)`.

    Parameters
    ----------
    n_components : int or float, default=10
        Number of components, or, between 0 and 1, the share of the variance to explain.
    folds, dtype, device, random_state : optional
        As in `SpectralDecomposition`; folds of rows with times are contiguous blocks, and sums are float64 for any
        dtype.

    Attributes
    ----------
    eigenvalues_, eigenvalue_errors_ : ndarray of shape (k,) and (k, 2)
        Variances, descending, and the ends of their 95 % intervals.
    explained_variance_ratio_ : ndarray of shape (k,)
        Shares of the total variance.
    patterns_, pattern_errors_ : Patterns and ndarray of shape (k, d, 2)
        Patterns in the units of the data, and the ends of 95 % intervals of `patterns_.single`.
    reliable_ : ndarray of bool of shape (k,)
        True if a component exceeds red noise and its pattern, or that of its group, is known (`significance`),
        regardless of the width of its interval.
    validation_values_, multiplets_ : ndarray of shape (k,)
        Variances on held-out rows, and groups of components that are not separate. `SpectralDecomposition`
        describes the other attributes.

    See Also
    --------
    CCA : Canonical correlations of two fields.
    MCA : Maximum covariance analysis of two fields.
    SpectralDecomposition : Spectral decomposition of any operator.

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
    _value_name: ClassVar[str] = "explained_variance"
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
    def _fitted_attributes(self) -> tuple[str, ...]:
        return (*super()._fitted_attributes, "rotation_")

    @property
    def pattern_errors_(self) -> Array:
        """Ends (k, d, 2) of 95 % intervals of `patterns_.single`, by a jackknife.

        NaN without error bars. Only the span of a group of `multiplets_` is determined: its patterns are first rotated
        to the nearest in the span.
        """
        return pattern_errors(self)

    def _mode_label(self, i: int) -> str:
        return f"{100 * self.explained_variance_ratio_[i]:.1f} %"

    def _of_values(self) -> dict[str, Any]:
        values, ends, patterns = self.eigenvalues_, self.eigenvalue_errors_, self.patterns_
        total = np.divide(values, patterns.explained, out=np.full(len(values), np.nan), where=patterns.explained > 0)
        variance, share = "variance of the field along the mode", "share of the total variance"
        found = with_ends(self._value_name, values, ends, variance, square_units(self))
        name = f"{self._value_name}_ratio"
        return found | with_ends(name, patterns.explained, ends / total[:, None], share, {"units": "1"})

    def _pattern_ends(self) -> Any:
        return np.moveaxis(self.pattern_errors_, -1, 0)

    def rotated(self, count: int) -> Self:
        """Return a fitted model of `count` components after varimax rotation (Kaiser 1958).

        Patterns are localized; scores remain uncorrelated, of variance 1. `eigenvalues_` are the explained variances,
        descending, with unchanged sum; `rotation_` (count, count) maps the components to the rotated ones. There are no
        error bars, and `update` returns to unrotated components.

        Parameters
        ----------
        count : int
            Number of components to rotate, from 2 to those fitted.

        Returns
        -------
        EOF
            The rotated model.

        Raises
        ------
        ValueError
            If `count` is out of range, or `patterns_` raises it.
        """
        check_integer("count", count, 2, self._fitted().coefficients_.shape[1])
        found: Self = rotated(self, count)
        return found

    def significance(self) -> Significance:
        """Return the comparison of components with red noise (rule N) and each other (North's rule).

        Red noise consists of independent AR(1) columns with the variances and lag-one autocorrelations of the fitted
        columns, for rows in the order of time. Only sums of the fit are used
        (`help(daskspectral.moments.field_modes)`).

        Returns
        -------
        Significance
            `count`, the number of components above noise, `separations`, `groups`, `pattern_correlations`,
            `effective_rows`, and the text `verdict`.

        Raises
        ------
        ValueError
            If there are fewer than 30 rows, or components are rotated.
        """
        return significance(self._fitted())

    def hilbert(self, X: Any, count: int | None = None) -> xr.Dataset:
        """Return complex components of X, of patterns that propagate (Hilbert EOFs).

        They are the components of the analytic signal x + i H x of centered columns (Rasmusson and others 1981), by an
        FFT along all rows of each member of an ensemble; x + i H x is about the sum of scores times components. Series
        that are not periodic are distorted near both ends.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows in the order of time.
        count : int, optional
            Number of components; by default that of the fit.

        Returns
        -------
        xarray.Dataset
            Along `mode`: `explained_variance`, E |score|² of patterns of length 1, with ends `_lower` and `_upper`
            from blocks of rows, `reliable`, `explained_variance_ratio`, complex `components` in the units of the
            data, and lazy complex `scores` of mean square 1, both with `_amplitude` and `_phase` (radians). NetCDF has
            no complex numbers: `drop_vars(["components", "scores"])` before `to_netcdf`.

        Raises
        ------
        ValueError
            If rows have several dimensions without a time or are left out, components are those of a kernel, or times
            have gaps or do not increase.
        """
        count = check_integer("count", len(self._fitted().eigenvalues_) if count is None else count)
        if linear_landmarks(self.moments_) is None:
            raise ValueError("hilbert requires components of columns, got those of a kernel")
        rows, layout = Rows.of(X), vars(self).get("layout_")
        stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=layout, wanted=self._columns_wanted())
        labels = None if stacked is None else stacked.rows
        if stacked is not None and self.preparation_.delays > 1:
            labels = windows_of(stacked.reader, labels, self.preparation_.delays)[1]
        with open_table(self, X) as table:
            signal, blocks = analytic_rows(self, table.rows)
        fitted, patterns, scores = complex_components(self, signal, blocks, count)
        raw = self.preparation_.of_directions.inverse(patterns, self.n_features_in_) * units_of_columns(self)
        alone = layout is None or len(layout.variables) == 1
        dataset, score = self._complex(fitted, scores, labels)
        fields = [FieldVariables("components", raw, (self._numbering[0],), alone=alone)]
        return with_polar_parts(with_fields(dataset, self, fields, score))

    def complex_modes(self, X: Any, count: int | None = None) -> xr.Dataset:
        """Return the complex components of complex rows X, such as u + 1j * v of winds (complex EOFs).

        They are eigenvectors of the Hermitian covariance matrix E[z^H z] of centered columns z times the roots of their
        weights. The method requires no fit, and reads X three times.

        Parameters
        ----------
        X : complex array of shape (n, d), DataArray, Dataset, or Rows of these
            Rows, with all options but `columns`, `standardize`, `delays` and `fields`; invalid rows raise an error.
        count : int, optional
            Number of components; by default `n_components`.

        Returns
        -------
        xarray.Dataset
            As of `hilbert`.

        Raises
        ------
        TypeError
            If X is not complex.
        ValueError
            For options of the rows that it does not have.
        InvalidRowError
            For missing values, except in columns without any value with `on_invalid="skip"` (land).
        """
        import xarray as xr

        rows = Rows.of(X)
        given: dict[str, Any] = {"columns": rows.columns, "fields": rows.fields}
        given |= {"standardize": rows.standardize or None, "delays": rows.delays if rows.delays > 1 else None}
        if named := [name for name, value in given.items() if value is not None]:
            raise ValueError(f"complex_modes has no option {named[0]!r}. Omit it, and prepare the columns before")
        count = check_integer("count", int(self.n_components) if count is None else count)
        rows = replace(rows, data=complex_parts(rows.data))
        options = {name: getattr(self, name) for name in ("dtype", "device", "random_state")}
        parts = type(self)(1, folds=None, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # of the real components, which only prepare the columns
            parts.fit(rows, progress=False)
        layout = vars(parts).get("layout_")
        stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=layout, wanted=parts._columns_wanted())
        with open_table(parts, rows) as table:
            z, blocks = complex_rows(parts, table.rows)
        fitted, patterns, scores = complex_components(self, z, blocks, count)
        both = np.concatenate([patterns.real, patterns.imag], axis=1)
        raw = parts.preparation_.of_directions.inverse(both, parts.n_features_in_) * units_of_columns(parts)
        dataset, score = self._complex(fitted, scores, None if stacked is None else stacked.rows)
        dim = self._numbering[0]
        if layout is None:
            d = raw.shape[1] // 2
            fields = {"components": xr.DataArray(raw[:, :d] + 1j * raw[:, d:], dims=(dim, "feature"))}
            dataset = dataset.assign(score | fields)
        else:
            dataset = with_fields(dataset, parts, [FieldVariables("components", raw, (dim,))], score)
            pairs = len(layout.variables) // 2
            for variable in layout.variables[:pairs]:
                name = str(variable.name).removesuffix(PARTS[0])
                real, imaginary = own = [f"{name}{part}_components" for part in PARTS]
                values = (dataset[real] + 1j * dataset[imaginary]).assign_attrs(dataset[real].attrs)
                dataset = dataset.drop_vars(own).assign({"components" if pairs == 1 else f"{name}components": values})
        return with_polar_parts(dataset)

    def _complex(
        self, fitted: Any, scores: Any, labels: RowLabels | None
    ) -> tuple[xr.Dataset, dict[str, xr.DataArray]]:
        import xarray as xr

        some = slice(None, None, 2)
        found = {
            "explained_variance": 2 * fitted.eigenvalues_[some],
            "explained_variance_lower": 2 * fitted.eigenvalue_errors_[some, 0],
            "explained_variance_upper": 2 * fitted.eigenvalue_errors_[some, 1],
            "reliable": fitted.reliable_[some],
            "explained_variance_ratio": 2 * fitted.explained_variance_ratio_[some],
        }
        (dim, first), count = self._numbering, scores.shape[1]
        variables: dict[str, Any] = {name: (dim, values) for name, values in found.items()}
        dataset = xr.Dataset(variables, {dim: np.arange(first, first + count)})
        output = Result("scores", (count,), (dim,))
        score = xr.DataArray(scores, dims=(ROW, dim)) if labels is None else labeled_rows(scores, output, labels)
        return dataset, {"scores": score}


def with_polar_parts(dataset: xr.Dataset) -> xr.Dataset:
    """Return the dataset with the amplitudes and the phases of its complex variables."""
    import xarray as xr

    found: dict[str, Any] = {}
    for name, values in dataset.data_vars.items():
        if values.dtype.kind == "c":
            found[f"{name}_amplitude"] = abs(values).assign_attrs(values.attrs)
            found[f"{name}_phase"] = xr.ufuncs.angle(values).assign_attrs(units="radian")
    return dataset.assign(found)
