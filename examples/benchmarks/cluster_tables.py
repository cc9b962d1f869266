"""Tables whose clusters are known, for `beside_others.py --task clusters`: 21 of the design, and ten more.

Real tables are scikit-learn's, and of a folder with `mnist.npz`, `htru2.npz` and `penguins.npz`: arrays X (n, d) and
y (n,). Columns of different units have variance 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA

Table = tuple[np.ndarray, np.ndarray]
FILES = ("mnist", "htru2", "penguins")
SHOWN_ROWS = 4000  # of larger files


def scaled(x: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and variance 1."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


def polar(radius: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return points of the plane."""
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def rings(n: int, rng: np.random.Generator) -> Table:
    """Return three rings about one center."""
    ring = np.arange(n) % 3
    x = polar(1.0 + ring, rng.uniform(0, 2 * np.pi, n))
    return x + 0.03 * rng.normal(size=x.shape), ring


def roll(n: int, rng: np.random.Generator) -> Table:
    """Return two halves of a tight roll, with a cut between them."""
    t = rng.uniform(size=n)
    half = (t > 0.5).astype(int)
    angle = 1.5 * np.pi * (1 + 2 * (t + 0.06 * half))
    x = np.insert(polar(angle, angle), 1, 0.3 * 21 * rng.uniform(size=n), axis=1)
    return x + 0.05 * rng.normal(size=x.shape), half


def from_file(path: Path, rng: np.random.Generator) -> Table:
    """Return up to 4000 rows of a file: images as 50 principal components, other columns of variance 1."""
    with np.load(path, allow_pickle=False) as file:
        x, y = file["X"], np.unique(file["y"], return_inverse=True)[1]
    rows = rng.permutation(len(x))[:SHOWN_ROWS]
    x = x[rows].astype(float)
    return PCA(50, random_state=0).fit_transform(x / 255) if path.stem == "mnist" else scaled(x), y[rows]


def of_the_design(seed: int, folder: Path | None) -> dict[str, Table]:
    """Return the tables of the design; those of files only if the folder has them."""
    rng = np.random.default_rng(seed)
    real = {"wine": datasets.load_wine, "cancer": datasets.load_breast_cancer, "iris": datasets.load_iris}
    found = {name: load(return_X_y=True) for name, load in real.items()}
    found = {name: (scaled(x), y) for name, (x, y) in found.items()}
    blobs, classes = datasets.make_blobs(1500, random_state=170 + seed)
    noisy, kinds = datasets.make_blobs(1000, centers=4, n_features=4, cluster_std=2.0, random_state=seed)
    angle, arm = np.sqrt(rng.uniform(0.05, 1, 1000)) * 3 * np.pi, np.arange(1000) % 2
    spirals = polar(angle, angle + np.pi * arm) + 0.2 * rng.normal(size=(1000, 2))
    found |= {
        "digits": datasets.load_digits(return_X_y=True),
        "circles": datasets.make_circles(1500, factor=0.5, noise=0.05, random_state=seed),
        "moons": datasets.make_moons(1500, noise=0.05, random_state=seed),
        "rings of 600 rows": rings(600, rng),
        "rings of 12000 rows": rings(12000, rng),
        "tight roll": roll(2000, rng),
        "varied": datasets.make_blobs(1500, cluster_std=[1.0, 2.5, 0.5], random_state=170 + seed),
        "aniso": (blobs @ [[0.6, -0.6], [-0.4, 0.8]], classes),
        "unbalanced": blobs_at([1000, 100, 20], [[0, 0], [6, 0], [0, 6]], [1.5, 0.5, 0.3], seed),
        "eight blobs": datasets.make_blobs(2000, centers=8, random_state=seed + 3),
        "touching": blobs_at([500, 500, 500], [[0, 0], [3, 0], [1.5, 2.6]], [0.9] * 3, seed),
        "28 noise columns": (scaled(np.hstack([noisy, rng.normal(size=(1000, 28))])), kinds),
        "spirals": (spirals, arm),
        "blobs, 10 columns": datasets.make_blobs(1200, centers=5, n_features=10, cluster_std=3.0, random_state=seed),
        "three sizes": blobs_at([900, 300, 100], [[0, 0], [0, 5], [6, 0]], [1.2, 1.0, 0.7], seed),
    }
    paths = {name: folder / f"{name}.npz" for name in FILES} if folder is not None else {}
    return found | {name: from_file(path, rng) for name, path in paths.items() if path.exists()}


def ten_more(seed: int) -> dict[str, Table]:
    """Return ten tables that were not used in the design of the method."""
    rng = np.random.default_rng(100 + seed)
    (digits, digit), (cancer, diagnosis), (wine, kind), (iris, species) = (
        load(return_X_y=True)
        for load in (datasets.load_digits, datasets.load_breast_cancer, datasets.load_wine, datasets.load_iris)
    )
    integers, of_integers = datasets.make_blobs(1500, centers=4, random_state=seed + 20)
    sphere = rng.normal(size=(1500, 3))
    shell, centers, owner = np.arange(1500) % 2, 5 * rng.normal(size=(4, 5)), rng.integers(0, 4, 1500)
    sphere *= (1 + shell)[:, None] / np.linalg.norm(sphere, axis=1, keepdims=True)
    along, stripe = rng.uniform(-1, 1, 1200), np.arange(1200) % 3
    across = 0.15 * rng.normal(size=1200) + 1.5 * stripe + 0.3 * np.sin(2 * along)
    moons, moon = datasets.make_moons(800, noise=0.07, random_state=seed)
    blobs, blob = blobs_at([300, 300], [[-1.5, -1.5], [2.5, 1.8]], [0.25, 0.25], seed)
    return {
        "digits 0 to 4": (digits[digit < 5], digit[digit < 5]),
        "cancer, log means": (scaled(np.log1p(cancer[:, :10])), diagnosis),
        "wine, 5 columns": (scaled(wine[:, [0, 6, 9, 11, 12]]), kind),
        "iris in mm": (np.rint(10 * iris), species),
        "integers": (np.rint(1.5 * integers), of_integers),
        "25 of 6025 rows": blobs_at([3000, 3000, 25], [[0, 0], [8, 0], [4, 6]], [1.0, 1.0, 0.3], seed),
        "shells": (sphere + 0.05 * rng.normal(size=sphere.shape), shell),
        "Student's t": (centers[owner] + rng.standard_t(3, size=(1500, 5)), owner),
        "stripes": (np.column_stack([4 * along, across]), stripe),
        "moons and blobs": (np.vstack([moons, blobs]), np.concatenate([moon, 2 + blob])),
    }


def blobs_at(sizes: list[int], centers: list[list[float]], spreads: list[float], seed: int) -> Table:
    """Return normal clusters of these sizes, centers and standard deviations."""
    x, y = datasets.make_blobs(sizes, centers=np.array(centers, float), cluster_std=spreads, random_state=seed)
    return np.asarray(x), np.asarray(y)


def tables(seed: int, folder: Path | None) -> dict[str, Table]:
    """Return all tables of a seed, with float rows and classes from 0."""
    found = of_the_design(seed, folder) | ten_more(seed)
    return {name: (np.asarray(x, float), np.asarray(y, int)) for name, (x, y) in found.items()}
