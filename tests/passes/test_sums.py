"""One measuring path: one plan, one memory formula, one opening of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data import readers
from daskspectral.data.opening import open_data, open_regression
from daskspectral.estimators import base
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


def test_no_step_of_a_fit_is_taken_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(1000, 3))
    steps: list[str] = []

    def counted(module: Any, name: str) -> None:
        plain = getattr(module, name)

        def step(*arguments: Any, **options: Any) -> Any:
            steps.append(name)
            return plain(*arguments, **options)

        monkeypatch.setattr(module, name, step)

    counted(readers.zarr, "open")
    counted(base, "plan_sums")
    counted(base, "measure")
    counted(base, "Snapshot")
    monkeypatch.chdir(tmp_path)
    main(["fit", "x.zarr", "--landmarks", "20", "--components", "3", "--out", "m.zarr", "--no-progress"])
    # opened to see whether there are labels, and as an array of rows
    assert sorted(steps) == ["Snapshot", "measure", "open", "open", "plan_sums"]
    assert dsp.load("m.zarr").moments_.count == 4000
