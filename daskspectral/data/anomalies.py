"""Anomalies of fields in time: what is left of them without the mean of each month, or season, and without a trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.loaded import loaded
from daskspectral.data.readers import Reader, lazy_rows
from daskspectral.registry import Registered

if TYPE_CHECKING:
    import xarray as xr

    from daskspectral.data.layout import RowLabels

Array = NDArray[Any]
GROUPS = ("month", "season", "dayofyear", "hour")
MOST_DEGREE = 10
TIMES, VALUES = "times", "values"
DETERMINED = 1e-10  # of the largest eigenvalue of normal equations in times within -1 to 1


@dataclass(frozen=True, eq=False)
class Baseline(Registered):
    """The least-squares fit of each column by the means of groups of times and a polynomial of a degree in time.

    `anomaly` is the component of the times that makes groups, and `labels` (G,) are its values; None and one group
    without. With t = (days since 1970 - centre) / half, from -1 to 1 over the times of the fit, the baseline of a group
    g is climatology_g + sum_a trend_a t^a, a = 1, ..., degree; they are (G, d) and (degree, d), fitted together.
    """

    anomaly: str | None
    degree: int
    labels: tuple[Any, ...]
    centre: float
    half: float
    climatology: Array | None = None
    trend: Array | None = None

    def __str__(self) -> str:
        parts = [f"the mean of each {self.anomaly}" if self.anomaly else "the mean"]
        parts += [f"a trend of degree {self.degree}"] if self.degree else []
        return f"less {' and '.join(parts)}"

    @classmethod
    def of(cls, rows: RowLabels, what: str, anomaly: str | None, degree: int) -> Self:
        """The groups and the scale of the times of these rows, before any values are read.

        Raises ValueError where the rows have no times, or so few that nothing would be left of them.
        """
        labels, days = _labels(rows, what, anomaly), _days(rows, what)
        groups = tuple(np.unique(labels).tolist())
        if len(np.unique(_times(rows, what).values)) <= len(groups) + degree:
            raise ValueError(
                f"{what} has {len(labels)} times, and the means of {len(groups)} groups of them with a trend of degree "
                f"{degree} leave nothing: give longer series, or take coarser groups and a lower degree"
            )
        return cls(anomaly, degree, groups, float(days.min() + np.ptp(days) / 2), float(np.ptp(days)) / 2 or 1.0)

    def design(self, rows: RowLabels, what: str) -> Array:
        """The number of the group, and t, ..., t^degree, of each row, (n, 1 + degree).

        Raises ValueError for a group without times in the fit.
        """
        labels = _labels(rows, what, self.anomaly)
        strange = sorted({*labels.tolist()} - {*self.labels})
        if strange:
            raise ValueError(
                f"{what} has times of the {self.anomaly} {strange[0]}, and the fit had none, so that their mean is not "
                f"known; it had {', '.join(map(str, self.labels))}"
            )
        t = (_days(rows, what) - self.centre) / self.half
        return np.column_stack([np.searchsorted(self.labels, labels), t[:, None] ** np.arange(1, self.degree + 1)])

    def sums(self, x: Array, design: Array, gaps: bool) -> dict[str, Array]:
        """By group the sums over rows of t^a, a = 0, ..., 2 degree, for all columns or where they are present, and of
        x t^a, a = 0, ..., degree: (G, 2 degree + 1, 1 or d) and (G, degree + 1, d)."""
        k, group = self.degree, design[:, 0]
        powers = (design[:, 1:2] if k else np.zeros((len(x), 1))) ** np.arange(2 * k + 1)
        present = np.isfinite(x) if gaps else np.ones((len(x), 1))
        x = np.where(present, x, 0).astype(float) if gaps else np.asarray(x, dtype=float)
        members = [np.flatnonzero(group == g) for g in range(len(self.labels))]
        times = np.stack([powers[m].T @ present[m] for m in members])
        return {TIMES: times, VALUES: np.stack([powers[m, : k + 1].T @ x[m] for m in members])}

    def solved(self, sums: Mapping[str, Array]) -> tuple[Array, Array]:
        """The climatology, NaN where nothing is present of a group, and the trend, from sums over all rows."""
        times, values, k = sums[TIMES], sums[VALUES], self.degree
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, shared = values[:, 0] / times[:, 0], np.nan_to_num(times[:, 1:] / times[:, :1])
        centred = values[:, 1:] - np.nan_to_num(mean)[:, None] * times[:, 1 : k + 1]
        normal = [
            [np.sum(times[:, a + b] - times[:, a] * shared[:, b - 1], axis=0) for b in range(1, k + 1)]
            for a in range(1, k + 1)
        ]
        trend = np.zeros((0, values.shape[2]))
        if k:
            inverse = np.linalg.pinv(np.moveaxis(np.array(normal), 2, 0), rcond=DETERMINED, hermitian=True)
            trend = np.squeeze(inverse @ centred.sum(axis=0).T[:, :, None], axis=2).T
        return mean - np.sum(shared[:, :k] * trend, axis=1), trend

    def removed(self, values: Any, rows: RowLabels, what: str) -> Any:
        """Values (n, d) at these rows less the baseline, lazily where they are not in memory."""
        import dask.array as da

        design = self.design(rows, what)
        values = lazy_rows(values) if isinstance(values, Reader) else values
        own: dict[str, Any] = {"climatology": self.climatology, "trend": self.trend}
        if not isinstance(values, loaded("dask.array.Array")):
            return _less(np.asarray(values), design, **own)
        meta = _less(np.empty((0, values.shape[1]), values.dtype), design[:0], **own)
        beside = da.from_array(design, chunks=(values.chunks[0], -1))
        return da.map_blocks(_less, values, beside, token="anomalies", chunks=values.chunks, meta=meta, **own)


def _less(x: Array, design: Array, climatology: Array, trend: Array) -> Array:
    dtype = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else np.dtype(float)
    return np.asarray(x - climatology[design[:, 0].astype(int)] - design[:, 1:] @ trend, dtype=dtype)


def _times(rows: RowLabels, what: str) -> xr.DataArray:
    """The coordinate of times. Raises ValueError where the rows have none, or have other dimensions too."""
    found: Any = rows.coords.get(rows.dims[0]) if len(rows.dims) == 1 else None
    if found is None or np.asarray(found.values).dtype.kind != "M" or np.isnat(found.values).any():
        raise ValueError(
            f"anomaly= and detrend= are along one dimension of rows with times (datetime64) as its coordinate, and the "
            f"rows of {what} are {(*rows.dims,)}: give sample_dims=('time',), or decode the times by xarray.decode_cf"
        )
    return found  # type: ignore[no-any-return]


def _labels(rows: RowLabels, what: str, anomaly: str | None) -> Array:
    times = _times(rows, what)
    return np.zeros(len(times), int) if anomaly is None else np.asarray(getattr(times.dt, anomaly).values)


def _days(rows: RowLabels, what: str) -> Array:
    times = _times(rows, what).values
    return (times.astype("M8[ns]") - np.datetime64(0, "ns")) / np.timedelta64(1, "D")
