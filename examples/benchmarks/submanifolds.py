"""Submanifolds that nobody named: the error of the automatic fit on spheres, a torus and a circle in ten dimensions.

Measured: error (21) of Cabannes and Bach, sum |1/a_i - 1/b_i| / sum 1/a_i over the exact eigenvalues a and the learned
b after the constant's (24, with 25 components), of `SpectralDecomposition(n_components=25).fit(x)`; the median over the
seeds and the largest. Rows are uniform on S^2 in R^3, S^4 in R^5, the flat torus of unit radii in R^4, and a unit
circle in R^10 in a drawn orientation; with noise, normal in every ambient coordinate. The exact eigenvalues are the
submanifold's in both cases.

    python examples/benchmarks/submanifolds.py --json submanifolds.json
    python examples/benchmarks/submanifolds.py --noise 0 --set basis__kernel=matern:1.5:1.0 --set basis__count=300

With --named the spheres are fitted by their own eigenfunctions: the manifold is named, and the basis are polynomials of
the degree that the values need. What is left is the error of the sample, which no choice of functions removes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from fitting import Settings, classes, fit, parallel, processes_option, settings_option, told
from problems import SUBMANIFOLDS, blurred, chosen, error_21

from daskspectral.basis import MonomialBasis
from daskspectral.manifolds import Sphere
from daskspectral.operators import Laplacian

DEGREES = {"S^2 in R^3": (3, 4), "S^4 in R^5": (5, 3)}  # columns, and the degree of the first 25 eigenfunctions


def own_functions(name: str) -> Settings:
    """The arguments of a fit of a sphere by its own eigenfunctions."""
    d, degree = DEGREES[name]
    return {"operator": Laplacian(Sphere(d)), "basis": MonomialBasis(d, degree)}


def one_fit(name: str, n: int, noise: float, seed: int, components: int, settings: Settings) -> dict[str, Any]:
    """The error of one fit, what was said, and the time."""
    problem = SUBMANIFOLDS[name]
    x = (blurred(problem, noise) if noise else problem).draw(n, seed)
    done = fit(x, **{"n_components": components, **settings})
    return {
        "submanifold": name,
        "noise": noise,
        "seed": seed,
        "error": error_21(done.values, problem.eigenvalues(components)),
        "values": done.values.tolist(),
        "said": list(done.said),
        "seconds": done.seconds,
    }


def summary(fits: Rows, n: int) -> dict[str, Any]:
    """One line of the table: a submanifold with one noise, over the seeds."""
    return {
        "submanifold": fits[0]["submanifold"],
        "n": n,
        "noise": fits[0]["noise"],
        "error (21)": float(np.median([f["error"] for f in fits])),
        "largest": max(f["error"] for f in fits),
        "seconds": float(np.median([f["seconds"] for f in fits])),
        "said": classes(text for f in fits for text in f["said"]),
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problem", "names", multiple=True, help=f"one of {', '.join(SUBMANIFOLDS)}; all by default")
@click.option("--n", default=20_000, show_default=True, help="rows")
@click.option("--noise", "noises", multiple=True, type=float, default=(0.0, 0.01), show_default=True)
@click.option("--seeds", default=5, show_default=True, help="samples of each submanifold")
@click.option("--components", default=25, show_default=True, help="n_components")
@click.option("--named", is_flag=True, help="the spheres by their own eigenfunctions, without noise")
@settings_option
@processes_option(1)
def main(
    quick: bool,
    json_path: Path | None,
    names: tuple[str, ...],
    n: int,
    noises: tuple[float, ...],
    seeds: int,
    components: int,
    named: bool,
    settings: Settings,
    processes: int,
) -> None:
    """Fit every submanifold with every noise."""
    if quick:
        names, n, seeds = names or ("circle in R^10",), 600, 1
    if named:
        names, noises = names or tuple(DEGREES), (0.0,)
    problems = chosen(names, {name: SUBMANIFOLDS[name] for name in DEGREES} if named else SUBMANIFOLDS)
    cases = [(p.name, noise) for p in problems for noise in noises]
    jobs = [
        (name, n, noise, seed, components, own_functions(name) | settings if named else settings)
        for name, noise in cases
        for seed in range(seeds)
    ]
    fits = parallel(one_fit, jobs, processes, "fits")
    rows = [summary(fits[i : i + seeds], n) for i in range(0, len(fits), seeds)]
    notes = ["", *told(text for f in fits for text in f["said"])]
    what = "spheres by their own eigenfunctions" if named else "submanifolds that are not named"
    report(f"{what}, medians over {seeds} seeds", rows, json_path, notes, fits=fits)


if __name__ == "__main__":
    main()
