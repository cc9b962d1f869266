"""CCA and MCA: canonical correlations, and maximum covariance analysis, of two fields of the same rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Landmarks
from daskspectral.kernels import Linear
from daskspectral.moments.autocovariance import directions_of
from daskspectral.operators import Cross, CrossCovariance
from daskspectral.solvers import Solving
from daskspectral.spectral.fields import FieldEstimator, with_ends


class FieldPairs(FieldEstimator):
    """An estimator of pairs of linear functions of two fields, with the parameters of `CCA` and `MCA`."""

    basis = Landmarks(Linear())

    def __init__(
        self,
        n_components: int = 2,
        *,
        solver: Solving | None = None,
        folds: Any = 10,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.folds = folds
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    def _of_values(self) -> dict[str, Any]:
        name = self.value_name
        found = with_ends(name, self.singular_values_, self.singular_value_errors_, f"{name} of the scores", {})
        about = {"long_name": f"{name} of the scores on rows that were not fitted to"}
        return {**found, f"{name}_held_out": (self.held_out_, about)}


class CCA(FieldPairs):
    """Canonical correlations of two fields: pairs of linear functions, one of each, that correlate most.

    `fit(x, y)` pairs the rows of both; a vector y is one column. `transform(x)` and `transform(y, side="right")` return
    the scores, of variance 1. Functions of kernels are those of
    `SpectralDecomposition(operators.Cross(center=True), basis)`.

    Parameters
    ----------
    n_components : int
        Number of pairs.
    solver, folds, dtype, device, random_state
        As in `SpectralDecomposition`; `solvers.Cut()` for no penalty. Sums are float64 for any dtype.

    Attributes
    ----------
    singular_values_, singular_value_errors_ : ndarray of shape (k,) and (k, 2)
        Correlations, descending, and the ends of their 95 % intervals.
    held_out_ : ndarray of shape (k,)
        Correlations on rows that were not fitted to.
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Functions of x and of y in the bases. `SpectralDecomposition` describes the other attributes.

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
    value_name: ClassVar[str] = "correlation"

    def mode_label(self, i: int) -> str:
        return f"r = {self.singular_values_[i]:.2f}, held out {self.held_out_[i]:.2f}"


class MCA(FieldPairs):
    """Maximum covariance analysis of two fields: pairs of patterns, one of each, whose scores covary most.

    It is the singular value decomposition of their cross-covariance matrix, and columns count with their units;
    `daskspectral.Rows(x, standardize=True)` makes them comparable. `fit(x, y)` pairs the rows of both. `transform(x)`
    and `transform(y, side="right")` return the scores, projections on patterns of length 1.

    Parameters
    ----------
    n_components : int
        Number of pairs.
    solver, folds, dtype, device, random_state
        As in `CCA`.

    Attributes
    ----------
    singular_values_, singular_value_errors_ : ndarray of shape (k,) and (k, 2)
        Covariances of the scores, descending, and the ends of their 95 % intervals.
    held_out_ : ndarray of shape (k,)
        Covariances on rows that were not fitted to.
    coefficients_, right_coefficients_ : ndarray of shape (p, k) and (q, k)
        Functions of x and of y in the bases. `SpectralDecomposition` describes the other attributes.

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
    value_name: ClassVar[str] = "covariance"

    def mode_label(self, i: int) -> str:
        return f"{100 * self.squared_covariance_fraction_[i]:.1f} % of the squared covariance"

    @property
    def squared_covariance_fraction_(self) -> NDArray[np.floating[Any]]:
        """The shares (k,) of the sum of squared covariances of all columns of x with all columns of y."""
        moments = self.fitted().moments_
        form = moments.mean("form") - np.outer(moments.mean("first"), moments.mean("right_first"))
        sides = [directions_of(basis) for basis in (moments.basis, moments.right_basis)]
        lengths = [np.sqrt(np.einsum("rd,rd->r", side, side)) for side in sides if side is not None]
        total = float(np.sum((form / np.outer(*lengths)) ** 2))
        return np.asarray(self.singular_values_**2 / total if total > 0 else 0 * self.singular_values_)

    def _of_values(self) -> dict[str, Any]:
        about = {"long_name": "share of the squared covariance", "units": "1"}
        return {**super()._of_values(), "squared_covariance_fraction": (self.squared_covariance_fraction_, about)}
