"""Figures 3 and 7 to 10 of Cabannes and Bach (2024), drawn from the table of `spherical_harmonics.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from daskspectral import plot
from daskspectral.manifolds import Sphere

PICTURES = tuple(f"paper_figure{number}.png" for number in (3, 7, 8, 9, 10))
TITLES = {"tangential": "Galerkin, tangential", "ambient": "Galerkin, ambient", "graph": "graph Laplacian"}
FAMILIES = {"polynomial": "tab:blue", "exponential": "tab:orange", "gaussian": "tab:green"}
ASYMPTOTIC = 1000  # slopes are fitted from this many points on


def best(table: xr.Dataset, estimator: str, kernels: Iterable[int] | None = None) -> xr.Dataset:
    """The choice of kernel, p and weights with the least mean error over the trials, at each d and n.

    `error` and `spread` (standard deviation) over the trials, and what was chosen: `kernel`, `p`, `weights`.
    """
    errors = table[estimator].load()
    if kernels is not None:
        errors = errors.isel(kernel=list(kernels))
    choices = [dim for dim in ("kernel", "p", "weights") if dim in errors.dims]
    mean = errors.mean("trial", skipna=False).stack(choice=choices, create_index=False)
    chosen = mean.fillna(np.inf).argmin("choice")
    spread = errors.where(np.isfinite(errors)).std("trial", skipna=False).stack(choice=choices, create_index=False)
    values = {"error": mean.isel(choice=chosen), "spread": spread.isel(choice=chosen)}
    grids = xr.broadcast(*(errors[dim] for dim in choices))
    for dim, grid in zip(choices, grids, strict=True):
        flat = grid.stack(choice=choices, create_index=False)
        values[dim] = flat.drop_vars(choices, errors="ignore").isel(choice=chosen)
    result = xr.Dataset({name: value.drop_vars(choices, errors="ignore") for name, value in values.items()})
    return result.dropna("n", how="all", subset=["error"])


def kernel_labels(table: xr.Dataset) -> list[tuple[str, float]]:
    """Family and hyperparameter of each kernel."""
    return [(family, parameter) for family, parameter in json.loads(table.attrs["grid"])["kernels"]]


def default_error(d: int, count: int = 24) -> float:
    """Return (21) if every eigenvalue is the mean of the true ones: the error of rescaling alone."""
    exact = Sphere(d).eigenvalues(count + 1)[1:]
    return float(np.sum(np.abs(1 / exact - 1 / exact.mean())) / np.sum(1 / exact))


def slope(n: np.ndarray, error: np.ndarray) -> float:
    """The exponent of a power law fitted from ASYMPTOTIC points on."""
    used = (n >= ASYMPTOTIC) & np.isfinite(error)
    if np.count_nonzero(used) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n[used]), np.log(error[used]), 1)[0])


def report(table: xr.Dataset) -> str:
    """The errors at the most points and the exponents of their decrease, as rows of markdown."""
    lines = ["| | d | n | error (21) | exponent of n | best kernel | p | scale of the weights |", "|---|" + "---|" * 7]
    labels = kernel_labels(table)
    for name, title in TITLES.items():
        found = best(table, name)
        for d in found.d.values:
            at = found.sel(d=d)
            last = at.isel(n=-1)
            family, parameter = labels[int(last.kernel)]
            weights = f"{float(last.weights):g}" if "weights" in last else ""
            exponent = slope(at.n.values, at.error.values)
            lines.append(
                f"| {title} | {d} | {int(last.n)} | {float(last.error):.4f} | {exponent:.2f} "
                f"| {family} {parameter:g} | {int(last.p)} | {weights} |"
            )
    lines += ["", "| family, at most points | d | ambient | tangential |", "|---|---|---|---|"]
    for family in FAMILIES:
        members = [i for i, label in enumerate(labels) if label[0] == family]
        ambient, tangential = (best(table, name, members).error.isel(n=-1) for name in ("ambient", "tangential"))
        for d, found, better in zip(ambient.d.values, ambient.values, tangential.values, strict=True):
            lines += [f"| {family} | {d} | {found:.4f} | {better:.4f} |"]
    return "\n".join(lines)


# -- figures ---------------------------------------------------------------------------------------------------------


def draw(table: xr.Dataset, out: Path) -> None:
    """All the pictures, into a folder."""
    for name, figure in zip(PICTURES, (errors, choices, hyperparameters, dimensions, kernels), strict=True):
        plot.save_figure(figure(table), out / name, overwrite=True, dpi=110)


def errors(table: xr.Dataset) -> Figure:
    """Figure 3: error against n by dimension for each estimator, and the time of a fit with p functions."""
    figure, axes = _axes(4, "n")
    for ax, name in zip(axes, TITLES, strict=False):
        found = best(table, name)
        for d, color in _colors(table.d):
            _band(ax, found.sel(d=d), color)
        ax.set_title(TITLES[name])
        _guide(ax, table.n.values)
    _share(axes[:3])
    axes[0].set_ylabel("error (21)")
    p = table.p.values[min(2, len(table.p) - 1)]
    for d, color in _colors(table.d):
        for name, style in (("ambient", "-"), ("tangential", "--")):
            axes[3].plot(table.n, table[f"{name}_seconds"].sel(p=p, d=d).isel(timed=0), style, color=color)
    axes[3].set(title=f"seconds, polynomial 3, p = {p}")
    axes[3].legend(
        handles=[_line("ambient", "k", "-"), _line("tangential", "k", "--")], frameon=False, loc="upper left"
    )
    _legend(figure, table.d, "d")
    return figure


def choices(table: xr.Dataset) -> Figure:
    """Figure 7: the p of the best results, and their time on one core."""
    figure, axes = _axes(2, "n")
    families = [family for family, _ in json.loads(table.attrs["grid"])["timed"]]
    labels = kernel_labels(table)
    for name, style in (("tangential", "-"), ("graph", "--")):
        found = best(table, name)
        for d, color in _colors(table.d):
            at = found.sel(d=d)
            axes[0].plot(at.n, at.p, style, marker="o", markersize=4, color=color)
            spent = [
                float(table[f"{name}_seconds"].sel(d=d, n=n, p=p).isel(timed=families.index(labels[int(k)][0])))
                for n, p, k in zip(at.n, at.p, at.kernel, strict=True)
            ]
            axes[1].plot(at.n, spent, style, marker="o", markersize=4, color=color)
    axes[0].set(title="best p", yticks=table.p.values, yticklabels=[str(p) for p in table.p.values])
    axes[0].minorticks_off()
    axes[1].set_title("seconds of the best")
    handles = [_line(TITLES["tangential"], "k", "-"), _line(TITLES["graph"], "k", "--")]
    axes[1].legend(handles=handles, frameon=False, loc="upper left")
    _legend(figure, table.d, "d")
    return figure


def hyperparameters(table: xr.Dataset) -> Figure:
    """Figure 8: the kernels and hyperparameters of the best results, and the scales of the weights."""
    figure, axes = _axes(4, "n", yscale="linear")
    labels = [f"{family} {parameter:g}" for family, parameter in kernel_labels(table)]
    shift = np.linspace(-0.25, 0.25, len(table.d))
    for ax, name in zip(axes, TITLES, strict=False):
        found = best(table, name)
        for (d, color), offset in zip(_colors(table.d), shift, strict=True):
            ax.plot(found.n, found.kernel.sel(d=d) + offset, "o", color=color, markersize=6)
        ax.set(title=f"functions, {TITLES[name]}", yticks=range(len(labels)), ylim=(-0.5, len(labels) - 0.5))
        ax.set_yticklabels(labels if ax is axes[0] else [])
        ax.grid(axis="y", color="0.92")
    scales = table.weights.values
    found = best(table, "graph")
    for (d, color), offset in zip(_colors(table.d), shift, strict=True):
        axes[3].plot(found.n, np.searchsorted(scales, found.weights.sel(d=d)) + offset, "o", color=color, markersize=6)
    axes[3].set(title="scale of the weights", yticks=range(len(scales)), ylim=(-0.5, len(scales) - 0.5))
    axes[3].set_yticklabels([f"{scale:g}" for scale in scales])
    axes[3].grid(axis="y", color="0.92")
    _legend(figure, table.d, "d")
    return figure


def dimensions(table: xr.Dataset) -> Figure:
    """Figure 9: error against dimension, by n."""
    figure, axes = _axes(3, "d", xscale="linear")
    for ax, name in zip(axes, TITLES, strict=True):
        found = best(table, name)
        for n, color in _colors(table.n):
            if n in found.n:
                at = found.sel(n=n)
                ax.plot(at.d, at.error, "-o", color=color, markersize=4)
        default = [default_error(int(d)) for d in table.d.values]
        ax.plot(table.d, default, "k--", linewidth=1)
        ax.set(title=TITLES[name], xticks=table.d.values)
    axes[0].set_ylabel("error (21)")
    axes[0].legend(handles=[_line("all eigenvalues equal", "k", "--")], frameon=False)
    _share(axes)
    _legend(figure, table.n, "n")
    return figure


def kernels(table: xr.Dataset) -> Figure:
    """Figure 10: the best of each family of kernels, tangential and ambient."""
    figure, axes = _axes(len(table.d), "n")
    labels = kernel_labels(table)
    for ax, d in zip(axes, table.d.values, strict=True):
        for family, color in FAMILIES.items():
            members = [i for i, label in enumerate(labels) if label[0] == family]
            for name, style in (("tangential", "-"), ("ambient", "--")):
                at = best(table, name, members).sel(d=d)
                ax.plot(at.n, at.error, style, marker="o", markersize=4, color=color)
        ax.set_title(f"d = {d}")
        _guide(ax, table.n.values)
    _share(axes)
    axes[0].set_ylabel("error (21)")
    handles = [_line(family, color, "-") for family, color in FAMILIES.items()]
    handles += [_line("tangential", "k", "-"), _line("ambient", "k", "--")]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _axes(count: int, xlabel: str, xscale: str = "log", yscale: str = "log") -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(3.4 * count, 3.6), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, count)))
    for ax in axes:
        ax.set(xlabel=xlabel, xscale=xscale, yscale=yscale)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(axis="y", which="minor", labelleft=False)
    return figure, axes


def _colors(values: xr.DataArray) -> list[tuple[Any, Any]]:
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(values)))
    return list(zip(values.values.tolist(), shades, strict=True))


def _band(ax: Axes, at: xr.Dataset, color: Any) -> None:
    """The mean over the trials, and one standard deviation around it."""
    ax.plot(at.n, at.error, "-o", color=color, markersize=4)
    ax.fill_between(
        at.n, np.maximum(at.error - at.spread, at.error / 3), at.error + at.spread, color=color, alpha=0.2, lw=0
    )


def _guide(ax: Axes, n: np.ndarray) -> None:
    """The slope n^(-1/2)."""
    ax.plot(n, 0.7 * (n / n[0]) ** -0.5, color="0.6", linewidth=1, linestyle=":")
    ax.annotate("$n^{-1/2}$", (n[1], 0.7 * (n[1] / n[0]) ** -0.5), color="0.5", fontsize=9, va="bottom")


def _share(axes: list[Axes]) -> None:
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, min(high, 3.0))


def _line(label: str, color: Any, style: str) -> Line2D:
    return Line2D([], [], color=color, linestyle=style, label=label)


def _legend(figure: Figure, values: xr.DataArray, name: str) -> None:
    handles = [_line(f"{name} = {value}", color, "-") for value, color in _colors(values)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
