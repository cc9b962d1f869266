"""Rows: what is read, and how, as one value that every method of an estimator takes."""

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
    """Rows of data with how they are read; data alone are read by the defaults.

    `fit`, `update`, `transform`, `predict`, `score` and `plan` of every estimator take it in place of an array. What a
    fit learns of it, the columns, their scaling and the layout of labels, is kept with the model, and applied to the
    rows that come later. `DiffusionMap`, `KernelEmbedding` and the invariant estimators take all columns as they are.

    Columns with names (of frames, Parquet and CSV files, xarray objects, zarr arrays with an attribute "columns") are
    matched by name between any two of these, in any order: further columns are ignored, and missing ones are a
    ValueError that names them. Columns without names are matched by position.

    Parameters
    ----------
    data
        A numpy (also memory-mapped), dask, zarr or xarray array (n, d), a sparse matrix of scipy, a data frame of
        numbers (pandas, polars, Arrow), the path or URL of a zarr array, or the path of a .npy file; a tuple of them,
        row by row, for an operator between views; for Transfer one trajectory, or a list of several. It may have
        labels: an xarray DataArray of any dimensions or Dataset, a zarr group, NetCDF files (a path, or a pattern with
        * or a list, which their coordinates put in order), Parquet or CSV files, which are read lazily.
    columns : sequence of int or str, optional
        Columns to use, of X and of views in its space; all by default. Names select columns of any data
        that have some, as X[["a", "b"]] does of a frame: the model knows only these. Numbers keep the others, which may
        then hold text in a table; of a field with on_invalid="skip" they count the columns without empty ones (land).
    standardize : bool
        Bring each column to mean 0 and standard deviation 1, in one more pass of the fit. Derivatives, and so the
        Laplacian, are then in standardized units; operators tied to the units of X, for instance by a potential, are
        refused. Anomalies are taken before.
    sample_dims : str or sequence of str, optional
        Dimensions of labeled data whose entries are rows; the first one by default. All others are stacked to columns,
        variable by variable. Examples are ("time",) and ("time", "lat", "lon").
    latitude : str, optional
        Coordinate in degrees of the columns or rows of labeled data, by whose cosine they are weighted. Columns are
        multiplied by the square root of the cosine, after `standardize`, and functions with periods or units of X are
        refused; of rows, the cosine is a sample weight.
    anomaly : {"month", "season", "dayofyear", "hour"}, optional
        Subtract the means of columns over all rows of the same month, season, day of the year or hour. Rows of labeled
        data need times for it, numpy's or those of any calendar (cftime). The means are weighted, and computed in one
        more pass of the fit; members of an ensemble, sample_dims=("member", "time"), share them. The means are kept
        with the model, and subtracted from rows at any times, for a day 366 that the fit had not those of day 365;
        patterns and `inverse_transform` are of anomalies. All rows tell of them, those that are held out too.
    detrend : int, optional
        Subtract a polynomial in time of this degree too. It is fitted together with the means, so that neither takes
        what belongs to the other; without `anomaly` it is that of least squares alone.
    fields : mapping of str to arrays, optional
        The further arrays that an operator reads, by name, with a row for each row of the data: {"potential": v};
        labelled ones are brought to its rows.
    on_invalid : {"raise", "skip", "pairwise"}
        Rows with NaN or infinity raise an error, are left out (NaN in results), or are used in part. The error is
        InvalidRowError for the lowest one; rows that are left out of a fit are counted. Of data with labels, columns
        that are NaN in all rows (land) are then left out first, and NaN in what has the layout of the data; where the
        first rows have such columns, the data are read once more to find them. With "pairwise", for `Covariance` and
        `Cross` with linear functions, a row is left out only where nothing of it is present: each covariance is that of
        the rows in which both columns are (pairwise-complete observations, `help(daskspectral.moments.pairwise)`), and
        `transform` fits the functions to the entries that are present by least squares.
    allow_missing : bool
        Read missing chunks of a zarr array as fill values, not as an OSError.
    storage_options : mapping, optional
        fsspec's options for all URLs of the call, such as {"endpoint_url": ...} or {"anon": True}. They are written to
        no file, model or log.

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
    fields: Mapping[str, Any] | None = None
    on_invalid: str = "raise"
    allow_missing: bool = False
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.data, Rows):
            raise TypeError("Rows(...) takes data, and was given Rows: set what is to differ with dataclasses.replace")
        columns: Any = self.columns
        if hasattr(columns, "tolist"):  # an index or a series of pandas, an array
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
        check_type("fields", self.fields, (Mapping, type(None)), "a mapping of names to arrays")
        if self.fields and self.on_invalid == "pairwise":
            raise ValueError("on_invalid must not be 'pairwise' with fields=. Pass on_invalid='skip'")

    @classmethod
    def of(cls, data: Any) -> Rows:
        """Rows as they are, and other data with the defaults."""
        return data if isinstance(data, Rows) else Rows(data)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of one array or data frame, of a list its length. Raises TypeError for data without rows by number."""
        dim = self._dim
        found = _shape(self.data) if dim is None else (self.data.sizes[dim],)
        if not found:
            kind = type(self.data).__name__
            raise TypeError(
                f"scikit-learn takes rows of one array or frame, got {kind}: help(daskspectral.model_selection)"
            )
        return found

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Rows:
        """Some of the rows, with their fields, as scikit-learn's searches take them.

        Raises TypeError where rows cannot be taken by number, ValueError where fields have another number of them.
        """
        rows = rows[0] if isinstance(rows, tuple) else rows
        take = importlib.import_module("sklearn.utils")._safe_indexing
        rows = np.arange(len(self))[rows]
        for name, value in (self.fields or {}).items():
            if _shape(value)[:1] != (len(self),):
                raise ValueError(f"the field {name} has the shape {_shape(value)}, and X has {len(self)} rows")
        fields = None if self.fields is None else {name: take(value, rows) for name, value in self.fields.items()}
        dim = self._dim
        return replace(self, data=take(self.data, rows) if dim is None else self.data.isel({dim: rows}), fields=fields)

    @property
    def _dim(self) -> Any:
        """The dimension of the rows of labelled data; None for other data. Raises TypeError for several."""
        if self.sample_dims is None or not isinstance(self.data, loaded("xarray.DataArray", "xarray.Dataset")):
            return None
        dims = [self.sample_dims] if isinstance(self.sample_dims, str) else list(self.sample_dims)
        if len(dims) > 1:
            raise TypeError(f"sample_dims must be one dimension for scikit-learn, got {dims}. Stack them")
        return dims[0]


@dataclass(frozen=True, eq=False)
class OpenedRows(Rows):
    """Rows of opened data without labels, with the `names` of their columns.

    The columns of each side were multiplied by factors (d,), if the side has some.
    """

    names: Callable[[], Sequence[str]] = tuple
    factors: Array | None = None
    right_factors: Array | None = None


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of rows that can be taken by number, of a list its length, () of others."""
    return tuple(getattr(value, "shape", (len(value),) if isinstance(value, list) else ()))
