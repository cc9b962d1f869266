"""Source of row-aligned named fields: one array, views of each row, or pairs of rows of trajectories."""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.columns import check_columns
from daskspectral.data.containers import as_reader, points_reader
from daskspectral.data.files import is_files
from daskspectral.data.frames import is_frame
from daskspectral.data.readers import ArrayReader, DaskReader, JoinedReader, Reader, SelectedReader, lazy_rows
from daskspectral.data.rows import OpenedRows, Rows
from daskspectral.data.times import Clock, RowTimes, runs
from daskspectral.data.windows import Windows, in_windows, on_dask
from daskspectral.errors import column_name
from daskspectral.moments.autocovariance import ONE_SERIES, Series
from daskspectral.operators.base import check_given
from daskspectral.operators.paired import of_trajectories
from daskspectral.registry import Registered
from daskspectral.validation import is_sequence, loaded

if TYPE_CHECKING:
    import dask.array as da

    from daskspectral.data.layout import RowLabels
    from daskspectral.moments import Moments
    from daskspectral.operators import Operator
    from daskspectral.operators.regression import Regression

Array = NDArray[Any]
MOST_LOST = 0.1  # share of pairs that optional lags may cost
MOST_INVALID = 0.5  # share of rows, so that the others suffice


@dataclass(frozen=True, eq=False)
class Preparation(Registered):
    """Preparation of the columns of x: selection, then (x - mean) / scale.

    Without a scale the mean is a center near the rows, relative to which sums keep their digits; a scale standardizes
    columns, multiplies them by the roots of `weights` (d,), or both. Windows of `delays` rows have the columns of each
    in order.
    """

    columns: tuple[int, ...] | None = None
    mean: Array | None = None
    scale: Array | None = None
    delays: int = 1
    weights: Array | None = None

    @property
    def standardized(self) -> bool:
        """Whether columns are scaled by other factors than those of their weights."""
        if self.scale is None or self.weights is None:
            return self.scale is not None
        return not np.array_equal(self.scale, 1 / np.sqrt(self.weights))

    @property
    def row_columns(self) -> tuple[int, ...] | None:
        return None if self.columns is None else self.columns[: len(self.columns) // self.delays]

    def selected(self, x: Array) -> Array:
        return x if self.columns is None else x[:, list(self.columns)]

    def __call__(self, x: Array) -> Array:
        x = self.selected(x)
        if self.mean is not None:
            x = x - self.mean
            if self.scale is not None:
                x /= self.scale
        elif self.scale is not None:
            x = x / self.scale
        elif x.dtype.kind != "f" or x.dtype.itemsize < 4:
            x = x.astype(float)
        return x

    def inverse(self, points: Array, width: int) -> Array:
        """Return raw rows (..., width) of prepared points (..., d), 0 in columns that are not selected."""
        if self.scale is not None:
            points = points * self.scale
        if self.mean is not None:
            points = points + self.mean
        if self.columns is None:
            return points
        raw = np.zeros((*points.shape[:-1], width * self.delays), np.result_type(points, float))
        raw[..., list(self.columns)] = points
        return raw

    @property
    def of_directions(self) -> Preparation:
        """Preparation without the mean, for directions such as landmarks of a linear kernel."""
        return self if self.mean is None else replace(self, mean=np.zeros_like(self.mean))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Preparation:
        """Return the preparation from a saved `state`, which may contain other entries."""
        return cls(state["columns"], state["mean"], state["scale"], state.get("delays", 1), state.get("weights"))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of one trajectory in runs, with `borders` (R + 1,), whose rows all increase by one.

    `starts` has, for x and each further view, the first row (R,) of each run.
    """

    borders: Array
    starts: Mapping[str, Array]

    @classmethod
    def apart(cls, n: int, shifts: Mapping[str, int]) -> Self:
        count = max(0, n - max(shifts.values()))
        return cls(np.array([0, count]), {v: np.array([s]) for v, s in {"x": 0, **shifts}.items()})

    @classmethod
    def in_time(cls, clock: Clock, i: int, times: RowTimes, shifts: Mapping[str, int], *, whole: bool) -> Self:
        """Return the pairs of trajectory i of a clock, without a gap between their rows if `whole`."""
        if whole:
            spans = [(a, b - max(shifts.values())) for a, b in clock.segments(i)]
            spans = [(a, b) for a, b in spans if b > a]
            first = np.array([a for a, _ in spans], int)
            borders = np.cumsum([0, *(b - a for a, b in spans)])
            starts = {view: first + shift for view, shift in {"x": 0, **shifts}.items()}
        else:
            borders, *found = runs(numbers := clock.pairs(i, shifts))
            starts = dict(zip(numbers, found, strict=True))
        length, behind = len(clock.times[i]) * times.behind, times.behind
        count, copies = int(borders[-1]), np.arange(times.before)[:, None]
        starts = {view: (rows * behind + copies * length).ravel() for view, rows in starts.items()}
        borders = np.append((borders[:-1] + copies * count).ravel(), times.before * count) * behind
        return cls(borders, starts)

    @property
    def count(self) -> int:
        return int(self.borders[-1])

    def row(self, view: str, pair: int) -> int:
        run = int(np.searchsorted(self.borders, pair, "right")) - 1
        return int(self.starts.get(view, self.starts["x"])[run] + pair - self.borders[run])


@dataclass(frozen=True, eq=False)
class Lagged:
    """Pairs (x, future) of rows `lag` apart, of each trajectory in order.

    `longest` is the longest lag of all views, `series` the order in time of the pairs of a single array. Rows may be
    `windows`.
    """

    lag: int
    longest: int
    trajectories: tuple[Pairs, ...]
    series: Series = ONE_SERIES
    windows: tuple[Windows, ...] = ()

    @property
    def short(self) -> int:
        """Number of trajectories without pairs."""
        return sum(not pairs.count for pairs in self.trajectories)

    def place(self, field: str, pair: int) -> tuple[int, int]:
        """Return the trajectory and the row in it of a field of this pair."""
        borders = list(itertools.accumulate((pairs.count for pairs in self.trajectories), initial=0))
        t = bisect.bisect_right(borders, pair) - 1
        return t, self.trajectories[t].row(field, pair - borders[t])


@dataclass(frozen=True, eq=False)
class Source:
    """Source of n rows of named fields; `x` (n, d) first, others aligned with it.

    `views` are further fields of points in the space of x, prepared as x; `apart` are points in other spaces, with
    their preparations. `by_number` means that copies of its rows are assigned to several folds, `standardize` that a
    fit scales the columns, and `factors` (d,), by view, that their columns were multiplied by these. `options` are the
    values of on_invalid that errors may propose. With `progress` None passes show a bar on a terminal only, and not in
    addition to one of dask. `names` returns the names of the columns of raw x, or an empty sequence.
    """

    readers: Mapping[str, Reader]
    preparation: Preparation = field(default_factory=Preparation)
    views: tuple[str, ...] = ()
    apart: Mapping[str, Preparation] = field(default_factory=dict)
    lagged: Lagged | None = None
    by_number: bool = False
    standardize: bool = False
    factors: Mapping[str, Array] = field(default_factory=dict)
    on_invalid: str = "raise"
    progress: bool | None = False
    options: tuple[str, ...] = ("skip",)
    names: Callable[[], Sequence[str]] = field(default=tuple, repr=False)

    def remedy(self, share: float) -> str:
        """Return advice for invalid rows, which are this share of all rows."""
        option = "skip" if share <= MOST_INVALID else "pairwise"
        if option in self.options:
            return f"Clean the data, or pass Rows(X, on_invalid={option!r}) (--on-invalid {option})"
        if option == "skip":
            return "Clean the data, such as by X[numpy.isfinite(X).all(axis=1)]"
        return "Most rows are invalid: impute them, such as by sklearn.impute.KNNImputer, or drop columns"

    @property
    def n(self) -> int:
        return self.readers["x"].shape[0]

    @property
    def in_time(self) -> bool:
        """Whether rows are consecutive in time: those of trajectories, windows, and rows with times."""
        return self.lagged is not None or self.delays > 1 or in_order(self.readers["x"].times)

    @property
    def delays(self) -> int:
        """Number of rows of the data in each row, more than 1 for windows."""
        return self.preparation.delays

    @property
    def longest(self) -> int:
        """Number of rows from the first to the last row of the data in a pair or a window."""
        return self.delays - 1 + (0 if self.lagged is None else self.lagged.longest)

    @property
    def series(self) -> Series:
        """Order of rows in time, within each member of an ensemble."""
        times = self.readers["x"].times
        if self.lagged is not None:
            return self.lagged.series
        return ONE_SERIES if times is None or times.values is None else times.series_of(len(times.values))

    @property
    def edges(self) -> Array:
        """Borders of chunks of x along the rows."""
        return self.readers["x"].edges

    @property
    def rows(self) -> str:
        return f"{self.n} rows" if self.lagged is None else f"{self.n} pairs of rows {self.lagged.lag} apart"

    @property
    def n_features_in(self) -> int:
        return self.width("x")

    @property
    def dimension(self) -> int:
        """Number of columns of x after selection."""
        return self.dimension_at("x")

    @property
    def preparations(self) -> dict[str, Preparation]:
        return {**dict.fromkeys(("x", *self.views), self.preparation), **self.apart}

    @property
    def row_bytes(self) -> int:
        return 8 * sum(int(np.prod(r.shape[1:])) for r in self.readers.values())

    @property
    def dask_fields(self) -> dict[str, da.Array]:
        return {k: lazy_rows(r) for k, r in self.readers.items() if r.lazy}

    def column_name(self, column: int) -> str:
        chosen = self.preparation.columns
        number = column if chosen is None else chosen[column]
        return column_name(number % (self.n_features_in // self.delays), self.names())

    def place(self, field: str, row: int, delay: int = 0) -> tuple[int, int]:
        """Return the trajectory, and the row of the data in it, of a row of a field, or `delay` rows before it."""
        trajectory, windows = 0, self.readers["x"].windows
        if self.lagged is not None:
            trajectory, row = self.lagged.place(field, row)
            windows = self.lagged.windows[trajectory] if self.lagged.windows else None
        return trajectory, row if windows is None else windows.row(row, delay)

    def width(self, view: str) -> int:
        """Return the number of columns of the raw points of a view."""
        return self.readers[view].shape[1]

    def dimension_at(self, view: str) -> int:
        """Return the number of columns of a view after selection."""
        columns = self.preparations[view].columns
        return self.width(view) if columns is None else len(columns)

    def with_preparation(self, view: str = "x", **changes: Any) -> Source:
        """Return the source with other columns, mean or scale for a view and those of its space."""
        if view in self.apart:
            return replace(self, apart={**self.apart, view: replace(self.apart[view], **changes)})
        return replace(self, preparation=replace(self.preparation, **changes))


def open_source(
    rows: Any,
    *,
    views: Mapping[str, Any] | None = None,
    apart: Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    gaps: bool = False,
    progress: bool | None = False,
    **others: Any,
) -> Source:
    """Return a source of x (n, d) and further fields of n rows each, of any shape; None means not given.

    `views` are points (n, d) in the space of x, restricted to the same columns, `apart` points (n, q) in other spaces;
    rows may have `gaps`. Raises ValueError or TypeError for invalid shapes, dtypes or chunks, FileNotFoundError for a
    missing path; only metadata are read.
    """
    views, apart, rows = views or {}, apart or {}, Rows.of(rows)
    if fields is None and rows.fields:
        raise ValueError(f"fields {[*rows.fields]} are not used: omit them")
    if rows.on_invalid == "pairwise" and not gaps:
        raise ValueError("on_invalid='pairwise' requires Covariance() or Cross(). Pass on_invalid='skip'")
    readers = {"x": points_reader(rows.data, "X")}
    for name, value in {**views, **apart}.items():
        readers[name] = points_reader(value, name)
    width = readers["x"].shape[1]
    for name in views:
        if readers[name].shape[1] != width:
            raise ValueError(f"{name} must have {width} columns, as X has, got {readers[name].shape[1]}")
    for name, value in {**(fields or {}), **others}.items():
        if value is not None:
            readers[name] = as_reader(value, label_of(name))
    check_rows(readers)
    if rows.delays > 1:
        x = readers["x"]
        windows = _windows(rows.delays, x, clock_of([x], False), 0)
        if not windows.count:
            raise ValueError(
                f"delays={rows.delays} requires at least {rows.delays} consecutive rows of X, got {x.shape[0]} rows"
            )
        lazy = any(reader.lazy for reader in readers.values())
        readers = in_windows(on_dask(readers) if lazy else readers, ("x", *views, *apart), windows)
    prepared = {name: Preparation(delays=rows.delays) for name in apart}
    return _source(readers, rows, views=tuple(views), apart=prepared, progress=progress)


def _source(readers: dict[str, Reader], rows: Rows, **options: Any) -> Source:
    width = readers["x"].shape[1] // rows.delays
    columns = check_columns(rows.columns, width)
    if columns is not None:
        columns = tuple(delay * width + column for delay in range(rows.delays) for column in columns)
    prepared = Preparation(columns, delays=rows.delays)
    found = Source(aligned(readers), prepared, standardize=rows.standardize, on_invalid=rows.on_invalid, **options)
    if not isinstance(rows, OpenedRows):
        return found
    sides = {"x": (rows.factors, rows.weights)}
    sides |= dict.fromkeys(found.apart, (rows.right_factors, rows.right_weights))
    factors: dict[str, Array] = {}
    for view, both in sides.items():
        own, weights = (
            None if one is None else found.preparations[view].selected(np.tile(one, rows.delays)[None])[0]
            for one in both
        )
        if weights is not None:
            found = found.with_preparation(view, weights=weights, scale=1 / np.sqrt(weights))
            own = np.sqrt(weights) if own is None else own * np.sqrt(weights)
        if own is not None:
            factors[view] = own
    return replace(found, names=rows.names, factors=factors)


def label_of(name: str) -> str:
    """Return the name of a field in messages."""
    return {"x": "X", "weight": "sample_weight", "fold": "folds"}.get(name, name)


def check_rows(readers: Mapping[str, Reader], of: str = "") -> None:
    """Raise ValueError if a field has more or fewer rows than x, or weights or labels 2 dimensions."""
    n = readers["x"].shape[0]
    for name, reader in readers.items():
        label = label_of(name)
        if reader.shape[:1] != (n,) or (name in ("weight", "fold") and len(reader.shape) != 1):
            raise ValueError(f"{label}{of} must have {n} rows, as X{of} has, got the shape {reader.shape}")


def aligned(readers: dict[str, Reader]) -> dict[str, Reader]:
    """Return readers with the row chunks of the first dask array, if x or another field is one."""
    dask_names = [k for k, r in readers.items() if r.lazy]
    if not dask_names:
        return readers
    import dask.array as da

    rows, times = lazy_rows(readers[dask_names[0]]).chunks[0], readers["x"].times
    for name, reader in readers.items():
        if reader.lazy and (array := lazy_rows(reader)).chunks[0] != rows:
            readers[name] = replace(cast(DaskReader, reader), array=array.rechunk({0: rows}))
        elif name == "x" and isinstance(reader, ArrayReader) and not reader.is_sparse:
            readers[name] = DaskReader(da.from_array(reader.array, chunks=(rows, -1)))
        elif name == "x" and reader.in_memory:
            meta = np.empty((0, 0), reader.dtype)
            readers[name] = DaskReader(da.from_array(reader, chunks=(rows, -1), asarray=False, meta=meta))
        elif name == "x" and not reader.lazy:
            raise TypeError("X is a zarr array but another field a dask array. Pass X as dask.array.from_zarr(...)")
    readers["x"].set_times(times)  # the new reader of the same rows has no times
    return readers


def open_trajectories(
    rows: Any,
    lag: int,
    *,
    further: Mapping[str, int] | None = None,
    fields: Mapping[str, Any] | None = None,
    whole: bool = False,
    progress: bool | None = False,
) -> Source:
    """Return a source of the pairs (x, future) of rows `lag` apart within each trajectory, in order.

    `further` are the shifts in rows from x to further views, by name; pairs must have all of them. Rows with times are
    shifted by steps in time (`Clock`); if `whole`, no row between them is missing. The data are one trajectory (n, d),
    or a list of several; `fields` have the same form, and a pair has the value of the row of its x. Trajectories that
    are not longer than the longest lag are skipped; `Source.lagged.short` is their number.

    Raises as `open_source`, and ValueError if all trajectories are skipped, or for a longer one without rows that are
    this far apart in time.
    """
    rows, shifts = Rows.of(rows), {"future": lag, **(further or {})}
    longest = max(shifts.values())
    several = is_several(rows.data)
    given = {"x": rows.data, **{name: value for name, value in (fields or {}).items() if value is not None}}
    count = len(rows.data) if several else 1
    trajectories: list[dict[str, Reader]] = [{} for _ in range(count)]
    for name, value in given.items():
        if several and (not is_sequence(value) or len(value) != count):
            raise ValueError(f"{label_of(name)} must be a list of {count} arrays, one for each trajectory")
        for i, part in enumerate(value if several else [value]):
            label = f"{label_of(name)}[{i}]" if several else label_of(name)
            trajectories[i][name] = (points_reader if name == "x" else as_reader)(part, label)
    for i, readers in enumerate(trajectories):
        _check_trajectory(i if several else None, readers, trajectories[0])
    points = [readers["x"] for readers in trajectories]
    clock = clock_of(points, several)
    windows: tuple[Windows, ...] = ()
    lazy = any(readers[name].lazy for readers in trajectories for name in readers)
    if rows.delays > 1:
        windows = tuple(_windows(rows.delays, x, clock, i) for i, x in enumerate(points))
        if not any(found.count for found in windows):
            most = max(reader.shape[0] for reader in points)
            raise ValueError(
                f"delays={rows.delays} requires at least {rows.delays} consecutive rows of X, got at most {most}"
            )
        if clock is not None:
            places = [found.steps(x.times) for found, x in zip(windows, points, strict=True) if x.times is not None]
            clock = replace(clock, times=tuple(t[some] for t, some in zip(clock.times, places, strict=True)))
        trajectories = [
            in_windows(on_dask(readers) if lazy else readers, ("x",), found)
            for readers, found in zip(trajectories, windows, strict=True)
        ]
        points = [readers["x"] for readers in trajectories]
    pairs = [
        Pairs.apart(reader.shape[0], shifts)
        if clock is None or reader.times is None
        else Pairs.in_time(clock, i, reader.times, shifts, whole=whole)
        for i, reader in enumerate(points)
    ]
    if clock is None:
        if longest >= (most := max(reader.shape[0] for reader in points)):
            which = "the longest lag" if longest > lag else "the lag"
            raise ValueError(f"{which} must be less than the length of the longest trajectory, {most}, got {longest}")
    elif not any(found.count for found in pairs) or not whole:
        _check_clock(clock, pairs, longest, several)

    def joined(name: str, view: str = "x") -> Reader:
        return _join(name, [readers[name] for readers in trajectories], pairs, view, lazy, whole)

    readers = {"x": joined("x"), **{view: joined("x", view) for view in shifts}}
    readers |= {name: joined(name) for name in given if name != "x"}
    times, series = points[0].times, ONE_SERIES
    if clock is not None and times is not None and not several:
        series = times.series_of(pairs[0].count // (times.before * times.behind))
    lagged = Lagged(lag, longest, tuple(pairs), series, windows)
    return _source(readers, rows, views=tuple(shifts), lagged=lagged, progress=progress)


def _windows(delays: int, x: Reader, clock: Clock | None, i: int) -> Windows:
    """Return the windows of consecutive rows of trajectory i, by the steps of a clock if there is one."""
    shifts = {"last": delays - 1}
    if clock is None or x.times is None:
        pairs, stride = Pairs.apart(x.shape[0], shifts), 1
    else:
        pairs, stride = Pairs.in_time(clock, i, x.times, shifts, whole=True), x.times.behind
    return Windows(delays, stride, pairs.starts["last"], pairs.borders)


def windows_of(X: Any, labels: RowLabels | None, delays: int) -> tuple[Reader, RowLabels | None]:
    """Return the windows of rows of X, and the labels of their last rows; raise as `clock_of`."""
    reader = points_reader(X, "X")
    found = _windows(delays, reader, clock_of([reader], False), 0)
    return found.of(reader), labels and found.labels(labels, reader.times)


def clock_of(points: Sequence[Reader], several: bool) -> Clock | None:
    """Return the clock of trajectories, None without times; ValueError if only some have times."""
    times = [reader.times for reader in points if reader.times is not None]
    if not times:
        return None
    names = [f"X[{i}]" for i in range(len(points))] if several else ["X"]
    if len(times) < len(points):
        bare = next(name for name, reader in zip(names, points, strict=True) if reader.times is None)
        raise ValueError(
            f"{bare} has no times, but other trajectories have. Pass all trajectories with times, or all without"
        )
    return Clock.of(times, names)


def _trajectories(data: Any) -> list[Reader]:
    if not is_several(data):
        return [points_reader(data, "X")]
    return [points_reader(part, f"X[{i}]") for i, part in enumerate(data)]


def lag_in_rows(lag: int | str, data: Any) -> int:
    """Return a lag in rows, converted by the times of the data if it is in time.

    Raises ValueError for rows without times, or if it is not a whole number of steps.
    """
    if not isinstance(lag, str):
        return lag
    clock = clock_of(_trajectories(data), is_several(data))
    if clock is None:
        raise ValueError(f"lag={lag!r} requires rows of X with times. Pass it in rows")
    return clock.steps(lag)


def in_rows(operator: Operator, rows: Rows) -> Operator:
    """Return the operator with a lag in rows, without optional lags that are too long for the trajectories."""
    if not of_trajectories(operator):
        return operator
    found = operator.in_rows(lag_in_rows(operator.first_lag, rows.data))
    if found.without_optional_lags is None:
        return found
    lengths = np.array([reader.shape[0] for reader in _trajectories(rows.data)])
    pairs, longest = np.maximum(lengths - found.first_lag, 0), max(found.lags)
    lost = pairs[lengths <= longest].sum() > MOST_LOST * pairs.sum()
    return found.without_optional_lags if lost else found


def _check_clock(clock: Clock, pairs: Sequence[Pairs], longest: int, several: bool) -> None:
    """Raise ValueError for a trajectory longer than the lag without two rows this far apart in time."""
    for i, found in enumerate(pairs):
        if not found.count and (len(clock.times[i]) > longest or not any(one.count for one in pairs)):
            which = f"trajectory {i}" if several else "X"
            raise ValueError(f"{which} must have rows {longest} steps of {clock} apart, but its times have gaps or end")


def check_even(source: Source, why: str) -> None:
    """Raise ValueError, with the reason `why`, if the times of the rows of X are not one step apart."""
    times = source.readers["x"].times
    if times is None:
        return
    if times.values is None:
        raise ValueError(f"{why}, but X has rows along {times.label}, none of which is 'time'. Pass sample_dims='time'")
    row = Clock.of([times], ["X"]).gap(0)
    if row is not None:
        raise ValueError(f"{why} without gaps, but {times.label!r} has one at row {row} of X. Pass a part without gaps")


def in_order(times: RowTimes | None) -> bool:
    """Return whether rows have times of a clock, in which they are consecutive."""
    return times is not None and times.of_clock


LABELED = ("zarr.Array", "zarr.Group", "xarray.DataArray", "xarray.Dataset")


def is_several(x: Any) -> bool:
    """Return whether this is a list of arrays or paths, rather than one array as a list of rows."""
    if not is_sequence(x) or not x:
        return False
    arrays = (np.ndarray, Reader, str, os.PathLike, loaded("dask.array.Array", *LABELED))
    return any(isinstance(part, arrays) or is_frame(part) for part in x) or np.ndim(x[0]) > 1


def are_trajectories(x: Any) -> bool:
    """Return whether this is a list of several arrays of rows, not of files of one array."""
    return is_several(x) and not is_files(x)


def joined_rows(readers: Sequence[Reader]) -> Reader:
    """Return the concatenated rows of several readers."""
    if not any(reader.lazy for reader in readers):
        return JoinedReader(tuple(readers), tuple((0, reader.shape[0]) for reader in readers))
    import dask.array as da

    files = tuple(file for reader in readers for file in reader.files)
    return DaskReader(da.concatenate([lazy_rows(reader) for reader in readers]), files)


def _check_trajectory(i: int | None, readers: Mapping[str, Reader], first: Mapping[str, Reader]) -> None:
    """Raise ValueError if the fields of a trajectory do not fit each other, or those of the first."""
    of = "" if i is None else f"[{i}]"
    check_rows(readers, of)
    for name, reader in readers.items():
        if reader.shape[1:] != first[name].shape[1:]:
            raise ValueError(
                f"{label_of(name)}{of} must have rows of the shape {first[name].shape[1:]}, as that of the first "
                f"trajectory, got {reader.shape[1:]}"
            )


def _join(name: str, readers: Sequence[Reader], pairs: Sequence[Pairs], view: str, lazy: bool, whole: bool) -> Reader:
    """Return the rows of pairs as one reader, concatenated by dask if `lazy`."""
    if not lazy:
        return _joined(readers, pairs, view, whole)
    import dask.array as da

    arrays = []
    for reader, of in zip(readers, pairs, strict=True):
        if not isinstance(reader, (DaskReader, ArrayReader)):
            raise TypeError(
                f"{label_of(name)} must not mix zarr and dask arrays. Pass all as dask.array.from_zarr(...)"
            )
        starts, array = of.starts[view], da.asarray(reader.array)
        if not of.count:
            continue
        if len(starts) == 1:
            arrays.append(array[int(starts[0]) : int(starts[0]) + of.count])
        else:
            arrays.append(array[SelectedReader(reader, starts, of.borders).rows(0, of.count)])
    files = tuple(file for reader in readers for file in reader.files)
    return DaskReader(da.concatenate(arrays), files)


def _joined(readers: Sequence[Reader], pairs: Sequence[Pairs], view: str, whole: bool) -> JoinedReader:
    parts, spans = [], []
    for reader, of in zip(readers, pairs, strict=True):
        starts, counts = of.starts[view], np.diff(of.borders)
        if not of.count:
            parts.append(reader)
            spans.append((0, 0))
        elif whole or len(starts) == 1:
            parts += [reader] * len(starts)
            spans += list(zip(starts.tolist(), (starts + counts).tolist(), strict=True))
        else:
            parts.append(SelectedReader(reader, starts, of.borders))
            spans.append((0, of.count))
    return JoinedReader(tuple(parts), tuple(spans))


def open_data(
    operator: Operator, rows: Rows, *, weight: Any, fold: Any = None, progress: bool | None = False
) -> Source:
    """Return the data of an operator: an array, the views of each row, or pairs of trajectories.

    Raises ValueError or TypeError if the data do not fit the operator; only metadata are read.
    """
    X, labels = rows.data, {"weight": weight, "fold": fold}
    given = {name: value for name, value in (rows.fields or {}).items() if value is not None}
    check_given(operator, given)
    views, apart = operator.views, operator.own_right_basis
    if of_trajectories(operator):
        further = {view: operator.shifts[view] for view in views[1:]}
        source = open_trajectories(
            rows, operator.shifts["future"], further=further, fields={**labels, **given}, progress=progress
        )
    else:
        others: dict[str, Any] = {}
        if len(views) > 1:
            if not is_sequence(X) or len(X) != len(views):
                named = ", ".join(views)
                raise ValueError(f"X must be a tuple of {len(views)} views of each row for {operator.name}: ({named})")
            rows, others = replace(rows, data=X[0]), dict(zip(views[1:], X[1:], strict=True))
        right = {operator.right_view: others.pop(operator.right_view)} if apart else {}
        shared: dict[str, Any] = {"fields": given, "gaps": operator.takes_gaps, "progress": progress}
        source = open_source(rows, views=others, apart=right, **shared, **labels)
    shapes = {name: source.readers[name].shape[1:] for name in given}
    operator.check(shapes, source.dimension, source.dimension_at(operator.right_view) if apart else None)
    return source


def check_widths(before: Moments, source: Source) -> None:
    """Raise ValueError if points have other numbers of columns than the fit, or unexpected gaps."""
    if source.on_invalid == "pairwise" and before.pairs is None:
        raise ValueError("on_invalid='pairwise' requires a model that was fitted with it. Pass on_invalid='skip'")
    operator, fitted = before.operator, {"x": before.preparation}
    if operator.own_right_basis:
        fitted[operator.right_view] = before.preparation["right"]
    for view, preparation in fitted.items():
        found, wanted = source.width(view), preparation["n_features_in"]
        if found != wanted:
            raise ValueError(f"{label_of(view)} must have the {wanted} columns of the fit, got {found}")


def open_regression(
    rows: Any,
    y: Any,
    *,
    gradients: Any = None,
    weight: Any = None,
    fold: Any = None,
    slopes: bool = False,
    progress: bool | None = False,
) -> tuple[Source, Regression]:
    """Return rows with their targets and gradients, and the operator; ValueError if shapes do not fit."""
    from daskspectral.operators.regression import Regression

    source = open_source(rows, weight=weight, fold=fold, y=y, gradients=gradients, progress=progress)
    shapes = {name: reader.shape for name, reader in source.readers.items()}
    if "y" not in shapes:
        if slopes and "gradients" in shapes:
            shape, n, d = shapes["gradients"], source.n, source.n_features_in
            if len(shape) not in (2, 3) or shape[-1] != d or 0 in shape:
                raise ValueError(f"gradients must have shape {(n, d)}, or ({n}, m, {d}) for m targets, got {shape}")
            targets = shape[1] if len(shape) == 3 else None
            return source, Regression(gradients=True, targets=targets, values=False)
        either = ", or gradients" if slopes else ""
        raise ValueError(
            f"this requires y to be passed, but the target y is {None}: pass y of shape (n,) or (n, m){either}"
        )
    y = shapes["y"]
    if len(y) > 2 or 0 in y:
        raise ValueError(f"y must have shape (n,) or (n, m), got {y}")
    wanted = (*y, source.n_features_in)
    accepted = {wanted, (y[0], source.n_features_in)} if y[1:] in ((), (1,)) else {wanted}  # also (n, d) for one column
    if "gradients" in shapes and shapes["gradients"] not in accepted:
        raise ValueError(f"gradients must have shape {wanted}, got {shapes['gradients']}")
    return source, Regression("gradients" in shapes, y[1] if len(y) == 2 else None)
