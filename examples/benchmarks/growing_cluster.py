"""Time of a pass on a cluster that grows by Dask's adaptive scaling, with tasks that sleep.

One `LocalCluster(processes=False)` begins with one worker and adapts to at most `--workers`; the pass is a `Run` of the
engine whose tasks only sleep, so that the machine's cores do not matter. Workers are counted twice a second.
    python examples/benchmarks/growing_cluster.py --json growing_cluster.json

Targets: 15 of 20 workers within 10 s; 977 tasks of 1 s on at most 20 workers of 12 threads, which are 4 s on all of
them, in at most 12 s.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import options, report
from distributed import Client, LocalCluster

from daskspectral.data.source import open_source
from daskspectral.engine import Plan, Run


def sleep(batches: Any, seconds: float) -> dict[str, np.ndarray]:
    """Count the rows of a range after some seconds."""
    time.sleep(seconds)
    return {"n": np.array(sum(len(batch["x"]) for batch in batches))}


def growth(tasks: int, seconds: float, workers: int, threads: int) -> dict[str, Any]:
    """Return one line of the table."""
    run = Run(open_source(np.zeros((tasks, 1))), Plan(tuple((i, i + 1) for i in range(tasks))))
    counts: list[tuple[float, int]] = []
    with (
        LocalCluster(n_workers=1, threads_per_worker=threads, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        cluster.adapt(minimum=1, maximum=workers)
        done, start = threading.Event(), time.perf_counter()

        def count() -> None:
            while not done.wait(0.5):
                counts.append((time.perf_counter() - start, len(cluster.scheduler.workers)))

        counter = threading.Thread(target=count)
        counter.start()
        try:
            total = run.reduce(sleep, seconds)
        finally:
            done.set()
            counter.join()
        taken = time.perf_counter() - start
    assert total.count == tasks
    return {
        "tasks": tasks,
        "s each": seconds,
        "workers": workers,
        "threads each": threads,
        "s": taken,
        "s on all": tasks * seconds / (workers * threads),
        "most workers in 10 s": max((n for t, n in counts if t <= 10), default=1),
        "s to 3/4 of them": next((t for t, n in counts if n >= 0.75 * workers), None),
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--workers", default=20, show_default=True, help="workers, at most")
def main(quick: bool, json_path: Path | None, workers: int) -> None:
    """Measure workers of twelve threads, and of one."""
    cases = [(40, 0.05, 2, 2)] if quick else [(977, 1.0, workers, 12), (977, 1.0, workers, 1)]
    report("passes on a cluster that grows", [growth(*case) for case in cases], json_path)


if __name__ == "__main__":
    main()
