"""The potential of four identical atoms: exactly invariant, its forces, and where sorted distances do better.

Pairwise Morse energies (1 - exp(-2 (r - 1.12)))² of configurations in which all six distances lie between .8 and 2.2.
Three mass-weighted Jacobi vectors, which translations do not move, are a hyperradius and a point of S^8, on which
O(3) x S_4 acts; a regression among the invariant functions learns the energy with every default. Forces are minus its
gradients, by the chain rule. Lennard-Jones
energies, with a wall a thousand times as steep, are reported beside; so is kernel ridge regression on the six sorted
distances, which wins on sums over pairs: it is given the arguments of their terms. Sorted distances have kinks where
two of them cross, and do not tell mirror images, or some different molecules of more atoms, apart; harmonics do.

    python examples/molecule.py [--n 8000] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import special_ortho_group
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from daskspectral import InvariantRegressor, plot
from daskspectral.groups import MolecularSymmetry, jacobi_matrix
from daskspectral.manifolds import Interval, Product, Sphere

PICTURE = "molecule.png"
NEAR, FAR = 0.8, 2.2
NEW = 2000
FORCES = 400  # of the new configurations: a gradient costs forty values
PEER = 3000  # rows of kernel ridge regression
PAIRS = np.triu_indices(4, 1)
MASSES = [1.0] * 4
JACOBI = jacobi_matrix(MASSES)
RADIAL = 1.5  # how much longer the interval of the hyperradius counts than it is


def main(n: int = 8000, out: str | Path = ".") -> dict[str, float]:
    """Learn from n configurations, test on 2000 others; check and draw."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    rng = np.random.default_rng(0)
    x = configurations(n + NEW, rng)
    x, new = x[:n], x[n:]
    scale = float(np.mean(polar(x)[0]))
    z, z_new = coordinates(x, scale), coordinates(new, scale)
    least, most = z[:, 0].min(), z[:, 0].max()
    manifold = Product(Interval(least, most, lengths=RADIAL * (most - least)), Sphere(9))

    numbers, predictions = {}, {}
    for name, energy in {"Morse": morse, "Lennard-Jones": lennard_jones}.items():
        model = InvariantRegressor(manifold, MolecularSymmetry(MASSES)).fit(z, energy(x))
        predictions[name] = energy(new), model.predict(z_new)
        numbers[f"{name}: relative RMSE"] = relative(*predictions[name])
        numbers[f"{name}: RMSE over the spread"] = spread(*predictions[name])
        numbers[f"{name}: held-out R^2 of the fit"] = float(model.cv_score_)
        numbers[f"{name}: kernel ridge on sorted distances, {min(n, PEER)} rows, RMSE over the spread"] = spread(
            energy(new), peer(x[:PEER], energy(x[:PEER]))(new)
        )
        if name == "Morse":
            some = slice(FORCES)
            found = -of_positions(new[some], model.predict_gradient(z_new[some]), scale)
            numbers[f"Morse: error of the forces over their size, {FORCES} configurations"] = relative(
                -slope(new[some]), found
            )
            turn = special_ortho_group.rvs(3, random_state=rng)
            order = rng.permutation(4)
            moved = (new.reshape(-1, 4, 3)[:, order] @ turn.T + 1.0).reshape(len(new), -1)
            change = np.abs(model.predict(coordinates(moved, scale)) - predictions[name][1]).max()
            numbers["Morse: largest change under a rotation and a permutation"] = float(change)
    draw(predictions, picture)
    assert numbers["Morse: relative RMSE"] <= 0.01 * max(1.0, (8000 / n) ** 1.5), numbers
    assert numbers["Morse: largest change under a rotation and a permutation"] <= 1e-8, numbers
    return numbers


def configurations(n: int, rng: np.random.Generator) -> np.ndarray:
    """Positions (n, 12), uniform in a cube, of which all six distances lie between `NEAR` and `FAR`."""
    found = np.empty((0, 12))
    while len(found) < n:
        x = rng.uniform(-1.2, 1.2, (100_000, 12))
        r = distances(x)
        found = np.concatenate([found, x[((r > NEAR) & (r < FAR)).all(axis=1)]])
    return found[:n]


