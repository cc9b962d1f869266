r"""Verdicts of fields and trajectories compared with simulated truth: coverage, false alarms and power.

Fields have 200 cells of red noise of variance 1 and lag-one autocorrelation a, and three orthonormal patterns with
scores of the same a and variances 60, 30, 15; every fourth field has a pair, 60, 25, 25. `EOF(6)` is fitted to each,
and to the noise alone. Shares are over all fields of a row of the table:

- interval: intervals of `explained_variance` that hold the variance of the true mode, of modes above noise.
- above: true modes above noise (power); noise: fields of noise with a mode above it (false alarms, 5 % wanted).
- separate: modes declared separate from both neighbors whose pattern correlates by .9 with a true one; pairs: fields
  with a pair whose modes 2 and 3 are declared separate from each other.
- known, is: correlation of known patterns with the true ones, predicted and measured.

Trajectories are of 10 000 rows of the four wells of `slow_dynamics.py` with a tenth of the time between rows, and of
its "well" 200 of 50 rows that start anywhere; `Koopman((1, 2, 5), reversible=True)` has the parameters of `--set`.
Counted are intervals of three timescales, of rates and passage times between the cores of the wells, of weights of
equilibrium, and of forecasts 1, 5 and 20 lags ahead: few functions do not resolve means after one lag.

Measured with 200 fields: interval .973, above .69 (.46 of 60 rows, .91 of 600), noise .05 (.12 of 60 rows), separate
.98, pairs .05, known .973, is .976. With 60 trajectories and the functions below: timescales .98, weights .91,
forecasts of the wells .17, .83, .96 (1, 5, 20 lags), of the well .88, .85, .90; with 30, rates .98 (.98 times the
truth) and passage times .97.

    python examples/benchmarks/coverage_of_verdicts.py --set n_components=6 \\
        --set "basis=dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 60)"
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from common import Array, Rows, Settings, fit, options, report, settings_option
from scipy.signal import lfilter
from slow_dynamics import PROCESSES, chain

import daskspectral as dsp
from daskspectral.moments.field_modes import significance_of
from daskspectral.spectral.cores import CORE
from daskspectral.spectral.metastable import passage_times

LENGTHS, MEMORIES = (60, 120, 300, 600), (0.0, 0.5, 0.8, 0.9, 0.95)
CELLS, VARIANCES, PAIR = 200, np.array([60.0, 30.0, 15.0]), np.array([60.0, 25.0, 25.0])
STEPS = (1, 5, 20)
GIVEN: Settings = {"lag": (1, 2, 5), "reversible": True, "random_state": 0}
PROCESSES["wells"] = replace(PROCESSES["four wells"], lag=0.1)


def red(rng: np.random.Generator, n: int, d: int, a: float) -> Array:
    """Return d independent AR(1) columns of variance 1, (n, d)."""
    noise = rng.standard_normal((n, d))
    noise[1:] *= np.sqrt(1 - a**2)
    return lfilter([1], [1, -a], noise, axis=0)


def field(n: int, a: float, seed: int) -> dict[str, Array]:
    """Return what is counted of one field: each array is averaged over all fields."""
    rng = np.random.default_rng(seed)
    patterns = np.linalg.qr(rng.standard_normal((CELLS, 3)))[0].T
    pair = seed % 4 == 3
    variances, noise = PAIR if pair else VARIANCES, red(rng, n, CELLS, a)
    x = noise + red(rng, n, 3, a) * np.sqrt(variances) @ patterns
    found, null = fit(x, dsp.EOF, n_components=6, random_state=0), fit(noise, dsp.EOF, n_components=6, random_state=0)
    model, one = found.model, found.model.significance()
    start = time.process_time()
    significance_of(model.moments_, model.coefficients_)
    cost = (time.process_time() - start) / found.cpu
    above = np.arange(3) < one.count
    ends, true = model.eigenvalue_errors_[:3], variances + 1
    inside = (ends[:, 0] <= true) & (true <= ends[:, 1])
    maps = model.patterns_.single / np.linalg.norm(model.patterns_.single, axis=1)[:, None]
    cosines = np.abs(maps[:3] @ patterns.T)
    best = np.sqrt((cosines[:, :1] ** 2).sum(axis=1)) if pair else cosines.max(axis=1)
    if pair:  # of a pair the plane
        best = np.maximum(best, np.sqrt((cosines[:, 1:] ** 2).sum(axis=1)))
    apart = np.append(np.inf, one.separations[:3]) >= 2.5
    separate, known = above & apart[:-1] & apart[1:], one.known[:3] & above
    single = cosines.max(axis=1) > 0.9
    return {
        "interval": inside[above],
        "above": above,
        "noise": np.array([null.model.significance().count > 0]),
        "separate": single[separate & (not pair)],
        "pairs": np.array([separate[1]] if pair and above.all() else []),
        "known": one.pattern_correlations[:3][known],
        "is": best[known],
        "cost": np.array([cost]),
    }


def rates(name: str, cores: Array) -> Array:
    """Return the rates between cores, given by cell (S, m), of the exact jumps between cells."""
    process = chain(name)
    jumps = np.diff(process.cumulated, axis=1, prepend=0)
    free = ~cores.any(axis=1)
    last = cores.astype(float)  # the core visited last: of reversible jumps that which is entered next
    last[free] = np.linalg.solve(np.eye(free.sum()) - jumps[np.ix_(free, free)], jumps[free] @ cores)
    flux = (last * process.weight[:, None]).T @ jumps @ cores
    found = flux / (last * process.weight[:, None]).sum(axis=0)[:, None]
    np.fill_diagonal(found, 0)
    return found - np.diag(found.sum(axis=1))


def within(ends: Array, true: Array) -> Array:
    return ((ends[..., 0] <= true) & (true <= ends[..., 1])).ravel()


def forecasts(model: dsp.Koopman, name: str, cells: Array) -> dict[str, Array]:
    """Return which means of the columns at some cells are within their intervals."""
    process, found = chain(name), {}
    jumps = np.diff(process.cumulated, axis=1, prepend=0)
    for steps in STEPS:
        ahead = np.linalg.matrix_power(jumps, steps)[cells] @ process.x
        found[f"forecast, {steps} lags"] = within(
            model.forecast(process.x[cells], steps, interval=True)[..., 1:], ahead
        )
    return found


def trajectory(seed: int, n: int, settings: Settings) -> dict[str, Array]:
    """Return what is counted of one trajectory of four wells."""
    process = chain("wells")
    x = process.draw(n, seed)
    model = fit(x, dsp.Koopman, **GIVEN | settings).model
    found = {"timescale": within(model.timescale_errors_[0, :3], -1 / np.log(process.values[1:4]))}
    sets = fit_sets(model, x)
    true, off = rates("wells", np.asarray(sets.memberships(process.x)) >= CORE), ~np.eye(4, dtype=bool)
    found["rate"] = within(sets.rate_errors[off], true[off])
    found["rate over the truth"] = sets.rates[off] / true[off]
    found["passage time"] = within(sets.passage_time_errors[off], passage_times(true)[off])
    cells = np.random.default_rng(0).choice(len(process.x), 20, p=process.weight)
    return found | forecasts(model, "wells", cells)


def fit_sets(model: dsp.Koopman, x: Array) -> dsp.spectral.sets.MetastableSets:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.metastable_sets(4, x)


def starts(seed: int, count: int, settings: Settings) -> dict[str, Array]:
    """Return what is counted of short trajectories of a well that start anywhere."""
    process, rng = chain("well"), np.random.default_rng(seed)
    cells = np.empty((count, 50), int)
    first = np.abs(process.x[:, 0]) < 1.6
    cells[:, 0] = rng.choice(np.flatnonzero(first), count)
    for t in range(1, 50):
        chances = rng.random(count)
        cells[:, t] = [np.searchsorted(process.cumulated[c], u) for c, u in zip(cells[:, t - 1], chances, strict=True)]
    x = process.x[cells.clip(max=len(process.x) - 1)] + process.spacing * (rng.random((count, 50, 1)) - 0.5)
    model = fit([*x], dsp.Koopman, **GIVEN | settings).model
    jumps, density = np.diff(process.cumulated, axis=1, prepend=0), np.zeros(len(process.x))
    now = first / first.sum()
    for _ in range(45):  # of rows that 5 others follow
        density, now = density + now / 45, now @ jumps
    some = rng.choice(len(process.x), 50, p=density / density.sum())
    weights = model.equilibrium_weights(process.x[some], interval=True)
    return {"weight": within(weights[:, 1:], process.weight[some] / density[some])} | forecasts(
        model, "well", some[:20]
    )


def averaged(done: list[dict[str, Array]]) -> dict[str, float]:
    """Return the mean of each quantity over all fields or trajectories."""
    every = {
        key: np.concatenate([one[key] for one in done if key in one])
        for key in dict.fromkeys(k for d in done for k in d)
    }
    return {key: float(values.mean()) if len(values) else float("nan") for key, values in every.items()}


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--fields", default=10, show_default=True, help="fields of each length and memory")
@click.option("--trajectories", default=60, show_default=True)
@settings_option
def main(quick: bool, json_path: Path | None, fields: int, trajectories: int, settings: Settings) -> None:
    """Simulate, fit and count."""
    fields, trajectories, n = (4, 1, 2000) if quick else (fields, trajectories, 10_000)
    lengths, memories = ((60,), (0.5,)) if quick else (LENGTHS, MEMORIES)
    every = {(n, a): [field(n, a, seed) for seed in range(fields)] for n in lengths for a in memories}
    rows: Rows = []
    for i, name in enumerate(("rows", "autocorrelation")):
        for value in dict.fromkeys(key[i] for key in every):
            done = [one for key, some in every.items() if key[i] == value for one in some]
            rows.append({"of": f"{name} {value}", **averaged(done)})
    rows.append({"of": "all", **averaged([one for some in every.values() for one in some])})
    report(f"{fields * len(every)} fields", rows, json_path)
    rows = []
    for name, done in (
        ("wells", [trajectory(seed, n, settings) for seed in range(trajectories)]),
        ("well, any start", [starts(seed, n // 50, settings) for seed in range(trajectories)]),
    ):
        rows += [{"process": name, "quantity": key, "mean": value} for key, value in averaged(done).items()]
    report(f"{trajectories} trajectories", rows, None)


if __name__ == "__main__":
    main()
