"""Rows for a pilot: all fields, as they are stored, from a bounded number of chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.data.opening import open_data
from daskspectral.data.source import Source
from daskspectral.engine import sampling
from daskspectral.engine.sampling import DRAWN_CHUNKS, draw_fields
from daskspectral.operators import AnisotropicDiffusion, Cross, Laplacian, Operator, Transfer

Array = NDArray[Any]
N = 5000
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3)) + np.array([0, 5, -5])


def source(x: Any = X, operator: Operator | None = None, **options: Any) -> Source:
    options = {"columns": None, "weight": None, "fields": None} | options
    return open_data(Laplacian() if operator is None else operator, x, **options)


def test_all_fields_as_they_are_stored() -> None:
    d, weight = RNG.standard_normal((N, 3, 3)), RNG.uniform(1, 2, N)
    d = d @ d.transpose(0, 2, 1)
    opened = source(X.astype(np.float32), AnisotropicDiffusion("d"), fields={"d": d}, weight=weight, columns=[2, 0, 1])
    numbers, fields = draw_fields(opened, 300, np.random.default_rng(1))
    assert set(fields) == {"x", "d", "weight"}
    assert numbers.shape == (300,)
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(fields["x"], X.astype(np.float32)[numbers])  # all columns, in their order
    np.testing.assert_array_equal(fields["d"], d[numbers])
    np.testing.assert_array_equal(fields["weight"], weight[numbers])


def test_views_and_trajectories() -> None:
    numbers, fields = draw_fields(source((X, X**2), Cross()), 100, np.random.default_rng(1))
    np.testing.assert_array_equal(fields["y"], X[numbers] ** 2)
    numbers, fields = draw_fields(source([X[:2000], X[2000:]], Transfer(7)), 10**6, np.random.default_rng(1))
    assert len(numbers) == N - 14
    starts = np.setdiff1d(np.arange(N - 7), np.arange(1993, 2000))
    np.testing.assert_array_equal(fields["x"], X[starts])
    np.testing.assert_array_equal(fields["future"], X[starts + 7])


def test_few_chunks_are_drawn_from_as_one_array() -> None:
    """The rows do not depend on the chunks then, and every row is as likely."""
    whole, _ = draw_fields(source(), 500, np.random.default_rng(3))
    for chunks in (70, 1000):
        found, fields = draw_fields(source(da.from_array(X, chunks=(chunks, 3))), 500, np.random.default_rng(3))
        np.testing.assert_array_equal(found, whole)
        np.testing.assert_array_equal(fields["x"], X[whole])
    assert 0.4 < np.mean(whole) / N < 0.6
    everything, _ = draw_fields(source(), 10**7, np.random.default_rng(3))
    np.testing.assert_array_equal(everything, np.arange(N))


@pytest.mark.parametrize("size", [256, 1000])
def test_of_many_chunks_so_many_are_read(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = zarr.create_array(tmp_path / "x.zarr", data=X[: 10 * (DRAWN_CHUNKS + 200)], chunks=(10, 3))
    opened = source(stored)
    plans: list[Any] = []
    plan_of_rows = sampling.plan_of_rows
    monkeypatch.setattr(sampling, "plan_of_rows", lambda *a: plans.append(plan_of_rows(*a)) or plans[-1])
    numbers, fields = draw_fields(opened, size, np.random.default_rng(2))
    chunks = np.unique(numbers // 10)
    assert 0.7 * DRAWN_CHUNKS < len(chunks) <= DRAWN_CHUNKS  # two strata may draw one chunk
    assert (np.diff(np.append(chunks, DRAWN_CHUNKS + 200)) <= 5).all()  # spread over the data
    assert len(numbers) <= DRAWN_CHUNKS * -(-size // DRAWN_CHUNKS)
    np.testing.assert_array_equal(fields["x"], X[numbers])
    again, _ = draw_fields(opened, size, np.random.default_rng(2))
    np.testing.assert_array_equal(numbers, again)
    other, _ = draw_fields(opened, size, np.random.default_rng(4))
    assert not np.array_equal(numbers, other)


def test_invalid_rows() -> None:
    x = X.copy()
    x[[40, 41, 4000]] = np.nan
    with pytest.raises(dsp.InvalidRowError, match="row 40 is the first"):
        draw_fields(source(x), N, np.random.default_rng(0))
    numbers, fields = draw_fields(source(x), N, np.random.default_rng(0), on_invalid="skip")
    np.testing.assert_array_equal(numbers, np.setdiff1d(np.arange(N), [40, 41, 4000]))
    assert np.isfinite(fields["x"]).all()
    # a lower row than those that were drawn is the one that is named
    few = np.random.default_rng(0)
    numbers, _ = draw_fields(source(), 50, np.random.default_rng(0))
    drawn, lower = int(numbers[-1]), int(np.setdiff1d(np.arange(N), numbers)[0])
    x = X.copy()
    x[[drawn, lower]] = np.inf
    with pytest.raises(dsp.InvalidRowError, match=f"row {lower} is the first"):
        draw_fields(source(x), 50, few)
    nothing, fields = draw_fields(source(X * np.nan), 50, np.random.default_rng(0), on_invalid="skip")
    assert nothing.shape == (0,)
    assert fields["x"].shape == (0, 3)
