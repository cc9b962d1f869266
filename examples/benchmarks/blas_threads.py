"""What one BLAS thread for each thread of a worker is worth: the setting of the scripts in `deploy/`, and without it.

Measured: seconds of processes that are started in turn with OPENBLAS_NUM_THREADS, OMP_NUM_THREADS and MKL_NUM_THREADS
of 1, and without them; the ratios are of one round. "bare" are the sums of the Laplacian (Gaussian, p = 500, d = 20)
over rows in memory, in as many plain threads as there are cores: what a task does where nothing limits the BLAS. "fit"
is `SpectralDecomposition.fit` of the same functions, which limits the BLAS in its own tasks, on a worker process of
that many threads; the setting then tells the rest, such as threads of the BLAS that wait.

    python examples/benchmarks/blas_threads.py --json blas_threads.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import numpy as np
from common import Rows, measure, options, ratio, report

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian

SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def child(rows: int, p: int, threads: int) -> dict[str, float]:
    """The seconds of both, in a process of its own."""
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    x, kernel = rng.standard_normal((rows, 20)), Gaussian(4.0)
    sums = measure(kernel, x[:p].copy())
    parts = [{"x": part} for part in np.array_split(x, 4 * threads)]
    found = {}
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: sums([{"x": part["x"][:2048]}]), parts[:threads]))
        start = time.perf_counter()
        list(pool.map(lambda part: sums([part]), parts))
        found["bare"] = time.perf_counter() - start
    estimator = SpectralDecomposition(basis=Landmarks(kernel, p, method="uniform"), folds=None, random_state=0)
    with (
        LocalCluster(n_workers=1, threads_per_worker=threads, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        estimator.fit(x[: 4 * p], progress=False)
        start = time.perf_counter()
        estimator.fit(x, progress=False)
        found["fit"] = time.perf_counter() - start
    return found


@click.command(help=__doc__)
@options(repeats=3)
@click.option("--threads", default=os.cpu_count() or 2, show_default=True, help="Threads of the worker.")
@click.option("--child", "size", type=int, hidden=True)
def main(quick: bool, repeats: int, json_path: Path | None, threads: int, size: int | None) -> None:
    """Start the processes in turn."""
    p = 50 if quick else 500
    if size is not None:
        click.echo(json.dumps(child(size, 50 if size < 10_000 else 500, threads)))
        return
    seconds: dict[tuple[str, str], list[float]] = {}
    plain = {k: v for k, v in os.environ.items() if k not in SETTINGS}
    for _ in range(1 if quick else repeats):
        for setting in ("1", "none"):
            environment = plain | (dict.fromkeys(SETTINGS, "1") if setting == "1" else {})
            environment["DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON"] = "{}"  # dask would set them for its workers
            command = [sys.executable, __file__, "--child", str(4000 if quick else 100_000), "--threads", str(threads)]
            said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
            for name, value in json.loads(said.splitlines()[-1]).items():
                seconds.setdefault((name, setting), []).append(value)
    rows: Rows = [
        {
            "what": name,
            "set to 1, s": min(seconds[name, "1"]),
            "not set, s": min(seconds[name, "none"]),
            "not set / set": ratio(seconds[name, "none"], seconds[name, "1"]),
        }
        for name in ("bare", "fit")
    ]
    report(f"BLAS threads, {threads} threads of a worker, p = {p}", rows, json_path)


if __name__ == "__main__":
    main()
