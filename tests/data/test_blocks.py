"""Blocks of dask arrays are what their array promises, wherever they are evaluated; other collections are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.data.containers import as_reader

X = np.random.default_rng(7).standard_normal((600, 2))
PROMISE = {"dtype": float, "meta": np.empty((0, 0))}


def estimator() -> dsp.SpectralDecomposition:
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), points=X[:20])
    return dsp.SpectralDecomposition(basis=landmarks, n_components=4, solver=dsp.solvers.Truncated(), folds=None)


def hidden(kind: Any = float) -> np.ma.MaskedArray:
    """X, of which one entry of two rows is masked, with finite values beneath the mask."""
    masked = np.ma.masked_array((100 * X).astype(kind) if kind is int else X.copy(), mask=False)
    masked[[7, 431], 1] = np.ma.masked
    return masked


def in_blocks(masked: np.ma.MaskedArray) -> da.Array:
    return da.from_array(masked, chunks=(130, 2), asarray=False)


MASKED: dict[str, Callable[[], Any]] = {
    "masked": lambda: in_blocks(hidden()),
    "whole numbers": lambda: in_blocks(hidden(kind=int)),
    "meta of numpy": lambda: da.from_array(X, chunks=(130, 2)).map_blocks(
        lambda b: np.ma.masked_inside(b, b[7, 1], b[7, 1]), **PROMISE
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning", "ignore::daskspectral.ExtrapolationWarning")
@pytest.mark.parametrize("kind", MASKED)
def test_masked_entries_of_dask_blocks_are_invalid_rows(kind: str) -> None:
    data, fitted = MASKED[kind](), estimator().fit(X)
    with pytest.raises(dsp.InvalidRowError) as caught:
        estimator().fit(data)
    assert caught.value.row == 7
    skipped = estimator().fit(dsp.Rows(data, on_invalid="skip")).moments_
    assert skipped.skipped == (5 if kind == "meta of numpy" else 2)
    for x in (data, xr.DataArray(data, dims=("row", "column"))):
        with pytest.raises(dsp.InvalidRowError):
            np.asarray(fitted.transform(x))
        values = np.asarray(fitted.transform(dsp.Rows(x, on_invalid="skip")))
        bad = np.flatnonzero(np.isnan(values).any(axis=1)).tolist()
        assert bad == ([7, 137, 267, 397, 527] if kind == "meta of numpy" else [7, 431])


def test_masked_weights_of_dask_blocks_are_invalid_rows() -> None:
    weight = np.ma.masked_array(np.ones(600), mask=np.arange(600) == 500)
    lazy = da.from_array(weight, chunks=77, asarray=False)
    with pytest.raises(dsp.InvalidRowError) as caught:
        estimator().fit(X, sample_weight=lazy)
    assert caught.value.row == 500
    assert estimator().fit(dsp.Rows(X, on_invalid="skip"), sample_weight=lazy).moments_.skipped == 1


BROKEN: dict[str, Callable[[np.ndarray], Any]] = {
    "narrower": lambda b: b[:, :1],
    "shorter": lambda b: b[:50],
    "complex": lambda b: b + 1j,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_dask_blocks_that_break_their_promise_are_named(kind: str, tmp_path: Path) -> None:
    def third(block: np.ndarray, block_id: tuple[int, ...]) -> Any:
        return BROKEN[kind](block) if block_id[0] == 2 else block

    fitted, blocks = estimator().fit(X), da.from_array(X, chunks=(130, 2)).map_blocks(third, **PROMISE)
    for act in (estimator().fit, lambda x: fitted.transform(x, out=f"{tmp_path}/out.zarr")):
        with pytest.raises((ValueError, TypeError), match=r"block \(2, 0\)"):
            act(blocks)


def test_masked_whole_numbers_that_are_not_announced_are_an_error() -> None:
    blocks = da.from_array(np.arange(40).reshape(20, 2), chunks=(5, 2))
    blocks = blocks.map_blocks(lambda b: np.ma.masked_equal(b, 23), dtype=int, meta=np.empty((0, 0), int))
    with pytest.raises(TypeError, match=r"block \(2, 0\)"):
        as_reader(blocks, "X").read(0, 20)


def test_dask_dataframes_are_refused_and_not_computed() -> None:
    whole = pd.DataFrame(X, columns=["a", "b"])
    frame = dd.from_pandas(whole, npartitions=3).map_partitions(lambda part: part / 0, meta=whole.iloc[:0])
    with pytest.raises(TypeError, match=r"to_dask_array"):
        estimator().fit(frame)
