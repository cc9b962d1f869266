"""Anomalies of fields in time: values minus the mean of each month, or season, and minus a trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import by_block
from daskspectral.data.times import are_times
from daskspectral.registry import Registered

if TYPE_CHECKING:
    from daskspectral.data.layout import RowLabels

Array = NDArray[Any]
GROUPS = ("month", "season", "dayofyear", "hour")
SEASONS = ("DJF", "MAM", "JJA", "SON")
GREGORIAN = ("proleptic_gregorian", "standard", "gregorian")  # one axis of days
LEAP = 366  # day of leap years only
MOST_DEGREE = 10
TIMES, VALUES = "times", "values"
DETERMINED = 1e-10  # relative to the largest eigenvalue of normal equations in times from -1 to 1


@dataclass(frozen=True, eq=False)
class Baseline(Registered):
    """Least-squares fit of each column by means of groups of times and a polynomial in time.

    With t = (days since 1970 - center) / half, from -1 to 1 over the times of the fit, the baseline of group g is
    climatology_g + sum_a trend_a t^a, a = 1, ..., degree, of shapes (G, d) and (degree, d). `labels` (G,) are the
    values of the component `anomaly` of times that define groups; one group for None. Days are those of the
    `calendar`, by its CF name.
    """

    anomaly: str | None
    degree: int
    labels: tuple[Any, ...]
    center: float
    half: float
    climatology: Array | None = None
    trend: Array | None = None
    calendar: str = GREGORIAN[0]

    def __str__(self) -> str:
        parts = [f"the mean of each {self.anomaly}" if self.anomaly else "the mean"]
        parts += [f"a trend of degree {self.degree}"] if self.degree else []
        return f"less {' and '.join(parts)}"

    @classmethod
    def of(cls, rows: RowLabels, what: str, anomaly: str | None, degree: int) -> Self:
        """Return the groups and the scale of times of rows; raise ValueError for no times, or too few."""
        times = _times(rows, what)
        labels, days = _labels(times, anomaly), _days(times)
        groups = tuple(np.unique(labels).tolist())
        number = (
            len(np.unique(days)) if len(rows.dims) == 1 else len(days)
        )  # distinct times: members have the same ones
        if number <= len(groups) + degree:
            raise ValueError(
                f"{what} must have more distinct times than {len(groups)} groups and the degree {degree}, got {number}"
            )
        center, half = float(days.min() + np.ptp(days) / 2), float(np.ptp(days)) / 2 or 1.0
        return cls(anomaly, degree, groups, center, half, calendar=_calendar(times))

    def design(self, rows: RowLabels, what: str) -> Array:
        """Return the number of the group and t, ..., t^degree of each row, (n, 1 + degree).

        Day 366, if it is not in the fit, has the mean of day 365. Raises ValueError for other groups that are not in
        the fit, and for another calendar.
        """
        times = _times(rows, what)
        calendar = _calendar(times)
        if calendar != self.calendar and not {calendar, self.calendar} <= {*GREGORIAN}:
            raise ValueError(
                f"{what} must have the calendar {self.calendar!r} of the fit, got {calendar!r}: convert it by "
                f"{what}.convert_calendar({self.calendar!r})"
            )
        labels = _labels(times, self.anomaly)
        if self.anomaly == "dayofyear" and LEAP not in self.labels and LEAP - 1 in self.labels:
            labels = np.minimum(labels, LEAP - 1)
        strange = sorted({*labels.tolist()} - {*self.labels})
        if strange:
            raise ValueError(
                f"{what} has times of the {self.anomaly} {strange[0]}, which the fit does not contain. Drop them, or "
                "fit coarser groups"
            )
        t = (_days(times) - self.center) / self.half
        return np.column_stack([np.searchsorted(self.labels, labels), t[:, None] ** np.arange(1, self.degree + 1)])

    def sums(self, x: Array, design: Array, gaps: bool, weights: Array | None = None) -> dict[str, Array]:
        """Return weighted sums of t^a, (G, 2 degree + 1, 1 or d), and of x t^a, (G, degree + 1, d), by group.

        The first are by column over valid entries if there are `gaps`.
        """
        k, group = self.degree, design[:, 0]
        powers = (design[:, 1:2] if k else np.zeros((len(x), 1))) ** np.arange(2 * k + 1)
        if weights is not None:
            powers = powers * np.asarray(weights, dtype=float)[:, None]
        present = np.isfinite(x) if gaps else np.ones((len(x), 1))
        x = np.where(present, x, 0).astype(float) if gaps else np.asarray(x, dtype=float)
        members = [np.flatnonzero(group == g) for g in range(len(self.labels))]
        times = np.stack([powers[m].T @ present[m] for m in members])
        return {TIMES: times, VALUES: np.stack([powers[m, : k + 1].T @ x[m] for m in members])}

    def solved(self, sums: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return the climatology, NaN for groups without values, and the trend, from sums over all rows."""
        times, values, k = sums[TIMES], sums[VALUES], self.degree
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, shared = values[:, 0] / times[:, 0], np.nan_to_num(times[:, 1:] / times[:, :1])
        centered = values[:, 1:] - np.nan_to_num(mean)[:, None] * times[:, 1 : k + 1]
        normal = [
            [np.sum(times[:, a + b] - times[:, a] * shared[:, b - 1], axis=0) for b in range(1, k + 1)]
            for a in range(1, k + 1)
        ]
        trend = np.zeros((0, values.shape[2]))
        if k:
            inverse = np.linalg.pinv(np.moveaxis(np.array(normal), 2, 0), rcond=DETERMINED, hermitian=True)
            trend = np.squeeze(inverse @ centered.sum(axis=0).T[:, :, None], axis=2).T
        return mean - np.sum(shared[:, :k] * trend, axis=1), trend

    def removed(self, values: Any, rows: RowLabels, what: str) -> Any:
        """Return values (n, d) at these rows minus the baseline, lazily unless they are in memory."""
        less = partial(_less, climatology=self.climatology, trend=self.trend)
        return by_block(less, values, self.design(rows, what), token="anomalies")


