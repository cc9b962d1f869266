"""From zarr on disk to moments through the engine on two threads, against the bare chunk kernel in memory.

Measured: rows per second of `Run.reduce` over a zarr array (float32, zstd, crc32c) on dask's threaded scheduler, with
the files in the page cache ("warm") and dropped from it before ("cold"); against the same `Measure` on the same rows in
memory in plain Python threads, one BLAS thread each, which take batches from one queue ("bare"). Gaussian kernel,
float64. "read" is the engine with a task that only reads and checks rows. Reading (inflating, checksums) uses the cores
that the kernel needs, so the time of a row is bounded below by the two together: "of bound" is the engine's time over
bare + read. "% of dgemm": useful flops (3 p^2 + 2 p d per row) of the bare kernel over dgemm's in as many threads.

    python examples/benchmarks/from_zarr.py --json from_zarr.json

Targets: p = 1000, d = 20: 90 % of bare; p = 100, d = 3: within 1.3 times the bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl
import zarr
from common import alternate, folder_option, forget, gemm, measure, normal_zarr, options, ratio, report

from daskspectral.data.batches import BATCH_ROWS
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import scan
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from daskspectral.passes.sums import flops_of

SIZES = ((1000, 20, 300_000), (100, 3, 20_000_000))  # p, d, rows: about ten seconds each


def bare(measure: Measure, x: np.ndarray, rows: int, threads: int) -> Callable[[], Any]:
    """The chunk kernel alone: threads that take the next batch until there is none, one sum each."""

    def batches(queue: Iterator[int]) -> Iterator[dict[str, np.ndarray]]:
        for number in queue:  # one counter for all threads: `next` of a count is atomic
            if number * rows >= len(x):
                return
            yield {"x": x[number * rows : (number + 1) * rows]}

    def run() -> Any:
        queue = itertools.count()
        with ThreadPoolExecutor(threads) as pool:
            return [f.result() for f in [pool.submit(measure, batches(queue)) for _ in range(threads)]]

    return run


def together(functions: list[Callable[[], Any]]) -> Callable[[], Any]:
    """A function that runs all the functions at once, each in a thread."""

    def run() -> None:
        with ThreadPoolExecutor(len(functions)) as pool:
            for future in [pool.submit(function) for function in functions]:
                future.result()

    return run


def one_size(p: int, d: int, n: int, folder: Path, threads: int, repeats: int, quick: bool) -> dict[str, Any]:
    """One line of the table."""
    path = normal_zarr(folder, n, d)
    task = measure(Gaussian(float(np.sqrt(d))), np.random.default_rng(1).standard_normal((p, d)))
    source = open_source(path)
    run = Run(source, plan_rows(source, flops_of(source, p)))
    # as many rows to a batch as the engine has, and fewer where that would leave threads without work at the end
    block = task.block_rows
    batch = min(BATCH_ROWS, max(1, n // (32 * threads * block)) * block)
    products, flops = zip(*(gemm(512 if quick else 2048) for _ in range(threads)), strict=True)
    x = np.asarray(zarr.open_array(path, mode="r")[...])

    functions: dict[str, Callable[[], Any]] = {
        "dgemm": together(list(products)),
        "bare": bare(task, x, batch, threads),
        "warm": lambda: run.reduce(task),
        "read": lambda: run.reduce(scan),
        "forget": lambda: forget(path),
        "cold": lambda: run.reduce(task),
        "forget again": lambda: forget(path),
        "cold read": lambda: run.reduce(scan),
    }
    seconds = alternate(functions, repeats)
    engine = run.reduce(task)
    sums = bare(task, x, batch, threads)()
    error = max(np.abs(sum(s[k] for s in sums) - v).max() / np.abs(v).max() for k, v in engine.sums.items())
    assert error < 1e-10, f"engine and bare kernel differ by {error}"
    both = [a + b for a, b in zip(seconds["bare"], seconds["read"], strict=True)]
    useful = n * (3.0 * p * p + 2.0 * p * d)
    return {
        "p": p,
        "d": d,
        "rows": n,
        "tasks": len(run.plan.ranges),
        "bare Mrow/s": n / min(seconds["bare"]) / 1e6,
        "% of dgemm": 100 * useful / sum(flops) * ratio(seconds["dgemm"], seconds["bare"]),
        "warm Mrow/s": n / min(seconds["warm"]) / 1e6,
        "% of bare": 100 * ratio(seconds["bare"], seconds["warm"]),
        "cold, % of bare": 100 * ratio(seconds["bare"], seconds["cold"]),
        "read Mrow/s": n / min(seconds["read"]) / 1e6,
        "cold read": n / min(seconds["cold read"]) / 1e6,
        "read MB/s": n * d * 4 / min(seconds["read"]) / 1e6,
        "of bound": ratio(seconds["warm"], both),
    }


@click.command(help=__doc__)
@options(repeats=3)
@folder_option
@click.option("--threads", default=2, show_default=True)
def main(quick: bool, repeats: int, json_path: Path | None, folder: Path, threads: int) -> None:
    """Measure both sizes."""
    sizes = ((50, 20, 20_000), (20, 3, 50_000)) if quick else SIZES
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        dask.config.set(scheduler="threads", num_workers=threads),
    ):
        rows = [one_size(*size, folder, threads, 1 if quick else repeats, quick) for size in sizes]
    notes = []
    for row in rows:
        share = 100 * row["bare Mrow/s"] / (row["bare Mrow/s"] + row["read Mrow/s"])
        what = "reading" if share > 50 else "the chunk kernel"
        notes.append(
            f"p = {row['p']}, d = {row['d']}: bound by {what}; reading is {share:.1f} % of kernel and reading together"
        )
    report(f"zarr to moments, {threads} threads", rows, json_path, notes)


if __name__ == "__main__":
    main()
