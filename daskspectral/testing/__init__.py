"""Checks of user-defined kernels, bases, forms, operators, solvers, manifolds, groups and estimators.

Each check returns None, or raises AssertionError with the quantity, the position and the size of the error.

    >>> import numpy as np
    >>> from daskspectral.basis import CallableBasis
    >>> waves = CallableBasis(lambda x: np.sin(x).T, lambda x: np.cos(x).T[:, :, None] * np.eye(2)[:, None], d=2)
    >>> check_basis(waves)
    >>> from daskspectral.forms import form, grad, inner
    >>> @form
    ... def schroedinger(f, g, x):
    ...     return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)
    >>> check_form(schroedinger)

For a kernel see `help(daskspectral.kernels)`.
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
