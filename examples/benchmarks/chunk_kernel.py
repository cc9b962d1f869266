"""The chunk kernel on one thread, in useful flops, relative to the rate of the BLAS in the same run.

Measured: `Measure` on rows in memory (no engine, no disk), p landmarks, d columns, one BLAS thread; its useful flops
per second over the flops per second of a 2048^3 `numpy.matmul`, in turn with it. Useful flops per point: radial kernels
2 p^2 (M) + p^2 (Gram) + p^2 (G; none for the Gaussian) + 2 p d; dot-product kernels 2 p^2 + 2 p d; the tangential form
on the sphere p^2 + 2 p d more for its one normal. Then dtype="float32" against float64: the ratio of the rates, and
the largest difference of the first 25 eigenvalues over max(1, eigenvalue), both with float32's rank cut.

    python examples/benchmarks/chunk_kernel.py --json chunk_kernel.json

Targets, float64: 85 % of dgemm at p = 1000, d = 20; 70 % at p = 200; float32 1.7 times float64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl
from common import alternate, gemm, measure, options, ratio, report

from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import DENSE_ROWS
from daskspectral.operators import Laplacian, Operator
from daskspectral.solve import GalerkinSystem, SymmetricPencil, resolve_cut

WORK = 4e10  # useful flops of one measurement: half a second to a second


def cases(d: int) -> list[tuple[str, Kernel, Operator]]:
    """Name, kernel and operator; standard normal rows lie sqrt(d) from the origin, and the scale is half of that."""
    scale = 0.5 * float(np.sqrt(d))
    sphere = Laplacian(Sphere(d))
    return [
        ("Gaussian", Gaussian(scale), Laplacian()),
        ("Exponential", Exponential(scale), Laplacian()),
        ("Matern 1.5", Matern(1.5, scale), Laplacian()),
        ("Polynomial 4", Polynomial(4), Laplacian()),
        ("Gaussian, sphere", Gaussian(0.5), sphere),
        ("Polynomial 4, sphere", Polynomial(4), sphere),
    ]


def useful_flops(kernel: Kernel, operator: Operator, p: int, d: int) -> float:
    """Useful flops per point."""
    squares = {Gaussian: 3, Exponential: 4, Matern: 4, Polynomial: 2}[type(kernel)]
    normals = 1 if operator != Laplacian() else 0
    return float((squares + normals) * p * p + (1 + normals) * 2 * p * d)


def points(operator: Operator, n: int, d: int, seed: int) -> np.ndarray:
    """Standard normal rows, brought to the sphere where the form is tangential."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x if operator == Laplacian() else x / np.linalg.norm(x, axis=1, keepdims=True)


def eigenvalues(sums: dict[str, np.ndarray], n: int, cut: float) -> np.ndarray:
    """Return the first eigenvalues."""
    return SymmetricPencil().solve(GalerkinSystem(sums["form"] / n, sums["gram"] / n, count=25, cut=cut)).values


def one_case(
    name: str, kernel: Kernel, operator: Operator, p: int, d: int, quick: bool, repeats: int
) -> dict[str, Any]:
    """Return one line of the table."""
    flops = useful_flops(kernel, operator, p, d)
    n = DENSE_ROWS * (2 if quick else max(8, round(WORK / flops / DENSE_ROWS)))
    block, landmarks = [{"x": points(operator, n, d, 0)}], points(operator, p, d, 1)
    double, single = (measure(kernel, landmarks, operator, dtype) for dtype in ("float64", "float32"))
    product, product_flops = gemm(512 if quick else 2048)
    seconds = alternate({"dgemm": product, "float64": lambda: double(block), "float32": lambda: single(block)}, repeats)
    cut = resolve_cut(None, "float32")
    found, exact = (eigenvalues(sums(block), n, cut) for sums in (single, double))
    k = min(len(found), len(exact))
    return {
        "kernel": name,
        "p": p,
        "d": d,
        "rows": n,
        "dgemm Gflop/s": product_flops / min(seconds["dgemm"]) / 1e9,
        "% of dgemm": 100 * n * flops / product_flops * ratio(seconds["dgemm"], seconds["float64"]),
        "float32 / float64": ratio(seconds["float64"], seconds["float32"]),
        "difference": float(np.max(np.abs(found[:k] - exact[:k]) / np.maximum(1, exact[:k]))),
    }


@click.command(help=__doc__)
@options()
@click.option("--p", "sizes", multiple=True, type=int, default=(200, 1000), show_default=True, help="landmarks")
@click.option("--d", "dimensions", multiple=True, type=int, default=(3, 20), show_default=True, help="columns")
def main(
    quick: bool, repeats: int, json_path: Path | None, sizes: tuple[int, ...], dimensions: tuple[int, ...]
) -> None:
    """Measure each kernel at each size."""
    if quick:
        sizes, repeats = (50,), 1
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        rows = [one_case(*case, p, d, quick, repeats) for p in sizes for d in dimensions for case in cases(d)]
    report("chunk kernel, one thread", rows, json_path)


if __name__ == "__main__":
    main()
