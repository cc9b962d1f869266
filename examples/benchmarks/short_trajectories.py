"""Slow modes of short trajectories: the automatic fit of Transfer against Markov models and VAMP at their best.

Measured: what the fitted functions lose of the operator in the population, Σ_{i<=m} σ_i² less VAMP-2 of the leading m
pairs of fitted functions beside the constant, for m = 2, 3, 4; means over the seeds, and the seconds of a fit. Ours is
`SpectralDecomposition(Transfer(1))` with no other argument than those of `--set`. The others take m functions from
cells of k-means (a Markov model), Gaussians at its centres (VAMP, widths of 1, 2, 4 and 8 spacings) and `SoftCells`
(.7, 1 and 1.5 spacings), each at the number of cells and the width that are best on average over the seeds, in
hindsight. "ratio" is ours over the better of the first two.

The processes are reversible jumps between the cells of a grid, within which a row is uniform: dX = -V' dt + 2^(1/2) dW
up to the grid's spacing, but with trajectories and population scores that are exact. σ are the values beside 1.

- well: V = 4 (x² - 1)², σ = .988, .266, .110.
- pair: V = 1.5 (x² - 1)² + .375 y², σ = .62, .55, .34, .30: two modes that are equally slow.
- tilted: V = 2.5 (x² - 1)² + (y - x / 2)² + .3 x, σ = .90, .48, .46, .23.
- four wells: V = 2 (x² - 1)² + 2 (y² - 1)² + .6 x y, σ = .76, .49, .37.
- Mueller-Brown: at temperature 15, σ = .995, .79, .68, .48.

With `--starts`, runs from equilibrium, from one side of the slowest function, and with twice the weight there: the
share of the fits, singular and reversible, of which is said that they do not start in equilibrium, and of those that
are off by more than their interval but trusted.

    python examples/benchmarks/short_trajectories.py --processes 2 --json short_trajectories.json
    python examples/benchmarks/short_trajectories.py --processes 2 --starts --seeds 50
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import click
import numpy as np
import scipy.linalg
from common import Rows, options, report
from fitting import Settings, fit, parallel, processes_option, settings_option, told
from scipy.spatial.distance import cdist

from daskspectral.basis import SoftCells
from daskspectral.operators import Transfer

MODES = (2, 3, 4)
CELLS = (5, 10, 20, 40, 80, 160)
WIDTHS = {"Markov": (0.0,), "VAMP": (1.0, 2.0, 4.0, 8.0), "soft cells": (0.7, 1.0, 1.5)}
DEEPEST = 12.0  # of the potential, in units of the temperature, above which there are no cells of the grid

Array = np.ndarray


# -- processes -------------------------------------------------------------------------------------------------------


def mueller_brown(x: Array, y: Array) -> Array:
    wells = zip(
        (-200, -100, -170, 15),
        (-1, -1, -6.5, 0.7),
        (0, 0, 11, 0.6),
        (-10, -10, -6.5, 0.7),
        (1, 0, -0.5, -1),
        (0, 0.5, 1.5, 1),
        strict=True,
    )
    return sum(d * np.exp(a * (x - u) ** 2 + b * (x - u) * (y - v) + c * (y - v) ** 2) for d, a, b, c, u, v in wells)


@dataclass(frozen=True)
class Process:
    """A potential in units of the temperature, the time between rows, and a grid: lower, upper and cells by axis."""

    potential: Callable[..., Array]
    lag: float
    grid: tuple[tuple[float, float, int], ...]


PROCESSES = {
    "well": Process(lambda x: 4 * (x**2 - 1) ** 2, 0.1, ((-2.2, 2.2, 300),)),
    "pair": Process(lambda x, y: 1.5 * (x**2 - 1) ** 2 + 0.375 * y**2, 0.8, ((-2.4, 2.4, 50), (-5, 5, 50))),
    "tilted": Process(
        lambda x, y: 2.5 * (x**2 - 1) ** 2 + (y - x / 2) ** 2 + 0.3 * x, 0.35, ((-2.2, 2.2, 56), (-2.6, 2.6, 56))
    ),
    "four wells": Process(
        lambda x, y: 2 * (x**2 - 1) ** 2 + 2 * (y**2 - 1) ** 2 + 0.6 * x * y, 1.0, ((-2, 2, 50), (-2, 2, 50))
    ),
    "Mueller-Brown": Process(lambda x, y: mueller_brown(x, y) / 15, 0.05, ((-1.7, 1.3, 62), (-0.5, 2.2, 58))),
}


class Chain:
    """Jumps between S cells: centres `x` (S, d), weights (S,), values and eigenfunctions of the transfer operator."""

    def __init__(self, process: Process):
        axes = [np.linspace(*line) for line in process.grid]
        self.spacing = np.array([axis[1] - axis[0] for axis in axes])
        points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
        potential = process.potential(*points.T)
        there = potential - potential.min() < DEEPEST
        self.x, weight = points[there], np.exp(potential.min() - potential[there])
        self.weight = weight / weight.sum()
        number = np.where(there, np.cumsum(there) - 1, -1).reshape([len(axis) for axis in axes])
        rates, root = np.zeros((len(self.x),) * 2), np.sqrt(self.weight)
        for axis, spacing in enumerate(self.spacing):
            lower, upper = (np.moveaxis(number, axis, 0)[part].ravel() for part in (slice(-1), slice(1, None)))
            near = (lower >= 0) & (upper >= 0)
            rates[lower[near], upper[near]] = rates[upper[near], lower[near]] = spacing**-2
        rates -= np.diag(rates @ root / root)
        slow, vectors = scipy.linalg.eigh(rates)
        values = np.exp(process.lag * np.minimum(slow[::-1], 0))
        self.values, functions = values[values > 1e-6], vectors[:, ::-1][:, values > 1e-6]
        self.weighted = root[:, None] * functions
        jumps = np.maximum((functions / root[:, None] * self.values) @ self.weighted.T, 0)
        self.cumulated = np.cumsum(jumps / jumps.sum(axis=1, keepdims=True), axis=1)

    def draw(self, n: int, seed: int, side: float = 1.0) -> Array:
        """n successive rows (n, d) from equilibrium, or with `side` times the weight where the slowest function < 0."""
        rng = np.random.default_rng(seed)
        start = self.weight * np.where(self.weighted[:, 1] < 0, side, 1)
        cells = [int(rng.choice(len(self.x), p=start / start.sum()))]
        for chance in rng.random(n - 1):
            cells.append(min(int(np.searchsorted(self.cumulated[cells[-1]], chance)), len(self.x) - 1))
        return self.x[cells] + self.spacing * (rng.random((n, len(self.spacing))) - 0.5)

    def loss(self, left: Array, right: Array, m: int) -> float:
        """What the leading m pairs of functions (S, k) and the constant lose of the m values beside 1."""
        f, g = self.orthonormal(left[:, :m]), self.orthonormal(right[:, :m])
        found = (f.T @ self.weighted * self.values) @ (self.weighted.T @ g)
        return float(np.sum(self.values[1 : m + 1] ** 2) - np.sum(found**2))

    def orthonormal(self, f: Array) -> Array:
        root = np.sqrt(self.weight)[:, None]
        u, s, _ = np.linalg.svd(root * (f - self.weight @ f), full_matrices=False)
        return u[:, s > 1e-6 * s[0]] / root


@lru_cache(1)
def chain(name: str) -> Chain:
    return Chain(PROCESSES[name])


# -- fits ------------------------------------------------------------------------------------------------------------


def vamp(features: Array, elsewhere: Array) -> tuple[Array, Array]:
    """Left and right functions on the cells of the grid, from features of the rows (n, p) and of the cells (S, p)."""
    f, g = features[:-1] - features[:-1].mean(axis=0), features[1:] - features[1:].mean(axis=0)
    w, z = whitened(f.T @ f), whitened(g.T @ g)
    u, _, vt = np.linalg.svd(w.T @ (f.T @ g) @ z)
    return elsewhere @ w @ u[:, : MODES[-1]], elsewhere @ z @ vt[: MODES[-1]].T


def whitened(gram: Array) -> Array:
    values, vectors = np.linalg.eigh(gram)
    seen = values > 1e-10 * values[-1]
    return vectors[:, seen] / np.sqrt(values[seen])


def features(space: str, width: float, cells: SoftCells, x: Array) -> Array:
    """The features of rows x (n, d), (n, p)."""
    if space == "soft cells":
        return SoftCells(cells.centres, width * cells.width).values(x).T
    squares = cdist(x, cells.centres, "sqeuclidean")
    if space == "Markov":
        return np.eye(cells.size)[squares.argmin(axis=1)]
    return np.exp(squares / (-2 * (width * cells.width) ** 2))


def losses(name: str, n: int, seed: int, settings: Settings) -> tuple[dict[tuple, list[float]], float, list[str]]:
    """The losses by m of every candidate on one trajectory, the seconds of ours, and what it said."""
    process = chain(name)
    x, found = process.draw(n, seed), {}
    done = fit(x, **{"operator": Transfer(1), "random_state": 0} | settings)
    seconds, said = done.seconds, list(done.said)
    if done.model is None:
        raise click.ClickException("; ".join(said))
    pair = [np.asarray(f(process.x))[:, 1:] for f in (done.model.transform, done.model.transform_right)]
    found["ours", 0, 0.0] = [process.loss(*pair, m) for m in MODES]
    for count in CELLS:
        if count > n / 6:
            continue
        cells = SoftCells.draw(x[:: -(-n // 5000)], count, random_state=0)
        for space, width in ((space, width) for space, widths in WIDTHS.items() for width in widths):
            pair = vamp(*(features(space, width, cells, points) for points in (x, process.x)))
            found[space, count, width] = [process.loss(*pair, m) for m in MODES]
    return found, seconds, said


def best(found: list[dict[tuple, list[float]]]) -> Iterator[tuple[str, str, Array]]:
    """The name, the setting and the mean losses (m,) of each space, at what is best on average for the m in between."""
    for space in ("ours", *WIDTHS):
        settings = [key for key in found[0] if key[0] == space]
        means = {key: np.mean([losses[key] for losses in found], axis=0) for key in settings}
        _, count, width = key = min(means, key=lambda key: means[key][len(MODES) // 2])
        yield space, f"{count} x {width:g}" if count else "", means[key]


STARTS = {"equilibrium": 1.0, "one side": 0.0, "twice": 2.0}
RUNS = ((1, 4000), (20, 200), (200, 40))  # how many, of how many rows


def started(name: str, runs: int, n: int, start: str, seed: int, settings: Settings) -> tuple[list[bool], list[str]]:
    """Whether a singular and a reversible fit are said to start out of equilibrium, and are off but trusted."""
    process, found, said = chain(name), [], []
    x = [process.draw(n, 1000 * seed + run, STARTS[start]) for run in range(runs)]
    for operator in (Transfer(1), Transfer(1, reversible=True)):
        done = fit(x, **{"operator": operator, "random_state": 0, "n_components": 3} | settings)
        if done.model is None:
            raise click.ClickException("; ".join(done.said))
        low, high = done.model.timescale_errors_[0, 0]
        off = not low <= -1 / np.log(process.values[1]) <= high
        said += done.said
        alarm = any("equilibrium" in str(doubt) for doubt in done.model.doubts_)
        found += [alarm, bool(off and done.model.trusted_[done.model.constants_])]
    return found, said


def starts_table(names: tuple[str, ...], seeds: int, processes: int, settings: Settings) -> Rows:
    """The shares of alarms and of fits that are off but trusted, by process, start, and runs."""
    rows: Rows = []
    for name, (runs, n), start in ((name, size, start) for name in names for size in RUNS for start in STARTS):
        jobs = [(name, runs, n, start, seed, settings) for seed in range(seeds)]
        done = np.mean([found for found, _ in parallel(started, jobs, processes, f"{name}, {start}")], axis=0)
        shares = dict(zip(("alarm", "wrong", "alarm reversible", "wrong reversible"), done.tolist(), strict=True))
        rows.append({"process": name, "runs": runs, "rows": n, "start": start} | shares)
    return rows


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--starts", is_flag=True, help="runs that start out of equilibrium")
@click.option("--process", "names", multiple=True, type=click.Choice(list(PROCESSES)), default=tuple(PROCESSES))
@click.option("--n", "sizes", multiple=True, type=int, default=(1000, 3000, 10_000, 30_000), show_default=True)
@click.option("--seeds", default=30, show_default=True, help="trajectories of each process and length")
@processes_option(1)
@settings_option
def main(
    quick: bool,
    json_path: Path | None,
    starts: bool,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    seeds: int,
    processes: int,
    settings: Settings,
) -> None:
    """Fit every trajectory, and compare in the population."""
    if quick:
        names, sizes, seeds = ("well",), (600,), 1
    if starts:
        report("starts out of equilibrium", starts_table(names, seeds, processes, settings), json_path)
        return
    rows: Rows = []
    said: list[str] = []
    start = time.perf_counter()
    for name, n in ((name, n) for name in names for n in sizes):
        jobs = [(name, n, seed, settings) for seed in range(seeds)]
        done = parallel(losses, jobs, processes, f"{name}, {n} rows")
        table = list(best([found for found, _, _ in done]))
        least = np.minimum(*(means for space, _, means in table if space in ("Markov", "VAMP")))
        said += [text for _, _, texts in done for text in texts]
        for space, setting, means in table:
            line = {"process": name, "n": n, "by": space, "setting": setting}
            line |= {f"m = {m}": loss for m, loss in zip(MODES, means, strict=True)}
            line["ratio"] = float(np.exp(np.mean(np.log(means / least))))
            line["seconds"] = float(np.mean([seconds for _, seconds, _ in done])) if space == "ours" else None
            rows.append(line)
    notes = ["", *told(said), f"{time.perf_counter() - start:.0f} s in all"]
    report("slow modes of short trajectories: what is lost in the population", rows, json_path, notes)


if __name__ == "__main__":
    main()
