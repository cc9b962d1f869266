"""Exact invariances: a torus of ten dimensions
============================================

Exactly invariant regression (Soleymani and others 2025) on a torus of ten dimensions, and kernel ridge regression.

On [-1, 1)^10 with periodic sides and the group of all 1024 changes of sign, f*(x) = (1/d) Σ_i i x_i² is learned
without noise: the error at 100 points, over the variance of f*, against n. f* has a kink on every side of the box and
is not in H^s for the smoothness s > d/2 that the estimators need, so no rate is expected.
A second table compares least squares among the invariant functions (their number D and the penalty by
cross-validation) with kernel ridge regression whose kernel is averaged over the group (the penalty by cross-validation,
or the penalty of least risk, which requires the true function) on the sphere, under permutations of the coordinates,
with noise.

Usage::

    python examples/paper/invariances_torus.py [--whole] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/invariances_torus.png'

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from sobolev_ridge import SobolevRidge

from daskspectral import InvariantRegressor, plot
from daskspectral.groups import Permutations, SignFlips
from daskspectral.manifolds import PeriodicBox, Sphere

PICTURE = "invariances_torus.png"
D = 10
VARIANCE = 4 / 45 * np.sum((np.arange(1, D + 1) / D) ** 2)  # the variance of f*; x^2 has variance 4 / 45
SMOOTHNESS = 6.0  # the least whole number above d / 2
WHOLE = (100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228)
SIZES = (100, 316, 3162, 10_000)  # in a minute; averaging a kernel over the group needs another at 1000
ALL, HALF, FEW = 10, 5, 3  # numbers of seeds, fewer for slow runs
MODELS: dict[str, Callable[[int], Any]] = {
    "projection": lambda n: InvariantRegressor(TORUS, SignFlips(D), SMOOTHNESS, solver="projection"),
    "least squares": lambda n: InvariantRegressor(TORUS, SignFlips(D), SMOOTHNESS, solver="least_squares"),
    "least squares, D = 4541": lambda n: InvariantRegressor(
        TORUS, SignFlips(D), SMOOTHNESS, n_eigenfunctions=4541, solver="least_squares"
    ),
    "kernel ridge": lambda n: SobolevRidge(TORUS, smoothness=SMOOTHNESS),
    "averaged kernel ridge": lambda n: SobolevRidge(TORUS, SignFlips(D), SMOOTHNESS),
}
TORUS = PeriodicBox([-1] * D, [1] * D)
RANGES = {  # least and most rows of each, and the rows from which few seeds are run
    "projection": (0, 10**6, 10**5),
    "least squares": (0, 10**6, 10**5),
    "least squares, D = 4541": (4541, 31_623, 31_623),
    "kernel ridge": (0, 3162, 3162),
    "averaged kernel ridge": (0, 1000, 316),
}


def target(x: np.ndarray) -> np.ndarray:
    """f* (n,)."""
    return np.asarray(x**2 @ np.arange(1, D + 1) / D)


def floor(frequencies: int) -> float:
    """The share of the variance of x^2 in cosines of more periods than given: no function of fewer periods fits it."""
    return float(1 - np.sum(1 / np.arange(1, frequencies + 1) ** 4.0) / (np.pi**4 / 90))


def torus(sizes: Sequence[int], seeds: int) -> dict[str, dict[int, np.ndarray]]:
    """The relative errors of each model at each n, one for each seed."""
    found: dict[str, dict[int, np.ndarray]] = {name: {} for name in MODELS}
    for name, build in MODELS.items():
        least, most, slow = RANGES[name]
        for n in (n for n in sizes if least <= n <= most):
            errors = []
            for seed in range(min(seeds, FEW) if n >= slow else seeds):
                rng = np.random.default_rng(seed)
                test, x = TORUS.sample(100, rng), TORUS.sample(n, rng)
                model = build(n)
                options = {} if isinstance(model, SobolevRidge) else {"progress": False}
                predicted = model.fit(x, target(x), **options).predict(test)
                errors.append(np.mean((predicted - target(test)) ** 2) / VARIANCE)
            found[name][n] = np.array(errors)
    return found


# -- the sphere ------------------------------------------------------------------------------------------------------


def smooth(x: np.ndarray) -> np.ndarray:
    return np.exp(x.sum(axis=1))


def rough(x: np.ndarray) -> np.ndarray:
    """sum |x_i|^3, whose third derivatives jump: in H^s for s < 3.5."""
    return np.asarray(np.sum(np.abs(x) ** 3, axis=1))


TARGETS = {"exp(sum x)": smooth, "sum abs(x)^3": rough}


def least_risk(ridge: SobolevRidge, x: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    """The relative risk of a fitted kernel ridge at the best of all penalties, three a decade."""
    alphas = np.append(ridge.spectrum[-1] * np.logspace(-14, 1, 46) / len(x), ridge.alpha)
    found = ridge.predict(test, alphas)
    return float(np.min(np.mean((found - truth[:, None]) ** 2, axis=0)) / truth.var())


def sphere(
    sizes: Sequence[int], noises: Sequence[float], seeds: int
) -> dict[tuple[str, int, float], dict[str, np.ndarray]]:
    """Risks over the variance of the target, of each estimator and seed, by target, n and noise."""
    manifold, group = Sphere(3), Permutations(3)
    table = {}
    for name, f in TARGETS.items():
        for n in sizes:
            for noise in noises:
                risks: dict[str, list[float]] = {}
                for seed in range(min(seeds, HALF) if n >= 1000 else seeds):
                    rng = np.random.default_rng(seed)
                    test, x = manifold.sample(1000, rng), manifold.sample(n, rng)
                    truth = f(test)
                    y = f(x) + noise * truth.std() * rng.standard_normal(n)

                    def risk(model: Any, test: np.ndarray = test, truth: np.ndarray = truth) -> float:
                        return float(np.mean((model.predict(test) - truth) ** 2) / truth.var())

                    squares = InvariantRegressor(manifold, group, 2.0, solver="least_squares")
                    ridge = SobolevRidge(manifold, group).fit(x, y)
                    chosen = {
                        "least squares": risk(squares.fit(x, y, progress=False)),
                        "kernel ridge": risk(SobolevRidge(manifold).fit(x, y)),
                        "averaged kernel ridge": risk(ridge),
                        "best penalty": least_risk(ridge, x, test, truth),
                    }
                    for key, value in chosen.items():
                        risks.setdefault(key, []).append(value)
                table[name, n, noise] = {key: np.array(values) for key, values in risks.items()}
    return table


# -- tables ----------------------------------------------------------------------------------------------------------


def median(values: np.ndarray) -> str:
    return f"{np.median(values):.2g}"


def report_torus(found: dict[str, dict[int, np.ndarray]], sizes: Sequence[int]) -> str:
    """Medians over seeds, with the quartiles, as rows of markdown."""
    lines = [f"| n | {' | '.join(found)} |\n|{'---|' * (len(found) + 1)}"]
    for n in sizes:
        cells = []
        for errors in found.values():
            if n not in errors:
                cells.append("")
                continue
            low, middle, high = np.percentile(errors[n], (25, 50, 75))
            cells.append(
                f"{middle:.3f} ({low:.3f} to {high:.3f})" + (f", {FEW} seeds" if len(errors[n]) == FEW else "")
            )
        lines.append(f"| {n} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report_sphere(table: dict[tuple[str, int, float], dict[str, np.ndarray]]) -> str:
    """Medians over seeds, and of the ratio, seed by seed, of least squares over averaged kernel ridge."""
    names = list(next(iter(table.values())))
    lines = [f"| target | n | noise | {' | '.join(names)} | ratio |\n|{'---|' * (len(names) + 4)}"]
    for (name, n, noise), risks in table.items():
        cells = [median(risks[key]) for key in names]
        ratio = median(risks["least squares"] / risks["averaged kernel ridge"])
        lines.append(f"| {name} | {n} | {noise:g} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def check(
    found: dict[str, dict[int, np.ndarray]],
    table: dict[tuple[str, int, float], dict[str, np.ndarray]],
    allowed: float,
) -> None:
    """Check that least squares is no worse than the others, up to a factor `allowed` that the seeds explain.

    Without noise only kernel ridge without the group is compared: the averaged kernel has more functions.
    """
    squares = found["least squares"]
    for name, errors in found.items():
        for n in set(errors) & set(squares):
            if name != "least squares, D = 4541":
                assert np.median(squares[n]) <= allowed * np.median(errors[n]), (name, n)
    for name, frequencies in (("least squares", 1), ("least squares, D = 4541", 2)):
        for n, errors in found[name].items():
            if n >= 1000:
                assert 1 / 1.3 <= np.median(errors) / floor(frequencies) <= 1.3, (name, n, errors)
    for (name, n, noise), risks in table.items():
        for other in ("kernel ridge", "averaged kernel ridge") if noise else ("kernel ridge",):
            assert np.median(risks["least squares"]) <= allowed * np.median(risks[other]), (name, n, noise, other)


def draw(found: dict[str, dict[int, np.ndarray]], path: Path) -> None:
    figure, (ax,) = plot.panels(["the torus [-1, 1)^10, sign flips"], columns=1, width=5.2)
    for (name, errors), marker in zip(found.items(), "osD^v", strict=True):
        sizes = list(errors)
        low, middle, high = np.array([np.percentile(errors[n], (25, 50, 75)) for n in sizes]).reshape(-1, 3).T
        (line,) = ax.plot(sizes, middle, marker=marker, markersize=4, linewidth=1.2, label=name)
        ax.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.axhline(1, color="0.6", linewidth=0.8)
    for frequencies, style in ((1, "--"), (2, ":")):
        label = f"floor of {frequencies} frequenc{'y' if frequencies == 1 else 'ies'} a side"
        ax.axhline(floor(frequencies), color="0.3", linewidth=0.8, linestyle=style, label=label)
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel="squared error over variance, 100 points")
    ax.legend(fontsize=7)
    plot.save_figure(figure, path, overwrite=True, dpi=110)


@click.command(help=__doc__)
@click.option("--quick", "size", flag_value="quick", help="Few points and seeds: does it work?")
@click.option("--whole", "size", flag_value="whole", help="Up to 316 228 points, ten seeds.")
@click.option("--out", default=".", show_default=True, help="Folder for the picture.")
def main(size: str | None, out: str) -> None:
    picture = Path(out) / PICTURE
    plot.refuse_picture(picture, overwrite=True)
    sizes, seeds = {"quick": ((50, 1000), 2), "whole": (WHOLE, ALL)}.get(size or "", (SIZES, 2))
    found = torus(sizes, seeds)
    click.echo(report_torus(found, sizes))
    draw(found, picture)
    cells = {"quick": ((100,), (0.0, 0.3), 2), "whole": ((100, 300, 1000), (0.0, 0.1, 1.0), ALL)}
    table = sphere(*cells.get(size or "", ((100, 300), (0.0, 0.1, 1.0), 2)))
    click.echo(report_sphere(table))
    check(found, table, 1.1 if size == "whole" else 1.5)


if __name__ == "__main__":
    main()
