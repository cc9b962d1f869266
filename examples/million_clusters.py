"""Clusters of shapes in a million rows
====================================

Two rings, two half-moons and two blobs in a million rows, with labels of new rows.

`SpectralClustering` reads the rows once; k-means of the same rows, which cuts rings and moons, is compared with it, and
both with the true labels. The third panel has the eigenvalues with their 95 % intervals: the gap after the sixth
indicates six clusters.

Usage::

    python examples/million_clusters.py [--n 1e6] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/million_clusters.png'

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from daskspectral import SpectralClustering, plot

PICTURE = "million_clusters.png"
COUNT = 6
SHOWN = 12_000  # rows
MARKERS = "o^sDvP"


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, 2) and the shape of each (n,)."""
    shape = np.arange(n) % COUNT
    angle = np.pi * rng.random(n)
    turn = np.where(shape < 2, 2 * angle, np.where(shape == 3, -angle, angle))
    radius = np.array([1.0, 2.2, 1.3, 1.3, 0.0, 0.0])[shape]
    x = np.column_stack([np.cos(turn), np.sin(turn)]) * radius[:, None]
    x += np.array([[0.0, 0.0], [0.0, 0.0], [4.6, -0.2], [5.9, 0.4], [4.2, 2.3], [6.4, 2.3]])[shape]
    return x + 0.12 * rng.standard_normal((n, 2)) * np.where(shape > 3, 2.2, 1.0)[:, None], shape


def main(n: int = 1_000_000, out: str | Path = ".") -> dict[str, float]:
    """Fit, compare with the shapes and with k-means, and draw."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    x, shape = rows(n, np.random.default_rng(0))
    new, new_shape = rows(SHOWN, np.random.default_rng(1))
    start = time.process_time()
    model = SpectralClustering(COUNT, random_state=0).fit(x, progress=False)
    seconds = time.process_time() - start
    labels = model.predict(new, progress=False)
    means = KMeans(COUNT, n_init=3, random_state=0).fit(x)
    numbers = {
        "rows": float(n),
        "CPU seconds": seconds,
        "adjusted Rand index": float(adjusted_rand_score(shape, model.labels_)),
        "adjusted Rand index of new rows": float(adjusted_rand_score(new_shape, labels)),
        "adjusted Rand index, k-means": float(adjusted_rand_score(shape, means.labels_)),
        "eigenvalue after the gap over the one before": float(
            model.eigenvalues_[COUNT] / model.eigenvalues_[COUNT - 1]
        ),
    }
    draw(new, labels, means.predict(new), model, numbers, picture)
    assert numbers["adjusted Rand index of new rows"] >= 0.95, numbers
    return numbers


def draw(
    x: np.ndarray, labels: np.ndarray, means: np.ndarray, model: SpectralClustering, numbers: dict[str, float], to: Path
) -> None:
    """Draw the new rows by both labels, and the eigenvalues with their intervals."""
    from matplotlib import colormaps

    titles = [
        f"SpectralClustering: index {numbers['adjusted Rand index of new rows']:.3f}",
        f"k-means: index {numbers['adjusted Rand index, k-means']:.2f}",
        "eigenvalues, 95 % intervals",
    ]
    figure, axes = plot.panels(titles, columns=3, width=3.3, aspect=0.72)
    colors = colormaps["viridis"](np.linspace(0, 0.92, COUNT))
    for panel, found in zip(axes, (labels, means), strict=False):
        for cluster in range(COUNT):
            rows = x[found == cluster][::3]
            panel.scatter(*rows.T, s=5, color=colors[cluster], marker=MARKERS[cluster], lw=0, rasterized=True)
        panel.set(xticks=[], yticks=[], aspect="equal")
    values, ends = model.eigenvalues_, np.abs(model.eigenvalue_errors_.T - model.eigenvalues_)
    axes[2].errorbar(np.arange(1, COUNT + 2), values, ends, fmt="o", ms=4, capsize=3, color=colors[1])
    axes[2].set(xticks=range(1, COUNT + 2))
    axes[2].set_xlabel("number", fontsize=8)
    axes[2].axvline(COUNT + 0.5, color="0.5", ls=":")
    axes[2].text(COUNT + 0.4, values[-1], "six clusters", ha="right", va="top", fontsize=8)
    plot.save_figure(figure, to, overwrite=True, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e6, help="rows")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for name, value in main(int(arguments.n), arguments.out).items():
        print(f"{name}: {value:.5g}")
