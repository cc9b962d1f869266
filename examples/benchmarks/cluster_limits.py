"""1e12 rows on 1e4 workers, computed from what a row, a solution and a task cost here: where Dask's limits lie.

Measured for each number of functions p and columns d, Gaussian kernel (or the lattice) on rows in memory: the seconds
of a row, by the probe of a plan (`est.plan(X, probe=True)`); those of the driver, of a fit without its pass; and the
cost of a task on a `LocalCluster` of two processes: seconds of graphs of tasks that do nothing, over their number.
Computed:

- "row us": one row on one core; "hours": all rows on all workers, if nothing else cost anything;
- "tasks": as the plan cuts them, and the seconds of one; "scheduler h": what the scheduler, one process, takes for them
  and their additions, two tasks for each range of rows;
- "least s": the length of a task from which the scheduler keeps up, twice its cost for each worker;
- "driver MB/s": what reaches the driver of the sums of ten folds, from each epoch of 100 tasks of that length, or of
  their own where this is more;
- "worker MB/s": what a worker sends, each of its results once, and reads from the store;
- "driver s": what the driver alone takes before and after the pass: the choice of landmarks, and the solution.

A second table tells for some fits how many cores pay: "core h" of the pass, its "tasks", the "cores" on which it takes
as long as the driver alone takes before and after it, or as many as there are tasks or the scheduler can serve, where
these are fewer; and the minutes of the fit on one core, on sixteen, and on those.

    python examples/benchmarks/cluster_limits.py --json cluster_limits.json
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report, table

import daskspectral as dsp
from daskspectral.engine.memory import local_threads
from daskspectral.engine.plan import task_rows
from daskspectral.passes.folds import DEALT_EPOCH, DEFAULT
from daskspectral.passes.sums import MODE_FLOPS

SHAPES = ((100, 3), (500, 10), (1000, 50), (2000, 100))
LATTICE = (15, 2)
FITS = ((1e6, 500, 10), (1e7, 100, 3), (1e7, 1000, 10), (1e8, 500, 10), (1e9, 100, 3), (1e9, 1000, 50), (1e11, 500, 10))
ITEM = 4  # bytes of a float32


@dataclass(frozen=True)
class Fit:
    """What was measured of fits with p functions of d columns; `entries` are the numbers of a task's sums."""

    p: int
    d: int
    name: str
    row: float
    driver: float
    entries: int
    flops: float

    def tasks_of(self, n: float) -> int:
        """Into how many tasks n rows are cut."""
        return max(1, int(n / task_rows(int(n), self.flops, 8 * self.d)))


def measured(p: int, d: int, rows: int, *, lattice: bool = False) -> Fit:
    """The seconds of a row and of the driver, from a probe and a fit of so many normal rows; p is a lattice's order."""
    x = np.random.default_rng(0).standard_normal((rows, d), dtype="float32")
    basis = dsp.basis.FourierLattice(p) if lattice else dsp.basis.Landmarks(dsp.kernels.Gaussian(d**0.5), p)
    est = dsp.SpectralDecomposition(basis=basis, folds=None, random_state=0)
    alone = est.plan(x, probe=True).probe
    assert alone is not None
    start, pass_seconds = time.perf_counter(), alone.task * alone.tasks
    est.set_params(folds=DEFAULT).fit(x, progress=False)
    driver = time.perf_counter() - start - pass_seconds / local_threads()
    if lattice:
        order, size = p, (2 * p + 1) ** d
        return Fit(size, d, f"lattice, {size}", pass_seconds / rows, driver, 2 * (4 * order + 1) ** d, MODE_FLOPS)
    flops = 4.0 * p * p + 2.0 * p * d + 50.0 * p
    return Fit(p, d, f"{p}", pass_seconds / rows, max(driver, 1e-3), 2 * p * p, flops)


def cluster_task(tasks: int, repeats: int) -> float:
    """The seconds of the clock that a task which does nothing takes on a cluster of two processes."""
    from distributed import Client, LocalCluster

    best = math.inf
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        for round in range(repeats + 1):
            graph = {(f"nothing {round}", i): (int, i) for i in range(tasks)}
            start = time.perf_counter()
            client.get(graph, list(graph))
            if round:
                best = min(best, (time.perf_counter() - start) / tasks)
    return best


def line(fit: Fit, scheduler: float, n: float, workers: int) -> dict[str, Any]:
    """One line of the table."""
    tasks, least = fit.tasks_of(n), 2 * scheduler * workers
    task = n * fit.row / tasks
    length = max(least, task)
    epoch = DEFAULT * max(1, DEALT_EPOCH // DEFAULT)
    return {
        "functions": fit.name,
        "d": fit.d,
        "row us": 1e6 * fit.row,
        "hours": n * fit.row / workers / 3600,
        "tasks": f"{tasks:.1e}",
        "a task s": task,
        "scheduler h": 2 * tasks * scheduler / 3600,
        "least s": least,
        "rows of it": f"{least / fit.row:.1e}",
        "driver MB/s": DEFAULT * 8 * fit.entries / epoch * workers / length / 1e6,
        "worker MB/s": (8 * fit.entries / length + ITEM * fit.d / fit.row) / 1e6,
        "driver s": fit.driver,
    }


def advice(fit: Fit, scheduler: float, n: float) -> dict[str, Any]:
    """One line of the table of cores that pay."""
    tasks, whole = fit.tasks_of(n), n * fit.row
    task = whole / tasks
    cores = max(1, min(int(whole / fit.driver), tasks, int(task / (2 * scheduler))))
    minutes = {k: (fit.driver + math.ceil(tasks / k) * task) / 60 for k in (1, 16, cores)}
    return {
        "n": f"{n:.0e}",
        "p": fit.p,
        "d": fit.d,
        "core h": whole / 3600,
        "tasks": tasks,
        "cores": cores,
        "on 1, min": minutes[1],
        "on 16, min": minutes[16],
        "on those, min": minutes[cores],
    }


@click.command(help=__doc__)
@options(repeats=3)
@click.option("--n", default=1e12, show_default=True, help="Rows.")
@click.option("--workers", default=10_000, show_default=True, help="Workers of one core each.")
def main(quick: bool, repeats: int, json_path: Path | None, n: float, workers: int) -> None:
    """Measure and compute."""
    warnings.simplefilter("ignore")
    scheduler = cluster_task(100 if quick else 4000, 1 if quick else repeats)
    shapes = [*SHAPES, *(shape[1:] for shape in FITS)]
    if quick:
        shapes = [(min(p, 20), d) for p, d in shapes]
    fits = {(p, d): measured(p, d, 1000 if quick else max(10 * p, 100_000)) for p, d in dict.fromkeys(shapes)}
    order, d = LATTICE
    lattice = measured(order, d, 1000 if quick else 1_000_000, lattice=True)
    rows: Rows = [line(fits[shape], scheduler, n, workers) for shape in shapes[: len(SHAPES)]]
    rows.append(line(lattice, scheduler, n, workers))
    notes = ["", f"a task that does nothing costs {1e3 * scheduler:.2f} ms on a LocalCluster of two processes"]
    sizes = [size for size, *_ in FITS]
    paying = [advice(fits[shape], scheduler, size) for shape, size in zip(shapes[len(SHAPES) :], sizes, strict=True)]
    notes += ["", "Cores that pay:", "", table(paying, markdown=True)]
    report(
        f"{n:.0e} rows on {workers} workers", rows, json_path, notes, markdown=True, scheduler=scheduler, paying=paying
    )


if __name__ == "__main__":
    main()
