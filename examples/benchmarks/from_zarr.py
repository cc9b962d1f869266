"""From zarr on disk to moments through the engine on two threads, against the bare chunk kernel in memory.

Measured: rows per second of `Run.reduce` over a zarr array (float32, zstd, crc32c, in the page cache) on dask's
threaded scheduler, against the same `Measure` on the same rows in memory in plain Python threads, one BLAS thread each,
which process batches from one queue ("bare"). Gaussian kernel, float64. "read" is the engine with a task that only
reads and checks rows. Reading (inflating, checksums) uses the cores that the kernel needs, so the time of a row is
bounded below by the two together: "of bound" is the engine's time over bare + read.

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
from common import alternate, folder_option, measure, normal_zarr, options, ratio, report

from daskspectral.data.batches import BATCH_ROWS
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import count_rows
from daskspectral.kernels import Gaussian
from daskspectral.moments import Measure
from daskspectral.passes.sums import flops_of

SIZES = ((1000, 20, 300_000), (100, 3, 20_000_000))  # p, d, rows: about ten seconds each
THREADS = 2


def bare(measure: Measure, x: np.ndarray, rows: int) -> Callable[[], Any]:
    """Return the chunk kernel alone: threads that process batches from one queue, one sum each."""

    def batches(queue: Iterator[int]) -> Iterator[dict[str, np.ndarray]]:
        for number in queue:  # one counter for all threads: `next` of a count is atomic
            if number * rows >= len(x):
                return
            yield {"x": x[number * rows : (number + 1) * rows]}

    def run() -> Any:
        queue = itertools.count()
        with ThreadPoolExecutor(THREADS) as pool:
            return [f.result() for f in [pool.submit(measure, batches(queue)) for _ in range(THREADS)]]

    return run


def one_size(p: int, d: int, n: int, folder: Path, repeats: int) -> dict[str, Any]:
    """Return one line of the table."""
    path = normal_zarr(folder, n, d)
    task = measure(Gaussian(float(np.sqrt(d))), np.random.default_rng(1).standard_normal((p, d)))
    source = open_source(path)
    run = Run(source, plan_rows(source, flops_of(source, p)))
    # as many rows to a batch as the engine has, and fewer if that would leave threads without work at the end
    block = task.block_rows
    alone = bare(
        task, np.asarray(zarr.open_array(path, mode="r")[...]), min(BATCH_ROWS, max(1, n // 64 // block) * block)
    )
    passes = {"bare": alone, "zarr": lambda: run.reduce(task), "read": lambda: run.reduce(count_rows)}
    seconds = alternate(passes, repeats)
    for name, total in run.reduce(task).sums.items():
        np.testing.assert_allclose(sum(part[name] for part in alone()), total, atol=1e-10 * np.abs(total).max())
    return {
        "p": p,
        "d": d,
        "rows": n,
        "zarr Mrow/s": n / min(seconds["zarr"]) / 1e6,
        "% of bare": 100 * ratio(seconds["bare"], seconds["zarr"]),
        "read Mrow/s": n / min(seconds["read"]) / 1e6,
        "of bound": ratio(seconds["zarr"], [a + b for a, b in zip(seconds["bare"], seconds["read"], strict=True)]),
    }


@click.command(help=__doc__)
@options(repeats=3)
@folder_option
def main(quick: bool, repeats: int, json_path: Path | None, folder: Path) -> None:
    """Measure both sizes."""
    sizes = ((50, 20, 20_000), (20, 3, 50_000)) if quick else SIZES
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        dask.config.set(scheduler="threads", num_workers=THREADS),
    ):
        rows = [one_size(*size, folder, 1 if quick else repeats) for size in sizes]
    report("zarr to moments, two threads", rows, json_path)


if __name__ == "__main__":
    main()
