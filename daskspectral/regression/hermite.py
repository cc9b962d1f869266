"""Kernel regression on values and gradients in one pass."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import BasisRecipe, FourierBasis, Landmarks
from daskspectral.basis.names import basis_by_name
from daskspectral.basis.role import Role
from daskspectral.choosing.lattice import regression_lattice
from daskspectral.choosing.search import pilot_bytes
from daskspectral.choosing.spaces import FunctionSpace
from daskspectral.choosing.spectral_density import regress
from daskspectral.data.source import Source, open_regression
from daskspectral.engine.memory import chosen_device
from daskspectral.errors import ParameterError
from daskspectral.estimators.regressor import Regressor
from daskspectral.estimators.summary import chosen_facts, explained, measured_facts
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.moments import Moments
from daskspectral.operators.regression import Regression
from daskspectral.passes.folds import FoldRequest, checked_folds
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.parameters import check_fit
from daskspectral.passes.scale import centered, standardized, with_target_scale
from daskspectral.passes.selection import Selection
from daskspectral.passes.session import Session
from daskspectral.passes.sums import Discretization, Outline
from daskspectral.regression.choice import RegressionSettings, decide_regression
from daskspectral.solve.ridge import resolve_ridge_cut
from daskspectral.validation import NOT_NEGATIVE, check_number, check_option, is_word

Array = NDArray[np.floating[Any]]


class HermiteRegressor(Regressor):
    """Kernel regression on values and gradients (section 7.2, algorithms 4 and 5 of Cabannes and Bach 2024).

    f = intercept + Σ_i coef_i k(., y_i) at p landmarks minimizes the mean over the rows of

        |f(x) - y|² + gradient_weight |∇f(x) - t|²,

    plus alpha coef.K coef, with K the kernel matrix of the landmarks; the intercept is the weighted mean of y. One
    pass sums p × p matrices in O(n p² + n p d). Without gradients this is Nystrom kernel ridge regression.

    Parameters
    ----------
    basis : Landmarks, FourierBasis, "landmarks" or "fourier", optional
        `Landmarks()` by default: 500, or n if there are fewer rows. The kernel "auto" is selected from Matern(1.5),
        with gradients Matern(2.5), and Gaussian at many scales, by cross-validation on at most 10 000 rows; a scale
        "auto" likewise. On a FourierBasis, for one to three columns, kernel, scale and alpha are chosen after the
        pass.
    alpha : float, "gcv" or None, default=None
        Weight of the penalty, 0 or more. None minimizes the error on validation folds; "gcv", and any fit without
        folds, robust generalized cross-validation, which can fail badly if p is about n / 2. The penalty is in the
        units of X: a column whose standard deviation is a thousandth of the others' has almost no effect. Pass
        Rows(X, standardize=True) for columns of unequal units.
    gradient_weight : float, default=1.0
        Weight of a gradient against a value, 0 or more, in the units of standardized columns, if any.
    rtol : float, optional
        Positive relative cutoff for rounding errors; by default 1e-15 in float64, 1e-6 in float32.
    dtype : {"float64", "float32"}, default="float64"
        Arithmetic of the features and their products; sums are float64.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Device of the pass, `predict` and `score`: "cuda" is a GPU (extra `gpu`).
    folds : int, array of shape (n,), "blocks", "random" or None, default=10
        Folds of the cross-validation, as in `SpectralDecomposition`. Dependent rows, as in a time series, need
        "blocks" or labels.
    random_state : int, Generator or None
        Seed of the landmarks.

    Attributes
    ----------
    coef_ : ndarray of shape (p,) or (p, m)
        Coefficients; (p, m) for m targets.
    intercept_ : float or ndarray of shape (m,)
        Weighted mean of y; 0 on a FourierBasis, whose first function is the constant.
    alpha_ : float
        Weight of the penalty.
    search_results_ : Selection
        Kernels that were compared; its `best_params` reproduce this fit to the same bits.
    cv_ : float or None
        Mean squared validation error at alpha_, summed over the targets, with gradients plus gradient_weight times
        their error; None without folds.
    cv_score_ : float or None
        Validation R² of the values about their mean, or of values and gradients; None without folds.
    cv_curve_ : ndarray of shape (g, 2) or None
        Penalties and their validation errors; None without folds.
    gcv_ : float
        Robust generalized cross-validation at alpha_: mean squared residuals, each corrected for its leverage, RSS /
        (1 - tr / n)² with n values or n d entries of gradients, and raised near interpolation.
    gcv_curve_ : ndarray of shape (g, 2)
        Penalties and these scores.
    rank_ : int
        Number of directions that the sums resolve.
    degrees_of_freedom_ : float
        Trace of the hat matrix.
    moments_, basis_, kernel_, n_features_in_, feature_names_in_
        As in `SpectralDecomposition`; the last only if columns have names.

    See Also
    --------
    daskspectral.SpectralDecomposition : Spectral decomposition of an operator.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> x = np.linspace(0, 6, 300)[:, None]
    >>> h = dsp.HermiteRegressor(dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30), random_state=0)
    >>> h = h.fit(x, np.sin(x[:, 0]), gradients=np.cos(x))
    >>> h.predict([[1.0], [2.0]]).round(2)  # sin(1), sin(2)
    array([0.84, 0.91])
    >>> h.predict_gradient([[1.0], [2.0]]).round(2)  # cos(1), cos(2)
    array([[ 0.54],
           [-0.42]])
    """

    _parts: ClassVar = {"basis": Landmarks}
    _fitted_attributes = (
        *("moments_", "coef_", "intercept_", "alpha_", "search_results_", "cv_", "cv_score_", "cv_curve_", "gcv_"),
        *("gcv_curve_", "rank_", "degrees_of_freedom_"),
    )
    dimension_names: ClassVar = {"coef_": ("function", "target")}
    coef_: Array
    intercept_: Any

    def __init__(
        self,
        basis: Landmarks | FourierBasis | str | None = None,
        alpha: float | str | None = None,
        *,
        gradient_weight: float = 1.0,
        rtol: float | None = None,
        dtype: str = "float64",
        device: str = "cpu",
        folds: Any = 10,
        random_state: Any = None,
    ):
        self.basis = basis
        self.alpha = alpha
        self.gradient_weight = gradient_weight
        self.rtol = rtol
        self.dtype = dtype
        self.device = device
        self.folds = folds
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Fit the model to X, y and gradients in one pass on the active Dask scheduler.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Points. `Rows(X, columns=...)` selects the columns of f; gradients always have all columns.
        y : array of shape (n,) or (n, m)
            Targets, in the containers of X. In an update, those of all rows, old and new.
        gradients : array of shape (n, d) or (n, m, d), optional
            Derivatives of the targets with respect to the columns of X.
        sample_weight : array of shape (n,), optional
            Frequency weights; cross-validation counts rows, regardless of the unit of the weights.
        checkpoint, checkpoint_every, progress : optional
            As in `SpectralDecomposition.fit`.

        Returns
        -------
        HermiteRegressor
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError, MemoryError
            If the input is invalid or too large, before any task of the pass is submitted.
        OSError
            If the data are damaged or change during the pass.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        given = {"y": y, "gradients": gradients, "sample_weight": sample_weight}
        with open_table(self, X, context, fits=True, **given) as table:
            self._fit_session(self._session(table), context)
        self.search_results_ = replace(
            self.search_results_, best_params={**self.search_results_.best_params, "alpha": self.alpha_}
        )
        return self

    def _solve(self, moments: Moments) -> Self:
        operator, basis = moments.operator, moments.basis
        if not isinstance(operator, Regression) or not (basis.after_pass or basis.landmark_parts):
            raise ValueError(f"expected moments of HermiteRegressor.fit, got moments of {operator}")
        alpha = self.alpha if self.alpha in (None, "gcv") else float(self.alpha)
        cut, weight = resolve_ridge_cut(self.rtol, moments.dtype), float(self.gradient_weight)
        problem, fit, coefficients, selection = regress(
            moments, basis=basis_by_name(self.basis), alpha=alpha, gradient_weight=weight, cut=cut
        )
        coefficients, known = coefficients * operator.unit, vars(self).get("moments_")
        if selection is not None:
            self.search_results_ = selection.with_parameters(self._given_params())
        elif "search_results_" in vars(self) and known is not None and known.fingerprint != moments.fingerprint:
            del self.search_results_  # of an earlier fit
        intercept = operator.unit * problem.intercept + (operator.origin or 0.0)
        if basis.leads_with_constant:
            coefficients[0], intercept = coefficients[0] + intercept, 0 * intercept
        self.coef_ = coefficients[:, 0] if operator.targets is None else coefficients
        self.intercept_ = float(intercept[0]) if operator.targets is None else intercept
        unit = operator.unit**2
        self.alpha_, self.gcv_ = fit.alpha, fit.score * unit
        self.gcv_curve_ = np.column_stack([fit.alphas, fit.scores * unit])
        self.cv_ = self.cv_score_ = self.cv_curve_ = None
        if fit.errors is not None and fit.error is not None:
            self.cv_, self.cv_score_ = fit.error * unit, problem.explained(fit.error)
            self.cv_curve_ = np.column_stack([fit.alphas, fit.errors.sum(axis=1) * unit])
        self.rank_, self.degrees_of_freedom_ = fit.rank, fit.freedom
        self.moments_ = moments
        return self._restored()

    def _predictor(self) -> tuple[SpanValues, int | None]:
        by_target = self.coef_.reshape(len(self.coef_), -1)
        device = chosen_device(self.device)
        less = -np.atleast_1d(self.intercept_)
        function = SpanValues(self.basis_, by_target, less, preparation=self.preparation_, device=device)
        return function, self.coef_.shape[1] if self.coef_.ndim == 2 else None

    def _session(self, table: Table) -> Session:
        self._check_parameters()
        folds = checked_folds(self.folds)
        source, operator = open_regression(table.rows, table.y, gradients=table.gradients, **table.options(folds))
        return self._session_of(source, operator, folds)

    def _session_of(self, source: Source, operator: Any, folds: FoldRequest | None) -> Session:
        side, asked = self._landmark_space(source, operator)
        side.check_against(source, int(operator.gradients), operator)
        if (source.standardize or source.factors) and side.recipe.periodic:
            name = "standardize" if source.standardize else "latitude"
            raise ValueError(f"{name}= would change the units of X and its periods. Scale X before.")

        def choose(source: Source, *_: Any) -> Discretization:
            return self._discretized(source, side, operator, at_most=asked == "auto")

        choosing = pilot_bytes(source, operator, side.size) if side.automatic else 0
        expected = Outline((side.size, None), basis=side.probe(source, operator))
        return Session(source, operator, choose, self.dtype, chosen_device(self.device), folds, expected, choosing)

    def _landmark_space(self, source: Source, operator: Regression) -> tuple[FunctionSpace, Any]:
        """Return the function space, and the requested number of landmarks."""
        basis = Landmarks() if self.basis is None else basis_by_name(self.basis)
        recipe = basis.recipe if isinstance(basis, BasisRecipe) else None
        if not isinstance(recipe, (Landmarks, FourierBasis)):
            raise ParameterError("basis", "Landmarks(...) or FourierBasis(...) for a regression", basis)
        if isinstance(recipe, Landmarks) and (recipe.constant or recipe.drop_landmark_rows):
            raise ValueError(
                f"a regression has an intercept and all rows: omit constant and drop_landmark_rows of {basis}."
            )
        if isinstance(recipe, FourierBasis):
            basis = regression_lattice(recipe, source.dimension)
        side = FunctionSpace.of(basis, Role.TRIAL, "x", operator).fitted_to(source, operator)
        return side, getattr(basis, "n_landmarks", None)

    def _discretized(
        self, source: Source, side: FunctionSpace, operator: Regression, *, at_most: bool
    ) -> Discretization:
        source = standardized(source)
        if side.movable(source, operator):
            source, _ = centered(source, ["x"])
        operator = replace(with_target_scale(operator, source, shifted=True), intercept=True)
        rng = np.random.default_rng(self.random_state)
        selection = Selection((), {})
        if side.automatic:
            alpha = None if self.alpha in (None, "gcv") else float(self.alpha)
            terms = RegressionSettings(
                float(self.gradient_weight), alpha, resolve_ridge_cut(self.rtol, self.dtype), self.dtype
            )
            blocks = is_word(self.folds, "blocks")
            selection = decide_regression(source, operator, side, terms, rng, blocks=blocks)
            side = replace(side, recipe=selection.best_params["basis"])
        basis, again = side.choose(source, rng, operator, at_most=at_most)
        kept = None if again is None else replace(selection, best_params={"basis": again})
        of_rows = side.of_rows(basis)
        return Discretization(basis, source.preparation, selection=kept, operator=operator, of_rows=of_rows)

    def _check_parameters(self) -> None:
        check_fit(self)
        if isinstance(self.alpha, str):
            check_option("alpha", self.alpha, ("gcv",))
        elif self.alpha is not None:
            check_number("alpha", self.alpha, NOT_NEGATIVE)
        check_number("gradient_weight", self.gradient_weight, NOT_NEGATIVE)
        resolve_ridge_cut(self.rtol, self.dtype)

    def _summary_parts(self) -> dict[str, Any]:
        moments: Moments = self.moments_
        gradients = "dirichlet" in moments.arrays
        facts = measured_facts(moments) | {
            "gradients": f"weight {self.gradient_weight:g}" if gradients else "none",
            "rank": self.rank_,
            "freedom": f"{self.degrees_of_freedom_:.4g} of {moments.basis.size}",
            "penalty": f"{self.alpha_:g}",
        }
        facts |= chosen_facts(self)
        if self.cv_ is not None and self.cv_score_ is not None:
            kind = "of values and gradients explained" if gradients and self.gradient_weight else "R^2"
            folds = moments.folds.number if moments.folds is not None else 0
            facts["held out"] = f"{self.cv_score_:.4g} {kind}, squared error {self.cv_:.4g}, {folds} folds"
        else:
            facts["score"] = f"{self.gcv_:g}, generalized cross-validation"
        return {"verdict": explained(self.cv_score_), "facts": facts}