def _less(x: Array, design: Array, climatology: Any, trend: Any) -> Array:
    dtype = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else np.dtype(float)
    return np.asarray(x - climatology[design[:, 0].astype(int)] - design[:, 1:] @ trend, dtype=dtype)


def _times(rows: RowLabels, what: str) -> Array:
    """Return the time (n,) of each row; raise ValueError unless one coordinate has times, without NaT."""
    found = {name: c for name, c in rows.coords.items() if are_times(np.ravel(c.values))}
    found = {name: c for name, c in found.items() if name in rows.dims} or found
    times = next(iter(found.values())) if len(found) == 1 else None
    if times is None or (times.dtype.kind == "M" and np.isnat(times.values).any()):
        raise ValueError(
            f"anomaly= and detrend= require one coordinate of times (datetime64 or cftime, without NaT) along the "
            f"rows {(*rows.dims,)} of {what}, got {[*found]}"
        )
    along = tuple(dim for dim in rows.dims if dim in times.dims)
    shape = [size if dim in along else 1 for dim, size in zip(rows.dims, rows.sizes, strict=True)]
    return np.broadcast_to(times.transpose(*along).values.reshape(shape), rows.sizes).ravel()


def _labels(times: Array, anomaly: str | None) -> Array:
    """Return the component of each time that defines its group, (n,)."""
    import xarray as xr

    if anomaly is None:
        return np.zeros(len(times), int)
    if times.dtype.kind == "M":
        return np.asarray(getattr(xr.DataArray(times, dims="time").dt, anomaly).values)
    if anomaly == "season":
        return np.array([SEASONS[time.month % 12 // 3] for time in times])
    return np.array([getattr(time, {"dayofyear": "dayofyr"}.get(anomaly, anomaly)) for time in times])


def _days(times: Array) -> Array:
    """Return times as days since 1970 in their calendar, (n,) of float64."""
    if times.dtype.kind != "M":
        zero = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
        since = times - times[0].replace(year=1970, month=1, day=1, **zero)
        return np.array([part.days + (part.seconds + part.microseconds / 1e6) / 86400 for part in since])
    unit: Any = np.datetime_data(times.dtype)[0]
    unit = "D" if unit in ("Y", "M", "W") else unit
    per_day = np.timedelta64(1, "D") // np.timedelta64(1, unit)
    days, rest = np.divmod(times.astype(f"M8[{unit}]").astype(np.int64), per_day)  # units have different ranges
    return np.asarray(days + rest / per_day)


def _calendar(times: Array) -> str:
    return GREGORIAN[0] if times.dtype.kind == "M" else str(times[0].calendar)
