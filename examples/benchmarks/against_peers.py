"""The same rows for this package's defaults and for well-used peers: errors of the spectrum, and seconds.

This package's fit is `SpectralDecomposition(n_components=11)` with no other argument. The peers have no automatic
choice of their parameters: each is run over a grid, and the setting with the least median error is shown, chosen with
the exact spectrum in hand ("oracle"), with the time of that one fit: their best case, which no user of theirs has.

- klap 0.0.2, the authors' implementation of Cabannes and Bach (2024), with `inverse_L`: Gaussian and exponential
  kernels, 200 landmarks.
- Diffusion maps with alpha = 1/2 (Coifman and Lafon 2006), written here: eigenvalues -log(mu) / eps of the kernel
  exp(-r^2 / (4 eps)), whose limit is the operator of this package for any density.
- scikit-learn's `SpectralEmbedding`, graph of neighbours. It gives functions and no eigenvalues: these are the
  functions' Rayleigh quotients in the graph Laplacian, which knows no unit, and all are scaled such that the first
  nonzero one is exact. Its limit depends otherwise on the density: it is compared where the density is constant.
- deeptime 0.4.5's VAMP with Gaussian features at 100 centres of k-means: the singular values of an autoregressive
  process of two columns, each with correlation .9 between rows, against `SpectralDecomposition(Transfer(1))`.

Errors are relative, over the first ten nonzero eigenvalues (nine for two moons and circles), medians over the seeds.
Peers with n x n matrices are left out above 4000 rows. klap and deeptime are not dependencies; without their folders
their lines are left out:

    python -m pip install --no-deps --target klap-0.0.2 klap==0.0.2 numba llvmlite
    python -m pip install --no-deps --target deeptime-0.4.5 deeptime==0.4.5
    python examples/benchmarks/against_peers.py --klap klap-0.0.2 --deeptime deeptime-0.4.5 --json against_peers.json
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.linalg
import scipy.sparse.csgraph
from against_deeptime import load_deeptime
from against_klap import load_klap
from common import Rows, options, report
from fitting import classes, fit
from problems import FIRST_FIT, Problem, autoregression, chosen, relative_errors
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans
from sklearn.manifold import SpectralEmbedding

from daskspectral.operators import Transfer

DENSE = 4000  # rows whose n x n matrix is still formed
CORRELATION = 0.9
COMPONENTS = 11
PROCESS = Problem("transfer", lambda n, rng: autoregression(n, 2, CORRELATION, rng), lambda k: powers(k))

Setting = tuple[str, Callable[[], np.ndarray]]


def powers(count: int) -> np.ndarray:
    """rho^(i + j), descending from the constant's 1."""
    degrees = np.repeat(np.arange(count + 1), np.arange(1, count + 2))
    return CORRELATION ** degrees[:count].astype(float)


