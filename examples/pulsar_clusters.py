"""Clusters of pulsar candidates
=============================

Clusters without labels: pulsars among radio signals, by the slowest eigenfunction of the Laplacian.

HTRU2 has 17 898 candidates of a survey, eight columns each: mean, standard deviation, kurtosis and skewness of the
pulse profile and of the curve of signal against dispersion. One in eleven is a pulsar. The rows diffuse within their
density; the slowest mode shows which rows a random walk seldom leaves. A cut of it in two by k-means is compared
with k-means and with a mixture of two normal distributions on the columns, and all with the labels, which none has
seen.

Usage::

    python examples/pulsar_clusters.py [--data htru2.npz] [--out FOLDER]

The file holds X (n, 8) and y (n,), 1 for a pulsar. Without one the points are drawn at random, as many clusters as in
HTRU2, which are easier to separate.
"""

# sphinx_gallery_thumbnail_path = '../pictures/pulsar_clusters.png'

from __future__ import annotations

import argparse
from pathlib import Path

import data_files
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, precision_score, recall_score, roc_auc_score, roc_curve
from sklearn.mixture import GaussianMixture

from daskspectral import Rows, SpectralDecomposition, plot

PICTURE = "pulsar_clusters.png"
COLUMNS = (2, 5)  # drawn: the kurtosis of the profile, the deviation of the dispersion curve
COLORS = ("tab:blue", "tab:red")
SHOWN = 4000  # rows


def main(data: str | Path | None = None, out: str | Path = ".", n: int = 4000) -> dict[str, float]:
    """Fit, cut, compare with the labels and draw; without data, of n rows drawn at random."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    x, y = data_files.pulsars(n) if data is None else data_files.load(data)
    if x.shape[1] <= max(COLUMNS) or set(np.unique(y).tolist()) != {0, 1}:
        raise ValueError(f"X must have {max(COLUMNS) + 1} columns or more, and y the values 0 and 1, for pulsars")
    columns = (x - x.mean(axis=0)) / x.std(axis=0)
    model = SpectralDecomposition(n_components=4, random_state=0).fit(Rows(x.astype(float), standardize=True))
    slow = model.transform(x.astype(float))[:, 1]
    clusters = {
        "slowest eigenfunction": rarer(KMeans(2, n_init=10, random_state=0).fit_predict(slow[:, None])),
        "k-means on the columns": rarer(KMeans(2, n_init=10, random_state=0).fit_predict(columns)),
        "two normal distributions": rarer(GaussianMixture(2, n_init=3, random_state=0).fit_predict(columns)),
    }
    slow = slow * np.sign(slow[clusters["slowest eigenfunction"] == 1].mean())  # large where the rarer cluster is
    numbers = {"rows": float(len(x)), "share of pulsars": float(y.mean())}
    for name, found in clusters.items():
        numbers |= {
            f"adjusted Rand index, {name}": float(adjusted_rand_score(y, found)),
            f"precision, {name}": float(precision_score(y, found)),
            f"recall, {name}": float(recall_score(y, found)),
        }
    numbers["area under the ROC curve, slowest eigenfunction"] = float(roc_auc_score(y, slow))
    numbers["eigenvalue"] = float(model.eigenvalues_[1])
    numbers |= dict(
        zip(("lower end of its interval", "upper end"), map(float, model.eigenvalue_errors_[1]), strict=True)
    )
    draw(x, y, slow, clusters, picture)
    assert numbers["area under the ROC curve, slowest eigenfunction"] >= 0.9, numbers
    return numbers


def rarer(labels: np.ndarray) -> np.ndarray:
    """The two clusters with 1 for the smaller one: no other knowledge of pulsars is used."""
    return labels if labels.mean() <= 0.5 else 1 - labels


def draw(x: np.ndarray, y: np.ndarray, slow: np.ndarray, clusters: dict[str, np.ndarray], picture: Path) -> None:
    """Two columns in the colors of the eigenfunction and of the labels, its histogram, and what cuts of it find."""
    rows = np.random.default_rng(0).permutation(len(x))[:SHOWN]
    rows = rows[np.argsort(slow[rows])]  # the rare ones on top
    at = x[rows][:, COLUMNS].T
    titles = ["slowest eigenfunction", "labels", "rows by its value", "what a cut of it finds"]
    figure, axes = plot.panels(titles, columns=2, width=3.6, aspect=0.8)
    shown = axes[0].scatter(*at, s=4, c=slow[rows], cmap="viridis", lw=0, rasterized=True)
    figure.colorbar(shown, cax=axes[0].inset_axes((1.02, 0, 0.03, 1))).ax.tick_params(labelsize=7)
    for label, (name, color) in enumerate(zip(("others", "pulsars"), COLORS, strict=True)):
        of_label = y[rows] == label
        axes[1].scatter(*at[:, of_label], s=3, color=color, lw=0, label=name, rasterized=True)
        edges = np.linspace(slow.min(), slow.max(), 60)
        axes[2].hist(slow[y == label], edges, color=color, alpha=0.7, label=name)
    for panel in axes[:2]:
        panel.set_xlabel(f"column {COLUMNS[0]}", fontsize=8)
        panel.set_ylabel(f"column {COLUMNS[1]}", fontsize=8)
    axes[2].set(yscale="log")
    axes[2].set_xlabel("slowest eigenfunction", fontsize=8)
    wrong, right, _ = roc_curve(y, slow)
    axes[3].plot(wrong, right, color="tab:purple", label="cuts of the eigenfunction")
    for marker, (name, found) in zip("os^", clusters.items(), strict=True):
        place = found[y == 0].mean(), found[y == 1].mean()
        axes[3].plot(*place, marker, color="black", markersize=6, label=name if marker != "o" else "its cut by k-means")
    axes[3].set(xlim=(0, 0.3), ylim=(0, 1.02))
    axes[3].set_xlabel("share of the others that is taken for pulsars", fontsize=8)
    axes[3].set_ylabel("share of the pulsars", fontsize=8)
    for panel in axes[1:]:
        panel.legend(frameon=False, fontsize=7, markerscale=2 if panel is axes[1] else 1)
    plot.save_figure(figure, picture, overwrite=True, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="file with the arrays X (n, 8) and y (n,), of 0 and 1; random points without it")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for name, value in main(arguments.data, arguments.out).items():
        print(f"{name}: {value:.5g}")
