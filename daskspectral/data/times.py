"""Times of rows: the step between them, pairs of rows a lag apart in time, and lags in time."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.moments.autocovariance import Series

Array = NDArray[Any]
TICK = np.timedelta64(1, "us")
CALENDAR = 28 * np.timedelta64(1, "D") / TICK  # longer steps are in calendar months
MULTIPLE = 0.01  # tolerance, in steps, of a lag in time to be a whole number of steps
ON_GRID = 0.1  # tolerance, in shortest differences, of others to be multiples on a grid
RARE = 0.05  # share of differences shorter than the step by chance


def are_times(values: Array) -> bool:
    """Return whether values are times of numpy or of a calendar (cftime)."""
    of_calendar = values.dtype.kind == "O" and bool(values.size) and hasattr(values.flat[0], "calendar")
    return values.dtype.kind == "M" or of_calendar


def are_dates(values: Array) -> bool:
    """Return whether values are times, or dates of Python or pandas."""
    return are_times(values) or (values.dtype.kind == "O" and bool(values.size) and hasattr(values.flat[0], "year"))


@dataclass(frozen=True, eq=False)
class RowTimes:
    """Times (T,) along one dimension of rows, which are `before` x T x `behind`, the last fastest.

    `label` is the name of the coordinate, `ticks` are microseconds or numbers. Without `values`, the rows have several
    dimensions, named by `label`, none of which is known to be the time.
    """

    label: str
    values: Array | None = None
    ticks: Array | None = None
    before: int = 1
    behind: int = 1

    @classmethod
    def of(cls, index: Any, label: str, before: int = 1, behind: int = 1) -> Self | None:
        """Return the times of a pandas index, in UTC; None for text and other labels."""
        if getattr(index, "nlevels", 1) > 1:
            return cls._of_levels(index, before, behind)
        values = np.asarray(index if getattr(index, "tz", None) is None else index.tz_convert(None))
        if values.dtype.kind in "mM" or are_dates(values):
            return cls(label, values, _ticks(values), before, behind)
        numbers = values.astype(float) if values.dtype.kind == "u" else values
        return cls(label, values, numbers, before, behind) if values.dtype.kind in "fiu" else None

    @classmethod
    def _of_levels(cls, index: Any, before: int, behind: int) -> Self:
        """Return the times of an index of several levels, whose other levels are trajectories."""
        levels = range(index.nlevels)
        names = [str(index.names[i] or f"level_{i}") for i in levels]
        found = {i: cls.of(index.get_level_values(i), names[i], before, behind) for i in levels}
        timed = {i: one for i, one in found.items() if one is not None and (one.of_clock or names[i] == "time")}
        if len(timed) != 1:
            return cls(", ".join(names))
        ((level, times),) = timed.items()
        others = index.droplevel(level).factorize()[0]
        if times.values is None or times.ticks is None or not len(others):
            return times
        inner = int(np.argmax(np.append(times.ticks[1:] != times.ticks[:-1], True))) + 1
        outer = times.ticks[::inner]
        length = int(np.argmax(np.append(outer[1:] == outer[0], True))) + 1
        copies, left = divmod(len(others), length * inner)
        if left:
            return times
        ticks, others = times.ticks.reshape(copies, length, inner), others.reshape(copies, length, inner)
        if not (np.all(ticks == ticks[:1, :, :1]) and np.all(others == others[:, :1])):
            return times
        values = times.values.reshape(copies, length, inner)[0, :, 0]
        return cls(times.label, values, ticks[0, :, 0], before * copies, inner * behind)

    def series_of(self, count: int) -> Series:
        """Return the order of rows in time, `count` of them along that dimension."""
        return Series(self.behind, count * self.behind if self.before > 1 else None)

    @property
    def of_clock(self) -> bool:
        return self.values is not None and self.values.dtype.kind not in "fiu"

    @cached_property
    def months(self) -> Array | None:
        """Times in calendar months, with fractions; None for numbers and durations."""
        values = self.values
        if values is None or not are_dates(values):
            return None
        if values.dtype.kind == "M":
            month = values.astype("M8[M]")
            length = (month + 1).astype("M8[us]") - month.astype("M8[us]")
            within: Array = (values.astype("M8[us]") - month.astype("M8[us]")) / length
            return month.astype(np.int64) + within
        found = []
        for value in values:
            days = getattr(value, "daysinmonth", None) or calendar.monthrange(value.year, value.month)[1]
            hours = value.day - 1 + (getattr(value, "hour", 0) + getattr(value, "minute", 0) / 60) / 24
            found.append(12 * value.year + value.month - 1 + hours / days)
        return np.array(found)

    def checked(self, what: str) -> Array:
        """Return the ticks, relative to the first; raise ValueError unless times increase."""
        if self.values is None or self.ticks is None:
            raise ValueError(f"{what} has rows along {self.label}, none of which is the time. Name one 'time'")
        missing = np.isnat(self.values) if self.values.dtype.kind in "mM" else ~np.isfinite(self.ticks.astype(float))
        if missing.any():
            raise ValueError(f"{what} must have times, but {self.label!r} is missing in row {int(missing.argmax())}")
        ticks = np.asarray(self.ticks - self.ticks[:1], dtype=float)
        wrong = np.flatnonzero(np.diff(ticks) <= 0)
        if len(wrong):
            row = int(wrong[0]) + 1
            raise ValueError(
                f"the times {self.label!r} of {what} must increase, but row {row} has "
                f"{self.values[row]} after {self.values[row - 1]}. Sort them, or pass a list of trajectories"
            )
        return ticks


def _ticks(values: Array) -> Array:
    """Return times in microseconds, as floats since the first for objects and finer units."""
    if values.dtype.kind in "mM":
        kind = values.dtype.kind
        if np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as"):
            first = values[:1]
            return (values - first) / np.timedelta64(1, "ns") / 1000.0
        return values.astype(f"{kind}8[us]").astype(np.int64)
    first = _naive(values[0])
    return np.array([(_naive(value) - first) / datetime.timedelta(microseconds=1) for value in values])


def _naive(value: Any) -> Any:
    """Return a date or time without a zone, in UTC."""
    if hasattr(value, "to_timestamp"):  # a period of pandas
        value = value.to_timestamp()
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return value


@dataclass(frozen=True, eq=False)
class Clock:
    """Times (T,) of one trajectory or several, and the `step` between neighboring rows.

    The step is the shortest difference between neighboring rows if all others are multiples of it and it is not rare,
    else their median, refined to the mean of the differences within half of it. It is in ticks, or from a month on in
    calendar months (`in_months`), as `times`; `ticks` is the step in ticks.
    """

    times: tuple[Array, ...]
    step: float
    ticks: float
    in_months: bool
    of_clock: bool

    @classmethod
    def of(cls, times: Sequence[RowTimes], names: Sequence[str]) -> Self:
        """Return the clock of trajectories; ValueError for decreasing times, or several types of times."""
        if len({t.of_clock for t in times}) > 1:
            raise ValueError(
                f"{names[0]} and the other trajectories must have times of one type, got numbers and dates"
            )
        found, of_clock = [t.checked(name) for t, name in zip(times, names, strict=True)], times[0].of_clock
        ticks, months = _step(found), [t.months for t in times]
        if of_clock and ticks >= CALENDAR and all(m is not None for m in months):
            inside = [m for m in months if m is not None]
            return cls(tuple(inside), _step(inside), ticks, True, of_clock)
        return cls(tuple(found), ticks, ticks, False, of_clock)

    def __str__(self) -> str:
        return (
            f"{self.step:.4g} months" if self.in_months else _shown(self.ticks) if self.of_clock else f"{self.step:g}"
        )

    def gap(self, i: int) -> int | None:
        """Return the first row of a trajectory that is not one step after the previous one; else None."""
        first = self.segments(i)[0][1]
        return first if first < len(self.times[i]) else None

    def pairs(self, i: int, shifts: Mapping[str, int]) -> dict[str, Array]:
        """Return the rows, by view, of trajectory i whose times have a time within half a step after all shifts."""
        times = self.times[i]
        found, there = {"x": np.arange(len(times))}, np.ones(len(times), bool)
        for view, shift in shifts.items():
            wanted = times + shift * self.step
            behind = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1) if len(times) > 1 else found["x"]
            ahead = np.maximum(behind - 1, 0)
            nearest = np.where(wanted - times[ahead] < times[behind] - wanted, ahead, behind)
            there &= (np.abs(times[nearest] - wanted) < 0.5 * self.step) & (nearest > found["x"])
            found[view] = nearest
        return {view: numbers[there] for view, numbers in found.items()}

    def segments(self, i: int) -> list[tuple[int, int]]:
        """Return the spans of rows of trajectory i without gaps."""
        breaks = np.flatnonzero(np.abs(np.diff(self.times[i]) / self.step - 1) >= 0.5) + 1
        return list(pairwise([0, *breaks.tolist(), len(self.times[i])]))

    def steps(self, lag: str) -> int:
        """Return a lag in time as a number of steps; raise ValueError if it is not whole."""
        from daskspectral.operators.lags import time_parts  # imports scipy, which reading does not need

        count, unit = time_parts(lag)
        if not self.of_clock:
            raise ValueError(f"lag={lag!r} requires times with a unit, but those of X are numbers: pass it in rows")
        if unit in "YM":
            step = self.step if self.in_months else np.nan
            ratio = count * (12 if unit == "Y" else 1) / step
        else:
            ratio = np.timedelta64(count, unit) / TICK / self.ticks  # type: ignore[call-overload]
        if not ratio > 0.5 or abs(ratio - round(ratio)) > MULTIPLE:
            raise ValueError(f"lag must be a whole number of steps of {self}, got {lag!r}")
        return round(ratio)


def _step(times: Sequence[Array]) -> float:
    differences = np.concatenate([np.diff(t) for t in times])
    if not len(differences):
        return 1.0
    step = float(differences.min())
    multiples = differences / step
    if np.abs(multiples - multiples.round()).max() > ON_GRID or np.mean(multiples < 1.5) < RARE:
        step = float(np.median(differences))
    return float(differences[np.abs(differences - step) < step / 2].mean())


def _shown(ticks: float) -> str:
    """Return microseconds as text in the largest unit that fits."""
    for unit in ("D", "h", "m", "s", "ms", "us"):
        size = ticks / (np.timedelta64(1, unit) / TICK)
        if size >= 1:
            return f"{size:.4g} {unit}"
    return f"{1000 * ticks:.4g} ns"


def runs(numbers: Mapping[str, Array]) -> list[Array]:
    """Return the borders (R + 1,) of runs in which all row numbers increase by one, and their starts by view."""
    count = len(numbers["x"])
    breaks = np.zeros(max(count - 1, 0), bool)
    for found in numbers.values():
        breaks |= np.diff(found) != 1
    starts = np.concatenate([[0], np.flatnonzero(breaks) + 1]) if count else np.zeros(0, int)
    return [np.append(starts, count), *(found[starts] for found in numbers.values())]
