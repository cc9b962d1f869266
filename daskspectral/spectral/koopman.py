"""Koopman: transfer operator of trajectories, with timescales at several lags, forecasts and metastable sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import BasisRecipe
from daskspectral.data.source import are_trajectories, check_widths, open_trajectories
from daskspectral.errors import ParameterError
from daskspectral.estimators.table import RunContext, open_table
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.intervals import jackknife_ends
from daskspectral.moments.lags import ChapmanKolmogorov, LagMatrices, Reduced, both_ends, is_lagged, stationary
from daskspectral.moments.patterns import patterns_of
from daskspectral.operators import Transfer
from daskspectral.operators.lags import lags_of
from daskspectral.passes.apply import Result
from daskspectral.passes.score import explained
from daskspectral.solvers import Solving
from daskspectral.spectral.passage import PARTS, Process, SpanInterval
from daskspectral.spectral.sets import MetastableSets
from daskspectral.spectral.summary import dynamic_facts
from daskspectral.validation import check_integer, check_type

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class _Forecasts:
    """Forecasts Re(mean + f map) as linear functions of the fitted functions f, of all rows and without each fold.

    `maps` are (1 + S, k, width) and `means` (1 + S, width), the jackknife variance has the `factor`, and `columns` are
    those of the fit, None for all.
    """

    maps: Any
    means: Any
    factor: float
    columns: tuple[int, ...] | None

    def __call__(self, part: int, values: Any) -> Array:
        """Return the forecasts (..., width), or ends of their intervals, from values (..., k)."""
        samples = np.stack([(mean + values @ one).real for one, mean in zip(self.maps, self.means, strict=True)])
        found = samples[0] if part == 0 else jackknife_ends(samples, self.factor)[..., part - 1]
        if self.columns is not None:
            found[..., np.setdiff1d(np.arange(found.shape[-1]), self.columns)] = np.nan
        return np.asarray(found)


def _stacked(parts: Sequence[Any]) -> Any:
    """Return a value and its ends along a last dimension, `part` in labeled data."""
    if hasattr(parts[0], "dims"):
        import xarray as xr

        found = xr.concat(parts, xr.Variable("part", PARTS))
        return found.transpose(..., "part")
    return np.stack(parts, axis=-1)


class _NoOperatorError(ParameterError, AttributeError):
    """Invalid parameter without an operator; an AttributeError, so that `hasattr` is False."""


class Koopman(Process):
    """Koopman operator of trajectories: slow processes and their timescales.

    The operator is (K g)(x_t) = E[g(x_{t + lag}) | x_t]. One pass over the pairs of rows sums E[f(x_t) g(x_{t + lag})]
    and the Gram matrices of p functions. Reversible processes have real eigenvalues; others have singular values, with
    left functions of the start and right functions of the end of the pairs (VAMP), or complex eigenvalues (EDMD). The
    constant has the value 1. `fit` accepts one trajectory, or a list of several.

    Parameters
    ----------
    lag : int, str, numpy.timedelta64, datetime.timedelta, or a tuple of these, default=1
        Number of rows, or time, from a state to its future. Of several lags, multiples of the first, the first is
        solved and the others are for timescales and tests (`operators.Transfer`).
    reversible : bool, default=False
        Whether the equilibrium process is invariant under time reversal.
    method : {"singular", "eigen"}, optional
        Eigenproblem of a process that is not reversible: singular values (the default), or complex eigenvalues by
        descending modulus.
    center : bool, default=False
        Subtract the means of the functions, and so remove the constant.
    n_components : int, default=16
        Number of functions, including the constant.
    basis, right_basis, solver, folds, dtype, device, random_state : optional
        As in `SpectralDecomposition`; folds are contiguous blocks by default, and sums are float64 for any dtype.

    Attributes
    ----------
    singular_values_, singular_value_errors_ : ndarray of shape (k,) and (k, 2)
        Values and the ends of their 95 % intervals; `eigenvalues_` and `eigenvalue_errors_` for eigenvalues.
        `SpectralDecomposition` describes the other attributes.
    lags_ : ndarray of int of shape (L,)
        Measured lags, in rows.
    timescales_, timescale_errors_ : ndarray of shape (L, k') and (L, k', 2)
        Implied timescales of each process at each lag, in rows, and the ends of their 95 % intervals.
    dynamic_residuals_ : ndarray of shape (k, 2)
        Ends of 95 % intervals of the residual norm |K f - l f|. Values of reversible processes are not reliable if
        the lower end exceeds the gap to the nearest value.

    See Also
    --------
    SpectralDecomposition : Spectral decomposition of any operator.
    daskspectral.operators.Transfer : The operator.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(20_000)
    >>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 30)
    >>> model = dsp.Koopman(lag=(1, 5), reversible=True, n_components=3, basis=basis, random_state=0).fit(x)
    >>> model.lags_, model.timescales_.shape
    (array([1, 2, 5]), (3, 2))
    """

    def __init__(
        self,
        lag: Any = 1,
        *,
        reversible: bool = False,
        method: str | None = None,
        center: bool = False,
        n_components: int = 16,
        basis: BasisRecipe | str | None = None,
        right_basis: BasisRecipe | str | None = None,
        solver: Solving | None = None,
        folds: Any = 10,
        dtype: str = "float64",
        device: str = "cpu",
        random_state: Any = None,
    ):
        self.lag = lag
        self.reversible = reversible
        self.method = method
        self.center = center
        self.n_components = n_components
        self.basis = basis
        self.right_basis = right_basis
        self.solver = solver
        self.folds = folds
        self.dtype = dtype
        self.device = device
        self.random_state = random_state

    @property
    def operator(self) -> Transfer:  # type: ignore[override]
        try:
            return self._operator()
        except ParameterError as error:
            raise _NoOperatorError(*error.args) from None

    def _operator(self) -> Transfer:
        if self.reversible and self.method is not None:
            raise ParameterError("method", "None if reversible=True", self.method)
        if self.reversible and self.center:
            raise ParameterError("center", "False if reversible=True", self.center)
        if self.method not in (None, "singular", "eigen"):
            raise ParameterError("method", "'singular' or 'eigen'", self.method)
        return Transfer(self.lag, self.method, self.center, self.reversible)

    def _plain_params(self) -> dict[str, Any]:
        return {**super()._plain_params(), "lag": lags_of(self.lag)}

    @property
    def _summary_attributes(self) -> tuple[str, ...]:
        return (*super()._summary_attributes, "dynamic_residuals_", "lags_", "timescales_", "timescale_errors_")

    def _summary_parts(self) -> dict[str, Any]:
        found = super()._summary_parts()
        return {**found, "facts": {**found["facts"], **dynamic_facts(self)}}

    @property
    def dynamic_residuals_(self) -> Array:
        """95 % intervals (k, 2) of the residual norms |K f - l f| of eigenfunctions f with values l.

        Exact for reversible processes, up to the noise of the sums; otherwise an upper bound that includes the noise of
        the process. Raises AttributeError for singular functions.
        """
        if not is_lagged(self._fitted().moments_):
            raise AttributeError("dynamic_residuals_ require eigenvalues, and two lags if reversible")
        return self._matrices().residuals(self._values)

    @property
    def lags_(self) -> NDArray[np.int64]:
        """Measured lags (L,), in rows."""
        operator: Any = self._fitted().moments_.operator
        return np.array(operator.lags)

    @property
    def timescales_(self) -> Array:
        """Implied timescales (L, k'), in rows, of the k' nonconstant functions at each of `lags_`.

        -lag / ln |value| of the values at that lag in the span of the fitted functions. Each column is one process,
        matched between lags by overlap.
        """
        return self._timescales()[0]

    @property
    def timescale_errors_(self) -> Array:
        """Ends (L, k', 2) of the 95 % intervals of `timescales_`."""
        return self._timescales()[1]

    def chapman_kolmogorov(self, sets: MetastableSets | None = None) -> ChapmanKolmogorov:
        """Return the Chapman-Kolmogorov test: powers of the operator against the longer lags of the fit.

        Parameters
        ----------
        sets : MetastableSets, optional
            Test probabilities between these sets; by default the nonconstant functions.

        Returns
        -------
        ChapmanKolmogorov
            Predicted and measured values with errors, by lag.

        Raises
        ------
        ValueError
            If there is a single lag, right functions have another basis, or `sets` are those of another fit.
        """
        if sets is not None:
            check_type("sets", sets, MetastableSets, "the result of metastable_sets")
        matrices = self._square_matrices()
        if len(matrices.lags) < 2:
            raise ValueError("the Chapman-Kolmogorov test requires several lags, got one. Fit lag=(1, 2, 5)")
        if sets is None:
            return matrices.chapman_kolmogorov()
        if not sets.is_of(self._span(sets.functions, sets.weights)):
            raise ValueError("sets must be those of this fit. Call metastable_sets of this model")
        return matrices.chapman_kolmogorov(sets.weights, sets.functions)

    def forecast(self, X: Any, steps: int = 1, *, interval: bool = False) -> Any:
        """Return the conditional mean of the columns of X after `steps` lags, for each row.

        The operator propagates the functions in their span, and `inverse_transform` maps them to columns.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Initial rows.
        steps : int, default=1
            Number of lags.
        interval : bool, default=False
            Also return 95 % intervals of the mean, by a jackknife over folds. They contain the sampling error of the
            propagation, not the part of the mean outside the span of the functions: for four wells and six functions
            they cover the mean with .17 after one lag, .83 after 5 and .96 after 20. Single rows vary more.

        Returns
        -------
        array of shape (n, d) or (n, d, 3), DataArray, Dataset or list
            Forecasts, with the ends of their intervals if `interval` (along `part`), in the dimensions of labeled data;
            a list for a list of trajectories.

        Raises
        ------
        ValueError
            If columns have no regression (`patterns_`) or are periodic, or right functions have another basis.
        """
        self._check_linear()
        if not interval:
            return self.inverse_transform(self._functions(self.coefficients_ @ self._moved(steps), X))
        values, samples = self._functions(self.coefficients_, X), self._forecasts(check_integer("steps", steps, 1))
        parts = [
            self._in_columns(values, partial(samples, part), len(self.coefficients_.T)) for part in range(len(PARTS))
        ]
        return [_stacked(each) for each in zip(*parts, strict=True)] if are_trajectories(values) else _stacked(parts)

    def _forecasts(self, steps: int) -> _Forecasts:
        """Return forecasts as linear functions of the fitted functions, of all rows and without each fold."""
        matrices, patterns = self._square_matrices(), self.patterns_.of_columns(self.n_features_in_)
        moved = np.linalg.matrix_power(np.linalg.solve(matrices.grams, matrices.forms[:, 0]), steps)
        means = np.broadcast_to(patterns.mean - patterns.offset @ patterns.maps, (len(moved), patterns.mean.size))
        if self.moments_.operator.center:  # about the means without each fold
            first = Reduced(self.moments_)("first", self.coefficients_)
            shift = first - first[0]
            means = means + (shift - np.einsum("sk,skl->sl", shift, moved)) @ patterns.maps
        return _Forecasts(moved @ patterns.maps, means, matrices.factor, self.preparation_.row_columns)

    def forecast_score(self, X: Any, steps: int = 1, *, progress: bool | None = None) -> float:
        """Return the R² of `forecast`, averaged over the columns, in one pass.

        0 is the score of the mean of X as a forecast.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL or list
            Trajectory, or a list of several, preferably held-out: a later part of the series.
        steps : int, default=1
            Number of lags.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        float
            The score.

        Raises
        ------
        ValueError
            As `forecast`, and if there are too few rows.
        """
        self._check_linear()
        patterns, moved = patterns_of(self.moments_, self.coefficients_), self._moved(steps)
        patterns = patterns.of_columns(patterns.mean.size // self.preparation_.delays)
        functions, means = self.coefficients_ @ moved, 0.0
        if self.moments_.operator.center:
            means = self.moments_.mean("first") @ functions
        known = (functions @ patterns.maps).real, ((means + patterns.offset) @ patterns.maps - patterns.mean).real
        with open_table(self, X, RunContext(progress)) as table:
            source = open_trajectories(table.rows, int(self.lags_[0]) * steps, progress=progress)
            check_widths(self.moments_, source)
            return explained(self._combined(*known), source, "future")

    def equilibrium_weights(self, X: Any, *, interval: bool = False, **options: Any) -> Any:
        """Return weights that reweight the rows of X to equilibrium, of mean 1 in the fit.

        They are the ratio of the stationary density to the density of the rows, in the span of the fitted functions:
        the left function of the value 1 (Wu, Nüske, Paul, Klus, Koltai and Noé 2017). Use them for trajectories that do
        not start in equilibrium: `fit(X, sample_weight=est.equilibrium_weights(X))`. Negative values are clipped to 0.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL or list
            Trajectory, or a list of several.
        interval : bool, default=False
            Return the ends of 95 % intervals, by a jackknife over folds, too.
        **options : dict
            Options of `transform`.

        Returns
        -------
        array of shape (n,) or (n, 3), or a list
            Weights, with the ends of their intervals if `interval`; a list for a list of trajectories.

        Raises
        ------
        ValueError
            If the functions do not include a constant.
        """
        matrices, moments = self._square_matrices(), self.moments_
        if matrices.constant is None:
            raise ValueError("equilibrium weights require a constant function. Fit with center=False")
        starts, pairs = matrices.grams, matrices.forms[:, 0]
        if "followed" in moments.arrays:  # of rows in their order, not assumed reversible
            starts, pairs, *_ = both_ends(moments, self.coefficients_)
        count = len(starts) if interval else 1
        found = np.stack([self.coefficients_ @ stationary(pairs[s], starts[s]) for s in range(count)], axis=1)
        found = (found / (moments.mean("first") @ found)).real
        if interval:
            basis, found = self.basis_.condensed(found)
            return SpanInterval(basis, found, matrices.factor, np.inf).at(self, X, "weight", options)
        output = Result("weight", (), (), finish=partial(np.maximum, 0))
        return self._rows(self._combined(found), X, output=output, **options)

    def _check_linear(self) -> None:
        basis = self._fitted().basis_
        if basis.periodic:
            raise ValueError(
                "the mean of periodic columns is not defined. Fit cosines and sines of angles, without periods"
            )

    def _moved(self, steps: int) -> Any:
        """Return the power (k, k) of the operator: f_j is f @ column j after `steps` lags."""
        operator = self._square_matrices().operator
        return np.linalg.matrix_power(operator, check_integer("steps", steps, 1))

    def _matrices(self) -> LagMatrices:
        right = getattr(self, "right_coefficients_", self.coefficients_)
        return LagMatrices.of(self.moments_, self.coefficients_, right)

    def _square_matrices(self) -> LagMatrices:
        """Return the operator between the left functions; raise ValueError if the right basis differs."""
        moments = self._fitted().moments_
        if moments.right_basis is not None:
            raise ValueError("expected one basis for both sides, got another right_basis. Omit right_basis")
        return LagMatrices.of(moments, self.coefficients_)

    _propagation = _square_matrices

    def _timescales(self) -> tuple[Array, Array]:
        known = None if np.iscomplexobj(self._values) else getattr(self, Attributes(self.solver_).errors)
        return self._matrices().timescales(known)

    def _coordinates(self) -> dict[str, Any]:
        return {"lag": self.lags_, "process": self._matrices().processes}

    def _variables(self) -> dict[str, Any]:
        """Return residuals, timescales by lag and process, and the Chapman-Kolmogorov test, if available."""
        found: dict[str, Any] = {}
        if hasattr(self, "dynamic_residuals_"):
            operator: Any = self.moments_.operator
            noise = "" if operator.reversible else ", an upper bound that includes the noise"
            for name, ends in zip(("lower", "upper"), self.dynamic_residuals_.T, strict=True):
                about = {"long_name": f"{name} end of |K f - l f|{noise}"}
                found[f"dynamic_residual_{name}"] = "component", ends, about
        times, ends = self._timescales()
        found |= {"timescale": (("lag", "process"), times, {"units": "rows"})}
        found |= {f"timescale_{name}": (("lag", "process"), ends[..., i]) for i, name in enumerate(("lower", "upper"))}
        if len(self.lags_) > 1 and self.moments_.right_basis is None:
            test, dims = self.chapman_kolmogorov(), ("lag", "process", "to_process")
            for name in ("predicted", "measured"):
                values, around = getattr(test, name), getattr(test, f"{name}_errors")
                parts = {"": values, "_lower": around[..., 0], "_upper": around[..., 1]}
                first = np.full_like(around[:1, ..., 0], np.nan)  # the first lag has no test
                found |= {f"{name}{end}": (dims, np.concatenate([first, part])) for end, part in parts.items()}
        return found
