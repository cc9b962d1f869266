"""Ten million points in the plane
===============================

How animals mix in two ponds and the channel between them, from positions alone: more of them than memory holds.

The positions of many animals, each seen once, have a density ρ over the ponds, larger where the animals like to be.
Animals that diffuse and have this density at equilibrium reach it at the rates D λ_i, with D their diffusivity and
λ_i, in 1 / m², the eigenvalues of -div(ρ ∇f) / ρ with no flux through the shores. The slowest mode separates
one pond from the other: λ_1 = 0.00104, so that animals of D = 1 m² / s need 1 / (D λ_1) = 16 minutes to even
out between the ponds. The next modes are within the ponds.

The functions are a Fourier lattice, 1 and cosines and sines up to the frequencies (30, 20) along the sides of a box
around the data, 2501 in all, whose moments are summed in one pass. The fit does not know the shores. Positions are
independent, and the error bars come from the default folds. The intervals show the error of the number of positions.
The error of the number of functions is shown by a second solution from the same sums, with two thirds of the
frequencies: where the values differ by more than the intervals, more functions are wanted rather than more positions.

The reference is the same operator by finite volumes on grids of the ponds, which see no position.

Usage::

    python examples/positions.py [--n 1e7] [--out FOLDER] [--data FOLDER]

With --n 1e8 the positions take 0.8 GB on disk, the memory stays at 1 GB. With --data they are kept and used again.
"""

# sphinx_gallery_thumbnail_path = '../pictures/positions.png'

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import zarr
from sklearn.base import clone

from daskspectral import SpectralDecomposition, plot
from daskspectral.basis import FourierBasis
from daskspectral.data.writing import create_array
from daskspectral.operators import Laplacian

FUNCTIONS, VALUES = "positions.png", "positions_eigenvalues.png"
ORDERS, FEWER = (30, 20), (20, 14)
COUNT = 8  # eigenvalues, the constant's among them
ROWS = 500_000  # of a task's part of the data

LENGTH, WIDTH = 60.0, 40.0  # m, of the box around both ponds
SHORES = (22.0, 38.0)  # where the western pond ends, and the eastern one begins
CHANNEL = (12.0, 24.0)  # its southern and northern bank
LIKED = (((8.0, 28.0), 9.0, 1.0), ((52.0, 12.0), 8.0, 0.6), ((30.0, 20.0), 10.0, 0.35))  # place, radius, height
EVERYWHERE, HIGHEST = 0.25, 1.35  # least density, and a bound of the highest


def main(n: int = 10_000_000, out: str | Path = ".", data: str | Path | None = None) -> dict[str, float]:
    """Draw positions, fit, check and draw pictures; the bound holds for 1e6 and widens as n^(-1/2) for fewer."""
    pictures = [Path(out) / name for name in (FUNCTIONS, VALUES)]
    Path(out).mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        plot.refuse_picture(picture, overwrite=True)
    numbers: dict[str, float] = {"positions": n}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch if data is None else data)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"positions-{n}.zarr"
        if not path.exists():
            start = time.perf_counter()
            write_positions(path, n)
            numbers["seconds to write"] = time.perf_counter() - start
        start = time.perf_counter()
        estimator = SpectralDecomposition(Laplacian(), FourierBasis(ORDERS), n_components=COUNT).fit(path)
        numbers["seconds to fit"] = time.perf_counter() - start
        plot.save_figure(plot.eigenfunctions(estimator, path), pictures[0], overwrite=True)
    fewer = clone(estimator).set_params(basis=FourierBasis(FEWER)).fit_moments(estimator.moments_)
    exact = solve_on_grid()
    draw(estimator, fewer, exact, pictures[1])
    numbers |= measure(estimator, fewer, exact)
    widened = max(1.0, (1e6 / n) ** 0.5)
    assert numbers["largest relative error"] <= 0.02 * widened, numbers
    return numbers


# -- the data --------------------------------------------------------------------------------------------------------


def write_positions(path: Path, n: int) -> None:
    """Write the positions (n, 2) in metres, chunk by chunk: a task draws one and keeps none."""
    rows = min(n, ROWS)
    with create_array(path, (n, 2), "float32", chunk_rows=rows) as array:
        dask.compute(*(dask.delayed(write_part)(array, first, rows) for first in range(0, n, rows)))


def write_part(array: zarr.Array, first: int, rows: int) -> None:
    """Draw the positions of the chunk that starts at row `first`."""
    rows = min(rows, array.shape[0] - first)
    array[first : first + rows] = positions(rows, np.random.default_rng([0, first]))


def positions(n: int, rng: np.random.Generator) -> np.ndarray:
    """Independent positions (n, 2) of the density, by rejection."""
    found = [np.empty((0, 2), dtype=np.float32)]
    while sum(map(len, found)) < n:
        x, y = rng.uniform(0, LENGTH, 2 * n), rng.uniform(0, WIDTH, 2 * n)
        kept = in_water(x, y) & (HIGHEST * rng.random(2 * n) < density(x, y))
        found.append(np.stack([x[kept], y[kept]], axis=1).astype(np.float32))
    return np.concatenate(found)[:n]


