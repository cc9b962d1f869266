"""The tables and figures of `invariances.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from invariance_rates import CASES, Case
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from daskspectral import plot

PICTURES = ("invariances_groups.png", "invariances_rates.png")
NAMES = {1: "permutations, sphere", 2: "rotations, circle"}


# -- numbers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exponents:
    """The exponents of n in a case, for the measured and for the expected risk, and the decades of n they cover."""

    slope: float
    expected: float
    decades: float


def of_case(rates: xr.Dataset, case: Case) -> xr.Dataset:
    """The rows of one case."""
    return rates.isel(row=rates.case == [each.name for each in CASES].index(case.name))


def exponents(rates: xr.Dataset, case: Case) -> Exponents:
    """The slopes of straight lines through the logarithms, each n weighing the same; NaN for fewer than two n."""
    at = of_case(rates, case)
    if at.sizes["row"] < 2:
        return Exponents(np.nan, np.nan, 0.0)
    slope, expected = (-float(np.polyfit(np.log(at.n), np.log(at[name]), 1)[0]) for name in ("risk", "expected"))
    return Exponents(slope, expected, float(np.log10(at.n.max() / at.n.min())))


def generated(groups: xr.Dataset) -> xr.DataArray:
    """Seconds until 100 predictions from the generators; the fit computes the subspaces once more."""
    return groups.harmonics + groups.fit + groups.predict


def averaged(groups: xr.Dataset) -> xr.DataArray:
    """The same by averaging; where it stopped, an estimate for all elements."""
    return groups.harmonics + groups.evaluation + groups.averaging * groups.order / groups.averaged


# -- tables ----------------------------------------------------------------------------------------------------------


def report(cases: tuple[Case, ...], groups: xr.Dataset, rates: xr.Dataset, gaps: xr.Dataset) -> str:
    """All tables, in Markdown."""
    return "\n\n".join([group_table(groups), rate_table(cases, rates), slope_table(cases, rates), solver_table(gaps)])


def group_table(groups: xr.Dataset) -> str:
    """One line for each group."""
    lines = [
        "| group | order | degrees | D | invariant (Molien) | harmonics, s | subspaces, s | fit, s | until 100 "
        "predictions, s | by averaging, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    totals = zip(generated(groups).values, averaged(groups).values, strict=True)
    for i, (total, other) in enumerate(totals):
        row = groups.isel(row=i)
        name = f"S_{int(row.d)}" if row.example == 1 else "rotations"
        mean = seconds(other) if row.averaged == row.order else f"stopped: estimated {duration(other)}"
        lines.append(
            f"| {name} | {order(float(row.order))} | {int(row.degree)} | {int(row.D)} "
            f"| {int(row.functions)} ({int(row.molien)}) | {seconds(row.harmonics)} | {seconds(row.subspaces)} "
            f"| {seconds(row.fit)} | {seconds(total)} | {mean} |"
        )
    worst = float(groups.invariance.max()), float(groups.difference.max())
    return "\n".join(lines) + (
        f"\n\nlargest |f(g x) - f(x)| over max |f|: {worst[0]:.1e}; largest difference from the averages, the same: "
        f"{worst[1]:.1e}"
    )


def rate_table(cases: tuple[Case, ...], rates: xr.Dataset) -> str:
    """One line for each case and n."""
    lines = [
        "| case | n | D | invariant | trials | risk | expected | floor | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        at = of_case(rates, case)
        for i in range(at.sizes["row"]):
            row = at.isel(row=i)
            lines.append(
                f"| {case.name} | {int(row.n)} | {int(row.D)} | {int(row.functions)} | {int(row.trials)} "
                f"| {float(row.risk):.3g} | {float(row.expected):.3g} | {float(row.floor):.3g} "
                f"| {seconds(row.seconds)} |"
            )
    return "\n".join(lines)


def slope_table(cases: tuple[Case, ...], rates: xr.Dataset) -> str:
    """One line for each case."""
    lines = [
        "| case | decades of n | s / (s + d / 2) | measured | of the expected risks | off theory |",
        "|---|---|---|---|---|---|",
    ]
    for case in cases:
        found = exponents(rates, case)
        lines.append(
            f"| {case.name} | {found.decades:.1f} | {case.rate:.3f} | {found.slope:.3f} | {found.expected:.3f} "
            f"| {found.slope / case.rate - 1:+.1%} |"
        )
    return "\n".join(lines)


def solver_table(gaps: xr.Dataset) -> str:
    """Projection and least squares without noise."""
    lines = [
        "| n, no noise | projection: D | its floor | its risk | its risk at the D of least squares "
        "| least squares: D | its risk | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for i in range(gaps.sizes["row"]):
        row = gaps.isel(row=i)
        lines.append(
            f"| {int(row.n)} | {int(row.projection_D)} | {float(row.floor):.2g} | {float(row.projection):.2g} "
            f"| {float(row.wide):.2g} | {int(row.least_squares_D)} | {float(row.least_squares):.2g} "
            f"| {float(row.projection / row.least_squares):.1e} |"
        )
    return "\n".join(lines)


def order(value: float) -> str:
    """A number of elements."""
    return f"{value:.0f}" if value < 1e7 else f"{value:.1e}"


def seconds(value: float | xr.DataArray) -> str:
    """Two digits."""
    return f"{float(value):.2f}" if value >= 0.1 else f"{float(value):.3f}"


def duration(value: float) -> str:
    """A time in a fitting unit."""
    for unit, size in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if value >= size:
            return f"{value / size:.2g} {unit}"
    return f"{value:.2g} s"


# -- figures ---------------------------------------------------------------------------------------------------------


def draw(cases: tuple[Case, ...], groups: xr.Dataset, rates: xr.Dataset, out: Path) -> None:
    """Both pictures, into a folder."""
    for name, figure in zip(PICTURES, (group_figure(groups), rate_figure(cases, rates)), strict=True):
        plot.save_figure(figure, out / name, overwrite=True, dpi=90)


def group_figure(groups: xr.Dataset) -> Figure:
    """Seconds until 100 predictions against the order of the group, one panel for each example."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, (example, title) in zip(panels, NAMES.items(), strict=True):
        at = groups.isel(row=groups.example == example)
        if example == 1:
            at = at.isel(row=at.degree == 3)
        ended = (at.averaged == at.order).values
        _clean(ax, title, "elements of the group")
        mean, total = averaged(at).values, generated(at).values
        last = max(int(ended.sum()) - 1, 0)
        ax.plot(at.order, total, "-o", color="C0", markersize=4, label="from generators")
        ax.plot(at.order[ended], mean[ended], "-s", color="C3", markersize=4, label="average over elements")
        ax.plot(at.order[last:], mean[last:], ":", color="C3", label="estimated")
        ax.set_ylim(float(np.minimum(generated(groups), averaged(groups)).min()) / 2, 3e4)
        if example == 1:
            for d, x, y in zip(at.d.values, at.order.values, total, strict=True):
                if d in (5, 10, 20):
                    ax.annotate(f"d = {int(d)}", (x, y), (0, 7), textcoords="offset points", ha="center", fontsize=9)
    panels[0].set_ylabel("seconds until 100 predictions")
    panels[0].legend(frameon=False, loc="upper right")
    return figure


