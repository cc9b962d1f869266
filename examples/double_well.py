"""Generators and transfer operators
=================================

The generator of a double well against a grid, and transfer singular values of a process known in closed form.

The overdamped Langevin process dX = -V'(X) dt + √(2 / beta) dW in V(x) = (x² - 1)² has the density
exp(-beta V) at equilibrium, and the generator L f = -V' f' + f'' / beta. Independent points of this density, without
a trajectory, yield the eigenvalues of L in two ways: by the symmetric form -<f', g'> / beta, and by <f, L g> from the
drift at the points (gEDMD). The error of the second is much smaller, because L maps the span of the basis almost to
itself; if it did so exactly, there would be no sampling error. Both are compared with finite volumes on a fine grid.
The wells mix in the time -1 / (eigenvalue 1).

The Ornstein-Uhlenbeck process dX = -X dt + √2 dW, simulated without an error of discretization, has the transfer
singular values exp(-k t) at the lag t.

Usage::

    python examples/double_well.py [--n 1e5] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/double_well.png'

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg

from daskspectral import Koopman, Rows, SpectralDecomposition, plot
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.operators import Generator

PICTURE = "double_well.png"
BETA = 2.0
NOISE = (2 / BETA) ** 0.5
EDGE = 2.5  # exp(-beta V) is 1e-24 there
COUNT = 6  # eigenvalues, the constant's among them
STEP, LAG = 0.25, 2  # of the Ornstein-Uhlenbeck trajectories; the lag is in steps
TRAJECTORIES = 8


def main(n: int = 100_000, out: str | Path = ".") -> dict[str, float]:
    """Fit, check and draw, with n points of the well and 10 n steps of the process."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    rng = np.random.default_rng(0)
    x = equilibrium(n, rng)
    basis = Landmarks(Gaussian(0.3), 40, method="farthest")
    options = {"n_components": COUNT, "random_state": 0}
    reversible = SpectralDecomposition(Generator(diffusion=NOISE, reversible=True), basis, **options).fit(x)
    general = SpectralDecomposition(Generator(diffusion=NOISE), basis, **options)
    general.fit(Rows(x, fields={"drift": -slope(x)}))
    basis = Landmarks(Gaussian(1.5), 40, method="farthest", constant=True)
    transfer = Koopman(LAG, basis=basis, n_components=5, random_state=0)
    transfer.fit(ornstein_uhlenbeck(10 * n, rng))

    grid, values, functions, density = solve_on_grid()
    draw(reversible, general, transfer, (grid, values, functions, density), picture)
    numbers = measure(reversible, general, transfer, (grid, values, functions, density))
    widened = max(1.0, (1e5 / n) ** 0.5)
    assert numbers["largest relative error, reversible form"] <= 0.03 * widened, numbers
    assert numbers["largest relative error, form with drift"] <= 0.005 * widened, numbers
    assert numbers["least squared correlation with a function on the grid"] >= 1 - 0.005 * widened, numbers
    assert numbers["largest error of a transfer singular value"] <= 0.02 * widened, numbers
    return numbers


def energy(x: np.ndarray) -> np.ndarray:
    """V, with wells at -1 and 1 and a barrier of height 1 between them."""
    return (x**2 - 1) ** 2


def slope(x: np.ndarray) -> np.ndarray:
    """V'."""
    return 4 * x * (x**2 - 1)


def equilibrium(n: int, rng: np.random.Generator) -> np.ndarray:
    """Independent points (n, 1) of the density exp(-beta V), by rejection."""
    found = np.empty(0)
    while len(found) < n:
        proposed = rng.uniform(-EDGE, EDGE, 4 * n)
        found = np.append(found, proposed[rng.random(4 * n) < np.exp(-BETA * energy(proposed))])
    return found[:n, None]