def polar(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The length (n, 1) and the direction (n, 9) of the Jacobi vectors of positions."""
    vectors = np.einsum("kn,cnd->ckd", JACOBI, x.reshape(len(x), 4, 3)).reshape(len(x), -1)
    radius = np.linalg.norm(vectors, axis=1, keepdims=True)
    return radius, vectors / radius


def coordinates(x: np.ndarray, scale: float) -> np.ndarray:
    """The hyperradius over a scale, and the direction, (n, 10)."""
    radius, direction = polar(x)
    return np.hstack([radius / scale, direction])


def of_positions(x: np.ndarray, gradient: np.ndarray, scale: float) -> np.ndarray:
    """The gradient in the positions (n, 12) of a function with this gradient in the coordinates (n, 10)."""
    radius, u = polar(x)
    tangent = gradient[:, 1:] - u * np.sum(u * gradient[:, 1:], axis=1, keepdims=True)
    inner = gradient[:, :1] / scale * u + tangent / radius
    return np.einsum("kn,ckd->cnd", JACOBI, inner.reshape(len(x), -1, 3)).reshape(len(x), -1)


def distances(x: np.ndarray) -> np.ndarray:
    """The six distances (n, 6)."""
    at = x.reshape(len(x), 4, 3)
    return np.linalg.norm(at[:, PAIRS[0]] - at[:, PAIRS[1]], axis=2)


def morse(x: np.ndarray) -> np.ndarray:
    """Energies (n,)."""
    return ((1 - np.exp(-2 * (distances(x) - 1.12))) ** 2).sum(axis=1)


def slope(x: np.ndarray) -> np.ndarray:
    """The gradient of the Morse energies, (n, 12)."""
    at, r = x.reshape(len(x), 4, 3), distances(x)
    decay = np.exp(-2 * (r - 1.12))
    along = (4 * (1 - decay) * decay / r)[:, :, None] * (at[:, PAIRS[0]] - at[:, PAIRS[1]])
    found = np.zeros_like(at)
    for pair, (i, j) in enumerate(zip(*PAIRS, strict=True)):
        found[:, i] += along[:, pair]
        found[:, j] -= along[:, pair]
    return found.reshape(len(x), -1)


def lennard_jones(x: np.ndarray) -> np.ndarray:
    """Energies (n,), 4 (r^-12 - r^-6) a pair."""
    s = distances(x) ** -6.0
    return (4 * (s**2 - s)).sum(axis=1)


def peer(x: np.ndarray, y: np.ndarray):
    """Kernel ridge regression on sorted distances, its width and penalty by cross-validation."""
    grid = {"kernelridge__gamma": [0.01, 0.03, 0.1], "kernelridge__alpha": [1e-9, 1e-7, 1e-5]}
    model = GridSearchCV(make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), grid, cv=3)
    model.fit(np.sort(distances(x), axis=1), y - y.mean())
    return lambda new: model.predict(np.sort(distances(new), axis=1)) + y.mean()


def relative(true: np.ndarray, found: np.ndarray) -> float:
    """Root of the mean square of the error over that of the energy."""
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def spread(true: np.ndarray, found: np.ndarray) -> float:
    """Root of the mean square of the error over the standard deviation of the energy."""
    return float(np.sqrt(np.mean((found - true) ** 2)) / true.std())


def draw(predictions: dict[str, tuple[np.ndarray, np.ndarray]], picture: Path) -> None:
    """Predicted over true energies of new configurations."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(predictions), figsize=(9, 4.4), layout="constrained")
    for axis, (name, (true, found)) in zip(axes, predictions.items(), strict=True):
        ends = np.quantile(true, [0.0, 0.999])
        axis.plot(ends, ends, color="0.6", linewidth=1)
        axis.scatter(true, found, s=4, color="tab:blue")
        axis.set(xlabel="energy", ylabel="prediction", title=f"{name}: error {spread(true, found):.2g} of the spread")
        axis.set(xlim=(ends[0], ends[1]), ylim=(ends[0], ends[1]), aspect="equal")
    figure.suptitle("Four identical atoms: new configurations, in any orientation and order")
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=lambda text: int(float(text)), default=8000, help="configurations; 8000 by default")
    parser.add_argument("--out", default=".", help="folder of the picture")
    options = parser.parse_args()
    for name, value in main(options.n, options.out).items():
        print(f"{name}: {value:.3g}")
