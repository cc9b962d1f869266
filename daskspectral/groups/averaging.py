"""Which groups can be averaged over on a sphere, from their generators alone; what turns several vectors alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daskspectral.groups.elements import orthogonal_elements
from daskspectral.manifolds.averages import Average, ElementBlock, FiniteAverage, PermutationAverage, RotationAverage
from daskspectral.manifolds.product import joined

Array = NDArray[np.float64]

SUMMED = 4  # coordinates up to which permutations are summed over: high degrees are out of reach of their polynomials
_MOST_ELEMENTS = 50_000
_MOST_NUMBERS = 2 * 10**7  # in their matrices
_SAME = 1e-9


def average_over(generators: Sequence[Array], algebra: Sequence[Array]) -> Average | None:
    """The average over the group that orthogonal matrices (d, d) and a Lie algebra generate, where one is known.

    Rotations of space that act on several vectors at once, with matrices that mix the vectors; commuting circles of
    rotations with a finite group; permutations of blocks of coordinates, with or without changes of sign and x -> -x;
    finite groups of at most 50 000 elements. For other groups there is none, and in fewer than three coordinates none
    is needed.
    """
    d = len(next(iter([*generators, *algebra]), ()))
    if d < 3:
        return None
    moving = [x for x in algebra if x.any()]
    if moving:
        return _rotations(generators, moving) or _circles(generators, moving)
    if not generators:
        return None
    permutations = _permutations(generators) if d > SUMMED else None
    if permutations is not None:
        return permutations
    many = orthogonal_elements(np.array(generators), min(_MOST_ELEMENTS, _MOST_NUMBERS // d**2))
    return None if many is None else FiniteAverage(many)


def _rotations(generators: Sequence[Array], algebra: Sequence[Array]) -> RotationAverage | None:
    """The average over rotations of several vectors, where the algebra spans so(3) on all of them alike."""
    d = len(algebra[0])
    if d % 3:
        return None
    turns = []
    for x in algebra:
        field = by_vectors(x, 3)
        if field is None or np.abs(field[0] - field[0][0, 0] * np.eye(d // 3)).max() > _SAME:
            return None
        turns.append(field[1].ravel())
    if np.linalg.matrix_rank(turns, tol=_SAME) < 2:
        return None
    mixing = []
    for g in generators:
        found = by_vectors(g, 3)  # where it commutes with the rotations or permutes them
        if found is None:
            return None
        p, turn = found
        mixing.append(p * np.sign(np.linalg.det(turn)))
    elements = orthogonal_elements(np.array(mixing).reshape(-1, d // 3, d // 3), _MOST_ELEMENTS)
    return None if elements is None else RotationAverage(elements)


def _circles(generators: Sequence[Array], algebra: Sequence[Array]) -> FiniteAverage | None:
    """The average over rotations that commute, and over the group of the generators, which must take them to theirs."""
    d = len(algebra[0])
    if any(np.abs(x @ y - y @ x).max() > _SAME for x in algebra for y in algebra):
        return None
    span = np.array(algebra).reshape(-1, d * d).T
    for g in generators:
        turned = np.array([(g @ x @ g.T).ravel() for x in algebra]).T
        if np.abs(span @ np.linalg.lstsq(span, turned)[0] - turned).max() > _SAME:
            return None
    elements = orthogonal_elements(np.array(generators).reshape(-1, d, d), _MOST_ELEMENTS)
    return None if elements is None else FiniteAverage(elements, np.array(algebra))


def _permutations(generators: Sequence[Array]) -> PermutationAverage | None:
    """The average over permutations within blocks of coordinates, where the group is no larger.

    Swaps of two coordinates and changes of one sign among the generators, with their conjugates, generate a normal
    subgroup that permutes blocks in all ways; the other generators must lie in it, but for x -> -x.
    """
    d = len(generators[0])
    if not all((np.abs(g).max(axis=0) == 1).all() and np.abs(g).sum() == d for g in generators):
        return None  # not signed permutations
    moves = [(np.abs(g).argmax(axis=0), g.sum(axis=0)) for g in generators]  # g e_j = s_j e_(image_j)
    swaps, flips, even = set(), set(), False
    for image, sign in moves:
        moved = np.flatnonzero(image != np.arange(d)).tolist()
        if len(moved) == 2 and (sign == 1).all():
            swaps.add(frozenset(moved))
        elif not moved and np.count_nonzero(sign < 0) == 1:
            flips.add(frozenset([int(np.argmin(sign))]))
    swaps, flips = (_conjugates(found, [image for image, _ in moves]) for found in (swaps, flips))
    blocks = joined(d, swaps)
    signed = {block for block in blocks if any(flip <= set(block) for flip in flips)}
    free = np.array([not any(i in block for block in signed) for i in range(d)])
    for image, sign in moves:
        kept = all(set(image[list(block)].tolist()) == set(block) for block in blocks)
        if not kept or len(set(sign[free].tolist())) > 1:
            return None
        even = even or bool((sign[free] < 0).any())
    return PermutationAverage(tuple(ElementBlock(block, block in signed) for block in blocks), even)


def _conjugates(found: set[frozenset[int]], images: Sequence[NDArray[np.intp]]) -> set[frozenset[int]]:
    """Sets of coordinates with all sets that maps of the coordinates make of them."""
    last = found
    while last:
        last = {frozenset(image[sorted(each)].tolist()) for each in last for image in images} - found
        found = found | last
    return found


def by_vectors(g: Array, size: int) -> tuple[Array, Array] | None:
    """P (k, k) and R (size, size) of an orthogonal matrix g = P x R on k vectors, a Kronecker product; None for others.

    R is orthogonal. Of the two signs that P and R have together, the sum of the entries of P is not negative: those of
    permutations of the vectors are positive.

    Examples
    --------
    >>> swap, turn = np.eye(2)[::-1], np.array([[0.0, -1], [1, 0]])
    >>> [part.round(9).tolist() for part in by_vectors(np.kron(swap, turn), 2)]
    [[[0.0, 1.0], [1.0, 0.0]], [[0.0, -1.0], [1.0, 0.0]]]
    """
    k = len(g) // size
    blocks = g.reshape(k, size, k, size).transpose(0, 2, 1, 3).reshape(k * k, size * size)
    left, values, right = np.linalg.svd(blocks)
    if values[1:].max(initial=0) > _SAME * values[0]:
        return None
    turn = right[0].reshape(size, size) * np.sqrt(size)
    mixing = left[:, 0].reshape(k, k) * values[0] / np.sqrt(size)
    sign = -1.0 if mixing.sum() < 0 else 1.0
    return sign * mixing + 0.0, sign * turn + 0.0
