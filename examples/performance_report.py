"""Performance report of a cluster
===============================

A performance report of a fit on a cluster, with its stages by name.

The report is one HTML file: the task stream (which worker did what when), a profile of the workers' code, bandwidths.
Tasks are named by the stages of the fit: `standardize`, `landmarks`, `sums` and their `tree`, `apply`.

Usage::

    python examples/performance_report.py [--n 1e6] [--out FOLDER] [--scheduler tcp://...]

It requires the extra `dashboard`. On a cluster of several machines, FOLDER must be one that the workers see.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster, performance_report

from daskspectral import Rows, SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.datasets import write
from daskspectral.kernels import Gaussian

REPORT = "performance_report.html"
TASKS = ["standardize", "landmarks", "sums", "apply"]  # and "tree", of fits with several tasks


def main(n: int = 1_000_000, out: str | Path = ".", scheduler: str | None = None) -> dict[str, float]:
    """Report on a fit to n points and on their transformation; the seconds that each call took."""
    folder = Path(out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    points, report = folder / "points.zarr", folder / REPORT
    write("two-moons", points, n, chunk_rows=max(1000, n // 40), overwrite=True)
    estimator = SpectralDecomposition(basis=Landmarks(Gaussian(0.3), 100), n_components=8, random_state=0)

    with ExitStack() as stack:
        if scheduler is None:
            scheduler = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))
        client = stack.enter_context(Client(scheduler))
        print(f"dashboard: {client.dashboard_link}")
        began = time.perf_counter()
        with performance_report(filename=str(report)):
            estimator.fit(Rows(points, standardize=True), progress=False)
            fitted = time.perf_counter()
            estimator.transform(points, out=folder / "functions.zarr", overwrite=True, progress=False)
        seconds = {"fit": fitted - began, "transform": time.perf_counter() - fitted}
    print(f"report: {report}")

    text = report.read_text(encoding="utf-8")
    assert all(f'"{name}-' in text for name in TASKS), "a stage that the report does not name"
    assert np.isclose(estimator.eigenvalues_[0], 0)
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--n", type=lambda text: int(float(text)), default=1_000_000, help="points")
    parser.add_argument("--out", default=".", help="the folder of the report, the points and the functions")
    parser.add_argument("--scheduler", help="of a running cluster; two processes by default")
    options = parser.parse_args()
    for stage, seconds in main(options.n, options.out, options.scheduler).items():
        print(f"{stage:12}{seconds:8.2f} s")
