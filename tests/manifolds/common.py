"""Manifolds of every kind, each with random isometries and Killing fields."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.manifolds import (
    Circle,
    FlatTorus,
    Interval,
    Isometry,
    KillingField,
    Manifold,
    PeriodicBox,
    Product,
    Sphere,
)

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


class Case(NamedTuple):
    """A manifold, isometries and fields of it drawn at random, and how many levels are small."""

    manifold: Manifold
    isometry: Callable[[np.random.Generator], Isometry]
    field: Callable[[np.random.Generator], KillingField] | None
    levels: int


def rotation(n: int, rng: np.random.Generator) -> Array:
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    q[:, 0] *= np.linalg.det(q)
    return np.asarray(q)


def signed(m: int, rng: np.random.Generator) -> Array:
    return np.eye(m)[rng.permutation(m)] * rng.choice([-1.0, 1.0], m)


def whole(d: int, rng: np.random.Generator) -> Array:
    """A random antisymmetric matrix with eigenvalues i times integers."""
    q, charges = rotation(d, rng), rng.integers(-2, 3, d // 2)
    return np.asarray(q @ scipy.linalg.block_diag(*(n * TURN for n in charges), *([0.0] * (d % 2))) @ q.T)


def circles(m: int, rng: np.random.Generator) -> Array:
    return np.kron(np.diag(rng.integers(-2, 3, m)), TURN)


def torus_isometry(rng: np.random.Generator) -> Isometry:
    turns = [rotation(2, rng) @ np.diag([1, rng.choice([-1, 1])]) for _ in range(3)]
    return Isometry(np.kron(np.eye(3)[rng.permutation(3)], np.eye(2)) @ scipy.linalg.block_diag(*turns))


def about_the_middle(rng: np.random.Generator) -> Isometry:
    a = signed(3, rng)
    return Isometry(a, 2.5 * (np.ones(3) - a.sum(axis=1)))


CASES = {
    "circle": Case(
        Circle(),
        lambda rng: Isometry(rotation(2, rng) @ np.diag([1, rng.choice([-1, 1])])),
        lambda rng: KillingField(circles(1, rng)),
        30,
    ),
    "sphere": Case(
        Sphere(3),
        lambda rng: Isometry(rotation(3, rng) * rng.choice([-1, 1])),
        lambda rng: KillingField(whole(3, rng)),
        9,
    ),
    "torus": Case(FlatTorus(3), torus_isometry, lambda rng: KillingField(circles(3, rng)), 6),
    "box": Case(
        PeriodicBox([0, 0, 1], [1, 2, 3]),
        lambda rng: Isometry(np.diag([1, -1, -1])[[0, 2, 1]], rng.normal(size=3)),
        lambda rng: KillingField(np.zeros((3, 3)), rng.integers(-2, 3, 3) * [1, 2, 2] / (2 * np.pi)),
        7,
    ),
    "interval": Case(Interval([2] * 3, [3] * 3), about_the_middle, None, 7),
    "sphere and box": Case(
        Product(Sphere(3), PeriodicBox([0], [2])),
        lambda rng: Isometry(scipy.linalg.block_diag(rotation(3, rng), [[-1]]), [0, 0, 0, rng.uniform()]),
        lambda rng: KillingField(scipy.linalg.block_diag(whole(3, rng), 0.0), [0, 0, 0, 2 / np.pi]),
        6,
    ),
}
