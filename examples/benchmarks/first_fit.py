"""The automatic choice: `SpectralDecomposition(n_components=11).fit(x)` on 37 problems with known spectra.

Measured: relative errors over the first ten nonzero eigenvalues (nine where 0 is one twice, for two moons and circles:
eleven components hold no more), and what the fit says of them.

max, median: of the errors of a fit; the median over the seeds.
zero: the last eigenvalue that should be 0 over the first that should not; the median over the seeds.
cpu: CPU seconds of a fit, of all threads; the mean over the seeds.
coverage: the share of the exact values that lie in their 95 % intervals, `eigenvalue_errors_`.
trusted: of the values with an error of at most .1, the share that is trusted (`trusted_`).
wrong: how many values with an error above .15 are trusted.
missing: how many values were not found.
silent: how many fits have an error above .15 and no warning.
said: the classes of the warnings, each with how many there were over the seeds.

A value that is missing, or all of them where a fit refuses, has the error 1, as 0 would have, no interval and no trust.
The last line of a size has geometric means of max and median over the problems, the mean of cpu, the shares over all
values, and sums of wrong, missing and silent. The JSON has every fit, with its values and its seconds. The fits are not
seeded, only the rows are: `--set random_state=0` repeats them.

With `--against` an earlier JSON of this script, there is a line for each size over the problems in both: ratios, now
over then, of the geometric means of max and median and of the mean of cpu, and the largest ratio of max or median of
one problem. PYTHONPATH runs the script with the package of another checkout:

    PYTHONPATH=../before python examples/benchmarks/first_fit.py --processes 2 --json before.json
    python examples/benchmarks/first_fit.py --processes 2 --json now.json --against before.json
    python examples/benchmarks/first_fit.py --problems twelve --n 2000
    python examples/benchmarks/first_fit.py --problem square --n 2000 --set solver=cut --set basis__kernel=gaussian:0.3
    python examples/benchmarks/first_fit.py --problem normal-2 --set basis=monomial:2:4  # its own eigenfunctions

The problems are `FIRST_FIT`, the twelve, and `HARD` in `problems.py`; `spectra.py` computes their eigenvalues. Further
sets: `FOLDED`, tight rolls, spirals and rings whose values are wrong, where "wrong" counts those that are trusted
nevertheless; and `ROUNDED`, rows of few distinct points:

    python examples/benchmarks/first_fit.py --problems folded --n 2000 --seeds 2
    python examples/benchmarks/first_fit.py --problems rounded --n 1000 --n 10000 --seeds 2
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np
from common import Rows, options, report, table
from fitting import Fit, Settings, classes, fit, parallel, processes_option, settings_option, told
from problems import FIRST_FIT, FOLDED, HARD, ROUNDED, chosen, relative_errors

Array = np.ndarray
SIZES = (1000, 10_000, 100_000)
SETS = {"twelve": FIRST_FIT, "hard": HARD, "all": FIRST_FIT | HARD, "folded": FOLDED, "rounded": ROUNDED}
PROBLEMS = SETS["all"] | FOLDED | ROUNDED
CLOSE, WRONG = 0.10, 0.15  # errors of a value that deserves trust, and of one that does not
MEANS = "geometric mean"


def claims(done: Fit, exact: Array) -> tuple[Array, Array]:
    """Of each exact value: whether the interval of the value found holds it, and whether that value is trusted."""
    inside, trusted = np.zeros((2, len(exact)), dtype=bool)
    if done.model is not None:
        k = min(len(done.values), len(exact))
        low, high = np.asarray(done.model.eigenvalue_errors_)[:k].T
        inside[:k] = (low <= exact[:k]) & (exact[:k] <= high)
        said = np.asarray(done.model.trusted_)  # of earlier versions the number of leading values
        trusted[:k] = said[:k] if said.ndim else np.arange(k) < said
    return inside, trusted


def one_fit(name: str, n: int, seed: int, components: int, settings: Settings) -> dict[str, Any]:
    """The errors of one fit, what it said of them, and the time."""
    problem = PROBLEMS[name]
    done = fit(problem.draw(n, seed), **{"n_components": components, **settings})
    errors = relative_errors(done.values, problem, components)
    inside, trusted = (a[problem.zeros :] for a in claims(done, problem.eigenvalues(problem.zeros + len(errors))))
    close = errors <= CLOSE
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
        "inside": inside.tolist(),
        "trusted": int(trusted.sum()),
        "close": int(close.sum()),
        "close and trusted": int((close & trusted).sum()),
        "wrong": int((trusted & (errors > WRONG)).sum()),
        "said": list(done.said),
        "seconds": done.seconds,
        "cpu": done.cpu,
    }


def judged(fits: Rows) -> dict[str, Any]:
    """The columns that are means, shares and sums over all values of the fits."""
    close = sum(f["close"] for f in fits)
    return {
        "cpu": float(np.mean([f["cpu"] for f in fits])),
        "coverage": float(np.mean([held for f in fits for held in f["inside"]])),
        "trusted": sum(f["close and trusted"] for f in fits) / close if close else None,
        "wrong": sum(f["wrong"] for f in fits),
        "missing": sum(f["missing"] for f in fits),
        "silent": sum(f["max"] > WRONG and not f["said"] for f in fits),
    }


def lines(fits: Rows) -> Rows:
    """The lines of one size: one for each problem, over the seeds, and one over the problems."""
    n, found = fits[0]["n"], []
    for name in dict.fromkeys(f["problem"] for f in fits):
        those = [f for f in fits if f["problem"] == name]
        errors = {key: float(np.median([f[key] for f in those])) for key in ("max", "median", "zero")}
        said = classes(text for f in those for text in f["said"])
        found.append({"n": n, "problem": name} | errors | judged(those) | {"said": said})
    means = {key: geometric(a[key] for a in found) for key in ("max", "median")}
    return [*found, {"n": n, "problem": MEANS} | means | {"zero": None} | judged(fits)]


def geometric(values: Iterable[float]) -> float:
    return float(np.exp(np.log(list(values)).mean()))


def ratios(now: Rows, then: Rows) -> Rows:
    """For each size of both, the ratios over the problems of both: of the means, and the largest of one problem."""
    before = {(b["n"], b["problem"]): b for b in then if b["problem"] != MEANS}
    both = [(a, before[a["n"], a["problem"]]) for a in now if (a["n"], a["problem"]) in before]
    found = []
    for n in dict.fromkeys(a["n"] for a, _ in both):
        pairs = [(a, b) for a, b in both if a["n"] == n]
        each = {(a["problem"], key): a[key] / b[key] for a, b in pairs for key in ("max", "median")}
        worst = max(each, key=lambda of: each[of])
        line: dict[str, Any] = {"n": n, "problems": len(pairs)}
        line |= {key: geometric(r for (_, of), r in each.items() if of == key) for key in ("max", "median")}
        line |= {"cpu": sum(a["cpu"] for a, _ in pairs) / sum(b.get("cpu", np.nan) for _, b in pairs)}
        found.append(line | {"worst": each[worst], "of": "{}, {}".format(*worst)})
    return found


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problems", "which", type=click.Choice(list(SETS)), default="all", show_default=True)
@click.option("--problem", "names", multiple=True, help=f"only these: {'; '.join(PROBLEMS)}")
@click.option("--n", "sizes", multiple=True, type=int, default=SIZES, show_default=True, help="rows")
@click.option("--seeds", default=5, show_default=True, help="samples of each problem")
@click.option("--components", default=11, show_default=True, help="n_components")
@click.option("--against", type=click.File(), help="an earlier --json, to compare with")
@settings_option
@processes_option(1)
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
    if quick:
        names, sizes, seeds = names or ("interval", "circles"), (600,), 2
    then = json.load(against) if against else None
    problems = chosen(names, PROBLEMS if names else SETS[which])
    jobs = [(p.name, n, seed, components, settings) for n in sizes for p in problems for seed in range(seeds)]
    fits = parallel(one_fit, jobs, processes, "fits")
    rows = [line for n in sizes for line in lines([f for f in fits if f["n"] == n])]
    notes, compared = [""], ratios(rows, then["rows"]) if then else []
    if against and then:
        notes += [f"ratios to {against.name}, {then['benchmark']}:", "", table(compared), ""]
    notes += told(text for f in fits for text in f["said"])
    shown = ", ".join(f"{name}={value}" for name, value in ({"n_components": components} | settings).items())
    title = f"the automatic choice, {shown}: errors of the first nonzero eigenvalues, over {seeds} seeds"
    report(title, rows, json_path, notes, fits=fits, ratios=compared)


if __name__ == "__main__":
    main()
