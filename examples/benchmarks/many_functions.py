"""A hundred thousand functions of a Fourier lattice: time, memory and residuals, and what they change.

Standard normal rows, whose eigenvalue k has multiplicity k + 1 (d = 2) or (k + 1)(k + 2) / 2 (d = 3). The same modes
are solved for all functions, by products and a block iteration, and for about 5000, by matrices, with the prior and the
penalty that the folds chose. "change": the largest relative difference of the first 20 eigenvalues; "error": the
largest distance from the closed form.

    python examples/benchmarks/many_functions.py --json many_functions.json
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, memory, options, report, reset_peak

from daskspectral import SpectralDecomposition
from daskspectral.basis import FourierLattice
from daskspectral.errors import RankWarning, TrustWarning
from daskspectral.kernels import Kernel, Matern

COMPONENTS = 20
ORDERS = {2: (158, 35), 3: (23, 8)}


def exact(d: int) -> np.ndarray:
    """The first eigenvalues, ascending."""
    several = (lambda k: k + 1) if d == 2 else (lambda k: (k + 1) * (k + 2) // 2)
    return np.concatenate([np.full(several(k), float(k)) for k in range(COMPONENTS)])[:COMPONENTS]


def compared(d: int, n: int, orders: tuple[int, int], kernel: Kernel | str) -> dict[str, Any]:
    """Both solutions of one set of modes."""
    x = np.random.default_rng(0).standard_normal((n, d))
    model = SpectralDecomposition(basis=FourierLattice(orders[0], kernel=kernel), n_components=COMPONENTS)
    reset_peak()
    start = time.perf_counter()
    model.fit(x)
    whole, start = time.perf_counter() - start, time.perf_counter()
    known = {"n_components": COMPONENTS, "solver": model.choice_.parameters["solver"]}
    again = SpectralDecomposition(basis=FourierLattice(orders[0], kernel=model.kernel_), **known)
    again.fit_moments(model.moments_)
    solving, peak = time.perf_counter() - start, memory("VmHWM")
    start = time.perf_counter()
    few = SpectralDecomposition(basis=FourierLattice(orders[1], kernel=model.kernel_), **known)
    few.fit_moments(model.moments_)
    matrices, truth = time.perf_counter() - start, exact(d)
    return {
        "d": d,
        "p": (2 * orders[0] + 1) ** d,
        "n": n,
        "kernel": type(model.kernel_).__name__,
        "fit seconds": whole,
        "solve seconds": solving,
        "peak MB": peak / 1e6,
        "fewer": (2 * orders[1] + 1) ** d,
        "seconds with fewer": matrices,
        "change": float(np.abs(few.eigenvalues_[1:] / model.eigenvalues_[1:] - 1).max()),
        "error": float(np.abs(model.eigenvalues_ - truth).max()),
        "error with fewer": float(np.abs(few.eigenvalues_ - truth).max()),
        "status": model.status_,
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", "size", default="1e6", show_default=True, help="rows")
@click.option("--d", "dimensions", multiple=True, type=click.IntRange(2, 3), help="both by default")
def main(quick: bool, json_path: Path | None, size: str, dimensions: tuple[int, ...]) -> None:
    """Solve both ways."""
    warnings.simplefilter("ignore", (TrustWarning, RankWarning))  # type: ignore[arg-type]
    n = 5000 if quick else int(float(size))
    rows: Rows = []
    for d in dimensions or ((2,) if quick else (2, 3)):
        orders = (40, 8) if quick else ORDERS[d]
        for kernel in ("auto", Matern(1.5, 1.0)) if not quick else (Matern(1.5, 1.0),):
            rows.append(compared(d, n, orders, kernel))
    notes = [f"d = {row['d']}, {row['kernel']}: {row.pop('status')}" for row in rows]
    report(f"{n:.3g} rows", rows, json_path, notes)


if __name__ == "__main__":
    main()