def ornstein_uhlenbeck(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Trajectories of n steps in all, from equilibrium, by the exact transition law."""
    memory = np.exp(-STEP)
    noise = np.sqrt(1 - memory**2) * rng.standard_normal((TRAJECTORIES, n // TRAJECTORIES, 1))
    noise[:, 0] /= np.sqrt(1 - memory**2)
    return list(scipy.signal.lfilter([1], [1, -memory], noise, axis=1))


def solve_on_grid(cells: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Centers of cells (c,), eigenvalues from 0 down, functions (c, k) of unit norm, and the density (c,).

    Finite volumes: the flux between neighbors is the density on the face over beta, times the difference quotient.
    """
    h = 2 * EDGE / cells
    centers = -EDGE + h * (np.arange(cells) + 0.5)
    flux = np.exp(-BETA * energy((centers[1:] + centers[:-1]) / 2)) / (BETA * h**2)
    rates = scipy.sparse.diags([flux, flux], [1, -1], shape=(cells, cells))
    rates = rates - scipy.sparse.diags(np.asarray(rates.sum(axis=1)).ravel())
    density = np.exp(-BETA * energy(centers))
    root = scipy.sparse.diags(density**-0.5)
    values, vectors = scipy.sparse.linalg.eigsh((root @ rates @ root).tocsc(), k=COUNT, sigma=1.0)
    order = np.argsort(-values)
    density /= density.sum() * h
    return centers, values[order], vectors[:, order] / np.sqrt(h * density)[:, None], density


def measure(
    reversible: SpectralDecomposition,
    general: SpectralDecomposition,
    transfer: SpectralDecomposition,
    truth: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> dict[str, float]:
    """Compare eigenvalues and functions with the grid's, and singular values with exp(-k t)."""
    grid, values, functions, density = truth
    weights = density * (grid[1] - grid[0])
    correlations = []
    for model in (reversible, general):
        found = model.transform(grid[:, None])[:, 1:].real
        inner = np.einsum("ck,c,ck->k", found, weights, functions[:, 1:])
        correlations.append(inner**2 / (weights @ found**2))
    errors = [np.abs(model.eigenvalues_[1:] / values[1:] - 1).max() for model in (reversible, general)]
    return {
        "eigenvalue 1 on the grid": float(values[1]),
        "eigenvalue 1, reversible form": float(reversible.eigenvalues_[1]),
        "eigenvalue 1, form with drift": float(general.eigenvalues_[1].real),
        "largest relative error, reversible form": float(errors[0]),
        "largest relative error, form with drift": float(errors[1]),
        "least squared correlation with a function on the grid": float(np.min(correlations)),
        "largest error of a transfer singular value": float(np.abs(transfer.singular_values_ - exact()).max()),
    }


def exact() -> np.ndarray:
    """exp(-k t) at the lag, k = 0, 1, ..."""
    return np.exp(-LAG * STEP * np.arange(5))


def draw(
    reversible: SpectralDecomposition,
    general: SpectralDecomposition,
    transfer: SpectralDecomposition,
    truth: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    picture: Path,
) -> None:
    """Draw the eigenfunctions over the grid's, the density below them, and the singular values."""
    grid, values, functions, density = truth
    shown = np.abs(grid) <= 1.7
    grid, functions, density = grid[shown], functions[shown], density[shown]
    found = general.transform(grid[:, None]).real
    titles = [
        f"grid {values[i]:.4g}, symmetric {reversible.eigenvalues_[i]:.4g}, drift {general.eigenvalues_[i].real:.4g}"
        for i in range(1, COUNT)
    ]
    titles.append(f"Ornstein-Uhlenbeck process at the lag {LAG * STEP:g}")
    figure, axes = plot.panels(titles, columns=3, width=3.6, aspect=0.68)
    for i, panel in enumerate(axes[:-1], start=1):
        true, learned = functions[:, i], found[:, i]
        sign = np.sign(np.sum(density * true * learned))
        panel.fill_between(grid, -3.4, -3.4 + 2.2 * density, color="0.88", linewidth=0)
        panel.axhline(0, color="0.8", linewidth=0.5)
        panel.plot(grid, sign * true, color="0.25", linewidth=3.5, alpha=0.35, label="grid")
        panel.plot(grid, learned, color="tab:blue", linewidth=1.2, label="learned, with drift")
        panel.set(xlim=(grid[0], grid[-1]), ylim=(-3.4, 3.4))
    axes[0].legend(frameon=False, fontsize=7, loc="upper left")
    last = axes[-1]
    last.plot(exact(), "x", color="tab:red", markersize=8, label="exp(-k t)")
    last.plot(transfer.singular_values_, "o", color="tab:blue", markersize=4, label="transfer singular values")
    last.set(xticks=range(5), ylim=(0, 1.05))
    last.legend(frameon=False, fontsize=7)
    plot.save_figure(figure, picture, overwrite=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e5, help="points of the double well")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for name, value in main(int(arguments.n), arguments.out).items():
        print(f"{name}: {value:.4g}")
