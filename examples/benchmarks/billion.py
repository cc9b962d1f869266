"""A billion points on disk: the first eigenvalues of the Laplacian of a standard normal distribution in R^3.

Writes n rows (float32, zstd, crc32c; a function of n alone) where they are missing, fits a Gaussian kernel at p = 100
landmarks through the engine, with two threads of one BLAS thread each, and compares with the closed form: the
eigenvalue k has multiplicity (k + 1)(k + 2) / 2 (Hermite polynomials of total degree k): 0; 1 x 3; 2 x 6; 3 x 10.
The memory is the peak of the whole process during the fit. With --checkpoint, a stopped run goes on.

    python examples/benchmarks/billion.py --json billion.json           # 11 GB in --folder
    python examples/benchmarks/billion.py --n 1e7                       # the same in seconds
"""

from __future__ import annotations

import logging
import multiprocessing
import time
import warnings
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from common import folder_option, forget, memory, normal_zarr, options, report, reset_peak

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.errors import RankWarning
from daskspectral.kernels import Gaussian
from daskspectral.operators import Laplacian

COMPONENTS = 20
DIMENSION = 3


def closed_form(count: int) -> np.ndarray:
    """The first eigenvalues, ascending."""
    levels = [np.full((k + 1) * (k + 2) // 2, float(k)) for k in range(count)]
    return np.concatenate(levels)[:count]


def written(folder: Path, n: int) -> Path:
    """The data, written by a process of its own: this one's memory is measured."""
    process = multiprocessing.get_context("spawn").Process(target=normal_zarr, args=(folder, n, DIMENSION))
    process.start()
    process.join()
    if process.exitcode:
        raise click.ClickException(f"the data could not be written to {folder}")
    return normal_zarr(folder, n, DIMENSION)


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--n", "size", default="1e9", show_default=True, help="rows")
@click.option("--p", default=100, show_default=True, help="landmarks")
@click.option("--scale", default=4.5, show_default=True, help="of the Gaussian kernel")
@click.option("--threads", default=2, show_default=True)
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
@click.option("--cold", is_flag=True, help="drop the data from the page cache first")
@click.option("--checkpoint", type=click.Path(path_type=Path), help="a directory for the sums so far")
def main(
    quick: bool,
    json_path: Path | None,
    folder: Path,
    size: str,
    p: int,
    scale: float,
    threads: int,
    dtype: str,
    cold: bool,
    checkpoint: Path | None,
) -> None:
    """Write, fit, compare."""
    n = 200_000 if quick else int(float(size))
    path = written(folder, n)
    if cold:
        forget(path)
    logging.basicConfig(format="%(message)s")
    logging.getLogger("daskspectral").setLevel(logging.INFO)
    warnings.simplefilter("ignore", RankWarning)
    more: dict[str, Any] = {} if checkpoint is None else {"checkpoint": checkpoint}
    estimator = SpectralDecomposition(
        Laplacian(), Landmarks(Gaussian(scale), p), n_components=COMPONENTS, dtype=dtype, random_state=0
    )
    reset_peak()
    imported, start, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    with dask.config.set(scheduler="threads", num_workers=threads):
        estimator.fit(path, **more)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = memory("VmHWM")
    found = estimator.eigenvalues_
    exact = closed_form(len(found))
    rows = [
        {
            "eigenvalue": level,
            "multiplicity": int(np.count_nonzero(exact == level)),
            "least": found[exact == level].min(),
            "most": found[exact == level].max(),
            "largest distance": np.abs(found[exact == level] - level).max(),
        }
        for level in np.unique(exact)
    ]
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    numbers = {
        "n": n,
        "d": DIMENSION,
        "p": p,
        "scale": scale,
        "dtype": dtype,
        "threads": threads,
        "seconds": seconds,
        "cpu seconds": cpu,
        "million rows per second": n / seconds / 1e6,
        "stored GB": stored / 1e9,
        "peak MB": peak / 1e6,
        "peak above imports MB": (peak - imported) / 1e6,
        "rank": estimator.rank_,
        "eigenvalues": found,
    }
    notes = [f"{name}: {value:.4g}" for name, value in numbers.items() if isinstance(value, float)]
    notes.append("eigenvalues: " + " ".join(f"{value:.4f}" for value in found))
    report(f"{n:.3g} points, d = {DIMENSION}, Gaussian kernel, p = {p}", rows, json_path, notes, **numbers)


if __name__ == "__main__":
    main()
