"""Sums of modes on one thread, by matrix products and by the nonuniform FFT, next to the dense sums.

Measured: rows in memory, uniform angles, (2 m + 1)^d functions, whose moments are made of the (4 m + 1)^d modes that
are summed; million rows a second of `mode_sum`, in calls of `rows_at_once`, "matmul" and "nufft" at eps = 1e-9 (-:
finufft is not installed). "dense": the two matrices of the Laplacian summed with as many
landmarks of a kernel (Matern 1.5), for up to 2500 functions. "gain": the quicker of both over the dense sums in turn
with it. "error": of the modes of the nonuniform FFT against the exact ones, over the number of rows.

    python examples/benchmarks/mode_rates.py --json mode_rates.json

Targets: a gain of 200 at d = 2, m = 15 and of 100 at d = 3, m = 5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl
from common import alternate, measure, options, ratio, report

from daskspectral.kernels import Matern
from daskspectral.modes import nufft
from daskspectral.modes.sums import mode_sum, rows_at_once
from daskspectral.moments import DENSE_ROWS

CASES = ((1, 200), (2, 15), (3, 3), (3, 5))
EPS = 1e-9
SECONDS = 0.25  # of one measurement, about


def summing(angles: np.ndarray, m: int, method: str) -> Callable[[], np.ndarray]:
    """Return a function that sums the modes of all rows, plans and memory for blocks included."""
    orders = (m,) * angles.shape[1]
    step = rows_at_once(method, orders)

    def run() -> np.ndarray:
        sums = mode_sum(tuple(2 * order for order in orders), method, EPS)
        for start in range(0, len(angles), step):
            sums.add(angles[start : start + step])
        return sums.result()

    return run


def dense(angles: np.ndarray, p: int) -> Callable[[], Any]:
    """Return a function that sums the matrices of the Laplacian with p landmarks."""
    sums = measure(Matern(1.5, 1.0), np.random.default_rng(2).uniform(-np.pi, np.pi, (p, angles.shape[1])))
    return lambda: sums([{"x": angles}])


def enough(run: Callable[[np.ndarray], Callable[[], Any]], angles: np.ndarray, least: int) -> np.ndarray:
    """Return as many of the rows as are processed in about `SECONDS`."""
    function = run(angles[:least])
    function()
    start = time.perf_counter()
    function()
    return angles[: max(least, int(least * SECONDS / (time.perf_counter() - start)))]


def one_case(d: int, m: int, quick: bool, repeats: int) -> dict[str, Any]:
    """Return one line of the table."""
    p = (2 * m + 1) ** d
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (2**14 if quick else 2**20, d))
    least = {"nufft": max(2**10 if quick else 2**15, rows_at_once("nufft", (m,) * d))}
    runs: dict[str, Callable[[np.ndarray], Callable[[], Any]]] = {"matmul": lambda x: summing(x, m, "matmul")}
    if nufft.available():
        runs["nufft"] = lambda x: summing(x, m, "nufft")
    if p <= (100 if quick else 2500):
        runs["dense"] = lambda x: dense(x, p)
    given = {name: enough(run, angles, min(len(angles), least.get(name, DENSE_ROWS))) for name, run in runs.items()}
    seconds = alternate({name: run(given[name]) for name, run in runs.items()}, repeats)
    rates = {name: len(given[name]) / min(seconds[name]) / 1e6 for name in runs}
    best = max((name for name in rates if name != "dense"), key=rates.__getitem__)
    gain = error = None
    if "dense" in rates:
        gain = len(given[best]) / len(given["dense"]) * ratio(seconds["dense"], seconds[best])
    if "nufft" in rates:
        few = angles[: 2**15]
        error = float(np.abs(summing(few, m, "nufft")() - summing(few, m, "matmul")()).max() / len(few))
    columns = {name: rates.get(name) for name in ("matmul", "nufft", "dense")}
    return {"d": d, "m": m, "functions": p, **columns, "gain": gain, "error": error}


@click.command(help=__doc__)
@options(repeats=3)
def main(quick: bool, repeats: int, json_path: Path | None) -> None:
    """Measure each number of dimensions and each order."""
    cases = ((1, 20), (2, 3), (3, 2)) if quick else CASES
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        rows = [one_case(d, m, quick, 1 if quick else repeats) for d, m in cases]
    report("sums of modes, one thread, million rows a second", rows, json_path)


if __name__ == "__main__":
    main()
