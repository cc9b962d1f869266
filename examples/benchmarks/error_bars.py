"""What error bars cost: CPU seconds of a fit with ten folds, and of the same fit without folds.

Fits of a Gaussian kernel at landmarks to standard normal rows in memory, on Dask's threaded scheduler, one BLAS thread
each, in turn with a `numpy.matmul`. The share of dgemm is that of the useful flops of the chunk kernel,
n (3 p^2 + 2 p d), in the time of the whole fit: reading, landmarks, sums, solution and verdict.

    python examples/benchmarks/error_bars.py --json error_bars.json

Target: error bars for at most 1 s at p = 1000.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl
from common import gemm, options, report

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian

CASES = ((60_000, 20, 1000), (100_000, 20, 300), (400_000, 3, 100))  # rows, columns, landmarks


def one_case(n: int, d: int, p: int, repeats: int) -> dict[str, Any]:
    """Return one line of the table."""
    x, basis = np.random.default_rng(0).standard_normal((n, d)), Landmarks(Gaussian(0.75 * float(np.sqrt(d))), p)
    product, flops = gemm(2048)

    def fit(folds: int | None) -> Callable[[], object]:
        return lambda: SpectralDecomposition(basis=basis, n_components=11, random_state=0, folds=folds).fit(x)

    runs = {"folds": fit(10), "none": fit(None), "dgemm": product}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for r in range(repeats + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if r:
                seconds[name].append(time.process_time() - start)
    cpu = {name: statistics.median(found) for name, found in seconds.items()}
    useful = n * (3 * p**2 + 2 * p * d) / flops * cpu["dgemm"]
    return {
        **{"rows": n, "columns": d, "p": p, "CPU s": cpu["folds"], "without": cpu["none"]},
        "error bars": cpu["folds"] - cpu["none"],
        "share of dgemm": useful / cpu["folds"],
        "share without": useful / cpu["none"],
    }


@click.command(help=__doc__)
@options(repeats=3)
def main(quick: bool, json_path: Path | None, repeats: int) -> None:
    """Measure each case."""
    warnings.simplefilter("ignore")  # ranks and widths do not matter here
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        rows = [one_case(*case, repeats) for case in (((2000, 3, 40),) if quick else CASES)]
    report("error bars of a fit", rows, json_path)


if __name__ == "__main__":
    main()
