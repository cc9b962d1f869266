"""Delay embedding: rows that are windows of rows, against explicit stacking in numpy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.signal
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.data.batches import Batches, ReadOptions
from daskspectral.data.readers import ArrayReader
from daskspectral.data.source import Source, open_source, open_trajectories
from daskspectral.data.windows import Windows
from tests.common import Scheduling, assert_same_arrays, reloaded, unreliable

pytestmark = unreliable
Array = NDArray[Any]
N, D, DELAYS = 90, 4, 3
RNG = np.random.default_rng(0)
X = scipy.signal.lfilter([1.0], [1.0, -0.7], RNG.standard_normal((N, D)), axis=0) + 5
DAYS = pd.date_range("2000", periods=N)
FIELD = xr.DataArray(X.reshape(N, 2, 2), {"time": DAYS, "lat": [0.0, 60.0], "lon": [1.0, 2.0]}, ("time", "lat", "lon"))


def stacked(x: Array, delays: int = DELAYS, rows: Any = None) -> Array:
    """The windows of rows that follow one another, by a loop; of some `rows` with these numbers."""
    numbers = list(range(len(x)) if rows is None else rows)
    where = {number: place for place, number in enumerate(numbers)}
    lasts = [r for r in numbers if all(r - k in where for k in range(delays))]
    return np.array([np.concatenate([x[where[r - k]] for k in range(delays)]) for r in lasts])


def variances(x: Array, count: int) -> Array:
    return np.asarray(np.linalg.svd(x - x.mean(axis=0), compute_uv=False)[:count] ** 2 / len(x))


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "array": lambda path: X,
    "dask": lambda path: da.from_array(X, chunks=(7, 3)),
    "dask, short blocks": lambda path: da.from_array(X, chunks=(1, D)),
    "zarr": lambda path: zarr.create_array(path / "x", data=X, chunks=(8, 2)),
    "path": lambda path: str(zarr.create_array(path / "x", data=X, chunks=(50, D)).store_path),
    "frame": lambda path: pd.DataFrame(X, index=DAYS),
    "labeled": lambda path: FIELD,
    "labeled, lazy": lambda path: FIELD.chunk(time=11, lon=1),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_components_are_those_of_stacked_rows(name: str, tmp_path: Path) -> None:
    data = CONTAINERS[name](tmp_path)
    model, wanted = dsp.EOF(4, random_state=0), dsp.EOF(4, random_state=0).fit(stacked(X))
    model.fit(dsp.Rows(data, delays=DELAYS))
    np.testing.assert_allclose(model.eigenvalues_, variances(stacked(X), 4), rtol=1e-12)
    scores = model.transform(data)
    assert len(scores) == N - DELAYS + 1
    np.testing.assert_allclose(scores, wanted.transform(stacked(X)), atol=1e-9)
    assert model.n_features_in_ == D
    patterns = wanted.patterns_.single.reshape(4, DELAYS, D)
    dataset = model.to_xarray(data, details=True)
    np.testing.assert_allclose(dataset.components.values.reshape(patterns.shape), patterns, atol=1e-9)
    assert dataset.components.dims[:2] == ("mode", "delay")
    assert dataset.delay.values.tolist() == list(range(DELAYS))
    whole = dsp.EOF(DELAYS * D).fit(dsp.Rows(data, delays=DELAYS))
    back = whole.inverse_transform(whole.transform(data))
    np.testing.assert_allclose(np.asarray(back).reshape(-1, D), X[DELAYS - 1 :], rtol=1e-9)
    np.testing.assert_array_equal(reloaded(model).transform(data), scores)
    if "labeled" in name:
        np.testing.assert_array_equal(scores.time, DAYS[DELAYS - 1 :])
        assert back.dims == ("time", "lat", "lon")


@given(st.integers(2, 5), st.integers(1, 4), st.data())
def test_any_range_of_windows_reads_no_other_rows(delays: int, stride: int, data: st.DataObject) -> None:
    x = np.arange(120.0).reshape(60, 2)
    starts, borders, row = [], [0], (delays - 1) * stride
    while row < 58 and len(starts) < 4:
        length = data.draw(st.integers(1, min(15, 60 - row)))
        starts.append(row)
        borders.append(borders[-1] + length)
        row += length + data.draw(st.integers(0, 9))
    windows = Windows(delays, stride, np.array(starts), np.array(borders))
    last = np.concatenate([np.arange(s, s + b - a) for s, a, b in zip(starts, borders[:-1], borders[1:], strict=True)])
    wanted = np.concatenate([x[last - k * stride] for k in range(delays)], axis=1)
    np.testing.assert_array_equal(windows.last, last)
    reader, lazy = windows.of(ArrayReader(x)), windows.of(open_source(da.from_array(x, chunks=(7, 1))).readers["x"])
    assert reader.shape == wanted.shape
    np.testing.assert_array_equal(lazy.read(0, windows.count), wanted)
    columns: Any = reader.transposed()
    np.testing.assert_array_equal(columns.read(1, 2 * delays), wanted.T[1:])
    start = data.draw(st.integers(0, windows.count - 1))
    stop = data.draw(st.integers(start + 1, windows.count))
    copy = pickle.loads(pickle.dumps(reader.localize(start, stop)))
    for one in (reader, copy):
        np.testing.assert_array_equal(one.read(start, stop), wanted[start:stop])
    first, end = last[start] - (delays - 1) * stride, last[stop - 1] + 1
    assert sum(part.array.size for part in copy.parts) == 2 * (end - first)
    held = [(a, b) for _, a, b in reader.within(start, stop)]
    assert (min(a for a, _ in held), max(b for _, b in held)) == (first, end)


@pytest.mark.parametrize("kept", [np.delete(np.arange(N), [20, 21, 40]), np.delete(np.arange(N), np.arange(1, 60, 2))])
def test_no_window_has_a_gap_of_the_times(kept: Array) -> None:
    wanted = stacked(X[kept], DELAYS, kept)
    for data in (FIELD[kept], FIELD[kept].chunk(time=9), pd.DataFrame(X[kept], index=DAYS[kept])):
        model = dsp.EOF(3, random_state=0).fit(dsp.Rows(data, delays=DELAYS))
        assert model.moments_.count == len(wanted)
        np.testing.assert_allclose(model.eigenvalues_, variances(wanted, 3), rtol=1e-12)
        assert len(model.transform(data)) == len(wanted)
    times = model.transform(FIELD[kept]).time.values if isinstance(data, xr.DataArray) else None
    assert times is None or len(times) == len(wanted)


@pytest.mark.parametrize("dims", [("member", "time"), ("time", "member")])
def test_no_window_crosses_members(dims: tuple[str, ...]) -> None:
    members = np.random.default_rng(1).standard_normal((3, 40, 5)) + np.arange(3)[:, None, None]
    data = xr.DataArray(members, {"time": DAYS[:40], "place": np.arange(5.0)}, ("member", "time", "place"))
    rows = dsp.Rows(data.transpose(*dims, "place"), sample_dims=dims, delays=DELAYS)
    model = dsp.EOF(3, random_state=0).fit(rows)
    wanted = np.concatenate([stacked(x) for x in members])
    np.testing.assert_allclose(model.eigenvalues_, variances(wanted, 3), rtol=1e-12)
    scores = model.transform(rows)
    assert scores.dims == (*dims, "mode")
    each = dsp.EOF(3, random_state=0).fit(wanted).transform(wanted).reshape(3, -1, 3)
    np.testing.assert_allclose(scores.transpose("member", "time", "mode"), each, atol=1e-9)
    np.testing.assert_array_equal(scores.time, DAYS[DELAYS - 1 : 40])
    assert model.hilbert(rows).scores.dims == (*dims, "mode")


@pytest.mark.parametrize("chunks", [(130, 40), (20, 33)])
@pytest.mark.parametrize("kind", ["array", "dask", "zarr"])
def test_fewer_windows_than_columns(kind: str, chunks: tuple[int, int], tmp_path: Path) -> None:
    x = np.random.default_rng(2).standard_normal((130, 100)) @ np.diag(np.linspace(3, 0.1, 100))
    data: Any = x if kind == "array" else da.from_array(x, chunks=chunks)
    if kind == "zarr":
        data = zarr.create_array(tmp_path / "x", data=x, chunks=chunks)
    model = dsp.EOF(3, random_state=0).fit(dsp.Rows(data, delays=DELAYS))
    np.testing.assert_allclose(model.eigenvalues_, variances(stacked(x), 3), rtol=1e-12)
    wanted = dsp.EOF(3, random_state=0, folds="blocks").fit(stacked(x))
    np.testing.assert_allclose(model.standard_errors_, wanted.standard_errors_, rtol=1e-6)
    assert np.isfinite(model.eigenvalue_errors_).all()


PARTS = [X[:40], X[40:70], X[:2], X[70:]]


@pytest.mark.parametrize("kind", ["arrays", "dask", "zarr", "both"])
def test_koopman_pairs_windows_within_trajectories(kind: str, tmp_path: Path) -> None:
    """Hankel dynamic mode decomposition: least squares between the windows that are the lag apart."""
    lag, long = 2, [x for x in PARTS if len(x) >= DELAYS + 2]
    starts = np.concatenate([stacked(x)[:-lag] for x in long])
    ends = np.concatenate([stacked(x)[lag:] for x in long])
    ones = np.ones((len(starts), 1))
    wanted = np.linalg.eigvals(np.linalg.lstsq(np.hstack([ones, starts]), np.hstack([ones, ends]))[0])
    data: list[Any] = list(PARTS)
    if kind in ("dask", "both"):
        data = [da.from_array(x, chunks=(9, 2)) if kind == "dask" or len(x) == 40 else x for x in PARTS]
    elif kind == "zarr":
        data = [zarr.create_array(tmp_path / str(i), data=x, chunks=(7, D)) for i, x in enumerate(PARTS)]
    basis = dsp.basis.MonomialBasis(DELAYS * D, 1)
    model = dsp.Koopman(lag, method="eigen", basis=basis, n_components=13, solver=dsp.solvers.Truncated())
    model.fit(dsp.Rows(data, delays=DELAYS))
    np.testing.assert_allclose(np.sort_complex(model.eigenvalues_), np.sort_complex(wanted), atol=1e-9)
    assert (model.moments_.count, model.moments_.short_trajectories) == (len(starts), 1)
    assert [len(values) for values in model.transform(data)] == [max(0, len(x) - DELAYS + 1) for x in PARTS]
    forecast = np.hstack([np.ones((38, 1)), stacked(X[:40])])
    forecast = forecast @ np.linalg.lstsq(np.hstack([ones, starts]), np.hstack([ones, ends]))[0]
    np.testing.assert_allclose(model.forecast(data)[0], forecast[:, 1 : 1 + D], atol=1e-9)
    residual = ends[:, :D] - np.hstack([ones, starts]) @ np.linalg.lstsq(np.hstack([ones, starts]), ends[:, :D])[0]
    score = np.mean(1 - np.sum(residual**2, axis=0) / np.sum((ends[:, :D] - ends[:, :D].mean(axis=0)) ** 2, axis=0))
    np.testing.assert_allclose(model.forecast_score(data), score, rtol=1e-9)


def test_two_delays_of_a_noisy_oscillator_give_its_frequency_and_damping() -> None:
    modulus, angle = 0.97, 2 * np.pi / 15
    noise = np.random.default_rng(3).standard_normal(40_000)
    x = scipy.signal.lfilter([1.0], [1.0, -2 * modulus * np.cos(angle), modulus**2], noise)[:, None]
    basis = dsp.basis.MonomialBasis(2, 1)
    model = dsp.Koopman(1, method="eigen", basis=basis, n_components=3, random_state=0).fit(dsp.Rows(x, delays=2))
    values = model.eigenvalues_[1:]
    np.testing.assert_allclose(np.abs(values), modulus, atol=0.004)
    np.testing.assert_allclose(np.abs(np.angle(values)), angle, atol=0.004)
    alone = dsp.Koopman(1, method="eigen", basis=dsp.basis.MonomialBasis(1, 1), n_components=2, random_state=0).fit(x)
    assert np.abs(alone.eigenvalues_[1] - modulus * np.exp(1j * angle)) > 0.2


def test_the_same_bits_on_any_scheduler(scheduling: Scheduling, tmp_path: Path) -> None:
    path = str(zarr.create_array(tmp_path / "x", data=X, chunks=(8, D)).store_path)
    found = []
    for scheduler in ("synchronous", "threads", "processes"):
        with scheduling(scheduler):
            found.append(dsp.EOF(3, random_state=0).fit(dsp.Rows(path, delays=DELAYS)).moments_.arrays)
    for other in found[1:]:
        assert_same_arrays(found[0], other)


def test_appended_rows_complete_further_windows(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", data=X[:40], chunks=(10, D))
    model = dsp.EOF(3, random_state=0).fit(dsp.Rows(str(tmp_path / "x"), delays=DELAYS))
    assert model.plan(dsp.Rows(str(tmp_path / "x"), delays=DELAYS)).ranges.ranges[-1][1] == 40 - DELAYS + 1
    array.resize((N, D))
    array[40:] = X[40:]
    model.update(str(tmp_path / "x"))
    assert model.moments_.rows == N - DELAYS + 1
    np.testing.assert_allclose(model.eigenvalues_, variances(stacked(X), 3), rtol=1e-12)


def read(source: Source) -> dict[str, Array]:
    """All rows, in ranges of nine."""
    cuts = [*range(0, source.n, 9), source.n]
    batches: list[dict[str, Array]] = []
    for start, stop in pairwise(cuts):
        batches += Batches(source.readers, ReadOptions(source.preparations), start, stop, source.edges)
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def test_fields_are_those_of_the_last_rows(tmp_path: Path) -> None:
    weight, kept = np.arange(N) + 1.0, np.delete(np.arange(N), [30, 31])
    stored = zarr.create_array(tmp_path / "w", data=weight[kept], chunks=(7,))
    for given_weight in (weight[kept], stored):
        found = read(open_source(dsp.Rows(pd.DataFrame(X[kept], index=DAYS[kept]), delays=DELAYS), weight=given_weight))
        np.testing.assert_array_equal(found["x"], stacked(X[kept], DELAYS, kept))
        np.testing.assert_array_equal(found["weight"], [w for w in weight[kept][2:] if w not in (33, 34)])
    found = read(open_trajectories(dsp.Rows(PARTS, delays=DELAYS), 2, fields={"weight": [x[:, 0] for x in PARTS]}))
    np.testing.assert_array_equal(found["weight"], np.concatenate([x[2:-2, 0] for x in PARTS if len(x) > 4]))
    np.testing.assert_array_equal(found["future"], np.concatenate([stacked(x)[2:] for x in PARTS if len(x) > 4]))
    rows = dsp.Rows(X, delays=DELAYS, columns=[2, 0], standardize=True)
    model = dsp.EOF(2).fit(rows, sample_weight=weight)
    used = stacked(X[:, [2, 0]])
    z = used / np.sqrt(np.cov(used.T, ddof=0, aweights=weight[2:]).diagonal())
    wanted = np.linalg.eigvalsh(np.cov(z.T, ddof=0, aweights=weight[2:]))[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, wanted, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), model.transform(rows))


def test_an_invalid_row_of_a_window_has_its_number_in_the_data() -> None:
    broken = X.copy()
    broken[[17, 30], 1] = np.nan
    fitted = dsp.EOF(2, random_state=0).fit(dsp.Rows(X, delays=DELAYS))
    for data in (broken, da.from_array(broken, chunks=(N, 2)), xr.DataArray(broken, {"time": DAYS}, ("time", "p"))):
        rows = dsp.Rows(data, delays=DELAYS)
        for call in (dsp.EOF(2).fit, lambda rows: np.asarray(fitted.transform(rows))):
            with pytest.raises(dsp.InvalidRowError) as caught:
                call(rows)
            assert (caught.value.row, caught.value.column) == (17, 1)
    with pytest.raises(dsp.InvalidRowError, match="trajectory 1") as caught:
        dsp.Koopman(2, basis=dsp.basis.MonomialBasis(12, 1)).fit(dsp.Rows([X, broken[20:]], delays=DELAYS))
    assert caught.value.row == 10
    skipped = dsp.EOF(2, random_state=0).fit(dsp.Rows(broken, delays=DELAYS, on_invalid="skip"))
    assert (skipped.moments_.skipped, skipped.moments_.count) == (2 * DELAYS, N - DELAYS + 1 - 2 * DELAYS)
    assert np.isnan(fitted.transform(dsp.Rows(broken, on_invalid="skip"))[:, 0]).sum() == 2 * DELAYS


def test_maps_of_delays_are_drawn() -> None:
    model = dsp.EOF(2, random_state=0).fit(dsp.Rows(FIELD, delays=DELAYS))
    maps = model.to_xarray().components.sel(mode=1)
    for delay in range(DELAYS):
        drawn = dsp.plot.eof(model, 1, delay=delay).collections[0].get_array()
        np.testing.assert_allclose(np.ravel(drawn), maps.sel(delay=delay).values.ravel())
    with pytest.raises(ValueError, match="delay"):
        dsp.plot.eof(model, 1, delay=DELAYS)
    assert dsp.plot.eigenfunctions(model, FIELD).axes
    plt.close("all")


def test_data_frames_of_windows_have_the_index_of_their_last_rows() -> None:
    frame = pd.DataFrame(X, index=DAYS, columns=list("abcd"))
    model = dsp.EOF(2, random_state=0).set_output(transform="pandas").fit(dsp.Rows(frame, delays=DELAYS))
    for data in (frame, dsp.Rows(frame)):
        assert model.transform(data).index.equals(DAYS[DELAYS - 1 :])


REFUSED: dict[str, Callable[[], Any]] = {
    "no windows": lambda: dsp.Rows(X, delays=0),
    "more delays than rows": lambda: dsp.EOF(2).fit(dsp.Rows(X, delays=N + 1)),
    "gaps everywhere": lambda: dsp.EOF(2).fit(dsp.Rows(FIELD[np.cumsum([1, 1, 9] * 8)], delays=4)),
    "other delays": lambda: dsp.EOF(2).fit(dsp.Rows(X, delays=2)).transform(dsp.Rows(X, delays=3)),
    "delays of no fit": lambda: dsp.EOF(2).fit(X).transform(dsp.Rows(X, delays=3)),
    "independent rows": lambda: dsp.EOF(2, folds="random").fit(dsp.Rows(X, delays=2)),
    "an embedding": lambda: dsp.DiffusionMap().fit(dsp.Rows(X, delays=2)),
    "clusters": lambda: dsp.SpectralClustering(2).fit(dsp.Rows(X, delays=2)),
    "taken rows": lambda: dsp.Rows(X, delays=2)[[1, 3]],
    "red noise": lambda: dsp.EOF(2).fit(dsp.Rows(X, delays=2)).significance(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_windows_that_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match=r"delays|windows"):
        REFUSED[name]()
    assert len(dsp.Rows(X, delays=2)[3:9]) == 6
