"""Figure 5: harmonics of a network
================================

Spherical harmonics learned by a network: Figure 5 of Cabannes and Bach (2024), with numbers in place of cherries.

Sixteen outputs of a perceptron minimize equation (18) for the Laplacian on the sphere S², with the regularizer from
pairs of independent rows: by stochastic gradient descent with momentum 1/2 on 5000 batches of 1000 fresh points, at a
learning rate that falls by a factor 3 after a third and after two thirds of them. The minimum is a rotation of
√(1 - l (l + 1) / mu) times the harmonics of degree l, up to l = 3. Principal components of the outputs (the paper's
way) undo the rotation; the Galerkin method, from one more pass over points with the same functions, undoes both; and
from the 200 neurons below the outputs it finds what these have not learned. Each is compared with the true eigenspaces:
the part of functions outside theirs, and eigenvalues.

The state is saved next to the picture every 250 batches, and the next run resumes from it.

Usage::

    python examples/figure5_network_harmonics.py [--paper] [--steps STEPS] [--out FOLDER]

The network of the paper, --paper, takes an hour; without it two layers of 64 neurons need less than a minute.
"""

# sphinx_gallery_thumbnail_path = '../pictures/figure5_network_harmonics.png'

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from figure2_spherical_harmonics import harmonics, quadrature

from daskspectral import SpectralDecomposition, plot
from daskspectral.basis import NetworkBasis, NeuralBasis
from daskspectral.manifolds import Sphere
from daskspectral.neural import Loss
from daskspectral.operators import Laplacian
from daskspectral.operators.base import with_derived

PICTURE, STATE = "figure5_network_harmonics.png", "figure5_network_harmonics.npz"
PAPER, HIDDEN, OUTPUTS = (200, 200, 2000, 200), (64, 64), 16
BATCH, PAPER_STEPS, STEPS, KEPT = 1000, 5000, 1000, 250
RATE, MOMENTUM = 1e-3, 0.5
SMALL = 0.3  # of the usual weights of the outputs: steps of this size from larger ones diverge
MU = 60.0  # well above 12, the eigenvalue of degree 3: at 20 the outputs stay at a saddle without this degree
DRAWN = (1, 4, 6, 9, 13, 15)
OPERATOR = Laplacian(Sphere(3))


