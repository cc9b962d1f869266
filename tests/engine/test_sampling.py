"""Rows for a pilot: whatever the chunks, all fields as they are stored, from a bounded number of chunks."""

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, open_data
from daskspectral.engine.sampling import DRAWN_CHUNKS, draw_fields, draw_rows
from daskspectral.errors import InvalidRowError
from daskspectral.operators import Laplacian, Operator

N = 5000
X = np.random.default_rng(0).standard_normal((N, 3)) + np.array([0, 5, -5])


def source(x: Any = X, operator: Operator | None = None, weight: Any = None) -> Source:
    return open_data(Laplacian() if operator is None else operator, Rows.of(x), weight=weight)


def broken(*rows: int) -> np.ndarray:
    x = X.copy()
    x[list(rows)] = np.nan
    return x


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("draw", [draw_rows, draw_fields])
@pytest.mark.parametrize("size", [1, 500, 2 * N])
def test_drawn_rows_do_not_depend_on_a_few_chunks(draw: Any, size: int) -> None:
    whole, _ = draw(source(), size, rng())
    assert len(whole) == min(size, N)
    assert (np.diff(whole) > 0).all()
    for chunks in ((70, 3), (1000, 1)):
        found, points = draw(source(da.from_array(X, chunks=chunks)), size, rng())
        np.testing.assert_array_equal(found, whole)
        np.testing.assert_array_equal(points["x"] if draw is draw_fields else points, X[whole])
    if size == 500:
        assert not np.array_equal(draw(source(), size, np.random.default_rng(4))[0], whole)
        assert 0.4 < np.mean(whole) / N < 0.6  # a seed's mean, within seven standard deviations


def test_of_many_chunks_so_many_are_read(tmp_path: Path) -> None:
    stored = zarr.create_array(tmp_path / "x.zarr", data=X[: 10 * (DRAWN_CHUNKS + 200)], chunks=(10, 3))
    opened, size = source(stored), 1000
    numbers, fields = draw_fields(opened, size, rng())
    chunks = np.unique(numbers // 10)
    assert 0.7 * DRAWN_CHUNKS < len(chunks) <= DRAWN_CHUNKS  # two strata may draw one chunk
    assert (np.diff(np.append(chunks, DRAWN_CHUNKS + 200)) <= 5).all()  # spread over the data
    assert len(numbers) <= DRAWN_CHUNKS * -(-size // DRAWN_CHUNKS)
    np.testing.assert_array_equal(fields["x"], X[numbers])


def test_the_lowest_bad_row_is_named_drawn_or_not() -> None:
    numbers, _ = draw_rows(source(), 50, rng())
    drawn, lower = int(numbers[20]), int(np.setdiff1d(np.arange(N), numbers)[0])
    for draw, rows, lowest in [(draw_rows, (drawn, lower), lower), (draw_fields, (drawn, N - 1), drawn)]:
        with pytest.raises(InvalidRowError, match=f"row {lowest} is the first"):
            draw(source(da.from_array(broken(*rows), chunks=(300, 3))), 50, rng())


def test_invalid_rows_are_left_out_or_drawn_again() -> None:
    bad = np.arange(0, N, 2)
    for size, count in [(100, 100), (N // 2, N // 2), (N, N // 2)]:
        rows, points = draw_rows(source(Rows(broken(*bad), on_invalid="skip")), size, rng())
        assert len(rows) == count == len(np.unique(rows))
        assert (rows % 2 == 1).all()
        np.testing.assert_array_equal(points, X[rows])
    numbers, fields = draw_fields(source(Rows(broken(40, 41, 4000), on_invalid="skip")), N, rng())
    np.testing.assert_array_equal(numbers, np.setdiff1d(np.arange(N), [40, 41, 4000]))
    assert np.isfinite(fields["x"]).all()
