"""Regression on values and gradients: the estimator, and how its functions are chosen."""

from daskspectral.regression.hermite import HermiteRegressor

__all__ = ["HermiteRegressor"]
