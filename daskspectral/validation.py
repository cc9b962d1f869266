"""Checks of parameters, on the driver before any task.

Each raises `ParameterError`, which names the parameter, or returns the value in its plain type.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from daskspectral.errors import ParameterError

T = TypeVar("T")
POSITIVE, NOT_NEGATIVE = "(0, inf)", "[0, inf)"


def is_number(value: object) -> bool:
    """Return whether the value is a finite real number; booleans are not."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return math.isfinite(value)


def is_word(value: object, *words: str) -> bool:
    """Return whether the value is one of the words."""
    return isinstance(value, str) and value in words


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether the value is a path or a URL."""
    return isinstance(value, (str, os.PathLike))


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether the value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_data_array(value: object) -> bool:
    """Return whether the value is an xarray.DataArray."""
    return isinstance(value, loaded("xarray.DataArray"))


def is_dask_array(value: object) -> bool:
    """Return whether the value is a dask array."""
    return isinstance(value, loaded("dask.array.Array"))


def check_integer(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return an integer from `least` to `most`."""
    integral = not isinstance(value, (bool, np.bool_)) and isinstance(value, (int, np.integer))
    if not integral or value < least or (most is not None and value > most):
        span = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise ParameterError(name, f"an integer {span}", value)
    return int(value)


def check_number(name: str, value: Any, interval: str = "(-inf, inf)") -> float:
    """Return a finite number in an interval, such as "(0, inf)" or "[0, 1]"."""
    low, high = map(float, interval[1:-1].split(","))
    inside = is_number(value) and (value > low or (value == low and interval[0] == "["))
    if not (inside and (value < high or (value == high and interval[-1] == "]"))):
        where = "" if interval == "(-inf, inf)" else f" in {interval}"
        raise ParameterError(name, f"a number{where}", value)
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(name, "True or False", value)
    return bool(value)


def check_option(name: str, value: T, allowed: Iterable[Any]) -> T:
    """Return one of the allowed values."""
    allowed = tuple(allowed)
    if not any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        raise ParameterError(name, " or ".join(map(repr, allowed)), value)
    return value


def check_type(name: str, value: Any, kinds: type[T] | tuple[type[T], ...], expected: str) -> T:
    """Return an instance of one of the classes, which `expected` describes."""
    if not isinstance(value, kinds):
        raise ParameterError(name, expected, value)
    return value


def loaded(*names: str) -> tuple[type[Any], ...]:
    """Return the classes of these names, such as "xarray.DataArray", whose modules are already imported.

    Examples
    --------
    >>> import numpy as np
    >>> isinstance(np.zeros(2), loaded("numpy.ndarray", "a_package.that_is_not_imported.Array"))
    True
    """
    found = (getattr(sys.modules.get(home), name, None) for home, _, name in (n.rpartition(".") for n in names))
    return tuple(cls for cls in found if isinstance(cls, type))


def check_random_state(value: Any) -> None:
    """Raise ParameterError for a value that `numpy.random.default_rng` does not accept."""
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        expected = "an integer of 0 or more, a numpy Generator, or None"
        raise ParameterError("random_state", expected, value) from error
