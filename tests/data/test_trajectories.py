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
    "zarr": in_zarr,
    "dask": lambda path: [da.from_array(a, chunks=(7, 1)) for a in TRAJECTORIES],
    "mixed": lambda path: [TRAJECTORIES[0], in_zarr(path)[1], TRAJECTORIES[2].tolist()],
}


@pytest.mark.parametrize("lag", [1, 10])
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


def test_one_array_is_one_trajectory() -> None:
    a = TRAJECTORIES[0]
    for one in (a, a.tolist(), da.from_array(a, chunks=(7, 2))):
        assert not is_several(one)
        source = open_trajectories(one, 3, fields={"weight": np.arange(37.0)})
        taken = {name: np.asarray(reader.read(0, 34)) for name, reader in source.readers.items()}
        for name, wanted in (("x", a[:-3]), ("future", a[3:]), ("weight", np.arange(34.0))):
            np.testing.assert_array_equal(taken[name], wanted)


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


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 8)), min_size=1, max_size=5), st.data())
def test_joined_rows_and_copies_of_some_of_them(spans: list[tuple[int, int]], data: st.DataObject) -> None:
    arrays = [np.arange(100 * i, 100 * i + 20).reshape(20, 1) for i in range(len(spans))]
    joined = JoinedReader(tuple(map(ArrayReader, arrays)), tuple((a, a + length) for a, length in spans))
    whole = np.concatenate([array[a : a + length] for array, (a, length) in zip(arrays, spans, strict=True)])
    assert joined.shape == whole.shape
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start + 1, len(whole)))
    copy = pickle.loads(pickle.dumps(joined.localise(start, stop)))
    for reader in (joined, copy):
        np.testing.assert_array_equal(reader.read(start, stop), whole[start:stop])
    assert sum(part.array.size for part in copy.parts) == stop - start
    np.testing.assert_array_equal(joined.edges, np.cumsum([0, *(length for _, length in spans)]))


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
        (TRAJECTORIES, {"weight": [np.ones(37)] * 2}, 1, ValueError, r"sample_weight is a list of 3 arrays.*got 2 of"),
        (TRAJECTORIES, {"weight": [np.ones(37)] * 3}, 1, ValueError, r"sample_weight\[1\] has 37 rows and X\[1\]"),
        (TRAJECTORIES, {"b": [np.ones((n, 2 + n % 2)) for n in LENGTHS]}, 1, ValueError, r"b\[2\] has rows of shape"),
    ],
)  # fmt: skip
def test_refused(x: Any, fields: dict[str, Any], lag: int, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        open_trajectories(x, lag, fields=fields)


def test_dask_and_zarr_do_not_join(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"X\[0\] is a zarr array and another one a dask array"):
        open_trajectories([in_zarr(tmp_path)[0], da.from_array(TRAJECTORIES[1], chunks=5)], 1)


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


# -- the stores beneath ------------------------------------------------------------------------------------------------


def test_a_store_that_changes_is_noticed(tmp_path: Path) -> None:
    arrays = in_zarr(tmp_path, chunk=20)
    store = Snapshot(open_trajectories(arrays, 4))
    store.check_unchanged()
    zarr.open_array(tmp_path / "1.zarr", mode="r+")[3] = 7.0
    with pytest.raises(OSError, match=r"1.zarr changed during the run"):
        store.check_unchanged()
    (tmp_path / "2.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(OSError, match=r"2.zarr is not whole: chunk c/1/0 \(rows 20 to 40\) is missing"):
        Snapshot(open_trajectories(arrays, 4))
    one, other, again = (Snapshot(open_trajectories(TRAJECTORIES, lag)).identity for lag in (1, 2, 1))
    assert one == again != other