def rate_figure(cases: tuple[Case, ...], rates: xr.Dataset) -> Figure:
    """The risk against n, its expectation, its floor and the slope of the theorem, one panel for each manifold."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    panels = dict(zip((2, 3), figure.subplots(1, 2, sharey=True), strict=True))
    shades = dict(zip((1.0, 1.5, 2.0), matplotlib.colormaps["viridis"]([0.1, 0.45, 0.75]), strict=True))
    for case in cases:
        ax, at, color = panels[case.d], of_case(rates, case), shades[case.smoothness]
        _clean(ax, "circle, rotations by pi" if case.d == 2 else "sphere, shifts of the coordinates", "n")
        found = exponents(rates, case)
        label = f"s = {case.smoothness:g}: slope {found.slope:.2f}, theory {case.rate:.2f}"
        ax.errorbar(at.n, at.risk, at.spread, fmt="o", color=color, markersize=4, label=label)
        ax.plot(at.n, at.expected, "-", color=color, linewidth=1)
        ax.plot(at.n, at.floor, "--", color=color, linewidth=1)
        middle = float(np.exp(np.log(at.expected).mean())), float(np.exp(np.log(at.n).mean()))
        ax.plot(at.n, 2 * middle[0] * (at.n / middle[1]) ** -case.rate, ":", color="0.5", linewidth=1)
    for ax in panels.values():
        ax.legend(frameon=False, loc="lower left", fontsize=9)
    panels[2].set_ylabel("risk, expected (line), floor (dashed)")
    return figure


def _clean(ax: Axes, title: str, xlabel: str) -> None:
    ax.set(xlabel=xlabel, xscale="log", yscale="log", title=title)
    ax.spines[["top", "right"]].set_visible(False)
