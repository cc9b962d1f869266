"""One measuring path: one plan, one memory formula, one opening of the data."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskspectral.data.opening import open_data, open_regression
from daskspectral.operators import Laplacian
from daskspectral.passes.sums import chunk_bytes, plan_sums

X = np.random.default_rng(0).standard_normal((4000, 3))


def test_one_memory_formula_for_operators_and_regressions() -> None:
    """A dask array of one block of 240 MB was planned with 490 MB by one formula and with 10 MB by the other."""
    rows = 10_000_000
    x, y = da.zeros((rows, 3), chunks=(rows, 3)), da.zeros(rows, chunks=rows)
    operator = Laplacian()
    spectral = open_data(operator, x, columns=None, weight=None, fields=None)
    values, regression = open_regression(x, y)
    assert chunk_bytes(spectral, rows) == 24 * rows
    assert chunk_bytes(values, rows) == 32 * rows
    plans = [
        plan_sums(spectral, operator, (50, None), "float64").memory,
        plan_sums(values, regression, (50, None), "float64").memory,
    ]
    assert all(plan.tasks >= plan.threads * 2 * 24 * rows for plan in plans)
    assert plans[1].tasks / plans[0].tasks == pytest.approx(4 / 3, rel=0.05)
