"""The cost of dask for each row range: plan, graph, scheduling and sums of 1e5 ranges of almost no work.

Measured: `Run.reduce` over a hand-made plan of tiny ranges of an array in memory, with a task that returns a small
matrix; and the same reading, task and additions in a plain loop. The difference per range is the engine's and dask's
own cost. In a real run a worker gets a new range about each second (`plan_run`), and the driver is one process: its
cost for a range delays all workers, so that its share of a run whose tasks take one second is cost * workers / 1 s.
On a `LocalCluster` fewer ranges suffice, since the cost per range does not depend on their number. There the ranges lie
in a zarr array, and a task gets a recipe (path, start, stop); "loop" reads the same ranges in one process.

    python examples/benchmarks/overhead.py --json overhead.json

Target: under 5 % of the run.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from common import alternate, folder_option, normal_zarr, options, ratio, report

from daskspectral.data.batches import Batches, Reading
from daskspectral.data.source import Source, open_source
from daskspectral.engine import Plan, Run


@dataclass(frozen=True)
class SmallGram:
    """x^T x of a range, (d, d): almost no work."""

    def __call__(self, batches: Iterable[Mapping[str, np.ndarray]], state: Any = None) -> dict[str, np.ndarray]:
        return {"gram": sum(np.asarray(b["x"].T @ b["x"], dtype=float) for b in batches)}


def loop(source: Source, plan: Plan, task: Any) -> np.ndarray:
    """The same sums without dask."""
    rows = Reading(source.preparations)
    edges = source.edges
    total: Any = 0.0
    for start, stop in plan.ranges:
        total = total + task(Batches(source.readers, rows, start, stop, edges))["gram"]
    return np.asarray(total)


@contextmanager
def cluster(workers: int) -> Any:
    """A LocalCluster of `workers` processes with one thread each, as the active scheduler."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        Client(local),
    ):
        yield


def one_scheduler(
    name: str, source: Source, ranges: int, workers: int, active: AbstractContextManager[Any], repeats: int
) -> dict[str, Any]:
    """One line of the table."""
    edges = np.linspace(0, source.n, ranges + 1).astype(int).tolist()
    plan = Plan(tuple(pairwise(edges)))
    task, run = SmallGram(), Run(source, plan)
    with active:
        functions: dict[str, Callable[[], Any]] = {
            "loop": lambda: loop(source, plan, task),
            "engine": lambda: run.reduce(task),
        }
        seconds = alternate(functions, repeats)
        found = run.reduce(task).sums["gram"]
    assert np.allclose(found, loop(source, plan, task)), "the engine's sum is not the loop's"
    cost = float(np.median([e - b for e, b in zip(seconds["engine"], seconds["loop"], strict=True)])) / ranges
    return {
        "scheduler": name,
        "workers": workers,
        "ranges": ranges,
        "rows a range": source.n // ranges,
        "loop us a range": 1e6 * min(seconds["loop"]) / ranges,
        "engine us a range": 1e6 * min(seconds["engine"]) / ranges,
        "own cost us": 1e6 * cost,
        "engine / loop": ratio(seconds["engine"], seconds["loop"]),
        "% of 1 s tasks": 100 * cost * workers,
    }


@click.command(help=__doc__)
@options(repeats=3)
@folder_option
@click.option("--ranges", default=100_000, show_default=True, help="row ranges on the threaded scheduler")
@click.option("--cluster-ranges", default=5000, show_default=True, help="row ranges on the cluster")
@click.option("--workers", default=2, show_default=True)
def main(
    quick: bool, repeats: int, json_path: Path | None, folder: Path, ranges: int, cluster_ranges: int, workers: int
) -> None:
    """Measure the threaded scheduler, the synchronous one and a cluster of processes."""
    if quick:
        ranges, cluster_ranges, repeats = 1000, 100, 1
    x = np.random.default_rng(0).standard_normal((8 * ranges, 3))
    zarr_source = open_source(normal_zarr(folder, 8 * cluster_ranges, 3, chunk_rows=8 * cluster_ranges))
    threads = dask.config.set(scheduler="threads", num_workers=workers)
    start = time.perf_counter()
    rows = [one_scheduler("threads", open_source(x), ranges, workers, threads, repeats)]
    with dask.config.set(scheduler="synchronous"):
        rows.append(one_scheduler("synchronous", open_source(x), ranges // 10, 1, nullcontext(), repeats))
    rows.append(one_scheduler("LocalCluster", zarr_source, cluster_ranges, workers, cluster(workers), repeats))
    recipe = len(pickle.dumps((zarr_source.readers["x"], 0, 1)))
    report(
        "the engine's own cost for a row range",
        rows,
        json_path,
        [
            f"a recipe (path, metadata digest, start, stop) is {recipe} bytes",
            f"1e5 ranges of one second on {workers} workers: {1e5 / workers / 3600:.1f} h, of which "
            + ", ".join(f"{r['scheduler']} {r['own cost us'] / 10:.0f} s" for r in rows),
            f"measured in {time.perf_counter() - start:.0f} s",
        ],
    )


if __name__ == "__main__":
    main()
