"""The plan's peak is the measured one: of a process that fits one source, whichever holds the rows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import daskspectral as dsp

CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
import dask, daskspectral as dsp

def status(key):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))

dask.config.set(scheduler="synchronous")
basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(3.0), count=50, method="uniform")
model = dsp.SpectralDecomposition(basis=basis, n_components=4, folds=None, random_state=0)
plan = model.plan(sys.argv[1])
open("/proc/self/clear_refs", "w").write("5")
model.fit(sys.argv[1])
print(status("VmHWM") / plan.memory.peak)
"""
ROWS, COLUMNS = 2_000_000, 5


def parquet(path: Path, x: np.ndarray) -> Path:
    pq.write_table(pa.table({f"c{i}": x[:, i] for i in range(COLUMNS)}), path / "x.parquet", row_group_size=ROWS // 2)
    return path / "x.parquet"


def large_chunks(path: Path, x: np.ndarray) -> Path:
    zarr.create_array(path / "x.zarr", data=x, chunks=(ROWS // 4, COLUMNS))
    return path / "x.zarr"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peaks are measured on Linux")
@pytest.mark.parametrize("make", [parquet, large_chunks])
def test_the_peak_of_reading_is_predicted(make: object, tmp_path: Path) -> None:
    path = make(tmp_path, np.random.default_rng(0).standard_normal((ROWS, COLUMNS)))  # type: ignore[operator]
    found = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True)
    assert 0.85 < float(found.stdout) < 1.15


def test_a_row_group_counts_whole(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((100_000, 2))
    model = dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(count=10), n_components=2, folds=None)
    needed = []
    for size in (1000, 100_000):
        pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), tmp_path / "x.parquet", row_group_size=size)
        needed.append(model.plan(tmp_path / "x.parquet").memory.tasks)
    assert needed[1] - needed[0] > 4 * x.nbytes
