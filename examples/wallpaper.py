"""Symmetric regression: a wallpaper group
=======================================

A periodic pattern from few values and its wallpaper group, built from two generators.

Patterns of the plane group p4g repeat on a square, do not change under quarter turns about its corners, nor under a
glide: the mirror image across a line, shifted along it. Of eight functions on the square one has this symmetry, so that
few values are enough. A space group of a crystal is given in the same way, by turns, mirrors, screws and glides of a
`PeriodicBox` in three dimensions.

Usage::

    python examples/wallpaper.py [--n 100] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/wallpaper.png'

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from daskspectral import InvariantRegressor
from daskspectral.groups import Generated, Isometry
from daskspectral.manifolds import PeriodicBox

PICTURE = "wallpaper.png"
BOX = PeriodicBox([0, 0], [1, 1])
TURN = Isometry([[0, -1], [1, 0]])
GLIDE = Isometry([[-1, 0], [0, 1]], [0.5, 0.5])
P4G = Generated([TURN, GLIDE], "p4g")
GRID = 80  # points of the picture along each side


def pattern(x: np.ndarray) -> np.ndarray:
    """A smooth function without symmetry, averaged over the eight elements of p4g."""
    turns = [x, TURN(x), TURN(TURN(x)), TURN(TURN(TURN(x)))]
    moved = [*turns, *map(GLIDE, turns)]
    waves = (2 * np.pi * (y @ [[1, 2], [2, -1]] + [0.1, 0.3]) for y in moved)
    return np.mean([np.exp(np.sin(w[:, 0]) + 0.5 * np.cos(w[:, 1])) for w in waves], axis=0)


def main(n: int = 100, out: str | Path = ".") -> dict[str, float]:
    """Fit n values with the group and without it, check, and draw the errors."""
    rng = np.random.default_rng(0)
    x, new = BOX.sample(n, rng), BOX.sample(2000, rng)
    models = {name: InvariantRegressor(BOX, g).fit(x, pattern(x)) for name, g in {"p4g": P4G, "no group": None}.items()}
    spread = float(np.std(pattern(new)))
    numbers: dict[str, float] = {"values": n}
    for name, model in models.items():
        numbers[f"error over the spread, {name}"] = float(np.std(model.predict(new) - pattern(new))) / spread
    word = P4G.word(rng, 30)
    change = np.abs(models["p4g"].predict(word(new)) - models["p4g"].predict(new)).max()
    numbers["largest change under the group"] = float(change)
    draw(models, Path(out) / PICTURE)
    assert numbers["error over the spread, p4g"] <= 0.005, numbers
    return numbers


def draw(models: dict[str, InvariantRegressor], picture: Path) -> None:
    """Draw the pattern on four squares, and the fits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    side = 2 * np.arange(GRID) / GRID
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    maps = {"pattern": pattern(x)} | {f"fit, {name}": model.predict(x % 1) for name, model in models.items()}
    figure, axes = pyplot.subplots(1, len(maps), figsize=(9, 3.2), layout="constrained")
    low, high = maps["pattern"].min(), maps["pattern"].max()
    for axis, (name, values) in zip(axes, maps.items(), strict=True):
        axis.imshow(values.reshape(GRID, GRID), origin="lower", extent=(0, 2, 0, 2), vmin=low, vmax=high)
        axis.set_title(name)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100, help="values of the fits that are compared")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    arguments = parser.parse_args()
    for what, value in main(arguments.n, arguments.out).items():
        print(f"{what}: {value:.3g}")