def klap_settings(klap: Any, x: np.ndarray, count: int) -> Iterator[Setting]:
    median = float(np.median(pdist(x[:1000])))
    for name, kernel in (("Gaussian", klap.GaussianKernel), ("exponential", klap.ExponentialKernel)):
        for factor in 2.0 ** np.arange(-3, 3):

            def values(kernel: Any = kernel, sigma: float = factor * median) -> np.ndarray:
                model = kernel(sigma=sigma)
                model.fit(x, p=min(200, len(x) // 2), k=count, inverse_L=True)
                return 1 / model.eigenvalues[::-1]

            yield f"{name}, sigma {factor:g} medians", values


def diffusion_settings(x: np.ndarray, count: int) -> Iterator[Setting]:
    median = float(np.median(pdist(x[:1000])))
    for factor in 2.0 ** -np.arange(1.0, 6.0, 0.5):

        def values(eps: float = (factor * median) ** 2) -> np.ndarray:
            kernel = np.exp(cdist(x, x, "sqeuclidean") / (-4 * eps))
            kernel /= np.sqrt(np.outer(kernel.sum(axis=0), kernel.sum(axis=0)))
            root = np.sqrt(kernel.sum(axis=0))
            ends = (len(x) - count, len(x) - 1)
            found = scipy.linalg.eigh(kernel / np.outer(root, root), eigvals_only=True, subset_by_index=ends)
            return -np.log(np.maximum(found[::-1], 1e-300)) / eps

        yield f"sqrt(eps) {factor:.2g} medians", values


def embedding_settings(x: np.ndarray, problem: Problem, count: int) -> Iterator[Setting]:
    tenth = max(1, len(x) // 10)
    for neighbours in sorted({10, 20, 50, *([tenth] if len(x) <= DENSE else [])}):

        def values(neighbours: int = neighbours) -> np.ndarray:
            model = SpectralEmbedding(count - 1, n_neighbors=neighbours, random_state=0).fit(x)
            laplacian, root = scipy.sparse.csgraph.laplacian(model.affinity_matrix_, normed=True, return_diag=True)
            functions = model.embedding_ * root[:, None]
            found = np.sum(functions * (laplacian @ functions), axis=0) / np.sum(functions**2, axis=0)
            found = np.concatenate([[0.0], np.sort(found)])
            return found * problem.eigenvalues(problem.zeros + 1)[-1] / found[problem.zeros]

        yield f"{neighbours} neighbours", values


def deeptime_settings(vamp: Any, x: np.ndarray, count: int) -> Iterator[Setting]:
    median = float(np.median(pdist(x[:1000])))
    for factor in 2.0 ** np.arange(-3, 3):

        def values(scale: float = factor * median) -> np.ndarray:
            centres = KMeans(100, n_init=1, random_state=0).fit(x[:10_000]).cluster_centers_

            def features(rows: np.ndarray) -> np.ndarray:
                return np.exp(cdist(rows, centres, "sqeuclidean") / (-2 * scale**2))

            model = vamp(lagtime=1, observable_transform=features).fit((x[:-1], x[1:])).fetch_model()
            return np.concatenate([[1.0], model.singular_values[: count - 1]])

        yield f"scale {factor:g} medians", values


def oracle(settings: Iterator[Setting], problem: Problem) -> dict[str, Any]:
    """The setting with the least median error; one that fails is passed over."""
    best: dict[str, Any] = {"max": np.inf, "median": np.inf, "seconds": np.nan, "setting": "each one failed"}
    for name, values in settings:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = values()
        except (ValueError, ArithmeticError):  # scipy's and numpy's, for matrices that are not positive definite
            continue
        seconds, errors = time.perf_counter() - start, relative_errors(found, problem, COMPONENTS)
        if np.median(errors) < best["median"]:
            best = {"max": errors.max(), "median": np.median(errors), "seconds": seconds, "setting": name}
    return best


def ours(x: np.ndarray, problem: Problem) -> dict[str, Any]:
    settings = {"operator": Transfer(1)} if problem is PROCESS else {}
    done = fit(x, n_components=COMPONENTS, **settings)
    errors = relative_errors(done.values, problem, COMPONENTS)
    setting = classes(done.said) or "automatic"
    return {"max": errors.max(), "median": np.median(errors), "seconds": done.seconds, "setting": setting}


def one_sample(problem: Problem, n: int, seed: int, klap: Any, vamp: Any) -> dict[str, dict[str, Any]]:
    """The result of each peer on one sample, by name."""
    x = problem.draw(n, seed)
    results = {"daskspectral": ours(x, problem)}
    if problem is PROCESS:
        if vamp is not None:
            results["deeptime"] = oracle(deeptime_settings(vamp, x, COMPONENTS), problem)
        return results
    if klap is not None:
        results["klap"] = oracle(klap_settings(klap, x, COMPONENTS), problem)
    if n <= DENSE:
        results["diffusion maps"] = oracle(diffusion_settings(x, COMPONENTS), problem)
    if problem.even:
        results["SpectralEmbedding"] = oracle(embedding_settings(x, problem, COMPONENTS), problem)
    return results


def lines(problem: Problem, n: int, samples: list[dict[str, dict[str, Any]]]) -> Rows:
    """The lines of one problem at one size: medians over the samples, and the last sample's setting."""
    return [
        {"problem": problem.name, "n": n, "by": name}
        | {key: float(np.median([s[name][key] for s in samples])) for key in ("max", "median", "seconds")}
        | {"setting (oracle's), warnings": samples[-1][name]["setting"]}
        for name in samples[0]
    ]


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--klap", "klap_folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="its folder")
@click.option(
    "--deeptime", "vamp_folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="its folder"
)
@click.option("--problem", "names", multiple=True, help=f"one of {', '.join(FIRST_FIT)}, transfer; all by default")
@click.option("--n", "sizes", multiple=True, type=int, default=(2000, 20_000), show_default=True, help="rows")
@click.option("--seeds", default=3, show_default=True, help="samples of each problem")
def main(
    quick: bool,
    json_path: Path | None,
    klap_folder: Path | None,
    vamp_folder: Path | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    seeds: int,
) -> None:
    """Run every peer on every problem."""
    if quick:
        names, sizes, seeds = names or ("square", "transfer"), (600,), 1
    klap = None if klap_folder is None else load_klap(klap_folder)
    logging.getLogger("klap").setLevel(logging.WARNING)
    vamp = None if vamp_folder is None else load_deeptime(vamp_folder)
    rows: Rows = []
    for n in sizes:
        for problem in chosen(names, FIRST_FIT | {PROCESS.name: PROCESS}):
            rows += lines(problem, n, [one_sample(problem, n, seed, klap, vamp) for seed in range(seeds)])
            click.echo(f"{problem.name}, n = {n}", err=True)
    report(f"defaults of this package against the best settings of others, medians over {seeds} seeds", rows, json_path)


if __name__ == "__main__":
    main()
