"""Sources of rows, fields and columns, and the batches of a range; what cannot be one is refused by its metadata."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from daskspectral.data.batches import Batches, ReadOptions
from daskspectral.data.readers import zarr_reader
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, open_source
from daskspectral.data.stores import open_zarr
from daskspectral.data.writing import refuse_input
from daskspectral.moments import NUMBER
from daskspectral.moments.folds import LandmarkMatcher

N, D = 1000, 3
X = np.random.default_rng(0).standard_normal((N, D))


def write(path: Path | str, values: np.ndarray = X, **options: Any) -> zarr.Array[Any]:
    return zarr.create_array(path, data=values, **({"chunks": (300, *values.shape[1:])} | options))


def located(path: Path) -> str:
    write(path / "x.zarr")
    return f"{path}/x.zarr"


def test_empty_blocks_have_no_rows() -> None:
    blocks = da.concatenate([X[:0], da.from_array(X, chunks=400), da.from_array(X[:0])])
    reader = open_source(blocks).readers["x"]
    parts = [reader.read(a, b) for a, b in pairwise(np.unique(reader.edges).tolist())]
    np.testing.assert_array_equal(np.concatenate(parts), X)


def test_a_group_is_refused_by_the_paths_of_its_arrays(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "g.zarr", mode="w").create_group("deep").create_array("x", data=X)
    with pytest.raises(ValueError, match=r"g\.zarr/deep/x"):
        open_source(tmp_path / "g.zarr")


def test_fields_share_the_blocks_of_dask_ones(tmp_path: Path) -> None:
    weight = np.arange(N, dtype=float)
    lazy = da.from_array(weight, chunks=77)
    for x in (X, da.from_array(X, chunks=(140, 2))):
        source = open_source(x, weight=lazy)
        assert source.dask_fields["x"].chunks[0] == source.dask_fields["weight"].chunks[0]
        np.testing.assert_array_equal(source.readers["weight"].read(0, N), weight)
    with pytest.raises(TypeError, match="from_zarr"):
        open_source(located(tmp_path), weight=lazy)


@pytest.mark.parametrize("columns", [[], [0, -3], [-4], [True, False, True], 1], ids=str)
def test_numbers_of_columns(columns: Any) -> None:
    with pytest.raises(ValueError, match="columns"):
        open_source(Rows(X, columns=columns))
    source = open_source(Rows(X, columns=(2, -3)))
    assert (source.preparation.columns, source.dimension, source.n_features_in) == ((2, 0), 2, 3)


def test_a_store_that_is_another_one_when_it_is_read(tmp_path: Path) -> None:
    reader = pickle.dumps(zarr_reader(open_zarr(located(tmp_path))))
    write(tmp_path / "x.zarr", overwrite=True, fill_value=7.0)
    with pytest.raises(OSError, match=r"x\.zarr"):
        pickle.loads(reader).read(0, 10)
    (tmp_path / "x.zarr" / "zarr.json").write_text("{")
    with pytest.raises(OSError, match=r"x\.zarr"):
        pickle.loads(reader).read(0, 10)
    (tmp_path / "x.zarr").rename(tmp_path / "away.zarr")
    with pytest.raises(FileNotFoundError, match=rf"x.zarr is not visible to this process \(pid {os.getpid()}"):
        pickle.loads(reader).read(0, 10)


def test_outputs_do_not_replace_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("g.zarr/x")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "g.zarr")
    refuse_input("g.zarr/xy", "g.zarr/x", None)
    for out, given in [("g.zarr/x", f"file://{tmp_path}/g.zarr/x"), ("g.zarr", "g.zarr/x"), ("link.zarr", "g.zarr/x")]:
        with pytest.raises(ValueError, match=out):
            refuse_input(out, given)


# -- the batches of a range ------------------------------------------------------------------------------------


def batches(source: Source, start: int = 0, stop: int = N, **rules: Any) -> Batches:
    return Batches(source.readers, ReadOptions(source.preparations, **rules), start, stop, source.edges)


def joined(taken: Batches) -> np.ndarray:
    return np.concatenate([batch["x"] for batch in taken])


def test_dropped_and_selected_rows(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "x.zarr"))
    some = np.array([0, 299, 300, 555, 999])
    dropped = batches(source, dropped=LandmarkMatcher(X[some]))
    np.testing.assert_array_equal(joined(dropped), np.delete(X, some, axis=0))
    assert (dropped.count, dropped.skipped) == (N - 5, 0)
    chosen = list(batches(source, selected=some))
    np.testing.assert_array_equal(np.concatenate([b[NUMBER] for b in chosen]), some)
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in chosen]), X[some])


def test_invalid_rows() -> None:
    broken = X.copy()
    broken[[400, 401, 700], [1, 0, 2]] = np.nan, np.inf, -np.inf
    source = open_source(broken)
    for selected, row, held in ((None, 400, "NaN in column 1"), (np.array([399, 700, 701]), 700, "-inf in column 2")):
        stopped = batches(source, selected=selected)
        assert list(stopped) == []
        assert stopped.bad is not None
        assert (stopped.bad.row, stopped.bad.reason) == (row, f"X has {held}")
    skipped = batches(source, on_invalid="skip", dropped=LandmarkMatcher(X[[3, 400]]))
    np.testing.assert_array_equal(joined(skipped), np.delete(X, [3, 400, 401, 700], axis=0))
    assert (skipped.count, skipped.skipped) == (N - 4, 3)
    assert len(joined(batches(source, on_invalid="keep"))) == N
    for weight, reason in ((-1.0, "the sample weight is negative (-1.0)"), (np.nan, "the sample weight is NaN")):
        weights = np.where(np.arange(N) == 12, weight, 1.0)
        stopped = batches(open_source(X, weight=weights))
        assert list(stopped) == []
        assert stopped.bad is not None
        assert (stopped.bad.row, stopped.bad.reason) == (12, reason)
