"""Checks of a manifold and of a group."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from daskspectral.groups import Group
from daskspectral.manifolds import Manifold
from daskspectral.testing.compare import Array, check_copies, compare, require

SAMPLED = 4000
NOISE = 0.3  # of the mean of a product of two functions over SAMPLED points: more than 6 standard deviations
CLOSE = 1e-6  # of differences by a step of 1e-5, relative


def check_manifold(manifold: Manifold, x: ArrayLike | None = None, *, levels: int = 3, random_state: int = 0) -> None:
    """Check a manifold on a sample of its points, or on points x (n, d) if it cannot be sampled.

    Copies and the saved state are equal; points lie on it; normals and tangents are orthonormal and span the space.
    If it can be sampled, its eigenvalues ascend as often as their multiplicities say, and the eigenfunctions of the
    first levels are orthonormal, with the derivatives that they have by differences along tangents of the space.

    Raises AssertionError with what is wrong, where and by how much.

    Examples
    --------
    >>> from daskspectral.manifolds import Sphere
    >>> check_manifold(Sphere(3))
    """
    rng = np.random.default_rng(random_state)
    check_copies(manifold, Manifold)
    points = manifold.sample(SAMPLED, rng) if x is None else np.asarray(x, dtype=float)
    manifold.check(points)
    few = points[:20]
    frame, tangents, d = manifold.normals(few), manifold.tangents(few), manifold.ambient
    if tangents is not None:
        frame = np.concatenate([frame, tangents])
        compare(f"{manifold}: normals and tangents, counted", len(frame), d, 0.0)
    products = np.einsum("mcd,ncd->cmn", frame, frame)
    compare(f"{manifold}: inner products in a frame", products, np.zeros_like(products) + np.eye(len(frame)), CLOSE)
    if x is not None:
        return
    values = [manifold.eigenvalue(level) for level in range(levels) for _ in range(manifold.multiplicity(level))]
    compare(f"{manifold}: eigenvalues by levels", manifold.eigenvalues(len(values)), np.sort(values), CLOSE)
    for level in range(levels):
        _check_functions(manifold, level, points, rng)


def _check_functions(manifold: Manifold, level: int, points: Array, rng: np.random.Generator) -> None:
    space, what = manifold.eigenfunctions(level), f"{manifold}: eigenfunctions of level {level}"
    values = space.values(points)
    require(values.shape[1] == manifold.multiplicity(level), f"{what}: there are {values.shape[1]}")
    compare(f"{what}: means of products", values.T @ values / len(points), np.eye(values.shape[1]), 0.0, NOISE)
    x, v = points[:20], rng.standard_normal(points[:20].shape)
    slopes = (space.values(x + 1e-5 * v) - space.values(x - 1e-5 * v)) / 2e-5
    compare(f"{what}: derivatives, against differences", space.derivatives(x, v), slopes, CLOSE, CLOSE)


def check_group(group: Group, manifold: Manifold, *, random_state: int = 0) -> None:
    """Check a group of isometries of a manifold.

    Copies and the saved state are equal; generators, flows of the algebra and words act on the manifold; a word and
    its inverse leave points where they are; a word moves eigenfunctions by an orthogonal matrix within their
    eigenspace; and a finite group of at most 1000 elements has as many as its order says.

    Raises AssertionError or ValueError with what is wrong.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> check_group(Permutations(3), Sphere(3))
    """
    rng = np.random.default_rng(random_state)
    check_copies(group, Group)
    group.check(manifold)
    word, x = group.word(rng), manifold.sample(200, rng)
    manifold.check(word(x))
    compare(f"{group}: a word and its inverse", word.inverse(word(x)), x, CLOSE)
    space = manifold.eigenfunctions(1)
    before, after = space.values(x), space.values(word(x))
    moved = np.linalg.lstsq(before, after)[0]
    compare(f"{group}: eigenfunctions after a word", before @ moved, after, CLOSE)
    compare(f"{group}: what a word does to them", moved @ moved.T, np.eye(len(moved)), CLOSE)
    if not group.algebra and (group.order or math.inf) <= 1000:
        found = {np.eye(group.dimension).tobytes(): np.eye(group.dimension)}
        fresh = list(found.values())
        while fresh:
            products = [np.round(g.matrix @ a, 6) + 0.0 for g, a in itertools.product(group.generators, fresh)]
            fresh = [a for a in {a.tobytes(): a for a in products}.values() if a.tobytes() not in found]
            found |= {a.tobytes(): a for a in fresh}
        require(len(found) == group.order, f"{group} has {len(found)} elements, and its order is {group.order}")
