"""Checks of user-defined kernels, bases, forms, operators, solvers, manifolds, groups and estimators.

A kernel (`profile` writes q or one of its derivatives in s = |x - y|² into `out`):

    >>> import math
    >>> from dataclasses import dataclass
    >>> from daskspectral.kernels import DISTANCE, ProfileKernel
    >>> @dataclass
    ... class Cauchy(ProfileKernel):
    ...     geometry = DISTANCE
    ...     scale: float = 1.0
    ...     smoothness = math.inf
    ...     def profile(self, s, order, out):
    ...         rate = 1 / self.scale**2
    ...         out[...] = math.factorial(order) * (-rate) ** order / (1 + rate * s) ** (order + 1)
    ...         return out
    >>> check_kernel(Cauchy(0.7))

A form, with fields of the data:

    >>> from daskspectral.forms import form, grad, inner
    >>> @form
    ... def schroedinger(f, g, x):
    ...     return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)
    >>> check_form(schroedinger)

Functions with their gradients:

    >>> import numpy as np
    >>> from daskspectral.basis import CallableBasis
    >>> waves = CallableBasis(lambda x: np.sin(x).T, lambda x: np.cos(x).T[:, :, None] * np.eye(2)[:, None], d=2)
    >>> check_basis(waves)

`check_operator`, `check_solver`, `check_manifold`, `check_group` and `check_estimator` are for the other classes.
Each check returns None, or raises AssertionError with the quantity, the position and the size of the error.
"""

from daskspectral.testing.basis import check_basis, check_kernel
from daskspectral.testing.form import check_form
from daskspectral.testing.spectrum import check_estimator, check_group, check_manifold, check_operator, check_solver

__all__ = [
    "check_basis",
    "check_estimator",
    "check_form",
    "check_group",
    "check_kernel",
    "check_manifold",
    "check_operator",
    "check_solver",
]
