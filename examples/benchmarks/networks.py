"""A network as a basis beside kernels at landmarks: where it wins, where it loses, and what basis="auto" takes.

- moons: two moons with noise .05 and eight columns of noise .3, rotated in ten dimensions; exact: the moons' own
  spectrum, since the first value of the noise columns alone, 1 / .3^2 = 11.1, lies above.
- S^9: the unit sphere in ten dimensions, n points; exact: 9 ten times, behind 0 (Laplace-Beltrami on the rows, which is
  the limit of the Dirichlet form there).

"held out": the sum of the values 2 to 8 on rows that no function was fitted to; by min-max it bounds the exact sum from
above but for chance. "fresh": the same on as many fresh rows. "error": mean error of the first ten values behind the
constant, equation (21). `--auto` adds the choice among all.

    python examples/benchmarks/networks.py --auto --json networks.json
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import spectra
from common import Rows, options, report

from daskspectral import SpectralDecomposition
from daskspectral.basis import Landmarks, NeuralBasis
from daskspectral.errors import FitWarning

Array = np.ndarray
NOISE, OTHERS = 0.05, 0.3
FIRST, LAST = 1, 8  # the values that are added


def moons(n: int, rng: np.random.Generator) -> Array:
    """Two moons and eight columns of noise, rotated."""
    t, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    moon = np.where(upper[:, None], np.column_stack([np.cos(t), np.sin(t)]), 0)
    moon[~upper] = np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])[~upper]
    x = np.hstack([moon + NOISE * rng.standard_normal((n, 2)), OTHERS * rng.standard_normal((n, 8))])
    return x @ np.linalg.qr(np.random.default_rng(42).standard_normal((10, 10)))[0]


def sphere(n: int, rng: np.random.Generator) -> Array:
    """Uniform points on S^9."""
    x = rng.standard_normal((n, 10))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


PROBLEMS = {
    "moons": (moons, 8, spectra.two_moons(NOISE, 8)),
    "S^9": (sphere, 11, np.concatenate([[0.0], np.full(10, 9.0)])),
}


def one_fit(name: str, n: int, basis: Any) -> dict[str, Any]:
    """Held-out values, values on fresh rows, and the time of one fit."""
    draw, count, exact = PROBLEMS[name]
    x, fresh = draw(n, np.random.default_rng(0)), draw(n, np.random.default_rng(1))
    model = SpectralDecomposition(basis=basis, n_components=count, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        model.fit(x)
    seconds = time.perf_counter() - start
    values, tail = model.eigenvalues_, slice(FIRST, LAST)
    taken = type(model.basis_.parts[-1]).__name__
    cut = slice(1, None)
    return {
        "problem": name,
        "basis": taken,
        "functions": model.basis_.size,
        "held out": float(np.sum(model.held_out_[tail])),
        "fresh": -model.score(fresh) if count == LAST else float("nan"),
        "exact": float(np.sum(exact[tail])),
        "error": float(np.sum(np.abs(1 / exact[cut][1:] - 1 / values[cut][1:])) / np.sum(1 / exact[cut][1:]))
        if name == "moons"
        else float(np.sum(np.abs(1 / exact[cut] - 1 / values[cut])) / np.sum(1 / exact[cut])),
        "seconds": seconds,
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", default=50_000, show_default=True, help="rows")
@click.option("--auto", is_flag=True, help='basis="auto" too')
def main(quick: bool, json_path: Path | None, n: int, auto: bool) -> None:
    """Fit each problem by each basis."""
    n, steps = (500, {"steps": 40, "hidden": (16, 16)}) if quick else (n, {})
    rows: Rows = []
    for name in PROBLEMS:
        rows.append(one_fit(name, n, None))
        rows.append(one_fit(name, n, Landmarks(count=min(800, n // 4))))
        rows.append(one_fit(name, n, NeuralBasis(**steps)))
        if auto:
            rows.append({**one_fit(name, n, "auto"), "problem": f"{name}, auto"})
    report(f"{n} rows in ten dimensions", rows, json_path)


if __name__ == "__main__":
    main()
