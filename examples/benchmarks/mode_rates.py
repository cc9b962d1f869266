"""Sums of modes on one thread, by matrix products and by the nonuniform FFT, next to the dense sums.

Measured: rows in memory, uniform angles, one weight, (2 m + 1)^d functions, whose moments are made of the (4 m + 1)^d
modes that are summed; million rows a second of `mode_sum`, in calls of `rows_at_once`, "matmul" and "nufft" at each eps
(-: finufft has no four dimensions, or is not installed). "dense": the two matrices of the Laplacian summed with as many
landmarks of a kernel (Matern 1.5), for up to --most-dense functions. "gain": the quicker of matmul and eps = 1e-9 over
the dense sums in turn with it. "error": of the modes at eps = 1e-9 against the exact ones, of the number of rows.
"values": million points a second at which 16 functions are evaluated, by the method that `evaluation_method` gives.

    python examples/benchmarks/mode_rates.py --json mode_rates.json

Targets: matmul 0.9 (d = 1), 2.3 (d = 2, m = 15), 1.0 (d = 3, m = 5), 1.7 (d = 4, m = 2); a gain of 200 at d = 2,
m = 15 and of 100 at d = 3, m = 5.
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
from daskspectral.modes.functions import LatticeValues
from daskspectral.modes.sums import mode_sum, rows_at_once
from daskspectral.moments import DENSE_ROWS

CASES = ((1, 200), (2, 15), (2, 50), (3, 3), (3, 5), (3, 10), (4, 2), (4, 3))
EPS = (1e-6, 1e-9, 1e-12)
SECONDS = 0.25  # of one measurement, about
FUNCTIONS = 16


def summing(angles: np.ndarray, m: int, method: str, eps: float) -> Callable[[], np.ndarray]:
    """Sums of all rows, plans and room for blocks included."""
    orders = (m,) * angles.shape[1]
    doubled, step = tuple(2 * order for order in orders), rows_at_once(method, orders)

    def run() -> np.ndarray:
        sums = mode_sum(doubled, method, eps)
        for start in range(0, len(angles), step):
            sums.add(angles[start : start + step])
        return sums.result()

    return run


def evaluating(angles: np.ndarray, m: int) -> Callable[[], np.ndarray]:
    """Values of a few functions at all rows."""
    orders = (m,) * angles.shape[1]
    coefficients = np.random.default_rng(1).standard_normal(((2 * m + 1) ** len(orders), FUNCTIONS))
    values = LatticeValues(orders, coefficients)
    return lambda: values(angles)


def dense(angles: np.ndarray, p: int) -> Callable[[], Any]:
    """The dense sums of the Laplacian with p landmarks."""
    landmarks = np.random.default_rng(2).uniform(-np.pi, np.pi, (p, angles.shape[1]))
    sums = measure(Matern(1.5, 1.0), landmarks)
    return lambda: sums([{"x": angles}])


def enough(run: Callable[[np.ndarray], Callable[[], Any]], angles: np.ndarray, least: int) -> np.ndarray:
    """So many of the rows that a measurement is neither too short nor too long."""
    first = angles[:least]
    function = run(first)
    function()
    start = time.perf_counter()
    function()
    seconds = time.perf_counter() - start
    return angles[: max(least, int(least * SECONDS / seconds))]


def one_case(d: int, m: int, quick: bool, repeats: int, most_dense: int) -> dict[str, Any]:
    """One line of the table."""
    p = (2 * m + 1) ** d
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (2**14 if quick else 2**20, d))
    least = 2**10 if quick else 2**15
    runs: dict[str, Callable[[np.ndarray], Callable[[], Any]]] = {"matmul": lambda x: summing(x, m, "matmul", 0)}
    if d <= nufft.DIMENSIONS and nufft.available():
        runs |= {f"nufft {eps:.0e}": lambda x, eps=eps: summing(x, m, "nufft", eps) for eps in EPS}
        least = min(len(angles), max(least, rows_at_once("nufft", (m,) * d)))
    runs["values"] = lambda x: evaluating(x, m)
    if p <= most_dense:
        runs["dense"] = lambda x: dense(x, p)
    given = {name: enough(run, angles, least if "nufft" in name else DENSE_ROWS) for name, run in runs.items()}
    seconds = alternate({name: run(given[name]) for name, run in runs.items()}, repeats)
    rates = {name: len(given[name]) / min(seconds[name]) / 1e6 for name in runs}
    best = max((name for name in ("matmul", "nufft 1e-09") if name in rates), key=rates.__getitem__)
    line: dict[str, Any] = {"d": d, "m": m, "functions": p}
    line |= {name: rates.get(name) for name in ("matmul", *(f"nufft {eps:.0e}" for eps in EPS), "values", "dense")}
    line["gain"] = None
    if "dense" in rates:
        line["gain"] = len(given[best]) / len(given["dense"]) * ratio(seconds["dense"], seconds[best])
    line["error"] = None
    if "nufft 1e-09" in rates:
        few = angles[: 2**15]
        difference = summing(few, m, "nufft", 1e-9)() - summing(few, m, "matmul", 0)()
        line["error"] = float(np.abs(difference).max() / len(few))
    return line


@click.command(help=__doc__)
@options(repeats=3)
@click.option("--most-dense", default=2500, show_default=True, help="functions up to which the dense sums are measured")
def main(quick: bool, repeats: int, json_path: Path | None, most_dense: int) -> None:
    """Measure each number of dimensions and each order."""
    cases = CASES
    if quick:
        cases, repeats, most_dense = ((1, 20), (2, 3), (3, 2), (4, 1)), 1, 100
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        rows = [one_case(d, m, quick, repeats, most_dense) for d, m in cases]
    report("sums of modes, one thread, million rows a second", rows, json_path)


if __name__ == "__main__":
    main()
