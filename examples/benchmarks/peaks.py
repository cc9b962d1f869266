"""Predicted against measured peak memory of a process that fits one source, over kinds of data.

Measured: the high-water mark (VmHWM) of a process that plans a fit, and then fits, on one thread; the plan has the peak
of the whole process. Fits of one zarr array over numbers of landmarks, columns and threads are in `memory.py`.
    python examples/benchmarks/peaks.py --json peaks.json

Target: within 15 %.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr
import zarr
from common import options, report

CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
import dask, dask.array, numpy as np, xarray as xr
import daskspectral as dsp

def status(key):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))

def normal(rows, columns, chunk):
    def block(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        return np.random.default_rng(start).standard_normal((stop - start, columns)).astype("float32")
    return dask.array.map_blocks(block, chunks=((chunk,) * (rows // chunk), (columns,)), dtype="float32")

dask.config.set(scheduler="synchronous")
x = eval(sys.argv[1])
scale, shared = eval(sys.argv[2]), {"n_components": 4, "folds": eval(sys.argv[3]), "random_state": 0}
if scale is None:
    model = dsp.EOF(**shared)
else:
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(scale), n_landmarks=50, method="uniform")
    model = dsp.SpectralDecomposition(basis=basis, **shared)
plan = model.plan(x)
open("/proc/self/clear_refs", "w").write("5")
model.fit(x)
print(status("VmHWM") / plan.memory.peak)
"""
ROWS, COLUMNS = 2_000_000, 5


def parquet(x: np.ndarray) -> None:
    pq.write_table(pa.table({f"c{i}": x[:, i] for i in range(COLUMNS)}), "x.parquet", row_group_size=ROWS // 2)


def large_chunks(x: np.ndarray) -> None:
    zarr.create_array("x.zarr", data=x, chunks=(ROWS // 4, COLUMNS))


def places(x: np.ndarray) -> None:
    zarr.create_array("x.zarr", data=x.reshape(500, -1), chunks=(500, 2000))


def netcdf(x: np.ndarray) -> None:
    data = xr.Dataset({"x": (("t", "c"), x)})
    data.to_netcdf("x.nc", engine="h5netcdf", encoding={"x": {"chunksizes": (ROWS // 4, COLUMNS), "zlib": True}})


def daily(x: np.ndarray) -> None:
    field = x.astype("float32")[: 4000 * 2500 // COLUMNS].reshape(4000, 50, 50)
    times = np.datetime64("2000-01-01") + np.arange(4000) * np.timedelta64(1, "D")
    data = xr.Dataset({"x": (("time", "lat", "lon"), field)}, {"time": times})
    data.to_netcdf("x.nc", engine="h5netcdf", encoding={"x": {"chunksizes": (30, 50, 50)}})


CASES = {  # what writes the rows, what reads them, the scale of the kernel (None for EOF) and the number of folds
    "Parquet": (parquet, "'x.parquet'", 3.0, None),
    "zarr": (large_chunks, "'x.zarr'", 3.0, None),
    "NetCDF": (netcdf, "'x.nc'", 3.0, None),
    "daily NetCDF": (daily, "'x.nc'", 50.0, 10),
    "xarray, lazy": (daily, "xr.open_dataset('x.nc', chunks={'time': 500})", 50.0, None),
    "dask": (None, f"normal({ROWS}, {COLUMNS}, 500_000)", 3.0, 10),
    "zarr, chunks of places": (places, "'x.zarr'", None, 10),
    "dask, chunks of places": (places, "dask.array.from_zarr('x.zarr')", None, 10),
    "dask, wide": (None, "normal(4000, 2500, 500)", 50.0, None),
}


def measured(case: str, folder: Path) -> float:
    """Return the measured over the predicted peak of one case, whose data are written to a folder."""
    make, x, scale, folds = CASES[case]
    before = os.getcwd()
    os.chdir(folder)
    try:
        if make is not None:
            make(np.random.default_rng(0).standard_normal((ROWS, COLUMNS)))
        words = [sys.executable, "-c", CHILD, x, str(scale), str(folds)]
        # dask's nannies leave their setting of malloc in the environment of the process that starts them
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        return float(subprocess.check_output(words, env=environment, text=True))
    finally:
        os.chdir(before)


@click.command(help=__doc__)
@options(repeats=2)
def main(quick: bool, json_path: Path | None, repeats: int) -> None:
    """Measure each kind of data."""
    rows = []
    for case in [*CASES][: 1 if quick else None]:
        found = []
        for _ in range(1 if quick else repeats):
            with tempfile.TemporaryDirectory() as folder:
                found.append(measured(case, Path(folder)))
        rows.append({"data": case, "least measured / predicted": min(found), "largest": max(found)})
    report("peak memory by kind of data", rows, json_path)


if __name__ == "__main__":
    main()
