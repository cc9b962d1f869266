"""Points that are stored, runs of many epochs, and the bars of a run."""

from pathlib import Path

import pytest
import zarr

from tests.engine.common import CHUNK, SHORT, X


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """The array X, in chunks of 1000 rows."""
    path = tmp_path / "points.zarr"
    zarr.create_array(path, data=X, chunks=(CHUNK, 2))
    return path


@pytest.fixture
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SHORT:
        monkeypatch.setattr(module, name, value)
