"""Points that are stored, runs of many epochs, and the bars of a run."""

import io
from pathlib import Path

import pytest
from tqdm import tqdm

from daskspectral.data import writing
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


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Of every bar that was closed: what it was of, its total, and how far it came."""
    closed: list[tuple[str, int, int]] = []

    class Recorded(tqdm):
        def close(self) -> None:
            if not self.disable:
                closed.append((self.desc, self.total, self.n))
            super().close()

    monkeypatch.setattr(writing, "tqdm", lambda **options: Recorded(**{**options, "file": io.StringIO()}))
    return closed
