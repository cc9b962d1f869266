"""Points that are stored, and runs of many epochs."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskspectral.data.writer import create_array
from daskspectral.engine import plan as planning
from daskspectral.passes import folds


@pytest.fixture
def points(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The array X of the test's module, in chunks of 1000 rows."""
    path, x = tmp_path / "points.zarr", request.module.X
    with create_array(path, x.shape, "float64", chunk_rows=1000) as array:
        array[:] = x
    return path


@pytest.fixture
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EPOCH", 2), ("TASK_FLOPS", 3e6), ("LEAST_FLOPS", 3e6)):
        monkeypatch.setattr(planning, name, value)
    monkeypatch.setattr(folds, "LEAST_JOINED", 1 << 20)
