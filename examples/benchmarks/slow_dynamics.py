"""What one pass tells of a process, against a fine grid: how often the 95 % intervals hold the truth.

Many trajectories of the processes of short_trajectories.py, whose operator is a matrix between cells of a grid. Fitted
by `SpectralDecomposition(Transfer(1, reversible=True, further=(2, 5)))` with no other argument than those of `--set`;
then `first_passage` between two sets, at the lags 1 and 10. A column is the share of the numbers that lie within their
intervals, over all trajectories, and "width" the median of the intervals' half widths relative to the truth.

- timescale: of the slowest two processes, at the lag 1.
- powers: the diagonal of what `chapman_kolmogorov` measures at the lags 2 and 5, in these processes.
- committor: at 20 cells in which it is .1 to .9, the same of all trajectories, and passage_time at the same cells.
- trusted: of the slowest two values, and "wrong" those that are trusted and more than 15 % off.

    python examples/benchmarks/slow_dynamics.py --processes 2 --json slow_dynamics.json
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from common import Rows, options, report
from fitting import Settings, first_words, fit, parallel, processes_option, settings_option, told
from short_trajectories import PROCESSES, chain

from daskspectral.operators import Transfer

Array = np.ndarray
SETS = {  # centres and radius
    "well": ([-1.0], [1.0], 0.15),
    "four wells": ([-1.0, 1.0], [1.0, -1.0], 0.35),
    "Mueller-Brown": ([-0.56, 1.44], [0.62, 0.03], 0.2),
}
PROCESSES_COUNTED, LAGS, CELLS = 2, (1, 10), 20


class Near:
    """Whether the cells of rows have centres near a point."""

    def __init__(self, name: str, centre: list[float], radius: float):
        self.lower = np.array([line[0] for line in PROCESSES[name].grid])
        self.spacing, self.centre, self.radius = chain(name).spacing, np.array(centre), radius

    def __call__(self, x: Array) -> Array:
        cells = self.lower + np.rint((x - self.lower) / self.spacing) * self.spacing
        return np.linalg.norm(cells - self.centre, axis=1) < self.radius


def truth(name: str) -> tuple[Array, Array, Array]:
    """Twenty cells (20, d), the committor and the mean first passage time there."""
    process, (first, second, radius) = chain(name), SETS[name]
    a, b = (Near(name, centre, radius)(process.x) for centre in (first, second))
    jumps, free = np.diff(process.cumulated, axis=1, prepend=0), ~(a | b)
    left = np.eye(free.sum()) - jumps[np.ix_(free, free)]
    found = np.linalg.solve(left, np.column_stack([jumps[np.ix_(free, b)].sum(axis=1), np.ones(free.sum())]))
    between = np.flatnonzero((found[:, 0] > 0.1) & (found[:, 0] < 0.9))
    weight = process.weight[free][between]
    some = between[np.random.default_rng(0).choice(len(between), CELLS, replace=False, p=weight / weight.sum())]
    return process.x[free][some], found[some, 0], found[some, 1]


def held(name: str, n: int, seed: int, settings: Settings) -> tuple[dict[str, tuple[Array, Array]], list[str]]:
    """For one trajectory and each quantity, which numbers are within their intervals, and relative half widths."""
    process, (first, second, radius) = chain(name), SETS[name]
    x, values = process.draw(n, seed), process.values[1 : 1 + PROCESSES_COUNTED]
    done = fit(x, **{"operator": Transfer(1, reversible=True, further=(2, 5)), "random_state": 0} | settings)
    model = done.model
    if model is None:
        raise click.ClickException("; ".join(done.said))
    found, some, said = {}, slice(PROCESSES_COUNTED), list(done.said)

    def compared(quantity: str, ends: Array, true: Array) -> None:
        low, high = np.moveaxis(np.asarray(ends), -1, 0)
        found[quantity] = ((low <= true) & (true <= high)).ravel(), ((high - low) / (2 * np.abs(true))).ravel()

    compared("timescale", model.timescale_errors_[0, some], -1 / np.log(values))
    test = model.chapman_kolmogorov()
    ends = np.diagonal(test.measured_errors[:, some, some], axis1=1, axis2=2)  # (lags, 2, m)
    compared("powers", ends.swapaxes(1, 2), values[None] ** test.lags[:, None])
    cells, committor, time = truth(name)
    for lag in LAGS:
        try:
            model.first_passage(x, Near(name, first, radius), Near(name, second, radius), lag=lag)
        except ValueError as error:  # the trajectory never enters one of them
            said.append(first_words(error))
            continue
        compared(f"committor, lag {lag}", model.committor(cells)[:, 1:], committor)
        compared(f"passage time, lag {lag}", model.passage_time(cells)[:, 1:], time)
    fitted, trusted = model.eigenvalues_[1 : 1 + PROCESSES_COUNTED], model.trusted_[1 : 1 + PROCESSES_COUNTED]
    found["trusted"] = trusted, np.full(PROCESSES_COUNTED, np.nan)
    wrong = trusted & (np.abs(fitted - values) > 0.15 * values)
    found["wrong"] = wrong, np.full(PROCESSES_COUNTED, np.nan)
    return found, said


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--process", "names", multiple=True, type=click.Choice(list(SETS)), default=tuple(SETS))
@click.option("--n", default=10_000, show_default=True, help="rows of a trajectory")
@click.option("--seeds", default=200, show_default=True, help="trajectories of each process")
@processes_option(1)
@settings_option
def main(
    quick: bool, json_path: Path | None, names: tuple[str, ...], n: int, seeds: int, processes: int, settings: Settings
) -> None:
    """Fit every trajectory, and compare with the grid."""
    if quick:
        names, n, seeds = ("well",), 1000, 2
    rows: Rows = []
    said: list[str] = []
    for name in names:
        done = parallel(held, [(name, n, seed, settings) for seed in range(seeds)], processes, name)
        said += [text for _, texts in done for text in texts]
        for quantity in done[0][0]:
            known = [found[quantity] for found, _ in done if quantity in found]
            inside, widths = (np.concatenate([one[i] for one in known]) for i in (0, 1))
            width = float(np.median(widths)) if np.isfinite(widths).any() else None
            rows.append({"process": name, "quantity": quantity, "share": float(inside.mean()), "width": width})
    title = f"quantities of slow processes within their 95 % intervals, {n} rows, {seeds} trajectories"
    report(title, rows, json_path, ["", *told(said)])


if __name__ == "__main__":
    main()
