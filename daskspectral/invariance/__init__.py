"""Regression and features that are exactly invariant or equivariant under a group."""

from daskspectral.invariance.features import InvariantFeatures
from daskspectral.invariance.regressor import InvariantRegressor

__all__ = ["InvariantFeatures", "InvariantRegressor"]
