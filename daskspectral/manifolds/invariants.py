"""Invariant functions of one eigenspace, from the generators of a group alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.manifolds.eigenspace import DENSE_LIMIT, Eigenspace, Matrix, dense
from daskspectral.manifolds.isometry import Isometry

Array = NDArray[np.floating[Any]]

_ZERO = 1e-6  # singular values above are never zeros
_ROUNDING = 1e-11  # times the size: singular values up to this may be zeros
_GAP = 100.0  # the least ratio between the smallest singular value kept and the largest zero


def invariant_coefficients(space: Eigenspace, isometries: Sequence[Isometry]) -> Matrix:
    """An orthonormal basis U (m, r) of {a : D(g) a = a for every generator g}; U^T phi are invariant functions.

    On tori it comes from the orbits of frequencies, and is sparse. Otherwise it spans the null space of B, the matrices
    D(g) - I on top of each other; with more than `DENSE_LIMIT` functions these matrices are not formed
    (`fixed_by_products`). The projection of a onto the invariant coefficients, a - B^+ B a (Proposition 6, Soleymani et
    al. 2025), is U U^T a. Raises ValueError where no gap separates zero singular values from the others.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> invariant_coefficients(Sphere(3).eigenfunctions(2), Permutations(3).generators).shape
    (5, 1)
    """
    isometries = [g for g in isometries if not g.trivial]
    if not isometries:
        return np.eye(space.size)
    found = space.closed_form(isometries)
    if found is not None:
        return found
    if space.size > DENSE_LIMIT:
        return fixed_by_products(space, isometries, np.random.default_rng(0))
    return null_space([dense(space.action(g)) for g in isometries])


def null_space(actions: Sequence[Array]) -> Array:
    """The vectors fixed by every one of the orthogonal matrices (m, m): an orthonormal basis (m, r).

    By the singular values of B = [D_1 - I; D_2 - I; ...], taken from its triangular factor; B^T B would square small
    ones away. The cut is at the widest gap below 1e-6. Raises ValueError for a gap of less than a factor of 100: the
    matrices are then not orthogonal, or almost the identity.
    """
    m = len(actions[0])
    factor: Array = np.zeros((0, m))
    for action in actions:
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, action - np.eye(m)]), mode="r"))
    _, values, rows = scipy.linalg.svd(factor, lapack_driver="gesdd")
    values = np.maximum(values[::-1], 64 * np.finfo(float).eps * m)  # ascending; below, all is rounding
    candidates = np.flatnonzero(values <= _ZERO)
    if not len(candidates):
        return np.zeros((m, 0))
    ratios = np.append(values, max(1.0, values[-1]))[candidates + 1] / values[candidates]
    rank = int(ratios.argmax()) + 1
    if ratios[rank - 1] < _GAP or values[rank - 1] > _ROUNDING * m:
        raise ValueError(
            "expected singular values of D(g) - I with a gap that tells zeros, received "
            f"{values[rank - 1]:.3g} and then {values[min(rank, m - 1)]:.3g}; the generators are not orthogonal to "
            "rounding, or are so near the identity that invariance under them cannot be told"
        )
    return np.ascontiguousarray(rows[::-1][:rank].T)


def random_elements(isometries: Sequence[Isometry], count: int, rng: np.random.Generator) -> list[Isometry]:
    """Elements of the group that isometries generate, nearly uniform: words of 64 * 2^6 letters.

    Letters are generators, inverses and pauses; long words are products of shorter ones that they share. Matrices are
    kept orthogonal to rounding.
    """
    d = isometries[0].size
    letters = np.zeros((2 * len(isometries) + 1, d + 1, d + 1))
    letters[-1] = np.eye(d + 1)  # without pauses all words would be of even length
    for i, g in enumerate(isometries):
        for letter, each in ((letters[2 * i], g), (letters[2 * i + 1], g.inverse)):
            letter[:d, :d], letter[:d, d], letter[d, d] = each.matrix, each.shift, 1
    words = letters[rng.integers(len(letters), size=count)]
    for _ in range(63):
        words = words @ letters[rng.integers(len(letters), size=count)]
    for _ in range(6):
        words = words @ words[rng.permutation(count)]
        a = words[:, :d, :d].copy()
        words[:, :d, :d] = 1.5 * a - 0.5 * a @ a.transpose(0, 2, 1) @ a  # one Newton step to the polar factor
    return [Isometry(word[:d, :d], word[:d, d]) for word in words]


def fixed_by_products(
    space: Eigenspace, isometries: Sequence[Isometry], rng: np.random.Generator, width: int = 8
) -> Array:
    """The vectors fixed by every D(g), (m, r), from products of D with blocks of vectors alone.

    x <- (x + D(h) x) / 2 for a random element h leaves invariant vectors as they are and halves the expected square of
    the rest, whatever the group: 128 steps make a projection to rounding. A block of random vectors shows the
    rank when it is not full; otherwise a wider one is taken.
    Raises ValueError where a generator moves the result by more than 1e-10.
    """
    m = space.size
    while True:
        width = min(width, m)
        x = rng.standard_normal((m, width))
        for h in random_elements(isometries, 128, rng):
            x = (x + space.action(h) @ x) / 2
        vectors, values, _ = scipy.linalg.svd(x, full_matrices=False)
        found = vectors[:, values > 1e-6]
        if found.shape[1] < width or width == m:
            break
        width *= 4
    off = max(float(np.abs(space.action(g) @ found - found).max(initial=0)) for g in isometries)
    if off > 1e-10:
        raise ValueError(
            f"expected random products of the generators to settle on invariant functions, received vectors that "
            f"a generator moves by {off:.3g}; take fewer levels, with eigenspaces of at most {DENSE_LIMIT} functions"
        )
    return np.asarray(found)
