"""Predicted against measured peak memory, each fit in a separate process; and that it does not grow with n.

Measured: the high-water mark of the resident memory (VmHWM) of a process that imports daskspectral and fits one
`SpectralDecomposition` to a zarr array on disk (float32) on Dask's threaded scheduler, against the peak that the fit
itself predicts, and logs, before it starts. The memory resident after the imports is subtracted from both. (`getrusage`
is not used: its ru_maxrss starts from the size of the process that forked this one.)
    python examples/benchmarks/memory.py --json memory.json

Targets: correct within 20 % over a dozen configurations; independent of n.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from common import folder_option, memory, normal_zarr, options, report, reset_peak

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian


@dataclass(frozen=True)
class Configuration:
    """One fit of n rows (n, d) with p landmarks."""

    p: int
    d: int
    dtype: str
    threads: int
    n: int

    @classmethod
    def of(cls, p: int, d: int, dtype: str, threads: int) -> Configuration:
        """Return the fit of enough rows for several tasks on each thread, in a few seconds."""
        return cls(p, d, dtype, threads, int(np.clip(1e11 / p**2, 25_000, 1_000_000)))


CONFIGURATIONS = (
    *(Configuration.of(p, 3, "float64", threads) for p, threads in ((100, 1), (200, 2), (500, 1), (2000, 1))),
    *(Configuration.of(p, 20, "float32", 4) for p in (500, 2000)),
    *(Configuration.of(1000, 20, "float64", threads) for threads in (1, 4)),
    *(Configuration.of(p, 100, "float64", threads) for p, threads in ((100, 4), (500, 2), (1000, 2))),
    Configuration(1000, 3, "float64", 2, 600_000),
)
FLAT = tuple(Configuration(200, 3, "float64", 2, n) for n in (100_000, 1_000_000, 10_000_000))
QUICK = (Configuration(50, 3, "float64", 1, 20_000),)


class Prediction(logging.Handler):
    """Keeps the prediction that the fit logs: an object with `peak`, in bytes."""

    peak: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for value in record.args if isinstance(record.args, tuple) else ():
            self.peak = getattr(value, "peak", self.peak)


def fit(path: str, configuration: Configuration) -> dict[str, Any]:
    """Fit in this process; return bytes after the imports, predicted and at the peak."""
    prediction, logger = Prediction(), logging.getLogger("daskspectral")
    logger.addHandler(prediction)
    logger.setLevel(logging.INFO)
    warnings.simplefilter("ignore")  # a rank below n_components does not matter here
    basis = Landmarks(Gaussian(float(np.sqrt(configuration.d))), configuration.p)
    reset_peak()
    imported = memory("VmRSS")
    with dask.config.set(scheduler="threads", num_workers=configuration.threads):
        model = SpectralDecomposition(basis=basis, dtype=configuration.dtype, random_state=0)
        model.fit(path, progress=False)
    return {"imported": imported, "predicted": prediction.peak, "peak": memory("VmHWM")}


def one_configuration(configuration: Configuration, folder: Path) -> dict[str, Any]:
    """Return one line of the table."""
    path = normal_zarr(folder, configuration.n, configuration.d)
    child = json.dumps({"path": str(path), **asdict(configuration)})
    done = subprocess.run([sys.executable, __file__, "--child", child], stdout=subprocess.PIPE, check=True, text=True)
    imported, predicted, peak = json.loads(done.stdout.splitlines()[-1]).values()
    return {
        **asdict(configuration),
        "imports MB": imported / 1e6,
        "predicted MB": (predicted - imported) / 1e6,
        "measured MB": (peak - imported) / 1e6,
        "predicted / measured": (predicted - imported) / (peak - imported),
        "with imports": predicted / peak,
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
    rows = [one_configuration(c, folder) for c in (QUICK if quick else (*CONFIGURATIONS, *FLAT))]
    peaks = [row["imports MB"] + row["measured MB"] for row in rows[-len(FLAT) :]]
    note = f"flat in n: the peak of the whole process differs by {max(peaks) / min(peaks):.2f} times in the last rows"
    report("peak memory of a fit", rows, json_path, ["", note])


if __name__ == "__main__":
    main()
