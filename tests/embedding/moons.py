"""Two moons, wine, and the matrices of the SDP at points, written out, for the files of tests of embeddings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_moons

Array = NDArray[np.floating[Any]]


def moons(n: int, seed: int = 0) -> Array:
    x = make_moons(n, noise=0.1, random_state=seed)[0]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def wine() -> Array:
    x = load_wine().data
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0, ddof=1))


def gaussian(x: Array, y: Array, bandwidth: float) -> Array:
    return np.asarray(np.exp(-np.sum((x[:, None] - y) ** 2, axis=2) / bandwidth**2))


def normalized(k: Array) -> Array:
    """Abar (n, n) of a kernel's values at all pairs."""
    m = k.sum(axis=1)
    return np.asarray(k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum())


def abar_of(x: Array, bandwidth: float) -> Array:
    return normalized(gaussian(x, x, bandwidth))


def gap_of(abar: Array, e: Array, d: Array) -> float:
    """The duality gap over the objective, from the matrices."""
    y = np.sum((abar @ e) * e, axis=1) / d
    return float(max(0.0, -np.linalg.eigvalsh(np.diag(y) - abar)[0]) * d.sum() / (d @ y))


def gram_error(e: Any, other: Any) -> float:
    """How far off an embedding is, whatever the rotation."""
    b, wanted = (np.asarray(one) @ np.asarray(one).T for one in (e, other))
    return float(np.linalg.norm(b - wanted) / np.linalg.norm(wanted))
