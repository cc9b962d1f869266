"""Rows with times are paired by them: a pair spans the lag in time, or is no pair."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.data.columns import ColumnSelection
from daskspectral.data.containers import named_reader
from daskspectral.data.labeled import stack_rows
from daskspectral.data.source import lag_in_rows, open_trajectories
from daskspectral.operators import Transfer
from daskspectral.operators.lags import lag_of
from tests.common import autoregression, koopman, unreliable
from tests.data.test_trajectories import read

Array = NDArray[Any]


def field(times: Any, width: int = 2) -> xr.DataArray:
    """Rows whose first column is their number."""
    x = np.random.default_rng(0).standard_normal((len(times), width))
    x[:, 0] = np.arange(len(times))
    return xr.DataArray(x, {"time": times}, ("time", "place"), name="t")


def found_pairs(X: Any, lag: int, **rows: Any) -> list[tuple[int, int]]:
    """The numbers of the rows of all pairs."""
    several = isinstance(X, list)
    stacked = [stack_rows(x, **rows) for x in (X if several else [X])]
    readers = [x if s is None else s.reader for x, s in zip(X if several else [X], stacked, strict=True)]
    source = open_trajectories(readers if several else readers[0], lag)
    lazy = source.dask_fields
    values = {k: v.compute() for k, v in lazy.items()} if lazy else read(source)
    return [(int(a), int(b)) for a, b in zip(values["x"][:, 0], values["future"][:, 0], strict=True)]


def by_calendar(index: Sequence[float], lag: int) -> list[tuple[int, int]]:
    """The pairs of rows whose numbers on a full calendar are the lag apart, by two loops."""
    return [(i, j) for i, a in enumerate(index) for j, b in enumerate(index) if b - a == lag]


def some(n: int, share: float, seed: int = 0) -> Array:
    return np.flatnonzero(np.random.default_rng(seed).uniform(size=n) < share)


def winters(freq: str) -> tuple[pd.DatetimeIndex, list[int]]:
    whole = pd.date_range("1990-01-01", "1999-12-31", freq=freq)
    kept = [i for i, t in enumerate(whole) if t.month in (12, 1, 2)]
    return whole[kept], kept


def thinned(times: Any, share: float = 0.8) -> tuple[Any, list[Any]]:
    kept = some(len(times), share)
    return times[kept], kept.tolist()


def dated(first: str, count: int, freq: str) -> pd.DatetimeIndex:
    return pd.date_range(first, periods=count, freq=freq)


def of_cftime(calendar: str, count: int, freq: str) -> Any:
    times = xr.date_range("1900-01-01", periods=count, freq=freq, calendar=calendar, use_cftime=True)
    return np.asarray(times, dtype=object)


CALENDARS: dict[str, tuple[Any, list[Any]]] = {
    "daily": winters("D"),
    "monthly": winters("MS"),
    "ends of months": winters("ME"),
    "yearly": thinned(dated("1900", 60, "YS")),
    "seasons": thinned(dated("1900-12", 60, "QS-DEC")),
    "middles of months": thinned(dated("1950", 400, "MS") + pd.Timedelta("15D")),
    "fractions": thinned(dated("2000-02-27", 100, "250us")),
    "nanoseconds": thinned(dated("2000-02-27", 100, "25ns")),
    "periods": thinned(pd.period_range("2000", periods=99, freq="M")),
    "weeks": thinned(np.arange("2000", "2010", 7, dtype="M8[D]")),
    "numbers": thinned(0.1 * np.arange(300) + 1e4),
    "more gaps than rows": thinned(np.arange(300), 0.3),
    "one in between": (np.sort(np.append(np.arange(300.0), 0.5)), [0, 0.5, *range(1, 300)]),
    "jittered": (np.arange(300) + np.random.default_rng(0).uniform(-0.1, 0.1, 300), list(range(300))),
    "a slow clock": thinned(1.000003 * np.arange(3000), 0.9),
    "days without leap days": thinned(of_cftime("noleap", 1000, "D")),
    "ends of months of a calendar": thinned(of_cftime("julian", 240, "ME")),
    "months of a calendar": thinned(of_cftime("noleap", 240, "MS")),
    "dates of Python": thinned(np.array([datetime.date(2000, 2, 1) + datetime.timedelta(days=k) for k in range(60)])),
    "with a zone": thinned(pd.date_range("2000-03-25", periods=99, freq="h", tz="Europe/Paris")),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("lag", [1, 12])
@pytest.mark.parametrize("name", CALENDARS)
def test_pairs_are_the_lag_apart_in_time(name: str, lag: int) -> None:
    times, index = CALENDARS[name]
    wanted = by_calendar(index, lag)
    x = field(np.asarray(times) if not isinstance(times, pd.DatetimeIndex) else times)
    if not wanted:
        with pytest.raises(ValueError, match=r"time"):
            found_pairs(x, lag)
        return
    assert found_pairs(x, lag) == wanted
    assert found_pairs(x.chunk(time=7), lag) == wanted


KINDS: dict[str, Any] = {
    "pandas": lambda frame, path: frame,
    "polars": lambda frame, path: pl.from_pandas(frame),
    "Arrow": lambda frame, path: pa.Table.from_pandas(frame),
    "batch": lambda frame, path: pa.RecordBatch.from_pandas(frame),
    "parquet": lambda frame, path: frame.to_parquet(path / "x.parquet", row_group_size=100) or path / "x.parquet",
    "parquet of polars": lambda frame, path: (
        pl.from_pandas(frame).write_parquet(path / "p.parquet") or path / "p.parquet"
    ),
    "zarr": lambda frame, path: dated_field(frame).chunk(day=50).to_zarr(path / "z") and path / "z",
    "netcdf": lambda frame, path: dated_field(frame).to_netcdf(path / "x.nc") or path / "x.nc",
    "dask": lambda frame, path: dated_field(frame).x.chunk(day=11),
}


INDICES = ["index", "unnamed index", "numbers", "members", "members of each day"]
PLACES = [(kind, "index") for kind in ("zarr", "netcdf", "dask")]
PLACES += [(kind, where) for kind in ("pandas", "Arrow", "batch", "parquet") for where in INDICES]
PLACES += [(kind, "column") for kind in (*KINDS,)[:6]]


def dated_field(frame: pd.DataFrame) -> xr.Dataset:
    return xr.DataArray(frame.to_numpy(), {"day": frame.index.to_numpy()}, ("day", "place"), name="x").to_dataset()


@pytest.mark.one_in(6)
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize(("kind", "where"), PLACES, ids=" ".join)
def test_all_containers_are_paired_by_their_index_or_their_dates(kind: str, where: str, tmp_path: Path) -> None:
    times, numbers = winters("D")
    wanted = by_calendar(numbers, 2)
    frame = pd.DataFrame({"a": np.arange(float(len(times))), "b": 0.0}, times.rename("day"))
    columns = None
    if where == "unnamed index":
        frame.index.name = None
    elif where == "numbers":
        frame.index = pd.Index(86400 * np.array(numbers), name="seconds")
    elif where == "column":
        frame, columns = frame.reset_index()[["a", "day", "b"]], ["a", "b"]
    elif "members" in where:
        frame = pd.concat({0: frame, 1: frame + 1000}, names=["member", "day"])
        frame = frame if where == "members" else frame.swaplevel().sort_index()
        wanted += [(1000 + i, 1000 + j) for i, j in wanted]
    data, chosen = KINDS[kind](frame, tmp_path), ColumnSelection.by_user(columns)
    in_file = isinstance(data, Path)
    found = found_pairs(data, 2, wanted=chosen) if in_file else found_pairs(named_reader(data, "X", chosen), 2)
    assert sorted(found) == wanted


@unreliable
def test_chosen_columns_keep_their_times(tmp_path: Path) -> None:
    times, index = winters("D")
    x = np.column_stack([autoregression(len(index)), autoregression(len(index), seed=1)])
    frame = pd.DataFrame(x, times, ["a", "b"])
    frame.to_parquet(tmp_path / "x.parquet")
    field = xr.DataArray(x, {"time": times, "name": ["a", "b"]}, ("time", "name"))
    model = koopman(Transfer(2), dsp.basis.MonomialBasis(1, 1), n_components=2, random_state=0)
    for data in ([frame], field.chunk(), [field], str(tmp_path / "x.parquet")):
        for rows in (dsp.Rows(data, columns=["b"]), dsp.Rows(data, columns=[1], standardize=True)):
            assert model.fit(rows).moments_.count == len(by_calendar(index, 2))


@pytest.mark.parametrize("dims", [("time", "member"), ("member", "time"), ("lat", "time", "member")])
@pytest.mark.parametrize("named", [True, False])
def test_rows_of_several_dimensions_are_paired_along_time(dims: tuple[str, ...], named: bool) -> None:
    kept = some(30, 0.7) if named else np.arange(30)
    numbers = np.arange(30 * 6.0).reshape(30, 3, 2, 1)
    x = xr.DataArray(numbers, {"time": np.arange(30)}, ("time", "member", "lat", "place"))
    x = (x if named else x.drop_vars("time")).isel(time=kept)
    x = x.isel(lat=0) if "lat" not in dims else x
    ordered = x.transpose(*dims, "place").values[..., 0]
    where = {int(ordered[place]): place for place in np.ndindex(ordered.shape)}
    axis, found = dims.index("time"), found_pairs(x, 2, sample_dims=dims)
    for a, b in found:
        assert kept[where[b][axis]] - kept[where[a][axis]] == 2
        assert where[a][:axis] + where[a][axis + 1 :] == where[b][:axis] + where[b][axis + 1 :]
    assert len(found) == len(by_calendar(kept.tolist(), 2)) * len(where) // len(kept)
    assert len({*found}) == len(found)


DAYS = np.datetime64("2000-01-01") + np.array([0, 1, 3, 2, 4]).astype("m8[D]")
BAD: dict[str, Any] = {
    "an earlier day": field(DAYS),
    "a number twice": field([0, 1, 1, 2, 3]),
    "NaN": field([0.0, 1.0, np.nan, 3.0, 4.0]),
    "no day": field(np.where(DAYS[2] == DAYS, np.datetime64("NaT"), np.sort(DAYS))),
    "a frame": pd.DataFrame({"a": np.arange(5.0)}, index=DAYS),
    "another step": [field(np.arange(50.0)), field(2 * np.arange(9.0))],
    "no times": [field(np.arange(50.0)), field(np.arange(50.0)).drop_vars("time")],
    "another kind": [field(np.arange(50.0)), field(pd.date_range("2000", periods=9))],
}


@pytest.mark.parametrize("name", BAD)
def test_times_that_do_not_increase_by_one_step_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"row [23]\b|trajectory 1|X\[[01]\]"):
        found_pairs(BAD[name], 1)


DAY = datetime.timedelta(days=1)
EQUAL = [("24h", "2D"), (np.timedelta64(86400, "s"), np.timedelta64(2, "D")), (DAY, 2 * DAY)]


@pytest.mark.one_in(3)
@unreliable
@pytest.mark.parametrize("lag", EQUAL)
def test_a_lag_in_time_is_converted_by_the_step(lag: Any, tmp_path: Path) -> None:
    times = pd.date_range("2000", periods=400, freq="6h")
    x = xr.DataArray(autoregression(400), {"time": times}, ("time", "place"))
    shared: dict[str, Any] = {"n_components": 2, "random_state": 0}
    model = koopman(Transfer(lag), dsp.basis.MonomialBasis(1, 1), **shared)
    wanted = koopman(Transfer((4, 8)), dsp.basis.MonomialBasis(1, 1), **shared).fit(x)
    np.testing.assert_array_equal(model.fit(x).lags_, [4, 8])
    np.testing.assert_array_equal(model.timescales_, wanted.timescales_)
    assert model.score(x) == wanted.score(x)
    assert model.fit_moments(wanted.moments_).lags_[0] == 4
    model.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    assert again.operator == model.operator
    np.testing.assert_array_equal(again.timescales_, wanted.timescales_)
    frame = pd.DataFrame(x.values, index=times)
    np.testing.assert_array_equal(model.fit(frame).lags_, [4, 8])
    np.testing.assert_array_equal(model.fit([frame, frame]).lags_, [4, 8])


UNDATED = np.zeros((40, 1))


@pytest.mark.parametrize(
    ("freq", "lag", "rows"),
    [
        ("MS", "1M", 1),
        ("ME", "6M", 6),
        ("YS", np.timedelta64(5, "Y"), 5),
        ("D", "1W", 7),
        ("10ms", "1s", 100),
        ("50ns", "1us", 20),
    ],
)
def test_lags_in_calendar_months_and_in_units(freq: str, lag: Any, rows: int) -> None:
    assert lag_in_rows(lag_of(lag), pd.DataFrame(UNDATED, pd.date_range("2000", periods=40, freq=freq))) == rows


LAGS: list[tuple[str | None, str]] = [("D", "12h"), ("MS", "30D"), ("D", "1M"), ("6h", "7h"), (None, "6h")]


@pytest.mark.parametrize(("freq", "lag"), LAGS)
def test_a_lag_in_time_is_a_multiple_of_the_step(freq: str | None, lag: str) -> None:
    frame = pd.DataFrame(UNDATED, None if freq is None else pd.date_range("2000", periods=40, freq=freq))
    with pytest.raises(ValueError, match=lag):
        koopman(Transfer(lag)).fit(frame)


@unreliable
def test_passages_follow_rows_without_gaps() -> None:
    """Where a row is missing, what follows it is not known, and rows before are not followed across it."""
    x = autoregression(3000, 0.95)
    times, low = pd.date_range("2000", periods=3000, freq="D"), x[:, 0] < -1
    kept = np.delete(np.arange(3000), np.arange(50, 3000, 50))
    data = xr.DataArray(x, {"time": times}, ("time", "place"))
    basis = dsp.basis.MonomialBasis(1, 3)
    cut = koopman(Transfer("1D"), basis, n_components=2, random_state=0).fit(data[kept])
    parts = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1)
    whole = koopman(Transfer(1), basis, n_components=2, random_state=0).fit([x[p] for p in parts])
    np.testing.assert_allclose(cut.timescales_, whole.timescales_, rtol=1e-9)
    passage = cut.first_passage(data[kept], low[kept], lag="5D")
    wanted = whole.first_passage([x[p] for p in parts], [low[p] for p in parts], lag=5)
    np.testing.assert_allclose(passage.passage_time(x), wanted.passage_time(x), rtol=1e-6)
    assert cut.forecast_score(data[kept]) == pytest.approx(whole.forecast_score([x[p] for p in parts]), rel=0.02)
