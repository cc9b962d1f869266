"""Checks of constructor parameters, on the driver before any task is sent."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.names import named
from daskspectral.manifolds import Manifold
from daskspectral.operators import Laplacian, Operator
from daskspectral.solve import NormConstrained
from daskspectral.validation import (
    check_flag,
    check_integer,
    check_number,
    check_option,
    check_random_state,
    check_type,
    is_number,
)

Array = NDArray[np.floating[Any]]
EXTRAPOLATE = ("nearest", "nan", "raise")  # what becomes of rows far from those of the fit
SMOOTHNESS = 2.0  # of Sobolev functions, where it is above half the dimension


def check_components(value: Any, operator: Operator) -> None:
    """Raise ValueError unless n_components is a positive whole number or, of principal components, a share."""
    if not is_share(value):
        check_integer("n_components", value)
    elif operator.solver != NormConstrained():
        raise ValueError(
            f"n_components={value!r} is a share of the variance, which Covariance() has: give an integer of 1 or more"
        )


def is_share(value: Any) -> bool:
    """Return whether this is a number between 0 and 1, such as a share of the explained variance."""
    return is_number(value) and 0 < value < 1


def sobolev_order(smoothness: Any, manifold: Manifold) -> float:
    """The smoothness s of Sobolev functions on a manifold; None is 2, or dimension / 2 + 1 where 2 is too little.

    Raises ValueError for half the dimension or less.
    """
    half = manifold.dimension / 2
    if smoothness is None:
        return SMOOTHNESS if half < SMOOTHNESS else half + 1
    check_number("smoothness", smoothness)
    if not smoothness > half:
        raise ValueError(
            f"smoothness: expected more than half the dimension of {manifold!r}, {half:g}, received {smoothness!r}"
        )
    return float(smoothness)


def check_fit(estimator: Any) -> None:
    """Raise ValueError for a wrong value of a parameter that every fit from moments has."""
    check_option("dtype", estimator.dtype, ("float64", "float32"))
    check_random_state(estimator.random_state)


def checked_operator(value: Any) -> Operator:
    """The operator of an estimator, the Laplacian by default. Raises TypeError for anything else.

    Raises ValueError if its `center` is no boolean.
    """
    expected = "one of daskspectral.operators, such as Laplacian() or SymmetricForm(form)"
    operator = check_type("operator", Laplacian() if value is None else value, Operator, expected)
    check_flag("center", operator.center)
    return operator


def checked_kernel(value: Any) -> Kernel:
    """A copy of the kernel of an estimator, or that of a name. Raises TypeError or ValueError for anything else.

    Where the kernel is left to the data ("auto"), it stands for one: a Gaussian, which has all derivatives.
    """
    kernel = Gaussian("auto") if isinstance(value, str) and value == "auto" else named(value)
    # a copy: kernels can be changed in place, and a fitted model must not change with its parameters
    return copy.deepcopy(kernel)
