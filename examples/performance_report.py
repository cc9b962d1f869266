"""A performance report of a fit on a cluster, with its stages by name, and events that follow it from anywhere.

The report is one HTML file: the task stream (which worker did what when), a profile of the workers' code, bandwidths.
Tasks are named by the stages of the fit: `standardize`, `landmarks`, `sums` and their `tree`, `apply`; each stage is a
span, ("daskspectral", "fit") for one, on the page of fine performance metrics. What a progress bar would show comes as
events of the topic "daskspectral", to this client or any other of the scheduler.

    python examples/performance_report.py [--n 1e6] [--out FOLDER] [--scheduler tcp://...]

It takes the extra `dashboard`. On a cluster of several machines, FOLDER must be one that the workers see.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster, performance_report

from daskspectral import Rows, SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.datasets import write
from daskspectral.kernels import Gaussian

REPORT = "performance_report.html"
STAGES = ["standardize", "landmarks", "fit", "transform"]
TASKS = ["standardize", "landmarks", "sums", "apply"]  # and "tree", of fits with several tasks


def main(n: int = 1_000_000, out: str | Path = ".", scheduler: str | None = None) -> dict[str, float]:
    """Report on a fit to n points and on their transformation; the seconds that each stage took."""
    folder = Path(out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    points, report = folder / "points.zarr", folder / REPORT
    write("two-moons", points, n, chunk_rows=max(1000, n // 40), overwrite=True)
    estimator = SpectralDecomposition(basis=Landmarks(Gaussian(0.3), 100), n_components=8, random_state=0)

    def follow(event: tuple[float, dict[str, Any]]) -> None:
        print("{stage:12}{state:10}{done:10} of {total} {unit}, {seconds:.1f} s".format(**event[1]))

    with ExitStack() as stack:
        if scheduler is None:
            scheduler = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))
        client = stack.enter_context(Client(scheduler))
        print(f"dashboard: {client.dashboard_link}")
        client.subscribe_topic("daskspectral", follow)
        with performance_report(filename=str(report)):
            estimator.fit(Rows(points, standardize=True), progress=False)
            estimator.transform(points, out=folder / "functions.zarr", overwrite=True, progress=False)
        followed = [event for _, event in client.get_events("daskspectral") if event["state"] == "finished"]
    print(f"report: {report}")

    assert [event["stage"] for event in followed] == STAGES, followed
    assert {event["done"] for event in followed} == {n}, followed
    text = report.read_text(encoding="utf-8")
    assert all(f'"{name}-' in text for name in TASKS), "a stage that the report does not name"
    assert np.isclose(estimator.eigenvalues_[0], 0)
    return {event["stage"]: event["seconds"] for event in followed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=lambda text: int(float(text)), default=1_000_000, help="points")
    parser.add_argument("--out", default=".", help="the folder of the report, the points and the functions")
    parser.add_argument("--scheduler", help="of a running cluster; two processes by default")
    options = parser.parse_args()
    for stage, seconds in main(options.n, options.out, options.scheduler).items():
        print(f"{stage:12}{seconds:8.2f} s")
