"""The automatic choice over the best candidate in hindsight, both judged on rows that neither saw.

Measured: the default fit of n rows; then every candidate of its table fitted to the same rows by itself, and each fit's
`score` on fresh rows: the sum of the Ritz values of its functions, smaller being better. "chosen / best" is the sum of
the chosen fit over the smallest of all candidates; the target is at most 1.15 for n of 2000 and more. "default /
best" is the same for a fixed rule, Gaussian("median") at the same landmarks with penalty 1.

    python examples/benchmarks/choice_in_hindsight.py --json choice_in_hindsight.json
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from fitting import Settings, fit, parallel, processes_option
from problems import FIRST_FIT, chosen

from daskspectral import kernels

COMPONENTS = 11
FRESH = 100_000


def parameters(candidate: Any, found: Settings) -> Settings:
    """All arguments of a fit with this candidate, at the landmarks of the automatic one."""
    name, *numbers = re.split("[(),]", candidate.kernel.replace("nu=", "").replace("scale=", ""))
    kernel = getattr(kernels, name)(*(float(number) for number in numbers if number.strip()))
    return found | {"kernel": kernel, "spread": candidate.spread, "penalty": candidate.penalty}


def one(name: str, n: int, seed: int, most: int) -> dict[str, Any]:
    """The line of one sample."""
    problem = FIRST_FIT[name]
    x, fresh = problem.draw(n, seed), problem.draw(FRESH, seed + 10_000)
    model = fit(x, n_components=COMPONENTS).model
    assert model is not None
    found = model.choice_.parameters
    settings = [parameters(candidate, found) for candidate in model.choice_.candidates[:most]]
    settings.append(found | {"kernel": kernels.Gaussian("median"), "spread": 0.0, "penalty": 1.0})
    sums = [-fit(x, **setting).model.score(fresh) for setting in settings]
    best = min(sums)
    return {
        "problem": name,
        "n": n,
        "seed": seed,
        "chosen / best": sums[0] / best,
        "median / best": float(np.median(sums[:-1])) / best,
        "default / best": sums[-1] / best,
        "best": settings[int(np.argmin(sums))]["kernel"].__repr__(),
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problem", "names", multiple=True, help="one of the twelve; all by default")
@click.option("--n", "sizes", multiple=True, type=int, default=(2000,), show_default=True, help="rows")
@click.option("--seeds", default=1, show_default=True, help="samples of each problem")
@click.option("--most", default=60, show_default=True, help="candidates of a table that are tried, best first")
@processes_option(1)
def main(
    quick: bool,
    json_path: Path | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    seeds: int,
    most: int,
    processes: int,
) -> None:
    """Fit, and fit again."""
    wanted = [problem.name for problem in chosen(list(names), FIRST_FIT)]
    if quick:
        wanted, sizes, seeds, most = ["interval"], (600,), 1, 2
    tasks = [(name, n, seed, most) for n in sizes for name in wanted for seed in range(seeds)]
    rows: Rows = list(parallel(one, tasks, processes, "fits"))
    report("the automatic choice over the best candidate in hindsight, by the sum of held-out values", rows, json_path)


if __name__ == "__main__":
    main()
