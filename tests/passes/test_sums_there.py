"""The pass over the rows on an accelerator: large blocks, read ahead, a few in flight."""

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.basis import Block, Landmarks
from daskspectral.data import batches
from daskspectral.devices import Device
from daskspectral.kernels import Gaussian
from daskspectral.moments.measure import Measurement
from daskspectral.moments.modes import ModeMeasurement
from tests.common import doubtful

ROWS = 300_001


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each block that was summed."""
    sizes: list[int] = []
    for kind in (Measurement, ModeMeasurement):
        plain = kind.add

        def add(self: Any, block: Block, plain: Any = plain) -> None:
            sizes.append(len(block.x))
            plain(self, block)

        monkeypatch.setattr(kind, "add", add)
    return sizes


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Rows in chunks that are no multiple of a block."""
    rng = np.random.default_rng(0)
    array = zarr.create_array(tmp_path / "x.zarr", shape=(ROWS, 2), chunks=(10_000, 2), dtype="float32")
    array[:] = rng.standard_normal((ROWS, 2))
    return tmp_path / "x.zarr"


def estimator(folds: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    landmarks = Landmarks(Gaussian(1.0), 5, method="uniform")
    return dsp.SpectralDecomposition(basis=landmarks, n_components=3, folds=folds, random_state=0, **options)


@doubtful
def test_blocks_are_large(points: Path, stand_in: Device, seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "READ_BYTES", 1000)  # as of wide rows: chunks are not read together for their size
    here = estimator(3).fit(str(points))
    assert max(seen) <= 2048
    seen.clear()
    there = estimator(3, device="cuda").fit(str(points))
    assert sum(seen) == ROWS
    tasks = len(there.plan(str(points)).ranges.ranges)
    assert sum(size < 65_536 for size in seen) <= tasks * 3  # the last of each fold in a task
    assert max(seen) == 65_536
    np.testing.assert_allclose(there.moments_.arrays["form"], here.moments_.arrays["form"], rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(there.moments_.order, here.moments_.order, rtol=1e-10, atol=1e-8)


@doubtful
def test_reading_ahead_changes_no_bit(points: Path, stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = estimator(3, device="cuda").fit(str(points))
    assert not [t for t in threading.enumerate() if t.name.startswith("daskspectral-reader")]
    monkeypatch.setattr("daskspectral.engine.tasks.read_ahead", nullcontext)
    plain = estimator(3, device="cuda").fit(str(points))
    for name, values in plain.moments_.arrays.items():
        np.testing.assert_array_equal(ahead.moments_.arrays[name], values)
    assert ahead.moments_.count == plain.moments_.count == ROWS
