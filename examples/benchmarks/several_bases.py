"""Several bases and folds in one pass over the same rows, against passes of their own.

Measured: `MeasureMany` with Gaussian kernels of several scales at the same landmarks, which share their inner products
(one (p, d) x (d, c) GEMM for each block instead of one for each kernel), against as many separate `Measure` passes, on
rows in memory and one BLAS thread; the same with K folds summed apart, against the one pass without folds. "shared
work" is the cost of one GEMM of inner products, so that the expected time is separate - (kernels - 1) * shared work
("of expected").

    python examples/benchmarks/several_bases.py --json several_bases.json

That the sums agree is checked here too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl
from common import alternate, measure, options, ratio, report

from daskspectral.kernels import Gaussian
from daskspectral.moments import MeasureMany, block_rows

WORK = 1e10  # flops of one pass


def one_case(p: int, d: int, kernels: int, folds: int, quick: bool, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    rng = np.random.default_rng(0)
    n = block_rows(p) * (2 if quick else max(8, round(WORK / (4 * p * p + 2 * p * d) / block_rows(p))))
    x, landmarks = rng.standard_normal((n, d)), rng.standard_normal((p, d))
    fold = np.repeat(np.arange(folds), -(-n // folds))[:n]  # whole stretches of rows, as in time series
    scales = np.sqrt(d) * np.geomspace(0.5, 2, kernels)
    measures = {f"scale {s:.2f}": measure(Gaussian(s), landmarks) for s in scales}
    together, apart = MeasureMany(measures), MeasureMany(measures, folds=folds)
    left = np.column_stack([landmarks, landmarks[:, :2]])
    right = np.column_stack([x[: block_rows(p)], np.ones((block_rows(p), 2))])
    products = np.empty((p, block_rows(p)))

    def inner_products() -> None:
        for _ in range(0, n, block_rows(p)):
            np.matmul(left, right.T, out=products)

    seconds = alternate(
        {
            "separate": lambda: [m([{"x": x}]) for m in measures.values()],
            "together": lambda: together([{"x": x}]),
            "folds": lambda: apart([{"x": x, "fold": fold}]),
            "shared": inner_products,
        },
        repeats,
    )
    sums, folded = together([{"x": x}]), apart([{"x": x, "fold": fold}])
    for name, one in measures.items():
        for key, value in one([{"x": x}]).items():
            scale = np.abs(value).max()
            assert np.abs(sums[f"{name}/{key}"] - value).max() < 1e-12 * scale
            total = np.sum([folded[f"{name}/{k}/{key}"] for k in range(folds)], axis=0)
            assert np.abs(total - value).max() < 1e-11 * scale
    expected = [a - (kernels - 1) * b for a, b in zip(seconds["separate"], seconds["shared"], strict=True)]
    return {
        "p": p,
        "d": d,
        "kernels": kernels,
        "rows": n,
        "separate s": min(seconds["separate"]),
        "together s": min(seconds["together"]),
        "together / separate": ratio(seconds["together"], seconds["separate"]),
        "of expected": ratio(seconds["together"], expected),
        "folds": folds,
        "folds / together": ratio(seconds["folds"], seconds["together"]),
    }


@click.command(help=__doc__)
@options()
@click.option("--kernels", default=3, show_default=True, help="scales of the Gaussian kernel")
@click.option("--folds", default=5, show_default=True)
def main(quick: bool, repeats: int, json_path: Path | None, kernels: int, folds: int) -> None:
    """Measure each size."""
    sizes = [(50, 20)] if quick else [(200, 3), (200, 100), (200, 1000), (1000, 20), (1000, 784)]
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        rows = [one_case(p, d, kernels, folds, quick, 1 if quick else repeats) for p, d in sizes]
    report("several bases in one pass, one thread", rows, json_path)


if __name__ == "__main__":
    main()
