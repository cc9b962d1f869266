"""How often the 95 % intervals of an automatic fit hold the exact value.

Measured: over `--samples` independent samples, the share of fits whose interval, `eigenvalue_errors_` or
`singular_value_errors_`, holds the exact value ("each"); "grouped" is the share in which the interval holds the mean of
the exact values over the group (`groups_`) that the fit put the value into, which is what the intervals of degenerate
values are for. Targets: 90 to 100 % grouped for multiplicities above 1, 88 to 99 % for single values; none ("-") for a
multiplicity of which the components hold only a part, the least of a cluster. 200 samples know a coverage of 95 % to
1.5 %. "bias" is the mean of the learned values over the exact one, less 1; "width" the median width of the intervals
over the exact value. An interval that is NaN or missing holds nothing. The constant's value is left out.

The transfer operator is the one of x_(t+1) = rho x_t + (1 - rho^2)^(1/2) xi_t at a lag of one row, with the singular
values rho^k; rho = exp(-400 / n), so that ten blocks have 40 correlation times each.

    python examples/benchmarks/interval_coverage.py --processes 2 --json interval_coverage.json
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report, table
from fitting import Settings, fit, parallel, processes_option, settings_option, told
from problems import CIRCLE, COMPUTED, FIRST_FIT, autoregression, by_name, chosen

from daskspectral.operators import Transfer

PROBLEMS = by_name(*(FIRST_FIT[name] for name in ("interval", "mixture", "normal-2", "square", "sphere")), CIRCLE)
TRANSFER = "transfer"
GROUPED, SINGLE = (0.90, 1.0), (0.88, 0.99)


def case(name: str, n: int, seed: int, components: int) -> tuple[np.ndarray, np.ndarray, Settings]:
    """Rows, exact values, and the arguments of the fit."""
    if name == TRANSFER:
        rho, k = np.exp(-400 / n), min(components, 6)
        return (
            autoregression(n, 1, rho, np.random.default_rng(seed)),
            rho ** np.arange(k),
            {"operator": Transfer(1), "n_components": k},
        )
    problem = PROBLEMS[name]
    return problem.draw(n, seed), problem.eigenvalues(components), {"n_components": components}


def wanted(names: Iterable[str]) -> list[str]:
    """The names, all of them for none. Raises click.BadParameter for a name that is not there."""
    names = list(names) or [*PROBLEMS, TRANSFER]
    chosen([name for name in names if name != TRANSFER], PROBLEMS)
    return names


def one_fit(name: str, n: int, seed: int, components: int, settings: Settings) -> dict[str, Any]:
    """For each value whether its interval holds the exact one, and that of its group; errors and widths."""
    x, exact, arguments = case(name, n, seed, components)
    done = fit(x, **arguments, **settings)
    k = min(len(done.values), len(exact))
    found = {"problem": name, "n": n, "seed": seed, "said": list(done.said), "seconds": done.seconds}
    results = {key: np.full(len(exact), np.nan) for key in ("value", "lower", "upper", "group")}
    if done.model is not None:
        results["value"][:k] = done.values[:k]
        two_sided = hasattr(done.model, "singular_value_errors_")
        intervals = np.asarray(done.model.singular_value_errors_ if two_sided else done.model.eigenvalue_errors_)
        results["lower"][:k], results["upper"][:k] = intervals[:k].T
        results["group"][:k] = group_means(done.model.groups_, exact)[:k]
    results["exact"] = exact
    return found | {key: value.tolist() for key, value in results.items()}


def group_means(groups: Any, exact: np.ndarray) -> np.ndarray:
    """The mean of the exact values over each value's group; groups as labels (k,), or as lists of indices."""
    if all(np.ndim(group) == 0 and not isinstance(group, slice) for group in groups):
        labels = np.asarray(groups)[: len(exact)]
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    means = exact.astype(float)
    for group in groups:
        inside = np.arange(len(exact))[group] if isinstance(group, slice) else np.asarray(group)
        inside = inside[inside < len(exact)]
        if len(inside):
            means[inside] = exact[inside].mean()
    return means


def levels(fits: Rows) -> Rows:
    """The lines of one problem at one size: one for each distinct exact value, but the constant's."""
    columns = ("exact", "value", "lower", "upper", "group")
    exact, value, lower, upper, group = (np.array([f[key] for f in fits], dtype=float) for key in columns)
    name, exact = fits[0]["problem"], exact[0]
    whole = exact if name == TRANSFER else PROBLEMS[name].eigenvalues(COMPUTED)
    lines = []
    for level in dict.fromkeys(exact[1:].round(9)):
        inside = np.flatnonzero(np.isclose(exact, level, rtol=1e-6))
        size = int(np.isclose(whole, level, rtol=1e-6).sum())
        least, most, target = lower[:, inside], upper[:, inside], exact[inside]
        each = float(((least <= target) & (target <= most)).mean())
        grouped = float(((least <= group[:, inside]) & (group[:, inside] <= most)).mean())
        low, high = SINGLE if size == 1 else GROUPED
        lines.append(
            {
                "problem": name,
                "n": fits[0]["n"],
                "exact": float(level),
                "values": f"{size}" if size == len(inside) else f"{len(inside)} of {size}",
                "each": each,
                "grouped": grouped,
                "bias": float(np.mean(value[:, inside]) / level - 1),
                "width": float(np.median(most - least) / level),
                "within": low <= (each if size == 1 else grouped) <= high if size == len(inside) else None,
            }
        )
    return lines


def summary(lines: Rows) -> dict[str, Any]:
    """The least and the greatest coverage of a problem at one size, of single values and of multiplicities."""

    def ends(key: str, shares: Rows) -> str:
        return f"{min(a[key] for a in shares):.3f} to {max(a[key] for a in shares):.3f}" if shares else "-"

    judged = [a for a in lines if a["within"] is not None]
    return {
        "problem": lines[0]["problem"],
        "n": lines[0]["n"],
        "single": ends("each", [a for a in judged if a["values"] == "1"]),
        "grouped": ends("grouped", [a for a in judged if a["values"] != "1"]),
        "within": f"{sum(a['within'] for a in judged)} of {len(judged)}",
    }


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--problem", "names", multiple=True, help=f"one of {', '.join([*PROBLEMS, TRANSFER])}; all by default")
@click.option("--n", "sizes", multiple=True, type=int, default=(600, 2000), show_default=True, help="rows")
@click.option("--samples", default=200, show_default=True, help="fits of each problem and size")
@click.option("--components", default=11, show_default=True, help="n_components; at most 6 of the transfer operator")
@settings_option
@processes_option(2)
def main(
    quick: bool,
    json_path: Path | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    samples: int,
    components: int,
    settings: Settings,
    processes: int,
) -> None:
    """Fit every sample of every problem."""
    if quick:
        names, sizes, samples, processes = names or ("interval", TRANSFER), (600,), 3, 1
    jobs = [(name, n, seed, components, settings) for n in sizes for name in wanted(names) for seed in range(samples)]
    fits = parallel(one_fit, jobs, processes, "fits")
    parts = [levels(fits[i : i + samples]) for i in range(0, len(fits), samples)]
    notes = ["", table([summary(lines) for lines in parts]), "", *told(text for f in fits for text in f["said"])]
    rows = [line for lines in parts for line in lines]
    report(f"coverage of the 95 % intervals over {samples} samples", rows, json_path, notes, fits=fits)


if __name__ == "__main__":
    main()
