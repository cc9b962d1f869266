"""1e12 rows on 1e4 workers, computed from costs that are measured here: where Dask's limits lie.

Measured: the constants of the cost model (`daskspectral plan --calibrate`, or the file --calibration), and the cost of
a task on a `LocalCluster` of two processes: seconds of graphs of tasks that do nothing, over their number. Computed for
each number of functions p and columns d, the rows as float32 zarr, the Gaussian kernel (or the lattice):

- "row us": one row on one core; "hours": all rows on all workers, if nothing else cost anything;
- "tasks": as the plan cuts them, and the seconds of one; "scheduler h": what the scheduler, one process, takes for them
  and their additions, two tasks for each range of rows;
- "least s": the length of a task from which the scheduler keeps up, twice its cost for each worker;
- "driver MB/s": what reaches the driver of the sums of ten folds, from each epoch of 100 tasks of that length, or of
  their own where this is more;
- "worker MB/s": what a worker sends, each of its results once, and reads from the store;
- "solution s": on the driver, after the pass, with one BLAS thread, by powers of p from what was measured.

A second table tells for some fits how many cores pay: "core h" of the pass, its "tasks", the "cores" on which it takes
as long as the driver alone takes before and after it, or as many as there are tasks or the scheduler can serve, where
these are fewer; and the minutes of the fit on one core, on sixteen, and on those.

    python examples/benchmarks/cluster_limits.py --json cluster_limits.json
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from common import Rows, options, report, table

from daskspectral.engine.costs import Costs, Work
from daskspectral.engine.plan import task_rows
from daskspectral.estimators.calibration import calibrate
from daskspectral.passes.folds import DEALT_EPOCH, DEALT_TASKS, DEFAULT
from daskspectral.passes.sums import MODE_FLOPS

SHAPES = ((100, 3), (500, 10), (1000, 50), (2000, 100))
LATTICE = (961, 2)
FITS = ((1e6, 500, 10), (1e7, 100, 3), (1e7, 1000, 10), (1e8, 500, 10), (1e9, 100, 3), (1e9, 1000, 50), (1e11, 500, 10))
ITEM = 4  # bytes of a float32


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


def line(costs: Costs, scheduler: float, n: float, workers: int, p: int, d: int, lattice: bool) -> dict[str, Any]:
    """One line of the table."""
    flops = MODE_FLOPS if lattice else 4.0 * p * p + 2.0 * p * d + 50.0 * p
    rows = task_rows(int(n), flops, 8 * d)
    work = Work(int(n), d, p, int(n / rows), 1, 2, "symmetric", {"Gaussian slope": 1.0}, 0.0, 1.0, 1.0)
    entries = 2 * p * p
    if lattice:
        modes = (2 * math.isqrt(p) - 1) ** 2
        work = Work(int(n), d, p, int(n / rows), 1, 2, "lattice 2", modes=modes, method="nufft")
        entries = 2 * modes
    work = replace(work, row_bytes=float(ITEM * d))
    seconds = costs.row(work) * costs.slowdown
    least, task = 2 * scheduler * workers, costs.task_of(work)
    length = max(least, task)
    epoch = DEFAULT * max(1, DEALT_EPOCH // DEFAULT)
    return {
        "functions": f"lattice, {p}" if lattice else f"{p}",
        "d": d,
        "row us": 1e6 * seconds,
        "hours": n * seconds / workers / 3600,
        "tasks": f"{work.tasks:.1e}",
        "a task s": task,
        "scheduler h": 2 * work.tasks * scheduler / 3600,
        "least s": least,
        "rows of it": f"{least / seconds:.1e}",
        "driver MB/s": DEFAULT * 8 * entries / epoch * workers / length / 1e6,
        "worker MB/s": (8 * entries / length + ITEM * d / seconds) / 1e6,
        "solution s": costs.solving(work),
    }


def advice(costs: Costs, scheduler: float, n: float, p: int, d: int) -> dict[str, Any]:
    """One line of the table of cores that pay."""
    flops = 4.0 * p * p + 2.0 * p * d + 50.0 * p
    tasks = max(1, int(n / task_rows(int(n), flops, 8 * d)))
    spread = 1 if tasks >= DEALT_TASKS else DEFAULT  # folds in the sums of a task
    work = Work(int(n), d, p, tasks, spread, 2, "symmetric", {"Gaussian slope": 1.0}, 0.0, 1.0, 1.0)
    work = replace(work, row_bytes=float(ITEM * d))
    alone = costs.choosing(work) + costs.solving(work)
    whole = costs.summing(work)
    cores = max(1, min(int(whole / alone), tasks, int(costs.task_of(work) / (2 * scheduler))))
    minutes = {k: (alone + costs.summing(work, threads=k)) / 60 for k in (1, 16, cores)}
    return {
        "n": f"{n:.0e}",
        "p": p,
        "d": d,
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
@click.option("--calibration", type=click.Path(exists=True, dir_okay=False), help="Costs measured before.")
def main(quick: bool, repeats: int, json_path: Path | None, n: float, workers: int, calibration: str | None) -> None:
    """Measure and compute."""
    warnings.simplefilter("ignore")
    costs = Costs.load(calibration) if calibration else calibrate(quick=quick)
    scheduler = cluster_task(100 if quick else 4000, 1 if quick else repeats)
    rows: Rows = [line(costs, scheduler, n, workers, p, d, False) for p, d in SHAPES]
    if any(name.startswith("nufft 2 ") for name in costs.modes):
        rows.append(line(costs, scheduler, n, workers, *LATTICE, True))
    notes = ["", f"a task that does nothing costs {1e3 * scheduler:.2f} ms on a LocalCluster of two processes"]
    paying = [advice(costs, scheduler, *sizes) for sizes in FITS]
    notes += ["", "Cores that pay:", "", table(paying, markdown=True)]
    report(
        f"{n:.0e} rows on {workers} workers", rows, json_path, notes, markdown=True, scheduler=scheduler, paying=paying
    )


if __name__ == "__main__":
    main()
