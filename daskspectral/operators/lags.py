"""Lags of transfer operators in rows, or in time as text such as "6h"."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from typing import Any

import numpy as np

from daskspectral.errors import ParameterError
from daskspectral.validation import check_integer, is_sequence

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")  # of numpy.timedelta64, M a calendar month
_PARTS = re.compile(r"\s*(\d*)\s*([A-Za-z]+)\s*")
_WORDS = {"min": "m", "d": "D", "H": "h", "S": "s"}  # of pandas


def lag_of(value: Any) -> int | str:
    """Return a lag in rows as an int, and a lag in time as text such as "6h"; raise ValueError for others."""
    if isinstance(value, datetime.timedelta):
        value = value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value, "us")
    if isinstance(value, np.timedelta64):
        unit, size = np.datetime_data(value.dtype)
        value = f"{int(value.astype(np.int64)) * size}{unit}"
        if unit in ("us", "ns"):
            value = _coarsest(value)
    if not isinstance(value, str):
        return check_integer("lag", value, 1)
    if value.strip().isdecimal():
        return check_integer("lag", int(value), 1)
    count, unit = time_parts(value)
    return f"{count}{unit}"


def lags_of(value: Any) -> Any:
    """Return a lag, or a tuple of several: the lag and its multiples, ascending; raise ValueError for others."""
    if isinstance(value, range) or (isinstance(value, np.ndarray) and value.ndim == 1):
        value = [*value]
    if not is_sequence(value):
        return lag_of(value)
    lags = tuple(map(lag_of, value))
    multiples = multiples_of(lags) if lags else ()
    if len({*multiples}) < max(1, len(lags)):
        raise ParameterError("lag", "one lag or several distinct ones, such as (1, 2, 5)", value)
    return tuple(lags[i] for i in np.argsort(multiples))


def multiples_of(lags: tuple[int | str, ...]) -> tuple[int, ...]:
    """Return the ratios of lags to the first; raise ValueError unless they are integers."""
    times: Any = [np.timedelta64(*time_parts(lag)) if isinstance(lag, str) else lag for lag in lags]  # type: ignore[call-overload]
    with suppress(TypeError):  # rows and times, or months and days
        ratios = [float(time / times[0]) for time in times]
        if all(ratio >= 1 and ratio.is_integer() for ratio in ratios):
            return tuple(map(int, ratios))
    raise ParameterError("lag", "several lags that are multiples of the first, such as (2, 4, 10)", lags)


def time_parts(text: str) -> tuple[int, str]:
    """Return the count and unit of a lag in time; raise ValueError for other text."""
    found = _PARTS.fullmatch(text)
    unit = "" if found is None else _WORDS.get(found[2], found[2])
    if found is None or unit not in UNITS or found[1].strip("0") == "" != found[1]:
        units = f"{', '.join(UNITS)}; M is a calendar month, m a minute"
        raise ParameterError(
            "lag", f"a positive integer number of rows or of a unit of time, such as '6h' ({units})", text
        )
    return int(found[1] or 1), unit


def _coarsest(text: str) -> str:
    """Return the same time in the largest unit, at most days."""
    count, unit = time_parts(text)
    time = np.timedelta64(count, unit)  # type: ignore[call-overload]
    units = {unit: np.timedelta64(1, unit) for unit in ("D", "h", "m", "s", "ms", "us", "ns")}
    return next(f"{time // one}{unit}" for unit, one in units.items() if not time % one)
