"""Figure 1: two half-moons
========================

Eigenfunctions of the Laplacian on two half-moons: Figure 1 of Cabannes and Bach (2024).

Each moon is a thin arc of length π. Alone it has the eigenvalues k² of a segment, with eigenfunctions
cos(k t) of the angle t along it; both moons together have each eigenvalue twice. The first pair, 0 and
almost 0, separates the clusters. The landmarks are a farthest-point traversal: uniformly drawn landmarks are rare
at the edges of the moons, and lead to an eigenvalue of 0.5 instead of the second 0.

Usage::

    python examples/figure1_half_moons.py [--n 1e5] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/figure1_half_moons.png'

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from daskspectral import SpectralDecomposition, plot
from daskspectral.basis import Landmarks
from daskspectral.datasets import write
from daskspectral.kernels import Exponential

PICTURE = "figure1_half_moons.png"


def main(n: int = 100_000, out: str | Path = ".") -> dict[str, float]:
    """Fit, check and draw; the bounds hold for n = 1e5 and widen as n^(-1/2) for fewer points."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    with tempfile.TemporaryDirectory() as folder:
        points = Path(folder) / "half_moons.zarr"
        write("two-moons", points, n, noise=0.05, seed=0, progress=False)
        estimator = SpectralDecomposition(
            basis=Landmarks(Exponential(scale=2.0), 200, method="farthest", n_candidates=n),
            n_components=16,
            random_state=0,
        ).fit(points)
        plot.save_figure(plot.eigenfunctions(estimator, points), picture, overwrite=True)

    numbers = measure(estimator)
    widened = max(1.0, (1e5 / n) ** 0.5)
    assert numbers["second over third eigenvalue"] <= 0.1 * widened, numbers
    assert numbers["largest error of an eigenvalue over k^2"] <= 0.1 * widened, numbers
    assert numbers["least correlation with cos(k t)"] >= 1 - 0.02 * widened, numbers
    return numbers


def measure(estimator: SpectralDecomposition) -> dict[str, float]:
    """Compare with k^2, and with cos(k t) on the center line of each moon with 5 % of a function's norm or more."""
    t = (np.arange(400) + 0.5) * np.pi / 400
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])
    correlations = []
    for moon in (upper, lower):
        values = estimator.transform(moon)
        for i in range(2, 16):
            correlation = np.corrcoef(values[:, i], np.cos((i // 2) * t))[0, 1]
            correlations.append(abs(correlation) if np.mean(values[:, i] ** 2) / 2 >= 0.05 else 1.0)
    found = estimator.eigenvalues_
    squares = np.repeat(np.arange(8.0) ** 2, 2)
    return {
        "second eigenvalue": float(found[1]),
        "second over third eigenvalue": float(found[1] / found[2]),
        "largest error of an eigenvalue over k^2": float(np.abs(found[2:] / squares[2:] - 1).max()),
        "least correlation with cos(k t)": float(min(correlations)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e5, help="rows")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for name, value in main(int(arguments.n), arguments.out).items():
        print(f"{name}: {value:.4g}")
