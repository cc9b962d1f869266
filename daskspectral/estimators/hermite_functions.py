"""What a fitted Hermite regression gives: its values and its gradient at any rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice, LandmarkBasis, Landmarks
from daskspectral.data.source import Preparation
from daskspectral.engine.accelerators import chosen_device
from daskspectral.estimators.regressor import Regressor
from daskspectral.moments import Moments
from daskspectral.moments.regression import RidgeProblem
from daskspectral.operators.regression import Regression
from daskspectral.passes.functions import SpanValues
from daskspectral.solve.ridge import RidgeFit

Array = NDArray[np.floating[Any]]


class RegressionFunctions(Regressor):
    """The function of a fit, whose coefficients (p,) or (p, m) are `coef_`, in the span of a basis."""

    parts: ClassVar = {"basis": Landmarks}
    moments_: Moments
    coef_: Array

    fitted_attributes = (
        "moments_",
        "coef_",
        "alpha_",
        "choice_",
        "cv_",
        "cv_score_",
        "cv_curve_",
        "gcv_",
        "gcv_curve_",
        "rank_",
        "degrees_of_freedom_",
    )

    def restored(self) -> Self:
        moments = self.moments_
        basis = moments.basis
        assert isinstance(basis, (LandmarkBasis, FourierLattice))
        self.basis_ = basis
        self.kernel_ = basis.kernel if isinstance(basis, LandmarkBasis) else self.choice_.parameters["basis"].kernel
        self.preparation_ = Preparation.from_state(moments.preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        return self

    def _with(self, moments: Moments, problem: RidgeProblem, fit: RidgeFit, coefficients: Array) -> Self:
        """This estimator with the solution of these moments."""
        assert isinstance(moments.operator, Regression)
        self.coef_ = coefficients[:, 0] if moments.operator.targets is None else coefficients
        self.alpha_, self.gcv_, self.gcv_curve_ = fit.alpha, fit.score, np.column_stack([fit.alphas, fit.scores])
        self.cv_ = self.cv_score_ = self.cv_curve_ = None
        if fit.errors is not None and fit.error is not None:
            self.cv_, self.cv_score_ = fit.error, problem.explained(fit.error)
            self.cv_curve_ = np.column_stack([fit.alphas, fit.errors.sum(axis=1)])
        self.rank_, self.degrees_of_freedom_ = fit.rank, fit.freedom
        self.moments_ = moments
        return self.restored()

    def _predictor(self) -> tuple[SpanValues, int | None]:
        by_target = self.coef_.reshape(len(self.coef_), -1)
        device = chosen_device(self.device)
        function = SpanValues(self.basis_, by_target, preparation=self.preparation_, device=device)
        return function, self.coef_.shape[1] if self.coef_.ndim == 2 else None
