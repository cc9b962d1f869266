"""Against the PyPI package klap 0.0.2, the authors' implementation of Cabannes and Bach (2024), in one run.

Measured: seconds for the two p x p matrices, L and the Gram Phi, of the same rows and landmarks in memory, in turn,
with the same number of threads. klap is called the way its own `fit` calls it, which shares the inner products
between the two; its BLAS has as many threads as ours has dask threads (its compiled loop has one: it has no parallel
form). Its Gaussian is exp(-r^2 / sigma^2), so that sigma is sqrt(2) times our scale. "difference" is the largest
difference between the two results, over the largest entry.

klap is not a dependency; install it into a folder of its own (it needs numba), because its file names are common words:

    python -m pip install --no-deps --target klap-0.0.2 klap==0.0.2 numba llvmlite
    python examples/benchmarks/against_klap.py --klap klap-0.0.2 --json against_klap.json

Target: 20 times or more for the Gaussian and exponential kernels at n = 1e5, d = 3, p = 200.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl
from common import alternate, measure, options, ratio, report

from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.passes.sums import flops_of

INSTALL = "python -m pip install --no-deps --target klap-0.0.2 klap==0.0.2 numba llvmlite"


def load_klap(folder: Path | None) -> Any:
    """The package from its folder, or an error that says how to install it."""
    if folder is not None:
        sys.path.append(str(folder.resolve()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's, about how klap calls it
            return importlib.import_module("klap")
    except ImportError as error:
        raise click.ClickException(f"{error}. To install klap: {INSTALL}; then --klap klap-0.0.2") from error


def klap_sums(klap: Any, kernel: Any, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and Phi as sums over the rows, by the calls that klap's `fit` makes."""
    inner, among = y @ x.T, y @ y.T
    if kernel.kernel_type == "dotproduct":
        return kernel.laplacian(None, None, X=inner, X_repr=among), kernel.nystrom(None, None, X=inner)
    norms = np.sum(x**2, axis=1)
    if kernel.kernel_type == "gaussian_fast":
        values = kernel.kernel(y, x, scap=inner)
        return (
            kernel.laplacian(None, None, K=values, X=inner, X_repr=among, D=norms),
            kernel.nystrom(None, None, K=values),
        )
    distances = importlib.import_module("klap.kernels.helper").distance(y, x, scap=inner)
    return (
        kernel.laplacian(None, None, N=distances, X=inner, X_repr=among, D=norms),
        kernel.nystrom(None, None, N=distances),
    )


def our_sums(kernel: Kernel, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and Phi through the engine, on the active scheduler."""
    source = open_source(x)
    sums = Run(source, plan_rows(source, flops_of(source, len(y)))).reduce(measure(kernel, y)).sums
    return sums["form"], sums["gram"]


def one_kernel(
    klap: Any, ours: Kernel, theirs: Any, n: int, d: int, p: int, threads: int, repeats: int
) -> dict[str, Any]:
    """One line of the table."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((p, d))
    results: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def keep(name: str, function: Callable[[], Any]) -> Callable[[], None]:
        return lambda: results.update({name: function()})

    with (
        threadpoolctl.threadpool_limits(threads, user_api="blas"),
        dask.config.set(scheduler="threads" if threads > 1 else "synchronous", num_workers=threads),
    ):
        functions = {
            "ours": keep("ours", lambda: our_sums(ours, y, x)),
            "klap": keep("klap", lambda: klap_sums(klap, theirs, y, x)),
        }
        seconds = alternate(functions, repeats)
    form, gram = (float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(*results.values(), strict=True))
    return {
        "kernel": type(ours).__name__,
        "threads": threads,
        "n": n,
        "d": d,
        "p": p,
        "ours s": min(seconds["ours"]),
        "klap s": min(seconds["klap"]),
        "klap / ours": ratio(seconds["klap"], seconds["ours"]),
        "difference L": form,
        "difference Phi": gram,
    }


@click.command(help=__doc__)
@options(repeats=3)
@click.option("--klap", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="klap's folder")
@click.option("--threads", "counts", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--n", default=100_000, show_default=True, help="rows")
@click.option("--d", default=3, show_default=True, help="columns")
@click.option("--p", default=200, show_default=True, help="landmarks")
def main(
    quick: bool,
    repeats: int,
    json_path: Path | None,
    folder: Path | None,
    counts: tuple[int, ...],
    n: int,
    d: int,
    p: int,
) -> None:
    """Measure the three kernels that klap has."""
    klap = load_klap(folder)
    if quick:
        n, p, repeats = 2000, 50, 1
    pairs = [
        (Gaussian(1.0), klap.GaussianKernel(sigma=2**0.5)),
        (Exponential(1.0), klap.ExponentialKernel(sigma=1.0)),
        (Polynomial(4), klap.PolynomialKernel(d=4)),
    ]
    rows = [one_kernel(klap, ours, theirs, n, d, p, t, repeats) for t in counts for ours, theirs in pairs]
    report("against klap 0.0.2: seconds for L and Phi", rows, json_path)


if __name__ == "__main__":
    main()
