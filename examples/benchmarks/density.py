"""Eigenvalues that do not depend on the sampling: `Laplacian(density=1.0)` on domains with a steep, known density.

Measured: the largest relative error of the first ten nonzero eigenvalues of Laplace-Beltrami, and seconds, of

    estimated      Laplacian(density=1.0), the density estimated by the fit
    true density   Laplacian(), sample weights 1 / the true density: the best that any estimate could give
    none           Laplacian(): another operator, for scale

on the unit square with densities that range over a factor of twenty (exponential along one side, along the diagonal,
a bump) and uniform, on an interval, and on the circle in R^2 with its tangents, 1 + .8 cos.

    python examples/benchmarks/density.py --json density.json
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import options, report
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Matern

Array = NDArray[np.float64]
RATE = np.log(20)


def rising(n: int, rng: np.random.Generator, rate: float = RATE) -> Array:
    """Points of [0, 1] with the density proportional to exp(rate x)."""
    return np.asarray(np.log1p(rng.random(n) * np.expm1(rate)) / rate)


def kept(n: int, draw: Callable[[int], Array], density: Callable[[Array], Array], most: float, rng: Any) -> Array:
    """Rows of `draw`, each kept with a probability proportional to its density, of which `most` is the largest."""
    parts: list[Array] = []
    while sum(map(len, parts)) < n:
        x = draw(n)
        parts.append(x[rng.random(n) * most < density(x)])
    return np.concatenate(parts)[:n]


def bump(x: Array) -> Array:
    """Twenty times as dense in the middle of the square as far from it."""
    return np.asarray(1 + 19 * np.exp(-((x - 0.5) ** 2).sum(axis=1) / (2 * 0.2**2)))


def problems(n: int, rng: np.random.Generator) -> dict[str, tuple[Array, Array, Array, dict[str, Any]]]:
    """Points, their density up to a factor, the true eigenvalues, and the landmarks and manifold of a fit."""
    k = np.arange(8)
    square = np.sort(np.pi**2 * (k[:, None] ** 2 + k**2).ravel())[1:11]
    fixed: dict[str, Any] = {"kernel": Matern(1.5, 0.5), "count": 300}
    side = np.column_stack([rising(n, rng), rng.random(n)])
    diagonal = rising(2 * n, rng, RATE / 2).reshape(n, 2)
    middle = kept(n, lambda m: rng.random((m, 2)), bump, 20.0, rng)
    line = np.pi * rising(n, rng)[:, None]
    angle = kept(n, lambda m: rng.uniform(0, 2 * np.pi, m), lambda t: 1 + 0.8 * np.cos(t), 1.8, rng)
    on_circle = {"kernel": Gaussian(0.7), "manifold": dsp.manifolds.Circle()}
    return {
        "square, along a side": (side, np.exp(RATE * side[:, 0]), square, fixed),
        "square, along the diagonal": (diagonal, np.exp(RATE / 2 * diagonal.sum(axis=1)), square, fixed),
        "square, a bump": (middle, bump(middle), square, fixed),
        "square, uniform": (rng.random((n, 2)), np.ones(n), square, fixed),
        "interval": (line, np.exp(RATE * line[:, 0] / np.pi), np.arange(1, 11) ** 2.0, {"kernel": Matern(1.5, 1.0)}),
        "circle": (
            np.column_stack([np.cos(angle), np.sin(angle)]),
            1 + 0.8 * np.cos(angle),
            np.repeat(np.arange(1, 6) ** 2.0, 2),
            on_circle,
        ),
    }


def one_problem(name: str, n: int, seed: int) -> dict[str, Any]:
    """One line of the table."""
    x, density, wanted, given = problems(n, np.random.default_rng(seed))[name]
    basis = Landmarks(given["kernel"], min(given.get("count", 100), n // 10))
    row: dict[str, Any] = {"problem": name, "n": n, "seed": seed}
    for what, exponent, weight in (
        ("estimated", 1.0, None),
        ("true density", 0.0, density.mean() / density),
        ("none", 0.0, None),
    ):
        operator = dsp.operators.Laplacian(given.get("manifold"), density=exponent)
        model = dsp.SpectralDecomposition(operator, basis, n_components=11, random_state=seed)
        start = time.perf_counter()
        values = model.fit(x, sample_weight=weight).eigenvalues_[1:]
        row |= {f"{what} s": time.perf_counter() - start, what: float(np.abs(values / wanted[: len(values)] - 1).max())}
    return row


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--rows", default=100_000, show_default=True)
@click.option("--seeds", default=3, show_default=True)
def main(quick: bool, json_path: Path | None, rows: int, seeds: int) -> None:
    """Each problem, with each seed."""
    n, rounds = (2000, 1) if quick else (rows, seeds)
    names = list(problems(10, np.random.default_rng(0)))
    table = [one_problem(name, n, seed) for name in names for seed in range(rounds)]
    report("largest relative error of the first ten nonzero eigenvalues", table, json_path)


if __name__ == "__main__":
    main()
