"""Figure 4: regression with gradients
===================================

A bowl learned with and without its gradients: Figure 4 of Cabannes and Bach (2024).

The figure has a constant, which is exact here because both regressions have an intercept. A bowl is as hard for the
Gaussian kernel exp(-r²), whose functions all decay. 1000 uniform points of the unit square, the first 100 of which are
landmarks, have the value `|x - (1/2, 1/2)|² / 2` and, for Hermite regression, its gradient; there is no noise. The
penalty is chosen by cross-validation, as finely as sums of squares can distinguish fits.

Usage::

    python examples/figure4_hermite_regression.py [--n 1000] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/figure4_hermite_regression.png'

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from daskspectral import HermiteRegressor, plot
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian

PICTURE = "figure4_hermite_regression.png"
LANDMARKS = (25, 50, 100, 200)
SEEDS = 5
MIDDLE = 0.5
COLORS = {"plain": "tab:orange", "Hermite": "tab:blue"}


def main(n: int = 1000, out: str | Path = ".") -> dict[str, float]:
    """Fit, check and draw."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    errors = np.array([[error(n, p, seed) for seed in range(SEEDS)] for p in LANDMARKS])
    draw(n, errors, picture)

    plain, hermite = np.median(errors[LANDMARKS.index(100)], axis=0)
    ratios = np.median(errors[:, :, 0] / errors[:, :, 1], axis=1)
    numbers = {
        "error of plain regression": float(plain),
        "error of Hermite regression": float(hermite),
        "plain over Hermite": float(ratios[LANDMARKS.index(100)]),
    }
    assert numbers["plain over Hermite"] >= 3, numbers
    return numbers


def fit(n: int, p: int, seed: int) -> dict[str, HermiteRegressor]:
    """Both regressions on the same points."""
    x = np.random.default_rng(seed).random((n, 2))
    gradients = {"plain": None, "Hermite": x - MIDDLE}
    return {
        name: HermiteRegressor(Landmarks(Gaussian(np.sqrt(0.5)), points=x[:p])).fit(x, bowl(x), given)
        for name, given in gradients.items()
    }


def bowl(x: np.ndarray) -> np.ndarray:
    """Return the values (n,) at points (n, 2)."""
    return np.asarray(np.sum((x - MIDDLE) ** 2, axis=1) / 2)


def error(n: int, p: int, seed: int) -> list[float]:
    """The root mean square errors of both over the square."""
    line = np.linspace(0, 1, 50)
    square = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    return [float(np.sqrt(np.mean((model.predict(square) - bowl(square)) ** 2))) for model in fit(n, p, seed).values()]


def draw(n: int, errors: np.ndarray, picture: Path) -> None:
    """The errors along the middle of the square, and the errors against the number of landmarks."""
    titles = [f"error along the line x2 = 1/2, n = {n}, p = 100", "root mean square error over the square"]
    figure, (left, right) = plot.panels(titles, columns=2, width=4.4, aspect=0.75)
    line = np.linspace(-0.05, 1.05, 300)
    for name, model in fit(n, 100, 0).items():
        points = np.column_stack([line, np.full(300, MIDDLE)])
        left.plot(line, 1e4 * (model.predict(points) - bowl(points)), color=COLORS[name], label=f"{name} regression")
    left.axhline(0, color="0.3", linewidth=0.8, linestyle="--", label="the bowl")
    for edge in (0, 1):
        left.axvline(edge, color="0.85", linewidth=0.8)
    left.set_xlabel("x1", fontsize=9)
    left.set_ylabel(r"$10^4\,(f - |x - m|^2 / 2)$", fontsize=9)
    for column, name in enumerate(COLORS):
        median = np.median(errors[:, :, column], axis=1)
        right.fill_between(
            LANDMARKS, *np.quantile(errors[:, :, column], (0, 1), axis=1), color=COLORS[name], alpha=0.2, linewidth=0
        )
        right.loglog(LANDMARKS, median, "o-", color=COLORS[name], markersize=4, label=f"{name} regression")
    right.set(xticks=LANDMARKS, xticklabels=map(str, LANDMARKS))
    right.set_xlabel("landmarks p", fontsize=9)
    right.minorticks_off()
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    plot.save_figure(figure, picture, overwrite=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1000, help="rows")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for name, value in main(int(arguments.n), arguments.out).items():
        print(f"{name}: {value:.4g}")
