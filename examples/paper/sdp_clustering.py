"""Figures 7 and 8 of Fanuel, Aspeel, Delvenne and Suykens (2022): k-means on embeddings of two moons."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from sdp_common import COLORS, EMBEDDINGS, diffusion, gap, nmi, scatter, sdp, standardized

from daskspectral import plot

STARTS = (1, 20)


def moons(rng: np.random.Generator, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two arcs of 1.2 pi, n points each, whose radius is 1 with noise of 1/6; standardized (2 n, 2), labels (2 n,)."""
    angle = np.pi * np.linspace(-0.1, 1.1, n)
    radius = 1 + rng.standard_normal((2, n)) / 6
    upper, lower = (np.column_stack([r * np.cos(angle), r * np.sin(angle)]) for r in radius)
    return standardized(np.concatenate([upper, [1, 0] + lower * [1, -1]])), np.repeat([0, 1], n)


def on_circle(e: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths; rows of length 0, which underflow can make, stay."""
    length = np.linalg.norm(e, axis=1, keepdims=True)
    return e / np.where(length > 0, length, 1)


def figure7(picture: Path) -> dict[str, float]:
    x, labels = moons(np.random.default_rng(0))
    model = sdp(x, 0.1, tolerance=1e-6)
    figure, axes = plot.panels(["two moons, standardized", "SDP embedding, bandwidth 0.1"], columns=2, width=3.4)
    axes[1].locator_params(nbins=6)
    scatter(axes[0], x, labels)
    scatter(axes[1], model.embedding_, labels)
    plot.save_figure(figure, picture, overwrite=True)
    return {"NMI, one set, 0.1": nmi(model.embedding_[:, :2], labels, 2, 1), "rank, one set, 0.1": float(model.rank_)}


def cluster(sets: int, bandwidths: Sequence[float]) -> xr.Dataset:
    """The NMI of k-means by set, bandwidth, projection on the circle and starts; spectra and certificates."""
    axes = {"set": range(sets), "bandwidth": bandwidths}
    axes |= {"projected": [0, 1], "starts": STARTS, "eigenvalue": range(4)}
    sizes = {name: len(values) for name, values in axes.items()}
    at = ("set", "bandwidth")
    dims = {"raw_nmi": ("set", "starts"), "sdp_gap": at, "sdp_rank": at}
    for name in EMBEDDINGS:
        dims |= {f"{name}_nmi": (*at, "projected", "starts"), f"{name}_spectrum": (*at, "eigenvalue")}
    table = xr.Dataset(
        {name: (along, np.zeros([sizes[dim] for dim in along])) for name, along in dims.items()},
        {name: np.array(values) for name, values in axes.items()},
    )
    for s in range(sets):
        x, labels = moons(np.random.default_rng(s))
        table.raw_nmi[s] = [nmi(x, labels, 2, starts) for starts in STARTS]
        for b, bandwidth in enumerate(bandwidths):
            model = sdp(x, bandwidth, tolerance=1e-6)
            baseline = diffusion(x, bandwidth, 4)
            spectrum = model.spectrum_[:4] / model.spectrum_.sum()
            table.sdp_spectrum[s, b, : len(spectrum)] = spectrum
            table.diffusion_spectrum[s, b] = baseline.spectrum_
            table.sdp_gap[s, b], table.sdp_rank[s, b] = gap(model), model.rank_
            for name, e in zip(EMBEDDINGS, (model.embedding_[:, :2], baseline.embedding_[:, :2]), strict=True):
                for projected, points in enumerate((e, on_circle(e))):
                    table[f"{name}_nmi"][s, b, projected] = [nmi(points, labels, 2, starts) for starts in STARTS]
    return table


def conclude(table: xr.Dataset) -> str:
    """Return the means over the sets as a table, with conclusions."""
    mean = {name: table[f"{name}_nmi"].mean("set") for name in EMBEDDINGS}
    kinds = list(itertools.product((0, 1), STARTS, EMBEDDINGS))
    heads = [f"{name}{'*' * projected} {starts}" for projected, starts, name in kinds]
    lines = [f"{'bandwidth':>9}" + "".join(f"{head:>14}" for head in heads) + f"{'gap':>10}{'rank':>6}"]
    for b, bandwidth in enumerate(table.bandwidth.values):
        at = [float(mean[name].sel(projected=p, starts=n)[b]) for p, n, name in kinds]
        tail = f"{float(table.sdp_gap[:, b].max()):10.1e}{float(table.sdp_rank[:, b].mean()):6.1f}"
        lines.append(f"{bandwidth:9.2f}" + "".join(f"{value:14.3f}" for value in at) + tail)
    lines.append("NMI, mean over the sets, by the number of starts of k-means; '*' is projected on the circle.")
    for projected, starts in itertools.product((0, 1), STARTS):
        a, b = (mean[name].sel(projected=projected, starts=starts) for name in EMBEDDINGS)
        spreads = [
            float(table[f"{name}_nmi"].sel(projected=projected, starts=starts).std("set", ddof=1).mean())
            for name in EMBEDDINGS
        ]
        ahead, behind = (table.bandwidth.values[at] for at in (a > b + 0.02, b > a + 0.02))
        lines.append(
            f"{starts:2} start{'s' if starts > 1 else ''}{', on the circle' * projected}: mean over bandwidths SDP "
            f"{float(a.mean()):.3f} (spread {spreads[0]:.3f}), diffusion {float(b.mean()):.3f} ({spreads[1]:.3f}); "
            f"SDP ahead at {span(ahead)}, diffusion at {span(behind)}"
        )
    return "\n".join([*lines, verdict(table)])


def leads(table: xr.Dataset) -> dict[int, tuple[np.ndarray, float]]:
    """By starts: the bandwidths where the SDP embedding leads by more than 0.02, and its lead on average."""
    found = {}
    for starts in STARTS:
        a, b = (table[f"{name}_nmi"].mean("set").sel(projected=0, starts=starts) for name in EMBEDDINGS)
        found[starts] = table.bandwidth.values[a > b + 0.02], float((a - b).mean())
    return found


def verdict(table: xr.Dataset) -> str:
    """How much of the SDP embedding's lead over diffusion maps remains with more starts."""
    (one, first), (many, last) = leads(table).values()
    kept = np.intersect1d(one, many)
    return (
        f"From one start the SDP embedding leads by {first:.3f} on average, at {span(one)} of {len(table.bandwidth)} "
        f"bandwidths; from {STARTS[-1]} starts by {last:.3f}, and of these bandwidths it keeps {span(kept)}: elsewhere "
        "its lead was due to single starts."
    )


def span(bandwidths: np.ndarray) -> str:
    """How many bandwidths there are, and their range."""
    return f"{len(bandwidths)} ({bandwidths[0]:g} to {bandwidths[-1]:g})" if len(bandwidths) else "none"


def figure8(table: xr.Dataset, picture: Path) -> dict[str, float]:
    """NMI against the bandwidth, with one start and with 20, and the spectra; from the table."""
    titles = [f"{n} start{'s' if n > 1 else ''} of k-means{', on the circle' * p}" for n in STARTS for p in (0, 1)]
    titles = [*titles[:2], "eigenvalues of B / Tr B", *titles[2:], "eigenvalues, diffusion"]
    figure, axes = plot.panels(titles, columns=3, width=3, aspect=0.75)
    for row, (starts, kind) in enumerate(zip(STARTS, EMBEDDINGS, strict=True)):
        for projected in (0, 1):
            ax = axes[3 * row + projected]
            series = {"raw data": table.raw_nmi.expand_dims(bandwidth=table.bandwidth)}
            series |= {title: table[f"{name}_nmi"].sel(projected=projected) for name, title in EMBEDDINGS.items()}
            for (title, values), color, style in zip(series.items(), COLORS[-1:] + COLORS, "-os", strict=False):
                at = values.sel(starts=starts)
                options = {"fmt": "-" if style == "-" else f"-{style}", "ms": 4, "lw": 1, "elinewidth": 0.6}
                ax.errorbar(table.bandwidth, at.mean("set"), at.std("set", ddof=1), color=color, label=title, **options)
            ax.set(ylim=(-0.05, 1.15))
        axes[3 * row + 2].plot(table.bandwidth, table[f"{kind}_spectrum"].mean("set"), ".-", lw=1)
    for ax in axes:
        ax.set_xlabel("bandwidth", fontsize=8)
    for ax in axes[::3]:
        ax.set_ylabel("NMI", fontsize=8)
    axes[0].legend(frameon=False, fontsize=8, loc="upper right")
    plot.save_figure(figure, picture, overwrite=True)
    return {
        f"NMI, {title}, {starts} start{'s' if starts > 1 else ''}{', on the circle' * projected}": float(
            table[f"{name}_nmi"].sel(starts=starts, projected=projected).mean()
        )
        for projected, starts, (name, title) in itertools.product((0, 1), STARTS, EMBEDDINGS.items())
    } | {
        "largest gap over objective, moons": float(table.sdp_gap.max()),
        **{
            f"bandwidths where SDP leads, {n} start{'s' if n > 1 else ''}": len(at)
            for n, (at, _) in leads(table).items()
        },
    }