def in_water(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether places of the box are in a pond or in the channel."""
    in_pond = (x < SHORES[0]) | (x > SHORES[1])
    return in_pond | ((y > CHANNEL[0]) & (y < CHANNEL[1]))


def density(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The density in the water, up to a factor; at most HIGHEST."""
    liked = (
        height * np.exp(-((x - east) ** 2 + (y - north) ** 2) / (2 * radius**2))
        for (east, north), radius, height in LIKED
    )
    return EVERYWHERE + sum(liked)


# -- the reference ---------------------------------------------------------------------------------------------------


def solve_on_grid(side: float = 0.25) -> np.ndarray:
    """The eigenvalues (COUNT,), in 1 / m², extrapolated from cells of twice the side and of this one.

    Near a corner of the shore of three right angles functions vary as the distance to the power 2 / 3, and the error
    falls as the power 4 / 3 of the side of a cell. On cells of half the side the values differ by 1e-4 or less.
    """
    coarse, fine = finite_volumes(2 * side), finite_volumes(side)
    return fine + (fine - coarse) / (2 ** (4 / 3) - 1)


def finite_volumes(side: float) -> np.ndarray:
    """The flux between neighbors is the density on their face, times the difference quotient; none into the land."""
    x = side * (np.arange(round(LENGTH / side)) + 0.5)[:, None]
    y = side * (np.arange(round(WIDTH / side)) + 0.5)[None]
    water = in_water(x, y)
    number = np.cumsum(water).reshape(water.shape) - 1
    before, after, flux = [], [], []
    for axis, faces in ((0, density(x + side / 2, y)), (1, density(x, y + side / 2))):
        here, there = np.delete(number, -1, axis), np.delete(number, 0, axis)
        open_ = np.delete(water, -1, axis) & np.delete(water, 0, axis)
        before.append(here[open_])
        after.append(there[open_])
        flux.append(np.delete(faces, -1, axis)[open_] / side**2)
    cells = int(water.sum())
    pairs = np.concatenate(before), np.concatenate(after)
    rates = scipy.sparse.coo_array((np.concatenate(flux), pairs), shape=(cells, cells))
    rates = (rates + rates.T).tocsc()
    rates = scipy.sparse.diags_array(rates.sum(axis=1)) - rates
    root = scipy.sparse.diags_array(density(x, y)[water] ** -0.5)
    start = np.random.default_rng(0).standard_normal(cells)
    form = (root @ rates @ root).tocsc()
    values = scipy.sparse.linalg.eigsh(form, k=COUNT, sigma=-1e-3, v0=start, return_eigenvectors=False)
    return np.sort(values)


# -- what is found ---------------------------------------------------------------------------------------------------


def measure(estimator: SpectralDecomposition, fewer: SpectralDecomposition, exact: np.ndarray) -> dict[str, float]:
    """Compare the eigenvalues with the grid's, and with those of fewer frequencies."""
    found, ends, coarser = estimator.eigenvalues_, estimator.eigenvalue_errors_, fewer.eigenvalues_
    numbers: dict[str, float] = {}
    for i in range(1, COUNT):
        numbers |= {f"eigenvalue {i}": found[i], f"eigenvalue {i}, lower end": ends[i, 0]}
        numbers |= {f"eigenvalue {i}, upper end": ends[i, 1], f"eigenvalue {i} with fewer frequencies": coarser[i]}
        numbers |= {f"eigenvalue {i} on the grid": exact[i]}
    return {name: float(value) for name, value in numbers.items()} | {
        "largest relative error": float(np.abs(found[1:] / exact[1:] - 1).max()),
        "largest relative change with fewer frequencies": float(np.abs(coarser[1:] / found[1:] - 1).max()),
    }


def draw(estimator: SpectralDecomposition, fewer: SpectralDecomposition, exact: np.ndarray, picture: Path) -> None:
    """Draw the eigenvalues with their intervals, also relative to the grid's."""
    figure, axes = plot.panels(
        [r"eigenvalues, m$^{-2}$", "eigenvalues over the grid's"], columns=2, width=3.2, aspect=0.85
    )
    index, exact, ends = np.arange(1, COUNT), exact[1:], estimator.eigenvalue_errors_[1:].T
    for panel, unit in zip(axes, (1.0, exact), strict=True):
        panel.vlines(index, *(ends / unit), color="tab:blue", linewidth=1.4, label="95 % interval")
        panel.plot(index, estimator.eigenvalues_[1:] / unit, "o", color="tab:blue", markersize=4, label="learned")
        panel.plot(index, fewer.eigenvalues_[1:] / unit, "_", color="black", markersize=9, label="fewer frequencies")
        panel.plot(index, exact / unit, "x", color="tab:red", markersize=7, label="on the grid")
        panel.set(xticks=index, xlim=(0.5, COUNT - 0.5))
        panel.set_xlabel("mode", fontsize=8)
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False, fontsize=7)
    plot.save_figure(figure, picture, overwrite=True)


def report(numbers: dict[str, float]) -> None:
    """Print the eigenvalues as a table, and the other numbers below."""
    print("     eigenvalue, 1/m^2  95 % interval          fewer frequencies  on the grid")
    for i in range(1, COUNT):
        found, lower, upper, coarser, true = (
            numbers[f"eigenvalue {i}{what}"]
            for what in ("", ", lower end", ", upper end", " with fewer frequencies", " on the grid")
        )
        interval = f"{lower:.4g} to {upper:.4g}"
        print(f"{i:3}  {found:17.4g}  {interval:22} {coarser:<17.4g}  {true:.4g}")
    for name, value in numbers.items():
        if not name.startswith("eigenvalue"):
            print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e7, help="positions")
    parser.add_argument("--out", default=".", help="folder for the pictures; made if missing")
    parser.add_argument("--data", help="folder where the positions are kept; made if missing")
    arguments = parser.parse_args()
    report(main(int(arguments.n), arguments.out, arguments.data))
