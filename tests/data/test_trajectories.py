"""Pairs of rows a lag apart: read across chunk borders, never across the end of a trajectory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.data.batches import Batches, ReadOptions
from daskspectral.data.readers import ArrayReader, JoinedReader
from daskspectral.data.source import Source, open_trajectories
from daskspectral.engine import Plan, Run
from daskspectral.engine.sampling import draw_rows

Array = NDArray[Any]
LENGTHS = (37, 11, 60)
TRAJECTORIES = [np.random.default_rng(i).standard_normal((n, 2)) for i, n in enumerate(LENGTHS)]


def pairs(trajectories: list[Array], lag: int) -> tuple[Array, Array]:
    """Both rows of every pair, by a loop over the rows."""
    found = [(a[i], a[i + lag]) for a in trajectories for i in range(len(a)) if i + lag < len(a)]
    return np.array([x for x, _ in found]), np.array([y for _, y in found])


def read(source: Source) -> dict[str, Array]:
    """All pairs, in ranges of nine, by readers that traveled to another process."""
    batches: list[dict[str, Array]] = []
    for start in range(0, source.n, 9):
        stop = min(start + 9, source.n)
        readers = pickle.loads(pickle.dumps({k: r.localize(start, stop) for k, r in source.readers.items()}))
        batches += Batches(readers, ReadOptions(source.preparations), start, stop, source.edges)
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


@pytest.mark.parametrize("lag", [1, 10, 11, 40])
def test_pairs_of_every_kind_of_array(lag: int, tmp_path: Path) -> None:
    stored = [zarr.create_array(tmp_path / str(i), data=a, chunks=(7, 2)) for i, a in enumerate(TRAJECTORIES)]
    x, future = pairs(TRAJECTORIES, lag)
    fields = {"weight": [np.arange(n) + 1.0 for n in LENGTHS], "drift": [a + 1 for a in TRAJECTORIES], "none": None}
    for arrays in (TRAJECTORIES, stored, [TRAJECTORIES[0], stored[1], TRAJECTORIES[2].tolist()]):
        source = open_trajectories(arrays, lag, fields=fields)
        assert (source.n, source.n_features_in) == x.shape
        assert source.lagged is not None
        assert source.lagged.short == sum(n <= lag for n in LENGTHS)
        found, weight = read(source), np.concatenate([w[:-lag] for w in fields["weight"]])
        for name, wanted in (("x", x), ("future", future), ("weight", weight), ("drift", x + 1)):
            np.testing.assert_array_equal(found[name], wanted, err_msg=name)
    lazy = open_trajectories([da.from_array(a, chunks=(7, 1)) for a in TRAJECTORIES], lag).dask_fields
    assert lazy["x"].chunks[0] == lazy["future"].chunks[0]
    np.testing.assert_array_equal(lazy["x"], x)
    np.testing.assert_array_equal(lazy["future"], future)
    one = open_trajectories(TRAJECTORIES[2].tolist(), lag)  # no list of several
    np.testing.assert_array_equal(read(one)["future"], TRAJECTORIES[2][lag:])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 8)), min_size=1, max_size=5), st.data())
def test_joined_rows_and_copies_of_some_of_them(spans: list[tuple[int, int]], data: st.DataObject) -> None:
    arrays = [np.arange(100 * i, 100 * i + 20).reshape(20, 1) for i in range(len(spans))]
    joined = JoinedReader(tuple(map(ArrayReader, arrays)), tuple((a, a + length) for a, length in spans))
    whole = np.concatenate([array[a : a + length] for array, (a, length) in zip(arrays, spans, strict=True)])
    assert joined.shape == whole.shape
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start + 1, len(whole)))
    copy = pickle.loads(pickle.dumps(joined.localize(start, stop)))
    for reader in (joined, copy):
        np.testing.assert_array_equal(reader.read(start, stop), whole[start:stop])
    assert sum(part.array.size for part in copy.parts) == stop - start
    np.testing.assert_array_equal(joined.edges, np.cumsum([0, *(length for _, length in spans)]))


def counted(batches: Any, state: Any = None) -> dict[str, Array]:
    """A task that only reads."""
    return {"rows": np.array([sum(len(batch["x"]) for batch in batches)])}


def run(source: Source) -> Any:
    cuts = sorted({*range(0, source.n, 9), source.n}) if not source.dask_fields else source.edges.tolist()
    return Run(source, Plan(tuple(pairwise(cuts)), 3)).reduce(counted)


@pytest.mark.parametrize("as_kind", [list, lambda parts: [da.from_array(a, chunks=(5, 2)) for a in parts]])
@pytest.mark.parametrize(("trajectory", "row"), [(0, 0), (0, 36), (1, 2), (2, 9), (2, 59)])
def test_an_invalid_row_has_its_true_number(trajectory: int, row: int, as_kind: Any) -> None:
    broken = [a.copy() for a in TRAJECTORIES]
    broken[trajectory][row, 1] = np.inf
    source = open_trajectories(as_kind(broken), 4)
    with pytest.raises(dsp.InvalidRowError, match=f"trajectory {trajectory}") as caught:
        run(source)
    assert caught.value.row == row
    pairs_lost = sum(0 <= row - shift < LENGTHS[trajectory] - 4 for shift in (0, 4))
    total = run(replace(source, on_invalid="skip"))
    assert (total.skipped, total.count) == (pairs_lost, source.n - pairs_lost)
    with pytest.raises(dsp.InvalidRowError):
        draw_rows(source, source.n, np.random.default_rng(0))
