"""CCA and MCA: canonical correlation analysis and maximum covariance analysis of two fields."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import BasisRecipe, Landmarks
from daskspectral.basis.role import Role
from daskspectral.data.labeled import stack_rows
from daskspectral.data.rows import Rows
from daskspectral.errors import RankWarning, ReliabilityWarning
from daskspectral.kernels import Linear
from daskspectral.moments import Moments
from daskspectral.moments.autocovariance import directions_of
from daskspectral.operators import Cross, CrossCovariance
from daskspectral.solvers import Solving
from daskspectral.spectral.eof import EOF
from daskspectral.spectral.fields import FieldEstimator, with_ends
from daskspectral.spectral.shifts import LEAST_ROWS, MOST_COMPONENTS, beyond_chance
from daskspectral.validation import is_number


class FieldPairs(FieldEstimator):
    """Base class of estimators of pairs of linear functions of two fields."""

    basis: BasisRecipe | str | None = Landmarks(Linear())
    beyond_chance_: NDArray[np.bool_]
    reduces_wide_fields: ClassVar[bool]
    """Whether n_pca="auto" reduces fields with more columns than rows."""

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_pca: float | str | None = "auto",
        solver: Solving | None = None,
        folds: Any = 10,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.n_pca = n_pca
        self.solver = solver
        self.folds = folds
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    @property
    def _fitted_attributes(self) -> tuple[str, ...]:
        return (*super()._fitted_attributes, "beyond_chance_")

    def fit(self, X: Any, y: Any = None, **options: Any) -> Self:
        """Fit pairs of functions of two fields, and compare them with pairs of shifted rows.

        Each field is first reduced to its leading principal components, as `n_pca` requires.

        Parameters
        ----------
        X, y : Rows or data
            Both fields, row by row; or X a tuple of both. Options for reading X apply to both, except `latitude`.
        **options : dict
            `sample_weight`, `checkpoint`, `checkpoint_every` and `progress`, as in `SpectralDecomposition.fit`.

        Returns
        -------
        FieldPairs
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError, MemoryError
            If the input is invalid or too large, before any task of the pass is submitted.
        InvalidRowError
            If a row contains NaN or infinity, unless such rows are skipped; reports the first one.
        """
        self._check_reduction()
        self.__dict__.pop("basis", None)
        self.__dict__.pop("right_basis", None)
        views = _views(X, y)
        if views is not None:
            shared = {name: options[name] for name in ("sample_weight", "progress") if name in options}
            self._reduce(views, **shared)
        super().fit(X, y, **options)
        if views is not None:
            self._compare(views)
        return self

    def _check_reduction(self) -> None:
        given = self.n_pca
        if given is None or given == "auto":
            return
        if not is_number(given) or not (0 < float(given) < 1 or (float(given) >= 1 and float(given) == int(given))):
            raise ValueError(
                f"n_pca must be 'auto', None, a positive integer or a share between 0 and 1, got {given!r}"
            )

    def _reduce(self, views: tuple[Rows, Rows], **options: Any) -> None:
        """Set the basis of each side to its leading principal components."""
        if self.n_pca is None or (self.n_pca == "auto" and not self.reduces_wide_fields):
            return
        for name, rows in zip(("basis", "right_basis"), views, strict=True):
            if self.n_pca == "auto" and not _is_wide(rows):
                continue
            given = MOST_COMPONENTS if self.n_pca == "auto" else float(self.n_pca)
            count = given if given < 1 else int(given)
            with warnings.catch_warnings():
                for category in (ReliabilityWarning, RankWarning):  # modes are only a basis here
                    warnings.simplefilter("ignore", category)
                model = EOF(count, folds=None, dtype=self.dtype, device=self.device).fit(rows, **options)
            directions: Any = directions_of(model.moments_.basis)
            r = len(directions)
            explained = np.cumsum(model.explained_variance_ratio_)
            kept = int(np.searchsorted(explained, SHARE)) + 1 if self.n_pca == "auto" else len(explained)
            points = model.coefficients_[-r:, :kept].T @ directions
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            preparation = model.preparation_
            raw = preparation.of_directions.inverse(points, model.n_features_in_)
            self.__dict__[name] = Landmarks(Linear(), points=raw)  # for this fit only

    def _compare(self, views: tuple[Rows, Rows]) -> None:
        """Compare the pairs with those of shifted rows, if there are enough rows and memory."""
        moments, count = self.moments_, len(self.singular_values_)
        right = moments.right_basis
        if (
            right is None
            or not count
            or not LEAST_ROWS <= moments.rows <= MOST_NUMBERS // (moments.basis.size + right.size)
        ):
            return
        sides = zip((Role.TRIAL, Role.TEST), views, strict=True)
        x, y = (
            np.asarray(self._functions(_leading(moments, role), rows, role, progress=False)) for role, rows in sides
        )
        x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        whole = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
        if np.count_nonzero(whole) >= LEAST_ROWS:
            self.beyond_chance_ = beyond_chance(x[whole], y[whole], count, covariances=self.solver_.by_norm)

    def _of_values(self) -> dict[str, Any]:
        name = self._value_name
        found = with_ends(name, self.singular_values_, self.singular_value_errors_, f"{name} of the scores", {})
        about = {"long_name": f"{name} of the scores on held-out rows"}
        return {**found, f"{name}_held_out": (self.validation_values_, about)}


SHARE = 0.8  # of the variance in the principal components; 0.9 produces spurious pairs
MOST_NUMBERS = 10**7  # maximum that is compared in memory


def _leading(moments: Moments, role: Role) -> NDArray[np.floating[Any]]:
    """Return the functions (p, m) of the leading principal components that are compared."""
    covariance, mean = moments.mean(role.named("gram")), moments.mean(role.named("first"))
    p = len(mean)
    if p <= MOST_COMPONENTS:
        return np.eye(p)
    covariance = covariance - np.outer(mean, mean)
    return np.asarray(scipy.linalg.eigh(covariance, subset_by_index=(p - MOST_COMPONENTS, p - 1))[1])


def _views(X: Any, y: Any) -> tuple[Rows, Rows] | None:
    """Return the rows of both fields with their options; None if there are not two fields."""
    first = Rows.of(X)
    if y is None:
        if not isinstance(first.data, tuple) or len(first.data) != 2:
            return None
        one, two = first.data
        return replace(first, data=one), replace(first, data=two, columns=None)
    second = Rows.of(y)
    data = second.data[:, None] if isinstance(second.data, np.ndarray) and second.data.ndim == 1 else second.data
    latitude = second.latitude if isinstance(y, Rows) else first.latitude
    return first, replace(first, data=data, columns=second.columns, latitude=latitude)


def _is_wide(rows: Rows) -> bool:
    stacked = stack_rows(rows.data, sample_dims=rows.sample_dims)
    shape = np.shape(rows.data) if stacked is None else stacked.reader.shape
    return len(shape) > 1 and shape[1] > shape[0]


class CCA(FieldPairs):
    """Canonical correlation analysis: linear functions of two fields of maximal correlation.

    `fit(x, y)` pairs the rows of both fields; a vector y is one column. `transform(x)` and `transform(y, side="right")`
    return the scores, of variance 1. For functions of kernels use `SpectralDecomposition(operators.Cross(center=True),
    basis)`.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    n_pca : int, float, "auto" or None, default="auto"
        Number of principal components to which each field is reduced first, or the share of the variance that they
        retain. "auto" means 0.8, at most 40 components, for fields with more columns than rows, and None otherwise.
    solver, folds, dtype, device, random_state : optional
        As in `SpectralDecomposition`; `solvers.Truncated()` for no penalty. Sums are float64 for any dtype.

    Attributes
    ----------
    singular_values_, singular_value_errors_ : ndarray of shape (k,) and (k, 2)
        Correlations, descending, and the ends of their 95 % intervals.
    validation_values_ : ndarray of shape (k,)
        Correlations on held-out rows.
    beyond_chance_ : ndarray of bool of shape (k,)
        True if a pair exceeds those of circularly shifted rows (`help(daskspectral.spectral.shifts)`).
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Functions of x and of y in their bases. `SpectralDecomposition` describes the other attributes.

    See Also
    --------
    MCA : Pairs of maximal covariance.
    EOF : Principal components of one field.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).standard_normal((20_000, 2))
    >>> y = x[:, :1] + np.random.default_rng(1).standard_normal((20_000, 1))
    >>> dsp.CCA(1).fit(x, y).singular_values_.round(2)  # the correlation of x_1 and y, 1 / sqrt(2)
    array([0.71])
    """

    operator = Cross(center=True)
    _value_name: ClassVar[str] = "correlation"
    reduces_wide_fields: ClassVar[bool] = True

    def _mode_label(self, i: int) -> str:
        return f"r = {self.singular_values_[i]:.2f}, held out {self.validation_values_[i]:.2f}"


class MCA(FieldPairs):
    """Maximum covariance analysis: patterns of two fields whose scores have maximal covariance.

    It is the singular value decomposition of the cross-covariance matrix. Results depend on the units of the columns;
    `daskspectral.Rows(x, standardize=True)` makes them comparable. `fit(x, y)` pairs the rows of both fields.
    `transform(x)` and `transform(y, side="right")` return the scores, projections on patterns of length 1.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs.
    n_pca : int, float, "auto" or None, default="auto"
        As in `CCA`, except that "auto" means None.
    solver, folds, dtype, device, random_state : optional
        As in `SpectralDecomposition`; `solvers.Truncated()` for no penalty. Sums are float64 for any dtype.

    Attributes
    ----------
    singular_values_, singular_value_errors_ : ndarray of shape (k,) and (k, 2)
        Covariances of the scores, descending, and the ends of their 95 % intervals.
    validation_values_ : ndarray of shape (k,)
        Covariances on held-out rows.
    squared_covariance_fraction_ : ndarray of shape (k,)
        Shares of the squared covariance of all columns.
    beyond_chance_ : ndarray of bool of shape (k,)
        True if a pair exceeds those of circularly shifted rows (`help(daskspectral.spectral.shifts)`).
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Functions of x and of y in their bases. `SpectralDecomposition` describes the other attributes.

    See Also
    --------
    CCA : Pairs of maximal correlation.
    EOF : Principal components of one field.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).standard_normal((20_000, 2))
    >>> y = 3 * x[:, :1] + np.random.default_rng(1).standard_normal((20_000, 1))
    >>> dsp.MCA(1).fit(x, y).singular_values_.round(1)  # the covariance of x_1 and y
    array([3.])
    """

    operator = CrossCovariance()
    _value_name: ClassVar[str] = "covariance"
    reduces_wide_fields: ClassVar[bool] = False

    def _mode_label(self, i: int) -> str:
        return f"{100 * self.squared_covariance_fraction_[i]:.1f} % of the squared covariance"

    @property
    def squared_covariance_fraction_(self) -> NDArray[np.floating[Any]]:
        """Shares (k,) of the sum of squared covariances of all columns of x with those of y."""
        moments = self._fitted().moments_
        form = moments.mean("form") - np.outer(moments.mean("first"), moments.mean("right_first"))
        sides = [directions_of(basis) for basis in (moments.basis, moments.right_basis)]
        lengths = [np.sqrt(np.einsum("rd,rd->r", side, side)) for side in sides if side is not None]
        total = float(np.sum((form / np.outer(*lengths)) ** 2))
        return np.asarray(self.singular_values_**2 / total if total > 0 else 0 * self.singular_values_)

    def _of_values(self) -> dict[str, Any]:
        about = {"long_name": "share of the squared covariance", "units": "1"}
        return {**super()._of_values(), "squared_covariance_fraction": (self.squared_covariance_fraction_, about)}
