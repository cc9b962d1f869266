"""What the tests of several solvers share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def spd(p: int, rng: np.random.Generator, least: float = 0.1, most: float = 1.0) -> Array:
    """A symmetric matrix with eigenvalues between two numbers."""
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return np.asarray(q * rng.uniform(least, most, p) @ q.T)


def symmetric(p: int, rng: np.random.Generator) -> Array:
    """A symmetric matrix with eigenvalues of both signs in turn, away from 0."""
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return np.asarray(q * ((-1.0) ** np.arange(p) * rng.uniform(0.2, 2, p)) @ q.T)


def gaussian(x: Array, y: Array, scale: float = 1.0) -> Array:
    """exp(-r^2 / (2 scale^2)), (n, m)."""
    return np.asarray(np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2) / (2 * scale**2)))


def moons(n: int, seed: int = 0) -> Array:
    """Two moons with noise (n, 2)."""
    rng = np.random.default_rng(seed)
    t = np.pi * rng.random(n)
    upper = rng.random(n) < 0.5
    x = np.where(upper[:, None], np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), 0.5 - np.sin(t)])
    return np.asarray(x + 0.08 * rng.standard_normal((n, 2)))


def sine(first: Array, second: Array, gram: Array) -> float:
    """The sine of the largest angle between two spans (p, k), in the inner product of a Gram matrix."""
    u, v = (span @ np.linalg.inv(np.linalg.cholesky(span.T @ gram @ span)).T for span in (first, second))
    rest = v - u @ (u.T @ gram @ v)
    return float(np.sqrt(max(np.linalg.eigvalsh(rest.T @ gram @ rest)[-1], 0)))


def positive(whitened: Array) -> bool:
    """Whether the largest entry of each column is positive."""
    return bool((whitened[np.abs(whitened).argmax(axis=0), np.arange(whitened.shape[1])] > 0).all())


def skew(matrix: Array) -> Array:
    """An antisymmetric matrix of the same size: what rounding adds to sums, and more. The symmetric part counts."""
    return np.asarray(np.triu(matrix, 1) - np.tril(matrix, -1))
