"""A billion points on disk: the first eigenvalues of the Laplacian of a standard normal distribution.

Writes n rows (float32, zstd, crc32c; a function of n alone) if they are missing, fits Gaussian landmarks (p = 100), or
with --lattice a Fourier lattice (961 functions in two dimensions, 1331 in three), on two threads of one BLAS thread
each, and compares with the closed form: the eigenvalue k has multiplicity k + 1 (d = 2) or (k + 1)(k + 2) / 2 (d = 3).
The memory is the peak of the whole process during the fit.

    python examples/benchmarks/billion.py --json billion.json                # 11 GB in --folder
    python examples/benchmarks/billion.py --lattice --d 2 --json modes.json  # 7.5 GB
    python examples/benchmarks/billion.py --n 1e7                            # the same in seconds
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from common import folder_option, memory, normal_zarr, options, report, reset_peak

from daskspectral import SpectralDecomposition
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.errors import RankWarning
from daskspectral.kernels import Gaussian


def closed_form(d: int, count: int) -> np.ndarray:
    """Return the first eigenvalues, ascending."""
    several = (lambda k: k + 1) if d == 2 else (lambda k: (k + 1) * (k + 2) // 2)
    return np.concatenate([np.full(several(k), float(k)) for k in range(count)])[:count]


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--n", "size", default="1e9", show_default=True, help="rows")
@click.option("--d", default=3, show_default=True, type=click.IntRange(2, 3), help="columns")
@click.option("--lattice", is_flag=True, help="a Fourier lattice in place of landmarks")
@click.option("--p", default=100, show_default=True, help="landmarks")
@click.option("--scale", default=4.5, show_default=True, help="of the Gaussian kernel")
@click.option("--threads", default=2, show_default=True)
@click.option("--checkpoint", type=click.Path(path_type=Path), help="a directory for the sums so far")
def main(
    quick: bool,
    json_path: Path | None,
    folder: Path,
    size: str,
    d: int,
    lattice: bool,
    p: int,
    scale: float,
    threads: int,
    checkpoint: Path | None,
) -> None:
    """Write, fit, compare."""
    n = 200_000 if quick else int(float(size))
    path = normal_zarr(folder, n, d)
    warnings.simplefilter("ignore", RankWarning)
    basis = FourierBasis() if lattice else Landmarks(Gaussian(scale), p)
    model = SpectralDecomposition(basis=basis, n_components=20, random_state=0)
    reset_peak()
    imported, start = memory("VmRSS"), time.perf_counter()
    with dask.config.set(scheduler="threads", num_workers=threads):
        model.fit(path, **({} if checkpoint is None else {"checkpoint": checkpoint}))
    seconds, peak = time.perf_counter() - start, memory("VmHWM")
    found, (low, high) = model.eigenvalues_, model.eigenvalue_errors_.T
    exact = closed_form(d, len(found))
    rows = []
    for level in np.unique(exact):
        same = exact == level
        inside = np.count_nonzero((low[same] <= level) & (level <= high[same]))
        far = np.abs(found[same] - level).max()
        rows.append({"eigenvalue": level, "values": same.sum(), "largest distance": far, "intervals hold": inside})
    numbers: dict[str, Any] = {
        "functions": model.moments_.basis.size,
        "seconds": seconds,
        "million rows per second": n / seconds / 1e6,
        "peak MB": peak / 1e6,
        "peak above imports MB": (peak - imported) / 1e6,
    }
    notes = [f"{name}: {value:.4g}" for name, value in numbers.items()]
    report(f"{n:.3g} points, d = {d}, {type(basis).__name__}", rows, json_path, notes, eigenvalues=found, **numbers)


if __name__ == "__main__":
    main()
