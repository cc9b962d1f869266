"""Which groups can be averaged over on a sphere, from their generators alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.averages import ElementBlock, PermutationAverage

Array = NDArray[np.float64]

LEAST = 5  # coordinates: high degrees of fewer are out of reach of symmetric polynomials, and spaces small


def average_over(generators: Sequence[Array]) -> PermutationAverage | None:
    """Return the average over the group that orthogonal matrices (d, d) generate, or None if there is none.

    There are averages over permutations of blocks of five or more coordinates, with or without changes of sign and
    x -> -x. Swaps of two coordinates and changes of one sign among the generators, with their conjugates, generate a
    normal subgroup that permutes blocks in all ways; the other generators must lie in it, but for x -> -x.
    """
    if not generators or len(generators[0]) < LEAST:
        return None
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
    blocks = _joined(d, swaps)
    signed = {block for block in blocks if any(flip <= set(block) for flip in flips)}
    free = np.array([not any(i in block for block in signed) for i in range(d)])
    for image, sign in moves:
        kept = all(set(image[list(block)].tolist()) == set(block) for block in blocks)
        if not kept or len(set(sign[free].tolist())) > 1:
            return None
        even = even or bool((sign[free] < 0).any())
    return PermutationAverage(tuple(ElementBlock(block, block in signed) for block in blocks), even)


def _joined(count: int, sets: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """Return the finest partition of 0, 1, ..., count - 1 that splits none of the sets."""
    label = [*range(count)]
    for together in sets:
        found = {label[i] for i in together}
        label = [min(found) if each in found else each for each in label]
    return [tuple(i for i, each in enumerate(label) if each == part) for part in sorted(set(label))]


def _conjugates(found: set[frozenset[int]], images: Sequence[NDArray[np.intp]]) -> set[frozenset[int]]:
    """Sets of coordinates with all sets that maps of the coordinates make of them."""
    last = found
    while last:
        last = {frozenset(image[sorted(each)].tolist()) for each in last for image in images} - found
        found = found | last
    return found
