"""The automatic choice: `SpectralDecomposition(n_components=11).fit(x)` on 37 problems with known spectra.

Measured: relative errors of the first ten nonzero eigenvalues (nine if 0 is one twice), and the verdict of the fit.

max, median: of the errors of a fit; the median over the seeds.
cpu: CPU seconds of a fit, of all threads; the mean over the seeds.
coverage: the share of the exact values within their 95 % intervals, `eigenvalue_errors_`.
reliable: of the values with an error of at most .1, the share that is reliable (`reliable_`).
wrong: the number of reliable values with an error above .15.
silent: the number of fits with an error above .15 and no warning.
said: the classes of the warnings, each with its count over the seeds.

A value that is missing, or all of them if a fit raises ValueError, has the error 1, as 0 would have, no interval and no
trust. The last line of a size has geometric means of max and median over the problems, the mean of cpu, the shares over
all values, and sums. With --against an earlier JSON of this script, `max` and `wrong` of that run are shown too;
PYTHONPATH runs the script with the package of another checkout:

    PYTHONPATH=../before python examples/benchmarks/first_fit.py --processes 2 --json before.json
    python examples/benchmarks/first_fit.py --processes 2 --json now.json --against before.json
    python examples/benchmarks/first_fit.py --problem square --n 2000 --set "solver=dsp.solvers.Truncated()"

The problems are `FIRST_FIT` and `HARD` in `problems.py`; `spectra.py` computes their eigenvalues. Further sets are
`FOLDED`, whose values are wrong at few rows and must not be reliable ("wrong" counts those that are), and `ROUNDED`:

    python examples/benchmarks/first_fit.py --problems folded --n 2000 --seeds 2
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np
from common import Rows, Settings, classes, fit, options, parallel, processes_option, report, settings_option
from problems import FIRST_FIT, FOLDED, HARD, ROUNDED, relative_errors

SETS = {"known": FIRST_FIT | HARD, "folded": FOLDED, "rounded": ROUNDED}
PROBLEMS = FIRST_FIT | HARD | FOLDED | ROUNDED
CLOSE, WRONG = 0.10, 0.15  # errors of a value that deserves trust, and of one that does not


def one_fit(name: str, n: int, seed: int, components: int, settings: Settings) -> dict[str, Any]:
    """Return the errors of one fit, its claims, and the time."""
    problem = PROBLEMS[name]
    done = fit(problem.draw(n, seed), **{"n_components": components, "random_state": seed, **settings})
    errors = relative_errors(done.values, problem, components)
    exact = problem.eigenvalues(problem.zeros + len(errors))
    inside, reliable = np.zeros((2, len(exact)), dtype=bool)
    if done.model is not None:
        k = min(len(done.values), len(exact))
        low, high = done.model.eigenvalue_errors_[:k].T
        inside[:k], reliable[:k] = (low <= exact[:k]) & (exact[:k] <= high), done.model.reliable_[:k]
    inside, reliable = inside[problem.zeros :], reliable[problem.zeros :]
    return {
        "problem": name,
        "n": n,
        "seed": seed,
        "max": float(errors.max()),
        "median": float(np.median(errors)),
        "inside": inside.tolist(),
        "close": int((errors <= CLOSE).sum()),
        "close and reliable": int(((errors <= CLOSE) & reliable).sum()),
        "wrong": int((reliable & (errors > WRONG)).sum()),
        "said": done.said,
        "cpu": done.cpu,
    }


def judged(fits: Rows) -> dict[str, Any]:
    """Return the columns that are means, shares and sums over all values of the fits."""
    close = sum(f["close"] for f in fits)
    return {
        "cpu": float(np.mean([f["cpu"] for f in fits])),
        "coverage": float(np.mean([held for f in fits for held in f["inside"]])),
        "reliable": sum(f["close and reliable"] for f in fits) / close if close else None,
        "wrong": sum(f["wrong"] for f in fits),
        "silent": sum(f["max"] > WRONG and not f["said"] for f in fits),
        "said": classes(text for f in fits for text in f["said"]),
    }


def lines(fits: Rows) -> Rows:
    """Return the lines of one size: one for each problem, over the seeds, and one over the problems."""
    n, found = fits[0]["n"], []
    for name in dict.fromkeys(f["problem"] for f in fits):
        those = [f for f in fits if f["problem"] == name]
        errors = {key: float(np.median([f[key] for f in those])) for key in ("max", "median")}
        found.append({"n": n, "problem": name} | errors | judged(those))
    means = {key: float(np.exp(np.mean(np.log([a[key] for a in found])))) for key in ("max", "median")}
    return [*found, {"n": n, "problem": "all"} | means | judged(fits)]


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problems", "which", type=click.Choice(list(SETS)), default="known", show_default=True)
@click.option("--problem", "names", multiple=True, type=click.Choice(list(PROBLEMS)), help="these alone")
@click.option("--n", "sizes", multiple=True, type=int, default=(1000, 10_000, 100_000), show_default=True, help="rows")
@click.option("--seeds", default=5, show_default=True, help="samples of each problem")
@click.option("--components", default=11, show_default=True, help="n_components")
@click.option("--against", type=click.File(), help="an earlier --json, to compare with")
@settings_option
@processes_option
def main(
    quick: bool,
    json_path: Path | None,
    which: str,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    seeds: int,
    components: int,
    against: TextIO | None,
    settings: Settings,
    processes: int,
) -> None:
    """Fit every problem at every size."""
    names = names or tuple(SETS[which])
    if quick:
        names, sizes, seeds = ("interval", "circles"), (600,), 2
    fits = parallel(
        one_fit, [(p, n, seed, components, settings) for n in sizes for p in names for seed in range(seeds)], processes
    )
    rows = [line for n in sizes for line in lines([f for f in fits if f["n"] == n])]
    before = {(b["n"], b["problem"]): b for b in json.load(against)["rows"]} if against else {}
    for row in rows if before else ():
        then = before.get((row["n"], row["problem"]), {})
        row |= {f"{key} before": then.get(key) for key in ("max", "wrong")}
    report(f"the automatic choice, {settings}: errors over {seeds} seeds", rows, json_path, fits=fits)


if __name__ == "__main__":
    main()
