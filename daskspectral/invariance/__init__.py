"""Regression and features that are exactly invariant under a group, or equivariant: level by level, in one pass."""

from daskspectral.invariance.features import InvariantFeatures
from daskspectral.invariance.regressor import InvariantRegressor

__all__ = ["InvariantFeatures", "InvariantRegressor"]
