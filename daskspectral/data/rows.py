"""Rows of data with the options for reading them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.anomalies import GROUPS, MOST_DEGREE
from daskspectral.validation import check_integer, check_option, check_type, loaded

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of data with the options for reading them.

    Estimators accept it wherever they accept an array, in `fit`, `update`, `transform`, `predict`, `score` and `plan`.
    The columns, their scaling and the layout of labels are stored with the fitted model and applied to rows of later
    calls. `DiffusionMap`, `KernelEmbedding` and the invariant estimators use all columns unchanged.

    Named columns (of data frames, Parquet and CSV files, xarray objects, zarr arrays with an attribute "columns") are
    matched by name, in any order: additional columns are ignored, and missing ones raise a ValueError that names them.
    Columns without names are matched by position.

    Parameters
    ----------
    data : array-like of shape (n, d), path, URL, list or tuple
        A numpy (also memory-mapped), dask, zarr or xarray array, a sparse matrix of scipy, a data frame of numbers
        (pandas, polars, Arrow), the path or URL of a zarr array, or the path of a .npy file; a tuple of these,
        aligned by row, for an operator between views; for Transfer one trajectory or a list of several. Labeled
        data are an xarray DataArray of any dimensions, a Dataset, a zarr group, NetCDF files (a path, a pattern
        with * or a list, ordered by their coordinates), and Parquet or CSV files, which are read lazily.
    columns : sequence of int or str, optional
        Columns to use, of X and of views in its space; by default all. Names select columns of any named data, as
        X[["a", "b"]] of a frame: the model then contains only these. With numbers the other columns must be
        present, but may contain text in a table; for a field with on_invalid="skip" the numbers do not count empty
        columns (land).
    standardize : bool, default=False
        Scale each column to mean 0 and standard deviation 1, in an additional pass of the fit, after anomalies.
        Derivatives, and therefore the Laplacian, are then in standardized units; operators that depend on the units
        of X, such as by a potential, raise an error.
    sample_dims : str or sequence of str, optional
        Dimensions of labeled data that are rows, such as ("time",) or ("time", "lat", "lon"); by default the first
        one. All others are stacked to columns, variable by variable. With ("member", "time"), lags, neighbors in time
        and contiguous folds stay within each member of an ensemble, and scores have both dimensions.
    latitude : str, optional
        Coordinate in degrees of the columns or rows of labeled data, for weights by its cosine. Columns are
        multiplied by the square root of the cosine, after `standardize`, and functions with periods or units of X
        raise an error; for rows, the cosine is a sample weight.
    anomaly : {"month", "season", "dayofyear", "hour"}, optional
        Subtract the mean of each column over all rows of the same month, season, day of the year or hour. Rows must
        be labeled data with times, of numpy or any calendar (cftime). The means are weighted and computed in an
        additional pass of the fit; members of an ensemble, sample_dims=("member", "time"), have the same means.
        They are stored with the model and subtracted from rows at any times; day 366, if it is not in the fit, has
        the mean of day 365. Patterns and `inverse_transform` are anomalies. All rows contribute to the means,
        validation rows included.
    detrend : int, optional
        Degree of a polynomial in time that is subtracted too. It is fitted jointly with the means; without
        `anomaly` it is fitted by ordinary least squares.
    column_weights : array-like, DataArray, Series or mapping, optional
        Positive weights of the columns in the metric, such as areas of grid cells: columns are multiplied by their
        square roots, after `standardize`, and results are in the units of X. A DataArray has dimensions of the columns;
        a mapping has weights by the name of a column, or of a variable, and other columns have the weight 1. Of two
        fields each has its weights, `fit(x, Rows(y, column_weights=...))`.
    delays : int, default=1
        Number of consecutive rows per window (delay embedding: extended EOFs, Hankel dynamic mode decomposition). Each
        row t is replaced by x_t, x_{t-1}, ..., x_{t-delays+1}, and dropped unless these are in its trajectory, in its
        member of an ensemble, and without a gap of times. Results are those of the last rows of the windows; patterns
        have the dimension `delay`. The data are not copied: tasks read a few more rows.
    fields : mapping of str to array-like of shape (n, ...), optional
        Additional arrays of the operator by name, such as {"potential": v}, with one row for each row of the data;
        labeled arrays are aligned with its rows.
    on_invalid : {"raise", "skip", "pairwise"}, default="raise"
        Treatment of rows with NaN or infinity: an InvalidRowError for the first one, skip (NaN in results), or use
        in part. A fit counts skipped rows. For labeled data, columns that are NaN in all rows (land) are dropped
        first, and are NaN in results with the layout of the data; if the first rows have such columns, the data are
        read once more to find all. "pairwise" is for `Covariance` and `Cross` with linear functions and skips a row
        only if no entry is valid: each covariance is computed from the rows in which both columns are valid
        (pairwise-complete observations, `help(daskspectral.moments.pairwise)`), and `transform` fits the functions
        to the valid entries by least squares.
    allow_missing : bool, default=False
        Whether missing chunks of a zarr array are read as fill values; otherwise they raise an OSError.
    storage_options : mapping, optional
        Options of fsspec for all URLs of the call, such as {"endpoint_url": ...} or {"anon": True}. They are never
        written to files, models or logs.

    Raises
    ------
    TypeError
        If `data` is a Rows, or `fields` is not a mapping.
    ValueError
        If an option is invalid, or if `fields` are combined with on_invalid="pairwise".

    See Also
    --------
    SpectralDecomposition : Estimator that accepts rows.
    daskspectral.model_selection : Searches over rows.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, 1, (2000, 3)) * [3, 50, 1]
    >>> rows = dsp.Rows(x, columns=[0, 1], standardize=True)
    >>> len(rows), rows[:100].shape
    (2000, (100, 3))
    >>> est = dsp.SpectralDecomposition(n_components=3, random_state=0).fit(rows)
    >>> est.transform(x).shape
    (2000, 3)
    """

    data: Any
    _: KW_ONLY
    columns: Sequence[int | str] | None = None
    standardize: bool = False
    sample_dims: str | Sequence[str] | None = None
    latitude: str | None = None
    anomaly: str | None = None
    detrend: int | None = None
    column_weights: Any = None
    delays: int = 1
    fields: Mapping[str, Any] | None = None
    on_invalid: str = "raise"
    allow_missing: bool = False
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.data, Rows):
            raise TypeError("data must not be Rows: change options with dataclasses.replace")
        columns: Any = self.columns
        if hasattr(columns, "tolist"):  # index or series of pandas, array
            object.__setattr__(self, "columns", columns.tolist())
        for name, allowed in {
            "standardize": (False, True),
            "allow_missing": (False, True),
            "on_invalid": ("raise", "skip", "pairwise"),
            "anomaly": (None, *GROUPS),
        }.items():
            check_option(name, getattr(self, name), allowed)
        if self.detrend is not None:
            check_integer("detrend", self.detrend, 1, MOST_DEGREE)
        check_integer("delays", self.delays, 1)
        check_type("fields", self.fields, (Mapping, type(None)), "a mapping of names to arrays")
        if self.fields and self.on_invalid == "pairwise":
            raise ValueError("on_invalid must not be 'pairwise' with fields=. Pass on_invalid='skip'")

    @classmethod
    def of(cls, data: Any) -> Rows:
        """Return data as Rows with default options, or the Rows themselves."""
        return data if isinstance(data, Rows) else Rows(data)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one array or data frame, length of a list; TypeError if rows have no numbers."""
        dim = self._dim
        found = _shape(self.data) if dim is None else (self.data.sizes[dim],)
        if not found:
            kind = type(self.data).__name__
            raise TypeError(
                f"scikit-learn requires rows of one array or frame, got {kind}: see help(daskspectral.model_selection)"
            )
        return found

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Rows:
        """Return some of the rows with their fields, as in searches of scikit-learn.

        Raises TypeError if rows cannot be indexed by number, and ValueError if fields have a different number of rows.
        """
        rows = rows[0] if isinstance(rows, tuple) else rows
        take = importlib.import_module("sklearn.utils")._safe_indexing
        rows = np.arange(len(self))[rows]
        if self.delays > 1 and np.any(np.diff(rows) != 1):
            raise ValueError(f"delays={self.delays} requires consecutive rows. Use the last rows for validation")
        for name, value in (self.fields or {}).items():
            if _shape(value)[:1] != (len(self),):
                raise ValueError(f"the field {name} must have {len(self)} rows, as X, got the shape {_shape(value)}")
        fields = None if self.fields is None else {name: take(value, rows) for name, value in self.fields.items()}
        dim = self._dim
        return replace(self, data=take(self.data, rows) if dim is None else self.data.isel({dim: rows}), fields=fields)

    @property
    def _dim(self) -> Any:
        """Dimension of the rows of labeled data, None for other data; TypeError if there are several."""
        if self.sample_dims is None or not isinstance(self.data, loaded("xarray.DataArray", "xarray.Dataset")):
            return None
        dims = [self.sample_dims] if isinstance(self.sample_dims, str) else list(self.sample_dims)
        if len(dims) > 1:
            raise TypeError(f"sample_dims must be one dimension for scikit-learn, got {dims}. Stack them")
        return dims[0]


@dataclass(frozen=True, eq=False)
class OpenedRows(Rows):
    """Rows of opened data without labels, with the `names` of their columns.

    The columns of each side are multiplied by its factors (d,), if there are any, and are to be multiplied by the
    roots of its weights (d,).
    """

    names: Callable[[], Sequence[str]] = tuple
    factors: Array | None = None
    right_factors: Array | None = None
    weights: Array | None = None
    right_weights: Array | None = None


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of rows that can be indexed by number, the length of a list, and () for others."""
    return tuple(getattr(value, "shape", (len(value),) if isinstance(value, list) else ()))
