"""Checks of constructor parameters, before any task is submitted."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.names import kernel_by_name
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
EXTRAPOLATE = ("nearest", "nan", "raise")  # options for rows far from those of the fit
SMOOTHNESS = 2.0  # default for Sobolev functions, if above half the dimension


def check_components(value: Any, operator: Operator) -> None:
    """Raise ValueError unless n_components is a positive integer or, for principal components, a share."""
    if not is_share(value):
        check_integer("n_components", value)
    elif operator.solver != NormConstrained():
        raise ValueError(
            f"n_components must be a positive integer, or a share of the variance for Covariance(), got {value!r}"
        )


def is_share(value: Any) -> bool:
    """Return whether the value is a number between 0 and 1, such as a share of the variance."""
    return is_number(value) and 0 < value < 1


def sobolev_order(smoothness: Any, manifold: Manifold) -> float:
    """Return the smoothness s of Sobolev functions, by default max(2, dimension / 2 + 1)."""
    half = manifold.dimension / 2
    if smoothness is None:
        return SMOOTHNESS if half < SMOOTHNESS else half + 1
    check_number("smoothness", smoothness)
    if not smoothness > half:
        raise ValueError(
            f"smoothness must be more than half the dimension of {manifold!r}, {half:g}, got {smoothness!r}"
        )
    return float(smoothness)


def check_fit(estimator: Any) -> None:
    """Raise ValueError if a parameter of every fit from moments is invalid."""
    check_option("dtype", estimator.dtype, ("float64", "float32"))
    check_random_state(estimator.random_state)


def checked_operator(value: Any) -> Operator:
    """Return the operator of an estimator, by default Laplacian().

    Raises TypeError or ValueError if invalid.
    """
    expected = "one of daskspectral.operators, such as Laplacian() or SymmetricForm(form)"
    operator = check_type("operator", Laplacian() if value is None else value, Operator, expected)
    check_flag("center", operator.center)
    return operator


def checked_kernel(value: Any) -> Kernel:
    """Return a copy of a kernel, or the kernel of a name.

    Raises TypeError or ValueError if invalid. "auto" is represented by a Gaussian, which has all derivatives.
    """
    kernel = Gaussian("auto") if isinstance(value, str) and value == "auto" else kernel_by_name(value)
    # a copy, because kernels are mutable and a fitted model must not change with its parameters
    return copy.deepcopy(kernel)
