"""Checks of constructor parameters, on the driver before any task is sent."""

from __future__ import annotations

import copy
import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.containers import in_memory
from daskspectral.kernels import Gaussian, Kernel
from daskspectral.kernels.names import NAMES
from daskspectral.landmarks import METHODS
from daskspectral.manifolds import Manifold
from daskspectral.operators import Laplacian, Operator

Array = NDArray[np.floating[Any]]
Penalty = TypeVar("Penalty", float, float | str)
SMOOTHNESS = 2.0  # of Sobolev functions, where it is above half the dimension
LEAST_SUPPORT = 10.0  # effective points under a function, for a solution by rank cut


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise ValueError unless the value is a whole number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of {least} or more; it is {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number of {most} or less; it is {value!r}")


def check_amount(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number of 0 or more."""
    if not _real(value) or value < 0:
        raise ValueError(f"{name} must be a number of 0 or more; it is {value!r}")


def check_number(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a finite number."""
    if not _real(value):
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


def check_landmark_choice(landmarks: Any, sample: Any, count: int) -> None:
    """Raise ValueError for a method that does not exist, and for a sample of rows below the number of landmarks."""
    if isinstance(landmarks, str):
        check_one_of("landmarks", landmarks, METHODS)
        if landmarks != "uniform" and sample is not None:
            check_whole("landmark_sample", sample, count)


def check_landmark_count(value: Any) -> None:
    """Raise ValueError unless the value is a whole number of 1 or more, or "auto"."""
    if np.ndim(value):
        raise ValueError(
            f"n_landmarks is how many landmarks there are, or 'auto'; it is an array of shape {np.shape(value)}: give "
            "landmarks of your own as landmarks="
        )
    if not isinstance(value, str) or value != "auto":
        check_whole("n_landmarks", value)


def check_landmark_fit(estimator: Any, on_invalid: str) -> None:
    """Raise ValueError for a wrong value of `on_invalid`, or of a parameter that every fit at landmarks has."""
    check_landmark_count(estimator.n_landmarks)
    check_one_of("standardize", estimator.standardize, (True, False))
    check_one_of("dtype", estimator.dtype, ("float64", "float32"))
    check_one_of("on_invalid", on_invalid, ("raise", "skip"))
    if estimator.rtol is not None:
        check_number("rtol", estimator.rtol)
    check_random_state(estimator.random_state)


def given_landmarks(landmarks: Any, n_features: int, of: str = "X", columns: tuple[int, ...] | None = None) -> Array:
    """A copy (p, n_features) of landmarks given by the user, in the raw columns of X; ValueError for anything else.

    They must be finite in the `columns` that are used, all by default.
    """
    wanted = (
        f"landmarks must be one of {', '.join(METHODS)}, or an array (p, {n_features}), one column for each of {of}"
    )
    try:
        array = np.asarray(in_memory(landmarks, "the array"))
        if array.dtype.kind not in "fiub":
            raise ValueError(f"their dtype is {array.dtype}")
        if array.ndim != 2 or array.shape[1] != n_features or not len(array):
            raise ValueError(f"they have shape {array.shape}")
    except ValueError as error:
        raise ValueError(f"{wanted}; {error}") from None
    finite = np.isfinite(array if columns is None else array[:, list(columns)]).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(f"landmarks must be finite; row {bad} is {array[bad]}")
    return np.array(array, dtype=float)


def _real(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def checked_operator(value: Any) -> Operator:
    """The operator of an estimator, the Laplacian by default. Raises TypeError for anything else."""
    operator: Any = Laplacian() if value is None else value
    if not isinstance(operator, Operator):
        raise TypeError(
            "operator must be one of daskspectral.operators, such as Laplacian() or SymmetricForm(form); "
            f"got {operator!r}"
        )
    return operator


def resolve_support(min_support: float | None, solver: str) -> float:
    """The least effective points under a function: where not given 10 for a solution by rank cut, 0 for others."""
    if min_support is None:
        return LEAST_SUPPORT if solver == "cut" else 0.0
    return float(min_support)


def resolve_penalty(penalty: Any, solver: str, chosen: Penalty) -> float | Penalty | None:
    """c of the penalised solution: the given one, or the one that was `chosen` for "auto"; None for a rank cut."""
    if solver == "cut":
        return None
    return chosen if penalty == "auto" else float(penalty)


def checked_kernel(value: Any) -> Kernel:
    """A copy of the kernel of an estimator, Gaussian("median") by default. Raises TypeError for anything else.

    Where the kernel is left to the data ("auto"), it stands for one: a Gaussian, which has all derivatives.
    """
    kernel: Any = value
    if value is None or (isinstance(value, str) and value == "auto"):
        kernel = Gaussian("median") if value is None else Gaussian("auto")
    if not isinstance(kernel, Kernel):
        names = ", ".join(c.__name__ for c in NAMES.values())
        raise TypeError(
            f"kernel must be one of daskspectral.kernels ({names}, or a function in Radial, Dot or "
            f"FunctionKernel), such as Gaussian(1.0); got {kernel!r}"
        )
    # a copy: kernels can be changed in place, and a fitted model must not change with its parameters
    return copy.deepcopy(kernel)
