"""Against the PyPI package deeptime 0.4.5: the sums and singular values of VAMP, in one run.

Measured: seconds for pairs (x, y) in memory, in turn, with the same number of threads, in two ways.
"given features": p columns are the features, so that both packages only sum. "Gaussian features":
functions exp(-r^2 / (2 s^2)) at p landmarks, of pairs with d columns; deeptime computes them batch by batch by its
`observable_transform`, with one product of matrices and in place. Ours is the whole `fit` of Cross(center=True), with
the solution; deeptime's is `partial_fit` over the batches alone. "solve" is its `fetch_model`, which is not counted.
"difference" is the largest difference between the leading singular values of the two.

deeptime is not a dependency; install it into a folder of its own:

    python -m pip install --no-deps --target deeptime-0.4.5 deeptime==0.4.5
    python examples/benchmarks/against_deeptime.py --deeptime deeptime-0.4.5 --json against_deeptime.json

Target: deeptime / ours above 1 at n = 1e6, p = 500, and differences below 1e-8. Given features take 8 n p bytes.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl
from common import alternate, options, ratio, report

from daskspectral import SpectralDecomposition
from daskspectral.basis import Basis, CallableBasis, Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.operators import Cross
from daskspectral.solvers import Cut

INSTALL = "python -m pip install --no-deps --target deeptime-0.4.5 deeptime==0.4.5"
COMPARED = 50  # leading singular values
CUT = 1e-10  # of Gram eigenvalues: deeptime's is absolute, ours relative; the features here are of full rank

Transform = Callable[[np.ndarray], np.ndarray]


def load_deeptime(folder: Path | None) -> Any:
    """The class VAMP from the package's folder, or an error that says how to install it."""
    if folder is not None:
        sys.path.append(str(folder.resolve()))
    try:
        return importlib.import_module("deeptime.decomposition").VAMP
    except ImportError as error:
        raise click.ClickException(
            f"{error}. To install deeptime: {INSTALL}; then --deeptime deeptime-0.4.5"
        ) from error


def columns(x: np.ndarray) -> np.ndarray:
    """The columns of x (c, p) as functions, (p, c)."""
    return x.T


def given(n: int, p: int) -> tuple[SpectralDecomposition, np.ndarray, Transform | None]:
    """Ours on features that are columns, a correlated series (n + 1, p), and no transform."""
    basis = CallableBasis(columns, d=p)
    return estimator(basis, p), series(n, p), None


def gaussian(n: int, p: int, d: int) -> tuple[SpectralDecomposition, np.ndarray, Transform | None]:
    """Ours on Gaussians at landmarks, a correlated series (n + 1, d), and the same features for deeptime."""
    y, scale = np.random.default_rng(1).standard_normal((p, d)), 0.5 * d**0.5
    shifts = np.sum(y**2, axis=1)

    def features(x: np.ndarray) -> np.ndarray:
        values = x @ y.T
        values *= 2
        values -= np.sum(x**2, axis=1)[:, None]
        values -= shifts
        values *= 0.5 / scale**2
        return np.exp(values, out=values)

    return estimator(Landmarks(Gaussian(scale), points=y), p), series(n, d), features


def estimator(basis: Basis | Landmarks, p: int) -> SpectralDecomposition:
    """Our estimator, with these p functions on each side."""
    solver = Cut(CUT, min_support=0.0)
    return SpectralDecomposition(
        Cross(center=True), basis, right_basis=basis, n_components=min(COMPARED, p), solver=solver
    )


def series(n: int, d: int) -> np.ndarray:
    """An autoregressive series (n + 1, d), normal at every row; pairs are rows that follow each other."""
    x = np.random.default_rng(0).standard_normal((n + 1, d))
    x[1:] *= 0.6
    for row in range(n):
        x[row + 1] += 0.8 * x[row]
    return x


def one_way(vamp: Any, way: str, n: int, p: int, d: int, batch: int, threads: int, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    ours, rows, transform = given(n, p) if way == "given features" else gaussian(n, p, d)
    x, y = rows[:-1], rows[1:]
    found: dict[str, Any] = {}  # deeptime's model of the last round

    def fit_deeptime() -> None:
        options = {} if transform is None else {"observable_transform": transform}
        model = vamp(lagtime=1, epsilon=CUT, **options)
        for start in range(0, n, batch):
            model.partial_fit((x[start : start + batch], y[start : start + batch]))
        found["deeptime"] = model

    with (
        threadpoolctl.threadpool_limits(threads, user_api="blas"),
        dask.config.set(scheduler="threads" if threads > 1 else "synchronous", num_workers=threads),
    ):
        seconds = alternate({"ours": lambda: ours.fit((x, y)), "deeptime": fit_deeptime}, repeats)
        start = time.perf_counter()
        theirs = found["deeptime"].fetch_model()
        solving = time.perf_counter() - start
    values = ours.singular_values_
    return {
        "features": way,
        "threads": threads,
        "n": n,
        "d": rows.shape[1],
        "p": p,
        "ours s": min(seconds["ours"]),
        "deeptime s": min(seconds["deeptime"]),
        "deeptime / ours": ratio(seconds["deeptime"], seconds["ours"]),
        "solve s": solving,
        "rank": min(ours.rank_),
        "difference": float(np.abs(values - theirs.singular_values[: len(values)]).max()),
    }


@click.command(help=__doc__)
@options(repeats=3)
@click.option(
    "--deeptime", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="deeptime's folder"
)
@click.option("--threads", "counts", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--n", default=1_000_000, show_default=True, help="pairs")
@click.option("--p", default=500, show_default=True, help="features")
@click.option("--d", default=10, show_default=True, help="columns, of Gaussian features")
@click.option("--batch", default=10_000, show_default=True, help="rows of a batch of deeptime's")
def main(
    quick: bool,
    repeats: int,
    json_path: Path | None,
    folder: Path | None,
    counts: tuple[int, ...],
    n: int,
    p: int,
    d: int,
    batch: int,
) -> None:
    """Measure both ways."""
    vamp = load_deeptime(folder)
    if quick:
        n, p, batch, repeats = 2000, 30, 500, 1
    ways = ("given features", "Gaussian features")
    rows = [one_way(vamp, way, n, p, d, batch, t, repeats) for t in counts for way in ways]
    report("against deeptime 0.4.5: seconds for the sums of VAMP", rows, json_path)


if __name__ == "__main__":
    main()
