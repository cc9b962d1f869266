"""The first fit of a stranger: `SpectralDecomposition(n_components=11).fit(x)` on twelve problems with known spectra.

Measured: relative errors over the first ten nonzero eigenvalues (nine where 0 is one twice, for two moons and circles:
eleven components hold no more), their maximum and median, each the median over the seeds, and the geometric means of
these over the problems. "zero" is the last eigenvalue that should be 0 over the first that should not. "silent" counts
the fits with an error above .15 and no warning. A value that is missing, or all of them where a fit refuses, has the
error 1, as 0 would have; "missing" counts them over the seeds.

    python examples/benchmarks/first_fit.py --json first_fit.json
    python examples/benchmarks/first_fit.py --problem square --n 2000 --set solver=cut --set kernel=gaussian:0.3
    python examples/benchmarks/first_fit.py --problem normal-2 --set basis=monomial:2:4  # its own eigenfunctions

The problems are in `problems.py`, how their eigenvalues are computed in `spectra.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from fitting import Settings, classes, fit, parallel, processes_option, settings_option, told
from problems import FIRST_FIT, chosen, relative_errors

SIZES = (600, 2000, 20_000, 100_000)
SILENT = 0.15  # an error that a warning has to announce


def one_fit(name: str, n: int, seed: int, components: int, settings: Settings) -> dict[str, Any]:
    """The errors of one fit, what was said, and the time."""
    problem = FIRST_FIT[name]
    done = fit(problem.draw(n, seed), **{"n_components": components, **settings})
    errors = relative_errors(done.values, problem, components)
    spurious = done.values[problem.zeros - 1] if len(done.values) >= problem.zeros else np.inf
    return {
        "problem": name,
        "n": n,
        "seed": seed,
        "max": float(errors.max()),
        "median": float(np.median(errors)),
        "zero": float(abs(spurious) / problem.eigenvalues(problem.zeros + 1)[-1]),
        "missing": max(0, components - len(done.values)),
        "values": done.values.tolist(),
        "said": list(done.said),
        "seconds": done.seconds,
    }


def summary(fits: Rows) -> dict[str, Any]:
    """One line of the table: a problem at one size, over the seeds."""
    line: dict[str, Any] = {"n": fits[0]["n"], "problem": fits[0]["problem"]}
    line |= {key: float(np.median([f[key] for f in fits])) for key in ("max", "median", "zero", "seconds")}
    line["missing"] = sum(f["missing"] for f in fits)
    line["silent"] = sum(f["max"] > SILENT and not f["said"] for f in fits)
    line["said"] = classes(text for f in fits for text in f["said"])
    return line


def means(lines: Rows) -> dict[str, Any]:
    """The line of geometric means over the problems at one size."""
    line: dict[str, Any] = {"n": lines[0]["n"], "problem": "geometric mean"}
    line |= {key: float(np.exp(np.log([a[key] for a in lines]).mean())) for key in ("max", "median")}
    return line | {"zero": None} | {key: sum(a[key] for a in lines) for key in ("seconds", "missing", "silent")}


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problem", "names", multiple=True, help=f"one of {', '.join(FIRST_FIT)}; all by default")
@click.option("--n", "sizes", multiple=True, type=int, default=SIZES, show_default=True, help="rows")
@click.option("--seeds", default=5, show_default=True, help="samples of each problem")
@click.option("--components", default=11, show_default=True, help="n_components")
@settings_option
@processes_option(1)
def main(
    quick: bool,
    json_path: Path | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    seeds: int,
    components: int,
    settings: Settings,
    processes: int,
) -> None:
    """Fit every problem at every size."""
    if quick:
        names, sizes, seeds = names or ("interval", "circles"), (600,), 2
    problems = chosen(names, FIRST_FIT)
    jobs = [(p.name, n, seed, components, settings) for n in sizes for p in problems for seed in range(seeds)]
    fits = parallel(one_fit, jobs, processes, "fits")
    rows: Rows = []
    for n in sizes:
        lines = [summary([f for f in fits if (f["n"], f["problem"]) == (n, p.name)]) for p in problems]
        rows += [*lines, means(lines)]
    notes = ["", *told(text for f in fits for text in f["said"])]
    shown = ", ".join(f"{name}={value}" for name, value in ({"n_components": components} | settings).items())
    title = f"the first fit, {shown}: errors of the first nonzero eigenvalues, medians over {seeds} seeds"
    report(title, rows, json_path, notes, fits=fits)


if __name__ == "__main__":
    main()
