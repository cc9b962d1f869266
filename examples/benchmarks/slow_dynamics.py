"""Results of one pass over a process compared with a fine grid: how often the 95 % intervals hold the truth.

The processes are reversible jumps between the cells of a grid, within which a row is uniform: dX = -V' dt + 2^(1/2) dW
up to the grid's spacing, but with trajectories and values that are exact. Many trajectories of each are fitted by
`Koopman((1, 2, 5), reversible=True)` with no other argument than those of `--set`; then
`first_passage` between two sets, at the lags 1 and 10. "share" is that of the numbers that lie within their intervals,
over all trajectories.

- timescale: of the slowest two processes, at the lag 1.
- powers: the diagonal of what `chapman_kolmogorov` measures at the lags 2 and 5, in these processes.
- committor: at 20 cells in which it is .1 to .9, the same of all trajectories, and passage_time at the same cells.
- reliable: of the slowest two values, and "wrong" those that are reliable and more than 15 % off.

    python examples/benchmarks/slow_dynamics.py --processes 2 --json slow_dynamics.json
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import click
import numpy as np
import scipy.linalg
from common import Array, Rows, Settings, fit, options, parallel, processes_option, report, settings_option

import daskspectral as dsp

COUNTED, LAGS, CELLS = 2, (1, 10), 20
DEEPEST = 12.0  # of the potential, in units of the temperature, above which there are no cells of the grid


def mueller_brown(x: Array, y: Array) -> Array:
    """Return the potential at the temperature 15."""
    found, heights = 0, (-200, -100, -170, 15)
    exponents = ((-1, 0, -10), (-1, 0, -10), (-6.5, 11, -6.5), (0.7, 0.6, 0.7))
    for height, (a, b, c), (u, v) in zip(heights, exponents, ((1, 0), (0, 0.5), (-0.5, 1.5), (-1, 1)), strict=True):
        found = found + height / 15 * np.exp(a * (x - u) ** 2 + b * (x - u) * (y - v) + c * (y - v) ** 2)
    return found


@dataclass(frozen=True)
class Process:
    """A potential in units of the temperature, the time between rows, a grid, and two sets: centers and a radius.

    The grid has lower, upper and cells by axis.
    """

    potential: Callable[..., Array]
    lag: float
    grid: tuple[tuple[float, float, int], ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    radius: float


def four_wells(x: Array, y: Array) -> Array:
    return 2 * (x**2 - 1) ** 2 + 2 * (y**2 - 1) ** 2 + 0.6 * x * y


PROCESSES = {
    "well": Process(lambda x: 4 * (x**2 - 1) ** 2, 0.1, ((-2.2, 2.2, 300),), (-1.0,), (1.0,), 0.15),
    "four wells": Process(four_wells, 1.0, ((-2, 2, 50), (-2, 2, 50)), (-1.0, 1.0), (1.0, -1.0), 0.35),
    "Mueller-Brown": Process(mueller_brown, 0.05, ((-1.7, 1.3, 62), (-0.5, 2.2, 58)), (-0.56, 1.44), (0.62, 0.03), 0.2),
}


class Chain:
    """Jumps between S cells: centers `x` (S, d), weights (S,), values and eigenfunctions of the transfer operator."""

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
        jumps = np.maximum((functions / root[:, None] * self.values) @ (root[:, None] * functions).T, 0)
        self.cumulated = np.cumsum(jumps / jumps.sum(axis=1, keepdims=True), axis=1)

    def draw(self, n: int, seed: int) -> Array:
        """Return n successive rows (n, d) from equilibrium."""
        rng = np.random.default_rng(seed)
        cells = [int(rng.choice(len(self.x), p=self.weight))]
        for chance in rng.random(n - 1):
            cells.append(min(int(np.searchsorted(self.cumulated[cells[-1]], chance)), len(self.x) - 1))
        return self.x[cells] + self.spacing * (rng.random((n, len(self.spacing))) - 0.5)


@lru_cache(1)
def chain(name: str) -> Chain:
    return Chain(PROCESSES[name])


class Near:
    """Whether the cells of rows have centers near a point."""

    def __init__(self, name: str, center: tuple[float, ...]):
        self.lower = np.array([line[0] for line in PROCESSES[name].grid])
        self.spacing, self.center, self.radius = chain(name).spacing, np.array(center), PROCESSES[name].radius

    def __call__(self, x: Array) -> Array:
        cells = self.lower + np.rint((x - self.lower) / self.spacing) * self.spacing
        return np.linalg.norm(cells - self.center, axis=1) < self.radius


def sets(name: str) -> tuple[Near, Near]:
    return Near(name, PROCESSES[name].first), Near(name, PROCESSES[name].second)


def truth(name: str) -> tuple[Array, Array, Array]:
    """Twenty cells (20, d), the committor and the mean first passage time there."""
    process = chain(name)
    a, b = (near(process.x) for near in sets(name))
    jumps, free = np.diff(process.cumulated, axis=1, prepend=0), ~(a | b)
    left = np.eye(free.sum()) - jumps[np.ix_(free, free)]
    found = np.linalg.solve(left, np.column_stack([jumps[np.ix_(free, b)].sum(axis=1), np.ones(free.sum())]))
    between = np.flatnonzero((found[:, 0] > 0.1) & (found[:, 0] < 0.9))
    weight = process.weight[free][between]
    some = between[np.random.default_rng(0).choice(len(between), CELLS, replace=False, p=weight / weight.sum())]
    return process.x[free][some], found[some, 0], found[some, 1]


def held(name: str, n: int, seed: int, settings: Settings) -> dict[str, Array]:
    """Return for one trajectory and each quantity which numbers are within their intervals."""
    process, some = chain(name), slice(1, 1 + COUNTED)
    x, values = process.draw(n, seed), process.values[some]
    model = fit(x, dsp.Koopman, **{"lag": (1, 2, 5), "reversible": True, "random_state": 0} | settings).model

    def within(ends: Array, true: Array) -> Array:
        return ((ends[..., 0] <= true) & (true <= ends[..., 1])).ravel()

    test = model.chapman_kolmogorov()
    ends = np.diagonal(test.measured_errors[:, :COUNTED, :COUNTED], axis1=1, axis2=2).swapaxes(1, 2)
    found = {
        "timescale": within(model.timescale_errors_[0, :COUNTED], -1 / np.log(values)),
        "powers": within(ends, values[None] ** test.lags[:, None]),
        "reliable": model.reliable_[some],
        "wrong": model.reliable_[some] & (np.abs(model.eigenvalues_[some] - values) > 0.15 * values),
    }
    cells, committor, time = truth(name)
    for lag in LAGS:
        with contextlib.suppress(ValueError):  # the trajectory never enters one of the sets
            passage = model.first_passage(x, *sets(name), lag=lag)
            found[f"committor, lag {lag}"] = within(passage.committor(cells)[:, 1:], committor)
            found[f"passage time, lag {lag}"] = within(passage.passage_time(cells)[:, 1:], time)
    return found


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", default=10_000, show_default=True, help="rows of a trajectory")
@click.option("--seeds", default=200, show_default=True, help="trajectories of each process")
@processes_option
@settings_option
def main(quick: bool, json_path: Path | None, n: int, seeds: int, settings: Settings, processes: int) -> None:
    """Fit the trajectories, and compare."""
    rows: Rows = []
    for name in ("well",) if quick else PROCESSES:
        jobs = [(name, 2000 if quick else n, seed, settings) for seed in range(2 if quick else seeds)]
        done = parallel(held, jobs, processes)
        for quantity in dict.fromkeys(key for one in done for key in one):
            inside = np.concatenate([one[quantity] for one in done if quantity in one])
            rows.append({"process": name, "quantity": quantity, "share": float(inside.mean())})
    report(f"slow processes within their 95 % intervals, {n} rows, {seeds} trajectories", rows, json_path)


if __name__ == "__main__":
    main()
