"""Points that are stored, runs of many epochs, and the bars of a run."""

from pathlib import Path

import pytest

from daskspectral.data.writing import create_array
from tests.engine.common import CHUNK, SHORT, X


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """The array X, in chunks of 1000 rows."""
    path = tmp_path / "points.zarr"
    with create_array(path, X.shape, "float64", chunk_rows=CHUNK) as array:
        array[:] = X
    return path


@pytest.fixture
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SHORT:
        monkeypatch.setattr(module, name, value)