def main(steps: int = STEPS, out: str | Path = ".", hidden: tuple[int, ...] = HIDDEN) -> dict[str, float]:
    """Train, measure and draw."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    start = NeuralBasis(hidden, features="outputs").initialized(sphere(100_000, 0), OUTPUTS, seed=0)
    begun = time.perf_counter()
    basis = train(start, steps, Path(out) / STATE)
    seconds = time.perf_counter() - begun
    x = sphere(100_000, 1)
    model = SpectralDecomposition(OPERATOR, basis, n_components=OUTPUTS).fit(x)
    hidden_layer = replace(basis, features="hidden")
    deeper = SpectralDecomposition(OPERATOR, hidden_layer, n_components=OUTPUTS).fit(x)
    numbers = {"seconds": seconds, **measure(basis, model, deeper)}
    draw(basis, deeper, picture)
    return numbers


def sphere(n: int, seed: Any) -> np.ndarray:
    """Uniform points (n, 3)."""
    x = np.random.default_rng(seed).standard_normal((n, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def train(basis: NetworkBasis, steps: int, kept: Path) -> NetworkBasis:
    """The network after so many batches, going on from the state at a path."""
    loss, variables = Loss.of(OPERATOR), jax.tree_util.tree_map(lambda v: np.asarray(v, "float32"), basis.variables)
    variables["weights"][-1] *= np.float32(SMALL)
    origin = basis.center.astype("float32")
    cuts = {steps // 3: 1 / 3, 2 * steps // 3: 1 / 3}
    optimizer = optax.sgd(optax.piecewise_constant_schedule(RATE, cuts), momentum=MOMENTUM)
    moving = optimizer.init(variables)
    first, losses = 0, []
    shape = jax.tree_util.tree_structure((variables, moving))
    if kept.exists():
        with np.load(kept) as file:
            if int(file["steps"]) != steps:
                raise ValueError(f"{kept} is of a run of {file['steps']} steps. Delete it, or pass the same --steps")
            first, losses = int(file["step"]), file["losses"].tolist()
            leaves = [file[f"leaf {i}"] for i in range(shape.num_leaves)]
        variables, moving = jax.tree_util.tree_unflatten(shape, leaves)

    @jax.jit
    def step(variables: Any, moving: Any, fields: Any) -> Any:
        def cost(variables: Any) -> Any:
            def outputs(x: Any) -> Any:
                return basis.apply(variables, x - origin)

            return loss(outputs, outputs, fields, MU)

        value, slopes = jax.value_and_grad(cost)(variables)
        updates, moving = optimizer.update(slopes, moving)
        return optax.apply_updates(variables, updates), moving, value

    for number in range(first, steps):
        x = sphere(BATCH, [2, number])
        fields = with_derived(OPERATOR, {"x": x})
        fields = {name: np.asarray(v, "float32") for name, v in fields.items()}
        variables, moving, value = step(variables, moving, fields)
        losses.append(float(value))
        if (number + 1) % KEPT == 0 or number + 1 == steps:
            leaves = jax.tree_util.tree_leaves((variables, moving))
            arrays = {f"leaf {i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
            aside = kept.with_name(f".{kept.name}")
            with aside.open("wb") as file:
                np.savez(file, step=number + 1, steps=steps, losses=losses, **arrays)
            aside.replace(kept)
            print(f"batch {number + 1}: loss {np.mean(losses[-KEPT:]):.4f}", flush=True)
    return basis.with_variables(variables)


def components(basis: NetworkBasis) -> tuple[np.ndarray, np.ndarray]:
    """Principal components of the outputs, as columns by which these are multiplied, and their variances."""
    points, weights = quadrature()
    values = basis.values(points)
    variances, vectors = np.linalg.eigh((values * weights) @ values.T)
    return vectors[:, ::-1] / np.sqrt(np.maximum(variances[::-1], 1e-12)), variances[::-1]


def measure(basis: NetworkBasis, model: SpectralDecomposition, deeper: SpectralDecomposition) -> dict[str, float]:
    """Eigenvalues, and the part of the functions outside the true eigenspaces, by each way."""
    points, weights = quadrature()
    turn, variances = components(basis)
    exact = Sphere(3).eigenvalues(OUTPUTS)
    numbers: dict[str, float] = {}
    ways = {
        "components": (basis.values(points).T @ turn, MU * (1 - variances)),
        "Galerkin": (model.transform(points), model.eigenvalues_),
        "hidden layer": (deeper.transform(points), deeper.eigenvalues_),
    }
    for way, (functions, values) in ways.items():
        error = np.sum(np.abs(1 / exact[1:] - 1 / values[1:])) / np.sum(1 / exact[1:])
        numbers[f"error (21) of 15 eigenvalues, {way}"] = float(error)
        for degree in range(1, 4):
            some, true = functions[:, degree**2 : (degree + 1) ** 2], harmonics(degree, points)
            outside = some - true @ (true.T @ (weights[:, None] * some))
            share = float(weights @ np.sum(outside**2, axis=1) / (weights @ np.sum(some**2, axis=1)))
            numbers[f"share outside degree {degree}, {way}"] = share
    return numbers


def draw(basis: NetworkBasis, model: SpectralDecomposition, picture: Path) -> None:
    """Above, principal components of the outputs; below, eigenfunctions by Galerkin from the last hidden layer."""
    points, x, y = plot.mollweide()
    grid, (turn, variances) = points.reshape(-1, 3), components(basis)
    titles = [rf"component, $\mu (1 - \sigma^2) = {MU * (1 - variances[i]):.2f}$" for i in DRAWN]
    titles += [rf"Galerkin, $\lambda_{{{i}}} = {model.eigenvalues_[i]:.2f}$" for i in DRAWN]
    figure, axes = plot.panels(titles, columns=len(DRAWN), aspect=0.5)
    rows = basis.values(grid).T @ turn, model.transform(grid)
    rim = np.linspace(0, 2 * np.pi, 200)
    for place, functions in enumerate(rows):
        for column, i in enumerate(DRAWN):
            ax, values = axes[place * len(DRAWN) + column], functions[:, i]
            plot.level_lines(ax, x, y, values.reshape(x.shape), largest=float(np.abs(values).max()))
            ax.plot(2 * np.cos(rim), np.sin(rim), color="0.4", linewidth=0.8)
            ax.set(xlim=(-2.02, 2.02), ylim=(-1.02, 1.02), aspect="equal")
            ax.set_axis_off()
    plot.save_figure(figure, picture, overwrite=True, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", action="store_true", help=f"layers of {PAPER} neurons, {PAPER_STEPS} batches")
    parser.add_argument("--steps", type=int, help="batches of 1000 points")
    parser.add_argument("--out", default=".", help="folder for the picture and the state; made if missing")
    arguments = parser.parse_args()
    hidden, steps = (PAPER, PAPER_STEPS) if arguments.paper else (HIDDEN, STEPS)
    for name, value in main(arguments.steps or steps, arguments.out, hidden).items():
        print(f"{name}: {value:.4g}")
