"""Predicted against measured peak memory, each fit in a process of its own; and that it does not grow with n.

Measured: the high-water mark of the resident memory (VmHWM) of a process that imports daskspectral and fits one
`SpectralDecomposition` to a zarr array on disk (float32) on Dask's threaded scheduler, against the peak that the fit
itself predicts, and logs, before it starts. The memory resident after the imports is subtracted from both. (`getrusage`
is not used: its ru_maxrss starts from the size of the process that forked this one.) "chunk MB" is the size of one zarr
chunk when decompressed.

    python examples/benchmarks/memory.py --json memory.json

Targets: correct within 20 % over a dozen configurations; independent of n.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import zarr
from common import folder_option, memory, normal_zarr, options, report, reset_peak

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.operators import Laplacian


@dataclass(frozen=True)
class Configuration:
    """One fit; `chunk` rows to a plain zarr chunk, or None for what our own writer chooses; `folds` of the sums."""

    p: int
    d: int
    dtype: str
    threads: int
    chunk: int | None = None
    n: int | None = None
    folds: int | None = 10

    @property
    def rows(self) -> int:
        """Enough rows that each thread has several tasks, and no more than some seconds of work."""
        return self.n or int(np.clip(1e11 / self.p**2, 25_000, 1_000_000))


CONFIGURATIONS = (
    Configuration(100, 3, "float64", 1),
    Configuration(100, 100, "float64", 4),
    Configuration(200, 3, "float64", 2),
    Configuration(200, 20, "float32", 2, 250_000),
    Configuration(500, 3, "float64", 1),
    Configuration(500, 20, "float32", 4),
    Configuration(500, 100, "float64", 2, 50_000),
    Configuration(1000, 3, "float32", 2),
    Configuration(1000, 20, "float64", 1),
    Configuration(1000, 20, "float64", 4),
    Configuration(1000, 20, "float64", 4, folds=None),
    Configuration(1000, 100, "float64", 2),
    Configuration(2000, 3, "float64", 1),
    Configuration(2000, 20, "float64", 2),
    Configuration(2000, 20, "float32", 4),
    Configuration(1000, 3, "float64", 2, n=600_000),  # enough tasks to deal them
)
FLAT = tuple(Configuration(200, 3, "float64", 2, n=n) for n in (100_000, 1_000_000, 10_000_000))
QUICK = (
    Configuration(50, 3, "float64", 1, n=20_000, folds=None),
    Configuration(60, 20, "float32", 2, 10_000, n=40_000),
)


class Prediction(logging.Handler):
    """Keeps the prediction that the fit logs: an object with `peak`, in bytes."""

    peak: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for value in record.args if isinstance(record.args, tuple) else ():
            self.peak = getattr(value, "peak", self.peak)


def fit(path: str, configuration: Configuration) -> dict[str, Any]:
    """Fit in this process; bytes after the imports, predicted and at the peak."""
    prediction, logger = Prediction(), logging.getLogger("daskspectral")
    logger.addHandler(prediction)
    logger.setLevel(logging.INFO)
    warnings.simplefilter("ignore")  # a rank below n_components is no matter here
    p, d = configuration.p, configuration.d
    reset_peak()
    imported, start = memory("VmRSS"), time.perf_counter()
    with dask.config.set(scheduler="threads", num_workers=configuration.threads):
        kernel = Gaussian(float(np.sqrt(d)))
        SpectralDecomposition(
            Laplacian(), Landmarks(kernel, p), dtype=configuration.dtype, folds=configuration.folds, random_state=0
        ).fit(path, progress=False)
    seconds = time.perf_counter() - start
    return {"imported": imported, "predicted": prediction.peak, "peak": memory("VmHWM"), "seconds": seconds}


def plain_zarr(folder: Path, n: int, d: int, chunk: int) -> Path:
    """Standard normal rows (n, d) as float32 zarr of plain chunks, as other programs write them."""
    path = folder / f"plain-{n}-{d}-{chunk}.zarr"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        array = zarr.create_array(path, shape=(n, d), chunks=(chunk, d), dtype="float32")
        for i in range(0, n, chunk):
            rows = min(chunk, n - i)
            array[i : i + rows] = np.random.default_rng(i).standard_normal((rows, d), dtype="float32")
    return path


def one_configuration(configuration: Configuration, folder: Path) -> dict[str, Any]:
    """One line of the table."""
    n, d, chunk = configuration.rows, configuration.d, configuration.chunk
    path = normal_zarr(folder, n, d) if chunk is None else plain_zarr(folder, n, d, chunk)
    child = json.dumps({"path": str(path), **asdict(configuration)})
    done = subprocess.run([sys.executable, __file__, "--child", child], stdout=subprocess.PIPE, check=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    measured = found["peak"] - found["imported"]
    predicted = None if found["predicted"] is None else found["predicted"] - found["imported"]
    return {
        "p": configuration.p,
        "d": d,
        "dtype": configuration.dtype,
        "threads": configuration.threads,
        "folds": configuration.folds,
        "chunk MB": zarr.open_array(path, mode="r").chunks[0] * d * 4 / 1e6,
        "n": n,
        "imports MB": found["imported"] / 1e6,
        "predicted MB": None if predicted is None else predicted / 1e6,
        "measured MB": measured / 1e6,
        "predicted / measured": None if predicted is None else predicted / measured,
        "with imports": None if predicted is None else found["predicted"] / found["peak"],
        "seconds": found["seconds"],
    }


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--child", hidden=True, help="one configuration, in this process")
def main(quick: bool, json_path: Path | None, folder: Path, child: str | None) -> None:
    """Measure each configuration."""
    if child is not None:
        given = json.loads(child)
        click.echo(json.dumps(fit(given.pop("path"), Configuration(**given))))
        return
    rows = [one_configuration(c, folder) for c in (QUICK if quick else CONFIGURATIONS)]
    flat = [one_configuration(c, folder) for c in (QUICK[:1] if quick else FLAT)]
    ratios = [row["predicted / measured"] for row in rows if row["predicted / measured"] is not None]
    sizes = [row["imports MB"] + row["measured MB"] for row in flat]
    notes = [
        "flat in n: the peak of the whole process differs by a factor of "
        f"{max(sizes) / min(sizes):.2f} in the last {len(flat)} rows"
    ]
    if ratios:
        notes.append(f"predicted / measured: from {min(ratios):.2f} to {max(ratios):.2f}")
    else:
        notes.append("this version of daskspectral predicts nothing")
    report("peak memory of a fit", rows + flat, json_path, notes)


if __name__ == "__main__":
    main()
