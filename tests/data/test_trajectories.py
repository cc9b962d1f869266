"""Pairs of rows a lag apart: read across chunk borders, never across the end of a trajectory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.data.batches import Batches, Rows
from daskspectral.data.integrity import Snapshot
from daskspectral.data.readers import ArrayReader
from daskspectral.data.source import Source
from daskspectral.data.trajectories import JoinedReader, is_several, open_trajectories
from daskspectral.engine import Plan, Run
from daskspectral.engine.sampling import draw_rows

Array = NDArray[Any]
LENGTHS = (37, 11, 60)
TRAJECTORIES = [np.random.default_rng(i).standard_normal((n, 2)) for i, n in enumerate(LENGTHS)]


def pairs(trajectories: list[Array], lag: int) -> tuple[Array, Array]:
    """Both rows of every pair, by a loop over the rows."""
    found = [(a[i], a[i + lag]) for a in trajectories for i in range(len(a)) if i + lag < len(a)]
    return np.array([x for x, _ in found]), np.array([y for _, y in found])


def read(source: Source, ranges: Any = None, elsewhere: bool = False) -> dict[str, Array]:
    """All batches of these ranges, end to end; `elsewhere`, from readers that travelled to another process."""
    ranges = [(0, source.n)] if ranges is None else ranges
    rows, batches = Rows(source.preparations), []
    for start, stop in ranges:
        readers = dict(source.readers)
        if elsewhere:
            readers = pickle.loads(pickle.dumps({k: r.localise(start, stop) for k, r in readers.items()}))
        batches += list(Batches(readers, rows, start, stop, source.edges))
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def in_zarr(path: Path, chunk: int = 7) -> list[zarr.Array[Any]]:
    names = (path / f"{i}.zarr" for i in range(len(TRAJECTORIES)))
    chunks = (chunk, 2)
    return [zarr.create_array(p, data=a, chunks=chunks) for p, a in zip(names, TRAJECTORIES, strict=True)]


KINDS: dict[str, Callable[[Path], list[Any]]] = {
    "numpy": lambda path: list(TRAJECTORIES),
    "lists": lambda path: [a.tolist() for a in TRAJECTORIES],
    "zarr": in_zarr,
    "paths": lambda path: [str(a.store.root) for a in in_zarr(path)],  # type: ignore[attr-defined]
    "dask": lambda path: [da.from_array(a, chunks=(7, 1)) for a in TRAJECTORIES],
    "dask and numpy": lambda path: [da.from_array(TRAJECTORIES[0], chunks=7), *TRAJECTORIES[1:]],
    "xarray": lambda path: [xr.DataArray(a, dims=("t", "c")) for a in TRAJECTORIES],
    "mixed": lambda path: [TRAJECTORIES[0], in_zarr(path)[1], TRAJECTORIES[2].tolist()],
}


@pytest.mark.parametrize("lag", [1, 7, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_every_kind_of_array(kind: str, lag: int, tmp_path: Path) -> None:
    source = open_trajectories(KINDS[kind](tmp_path), lag)
    x, future = pairs(TRAJECTORIES, lag)
    assert (source.n, source.n_features_in) == x.shape
    assert source.edges[[0, -1]].tolist() == [0, len(x)]
    if source.dask_fields:
        found = {name: np.asarray(a) for name, a in source.dask_fields.items()}
        assert source.dask_fields["x"].chunks[0] == source.dask_fields["future"].chunks[0]
    else:
        found = read(source)
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["future"], future)


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.tolist(), lambda a: da.from_array(a, chunks=(7, 2))])
def test_one_array_is_one_trajectory(make: Any) -> None:
    a = TRAJECTORIES[0]
    assert not is_several(make(a))
    source = open_trajectories(make(a), 3, fields={"weight": np.arange(37.0)})
    taken = {name: np.asarray(source.readers[name].read(0, 34)) for name in source.readers}
    np.testing.assert_array_equal(taken["x"], a[:-3])
    np.testing.assert_array_equal(taken["future"], a[3:])
    np.testing.assert_array_equal(taken["weight"], np.arange(34.0))


def test_edges_are_chunk_borders_and_ends_of_trajectories(tmp_path: Path) -> None:
    source = open_trajectories(in_zarr(tmp_path, chunk=20), 3)  # 34, 8 and 57 pairs
    assert source.edges.tolist() == [0, 20, 34, 42, 62, 82, 99]
    assert source.readers["future"].edges.tolist() == [0, 17, 34, 42, 59, 79, 99]
    assert source.lagged is not None
    assert source.lagged.borders == (0, 34, 42, 99)


@settings(max_examples=10, deadline=None)
@given(data=st.data(), lag=st.integers(1, 10), cuts=st.lists(st.integers(0, 105), max_size=6))
def test_any_ranges_read_the_same_pairs(
    data: st.DataObject, lag: int, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    chunk = data.draw(st.sampled_from([1, 4, 7, 50]))
    source = open_trajectories(in_zarr(tmp_path_factory.mktemp("zarr"), chunk), lag)
    borders = sorted({0, source.n, *(c for c in cuts if c < source.n)})
    x, future = pairs(TRAJECTORIES, lag)
    found = read(source, list(pairwise(borders)), data.draw(st.booleans()))
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["future"], future)


@settings(max_examples=60, deadline=None)
@given(
    spans=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 8)), min_size=1, max_size=5),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_joined_rows_and_copies_of_some_of_them(spans: list[tuple[int, int]], ends: tuple[float, float]) -> None:
    arrays = [np.arange(100 * i, 100 * i + 20).reshape(20, 1) for i in range(len(spans))]
    cut = tuple((start, start + length) for start, length in spans)
    joined = JoinedReader(tuple(ArrayReader(a) for a in arrays), cut)
    whole = np.concatenate([a[b:c] for a, (b, c) in zip(arrays, cut, strict=True)])
    assert joined.shape == whole.shape
    n = len(whole)
    start = min(int(min(ends) * n), n - 1)
    stop = max(start + 1, int(max(ends) * n))
    np.testing.assert_array_equal(joined.read(start, stop), whole[start:stop])
    copy = pickle.loads(pickle.dumps(joined.localise(start, stop)))
    np.testing.assert_array_equal(copy.read(start, stop), whole[start:stop])
    assert sum(part.array.size for part in copy.parts) == stop - start
    borders = np.cumsum([0, *(length for _, length in spans)])
    np.testing.assert_array_equal(joined.edges, borders)


def test_plain_readers_join_without_a_copy() -> None:
    source = open_trajectories(TRAJECTORIES, 2)
    for name in ("x", "future"):
        for part, array in zip(source.readers[name].parts, TRAJECTORIES, strict=True):
            assert np.shares_memory(part.read(0, 5), array)


def test_types_are_those_that_hold_all() -> None:
    whole = [np.zeros((4, 2), "float32"), np.full((5, 2), 1e100)]
    source = open_trajectories(whole, 1)
    assert source.readers["x"].dtype == np.float64
    assert read(source)["future"].max() == 1e100


def test_weights_and_fields_are_those_of_x() -> None:
    weight = [np.arange(n) + 1.0 for n in LENGTHS]
    drift = [a + 1 for a in TRAJECTORIES]
    source = open_trajectories(TRAJECTORIES, 4, fields={"weight": weight, "drift": drift, "none": None})
    found = read(source)
    np.testing.assert_array_equal(found["weight"], np.concatenate([w[:-4] for w in weight]))
    np.testing.assert_array_equal(found["drift"], found["x"] + 1)
    assert "none" not in found


@pytest.mark.parametrize(
    ("x", "fields", "lag", "error", "match"),
    [
        (TRAJECTORIES, {}, 11, ValueError, r"trajectory 1 has 11: .*; take a smaller lag, or leave this"),
        (TRAJECTORIES[0], {}, 40, ValueError, r"40 rows and the trajectory X has 37: .*; take a smaller lag$"),
        ([TRAJECTORIES[0], np.zeros((20, 3))], {}, 1, ValueError, r"X\[1\] has 3 columns and X.*that they share"),
        ([TRAJECTORIES[0], np.zeros(20)], {}, 1, ValueError, r"X\[1\] must have 2 dimensions.*X\[1\].reshape"),
        ([np.zeros((0, 2))], {}, 1, ValueError, r"X\[0\] is empty"),
        (TRAJECTORIES, {"weight": [np.ones(37)] * 2}, 1, ValueError, r"sample_weight is a list of 3 arrays.*got 2 of"),
        (TRAJECTORIES, {"weight": np.ones(108)}, 1, ValueError, r"sample_weight is a list of 3 .*got one ndarray"),
        (TRAJECTORIES, {"weight": [np.ones(37)] * 3}, 1, ValueError, r"sample_weight\[1\] has 37 rows and X\[1\]"),
        (TRAJECTORIES, {"b": [np.ones((n, 2 + n % 2)) for n in LENGTHS]}, 1, ValueError, r"b\[2\] has rows of shape"),
        ([["a", "b"], ["c", "d"]], {}, 1, TypeError, r"X has dtype <U1"),
    ],
)  # fmt: skip
def test_refused(x: Any, fields: dict[str, Any], lag: int, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        open_trajectories(x, lag, fields=fields)


def test_dask_and_zarr_do_not_join(tmp_path: Path) -> None:
    mixed = [in_zarr(tmp_path)[0], da.from_array(TRAJECTORIES[1], chunks=5)]
    with pytest.raises(TypeError, match=r"X\[0\] is a zarr array and another one a dask array"):
        open_trajectories(mixed, 1)
    with pytest.raises(TypeError, match=r"X is a zarr array and another one a dask array"):
        open_trajectories(mixed[0], 1, fields={"weight": da.ones(37, chunks=10)})


# -- rows that cannot be used ------------------------------------------------------------------------------------------


class Nothing:
    """A task that only reads."""

    def __call__(self, batches: Any, state: Any = None) -> dict[str, Array]:
        return {"rows": np.array([sum(len(batch["x"]) for batch in batches)])}


def run(source: Source, on_invalid: str = "raise") -> Any:
    cuts = sorted({*range(0, source.n, 9), source.n}) if not source.dask_fields else source.edges.tolist()
    return Run(source, Plan(tuple(pairwise(cuts)), 3, 2), on_invalid=on_invalid).reduce(Nothing())


@pytest.mark.parametrize("as_kind", [list, lambda parts: [da.from_array(a, chunks=(5, 2)) for a in parts]])
@pytest.mark.parametrize(("trajectory", "row"), [(0, 0), (0, 36), (1, 2), (2, 9), (2, 59)])
def test_an_invalid_row_has_its_true_number(trajectory: int, row: int, as_kind: Any) -> None:
    broken = [a.copy() for a in TRAJECTORIES]
    broken[trajectory][row, 1] = np.inf
    source = open_trajectories(as_kind(broken), 4)
    # rows of the second half of a pair are met there first
    field = "X" if row < 4 else "future"
    match = rf"row {row} of trajectory {trajectory} cannot be used: {field} holds inf in column 1"
    with pytest.raises(dsp.InvalidRowError, match=match) as caught:
        run(source)
    assert caught.value.row == row
    pairs_lost = sum(0 <= row - shift < LENGTHS[trajectory] - 4 for shift in (0, 4))
    total = run(source, "skip")
    assert (total.skipped, total.count) == (pairs_lost, source.n - pairs_lost)
    with pytest.raises(dsp.InvalidRowError, match=match):
        draw_rows(source, source.n, np.random.default_rng(0))


def test_the_number_of_a_trajectory_alone_is_left_out() -> None:
    broken = TRAJECTORIES[2].copy()
    broken[50] = np.nan
    with pytest.raises(dsp.InvalidRowError, match=r"^row 50 cannot be used: future holds NaN in column 0"):
        run(open_trajectories(broken, 20))


def test_columns_that_are_not_used_may_hold_anything() -> None:
    broken = TRAJECTORIES[2].copy()
    broken[:, 0] = np.nan
    source = open_trajectories(broken, 5, columns=[-1])
    assert run(source).count == 55
    np.testing.assert_array_equal(read(source)["future"], broken[5:, 1:])
    broken[9, 1] = np.nan
    with pytest.raises(dsp.InvalidRowError, match=r"row 9 cannot be used: future holds NaN in column 1"):
        run(source)


def test_points_are_prepared_alike() -> None:
    source = open_trajectories(TRAJECTORIES, 5, columns=[1])
    source = source.with_preparation(mean=np.array([2.0]), scale=np.array([0.5]))
    x, future = pairs(TRAJECTORIES, 5)
    found = read(source)
    np.testing.assert_allclose(found["x"], (x[:, 1:] - 2) / 0.5, rtol=1e-15)
    np.testing.assert_allclose(found["future"], (future[:, 1:] - 2) / 0.5, rtol=1e-15)


# -- the stores beneath ------------------------------------------------------------------------------------------------


def test_a_missing_chunk_of_any_trajectory_is_noticed(tmp_path: Path) -> None:
    arrays = in_zarr(tmp_path, chunk=20)
    source = open_trajectories(arrays, 4)
    Snapshot(source)
    (tmp_path / "2.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(OSError, match=r"2.zarr is not whole: chunk c/1/0 \(rows 20 to 40\) is missing"):
        Snapshot(source)


def test_a_store_that_changes_is_noticed(tmp_path: Path) -> None:
    arrays = in_zarr(tmp_path, chunk=20)
    source = open_trajectories(arrays, 4)
    store = Snapshot(source)
    before = store.identity
    store.check_unchanged()
    arrays[1] = zarr.open_array(tmp_path / "1.zarr", mode="r+")
    arrays[1][3] = 7.0
    with pytest.raises(OSError, match=r"1.zarr changed during the run"):
        store.check_unchanged()
    after = Snapshot(source).identity
    assert before != after
    assert before["X"]["parts"][0] == after["X"]["parts"][0]
    shorter = Snapshot(open_trajectories([*arrays[:2], TRAJECTORIES[2][:50]], 4)).identity
    assert shorter["X"] != after["X"]


def test_a_lag_is_part_of_what_the_data_are() -> None:
    one, two = (Snapshot(open_trajectories(TRAJECTORIES, lag)).identity for lag in (1, 2))
    assert one != two
    again = Snapshot(open_trajectories(TRAJECTORIES, 1)).identity
    assert one == again
