"""What Hermite regression costs against rows, landmarks and columns: n p^2 + n p d, on one thread.

Measured: the sums of a fit on values and gradients (Gaussian kernel, rows in memory, no engine), one BLAS thread, with
n, p and d varied one at a time around one middle size; all sizes run in turn in every round. "exponent" is the slope of
log time against log size over a series, "last" the slope between its two largest sizes. All times are fitted by
n (a p^2 + b p d + c p) with a, b, c >= 0, in relative error; "of model" is the time over the fit. "over values" divides
the time by the time for values alone, on the same rows. "each axis over" is the time of the Dirichlet form as one
product of partial derivatives per axis, n p^2 d, over the time of the sums; it is measured on a sixteenth of the rows.
"solve" chooses the penalty and solves, p^3.

    python examples/benchmarks/hermite.py --json hermite.json

Targets: an exponent of 1 in n, of at most 2 in p, and of at most 1 in d.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl
from common import Rows, alternate, options, report
from scipy.optimize import nnls

from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Gaussian
from daskspectral.kernels.base import unit_index
from daskspectral.moments import DENSE_ROWS, Measure
from daskspectral.moments.summing import SumTask
from daskspectral.operators.regression import Regression
from daskspectral.solve.ridge import Observed, RidgeProblem

MIDDLE = {"n": 16_384, "p": 500, "d": 10}
SERIES = {"n": (4096, 8192, 16_384, 32_768, 65_536), "p": (125, 250, 500, 1000, 2000), "d": (2, 10, 50, 250, 1000)}
QUICK = {"n": 2048, "p": 50, "d": 4}
QUICK_SERIES = {"n": (1024, 2048), "p": (25, 50), "d": (2, 4)}
SHARE = 16
LARGEST_EACH = 50  # columns up to which the products per axis are measured


def functions(n: int, p: int, d: int) -> dict[str, Callable[[], Any]]:
    """The functions that are timed at one size."""
    rng = np.random.default_rng(0)
    x, landmarks = rng.standard_normal((n, d)), rng.standard_normal((p, d))
    direction = rng.standard_normal(d) / d
    y, t = np.sin(x @ direction), np.cos(x @ direction)[:, None] * direction
    kernel = Gaussian(float(np.sqrt(d)))
    basis = LandmarkBasis(kernel, landmarks)

    def task(gradients: bool) -> SumTask:
        operator = Regression(gradients)
        return SumTask(Measure(basis, basis, operator.forms, operator.functionals), operator)

    batch = {"x": x, "y": y, "gradients": t}
    sums = task(True)([batch])
    observed = [
        Observed(*(sums[name] / n for name in names), count)
        for names, count in (
            (("gram", "values", "value_squares"), n),
            (("dirichlet", "slopes", "slope_squares"), n * d),
        )
    ]
    penalty = kernel.values(landmarks, landmarks)

    def each_axis() -> np.ndarray:
        total = np.zeros((p, p))
        for start in range(0, n // SHARE, DENSE_ROWS):
            block = x[start : min(start + DENSE_ROWS, n // SHARE)]
            for axis in range(d):
                partial = kernel.partial(block, landmarks, unit_index(axis, d))
                total += partial @ partial.T
        return total

    timed = {
        "gradients": lambda: task(True)([batch]),
        "values": lambda: task(False)([{"x": x, "y": y}]),
        "solve": lambda: RidgeProblem(observed, penalty).solve(),
    }
    return timed | ({"each axis": each_axis} if d <= LARGEST_EACH else {})


def fitted(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The constants a, b, c in nanoseconds, and the time of each row over the model's."""
    terms = np.array([[r["n"] * r["p"] ** 2, r["n"] * r["p"] * r["d"], r["n"] * r["p"]] for r in rows], dtype=float)
    seconds = np.array([r["seconds"] for r in rows])
    constants, _ = nnls(1e-9 * terms / seconds[:, None], np.ones(len(rows)))
    return constants, seconds / (1e-9 * terms @ constants)


def exponents(rows: Rows, series: dict[str, tuple[int, ...]]) -> dict[str, dict[str, float]]:
    """The slopes of log time against log size."""
    result = {}
    for name in series:
        chosen = [r for r in rows if r["varied"] == name]
        logs = np.log([[r[name], r["seconds"]] for r in chosen])
        steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(logs)]
        result[name] = {"exponent": float(np.polyfit(*logs.T, 1)[0]), "last": float(steps[-1])}
    return result


@click.command(help=__doc__)
@options(repeats=3)
def main(quick: bool, repeats: int, json_path: Path | None) -> None:
    """Measure all sizes in turn."""
    middle, series = (QUICK, QUICK_SERIES) if quick else (MIDDLE, SERIES)
    repeats = 1 if quick else repeats
    sizes = [(name, {**middle, name: size}) for name, sizes in series.items() for size in sizes]
    timed = {(name, size[name], what): function for name, size in sizes for what, function in functions(**size).items()}
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        seconds = alternate({str(key): function for key, function in timed.items()}, repeats)
    rows: Rows = []
    for name, size in sizes:
        best = {key[2]: min(seconds[str(key)]) for key in timed if key[:2] == (name, size[name])}
        rows.append(
            {
                "varied": name,
                **size,
                "seconds": best["gradients"],
                "us a row": 1e6 * best["gradients"] / size["n"],
                "over values": best["gradients"] / best["values"],
                "each axis over": SHARE * best["each axis"] / best["gradients"] if "each axis" in best else None,
                "solve s": best["solve"],
            }
        )
    constants, ratios = fitted(rows)
    for row, of_model in zip(rows, ratios, strict=True):
        row["of model"] = float(of_model)
    slopes = exponents(rows, series)
    notes = [
        f"exponent of {k}: {v['exponent']:.2f}, between the two largest {v['last']:.2f}" for k, v in slopes.items()
    ]
    a, b, c = constants
    notes.append(f"seconds = n ({a:.3g} p^2 + {b:.3g} p d + {c:.3g} p) 1e-9, within {100 * np.ptp(ratios) / 2:.0f} %")
    report("Hermite regression, one thread", rows, json_path, notes, exponents=slopes, constants=constants)


if __name__ == "__main__":
    main()
