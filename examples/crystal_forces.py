"""Energies and forces on an atom inside a crystal, from a few hundred energies and the crystal's space group.

The potential energy of an atom between the atoms of a crystal is periodic, and does not change under the crystal's
space group. Silicon has the diamond structure, Fd-3m, number 227: turns, mirrors, screws and glides, 192 operations on
the cube. A function with this symmetry has one coefficient where others have up to 48, and none at the frequencies that
diffraction patterns of silicon lack; `InvariantRegressor` fits the functions that are left. Its forces, minus the
gradient, turn with the crystal exactly.

The energies here are sums of two Gaussians about each atom of the crystal, so that errors can be told. Points are drawn
in the primitive cell of the face-centred lattice, a quarter of the cube: the same functions from a quarter of the
frequencies. Needs spglib: pip install "daskspectral[crystals]".

    python examples/crystal_forces.py [--n 300] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from daskspectral import InvariantRegressor, plot
from daskspectral.groups import Group, SpaceGroup
from daskspectral.manifolds import PeriodicCell

PICTURE = "crystal_forces.png"
SIDE = 5.43  # of the cube, in angstrom
CUBE, CELL = PeriodicCell.from_parameters(SIDE, SIDE, SIDE), PeriodicCell.fcc(SIDE)
NUMBER = 227
FACES = np.array([(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)])
ATOMS = SIDE * np.vstack([FACES, FACES + 0.25])
WELLS = ((15.0, 0.45), (-1.5, 0.9))  # eV and angstrom: what repels, and what attracts
SIZES = (60, 100, 150, 300, 600, 1200)  # energies of a fit
HIGHEST = 3.0  # energy that is drawn, in eV
PLANE = 121  # points of the picture along each side


def main(n: int = 300, out: str | Path = ".") -> dict[str, float]:
    """Fit n energies with the space group and without it, check, and draw errors against the number of energies."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    space_group = SpaceGroup.by_number(CUBE, NUMBER)
    groups = {"space group": space_group, "translations alone": None}
    models = {name: fit(n, group) for name, group in groups.items()}
    numbers: dict[str, float] = {"energies": n}
    for name, model in models.items():
        energy, force = errors(model)
        numbers |= {f"error of energies, {name}": energy, f"error of forces, {name}": force}
    numbers["largest change of forces under the group"] = change(models["space group"], space_group)
    curves = {name: [errors(fit(size, group)) for size in SIZES] for name, group in groups.items()}
    draw(models, curves, picture)
    assert numbers["error of forces, space group"] <= 1e-3, numbers
    return numbers


def fit(n: int, group: Group | None) -> InvariantRegressor:
    """The regression of n energies at uniform points of the primitive cell."""
    x = CELL.sample(n, np.random.default_rng(n))
    return InvariantRegressor(CELL, group, solver="least_squares").fit(x, energies_and_forces(x)[0])


def energies_and_forces(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies (c,) in eV and forces (c, 3) in eV per angstrom at points (c, 3), summed over the atoms around."""
    x = x - SIDE * np.floor(x / SIDE)
    energy, force = np.zeros(len(x)), np.zeros_like(x)
    for cube in itertools.product(range(-2, 3), repeat=3):
        for atom in ATOMS + SIDE * np.array(cube):
            apart = x - atom
            squared = np.sum(apart**2, axis=1)
            for height, width in WELLS:
                bell = height * np.exp(-squared / (2 * width**2))
                energy += bell
                force += bell[:, None] / width**2 * apart
    return energy, force


def predicted_forces(model: InvariantRegressor, x: np.ndarray) -> np.ndarray:
    """Minus the gradient of the fit at points (c, 3)."""
    levels = list(zip(model.basis_.harmonic.levels, model.coef_, strict=False))
    axes = [np.broadcast_to(axis, x.shape) for axis in np.eye(3)]
    return -np.stack([sum(level.derivatives(x, axis) @ c for level, c in levels) for axis in axes], axis=1)


# -- what is found ---------------------------------------------------------------------------------------------------


def errors(model: InvariantRegressor) -> tuple[float, float]:
    """Root mean squares of the errors at new points: of energies over their spread, of forces over their size."""
    x = CELL.sample(1000, np.random.default_rng(1))
    energy, force = energies_and_forces(x)
    off = np.std(model.predict(x) - energy) / np.std(energy)
    return float(off), float(np.linalg.norm(predicted_forces(model, x) - force) / np.linalg.norm(force))


def change(model: InvariantRegressor, group: Group) -> float:
    """The largest difference between F(g x) and the turned F(x) over the size of forces, for random g of the group."""
    rng = np.random.default_rng(2)
    x = CELL.sample(100, rng)
    force = predicted_forces(model, x)
    moved = [(g, predicted_forces(model, g(x))) for g in (group.word(rng) for _ in range(10))]
    return float(max(np.abs(there - force @ g.matrix.T).max() for g, there in moved) / np.abs(force).max())


def plane(points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid (points^2, 3) on a plane through rows of atoms, and its coordinates along [110] and [001]."""
    along, up = np.linspace(0, SIDE * np.sqrt(2), points), np.linspace(0, SIDE, points)
    first, second = np.meshgrid(along, up)
    return np.stack([first / np.sqrt(2), first / np.sqrt(2), second], axis=-1).reshape(-1, 3), along, up


def draw(models: dict[str, InvariantRegressor], curves: dict[str, list[tuple[float, float]]], picture: Path) -> None:
    """Draw the energy, fitted forces and errors in a plane, and the errors against the number of energies."""
    titles = ["energy, eV; fitted forces", *(f"log10 of error, eV: {name}" for name in models)]
    figure, axes = plot.panels([*titles, "error of energies (o) and forces (x)"], columns=4, width=3.0, aspect=0.8)
    x, along, up = plane(PLANE)
    energy = energies_and_forces(x)[0]
    maps = [energy, *(np.log10(np.abs(model.predict(x) - energy) + 1e-12) for model in models.values())]
    for panel, values, limits in zip(axes[:3], maps, [(-1, HIGHEST), (-7, 1), (-7, 1)], strict=True):
        values = values.reshape(PLANE, PLANE)
        mesh = panel.pcolormesh(along, up, values, vmin=limits[0], vmax=limits[1], rasterized=True)
        bar = figure.colorbar(mesh, cax=panel.inset_axes((1.03, 0, 0.04, 1)), extend="both")
        bar.ax.tick_params(labelsize=7, length=2)
        panel.set(aspect="equal")
        panel.set_xlabel("along [110], angstrom", fontsize=8)
    axes[0].set_ylabel("along [001], angstrom", fontsize=8)
    x, along, up = plane(25)
    force = predicted_forces(models["space group"], x)
    force[energies_and_forces(x)[0] > HIGHEST / 2] = np.nan  # they would hide the others
    arrows = (force[:, :2].sum(axis=1) / np.sqrt(2)).reshape(25, 25), force[:, 2].reshape(25, 25)
    axes[0].quiver(along, up, *arrows, color="white", width=0.004)
    for (name, found), colour in zip(curves.items(), ("tab:blue", "tab:red"), strict=True):
        for column, mark in ((0, "o"), (1, "x")):
            label = name if column == 0 else None
            axes[3].loglog(SIZES, np.array(found)[:, column], mark + "-", color=colour, markersize=4, label=label)
    axes[3].set_xlabel("energies", fontsize=8)
    axes[3].legend(frameon=False, fontsize=7)
    plot.save_figure(figure, picture, overwrite=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=300, help="energies of the fits that are compared")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for what, value in main(arguments.n, arguments.out).items():
        print(f"{what}: {value:.3g}")
