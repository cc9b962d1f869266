"""Checks of constructor parameters, on the driver before any task is sent."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.base import is_number
from daskspectral.kernels.names import named
from daskspectral.manifolds import Manifold
from daskspectral.operators import Laplacian, Operator

Array = NDArray[np.floating[Any]]
EXTRAPOLATE = ("nearest", "nan", "raise")  # what becomes of rows far from those of the fit
SMOOTHNESS = 2.0  # of Sobolev functions, where it is above half the dimension


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise ValueError unless the value is a whole number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more; it is {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number of {most} or less; it is {value!r}")


def check_components(value: Any, operator: Operator) -> None:
    """Raise ValueError unless n_components is a positive whole number or, of principal components, a share."""
    if not is_share(value):
        check_whole("n_components", value)
    elif not operator.solver.by_norm:
        raise ValueError(
            f"n_components must be a whole number of 1 or more for the operator {operator.name}; it is {value!r}, and "
            "shares of the variance are those of Covariance()"
        )


def is_share(value: Any) -> bool:
    """Return whether this is a number between 0 and 1, such as a share of the explained variance."""
    return is_number(value) and 0 < value < 1


def check_amount(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number of 0 or more."""
    if not is_number(value) or value < 0:
        raise ValueError(f"{name} must be a number of 0 or more; it is {value!r}")


def check_number(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number; it is {value!r}")


def check_one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise ValueError, which names the allowed values, for any other value."""
    if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; it is {value!r}")


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
            f"smoothness must be above half the dimension of {manifold!r}, {half:g}: only then are Sobolev functions "
            f"continuous; it is {smoothness!r}"
        )
    return float(smoothness)


def check_random_state(value: Any) -> None:
    """Raise ValueError for a value that `numpy.random.default_rng` does not take."""
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state must be a whole number of 0 or more, a numpy Generator, or None; it is {value!r}"
        ) from error


def check_fit(estimator: Any) -> None:
    """Raise ValueError for a wrong value of a parameter that every fit from moments has."""
    check_one_of("dtype", estimator.dtype, ("float64", "float32"))
    check_random_state(estimator.random_state)


def checked_operator(value: Any) -> Operator:
    """The operator of an estimator, the Laplacian by default. Raises TypeError for anything else."""
    operator: Any = Laplacian() if value is None else value
    if not isinstance(operator, Operator):
        raise TypeError(
            "operator must be one of daskspectral.operators, such as Laplacian() or SymmetricForm(form); "
            f"got {operator!r}"
        )
    return operator


def checked_kernel(value: Any) -> Kernel:
    """A copy of the kernel of an estimator, or that of a name. Raises TypeError or ValueError for anything else.

    Where the kernel is left to the data ("auto"), it stands for one: a Gaussian, which has all derivatives.
    """
    kernel = Gaussian("auto") if isinstance(value, str) and value == "auto" else named(value)
    # a copy: kernels can be changed in place, and a fitted model must not change with its parameters
    return copy.deepcopy(kernel)
